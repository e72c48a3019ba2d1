"""Generated C compiles without a warning, of gcc and of clang, and its headers are C++ as well."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import pytest

from gtstub.install import INCLUDE
from gtstub.stub.signature.dtypes import DTYPES, SCALAR_DTYPES, STATIC_DTYPES, DType
from gtstub.stub.signature.facts import Fact
from gtstub.stub.signature.model import (
    Axis,
    Bounds,
    CallbackType,
    Claim,
    Condition,
    ProgramSignature,
    SdfgSignature,
    StructureArgument,
)
from tests.support import goldens, target
from tests.support.complex_programs import WAVES
from tests.support.programs import need
from tests.support.signatures import (
    CALLING_PROGRAM,
    CALLING_SDFG,
    SMALL_PROGRAM,
    SMALL_SDFG,
    WHOLE_PROGRAM,
    WHOLE_SDFG,
    K,
    array,
    callback,
    collection_of,
    field,
    number,
    numbers,
    program,
    scalar,
    sdfg,
    symbol,
    tuple_of,
    use,
    value,
    with_static,
)
from tests.support.stubs import write_stub

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only", "-I", str(INCLUDE))

# Names that generated C uses for its own things, or that mean something elsewhere.
OF_MACROS = ["axes", "what", "leaf", "slot", "source", "type", "to", "ARGUMENTS", "SLOTS", "OTHER_SLOTS", "INIT"]
TRICKY = [*"a self host args init run convert status memory_symbols LEAVES none i x_items".split(), *OF_MACROS]  # noqa: SIM905
OF_BOUNDS = ["s", "s_", "self", "self_", "USES", "common", "checked"]
OF_CALLBACKS = "s a0 frame values returned shape0 function data call back prog RUNNING".split()  # noqa: SIM905
TRICKY_CALLBACKS = [*TRICKY, *OF_CALLBACKS]

# One of every type, as an argument and as a result.
MANY = callback(
    "many",
    *map(number, SCALAR_DTYPES),
    *(numbers(dtype, "2", "3", strides=("3", "1")) for dtype in DTYPES),
    returns=(*map(number, SCALAR_DTYPES), *(numbers(dtype, "4") for dtype in DTYPES)),
)

# The values at which a compiler might warn.
STATIC = with_static(
    program(
        **{f"a_{dtype}": scalar(dtype) for dtype in STATIC_DTYPES},
        limits=tuple_of(scalar("int8"), scalar("int64"), scalar("uint64"), *[scalar("float32")] * 5),
        doubles=tuple_of(*[scalar("float64")] * 6),
    ),
    **{f"a_{dtype}": dtype == "bool" or 1 for dtype in STATIC_DTYPES},
    **dict(zip((f"limits_{i}" for i in range(3)), (-128, -(2**63), 2**64 - 1), strict=True)),
    **{f"limits_{3 + i}": x for i, x in enumerate((0.1, math.inf, -math.inf, math.nan, 1e-45))},
    **{f"doubles_{i}": x for i, x in enumerate((0.1, math.inf, -math.inf, math.nan, 5e-324, -0.0))},
)

FACTS: dict[str, DType] = {
    "n": "int32",
    "big": "int64",
    "dt": "float64",
    "u": "uint32",
    "w": "uint64",
    "flag": "bool",
}

SIGNATURES: dict[str, tuple[SdfgSignature, ProgramSignature]] = {
    "whole": (WHOLE_SDFG, WHOLE_PROGRAM),
    "small": (SMALL_SDFG, SMALL_PROGRAM),
    "calling": (CALLING_SDFG, CALLING_PROGRAM),
    "waves": (WAVES.sdfg, WAVES.program),
    "tricky_callbacks": (
        sdfg(*(callback(name, number("int32"), returns=(number("bool"),)) for name in TRICKY_CALLBACKS), MANY),
        program(**dict.fromkeys([*TRICKY_CALLBACKS, MANY.name], CallbackType())),
    ),
    "empty": (sdfg(), program()),
    "unused": (sdfg(), program(x=field(K))),
    "static": (sdfg(), STATIC),
    "collections": (
        sdfg(symbol("s_1_1"), symbol("LEAVES_0")),
        program(
            s=collection_of(auto=scalar("int32"), wind=collection_of(u=field(K), v=scalar("int32"))),
            LEAVES=collection_of(LEAVES=scalar("int32")),
        ),
    ),
    "tricky_bounds": (
        sdfg(
            array("x", Axis()),
            symbol("__x_K_range_0", ("x", 0, "start")),
            *(symbol(name) for name in OF_BOUNDS),
            bounds=Bounds(
                1,
                (Claim((), (use("x", 0, "-__x_K_range_0", f"{' + '.join(OF_BOUNDS)} - __x_K_range_0"),), ()),),
                (),
            ),
        ),
        program(x=field(K), **dict.fromkeys(OF_BOUNDS, scalar("int32"))),
    ),
    "program_and_callback": (
        sdfg(callback("call", number("int32"), returns=(number("int32"),)), name="call"),
        program("call", call=CallbackType()),
    ),
    "claim_on_a_member": (
        sdfg(
            StructureArgument("s", (array("s_0", Axis(start=0)), symbol("s_1")), ()),
            symbol("__s_0_K_range_0", ("s_0", 0, "start")),
            bounds=Bounds(1, (Claim((), (use("s_0", 0, "0", "s_1 - 1"),), ()),), ()),
        ),
        program(s=collection_of(x=field(K), n=scalar("int32"))),
    ),
    "constant_conditions": (
        sdfg(
            array("x", Axis(start=0)),
            symbol("n"),
            bounds=Bounds(
                2,
                tuple(
                    Claim((Condition(value(a), "<", value(b)),), (use("x", 0, "0", "3"),), ())
                    for a, b in (("0", "1"), ("n", "n"), ("max(n, 1)", "max(n, 1)"))
                ),
                (),
            ),
        ),
        program(x=field(K), n=scalar("int32")),
    ),
    "facts": (
        sdfg(
            array("x", Axis(start=0)),
            *(symbol(name, dtype=dtype) for name, dtype in FACTS.items()),
            bounds=Bounds(
                1,
                (Claim((Condition(value("f"), "!=", value("0")),), (use("x", 0, "0", "3"),), ()),),
                (),
                (Fact("f", "-(-n) > 1 and big * dt > 0.5 and (u < -1 or flag > 2 or big < w)"),),
            ),
        ),
        program(x=field(K), **{name: scalar(dtype) for name, dtype in FACTS.items()}),
    ),
    "tricky": (
        sdfg(
            *(array(name, Axis()) for name in TRICKY),
            array("x_0", Axis()),
            symbol("x_1", dtype="uint64"),
            symbol("n", *((name, 0, "size") for name in TRICKY)),
            name="init",
            init=("n", "x_1"),
            memory_symbols=("n",),
        ),
        program("run", **dict.fromkeys(TRICKY, field(K)), x=tuple_of(field(K), scalar("uint64"))),
    ),
}


def signatures_of(name: str) -> tuple[SdfgSignature, ProgramSignature]:
    return SIGNATURES[name] if name in SIGNATURES else goldens.signatures_of(name)


def compiles(compiler: str, *arguments: str | Path, folder: Path) -> None:
    need(compiler)
    done = subprocess.run(
        [*target.compiler(compiler), *WARNINGS, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", [*SIGNATURES, *goldens.REAL])
def test_stub_compiles_without_a_warning(name: str, compiler: str, tmp_path: Path) -> None:
    compiles(compiler, "-std=c11", write_stub(*signatures_of(name), tmp_path), folder=tmp_path)


@pytest.mark.parametrize("compiler", ["gcc", "clang", "g++"])
def test_macros_of_the_gnu_dialects_are_names(compiler: str, tmp_path: Path) -> None:
    """Compilers use these dialects if they are told nothing else."""
    taken = sdfg(array("linux", Axis(start=0)), symbol("unix", ("linux", 0, "size")), symbol("k"))
    source = write_stub(taken, program(linux=field(K), k=scalar("int32")), tmp_path)
    user = tmp_path / ("user.cpp" if compiler == "g++" else "user.c")
    lines = (
        f'#include "{source.with_suffix(".h").name}"',
        "void host(struct prog_args *made);",
        "void host(struct prog_args *made) { made->linux.shape[0] = made->k; }\n",
    )
    user.write_text("\n".join(lines))
    if compiler != "g++":
        compiles(compiler, source, folder=tmp_path)
    compiles(compiler, user, folder=tmp_path)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("name", SIGNATURES)
def test_header_is_cpp(name: str, compiler: str, tmp_path: Path) -> None:
    header = write_stub(*signatures_of(name), tmp_path).with_suffix(".h")
    user = tmp_path / "user.cpp"
    lines = (
        f'#include "{header.name}"',
        f'#include "{header.name}"',
        '#include "gtstub/stub.h"',
        '#include "gtstub/step.h"',
    )
    user.write_text("\n".join((*lines, f"auto *entry = &{header.name.removesuffix('_stub.h')}_call;\n")))
    compiles(compiler, "-std=c++17", user, folder=tmp_path)


@pytest.mark.parametrize(
    "header",
    ["gtstub.h", "step.h", "stub.h", "contract.h", "arrays.h", "program.h", "complex.h", "granule.h"],
)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_header_of_the_runtime_stands_alone(header: str, compiler: str, tmp_path: Path) -> None:
    user = tmp_path / "user.c"
    user.write_text(f'#include "gtstub/{header}"\nextern int nothing;\n')
    compiles(compiler, "-std=c11", user, folder=tmp_path)
