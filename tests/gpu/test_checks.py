"""Debug checks of programs for a GPU: fields are copied on the stream of the program, and errors have their program."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import gtstub
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.model import Axis
from tests.gpu.test_errors import ILLEGAL_ADDRESS, OUT_OF_MEMORY, refusal, run
from tests.gpu.test_record import START
from tests.support.checkout import ROOT
from tests.support.fake_cuda import DeviceArray, FakeCuda, build
from tests.support.graphs import Captured
from tests.support.hosting import EDGES, LEVELS, Bound, edge_field
from tests.support.signatures import EDGE, K, array, field, program, sdfg

ALL = EDGES * LEVELS
NAN = math.nan


def ones() -> NDArray[np.float64]:
    return np.ones((EDGES, LEVELS))


class Arrays:
    """Two arrays on the device. A call writes to `out` what is in `source`, and nothing without one."""

    def __init__(self, fake: FakeCuda, bound: Bound, source: NDArray[np.float64] | None = None) -> None:
        self._memory = [DeviceArray(fake, ones()), DeviceArray(fake, ones())]
        self.vn, self.out = map(edge_field, self._memory)
        if source is not None:
            self._source = DeviceArray(fake, source)
            behaviour = bound.recorder.behaviour
            behaviour.copies_to, behaviour.copies_from = self._memory[1].address, self._source.address
            behaviour.copies_bytes = source.nbytes
        self._fake = fake

    def set(self, index: int, values: NDArray[np.float64]) -> None:
        self._fake.copy(self._memory[index].address, values.ctypes.data, values.nbytes)


def with_nan(edge: int, level: int) -> NDArray[np.float64]:
    found = ones()
    found[edge, level] = NAN
    return found


def copies(fake: FakeCuda) -> list[str]:
    return [line for line in fake.log() if line.startswith("cudaMemcpyAsync")]


def test_what_a_kernel_has_written_is_checked(fake: FakeCuda, bound: Bound) -> None:
    arrays = Arrays(fake, bound, with_nan(3, 1))
    bound.program.stream = fake.stream(1)
    with gtstub.checks("nan; min *=0"):
        assert refusal(bound.program, arrays.vn, arrays.out) == (
            "RuntimeError: Argument 'out' of program 'diffusion' is nan at Edge 3, K 1 after the call; "
            f"check 'nan' refuses 1 of {ALL} elements, 0 of them also before the call."
        )
        assert refusal(bound.program, arrays.vn, arrays.out) == (
            "RuntimeError: Argument 'out' of program 'diffusion' is nan at Edge 3, K 1 before and after the call; "
            f"check 'nan' refuses 1 of {ALL} elements."
        )
    fake.clear()
    bound.program(arrays.vn, arrays.out)
    assert len(copies(fake)) == 1  # that of the SDFG


def test_a_field_that_is_only_read_is_checked_before(fake: FakeCuda, bound: Bound) -> None:
    arrays = Arrays(fake, bound)
    arrays.set(0, with_nan(0, 2))
    with gtstub.checks("nan"):
        assert refusal(bound.program, arrays.vn, arrays.out) == (
            "RuntimeError: Argument 'vn' of program 'diffusion' is nan at Edge 0, K 2 before the call; "
            f"check 'nan' refuses 1 of {ALL} elements."
        )
    assert bound.recorder.calls() == []


def test_bounds_are_not_checked(fake: FakeCuda, bound: Bound, capfd: pytest.CaptureFixture[str]) -> None:
    arrays = Arrays(fake, bound, with_nan(3, 1))
    with gtstub.checks("bounds"):
        bound.program(arrays.vn, arrays.out)
        bound.program(arrays.vn, arrays.out)
    assert len(bound.recorder.calls()) == 2
    expected = "Check 'bounds' checks nothing of program 'diffusion', because it runs on a GPU.\n"
    assert capfd.readouterr().err == expected


def test_a_layout_with_gaps_and_a_trace(fake: FakeCuda, bound: Bound, capfd: pytest.CaptureFixture[str]) -> None:
    values = np.full((EDGES, 2 * LEVELS), NAN)
    values[:, ::2] = np.arange(ALL).reshape(EDGES, LEVELS)
    device = DeviceArray(fake, values)
    arrays = Arrays(fake, bound)
    device.__cuda_array_interface__ |= {"shape": (EDGES, LEVELS), "strides": (16 * LEVELS, 16)}
    with gtstub.checks("nan; trace 3,1"):
        bound.program(edge_field(device), arrays.out)
    assert [line.partition(": ")[2] for line in capfd.readouterr().err.splitlines()] == 2 * [
        f"argument 'vn' is {3 * LEVELS + 1} at Edge 3, K 1.",
        "argument 'out' is 1 at Edge 3, K 1.",
    ]


def test_an_error_of_a_kernel_is_that_of_its_own_call(tmp_path: Path) -> None:
    script = """
        import gtstub
        diffusion, advection = programs
        with gtstub.checks("nan"):
            call(diffusion)
            fake.fail("second_kernel", 700)
            call(diffusion)
            call(advection)
    """
    assert run(script, tmp_path) == [
        "no error",
        f"RuntimeError: The GPU reported {ILLEGAL_ADDRESS} while program 'diffusion' ran.",
        f"RuntimeError: Program 'advection' cannot run: the GPU reports {ILLEGAL_ADDRESS} since a call of program"
        " 'diffusion'. Start a new process.",
    ]


def test_calls_after_the_checks_wait_for_nothing(fake: FakeCuda, bound: Bound) -> None:
    arrays = Arrays(fake, bound)
    with gtstub.checks("nan"):
        bound.program(arrays.vn, arrays.out)
    fake.clear()
    bound.program(arrays.vn, arrays.out)
    assert not [line for line in fake.log() if "Synchronize" in line]


@pytest.mark.parametrize(("good", "name"), [(0, "vn"), (1, "out"), (2, "out")])
def test_an_error_of_a_copy(fake: FakeCuda, bound: Bound, good: int, name: str) -> None:
    arrays = Arrays(fake, bound)
    bound.program(arrays.vn, arrays.out)
    with gtstub.checks("nan"):
        fake.fail("cudaMemcpyAsync", 2, after=good)
        assert refusal(bound.program, arrays.vn, arrays.out) == (
            f"RuntimeError: Program 'diffusion' cannot be checked: '{name}' cannot be copied from the GPU: "
            f"{OUT_OF_MEMORY}."
        )
        fake.recover()
        bound.program(arrays.vn, arrays.out)


def test_captured_calls_are_not_checked(fake: FakeCuda, bound: Bound, capfd: pytest.CaptureFixture[str]) -> None:
    arrays = Arrays(fake, bound, with_nan(3, 1))
    bound.program(arrays.vn, arrays.out)
    with gtstub.checks("nan; progress"):
        for _ in range(2):
            with Captured():
                bound.program(arrays.vn, arrays.out)
        assert refusal(bound.program, arrays.vn, arrays.out).startswith("RuntimeError: Argument 'out' of program ")
    assert capfd.readouterr().err.splitlines() == [
        "Captured calls of program 'diffusion' are not checked: they run when the graph is launched.",
        "Call 3 of program 'diffusion' begins.",
        "Call 3 of program 'diffusion' has ended.",
    ]


def test_a_program_without_kernels_needs_one_with_kernels(bound: Bound, tmp_path: Path, toolchain: Toolchain) -> None:
    out = array("out", Axis(), Axis(), device="cuda", access="write")
    signature = sdfg(out, array("vn", Axis(), Axis(), device="cuda"), name="plain", device="cuda")
    plain = Bound(tmp_path / "plain", toolchain, signature, program("plain", vn=field(EDGE, K), out=field(EDGE, K)))
    script = """
        fake.copy(vn.address, (np.nan * VALUES).ctypes.data, VALUES.nbytes)
        plain = load(0)
        call(plain)
        call(plain)
        load(1)
        try:
            call(plain)
        except RuntimeError as error:
            print(error, file=sys.stderr)
    """
    libraries = [path for each in (plain, bound) for path in (each.stub, each.library)]
    done = subprocess.run(
        [sys.executable, "-c", START + textwrap.dedent(script), build(), *libraries],
        cwd=ROOT,
        env={**os.environ, "GTSTUB_CHECK": "nan"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stderr.splitlines() == [
        "Argument 'vn' of program 'plain' is not checked: it is on device 'cuda', and no program has been loaded whose "
        "kernels run there.",
        "Argument 'vn' of program 'plain' is nan at Edge 0, K 0 before the call; "
        f"check 'nan' refuses {ALL} of {ALL} elements.",
    ]
