"""
How long the programs of a step take, and the step: called from C with nothing around them, through gtstub and through
gt4py.

All of it runs in one process, in rounds in which all take turns: whatever else the machine does hits them alike.
A call changes fields, and a thousand calls would not leave physical values. So before every round of every callable all
fields are made what they were before the step.
"""

from __future__ import annotations

import dataclasses
import gc
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gtstub
from examples.granule.granules import Granule, fields
from examples.granule.sdfg_calls import Loops
from examples.granule.steps import ProgramCall

ROUNDS = 75
ROUND_SECONDS = 0.002

STEP, STEP_CALLS = -1, -2
"""Where a call has its number in the step: the whole step, and its program calls without the granule around them."""

USUAL = 2
"""The number of a step that is like those after it; the first one is special."""

Run = Callable[[int], float]
"""Makes so many calls, and returns the seconds they took."""


@dataclasses.dataclass(frozen=True)
class Times:
    """Nanoseconds of one call, one number for each round."""

    rounds: Sequence[float]

    @property
    def least(self) -> float:
        return min(self.rounds)

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)


@dataclasses.dataclass(frozen=True)
class Side:
    """A granule whose programs run through one of the two; `calls` are those of a step."""

    granule: Granule
    calls: Sequence[ProgramCall]

    def capture(self) -> gtstub.Step:
        """The step as a step of gtstub, which is compared with the granule's bit for bit."""
        return gtstub.capture(lambda: self.granule.step(USUAL), name=self.granule.name)


class Clock:
    """Times calls from a C loop: `caller` is the extension module of tests/benchmarks."""

    def __init__(self, caller: Any) -> None:
        self._caller = caller

    def measure(self, gt4py: Side, stubs: Side, loops: Loops) -> dict[tuple[str, int], Times]:
        """
        Times by who is called ('SDFG', 'gtstub', 'bound', 'gt4py') and the number of the call in the step. 'bound' are
        the bound calls of the step that is captured from gtstub's, and this step. 'granule' is the step with programs
        that do nothing.
        """
        runs: dict[tuple[str, int], tuple[Granule, Run]] = {}
        for i in range(len(stubs.calls)):
            runs["SDFG", i] = stubs.granule, lambda count, i=i: loops.repeat(i, count)
            for name, side in (("gtstub", stubs), ("gt4py", gt4py)):
                runs[name, i] = side.granule, self._program(side.calls[i])
        runs["SDFG", STEP] = stubs.granule, loops.repeat_all
        for name, side in (("gtstub", stubs), ("gt4py", gt4py)):
            runs[name, STEP] = side.granule, self._step(side.granule)
            runs[name, STEP_CALLS] = side.granule, self._programs(side.calls)
        captured = stubs.capture()
        for i, call in enumerate(captured):
            runs["bound", i] = stubs.granule, self._without_arguments(call)
        runs["bound", STEP] = stubs.granule, self._without_arguments(captured)
        runs["granule", STEP] = stubs.granule, self._without_programs(stubs)
        return _take_turns(runs)

    def _program(self, call: ProgramCall) -> Run:
        callable_, arguments, names = _flat(call)
        return lambda count: self._caller.repeat(callable_, [arguments], names, count)

    def _programs(self, calls: Sequence[ProgramCall]) -> Run:
        flat = [_flat(call) for call in calls]
        return lambda count: self._caller.in_turn(flat, count)

    def _step(self, granule: Granule) -> Run:
        return lambda count: self._caller.repeat(granule.step, [(USUAL,)], (), count)

    def _without_arguments(self, callable_: Callable[[], object]) -> Run:
        return lambda count: self._caller.repeat(callable_, [()], (), count)

    def _without_programs(self, side: Side) -> Run:
        granule = side.granule.granule
        programs = {
            name: value for name, value in vars(granule).items() if any(value is call.callable for call in side.calls)
        }
        step = self._step(side.granule)

        def run(count: int) -> float:
            for name in programs:
                setattr(granule, name, self._caller.empty)
            try:
                return step(count)
            finally:
                for name, program in programs.items():
                    setattr(granule, name, program)

        return run


def _flat(call: ProgramCall) -> tuple[Callable[..., None], tuple[Any, ...], tuple[str, ...]]:
    """The callable, its arguments, and the names of the last ones, interned as the granule's own are."""
    names = tuple(sys.intern(name) for name in call.kwargs)
    return call.callable, (*call.args, *call.kwargs.values()), names


def _take_turns(runs: Mapping[tuple[str, int], tuple[Granule, Run]]) -> dict[tuple[str, int], Times]:
    before = {id(granule): _copy(granule) for granule, _ in runs.values()}
    counts: dict[tuple[str, int], int] = {}
    rounds: dict[tuple[str, int], list[float]] = {key: [] for key in runs}
    for key, (granule, run) in runs.items():
        run(10)
        _restore(granule, before[id(granule)])
        counts[key] = max(5, int(ROUND_SECONDS * 20 / run(20)))
    gc.collect()
    gc.disable()
    for _ in range(ROUNDS):
        for key, (granule, run) in runs.items():
            _restore(granule, before[id(granule)])
            run(2)  # brings what it needs into the caches
            rounds[key].append(run(counts[key]) / counts[key] * 1e9)
    gc.enable()
    return {key: Times(times) for key, times in rounds.items()}


def _copy(granule: Granule) -> dict[str, Any]:
    return {name: array.copy() for name, array in fields(granule).items()}


def _restore(granule: Granule, values: Mapping[str, Any]) -> None:
    for name, array in fields(granule).items():
        array[...] = values[name]
