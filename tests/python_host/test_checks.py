"""Debug checks: what they find in the fields of a call, what they say, and which calls they see."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.dtypes import SCALAR_DTYPES, DType
from gtstub.stub.signature.model import Axis, Dimension
from tests.support.checkout import ROOT
from tests.support.hosting import Bound, Field, domain, good_arguments, run_script
from tests.support.planting import EDGES, LEVELS, build_plant, make, plant
from tests.support.sdfg_libraries import build_recording_library
from tests.support.signatures import EDGE, K, array, field, sdfg
from tests.support.signatures import program as signature
from tests.support.stubs import build_stub

pytestmark = pytest.mark.sanitizer

ALL = EDGES * LEVELS
NAN = math.nan


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> tuple[Path, Path]:
    return build_plant(tmp_path_factory.mktemp("plant"), toolchain)


@pytest.fixture
def program(libraries: tuple[Path, Path]) -> _host.Program:
    return _host.load(*libraries)


class Stderr:
    """What the runtime prints on stderr."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def lines(self) -> list[str]:
        """Those since the last time."""
        return self._capture.readouterr().err.splitlines()


@pytest.fixture
def stderr(capfd: pytest.CaptureFixture[str]) -> Iterator[Stderr]:
    """Nothing is left in it at the end."""
    found = Stderr(capfd)
    yield found
    assert found.lines() == []


def zeros() -> NDArray[np.float64]:
    return np.zeros((EDGES, LEVELS))


def message(text: str, call: Any, *arguments: Any) -> str:
    """The error of a call that is checked; empty if there is none."""
    with gtstub.checks(text):
        try:
            call(*arguments)
        except RuntimeError as error:
            return str(error)
    return ""


def out_error(value: str, check: str, *, old: int = 0, count: int = 1) -> str:
    return (
        f"Argument 'out' of program 'plant' is {value} at Edge 3, K 1 after the call; "
        f"check '{check}' refuses {count} of {ALL} elements, {old} of them also before the call."
    )


# --- Values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "bad", "text", "good"),
    [
        ("nan", NAN, "nan", -math.inf),
        ("finite", NAN, "nan", sys.float_info.max),
        ("finite", -math.inf, "-inf", -sys.float_info.max),
        ("min o*=-1e-8", -1.1e-8, "-1.1e-08", -1e-8),
        ("min out=0", -5e-324, "-4.94065645841247e-324", -0.0),
        ("max out=400", math.nextafter(400, 500), "400.00000000000006", 400),
        ("range out=-280:280", -280.5, "-280.5", -280),
        ("range out=-280:280", math.inf, "inf", 280),
        ("max out=inf", None, "", math.inf),
        ("range out=1e300:1e300", 0, "0", None),
    ],
)
def test_a_check_refuses_a_value_and_not_the_one_beside_it(
    program: _host.Program, check: str, bad: float | None, text: str, good: float | None, stderr: Stderr
) -> None:
    inside = 1e300 if "1e300" in check else 1.0
    out = np.full((EDGES, LEVELS), inside)
    if bad is not None:
        found = message(check, plant, program, make(zeros()), make(out), 3, 1, bad)
        assert found == out_error(text, check)
        assert out[3, 1] == bad or math.isnan(bad)
    if good is not None:
        assert message(check, plant, program, make(zeros()), make(np.full_like(out, inside)), 3, 1, good) == ""


def test_limits_say_nothing_of_nan(program: _host.Program) -> None:
    assert message("range *=0:0", plant, program, make(zeros()), make(zeros()), 3, 1, NAN) == ""


def test_nan_and_limits_together_name_what_was_violated(program: _host.Program) -> None:
    text = "nan; min out=0; max out=5; range *=-1:6"
    for value, check in ((NAN, "nan"), (-0.5, "min out=0"), (5.5, "max out=5")):
        found = message(text, plant, program, make(zeros()), make(zeros()), 3, 1, value)
        assert found == out_error(f"{value}", check)
    assert message(text, plant, program, make(zeros()), make(zeros()), 3, 1, 4.5) == ""


@pytest.mark.parametrize("dtype", SCALAR_DTYPES)
def test_every_dtype(dtype: DType, tmp_path: Path, toolchain: Toolchain) -> None:
    loaded = _host.load(*build_plant(tmp_path, toolchain, f"plant_{dtype}", dtype))
    type_ = np.dtype(dtype).type
    zero = np.zeros((EDGES, LEVELS), dtype)

    def found(check: str, value: Any) -> str:
        text = message(check, plant, loaded, make(zero), make(zero.copy()), 3, 1, value)
        return text.partition(" is ")[2].partition(" at ")[0]

    long = np.zeros((1, 300), dtype)
    for place in (0, 1, 7, 8, 63, 64, 127, 200, 255, 256, 299):
        for text in ("max *=0", "nan; max *=0"):
            error = message(text, plant, loaded, make(zero), make(long), 0, place, type_(1))
            assert f" at Edge 0, K {place} after the call; check 'max *=0' refuses 1 of 300 elements" in error
            long[0, place] = 0
    if dtype.startswith("complex"):
        assert found("nan; range *=-1:1", type_(1 - 1j)) == ""
        assert found("max *=0", type_(0.1j)) == "(0+0.1j)"
        assert found("min *=0", type_(2 - 0.1j)) == "(2-0.1j)"
        assert found("nan", type_(complex(1, NAN))) == "(1+nanj)"
        assert found("nan", type_(complex(NAN, -math.inf))) == "(nan-infj)"
        assert found("range *=-1:1", type_(complex(NAN, 0.5))) == ""
        assert found("finite", type_(complex(0.5, math.inf))) == "(0.5+infj)"
        return
    if dtype == "bool":
        assert found("max *=0", type_(1)) == "True"
        assert found("nan; max *=0.5", type_(0)) == ""
        return
    assert found("nan; range *=0:2", type_(2)) == ""
    assert found("nan; range *=0:2", type_(3)) == "3"
    assert found("range *=-0.5:2.5", type_(2)) == ""
    assert found("range *=-0.5:2.5", type_(3)) == "3"
    assert found("min *=300", type_(0)) == "0"
    assert found("max *=-300", type_(0)) == "0"
    if dtype.startswith("float"):
        assert found("nan", type_(NAN)) == "nan"
        assert found("finite", type_(NAN)) == "nan"
        assert found("finite", type_(-math.inf)) == "-inf"
        assert found("finite", np.finfo(type_).max) == ""
        assert found("max *=0.1", np.nextafter(type_(0.1), type_(1))).startswith("0.100000")
        return
    limits = np.iinfo(dtype)
    assert found("finite", limits.max) == ""
    assert found("nan; range *=-1e30:1e30", limits.max) == ""
    assert found(f"max *={limits.max - 1 if limits.bits < 64 else 1}", limits.max) == str(limits.max)
    assert found("range *=-0.5:0.5", limits.min) == (str(limits.min) if limits.min else "")
    if limits.bits == 64:  # as a double, it is the limit
        assert found(f"max *={2**53}", type_(2**53 + 1)) == str(2**53 + 1)
        assert found(f"max *={2**53}", type_(2**53)) == ""


def test_float32_is_compared_with_the_limit_itself(tmp_path: Path, toolchain: Toolchain) -> None:
    """0.1 is less than its neighbor in 32 bits."""
    loaded = _host.load(*build_plant(tmp_path, toolchain, "narrow", "float32"))
    zero = np.zeros((EDGES, LEVELS), np.float32)
    arguments = (loaded, make(zero), make(zero), 3, 1, np.float32(0.1))
    assert " is 0.1 at " in message("max out=0.1", plant, *arguments)
    assert message("max out=0.10000000149011612", plant, *arguments) == ""


# --- Layouts ----------------------------------------------------------------------------------------------------------


def layouts() -> dict[str, NDArray[np.float64]]:
    """Arrays of zeros, in memory that is NaN wherever they are not."""

    def memory(*shape: int) -> NDArray[np.float64]:
        return np.full(shape, NAN)

    made = {
        "rows": memory(EDGES, LEVELS),
        "columns": memory(LEVELS, EDGES).T,
        "padded": memory(EDGES, LEVELS + 3)[:, :LEVELS],
        "padded columns": memory(LEVELS, EDGES + 1)[:, 1:].T,
        "every second": memory(2 * EDGES, 3 * LEVELS)[::2, 1::3],
        "reversed": memory(EDGES, LEVELS)[::-1, ::-1],
        "one reversed": memory(LEVELS, EDGES + 2)[::-1, :EDGES].T,
        "of three axes": memory(EDGES, 5, LEVELS)[:, 3],
    }
    for one in made.values():
        one[...] = 0
    return made


@pytest.mark.parametrize("layout", layouts())
def test_any_layout(program: _host.Program, layout: str) -> None:
    out = layouts()[layout]
    assert message("nan; min out=0", plant, program, make(zeros()), make(out), 0, 0, 0.0) == ""
    for edge, level in np.ndindex(EDGES, LEVELS):
        found = message("nan", plant, program, make(zeros()), make(out), edge, level, NAN)
        assert f" at Edge {edge}, K {level} after the call; check 'nan' refuses 1 of {ALL} elements" in found
        out[edge, level] = 0


def test_an_axis_without_a_step_and_an_empty_field(program: _host.Program) -> None:
    spread = np.lib.stride_tricks.as_strided(np.array([0.0, 7.0]), (EDGES, LEVELS), (0, 0))
    assert message("max *=6", plant, program, make(spread), make(zeros())) == ""
    row = np.broadcast_to(np.array([0.0, 7, 0, 7]), (EDGES, LEVELS))
    found = message("max *=6", plant, program, make(row), make(zeros()))
    assert found == (
        "Argument 'x' of program 'plant' is 7 at Edge 0, K 1 before the call; "
        f"check 'max *=6' refuses {2 * EDGES} of {ALL} elements."
    )
    nothing = np.zeros((0, LEVELS))
    assert message("nan; max *=-6; trace 0,0", plant, program, make(nothing), make(nothing)) == ""


@pytest.mark.parametrize("count", [*range(1, 36), 1000])
def test_the_first_and_the_last_of_any_number_of_elements(program: _host.Program, count: int) -> None:
    """In vectors, and in what remains behind them."""
    out = np.zeros((1, count))
    for text, value in (("nan", NAN), ("max out=1", 2.0), ("min out=-1", -2.0)):
        for place in (0, count - 1):
            found = message(text, plant, program, make(np.zeros((1, 1))), make(out), 0, place, value)
            assert f" at Edge 0, K {place} after the call; check '{text}' refuses 1 of {count} elements" in found
            out[0, place] = 0


def random_layout(random: np.random.Generator, rank: int) -> NDArray[np.float64]:
    """An array of zeros with axes in any order, in steps, in both directions, in memory that is NaN elsewhere."""
    shape = random.integers(1, 5, rank)
    shape[random.integers(rank)] = random.integers(1, 50)
    steps = random.integers(1, 3, rank) if random.random() < 0.5 else np.ones(rank, int)
    memory = np.full(shape * steps + random.integers(0, 2, rank), NAN)
    slices = tuple(slice(0, size * step, step) for size, step in zip(shape, steps, strict=True))
    found = memory[slices].transpose(random.permutation(rank))
    found = found[tuple(slice(None, None, random.choice((-1, 1))) for _ in range(rank))]
    found[...] = 0
    return found


@pytest.mark.parametrize("rank", range(1, 7))
def test_random_layouts_of_every_rank(rank: int, tmp_path: Path, toolchain: Toolchain) -> None:
    """What numpy finds in the same array."""
    dims = [Dimension(f"D{axis}", "horizontal") for axis in range(rank)]
    described = sdfg(array("a", *[Axis()] * rank, access="readwrite"), name=f"rank_{rank}")
    stub = build_stub(described, signature(described.name, a=field(*dims)), tmp_path, toolchain)
    loaded = _host.load(stub, build_recording_library(described, tmp_path))
    random = np.random.default_rng(rank)
    for _ in range(60):
        values = random_layout(random, rank)
        origin = random.integers(-9, 9, rank)
        ranges = {f"D{axis}": (int(origin[axis]), int(origin[axis]) + values.shape[axis]) for axis in range(rank)}
        argument = Field(domain(ranges), values)
        assert message("nan; range a=-1:1", lambda: loaded(argument, offset_provider={})) == ""  # noqa: B023
        flat = random.integers(values.size, size=random.integers(1, 4))
        values[np.unravel_index(flat, values.shape)] = random.choice((NAN, 2, -2))
        bad = np.argwhere(~((values >= -1) & (values <= 1)))
        place = ", ".join(f"D{axis} {bad[0][axis] + origin[axis]}" for axis in range(rank))
        error = message("nan; range a=-1:1", lambda: loaded(argument, offset_provider={}))  # noqa: B023
        assert f" at {place} before and after the call; check '" in error
        assert error.endswith(f"refuses {len(bad)} of {values.size} elements.")


def test_the_first_index_is_counted_from_the_origin(program: _host.Program) -> None:
    out = zeros()
    out[5, 0] = out[2, 3] = out[3, 1] = NAN
    found = message("nan", plant, program, make(zeros(), (9, 9)), make(out, (-2, 100)))
    assert found == (
        "Argument 'out' of program 'plant' is nan at Edge 0, K 103 before and after the call; "
        f"check 'nan' refuses 3 of {ALL} elements."
    )


def test_a_field_that_a_program_knows_is_checked_with_its_origin(program: _host.Program) -> None:
    """The SDFG does not take the origin, so the program would not look at it again."""
    memory, x = zeros(), make(zeros())
    for origin in ((0, 0), (7, 8)):
        out = make(memory, origin)
        plant(program, x, out)
        found = message("nan", plant, program, x, out, 3, 1, NAN)
        assert f" at Edge {origin[0] + 3}, K {origin[1] + 1} " in found
        memory[...] = 0


# --- Who is to blame --------------------------------------------------------------------------------------------------


def test_a_field_that_is_only_read_is_refused_before_the_call(program: _host.Program) -> None:
    x, out = zeros(), zeros()
    x[1, 2] = x[4, 3] = NAN
    found = message("nan", plant, program, make(x), make(out), 3, 1, 5.0)
    assert found == (
        "Argument 'x' of program 'plant' is nan at Edge 1, K 2 before the call; "
        f"check 'nan' refuses 2 of {ALL} elements."
    )
    assert out[3, 1] == 0  # nothing was called


def test_a_field_that_is_written_may_have_any_value_before(program: _host.Program) -> None:
    out = zeros()
    out[3, 1] = NAN
    assert message("nan", plant, program, make(zeros()), make(out), 3, 1, 5.0) == ""


def test_what_was_there_before_is_told_from_what_was_written(program: _host.Program) -> None:
    out = zeros()
    out[0, 0] = out[5, 3] = NAN
    found = message("nan", plant, program, make(zeros()), make(out), 3, 1, NAN)
    assert found == out_error("nan", "nan", count=3, old=2)
    found = message("nan", plant, program, make(zeros()), make(out), 3, 1, 0.0)
    assert found == (
        "Argument 'out' of program 'plant' is nan at Edge 0, K 0 before and after the call; "
        f"check 'nan' refuses 2 of {ALL} elements."
    )


def test_what_was_there_is_compared_in_any_layout(program: _host.Program) -> None:
    for out in layouts().values():
        out[0, 3] = out[5, 0] = NAN
        found = message("nan", plant, program, make(zeros()), make(out), 3, 1, NAN)
        assert found == out_error("nan", "nan", count=3, old=2)


def test_calls_before_and_after_the_context_are_not_checked(program: _host.Program) -> None:
    arguments = (program, make(zeros()), make(zeros()), 3, 1, NAN)
    plant(*arguments)
    assert message("nan", plant, *arguments) != ""
    plant(*arguments)


def test_a_program_that_is_loaded_meanwhile_is_checked(libraries: tuple[Path, Path]) -> None:
    with gtstub.checks("nan"):
        loaded = _host.load(*libraries)
        with pytest.raises(RuntimeError, match="is nan at Edge 3, K 1"):
            plant(loaded, make(zeros()), make(zeros()), 3, 1, NAN)


def test_only_fields_are_checked(bound: Bound, stderr: Stderr) -> None:
    """Not scalars, zero-dimensional fields and tables."""
    narrow = (np.full(3, -9, np.float32), (3, np.array(NAN)))
    refusal = r"^Argument 'out' of program 'host' is 0 at .* before and after the call"
    with gtstub.checks("nan; max [!v]*=-5"), pytest.raises(RuntimeError, match=refusal):
        bound.program(**{**good_arguments(), "x": narrow})
    with gtstub.checks("max n=-5; max E2V=-5; max x[[]1][[]1]=-5"):
        bound.program(**good_arguments())
    assert stderr.lines() == [
        f"Check 'max {name}=-5' has selected no field of a program that was called."
        for name in ("n", "E2V", "x[[]1][[]1]")
    ]


def test_a_name_with_brackets_selects_itself(bound: Bound) -> None:
    with gtstub.checks("min x[0]=1"), pytest.raises(RuntimeError, match=r"^Argument 'x\[0\]' of program 'host' is 0"):
        bound.program(**good_arguments())


# --- warn, only, trace, progress --------------------------------------------------------------------------------------


def test_warn_says_each_thing_once_and_goes_on(program: _host.Program, stderr: Stderr) -> None:
    out = zeros()
    with gtstub.checks("warn; nan; min out=0"):
        plant(program, make(zeros()), make(out), 3, 1, NAN)
        assert stderr.lines() == [out_error("nan", "nan")]
        plant(program, make(zeros()), make(out), 3, 2, NAN)
        assert stderr.lines() == []
        plant(program, make(zeros()), make(out), 3, 1, -2.0)
        assert stderr.lines() == [out_error("-2", "min out=0")]
        x = zeros()
        x[3, 1] = NAN
        plant(program, make(x), make(out))
        plant(program, make(x), make(out))
        assert stderr.lines() == [
            "Argument 'x' of program 'plant' is nan at Edge 3, K 1 before the call; "
            f"check 'nan' refuses 1 of {ALL} elements."
        ]


def test_only_selects_programs(program: _host.Program, bound: Bound, stderr: Stderr) -> None:
    with gtstub.checks("max *=-1; only h[aeiou]st; only other*"):
        plant(program, make(zeros()), make(zeros()))
        with pytest.raises(RuntimeError, match="of program 'host'"):
            bound.program(**good_arguments())
    assert stderr.lines() == ["Check 'only other*' has selected no program that was called."]
    with gtstub.checks("max nothing=-1; only other*"):
        plant(program, make(zeros()), make(zeros()))
    assert stderr.lines() == ["Check 'only other*' has selected no program that was called."]


def test_a_pattern_that_selects_nothing_is_said_at_the_end(program: _host.Program, stderr: Stderr) -> None:
    with gtstub.checks("min q*=0; max out=1; trace 1,2,3; nan; fv3"):
        pass
    assert stderr.lines() == []  # no program was called
    with gtstub.checks("min q*=0; max out=1; trace 1,2,3; nan; fv3"):
        plant(program, make(zeros()), make(zeros()))
        plant(program, make(zeros()), make(zeros()))
        assert stderr.lines() == []
    assert stderr.lines() == [
        "Check 'min q*=0' has selected no field of a program that was called.",
        "Check 'trace 1,2,3' has selected no field of a program that was called.",
    ]


def test_trace_prints_before_and_after(program: _host.Program, stderr: Stderr) -> None:
    x, out = zeros(), zeros()
    x[3, 1] = 0.1
    with gtstub.checks("trace 4,1"):
        plant(program, make(x, (1, 0)), make(out, (1, 0)), 3, 1, NAN)
        plant(program, make(x, (1, 0)), make(out, (0, 0)))
    assert stderr.lines() == [
        "Call 1 of program 'plant', before: argument 'x' is 0.1 at Edge 4, K 1.",
        "Call 1 of program 'plant', before: argument 'out' is 0 at Edge 4, K 1.",
        "Call 1 of program 'plant', after: argument 'x' is 0.1 at Edge 4, K 1.",
        "Call 1 of program 'plant', after: argument 'out' is nan at Edge 4, K 1.",
        "Call 2 of program 'plant', before: argument 'x' is 0.1 at Edge 4, K 1.",
        "Call 2 of program 'plant', before: argument 'out' is 0 at Edge 4, K 1.",
        "Call 2 of program 'plant', after: argument 'x' is 0.1 at Edge 4, K 1.",
        "Call 2 of program 'plant', after: argument 'out' is 0 at Edge 4, K 1.",
    ]


def test_trace_skips_other_ranks_and_says_once_that_an_index_is_outside(bound: Bound, stderr: Stderr) -> None:
    with gtstub.checks("trace 2; trace 3 , -1"):
        bound.program(**good_arguments())
        bound.program(**good_arguments())
    calls = [f"Call {number} of program 'host', {when}" for number in (1, 2) for when in ("before", "after")]
    lines = [f"{call}: argument 'x[0]' is 0 at K 2." for call in calls]
    outside = [
        f"Argument '{name}' of program 'host' has no element at Edge 3, K -1 for check 'trace 3 , -1'."
        for name in ("vn", "out")
    ]
    assert stderr.lines() == [lines[0], *outside, *lines[1:]]


def test_progress(program: _host.Program, stderr: Stderr) -> None:
    with gtstub.checks("progress"):
        plant(program, make(zeros()), make(zeros()))
        plant(program, make(zeros()), make(zeros()))
    assert stderr.lines() == [
        f"Call {number} of program 'plant' {what}." for number in (1, 2) for what in ("begins", "has ended")
    ]


def test_progress_of_calls_that_fail(program: _host.Program, stderr: Stderr) -> None:
    x = zeros()
    x[0, 0] = NAN
    with gtstub.checks("progress; nan"):
        for source, value in ((x, 0.0), (zeros(), NAN)):
            with pytest.raises(RuntimeError, match="is nan at"):
                plant(program, make(source), make(zeros()), 3, 1, value)
    assert stderr.lines() == [
        f"Call {call} of program 'plant' {what}."
        for call, what in ((1, "begins"), (1, "was refused"), (2, "begins"), (2, "has ended"))
    ]


SCRIPT = """
import sys
import numpy as np
import gtstub
from gtstub import _host
from tests.support.planting import *

program = _host.load(*sys.argv[1:3])
x, out = make(np.zeros((EDGES, LEVELS))), make(np.zeros((EDGES, LEVELS)))
"""


def run(text: str, libraries: tuple[Path, Path], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT + text, *libraries],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_progress_names_the_program_of_a_crash(libraries: tuple[Path, Path]) -> None:
    done = run("plant(program, x, out)\nplant(program, x, out, -2)\n", libraries, GTSTUB_CHECK="progress")
    assert done.returncode == -signal.SIGKILL
    assert done.stderr.splitlines() == [
        "Call 1 of program 'plant' begins.",
        "Call 1 of program 'plant' has ended.",
        "Call 2 of program 'plant' begins.",
    ]


# --- Texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", " ; ;", "nan;", " nan ; min  o* = 1 ;", "only a*", "nan;nan", "bounds", "bounds  start", "bounds end"]
)
def test_good_texts(text: str) -> None:
    with gtstub.checks(text):
        pass


UNKNOWN = (
    "Check '{}' is not known; a check begins with 'finite', 'nan', 'min', 'max', 'range', 'trace', 'progress', "
    "'bounds', 'only', 'warn' or 'fv3'."
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nan; minimum q=0", UNKNOWN.format("minimum q=0")),
        ("NaN", UNKNOWN.format("NaN")),
        ("1", UNKNOWN.format("1")),
        ("finite vn", "Check 'finite vn' must have the form 'finite'."),
        ("nan vn", "Check 'nan vn' must have the form 'nan'."),
        ("warn 3", "Check 'warn 3' must have the form 'warn'."),
        ("progress all", "Check 'progress all' must have the form 'progress'."),
        ("fv3 nan", "Check 'fv3 nan' must have the form 'fv3'."),
        ("bounds vn", "Check 'bounds vn' must have the form 'bounds [start|end]'."),
        ("only", "Check 'only' must have the form 'only PATTERN'."),
        ("nan ;  min q* 0 ", "Check 'min q* 0' must have the form 'min PATTERN=NUMBER'."),
        ("min =0", "Check 'min =0' must have the form 'min PATTERN=NUMBER'."),
        ("max", "Check 'max' must have the form 'max PATTERN=NUMBER'."),
        ("range u=4", "Check 'range u=4' must have the form 'range PATTERN=NUMBER:NUMBER'."),
        ("range u", "Check 'range u' must have the form 'range PATTERN=NUMBER:NUMBER'."),
        ("min q*=", "The limit of check 'min q*=' must be a number, not ''."),
        ("min q*=O", "The limit of check 'min q*=O' must be a number, not 'O'."),
        ("max q*=1,5", "The limit of check 'max q*=1,5' must be a number, not '1,5'."),
        ("max q*=nan", "The limit of check 'max q*=nan' must be a number, not 'nan'."),
        ("range u=-280:28O", "The limit of check 'range u=-280:28O' must be a number, not '28O'."),
        ("range u=:5", "The limit of check 'range u=:5' must be a number, not ''."),
        ("range u=280:-280", "The lower limit of check 'range u=280:-280' is above the upper one."),
        ("trace", "Check 'trace' must have the form 'trace INDEX,INDEX,...'."),
        ("trace 1,k", "Check 'trace 1,k' must have the form 'trace INDEX,INDEX,...'."),
        ("trace 1 2", "Check 'trace 1 2' must have the form 'trace INDEX,INDEX,...'."),
        ("trace 1,", "Check 'trace 1,' must have the form 'trace INDEX,INDEX,...'."),
        ("trace 1,2,3,4,5,6,7", "Check 'trace 1,2,3,4,5,6,7' has more than 6 indices."),
    ],
)
def test_texts_that_are_wrong(program: _host.Program, text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"), gtstub.checks(text):
        pass
    plant(program, make(zeros()), make(zeros()), 3, 1, NAN)  # nothing is checked


def test_arguments_of_other_types() -> None:
    with pytest.raises(TypeError, match=r"^Argument 'text' of 'begin_checks' must be a str, not 'int'\.$"):
        _host.begin_checks(1)  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"^Argument 'checks' of 'end_checks' must be a result of 'begin_checks', not 'int'\.$"
    ):
        _host.end_checks(1)
    running = _host.begin_checks("")
    _host.end_checks(running)
    with pytest.raises(ValueError, match=r"^The checks have already ended\.$"):
        _host.end_checks(running)


FV3 = ("qvapor", "qliquid", "qrain", "qice", "qsnow", "qgraupel", "qo3mr", "qsgs_tke", "qcld")


@pytest.mark.parametrize(("name", "bad", "good"), [("delp", -5e-324, 0.0), *((name, -2e-8, -1e-8) for name in FV3)])
def test_the_preset_fv3(name: str, bad: float, good: float, tmp_path: Path, toolchain: Toolchain) -> None:
    """NDSL looks for these names anywhere in the name of a field."""
    argument = f"my_{name}_old"
    sdfg_signature = sdfg(array(argument, Axis(), Axis(), access="readwrite"), name="tracers")
    stub = build_stub(sdfg_signature, signature("tracers", **{argument: field(EDGE, K)}), tmp_path, toolchain)
    loaded = _host.load(stub, build_recording_library(sdfg_signature, tmp_path))
    values = np.full((EDGES, LEVELS), good)
    assert message("fv3", lambda: loaded(make(values), offset_provider={})) == ""
    values[3, 1] = bad
    limit = "0" if name == "delp" else "-1e-8"
    assert message(" fv3 ", lambda: loaded(make(values), offset_provider={})) == (
        f"Argument '{argument}' of program 'tracers' is {bad:.15g} at Edge 3, K 1 before and after the call; "
        f"check 'min *{name}*={limit}' refuses 1 of {ALL} elements."
    )


# --- Contexts ---------------------------------------------------------------------------------------------------------


def test_all_nested_checks_count(program: _host.Program, stderr: Stderr) -> None:
    def error(value: float) -> str:
        try:
            plant(program, make(zeros()), make(zeros()), 3, 1, value)
        except RuntimeError as caught:
            return str(caught)
        return ""

    with gtstub.checks("nan"):
        with gtstub.checks("min out=0"):
            assert error(NAN) == out_error("nan", "nan")
            assert error(-1) == out_error("-1", "min out=0")
        assert error(NAN) == out_error("nan", "nan")
        assert error(-1) == ""
    assert error(NAN) == ""


def test_checks_may_end_in_any_order(program: _host.Program) -> None:
    outer, inner = _host.begin_checks("nan"), _host.begin_checks("min out=0")
    plant(program, make(zeros()), make(zeros()))
    _host.end_checks(outer)
    plant(program, make(zeros()), make(zeros()), 3, 1, NAN)
    with pytest.raises(RuntimeError, match="is -1 at"):
        plant(program, make(zeros()), make(zeros()), 3, 1, -1)
    _host.end_checks(inner)
    plant(program, make(zeros()), make(zeros()), 3, 1, -1)


def test_checks_and_profiles_do_not_disturb_each_other(program: _host.Program) -> None:
    plant(program, make(zeros()), make(zeros()))
    with gtstub.profile() as report, gtstub.checks("nan"):
        plant(program, make(zeros()), make(zeros()))
        with pytest.raises(RuntimeError, match="is nan at"):
            plant(program, make(zeros()), make(zeros()), 3, 1, NAN)
        x = zeros()
        x[0, 0] = NAN
        with pytest.raises(RuntimeError, match="before the call"):
            plant(program, make(x), make(zeros()))
    assert [item.calls for item in report.programs] == [2]  # the last one did not run


def test_all_threads_are_checked(libraries: tuple[Path, Path]) -> None:
    """While checks of other threads begin and end."""
    shared = _host.load(*libraries)
    failures = []
    found = [0] * 3
    is_over = threading.Event()

    def call(number: int) -> None:
        own = _host.load(*libraries)
        x, out = make(zeros()), make(zeros())
        for i in range(300):
            program = (own, shared)[i % 2]
            try:
                plant(program, x, make(zeros()) if program is shared else out, 3, 1, NAN)
            except RuntimeError:
                found[number] += 1
            else:
                failures.append(i)

    def begin_and_end() -> None:
        while not is_over.is_set():
            with gtstub.checks("min out=0; trace 0,0,0"):
                pass

    with gtstub.checks("nan"):
        threads = [threading.Thread(target=call, args=(number,)) for number in range(3)]
        other = threading.Thread(target=begin_and_end)
        for thread in (*threads, other):
            thread.start()
        for thread in threads:
            thread.join()
        is_over.set()
        other.join()
    assert (found, failures) == ([300] * 3, [])


WITHIN = """
import sys
from gtstub import _host
import gtstub
from tests.support.hosting import good_arguments

program = _host.load(*sys.argv[1:3])
outer = gtstub.checks("nan")
outer.__enter__()


class Ending:
    def __int__(self):
        return 7

    def __index__(self):
        try:
            outer.__exit__(None, None, None)
        except RuntimeError as error:
            print(error)
        return 7


program(**{**good_arguments(), "n": Ending()})
"""


def test_checks_do_not_end_within_a_call(bound: Bound) -> None:
    printed = run_script(WITHIN, bound.stub, bound.library)
    assert printed.splitlines()[:1] == ["Checks cannot end within a call of program 'host'."]


# --- GTSTUB_CHECK -----------------------------------------------------------------------------------------------------

FAILS = """
import os
try:
    plant(program, x, out, 3, 1, float("nan"))
    print("no error")
except RuntimeError as error:
    print(error)
"""


def test_the_environment(libraries: tuple[Path, Path]) -> None:
    done = run(FAILS, libraries, GTSTUB_CHECK="nan; min q*=0")
    assert done.stdout == out_error("nan", "nan") + "\n"
    assert done.stderr == "Check 'min q*=0' has selected no field of a program that was called.\n"


@pytest.mark.parametrize("text", ["", "0"])
def test_values_of_the_environment_that_are_no_checks(libraries: tuple[Path, Path], text: str) -> None:
    done = run(FAILS, libraries, GTSTUB_CHECK=text)
    assert (done.stdout, done.stderr) == ("no error\n", "")


def test_a_wrong_text_in_the_environment(libraries: tuple[Path, Path]) -> None:
    done = run(FAILS, libraries, GTSTUB_CHECK="nan; max q")
    assert done.stdout == "no error\n"
    assert done.stderr == "GTSTUB_CHECK is ignored: Check 'max q' must have the form 'max PATTERN=NUMBER'.\n"


def test_a_forked_child_is_checked(libraries: tuple[Path, Path]) -> None:
    text = """
import os
plant(program, x, out)
if os.fork() == 0:
    program = _host.load(*sys.argv[1:3])
    with gtstub.checks("max out=1"):
        try:
            plant(program, x, out, 3, 1, float("nan"))
        except RuntimeError as error:
            print(error, flush=True)
    os._exit(0)
os.wait()
"""
    done = run(text, libraries, GTSTUB_CHECK="nan")
    assert (done.stdout, done.stderr) == (out_error("nan", "nan") + "\n", "")
