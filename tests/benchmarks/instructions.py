"""
What one call costs, counted by callgrind: instructions and cache lines. They do not depend on what else the machine
does.

Run as a program, it is what callgrind runs: for each job it makes calls of a callable, and as many of an empty
vectorcall with the same arguments. Only what happens in these loops is counted. For the cache lines it makes one more
call of each, which begins with empty caches.

    python instructions.py CALLER JOBS.json
"""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from gtstub.stub.plan.model import CallPlan

CALLS = 500
WARMING_CALLS = 50

CACHE_LINES = 512
"""More than a call touches. Caches of one set miss each line once, until they are full."""

CACHE = f"{64 * CACHE_LINES},{CACHE_LINES},64"
CACHES = ("--cache-sim=yes", f"--I1={CACHE}", f"--D1={CACHE}", f"--LL={CACHE}")
"""Options of callgrind: it counts the cache lines of calls that begin with empty caches (cold.h)."""

LEVELS = 6
"""Size of an axis that is not fixed."""

Way = Literal["program", "bound", "keywords", "variants", "start", "step", "overload"]
"""
program:   the program itself, all arguments by position and the offset provider by keyword
bound:     what compile() returns, with all but the changing fields bound, which are passed by keyword
keywords:  what compile() returns with nothing bound, all arguments by keyword
variants:  as bound, with the static arguments passed as well; a variant for each entry
overload:  a program of DaCe, which checks at each call that its function is the one that was compiled
"""

Arguments = Mapping[str, Mapping[str, Any]]
"""'parameters' and 'offset_provider', by name: shape and dtype of a field, or the value of a scalar."""


@dataclasses.dataclass(frozen=True)
class Job:
    """With `changing`, this scalar parameter alternates between its value and one less."""

    way: Way
    arguments: Arguments
    entries: tuple[Path, ...]
    changing: str = ""


@dataclasses.dataclass(frozen=True)
class Cost:
    """
    Of one call with the objects of the call before, above an empty vectorcall's. The lines are the 64-byte lines of
    memory that it reads or writes, and those that its instructions are in. The stack and what the caller passes are not
    counted, because the caller has just used them.
    """

    instructions: float
    lines: int
    code_lines: int


COUNTED = ("repeat", "call_cold")


class CallgrindError(Exception):
    """callgrind, or the program that it ran, failed."""


def find_valgrind() -> str | None:
    return shutil.which("valgrind")


def count_per_call(caller: Path, jobs: Mapping[str, Job]) -> dict[str, Cost]:
    with tempfile.TemporaryDirectory() as folder:
        described = {name: {**vars(job), "entries": list(map(str, job.entries))} for name, job in jobs.items()}
        (Path(folder) / "jobs.json").write_text(json.dumps(described), encoding="utf-8")
        # What the caller's functions 'repeat' and 'call_cold' do is counted, and written down each time one ends.
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", *CACHES]
        command += [f"--{what}={function}" for what in ("toggle-collect", "dump-after") for function in COUNTED]
        command += [f"--callgrind-out-file={folder}/out", sys.executable, __file__, str(caller), f"{folder}/jobs.json"]
        # One thread of BLAS and of OpenMP: the others of their pools would be counted while they wait.
        threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        environment = {**os.environ, "PYTHONHASHSEED": "0", **threads}
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, env=environment, check=False)
        if done.returncode != 0:
            raise CallgrindError(done.stderr)
        if not (Path(folder) / "out.1").exists():
            raise CallgrindError("callgrind counted nothing: caller.c was compiled without <valgrind/callgrind.h>.")
        return {name: _cost([_dump(folder, 5 * i + j) for j in range(5)]) for i, name in enumerate(jobs)}


def _dump(folder: str, number: int) -> dict[str, int]:
    """The events that were counted until a counted function ended, by callgrind's names."""
    text = (Path(folder) / f"out.{number + 1}").read_text(encoding="utf-8")
    return total(text, r"^events: (.*)$", r"^totals: (.*)$")


def total(text: str, names: str, numbers: str) -> dict[str, int]:
    """Events by callgrind's names; the two expressions find them, and their numbers in the same order."""
    found = [re.findall(each, text, re.MULTILINE)[0].split() for each in (names, numbers)]
    return {name: int(number) for name, number in itertools.zip_longest(*found, fillvalue="0")}


def lines(events: Mapping[str, int]) -> int:
    """The cache lines that were read or written."""
    return events["D1mr"] + events["D1mw"]


def _cost(dumps: Sequence[Mapping[str, int]]) -> Cost:
    _, calls, empty, cold, empty_cold = dumps
    return Cost((calls["Ir"] - empty["Ir"]) / CALLS, lines(cold) - lines(empty_cold), cold["I1mr"] - empty_cold["I1mr"])


def example_arguments(plan: CallPlan) -> Arguments:
    """For a library that does nothing: sizes and values are examples, save those that were compiled in."""
    from gtstub.stub.plan.model import FieldLeaf, ScalarLeaf, StaticLeaf

    described: dict[str, dict[str, Any]] = {"parameters": {}, "offset_provider": {}}
    for leaf in (*plan.parameters, *plan.connectivities):
        match leaf:
            case FieldLeaf():
                shape = [LEVELS if axis.fixed.size is None else axis.fixed.size for axis in leaf.axes]
                item: Any = {"shape": shape, "dtype": leaf.dtype}
            case ScalarLeaf(dtype="bool"):
                item = True
            case ScalarLeaf(dtype="float32" | "float64"):
                item = 0.5
            case ScalarLeaf():
                item = 5
            case StaticLeaf(value=value):
                item = value
            case _:
                raise CallgrindError(f"Program '{plan.name}' has an argument of a kind that is not counted.")
        described["offset_provider" if leaf in plan.connectivities else "parameters"][leaf.path] = item
    return described


# --- What callgrind runs ----------------------------------------------------------------------------------------------


def _make(item: Any) -> Any:
    import numpy as np

    return np.ones(item["shape"], item["dtype"], order="F") if isinstance(item, dict) else item


STEP = 10
"""Bound calls in a step."""


def _run(caller: Any, way: Way, arguments: Arguments, entries: list[str], changing: str) -> None:
    from gtstub import Step
    from gtstub._host import Dispatcher, Overload
    from gtstub.entries.cache.entry import Entry
    from tests.benchmarks.callables import STATIC, UNBOUND, compiled

    provider = {name: _make(item) for name, item in arguments["offset_provider"].items()}
    values = {name: _make(item) for name, item in arguments["parameters"].items()}
    artifacts = [Entry(Path(entry)) for entry in entries]
    program: Any
    if way == "program":
        call, names = (*values.values(), provider), ("offset_provider",)
        program = artifacts[0].load()
    elif way in ("start", "step"):
        start = artifacts[0].load().bind(*values.values(), offset_provider=provider)
        call, names = (), ()
        program = start if way == "start" else Step([start] * STEP)
    elif way == "overload":
        call, names = tuple(values.values()), ()
        constant = (_make, ("__code__",), "_make.__code__", _make.__code__)
        overload = Overload(artifacts[0].load(), tuple(range(len(call))), (), (constant,))
        program = Dispatcher("overload", lambda *args: overload)
    else:
        names = {"bound": UNBOUND, "keywords": tuple(values), "variants": (*UNBOUND, *STATIC)}[way]
        call = tuple(values[name] for name in names)
        program = compiled(artifacts, {name: value for name, value in values.items() if name not in names}, provider)
    calls = [call]
    if changing:
        place = list(values).index(changing)
        calls.append((*call[:place], call[place] - 1, *call[place + 1 :]))
    caller.instrument(True)
    for callable_, count in ((program, WARMING_CALLS), (program, CALLS), (caller.empty, CALLS)):
        caller.repeat(callable_, calls, names, count)
    for callable_ in (program, caller.empty):
        caller.cold(callable_, call, names)
    caller.instrument(False)


def main(caller_path: str, jobs_path: str) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2]))
    spec = importlib.util.spec_from_file_location("caller", caller_path)
    assert spec is not None
    assert spec.loader is not None
    caller = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(caller)
    for job in json.loads(Path(jobs_path).read_bytes()).values():
        _run(caller, **job)


if __name__ == "__main__":
    main(*sys.argv[1:])
