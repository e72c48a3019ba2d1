"""Static arguments: a call must pass the values that were compiled in, and pays next to nothing for it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.dtypes import STATIC_DTYPES, DType
from tests.support.hosting import Bound
from tests.support.signatures import program, scalar, sdfg, symbol, tuple_of, with_static

pytestmark = pytest.mark.sanitizer

VALUES: dict[str, Any] = {dtype: True if dtype == "bool" else 0.1 if "float" in dtype else 7 for dtype in STATIC_DTYPES}
VALUES |= {"nan": math.nan, "zero": 0.0, "single_nan": math.nan, "large": 2**64 - 1, "small": -(2**63)}
DTYPES: dict[str, DType] = {dtype: dtype for dtype in STATIC_DTYPES}
DTYPES |= {"nan": "float64", "zero": "float64", "single_nan": "float32", "large": "uint64", "small": "int64"}

PROGRAM = with_static(
    program(
        "fixed",
        **{f"a_{name}": scalar(dtype) for name, dtype in DTYPES.items()},
        n=scalar("int32"),
        x=tuple_of(scalar("int32"), tuple_of(scalar("float64"), scalar("bool"))),
    ),
    **{f"a_{name}": value for name, value in VALUES.items()},
    x_0=3,
    x_1_0=2.5,
)
SDFG = sdfg(symbol("n"), symbol("x_1_1", dtype="bool"), name="fixed")


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Bound:
    return Bound(tmp_path_factory.mktemp("fixed"), toolchain, SDFG, PROGRAM)


@pytest.fixture(autouse=True)
def clean(bound: Bound) -> Iterator[None]:
    yield
    bound.recorder.clear()


def call(bound: Bound, program: _host.Program | None = None, **changed: Any) -> None:
    good = {f"a_{name}": value for name, value in VALUES.items()} | {"n": 5, "x": (3, (2.5, True))}
    (program or bound.program)(**{**good, **changed})


def check_refused(bound: Bound, error: type[Exception], message: str, **changed: Any) -> None:
    """A call that differs from a good one in `changed` is refused each time; the good one works before and after."""
    for _ in range(2):
        call(bound)
        calls = len(bound.recorder.calls())
        with pytest.raises(error) as caught:
            call(bound, **changed)
        assert str(caught.value) == message
        assert type(caught.value) is error
        assert len(bound.recorder.calls()) == calls
    call(bound)


def test_what_the_sdfg_takes_arrives(bound: Bound) -> None:
    call(bound)
    assert bound.last() == {"n": 5, "x_1_1": True}


@pytest.mark.parametrize("name", DTYPES)
def test_the_value_may_come_as_any_scalar(bound: Bound, name: str) -> None:
    value, dtype = VALUES[name], DTYPES[name]
    call(bound, **{f"a_{name}": np.dtype(dtype).type(value)})
    call(bound, **{f"a_{name}": type(value)(value)})
    if "int" in dtype and value == 7:
        for other in (np.int8(7), np.uint64(7), np.longlong(7), type("Seven", (int,), {})(7)):
            call(bound, **{f"a_{name}": other})
    assert len(bound.recorder.calls()) >= 2


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("bool", False, "is False, but was compiled in as True"),
        ("bool", np.bool_(False), "is False, but was compiled in as True"),
        *((dtype, 8, "is 8, but was compiled in as 7") for dtype in DTYPES if VALUES[dtype] == 7),
        ("int32", np.int32(-7), "is -7, but was compiled in as 7"),
        ("float64", 0.2, "is 0.2, but was compiled in as 0.1"),
        ("float64", np.nextafter(0.1, 1), "is 0.10000000000000002, but was compiled in as 0.1"),
        ("float32", 0.5, "is 0.5, but was compiled in as 0.10000000149011612"),
        ("nan", 0.0, "is 0.0, but was compiled in as nan"),
        ("zero", math.nan, "is nan, but was compiled in as 0.0"),
        ("zero", -0.0, "is -0.0, but was compiled in as 0.0"),
        ("zero", math.inf, "is inf, but was compiled in as 0.0"),
        ("large", 2**63, "is 9223372036854775808, but was compiled in as 18446744073709551615"),
        ("small", 2**63 - 1, "is 9223372036854775807, but was compiled in as -9223372036854775808"),
    ],
)
def test_another_value_is_refused(bound: Bound, name: str, value: Any, text: str) -> None:
    message = f"Argument 'a_{name}' of program 'fixed' {text}; compile the program for this value, too."
    check_refused(bound, ValueError, message, **{f"a_{name}": value})


@pytest.mark.parametrize(
    ("error", "message", "changed"),
    [
        (ValueError, "Argument 'x[0]' of program 'fixed' is 4, but was compiled in as 3", {"x": (4, (2.5, True))}),
        (
            ValueError,
            "Argument 'x[1][0]' of program 'fixed' is 2.0, but was compiled in as 2.5",
            {"x": (3, (2, True))},
        ),
    ],
)
def test_a_tuple_is_compared_leaf_by_leaf(
    bound: Bound, error: type[Exception], message: str, changed: dict[str, Any]
) -> None:
    check_refused(bound, error, f"{message}; compile the program for this value, too.", **changed)


@pytest.mark.parametrize(
    ("error", "message", "changed"),
    [
        (TypeError, "must be an 'int32', not 'float'.", {"a_int32": 7.5}),
        (ValueError, "is 1, but was compiled in as 7; compile the program for this value, too.", {"a_int32": True}),
        (TypeError, "must be an 'int32', not 'NoneType'.", {"a_int32": None}),
        (ValueError, "is 2, which does not fit 'bool'.", {"a_bool": 2}),
        (ValueError, "is 300, which does not fit 'int8'.", {"a_int8": 300}),
    ],
)
def test_a_static_argument_is_a_scalar_like_any(
    bound: Bound, error: type[Exception], message: str, changed: dict[str, Any]
) -> None:
    (name,) = changed
    check_refused(bound, error, f"Argument '{name}' of program 'fixed' {message}", **changed)


# --- Recognising ------------------------------------------------------------------------------------------------------


class Changing:
    """An integer that is not always the same."""

    def __init__(self) -> None:
        self.value = 7

    def __index__(self) -> int:
        return self.value


def test_an_object_that_may_change_is_read_at_every_call(bound: Bound) -> None:
    changing = Changing()
    for _ in range(3):
        call(bound, a_int32=changing)
    changing.value = 8
    message = (
        "Argument 'a_int32' of program 'fixed' is 8, but was compiled in as 7; compile the program for this value, too."
    )
    check_refused(bound, ValueError, message, a_int32=changing)


@pytest.mark.parametrize("make", [lambda x: float(f"{x}"), np.float64])
def test_a_new_object_at_the_address_of_an_old_one_is_not_taken_for_it(bound: Bound, make: Any) -> None:
    for _ in range(200):
        call(bound, a_float64=make(0.1))
        with pytest.raises(ValueError, match=r"is 0\.2, but"):
            call(bound, a_float64=make(0.2))


@pytest.mark.parametrize("value", [float("0.1"), np.float64(0.1)])
def test_the_last_object_is_kept_and_let_go_with_the_program(bound: Bound, value: Any) -> None:
    program = bound.load()
    before = sys.getrefcount(value)
    for _ in range(1000):
        call(bound, program, a_float64=value)
    assert sys.getrefcount(value) == before + 1
    call(bound, program)
    assert sys.getrefcount(value) == before
    call(bound, program, a_float64=value)
    del program
    assert sys.getrefcount(value) == before


def test_reference_counts_do_not_change(bound: Bound) -> None:
    values = [float("0.1"), np.float64(0.1), float("0.2")]
    call(bound, a_float64=0.1)
    before = [sys.getrefcount(value) for value in values]
    for _ in range(1000):
        call(bound, a_float64=values[0])
        call(bound, a_float64=values[1])
        with pytest.raises(ValueError):
            call(bound, a_float64=values[2])
        bound.recorder.clear()
    call(bound, a_float64=0.1)
    assert [sys.getrefcount(value) for value in values] == before


def test_debugging_reads_static_arguments_at_every_call(bound: Bound, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_DEBUG", "1")
    program = bound.load()
    value = float("0.1")
    before = sys.getrefcount(value)
    for _ in range(100):
        call(bound, program, a_float64=value)
        with pytest.raises(ValueError, match=r"is 0\.2, but"):
            call(bound, program, a_float64=0.2)
    assert sys.getrefcount(value) == before + 1
    del program
    assert sys.getrefcount(value) == before
