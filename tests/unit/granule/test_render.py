"""The generated C of a granule."""

from __future__ import annotations

import re

from gtstub.granule.description import Argument, Call, Constant, Description, GranuleProgram, GranuleStep, HookCall
from gtstub.granule.render import render


def call(program: int, value: float) -> Call:
    return Call(program, (Argument("x", Constant("float64", value)),))


def test_equal_calls_share_their_arguments() -> None:
    """And 0.0 is not -0.0, although Python's == says so."""
    granule = Description(
        name="tiny",
        arrays=(),
        programs=(GranuleProgram("a", "programs/a", "", ""), GranuleProgram("b", "programs/b", "", "")),
        scalars=(),
        hooks=("exchange",),
        steps=(
            GranuleStep("first", (call(0, 0.0), HookCall(0, ()), call(1, 0.0), call(0, -0.0))),
            GranuleStep("later", (call(1, 0.0), call(0, 0.0))),
        ),
    )
    text = render(granule, "", languages=())["tiny_granule.c"]
    assert re.findall(r"ARGUMENTS_(\d)\[\] = \{\n.*\{(.*)\}\},? ", text) == [("1", "0.0"), ("2", "0.0"), ("3", "-0.0")]
    assert re.findall(r"\{\.index = (\d), .*\}, +/\* (\d): (\w+) \*/", text) == [
        ("0", "1", "a"),
        ("0", "2", "exchange"),
        ("1", "3", "b"),
        ("0", "4", "a"),
        ("1", "1", "b"),
        ("0", "2", "a"),
    ]
    assert re.findall(r"\.arguments = ARGUMENTS_(\d)", text) == ["1", "2", "3", "2", "1"]
