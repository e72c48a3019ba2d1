"""
Instructions that one call costs, counted by callgrind: they do not depend on what else the machine does.

Run as a program, it is what callgrind runs: for each job it makes calls of a callable, and as many of an empty
vectorcall with the same arguments. Only what happens in these loops is counted.

    python instructions.py CALLER JOBS.json
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from gtstub.plan.model import CallPlan

CALLS = 500
WARMING_CALLS = 50

LEVELS = 6
"""Size of an axis that is not fixed."""

Way = Literal["program", "bound", "keywords", "variants"]
"""
program:   the program itself, all arguments by position and the offset provider by keyword
bound:     what compile() returns, with all but the changing fields bound, which are passed by keyword
keywords:  what compile() returns with nothing bound, all arguments by keyword
variants:  as bound, with the static arguments passed as well; a variant for each entry
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


class CallgrindError(Exception):
    """callgrind, or the program that it ran, failed."""


def find_valgrind() -> str | None:
    return shutil.which("valgrind")


def count_per_call(caller: Path, jobs: Mapping[str, Job]) -> dict[str, float]:
    """For each job the instructions of a call with the objects of the call before, above an empty vectorcall's."""
    with tempfile.TemporaryDirectory() as folder:
        described = {name: {**vars(job), "entries": list(map(str, job.entries))} for name, job in jobs.items()}
        (Path(folder) / "jobs.json").write_text(json.dumps(described), encoding="utf-8")
        # The caller's loop is called 'repeat': it is counted, and its count is written down each time it ends.
        command = ["valgrind", "--tool=callgrind", "--toggle-collect=repeat", "--dump-after=repeat"]
        command += [f"--callgrind-out-file={folder}/out", sys.executable, __file__, str(caller), f"{folder}/jobs.json"]
        # One thread of BLAS and of OpenMP: the others of their pools would be counted while they wait.
        threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        environment = {**os.environ, "PYTHONHASHSEED": "0", **threads}
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, env=environment, check=False)
        counts = [int(re.findall(r"^totals: (\d+)", _dump(folder, i), re.MULTILINE)[0]) for i in range(3 * len(jobs))]
        if done.returncode != 0:
            raise CallgrindError(done.stderr)
    return {name: (counts[3 * i + 1] - counts[3 * i + 2]) / CALLS for i, name in enumerate(jobs)}


def _dump(folder: str, number: int) -> str:
    file = Path(folder) / f"out.{number + 1}"
    return file.read_text(encoding="utf-8") if file.exists() else "totals: 0"


def example_arguments(plan: CallPlan) -> Arguments:
    """For a library that does nothing: sizes and values are examples, save those that were compiled in."""
    from gtstub.plan.model import FieldLeaf, ScalarLeaf, StaticLeaf

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


def _run(caller: Any, way: Way, arguments: Arguments, entries: list[str], changing: str) -> None:
    from gtstub.cache.entry import Entry
    from tests.benchmarks.callables import STATIC, UNBOUND, compiled

    provider = {name: _make(item) for name, item in arguments["offset_provider"].items()}
    values = {name: _make(item) for name, item in arguments["parameters"].items()}
    artifacts = [Entry(Path(entry)) for entry in entries]
    program: Any
    if way == "program":
        call, names = (*values.values(), provider), ("offset_provider",)
        program = artifacts[0].load()
    else:
        names = {"bound": UNBOUND, "keywords": tuple(values), "variants": (*UNBOUND, *STATIC)}[way]
        call = tuple(values[name] for name in names)
        program = compiled(artifacts, {name: value for name, value in values.items() if name not in names}, provider)
    calls = [call]
    if changing:
        place = list(values).index(changing)
        calls.append((*call[:place], call[place] - 1, *call[place + 1 :]))
    for callable_, count in ((program, WARMING_CALLS), (program, CALLS), (caller.empty, CALLS)):
        caller.repeat(callable_, calls, names, count)


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
