"""Check 'bounds': which accesses outside of arguments it finds, and that calls without any have the same results."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from tests.support import reaching
from tests.support.checkout import ROOT
from tests.support.planting import make
from tests.support.reaching import BOTH, COPY, FAR, IN_THREAD, NOTHING, READ_TABLE, READ_X, WORKSPACE_BYTES, WRITE_OUT
from tests.support.reaching import WRITE_WORKSPACE as WRITE_SPACE

EDGES, LEVELS = 6, 4
ALL = EDGES * LEVELS


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> tuple[Path, Path]:
    return reaching.build_reach(tmp_path_factory.mktemp("reach"), toolchain)


class Reach:
    """A loaded program with arguments that have no access outside."""

    def __init__(self, libraries: tuple[Path, Path]) -> None:
        self.program = _host.load(*libraries)
        self.workspace = reaching.lend(self.program)
        self.table = np.arange(2 * EDGES, dtype=np.int32).reshape(EDGES, 2) % 3
        self.x: NDArray[Any] = np.random.default_rng(0).random((EDGES, LEVELS))
        self.out: NDArray[Any] = np.zeros((EDGES, LEVELS))

    def __call__(self, what: int = NOTHING, at: int = 0) -> None:
        self.program(make(self.x), make(self.out), what, at, offset_provider={"E2V": self.table})

    def message(self, check: str, what: int, at: int, calls: int = 0) -> str:
        """The error of a call after `calls` others; empty if there is none."""
        with gtstub.checks(check):
            for _ in range(calls):
                self()
            try:
                self(what, at)
            except RuntimeError as error:
                return str(error)
        return ""


@pytest.fixture
def reach(libraries: tuple[Path, Path]) -> Reach:
    return Reach(libraries)


def refused(name: str, verb: str, where: str, what: str = "the call", *, kind: str = "Argument") -> str:
    return f"{kind} '{name}' of program 'reach' is {verb} {where} by {what}; check 'bounds' refuses this."


# --- What is found ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("thread", [0, IN_THREAD])
@pytest.mark.parametrize(
    ("check", "what", "at", "expected"),
    [
        ("bounds end", READ_X, ALL, refused("x", "read", "1 element after its end")),
        ("bounds end", READ_X, ALL + 4000, refused("x", "read", "4001 elements after its end")),
        ("bounds end", WRITE_OUT, ALL + 2, refused("out", "written", "3 elements after its end")),
        ("bounds end", WRITE_OUT, -1, refused("out", "written", "1 element before its start")),
        ("bounds end", FAR, ALL + 2, refused("x", "read", "3 to 1003 elements after its end")),
        ("bounds end", READ_X, -1000, refused("x", "read", "1000 elements before its start")),
        ("bounds start", READ_X, -1, refused("x", "read", "1 element before its start")),
        ("bounds start", WRITE_OUT, -5, refused("out", "written", "5 elements before its start")),
        ("bounds start", WRITE_OUT, ALL, refused("out", "written", "1 element after its end")),
        (
            "bounds end",
            READ_TABLE,
            2 * EDGES,
            refused("E2V", "read", "1 element after its end", kind="Connectivity"),
        ),
        ("bounds start", READ_TABLE, -3, refused("E2V", "read", "3 elements before its start", kind="Connectivity")),
    ],
)
def test_accesses_outside(reach: Reach, check: str, what: int, at: int, expected: str, thread: int) -> None:
    assert reach.message(check, what + thread, at) == expected
    assert reach.message(check, NOTHING, 0) == ""


@pytest.mark.parametrize(("first", "what", "at"), [(0, READ_X, ALL), (1, READ_X, -1)])
def test_the_ends_take_turns(reach: Reach, first: int, what: int, at: int) -> None:
    """Reads in the rest of a page are not found; the end is next to a guard page in the first, third, ... call."""
    found = [bool(reach.message("bounds", what, at, calls)) for calls in range(4)]
    assert found == [calls % 2 == first for calls in range(4)]


@pytest.mark.parametrize(
    ("check", "at", "expected"),
    [
        ("bounds end", WORKSPACE_BYTES + 4, "is written 5 bytes after its end"),
        ("bounds start", -1, "is written 1 byte before its start"),
    ],
)
def test_workspaces(reach: Reach, check: str, at: int, expected: str) -> None:
    """That of a handle which the guarded call initialises, and of one that was there."""
    expected = f"The workspace of program 'reach' in 'CPU_Heap' {expected} by the call; check 'bounds' refuses this."
    for _ in range(2):
        assert reach.message(check, WRITE_SPACE, at) == expected
        reach()


def test_workspaces_keep_what_is_in_them(reach: Reach) -> None:
    """Each call adds 1 to the first byte, unless it fails."""
    with gtstub.checks("bounds"):
        reach()
        reach()
    reach()
    assert reach.workspace[0] == 3
    reach.message("bounds", READ_X, 5000)
    assert reach.workspace[0] == 3
    reach()
    with gtstub.checks("bounds"):
        reach()
    assert list(reach.workspace[:2]) == [5, 0]


def test_a_failed_call_leaves_its_arguments(reach: Reach) -> None:
    assert reach.message("bounds", WRITE_OUT, ALL) != ""
    assert not reach.out.any()
    reach()
    assert np.array_equal(reach.out, 2 * reach.x)


def test_the_first_access_is_the_one_that_is_said(reach: Reach) -> None:
    assert reach.message("bounds end", BOTH, ALL) == refused("x", "read", "1 element after its end")


def test_warnings_go_on(reach: Reach, capfd: pytest.CaptureFixture[str]) -> None:
    """Each argument is said once."""
    with gtstub.checks("bounds end; warn"):
        reach(BOTH, ALL)
        reach(BOTH, ALL + 1)
    assert capfd.readouterr().err.splitlines() == [
        refused("x", "read", "1 element after its end"),
        refused("out", "written", "1 element after its end"),
    ]
    assert np.array_equal(reach.out, 2 * reach.x)


def test_only_selects_programs(reach: Reach, capfd: pytest.CaptureFixture[str]) -> None:
    assert reach.message("bounds; only other", WRITE_OUT, 3) == ""
    assert capfd.readouterr().err == "Check 'only other' has selected no program that was called.\n"
    assert reach.out.flat[3] == 7


@pytest.fixture(scope="module")
def with_maps(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Reach:
    return Reach(reaching.build_reach(tmp_path_factory.mktemp("maps"), toolchain, says_maps=True))


@pytest.mark.parametrize(
    ("what", "at", "name", "verb", "where"),
    [
        (READ_X, ALL, "x", "read", "1 element after its end"),
        (WRITE_OUT + IN_THREAD, ALL + 1, "out", "written", "2 elements after its end"),
    ],
)
def test_with_checks_of_maps_the_map_is_said(
    with_maps: Reach, what: int, at: int, name: str, verb: str, where: str
) -> None:
    expected = refused(name, verb, where, "map 'reach' (model.py:5)")
    assert with_maps.message("bounds end", what, at) == expected
    assert with_maps.message("bounds end; max out=-1", what, at) == expected  # which is refused after the first map
    assert with_maps.message("bounds end", NOTHING, 0) == ""


def test_with_checks_of_maps_the_map_of_a_workspace_is_said(with_maps: Reach) -> None:
    found = with_maps.message("bounds end", WRITE_SPACE, WORKSPACE_BYTES)
    assert found.endswith("is written 1 byte after its end by map 'reach' (model.py:5); check 'bounds' refuses this.")


# --- Layouts ----------------------------------------------------------------------------------------------------------


def _strided() -> NDArray[Any]:
    return np.arange(12.0 * 10).reshape(12, 10)[::2, 1:9:2]


LAYOUTS = {
    "contiguous": lambda: np.random.default_rng(1).random((EDGES, LEVELS)),
    "first axis fastest": lambda: np.asfortranarray(np.random.default_rng(1).random((EDGES, LEVELS))),
    "strided": _strided,
    "backward": lambda: np.random.default_rng(1).random((EDGES, LEVELS))[::-1, ::-1],
    "broadcast": lambda: np.broadcast_to(np.arange(float(LEVELS)), (EDGES, LEVELS)),
    "a page": lambda: np.random.default_rng(1).random((128, LEVELS)),
    "many pages": lambda: np.random.default_rng(1).random((3001, 7)),
    "empty": lambda: np.zeros((0, LEVELS)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_are_the_same(reach: Reach, layout: str) -> None:
    reach.x = LAYOUTS[layout]()
    memory = np.full((2 * len(reach.x), 3 * reach.x.shape[1]), 5.0)
    before = reach.x.copy()
    for _ in range(3):
        memory[...] = 5
        reach.out = memory[1::2, 1::3]
        with gtstub.checks("bounds"):
            reach()
        assert np.array_equal(reach.x, before)
        assert np.array_equal(reach.out, 2 * before)
        reach.out[...] = 5
        assert (memory == 5).all()
    reach()
    assert np.array_equal(reach.out, 2 * before)


def test_a_write_between_elements(reach: Reach) -> None:
    memory = np.full((EDGES, 2 * LEVELS), 5.0)
    reach.out = memory[:, ::2]
    expected = refused("out", "written", "11 elements after its first one, where it has none,")
    assert reach.message("bounds", WRITE_OUT, 11) == expected
    assert (memory == 5).all()


def test_what_lies_between_elements_is_written_elsewhere(reach: Reach) -> None:
    """A loop that runs too far copies the rest of each row."""
    reach.x = np.zeros((EDGES, 2 * LEVELS))[:, :LEVELS]
    reach.out = np.zeros((EDGES, 2 * LEVELS))[:, :LEVELS]
    for at in range(LEVELS, 2 * LEVELS):
        expected = refused("out", "written", f"{at} elements after its first one, where it has none,")
        assert reach.message("bounds", COPY, at) == expected


@pytest.mark.parametrize("value", [b"\0", b"\xff", b"\x7f"])
def test_any_value_between_elements_is_found(reach: Reach, value: bytes) -> None:
    reach.x[0, 1] = np.frombuffer(value * 8)[0]
    reach.out = np.zeros((EDGES, 2 * LEVELS))[:, ::2]
    assert reach.message("bounds", COPY, 1) != ""


def test_ends_of_a_strided_array(reach: Reach) -> None:
    """It ends with its last element, not with the row that this is in."""
    reach.x = np.zeros((EDGES, 3 * LEVELS))[:, ::3]
    last = (EDGES - 1) * 3 * LEVELS + 3 * (LEVELS - 1)
    assert reach.message("bounds end", READ_X, last) == ""
    assert reach.message("bounds end", READ_X, last + 1) == refused("x", "read", "1 element after its end")
    reach.x = reach.x[::-1]
    assert reach.message("bounds start", READ_X, -last - 1 + 3 * (LEVELS - 1)) != ""


def test_the_same_array_twice(reach: Reach) -> None:
    reach.out = reach.x
    before = reach.x.copy()
    with gtstub.checks("bounds"):
        reach()
    assert np.array_equal(reach.x, 2 * before)
    assert reach.message("bounds end", WRITE_OUT, ALL) == (
        "Argument 'out' of program 'reach' is written 1 element after its end by the call, or an argument in the same "
        "memory; check 'bounds' refuses this."
    )
    assert np.array_equal(reach.x, 2 * before)


@pytest.mark.parametrize("shift", [1, 2, EDGES - 1])
def test_views_of_one_array(reach: Reach, shift: int) -> None:
    """Rows are written before later ones read them."""
    results = []
    for check in ("", "bounds"):
        memory = np.random.default_rng(2).random((2 * EDGES, LEVELS))
        reach.x, reach.out = memory[:EDGES], memory[shift : shift + EDGES]
        with gtstub.checks(check):
            reach()
        results.append(memory)
    assert np.array_equal(*results)
    assert reach.message("bounds end", READ_X, shift * LEVELS + ALL - 1) == ""  # in the memory that they share
    assert "'out'" in reach.message("bounds end", WRITE_OUT, ALL)


def test_interleaved_arrays(reach: Reach) -> None:
    memory = np.random.default_rng(2).random((EDGES, 2 * LEVELS))
    before = memory.copy()
    reach.x, reach.out = memory[:, ::2], memory[:, 1::2]
    with gtstub.checks("bounds"):
        reach()
    assert np.array_equal(memory[:, ::2], before[:, ::2])
    assert np.array_equal(memory[:, 1::2], 2 * before[:, ::2])


# --- Beginning and ending ---------------------------------------------------------------------------------------------


def test_calls_after_the_checks_use_the_arguments_again(reach: Reach) -> None:
    x, out, table = make(reach.x), make(reach.out), {"E2V": reach.table}

    def call() -> None:
        reach.program(x, out, NOTHING, 0, offset_provider=table)

    for _ in range(3):
        call()
    with gtstub.checks("bounds"):
        for _ in range(3):
            reach.x += 1
            call()
            assert np.array_equal(reach.out, 2 * reach.x)
    for _ in range(3):
        reach.x += 1
        call()
        assert np.array_equal(reach.out, 2 * reach.x)


def test_bound_calls(reach: Reach) -> None:
    table = {"E2V": reach.table}
    bound = reach.program.bind(make(reach.x), make(reach.out), NOTHING, 0, offset_provider=table)
    outside = reach.program.bind(make(reach.x), make(reach.out), READ_X, ALL, offset_provider=table)
    bound()
    with gtstub.checks("bounds end"):
        reach.x += 1
        bound()
        assert np.array_equal(reach.out, 2 * reach.x)
        with pytest.raises(RuntimeError, match="'x' of program 'reach' is read 1 element after its end"):
            outside()
    reach.x += 1
    bound()
    assert np.array_equal(reach.out, 2 * reach.x)


def test_steps(reach: Reach) -> None:
    table = {"E2V": reach.table}
    other = np.zeros((EDGES, LEVELS))
    reach.out = np.zeros((2 * EDGES, LEVELS))[:EDGES]
    with gtstub.capture(name="guarded") as step:
        reach.program(make(reach.x), make(reach.out), NOTHING, 0, offset_provider=table)
        reach.program(make(reach.out), make(other), NOTHING, 0, offset_provider=table)
        reach.program(make(other), make(reach.out), WRITE_OUT, ALL, offset_provider=table)
    reach.x += 1
    with gtstub.checks("bounds end"), pytest.raises(RuntimeError) as caught:
        step()
    assert refused("out", "written", "1 element after its end") in str(caught.value)
    assert np.array_equal(other, 4 * reach.x)
    assert np.array_equal(reach.out, 2 * reach.x)


def test_profiles(reach: Reach) -> None:
    with gtstub.profile() as report, gtstub.checks("bounds"):
        reach()
        assert reach.message("bounds", WRITE_OUT, -5000) != ""
        assert np.array_equal(reach.out, 2 * reach.x)
    assert [item.calls for item in report.programs] == [2]


def test_two_programs_at_the_same_time(libraries: tuple[Path, Path]) -> None:
    failures: list[str] = []

    def call(number: int) -> None:
        own = Reach(libraries)
        for i in range(40):
            what, at = (READ_X, ALL) if i % 4 == number else (NOTHING, 0)
            try:
                own(what, at)
            except RuntimeError as error:
                if what == NOTHING or str(error) != refused("x", "read", "1 element after its end"):
                    failures.append(str(error))
            else:
                if what != NOTHING or not np.array_equal(own.out, 2 * own.x):
                    failures.append(f"call {i}")

    with gtstub.checks("bounds end"):
        threads = [threading.Thread(target=call, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


# --- Faults that are none of these ------------------------------------------------------------------------------------

SCRIPT = """
import faulthandler, signal, sys
import gtstub
from tests.python_host.test_guard import *

reach = Reach(tuple(sys.argv[1:3]))
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


@pytest.mark.parametrize("what", ["reaching.WILD", "reaching.RAISE"])
def test_other_faults_end_the_process(libraries: tuple[Path, Path], what: str) -> None:
    done = run(f"reach({what})", libraries, GTSTUB_CHECK="bounds")
    assert (done.returncode, done.stderr) == (-signal.SIGSEGV, "")


@pytest.mark.parametrize("what", ["reaching.WILD", "reaching.RAISE"])
def test_other_faults_go_to_the_handler_that_was_there(libraries: tuple[Path, Path], what: str) -> None:
    done = run(f"faulthandler.enable()\nreach({what})", libraries, GTSTUB_CHECK="bounds")
    assert done.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in done.stderr


def test_the_handler_that_was_there_is_back_after_the_call(libraries: tuple[Path, Path]) -> None:
    text = """
caught = []
signal.signal(signal.SIGSEGV, lambda number, frame: caught.append(number))
with gtstub.checks("bounds end"):
    for what in (NOTHING, READ_X):
        try:
            reach(what, ALL)
        except RuntimeError as error:
            print(error)
        signal.raise_signal(signal.SIGSEGV)
print(len(caught))
"""
    done = run(text, libraries)
    assert (done.stdout, done.stderr) == (f"{refused('x', 'read', '1 element after its end')}\n2\n", "")


def test_the_environment(libraries: tuple[Path, Path]) -> None:
    text = """
try:
    reach(READ_X, ALL)
except RuntimeError as error:
    print(error)
"""
    done = run(text, libraries, GTSTUB_CHECK="bounds")
    assert (done.stdout, done.stderr) == (f"{refused('x', 'read', '1 element after its end')}\n", "")


def test_a_distance_far_beyond_a_page(reach: Reach) -> None:
    assert reach.message("bounds end", READ_X, 30_000_000).startswith(
        "Argument 'x' of program 'reach' is read 29999977 "
    )
