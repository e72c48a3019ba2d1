"""The names of a granule: which are refused, and that the code of all others compiles."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtstub.errors import GranuleError
from gtstub.install import FOLDER, INCLUDE
from gtstub.programs.granule.description import (
    Argument,
    ArrayValue,
    Call,
    Constant,
    Description,
    GranuleArray,
    GranuleProgram,
    GranuleScalar,
    GranuleStep,
    HookCall,
    Variable,
)
from gtstub.programs.granule.naming import Names, check_names, named_arrays, reserved_names
from gtstub.programs.granule.render import render
from gtstub.programs.layout import Layout
from gtstub.stub.plan.names import C_KEYWORDS
from tests.support.fortran_hosts import MODULES
from tests.support.programs import needs

A, B = np.zeros(3), np.ones((2, 2))
WITHOUT_AXES = np.zeros(())


@dataclasses.dataclass
class Field:
    """Looks like a field of gt4py."""

    ndarray: np.ndarray[Any, Any]


# --- What a user names ------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    u: Any
    v: Any


@dataclasses.dataclass
class State:
    vn: Any
    w: Any
    title: str = "state"


@dataclasses.dataclass(slots=True)
class Slots:
    vn: Any
    number: int = 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (A, {"x": A}),
        (WITHOUT_AXES, {"x": WITHOUT_AXES.reshape(1)}),
        (Field(A), {"x": A}),
        (State(A, B), {"x_vn": A, "x_w": B}),
        (Slots(A), {"x_vn": A}),
        (Pair(A, B), {"x_u": A, "x_v": B}),
        ([A, B], {"x_0": A, "x_1": B}),
        ((A, (B, 3)), {"x_0": A, "x_1_0": B}),
        ({"a": A, "more": State(B, 1.0)}, {"x_a": A, "x_more_vn": B}),
    ],
)
def test_values_that_have_arrays(value: Any, expected: dict[str, np.ndarray[Any, Any]]) -> None:
    assert named_arrays({"x": value}, "g", "argument") == {name: Layout.of(each) for name, each in expected.items()}


@pytest.mark.parametrize("value", [None, 3, 2.5, "text", np.float64(1.0), object(), [], State(1, 2)])
def test_values_that_have_none(value: Any) -> None:
    with pytest.raises(GranuleError, match=r"Argument 'x' of granule 'g' has no array: it is of type"):
        named_arrays({"x": value}, "g", "argument")


def test_an_object_that_contains_itself() -> None:
    state = State(A, None)
    state.w = state
    assert list(named_arrays({"x": state}, "g", "argument")) == ["x_vn", "x_w_vn", "x_w_w_vn"]


def test_two_arrays_of_one_name() -> None:
    with pytest.raises(GranuleError, match=r"Two arrays of granule 'g' are called 'prog_vn': name one differently."):
        named_arrays({"prog": State(A, None), "prog_vn": B}, "g", "argument")
    assert list(named_arrays({"prog": State(A, None), "prog_vn": A}, "g", "argument")) == ["prog_vn"]


# --- Names that are made ----------------------------------------------------------------------------------------------


@given(st.lists(st.text(st.sampled_from("aAbB_.[]é0"), min_size=1, max_size=70), max_size=30))
def test_made_names_differ_and_are_names(choices: list[str]) -> None:
    names = Names(["a", "b_2"])
    made = [names.new(choice, f"{choice}_again") for choice in choices]
    assert len({name.lower() for name in [*made, "a", "b_2"]}) == len(made) + 2
    check_names("g", ["s"], [], [name for name in made if name.lower() not in reserved_names("g", ["s"])])


def test_long_names_differ() -> None:
    names = Names()
    made = [names.new("a" * 80) for _ in range(12)]
    assert {len(name) for name in made} == {63}
    assert len(set(made)) == 12


# --- Names that are refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("granule", "steps", "hooks", "arguments", "message"),
    [
        ("a-b", ["run"], [], [], "The name of granule 'a-b' of granule 'a-b' must begin with a letter, but not with"),
        ("", ["run"], [], [], "The name of granule ''"),
        ("gts_x", ["run"], [], [], "must begin with a letter, but not with 'gts_'"),
        ("g", ["_run"], [], [], "The name of step '_run' of granule 'g' must begin with a letter"),
        ("g", ["run"], ["sync now"], [], "The name of hook 'sync now' of granule 'g' must begin with a letter"),
        ("g", ["run"], [], ["prög"], "The name of argument 'prög' of granule 'g' must begin with a letter"),
        ("g" * 32, ["run"], [], [], "has 32 characters; the Fortran module allows 31."),
        ("g", ["r" * 32], [], [], "has 32 characters; the Fortran module allows 31."),
        ("g", ["run"], ["h" * 32], [], "has 32 characters; the Fortran module allows 31."),
        ("g", ["run"], [], ["a" * 64], "has 64 characters; the Fortran module allows 63."),
        ("g", ["close"], [], [], "Step 'close' of granule 'g' needs another name: a granule has a 'close'."),
        ("g", ["Get_Float64"], [], [], "Step 'Get_Float64' of granule 'g' needs another name"),
        ("g", ["run", "Run"], [], [], "The name 'Run', which steps of granule 'g' need in Fortran, is taken"),
        ("g", ["run"], ["h", "H"], [], "The name 'H', which hooks of granule 'g' need in Fortran, is taken"),
        ("g", ["run"], [], ["vn", "VN"], "The name 'VN', which arguments of granule 'g' need in Fortran, is taken"),
        ("g", ["run"], ["h"], ["h"], "The name 'h', which arguments of granule 'g' need in Fortran, is taken"),
        (
            "g",
            ["run"],
            ["h"],
            ["h_data"],
            "The name 'h_data', which arguments of granule 'g' need in Fortran, is taken",
        ),
        (
            "g",
            ["run"],
            [],
            ["class"],
            "The name of argument 'class' of granule 'g' has a meaning in the generated C or",
        ),
        ("g", ["run"], ["errmsg"], [], "The name of hook 'errmsg' of granule 'g' has a meaning in the generated C or"),
        ("g", ["run"], [], ["STEP_run"], "The name of argument 'STEP_run' of granule 'g' has a meaning"),
        ("g", ["run"], [], ["G_t"], "The name of argument 'G_t' of granule 'g' has a meaning"),
    ],
)
def test_refusals(granule: str, steps: list[str], hooks: list[str], arguments: list[str], message: str) -> None:
    with pytest.raises(GranuleError) as caught:
        check_names(granule, steps, hooks, arguments)
    assert message in str(caught.value)


# --- Names that compile -----------------------------------------------------------------------------------------------

WORDS_OF_FORTRAN = """
    abstract allocatable allocate assign associate asynchronous backspace bind block call case character class close
    codimension common complex concurrent contains contiguous continue critical cycle data deallocate default deferred
    dimension do double elemental else elseif elsewhere end endif enddo entry enum equivalence error event exit extends
    external file final flush forall format function generic go goto if images implicit import impure in include inout
    inquire integer intent interface intrinsic is kind len lock logical module move_alloc namelist non_intrinsic none
    non_overridable nopass null nullify only open operator optional out parameter pass pause pointer precision print
    private procedure program protected public pure rank read real recursive result return rewind save select selectcase
    sequence size stop submodule subroutine sync target team then this_image to type unlock use value volatile wait
    where while write c_loc c_funloc associated allocated shape lbound ubound abs sin sum max min int
"""

WORDS_OF_GENERATED_CODE = """
    abi args array arrays arguments c c_granule c_status cfi_cdesc_t data descriptor dtype folder found granule GRANULE
    GTSTUB handle hook hooks HOOKS index index_base int64_t LIST message name none number PROGRAMS SCALARS self stat
    status step STEPS swap t type unbind version write
"""


def macros(folder: Path) -> Iterator[str]:
    """Those that the compiler and the headers of generated code define, without reserved ones."""
    source = folder / "macros.c"
    source.write_text('#include "gtstub/granule.h"\n#include "gtstub/fortran.h"\n', encoding="utf-8")
    command = ["gcc", "-E", "-dM", "-I", str(INCLUDE), str(source)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        name = line.split()[1].partition("(")[0]
        if not name.startswith(("_", "GTS_")):
            yield name


def is_accepted(steps: Iterable[str] = ("run",), hooks: Iterable[str] = (), arguments: Iterable[str] = ()) -> bool:
    try:
        check_names("granule_of_names", steps, hooks, arguments)
    except GranuleError:
        return False
    return True


def description(steps: list[str], arguments: list[str], scalars: list[str], hooks: list[str]) -> Description:
    """A granule that has all these names. Scalars get theirs as an export does."""
    taken = Names(reserved_names("granule_of_names", steps))
    arrays = [GranuleArray(name, "float64", ("I",), (3,), (1,), True, False, True) for name in arguments]
    call = Call(
        0,
        (
            *(Argument(f"array{number}", ArrayValue(number, ())) for number in range(len(arrays))),
            *(Argument(f"scalar{number}", Variable(number)) for number in range(len(scalars))),
            Argument("constant", Constant("int32", 3)),
            Argument("compiled_in"),
        ),
    )
    positions = (call, *(HookCall(number, (0,) if arrays else ()) for number in range(len(hooks))))
    return Description(
        name="granule_of_names",
        arrays=tuple(arrays),
        programs=(GranuleProgram("program", "programs/program", "0" * 64, "1" * 64),),
        scalars=tuple(GranuleScalar(taken.of_scalar(name), name, "float64", 0.5) for name in scalars),
        hooks=tuple(hooks),
        steps=tuple(GranuleStep(name, positions) for name in steps),
    )


def compile_(granule: Description, folder: Path) -> None:
    """C as C and as C++, and Fortran with its warnings, which are errors."""
    for name, text in render(granule, "0" * 64).items():
        (folder / name).write_text(text, encoding="utf-8")
    stem = f"{granule.name}_granule"
    (folder / "user.cpp").write_text(f'#include "{stem}.h"\n', encoding="utf-8")
    include = ("-I", str(INCLUDE), "-I", ".")
    warnings = ("-Wall", "-Wextra", "-Werror")
    for command in (
        ("gcc", "-std=gnu11", *warnings, "-Wconversion", "-DGTS_FORTRAN", "-fsyntax-only", *include, f"{stem}.c"),
        ("g++", "-std=gnu++20", *warnings, "-fsyntax-only", *include, "user.cpp"),
        ("gfortran", "-std=f2018", *warnings, "-fsyntax-only", f"{stem}.f90"),
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[:3000]}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the modules of the runtime."""
    made = tmp_path_factory.mktemp("names")
    for module in MODULES:
        source = FOLDER / "fortran" / f"{module}.f90"
        subprocess.run(["gfortran", "-std=f2018", "-fsyntax-only", str(source)], cwd=made, check=True)
    return made


@needs("gcc")
@needs("g++")
@needs("gfortran")
def test_the_code_of_every_accepted_name_compiles(folder: Path) -> None:
    words = [*C_KEYWORDS, *WORDS_OF_FORTRAN.split(), *WORDS_OF_GENERATED_CODE.split(), *macros(folder)]
    unique = list({word.lower(): word for word in [*words, *reserved_names("granule_of_names", ["run"])]}.values())
    names = [word for word in unique if not word.startswith("_")]
    steps = [name for name in names if is_accepted([name])]
    arguments = [name for name in names if is_accepted(arguments=[name])]
    assert {"end", "if", "real", "data"} - set(arguments) == {"if"}
    hooks = [name for name in arguments if name != "value"]  # of which one is an argument beside the hooks
    compile_(description(["run"], arguments, [], ["exchange"]), folder)
    compile_(description(["run"], ["value"], names, hooks), folder)
    compile_(description(steps, ["u"], ["dt"], ["exchange"]), folder)
    compile_(description(["run"], [], [], []), folder)


@needs("gcc")
@needs("g++")
@needs("gfortran")
def test_the_longest_names_compile(folder: Path) -> None:
    granule = dataclasses.replace(description(["s" * 31], ["a" * 63], ["b" * 80], ["h" * 31]), name="g" * 31)
    (array,) = granule.arrays
    widest = dataclasses.replace(array, dims=("i" * 63,) * 6, shape=(3,) * 6, strides=(1,) * 6)
    compile_(dataclasses.replace(granule, arrays=(widest,)), folder)
