"""What Fortran sees of a program: names that it can have, types, intents, and lines that are short enough."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from gtstub.errors import PlanError
from gtstub.stub.codegen.hosts.fortran import MAX_NAME, make_interface, procedure_name
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature.dtypes import NAMES, DType
from gtstub.stub.signature.model import Axis, Dimension, ProgramSignature
from tests.support.signatures import (
    WHOLE_PROGRAM,
    WHOLE_SDFG,
    K,
    array,
    field,
    program,
    scalar,
    sdfg,
    symbol,
    with_static,
)
from tests.support.stubs import render_stub

LONG = "x" * MAX_NAME

MAX_LINE = 132
"""Characters of a line in free form."""


def module_of(signature: ProgramSignature, *names: str) -> str:
    """The module of a program with these scalars."""
    text = render_stub(sdfg(*map(symbol, names), name=signature.name), signature, fortran=True).module
    assert text is not None
    return text


def of_scalars(*names: str, name: str = "prog") -> str:
    return module_of(program(name, **{n: scalar("int32") for n in names}), *names)


def refuses(text: str, *names: str, name: str = "prog") -> None:
    of_scalars("good")
    with pytest.raises(PlanError, match=f"^{re.escape(text)}$"):
        of_scalars(*names, name=name)


# --- Names ------------------------------------------------------------------------------------------------------------


def test_refuses_names_that_differ_in_case_only() -> None:
    of_scalars("x", "y")
    refuses(
        "Arguments 'x_y' and 'X_y' of program 'prog' have the same name in Fortran, which ignores case.",
        "x_y",
        "X_y",
    )


def test_refuses_an_underscore_first() -> None:
    refuses("The name of argument '_x' of program 'prog' begins with '_'; Fortran forbids that.", "_x")


def test_names_of_programs_begin_without_underscores() -> None:
    assert "module field_operator_x_stub\n" in of_scalars(name="__field_operator_x")
    for name in ("_", "_1"):
        refuses(f"Fortran needs a letter after the leading underscores in the name of program '{name}'.", name=name)


def test_refuses_names_that_are_too_long() -> None:
    of_scalars(LONG)
    refuses(f"The name of argument '{LONG}x' of program 'prog' has 64 characters; Fortran allows 63.", f"{LONG}x")


@pytest.mark.parametrize(
    "name",
    [
        "program",
        "STAT",
        "errmsg",
        "Bound_call",
        "c_int",
        "C_Double",
        "gtstub",
        "Gts_program",
        "prog",
        "prog_bind",
        "prog_stub",
    ],
)
def test_refuses_what_the_module_uses(name: str) -> None:
    refuses(f"The name of argument '{name}' of program 'prog' is reserved in its Fortran module.", name)


@pytest.mark.parametrize("name", ["stat", "gtstub", "c_float"])
def test_refuses_programs_that_are_called_as_what_the_module_uses(name: str) -> None:
    refuses(f"The name of program '{name}' of program '{name}' is reserved in its Fortran module.", name=name)


def test_c_alone_takes_all_of_these() -> None:
    names = ("_x", f"{LONG}x", "stat", "a", "A")
    render_stub(sdfg(*map(symbol, names)), program(**{name: scalar("int32") for name in names}))


@pytest.mark.parametrize(("length", "whole"), [(1, True), (58, True), (59, False), (200, False)])
def test_long_names_of_programs_are_shortened(length: int, whole: bool) -> None:
    name = "p" * length
    short = procedure_name(name)
    assert (short == name) == whole
    assert len(f"{short}_stub") <= MAX_NAME
    assert whole or re.fullmatch(r"p{49}_[0-9a-f]{8}", short)
    assert short != procedure_name(f"{name}q") != procedure_name(f"{name}r")


def test_what_c_calls_the_procedure_is_never_shortened() -> None:
    name = "p" * 200
    joined = of_scalars(name=name).replace("&\n            &", "")
    assert f'bind(c, name="{name}_fortran")' in joined


# --- Types ------------------------------------------------------------------------------------------------------------


def test_every_dtype_has_a_kind() -> None:
    assert set(NAMES) == set(get_args(DType))


def test_arguments_are_those_of_the_c_struct_in_its_order() -> None:
    interface = make_interface(make_plan(WHOLE_SDFG, WHOLE_PROGRAM))
    assert [(a.name, a.dims, a.written) for a in interface.arguments] == [
        ("vn", "(:, :)", False),
        ("x_0", "(:)", False),
        ("x_1_0", "", False),
        ("x_1_1", "", False),
        ("flag", "", False),
        ("out_0", "(:, :)", True),
        ("out_1", "(:, :)", True),
        ("gt_conn_E2V", "(:, :)", False),
    ]
    header = render_stub(WHOLE_SDFG, WHOLE_PROGRAM).header
    members = re.findall(r"^    \w+ (\w+);", header, re.MULTILINE)
    assert members == [argument.name for argument in interface.arguments]


def test_what_was_compiled_in_is_said_and_is_no_argument() -> None:
    signature = with_static(program(n=scalar("int32"), x=scalar("float64")), x=0.5)
    text = module_of(signature, "n")
    assert "            ! Compiled in, and so no arguments:\n            !   x = 0.5\n" in text
    assert "            program, n, stat, errmsg &\n" in text


# --- Lines ------------------------------------------------------------------------------------------------------------


def test_no_line_is_longer_than_fortran_allows() -> None:
    long = [f"{'x' * 60}_{i:02}" for i in range(40)]
    wide = Dimension("D" * 150, "horizontal")
    arrays = [array(name, *[Axis()] * 6) for name in long]
    fields = {name: field(wide, K, wide, K, wide, K) for name in long}
    statics = {f"{'n' * 60}_{i}": float(i) for i in range(3)}
    parameters = {**fields, **{name: scalar("float64") for name in statics}}
    name = "p" * 300
    text = render_stub(
        sdfg(*arrays, name=name), with_static(program(name, **parameters), **statics), fortran=True
    ).module
    assert text is not None
    assert max(map(len, text.splitlines())) <= MAX_LINE
