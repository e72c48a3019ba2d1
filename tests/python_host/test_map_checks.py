"""Debug checks of what the maps of an SDFG write, with a library that says what an SDFG of DaCe would say."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.install import INCLUDE
from tests.support.hosting import run_script
from tests.support.planting import EDGES, LEVELS, make, plant, signatures
from tests.support.sdfg_libraries import build_library, c_compiler
from tests.support.stubs import build_stub

pytestmark = pytest.mark.sanitizer

NAN = math.nan

SOURCE = """
#include <pthread.h>
#include "gtstub/gtstub.h"
#include "embedded/map_output.h"

#pragma GCC visibility push(default)
extern void *__dace_init_plant(void);
extern int __dace_exit_plant(void *handle);
extern void __program_plant(void *handle, double *out, double *x, int32_t edge_stride, int32_t level_stride,
                            int32_t edge, int32_t level, double value);
extern gts_after_map *__gtstub_after_map_plant;
extern bool is_whole;
#pragma GCC visibility pop

gts_after_map *__gtstub_after_map_plant;
bool is_whole = true;

void *__dace_init_plant(void)
{
    static int handle;
    return &handle;
}

int __dace_exit_plant(void *handle)
{
    (void)handle;
    return 0;
}

static double tmp[3][4];

static void *first(void *handle)
{
    if (__gtstub_after_map_plant != NULL)
        __gtstub_after_map_plant(handle, &(gts_map_output){"map 'first' (model.py:3)", "tmp", tmp, GTS_FLOAT64, 2, true,
                                                           false, is_whole, {{5, 2, 3, 4}, {0, 1, 4, 1}}});
    return NULL;
}

/* The first map writes every second row of an array, and says so in another thread. The second one writes the field. */
void __program_plant(void *handle, double *out, double *x, int32_t edge_stride, int32_t level_stride, int32_t edge,
                     int32_t level, double value)
{
    (void)x;
    pthread_t thread;
    tmp[1][2] = level < 0 ? value : 0;
    if (pthread_create(&thread, NULL, first, handle) == 0)
        (void)pthread_join(thread, NULL);
    if (edge >= 0)
        out[edge * edge_stride + (level < 0 ? 0 : level) * level_stride] = value;
    if (__gtstub_after_map_plant != NULL)
        __gtstub_after_map_plant(handle, &(gts_map_output){"map 'second'", "__out", out + edge_stride, GTS_FLOAT64, 2,
                                                           true, false, true,
                                                           {{1, 1, 2, edge_stride}, {0, 1, 4, level_stride}}});
}
"""

ONLY_TMP = {"edge": -1, "level": -1}
BOTH = {"edge": 3, "level": -1}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("maps")
    library = build_library(SOURCE, folder / "libplant.so", [c_compiler(), f"-I{INCLUDE}"])
    return build_stub(*signatures("plant", "float64"), folder, toolchain), library


@pytest.fixture
def program(libraries: tuple[Path, Path]) -> _host.Program:
    return _host.load(*libraries)


def zeros() -> NDArray[np.float64]:
    return np.zeros((EDGES, LEVELS))


def call(program: _host.Program, out: NDArray[np.float64], edge: int, level: int, value: float = NAN) -> None:
    plant(program, make(zeros()), make(out), edge, level, value)


def message(text: str, program: _host.Program, edge: int, level: int, value: float = NAN, out: object = None) -> str:
    """The error of a checked call; empty if there is none."""
    with gtstub.checks(text):
        try:
            call(program, zeros() if out is None else np.asarray(out), edge, level, value)
        except RuntimeError as error:
            return str(error)
    return ""


IN_TMP = "Array 'tmp' of program 'plant' is nan at [7, 2] after map 'first' (model.py:3)"
IN_OUT = "Argument 'out' of program 'plant' is nan at Edge 3, K 0 after map 'second'"
OF_TMP = "check 'nan' refuses 1 of 12 elements."


def test_the_first_map_that_writes_a_refused_value_is_named(program: _host.Program) -> None:
    assert message("nan", program, **BOTH) == f"{IN_TMP}; {OF_TMP}"
    assert (
        message("nan", program, 3, 0)
        == f"{IN_OUT}; check 'nan' refuses 1 of 24 elements, 0 of them also before the call."
    )
    assert message("nan", program, 3, 0, 1.0) == ""


def test_a_map_is_checked_only_while_checks_run(program: _host.Program) -> None:
    out = zeros()
    call(program, out, **BOTH)
    assert np.isnan(out[3, 0])


@pytest.mark.parametrize(
    ("check", "value", "is_refused"),
    [("max tmp=1", 2.0, True), ("max tmp=2", 2.0, False), ("min t*=0", -1.0, True), ("max out=1", 2.0, False)],
)
def test_limits_of_arrays_that_only_the_sdfg_has(
    program: _host.Program, check: str, value: float, is_refused: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    found = message(check, program, **ONLY_TMP, value=value)
    limit = f"Array 'tmp' of program 'plant' is {value:g} at [7, 2] after map 'first' (model.py:3); check '{check}'"
    assert found == (f"{limit} refuses 1 of 12 elements." if is_refused else "")
    assert capfd.readouterr().err == ""


def test_an_array_that_a_map_need_not_have_written_is_not_checked(
    program: _host.Program, libraries: tuple[Path, Path]
) -> None:
    is_whole = ctypes.c_bool.in_dll(ctypes.CDLL(str(libraries[1])), "is_whole")
    is_whole.value = False
    try:
        assert message("nan", program, **ONLY_TMP) == ""
    finally:
        is_whole.value = True
    assert message("nan", program, **ONLY_TMP) == f"{IN_TMP}; {OF_TMP}"


def test_what_was_there_before_the_call_is_not_blamed_on_a_map(program: _host.Program) -> None:
    out = zeros()
    out[0, 0] = NAN
    assert message("nan", program, -1, 0, out=out) == (
        "Argument 'out' of program 'plant' is nan at Edge 0, K 0 before and after the call; "
        "check 'nan' refuses 1 of 24 elements."
    )
    assert message("nan", program, 3, 0, out=out) == (
        f"{IN_OUT}; check 'nan' refuses 2 of 24 elements, 1 of them also before the call."
    )


def test_warnings_come_once(program: _host.Program, capfd: pytest.CaptureFixture[str]) -> None:
    with gtstub.checks("nan; warn"):
        for _ in range(2):
            call(program, zeros(), **BOTH)
    refused = "check 'nan' refuses 1 of 24 elements, 0 of them also before the call."
    assert capfd.readouterr().err.splitlines() == [f"{IN_TMP}; {OF_TMP}", f"{IN_OUT}; {refused}"]


def test_progress_and_traces(program: _host.Program, capfd: pytest.CaptureFixture[str]) -> None:
    with gtstub.checks("progress; trace 3,0"):
        call(program, zeros(), 3, 0, 5.0)
    start = "Call 1 of program 'plant'"
    assert capfd.readouterr().err.splitlines() == [
        f"{start} begins.",
        f"{start}, before: argument 'x' is 0 at Edge 3, K 0.",
        f"{start}, before: argument 'out' is 0 at Edge 3, K 0.",
        f"{start} has run map 'first' (model.py:3).",
        f"{start} has run map 'second'.",
        f"{start}, after map 'second': argument 'out' is 5 at Edge 3, K 0.",
        f"{start} has ended.",
        f"{start}, after: argument 'x' is 0 at Edge 3, K 0.",
        f"{start}, after: argument 'out' is 5 at Edge 3, K 0.",
    ]


SCRIPT = """
import sys
import numpy as np
from gtstub import _host
from tests.support.planting import make, plant

try:
    plant(_host.load(*sys.argv[1:]), make(np.zeros((6, 4))), make(np.zeros((6, 4))), 3, -1, np.nan)
    print("nothing")
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "nothing"),
        ({"GTSTUB_BUILD_CHECKS": "0"}, "nothing"),
        ({"GTSTUB_BUILD_CHECKS": "1"}, f"{IN_TMP}; {OF_TMP}".replace("'nan'", "'finite'")),
        ({"GTSTUB_BUILD_CHECKS": "1", "GTSTUB_CHECK": "0"}, "nothing"),
        ({"GTSTUB_BUILD_CHECKS": "1", "GTSTUB_CHECK": "max tmp=1"}, "nothing"),
    ],
)
def test_checks_after_maps_are_for_finite_numbers_unless_others_are_given(
    libraries: tuple[Path, Path], variables: dict[str, str], expected: str
) -> None:
    assert run_script(SCRIPT, *libraries, environment=variables.items()).strip() == expected
