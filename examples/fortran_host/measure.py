"""
How long a step of the Fortran granule takes, beside the same SDFGs called from C by hand with the very arguments that
the granule passes: both in one process, in rounds in which they take turns, from the same values.
"""

from __future__ import annotations

import ctypes
import dataclasses
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from examples.granule.sdfg_calls import Loops, SdfgCall
from examples.granule.timing import ROUND_SECONDS, ROUNDS, Times
from examples.icon4py.committed import short_name
from gtstub.plan.planner import make_plan
from gtstub.signature import documents
from gtstub.signature.model import SdfgSignature
from tests.support.sdfg_libraries import Recorder, build_null_library, build_recording_library


@dataclasses.dataclass(frozen=True)
class Measured:
    """Nanoseconds of one step; `nothing` are Fortran steps over SDFGs that do nothing. `bound`: the calls are bound."""

    fortran: Times
    bound: Times
    loop: Times
    nothing: Times
    bound_nothing: Times


class Granule:
    """timed_granule.f90."""

    def __init__(self, build: Path, state: Path) -> None:
        self._library = ctypes.CDLL(str(build / "libtimed_granule.so"))
        for steps in (self._library.granule_steps, self._library.granule_bound_steps):
            steps.argtypes = (ctypes.c_long,)
            steps.restype = ctypes.c_double
        self._library.granule_init(bytes(state), bytes(build))

    def reopen(self, programs: Path) -> None:
        self._library.granule_reopen(bytes(programs))
        self._library.granule_bind()

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

    def bound_steps(self, count: int) -> float:
        """Seconds."""
        return float(self._library.granule_bound_steps(count))


def measure(
    build: Path, state: Path, entries: Mapping[str, Path], step: Sequence[str], folder: Path, rounds: int = ROUNDS
) -> Measured:
    """`step` names the programs that a step calls, in their order."""
    granule = Granule(build, state)
    calls = list(_record(granule, build, entries, step, folder / "recording"))
    granule.reopen(build)
    loops = Loops(calls, folder / "step.c")
    _compare(granule, loops, folder / "step")
    fortran, bound, loop = _take_turns(granule, [granule.steps, granule.bound_steps, loops.repeat_all], rounds)
    granule.reopen(_programs(build, entries, folder / "nothing", build_null_library))
    nothing, bound_nothing = _take_turns(granule, [granule.steps, granule.bound_steps], rounds)
    return Measured(fortran, bound, loop, nothing, bound_nothing)


def _record(
    granule: Granule, build: Path, entries: Mapping[str, Path], step: Sequence[str], folder: Path
) -> Iterator[SdfgCall]:
    """What the SDFGs receive in a step: the addresses are those of the granule's arrays."""
    granule.reopen(_programs(build, entries, folder, build_recording_library))
    granule.steps(1)
    signatures = {program: _sdfg(entries[program]) for program in step}
    calls = {program: iter(Recorder(folder / program / sdfg.library).calls()) for program, sdfg in signatures.items()}
    for program in step:
        sdfg = signatures[program]
        text = (entries[program] / "program.json").read_text(encoding="utf-8")
        plan = make_plan(sdfg, documents.program_from_json(text, "program.json"))
        yield SdfgCall(plan, build / program / sdfg.library, next(calls[program]))


def _programs(
    build: Path, entries: Mapping[str, Path], folder: Path, build_library: Callable[[SdfgSignature, Path], Any]
) -> Path:
    """A folder of the same stubs, each beside a library that is not the SDFG's own."""
    for program, entry in entries.items():
        place = folder / program
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy2(build / program / f"{short_name(program)}_stub.so", place)
        build_library(_sdfg(entry), place)
    return folder


def _sdfg(entry: Path) -> SdfgSignature:
    return documents.sdfg_from_json((entry / "sdfg.json").read_text(encoding="utf-8"), "sdfg.json")


def _compare(granule: Granule, loops: Loops, folder: Path) -> None:
    """Raises SystemExit unless a step from C, and one of bound calls, does what a step of the Fortran granule does."""
    before = granule.state(folder)
    granule.steps(1)
    expected = granule.state(folder)
    for kind, run in (("from C", loops.repeat_all), ("of bound calls", granule.bound_steps)):
        granule.restore()
        assert granule.state(folder) == before != expected
        run(1)
        found = granule.state(folder)
        if different := [name for name in expected if found[name] != expected[name]]:
            raise SystemExit(f"A step {kind} gives other fields than calls from Fortran: {', '.join(different)}.")


def _take_turns(granule: Granule, runs: Sequence[Callable[[int], float]], rounds: int) -> list[Times]:
    found: list[list[float]] = [[] for _ in runs]
    counts = [max(5, int(ROUND_SECONDS * 20 / run(20))) for run in runs]
    for _ in range(rounds):
        for run, count, times in zip(runs, counts, found, strict=True):
            granule.restore()
            run(2)  # brings what it needs into the caches
            times.append(run(count) / count * 1e9)
    return [Times(times) for times in found]
