"""Names that cannot stand in C are refused when the plan is made, before a line is written."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from gtstub.errors import PlanError
from gtstub.install import INCLUDE
from gtstub.stub.plan.names import C_KEYWORDS, GNU_MACROS, check_names, is_reserved
from tests.support.programs import need


def check(
    program: str = "prog",
    sdfg: str = "prog",
    parameter: str = "x",
    leaf: str | list[str] = "x_0",
    dim: str = "K",
    key: str = "vn",
    library: str = "libprog.so",
    tuples: tuple[str, ...] = ("x",),
) -> None:
    names = {"program": [program], "SDFG": [sdfg], "parameter": [parameter], "dimension": [dim], "key": [key]}
    check_names(program, library, names | {"argument": [leaf] if isinstance(leaf, str) else leaf, "tuple": tuples})


def refuses(text: str, **names: str | list[str]) -> None:
    check()
    with pytest.raises(PlanError, match=f"^{re.escape(text)}$"):
        check(**names)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["x", "_x", "X1", "__x", "gt_x", "a", "self", "args", "run"])
def test_accepts_identifiers(name: str) -> None:
    check(program=name, sdfg=name, parameter=name, leaf=name, dim=name, key=name)


@pytest.mark.parametrize("name", ["", "1x", "x-y", "x y", "é", 'x"', "x\n", "*/", "x.y"])
@pytest.mark.parametrize(
    ("argument", "kind"),
    [
        ("program", "program"),
        ("sdfg", "SDFG"),
        ("parameter", "parameter"),
        ("leaf", "argument"),
        ("dim", "dimension"),
        ("key", "key"),
    ],
)
def test_refuses_what_is_no_identifier(argument: str, kind: str, name: str) -> None:
    program = name if argument == "program" else "prog"
    refuses(f"The name of {kind} '{name}' of program '{program}' is not an identifier of C.", **{argument: name})


@pytest.mark.parametrize("name", ["gts_x", "GTS_X"])
@pytest.mark.parametrize(("argument", "kind"), [("sdfg", "SDFG"), ("parameter", "parameter"), ("leaf", "argument")])
def test_refuses_the_reserved_prefix(argument: str, kind: str, name: str) -> None:
    refuses(f"The name of {kind} '{name}' of program 'prog' begins with 'gts_', which is reserved.", **{argument: name})


@pytest.mark.parametrize("name", sorted(C_KEYWORDS))
def test_refuses_keywords_as_arguments_only(name: str) -> None:
    check(parameter=name, dim=name, key=name)  # these stand in strings
    refuses(f"The name of argument '{name}' of program 'prog' is reserved in C or C++.", leaf=name)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("standard", ["c11", "gnu17"])
def test_refuses_the_macros_of_headers(compiler: str, standard: str, tmp_path: Path) -> None:
    need(compiler)
    source = tmp_path / "headers.c"
    source.write_text("".join(f'#include "gtstub/{name}.h"\n' for name in ("complex", "stub")))
    command = [compiler, f"-std={standard}", "-I", str(INCLUDE), "-dM", "-E", str(source)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = re.findall(r"^#define (\w+) ", text, re.MULTILINE)
    assert len(names) > 300
    for name in names:
        if not name.startswith(("gts_", "GTS_", "GTSTUB_")) and name not in GNU_MACROS:
            refuses(f"The name of argument '{name}' of program 'prog' is reserved in C or C++.", leaf=name)


def test_the_header_undefines_macros_of_the_gnu_dialects() -> None:
    for name in GNU_MACROS:
        check(leaf=name)


def test_names_that_are_no_arguments() -> None:
    for name in ("new", "int8_t", "__x_", "gts_x"):
        assert is_reserved(name)
        assert not is_reserved(f"read_{name}")
    assert not is_reserved("linux")


def test_names_of_gt4py_and_dace_are_not_reserved() -> None:
    for name in (
        "__vn_Edge_range_0",
        "__x_K_size",
        "gt_conn_E2C2V",
        "_x",
        "_X",
        "__return",
        "__cond",
        "__tmp0",
        "N",
        "I",
    ):
        check(leaf=name)


def test_refuses_two_arguments_of_one_name() -> None:
    check(leaf=["x_0", "x_1"])
    refuses("Two arguments of program 'prog' are called 'x_0' after tuples are flattened.", leaf=["x_0", "x_0"])


@pytest.mark.parametrize("name", ['lib"prog.so', "lib prog.so", "lib\\prog.so", "libprog\n.so", ""])
def test_refuses_libraries_that_a_c_string_cannot_name(name: str) -> None:
    refuses(f"The name of library '{name}' of program 'prog' has characters other than [A-Za-z0-9_.+-].", library=name)


def test_refuses_two_tuples_of_one_name() -> None:
    refuses("Two tuples of program 'prog' are called 'x_0' after tuples are flattened.", tuples=("x", "x_0", "x_0"))
