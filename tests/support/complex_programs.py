"""A program of complex numbers: arrays, scalars that are passed by value, and functions that take and return them."""

from __future__ import annotations

from gtstub.stub.signature.model import Axis, CallbackType
from tests.support.calling_programs import CallingProgram
from tests.support.signatures import K, array, callback, field, number, program, scalar, sdfg, symbol

WAVES = CallingProgram(
    sdfg(
        array("half", Axis(start=0, size=2, stride=1), dtype="complex64", access="write"),
        array("wide", Axis(start=0, size=4), dtype="complex128", access="write"),
        symbol("S", ("wide", 0, "stride")),
        symbol("w", dtype="complex64"),
        symbol("x", dtype="float64"),
        symbol("z", dtype="complex128"),
        callback("parts", number("complex128"), returns=(number("complex64"), number("complex128"))),
        callback("turn", number("complex64"), number("complex128"), returns=(number("complex128"),)),
        name="waves",
    ),
    program(
        "waves",
        wide=field(K, dtype="complex128"),
        half=field(K, dtype="complex64"),
        w=scalar("complex64"),
        x=scalar("float64"),
        z=scalar("complex128"),
        turn=CallbackType(),
        parts=CallbackType(),
    ),
    """\
    half[0] = w;
    wide[0] = z;
    wide[S] = x * z;
    wide[2 * S] = turn(w, z);
    parts(z, &half[1], &wide[3 * S]);
""",
)
