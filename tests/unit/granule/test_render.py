"""The generated C of a granule."""

from __future__ import annotations

import re

from gtstub.programs.granule.description import (
    Argument,
    Call,
    Constant,
    Description,
    GranuleProgram,
    GranuleStep,
    HookCall,
)
from gtstub.programs.granule.render import render


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
    assert re.findall(r"ARGUMENTS_(\d)\[1\] = \{\n.*\{(.*)\}\},? ", text) == [("1", "0.0"), ("2", "0.0"), ("3", "-0.0")]
    assert re.findall(r"\{\.index = (\w+), \.\w+ = (\w+)\}, +/\* (\d) \*/", text) == [
        ("PROGRAM_a", "ARGUMENTS_1", "1"),
        ("HOOK_exchange", "0", "2"),
        ("PROGRAM_b", "ARGUMENTS_2", "3"),
        ("PROGRAM_a", "ARGUMENTS_3", "4"),
        ("PROGRAM_b", "ARGUMENTS_2", "1"),
        ("PROGRAM_a", "ARGUMENTS_1", "2"),
    ]
