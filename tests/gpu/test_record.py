"""Recordings of programs for a GPU: arrays are copied on the stream of the program, and no call is disturbed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from gtstub.cli.app import main
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.model import Axis
from gtstub.tools.recorded.archive import Archive, archives
from tests.gpu.conftest import bind
from tests.support.checkout import ROOT
from tests.support.fake_cuda import build
from tests.support.hosting import EDGES, LEVELS, Bound
from tests.support.signatures import EDGE, K, array, field, program, sdfg

VALUES = np.arange(1.0, EDGES * LEVELS + 1).reshape(EDGES, LEVELS)
OUT_OF_MEMORY = "error 2 (cudaErrorMemoryAllocation: out of memory)"

START = """
import ctypes, sys
from pathlib import Path
import numpy as np
import gtstub
from gtstub import _host
from tests.gpu.test_record import VALUES
from tests.support.fake_cuda import DeviceArray, FakeCuda
from tests.support.hosting import EDGES, LEVELS, edge_field
from tests.support.sdfg_libraries import Recorder

fake = FakeCuda(Path(sys.argv[1]))
libraries = [Path(one) for one in sys.argv[2:]]
vn, out = DeviceArray(fake, VALUES), DeviceArray(fake, -VALUES)

def load(index):
    return _host.load(libraries[2 * index], libraries[2 * index + 1])

def call(program):
    program(edge_field(vn), edge_field(out))

def copy(index):
    behaviour = Recorder(libraries[2 * index + 1]).behaviour
    behaviour.copies_to, behaviour.copies_from, behaviour.copies_bytes = out.address, vn.address, VALUES.nbytes
"""


def record(script: str, folder: Path, *programs: Bound) -> str:
    """Records a script in a process of its own into folder/recording; returns what it writes to stderr."""
    libraries = [path for program in programs for path in (program.stub, program.library)]
    done = subprocess.run(
        [sys.executable, "-c", START + textwrap.dedent(script), build(), *libraries],
        cwd=ROOT,
        env={**os.environ, "GTSTUB_RECORD": str(folder / "recording")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def recorded(folder: Path) -> Archive:
    (archive,) = archives(folder / "recording")
    return archive


def values(archive: Archive, call: int) -> dict[str, list[NDArray[Any]]]:
    """The arguments of a call by name, before and, of those that it writes, after it."""
    one = archive.calls[call]
    sides = ("before", "after")
    return {
        value.leaf.name: [archive.load(one, value, side) for side in sides if value.place(side) is not None]
        for value in one.values
    }


def numbers(archive: Archive) -> list[tuple[str, int]]:
    return [(call.program.name, call.number) for call in archive.calls]


# --- What is recorded -------------------------------------------------------------------------------------------------


def test_values_are_those_before_and_after_the_work_of_a_call(bound: Bound, tmp_path: Path) -> None:
    script = """
        diffusion = load(0)
        copy(0)
        diffusion.stream = fake.stream(1)
        call(diffusion)
        fake.copy(vn.address, (10 * VALUES).ctypes.data, VALUES.nbytes)
        call(diffusion)
    """
    assert record(script, tmp_path, bound) == ""
    archive = recorded(tmp_path)
    assert archive.is_complete
    assert numbers(archive) == [("diffusion", 1), ("diffusion", 2)]
    for call, vn, out in ((0, VALUES, -VALUES), (1, 10 * VALUES, VALUES)):
        found = values(archive, call)
        np.testing.assert_array_equal(found["vn"], [vn])
        np.testing.assert_array_equal(found["out"], [out, vn])


def test_the_layout_of_an_array_is_recorded(bound: Bound, tmp_path: Path) -> None:
    script = """
        diffusion = load(0)
        padded = DeviceArray(fake, np.arange(EDGES * 8.0).reshape(EDGES, 8))

        class Reversed:
            __cuda_array_interface__ = {
                "shape": (EDGES, LEVELS), "typestr": "<f8", "version": 3, "strides": (-64, 8),
                "data": (padded.address + 64 * (EDGES - 1), False),
            }

        diffusion(edge_field(Reversed()), edge_field(out))
    """
    assert record(script, tmp_path, bound) == ""
    archive = recorded(tmp_path)
    expected = np.arange(EDGES * 8.0).reshape(EDGES, 8)[::-1, :LEVELS]
    np.testing.assert_array_equal(values(archive, 0)["vn"], [expected])
    (vn,) = (value for value in archive.calls[0].values if value.leaf.name == "vn")
    assert vn.strides == (-8, 1)


def test_copies_are_on_the_stream_of_the_program_and_each_side_waits_once(bound: Bound, tmp_path: Path) -> None:
    script = """
        diffusion = load(0)
        diffusion.stream = stream = fake.stream(1)
        call(diffusion)
        fake.clear()
        call(diffusion)
        n, size = fake.stream_number(stream), VALUES.nbytes
        work = [line for line in fake.log() if not line.startswith(("cudaPointer", "cudaGet"))]
        copy_ = f"cudaMemcpyAsync bytes={size} kind=4 stream={n}"
        wait = f"cudaStreamSynchronize stream={n}"
        assert work == [
            f"cudaStreamIsCapturing stream={n}", copy_, copy_, wait, f"cudaMallocAsync bytes=1000 stream={n}",
            f"cudaLaunchKernel first_kernel stream={n}", f"cudaLaunchKernel second_kernel stream={n}",
            f"cudaFreeAsync stream={n}", copy_, wait,
        ], work
    """
    assert record(script, tmp_path, bound) == ""


def test_copies_are_behind_the_work_that_is_pending_on_the_stream(bound: Bound, tmp_path: Path) -> None:
    script = """
        diffusion = load(0)
        diffusion.stream = stream = fake.stream(1)
        pinned = fake.malloc(VALUES.nbytes, "cudaMallocHost")
        ctypes.memmove(pinned, (7 * VALUES).ctypes.data, VALUES.nbytes)
        assert fake.call("cudaMemcpyAsync", vn.address, pinned, VALUES.nbytes, 1, stream) == 0
        fake.clear()
        assert fake.ran() == []
        call(diffusion)
    """
    assert record(script, tmp_path, bound) == ""
    np.testing.assert_array_equal(values(recorded(tmp_path), 0)["vn"], [7 * VALUES])


def test_arrays_that_overlap_are_recorded_as_such(bound: Bound, tmp_path: Path) -> None:
    script = """
        load(0)(edge_field(vn), edge_field(vn))
    """
    assert record(script, tmp_path, bound) == ""
    first, second = recorded(tmp_path).calls[0].values
    assert (first.memory, first.offset) == (second.memory, second.offset)


# --- What is not recorded ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "good"),
    [("cudaMemcpyAsync", 3), ("cudaMemcpyAsync", 4), ("cudaMemcpyAsync", 5), ("cudaStreamSynchronize", 2)],
)
def test_an_error_of_a_copy_ends_the_recording_of_its_program(
    function: str, good: int, bound: Bound, tmp_path: Path, toolchain: Toolchain
) -> None:
    other = bind("advection", tmp_path / "advection", toolchain)
    script = f"""
        diffusion, advection = load(0), load(1)
        fake.fail({function!r}, 2, after={good})
        call(diffusion)
        fake.clear()
        call(diffusion)
        assert len([line for line in fake.log() if line.startswith("cudaLaunchKernel")]) == 2
        assert fake.call("cudaPeekAtLastError") == 0
        fake.recover()
        fake.clear()
        call(diffusion)
        assert not [line for line in fake.log() if line.startswith("cudaMemcpyAsync")]
        call(advection)
    """
    assert record(script, tmp_path, bound, other) == (
        "The recording of program 'diffusion' ends before call 2, because its arguments cannot be copied from the GPU:"
        f" {OUT_OF_MEMORY}. All calls before it can be replayed.\n"
    )
    archive = recorded(tmp_path)
    assert not archive.is_complete
    assert numbers(archive) == [("diffusion", 1), ("advection", 1)]


def test_two_programs_can_fail(bound: Bound, tmp_path: Path, toolchain: Toolchain) -> None:
    other = bind("advection", tmp_path / "advection", toolchain)
    script = """
        fake.fail("cudaMemcpyAsync", 2)
        call(load(0))
        call(load(1))
    """
    lines = record(script, tmp_path, bound, other).splitlines()
    assert [line.partition(",")[0] for line in lines] == [
        "The recording of program 'diffusion' ends before call 1",
        "The recording of program 'advection' ends before call 1",
    ]
    archive = recorded(tmp_path)
    assert (archive.path.suffixes, archive.calls) == ([".incomplete"], ())


def test_a_kernel_that_fails_is_the_error_of_the_next_call(bound: Bound, tmp_path: Path) -> None:
    script = """
        diffusion = load(0)
        call(diffusion)
        fake.fail("second_kernel", 700)
        call(diffusion)
        try:
            call(diffusion)
        except RuntimeError as error:
            print(error, file=sys.stderr)
    """
    ended, raised = record(script, tmp_path, bound).splitlines()
    assert ended.startswith("The recording of program 'diffusion' ends before call 2, because its arguments cannot be ")
    assert raised.startswith("The GPU reported error 700 ")
    assert numbers(recorded(tmp_path)) == [("diffusion", 1)]


def test_captured_calls_are_not_recorded(bound: Bound, tmp_path: Path, toolchain: Toolchain) -> None:
    other = bind("advection", tmp_path / "advection", toolchain)
    script = """
        from tests.support.graphs import Captured
        diffusion, advection = load(0), load(1)
        call(diffusion)
        call(advection)
        for _ in range(2):
            with Captured() as graph:
                call(diffusion)
            graph()
        with Captured() as graph:
            call(advection)
        call(diffusion)
    """
    message = "Captured calls of program '{}' are not recorded: they run when the graph is launched.\n"
    assert record(script, tmp_path, bound, other) == message.format("diffusion") + message.format("advection")
    archive = recorded(tmp_path)
    assert archive.is_complete
    assert numbers(archive) == [("diffusion", 1), ("advection", 1), ("diffusion", 4)]


def test_a_program_without_kernels_needs_one_with_kernels(bound: Bound, tmp_path: Path, toolchain: Toolchain) -> None:
    def bind_without_kernels(name: str) -> Bound:
        out = array("out", Axis(), Axis(), device="cuda", access="write")
        signature = sdfg(out, array("vn", Axis(), Axis(), device="cuda"), name=name, device="cuda")
        return Bound(tmp_path / name, toolchain, signature, program(name, vn=field(EDGE, K), out=field(EDGE, K)))

    early, late = bind_without_kernels("early"), bind_without_kernels("late")
    script = """
        early, late = load(0), load(1)
        call(early)
        load(2)
        call(early)
        call(late)
    """
    assert record(script, tmp_path, early, late, bound) == (
        "Program 'early' is not recorded: its argument 'vn' is on device 'cuda', and no program has been loaded whose"
        " kernels run there.\n"
    )
    archive = recorded(tmp_path)
    assert numbers(archive) == [("late", 1)]
    np.testing.assert_array_equal(values(archive, 0)["vn"], [VALUES])


# --- Replays ----------------------------------------------------------------------------------------------------------

PROGRAM = """
import gt4py.next as gtx

Edge, K = gtx.Dimension("Edge"), gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
Field = gtx.Field[[Edge, K], gtx.float64]


@gtx.field_operator
def copy(vn: Field) -> Field:
    return vn


@gtx.program
def diffusion(vn: Field, out: Field):
    copy(vn, out=out)
"""


def replay(folder: Path, *arguments: str) -> str:
    result = CliRunner().invoke(main, ["replay", str(folder / "recording"), *arguments, "--compare"])
    return f"{result.exit_code}: {result.output.splitlines()[-1]}"


@pytest.fixture
def program_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same program in gt4py, as 'gtstub replay' takes it."""
    name = f"copying_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return f"{name}:diffusion"


@pytest.mark.parametrize("backend", ["EMBEDDED", "DACE_CPU"])
def test_a_recording_is_replayed_on_the_cpu(
    backend: str, program_on_the_cpu: str, bound: Bound, tmp_path: Path
) -> None:
    script = """
        class EdgesFirst:
            def __init__(self, memory):
                self.__cuda_array_interface__ = {**memory.__cuda_array_interface__, "strides": (8, 8 * EDGES)}

        copy(0)
        load(0)(edge_field(EdgesFirst(vn)), edge_field(EdgesFirst(out)))
    """
    assert record(script, tmp_path, bound) == ""
    assert replay(tmp_path, program_on_the_cpu, "--backend", backend) == (
        "0: 1 call replayed. Of 1 results, 0 differ by more than the tolerance, 0 by less."
    )


def test_a_recording_is_replayed_by_a_stub_for_the_cpu(bound: Bound, tmp_path: Path, toolchain: Toolchain) -> None:
    assert record("call(load(0))", tmp_path, bound) == ""
    signature = sdfg(array("out", Axis(), Axis(), access="write"), array("vn", Axis(), Axis()), name="diffusion")
    parameters = {"vn": field(EDGE, K), "out": field(EDGE, K)}
    on_cpu = Bound(tmp_path / "cpu", toolchain, signature, program("diffusion", **parameters))
    assert replay(tmp_path, str(on_cpu.stub)) == (
        "0: 1 call replayed. Of 1 results, 0 differ by more than the tolerance, 0 by less."
    )


def test_a_recording_is_not_replayed_on_a_gpu(bound: Bound, tmp_path: Path) -> None:
    assert record("call(load(0))", tmp_path, bound) == ""
    assert replay(tmp_path, str(bound.stub)) == (
        "1: Program 'diffusion' takes arrays on a GPU, where calls are not replayed: give one for a CPU."
    )


def test_a_replay_finds_what_differs(program_on_the_cpu: str, bound: Bound, tmp_path: Path) -> None:
    assert record("call(load(0))", tmp_path, bound) == ""
    assert replay(tmp_path, program_on_the_cpu) == (
        "1: 1 call replayed. Of 1 results, 1 differ by more than the tolerance, 0 by less."
    )
