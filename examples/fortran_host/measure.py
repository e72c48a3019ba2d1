"""
How long a step of the exported granule takes from Fortran, beside the same SDFGs called from C by hand with the very
arguments that the granule passes: both in one process, in rounds in which they take turns, from the same values.
"""

from __future__ import annotations

import ctypes
import dataclasses
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from examples.granule.sdfg_calls import Loops, SdfgCall
from examples.granule.timing import ROUND_SECONDS, ROUNDS, Times
from gtstub.programs.granule.description import Call, GranuleProgram
from gtstub.programs.granule.verify import read_granule
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature.documents import program_in, sdfg_in
from gtstub.stub.signature.model import SdfgSignature
from tests.support.sdfg_libraries import Recorder, build_null_library, build_recording_library


@dataclasses.dataclass(frozen=True)
class Measured:
    """Nanoseconds of one step; `nothing` are steps of the granule over SDFGs that do nothing."""

    granule: Times
    loop: Times
    nothing: Times


class Host:
    """timed_granule.f90."""

    def __init__(self, build: Path, state: Path) -> None:
        self._library = ctypes.CDLL(str(build / "libtimed_granule.so"))
        self._library.granule_steps.argtypes = (ctypes.c_long,)
        self._library.granule_steps.restype = ctypes.c_double
        self._library.granule_init(bytes(state))

    def open(self, granule: Path) -> None:
        self._library.granule_open(bytes(granule))

    def restore(self) -> None:
        self._library.granule_restore()

    def state(self, folder: Path) -> dict[str, bytes]:
        """The fields of the model state, written to a folder and read again."""
        folder.mkdir(exist_ok=True)
        self._library.granule_write(bytes(folder))
        return {path.stem: path.read_bytes() for path in folder.glob("*.bin")}

    def steps(self, count: int) -> float:
        """Seconds."""
        return float(self._library.granule_steps(count))


def measure(build: Path, state: Path, granule: Path, folder: Path, rounds: int = ROUNDS) -> Measured:
    """`granule` is the folder that was exported."""
    host = Host(build, state)
    loops = Loops(list(_record(host, granule, folder / "recording")), folder / "step.c")
    host.open(granule)
    _compare(host, loops, folder / "step")
    own, loop = _take_turns(host, [host.steps, loops.repeat_all], rounds)
    host.open(_with_libraries(granule, folder / "nothing", build_null_library))
    (nothing,) = _take_turns(host, [host.steps], rounds)
    return Measured(own, loop, nothing)


def _record(host: Host, granule: Path, folder: Path) -> Iterator[SdfgCall]:
    """What the SDFGs receive in a step: the addresses are those of the host's arrays, and of kept ones."""
    recording = _with_libraries(granule, folder, build_recording_library)
    host.open(recording)
    host.steps(1)
    description = read_granule(granule)
    (step,) = (step for step in description.steps if step.name == "run")
    programs = [description.programs[call.program] for call in step.positions if isinstance(call, Call)]
    calls = {
        program: iter(Recorder(recording / program.folder / _sdfg(granule, program).library).calls())
        for program in set(programs)
    }
    for program in programs:
        sdfg = _sdfg(granule, program)
        plan = make_plan(sdfg, program_in(granule / program.folder / "program.json"))
        yield SdfgCall(plan, granule / program.folder / sdfg.library, next(calls[program]))


def _with_libraries(granule: Path, folder: Path, build_library: Callable[[SdfgSignature, Path], Any]) -> Path:
    """A copy of a granule with libraries that are not the SDFGs' own."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(granule, folder)
    for program in read_granule(granule).programs:
        build_library(_sdfg(granule, program), folder / program.folder)
    return folder


def _sdfg(granule: Path, program: GranuleProgram) -> SdfgSignature:
    return sdfg_in(granule / program.folder / "sdfg.json")


def _compare(host: Host, loops: Loops, folder: Path) -> None:
    """Raises SystemExit unless a step from C does what a step of the granule does."""
    before = host.state(folder)
    host.steps(1)
    expected = host.state(folder)
    host.restore()
    assert host.state(folder) == before != expected
    loops.repeat_all(1)
    found = host.state(folder)
    if different := [name for name in expected if found[name] != expected[name]]:
        raise SystemExit(f"A step from C gives other fields than the granule: {', '.join(different)}.")


def _take_turns(host: Host, runs: Sequence[Callable[[int], float]], rounds: int) -> list[Times]:
    found: list[list[float]] = [[] for _ in runs]
    counts = [max(5, int(ROUND_SECONDS * 20 / run(20))) for run in runs]
    for _ in range(rounds):
        for run, count, times in zip(runs, counts, found, strict=True):
            host.restore()
            run(2)  # brings what it needs into the caches
            times.append(run(count) / count * 1e9)
    return [Times(times) for times in found]
