"""
Instructions that one call costs, counted by callgrind: they do not depend on what else the machine does.

Run as a program, it is what callgrind runs: it makes so many calls of a callable, and so many of an empty vectorcall
with the same arguments. Two runs that swap the numbers differ by nothing but the calls.

    python instructions.py WAY CALLER ARGUMENTS CALLS EMPTY_CALLS ENTRY...
"""

from __future__ import annotations

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
    from gtstub.plan import CallPlan

CALLS = 2000
"""Enough that what varies between two runs does not matter."""

FIRST = 200
"""Calls that both runs make, of either kind: the first ones are others."""

LEVELS = 6
"""Size of an axis that is not fixed."""


class CallgrindError(Exception):
    """callgrind, or the program that it ran, failed."""


def find_valgrind() -> str | None:
    return shutil.which("valgrind")


Way = Literal["program", "bound", "keywords", "variants"]
"""
program:   the program itself, all arguments by position and the offset provider by keyword
bound:     what compile() returns, with all but the changing fields bound, which are passed by keyword
keywords:  what compile() returns with nothing bound, all arguments by keyword
variants:  as bound, with the static arguments passed as well; a variant for each entry
"""


Arguments = Mapping[str, Mapping[str, Any]]
"""'parameters' and 'offset_provider', by name: shape and dtype of a field, or the value of a scalar."""


def count_per_call(
    arguments: Arguments, caller: Path, *entries: Path, way: Way = "program", calls: int = CALLS
) -> float:
    """Instructions of a call with the objects of the call before, above those of an empty vectorcall."""
    with tempfile.TemporaryDirectory() as folder:
        described = Path(folder) / "arguments.json"
        described.write_text(json.dumps(arguments), encoding="utf-8")
        runs = [
            _start(Path(folder), [way, str(caller), str(described), str(made), str(empty), *map(str, entries)])
            for made, empty in ((FIRST, FIRST + calls), (FIRST + calls, FIRST))
        ]
        few, many = (_collected(run) for run in runs)
    return (many - few) / calls


def example_arguments(plan: CallPlan) -> Arguments:
    """For a library that does nothing: sizes and values are examples, save those that were compiled in."""
    from gtstub.plan import FieldLeaf, ScalarLeaf, StaticLeaf

    described: dict[str, dict[str, Any]] = {"parameters": {}, "offset_provider": {}}
    for leaf in (*plan.nodes, *plan.connectivities):
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


def _start(folder: Path, arguments: list[str]) -> subprocess.Popen[str]:
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out.%p", sys.executable, __file__]
    # One thread of BLAS: the others of its pool would be counted while they wait.
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True, env=environment)


def _collected(run: subprocess.Popen[str]) -> int:
    _, message = run.communicate()
    found = re.search(r"Collected : (\d+)", message)
    if run.returncode != 0 or found is None:
        raise CallgrindError(message)
    return int(found[1])


def _make(item: Any) -> Any:
    import numpy as np

    return np.ones(item["shape"], item["dtype"], order="F") if isinstance(item, dict) else item


def main(way: Way, caller_path: str, arguments_path: str, calls: str, empty_calls: str, *paths: str) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from gtstub.cache import StubArtifact
    from tests.benchmarks.callables import STATIC, UNBOUND, compiled

    spec = importlib.util.spec_from_file_location("caller", caller_path)
    assert spec is not None
    assert spec.loader is not None
    caller = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(caller)
    described = json.loads(Path(arguments_path).read_bytes())
    provider = {name: _make(item) for name, item in described["offset_provider"].items()}
    arguments = {name: _make(item) for name, item in described["parameters"].items()}
    entries = [StubArtifact(Path(path)) for path in paths]

    if way == "program":
        call, names = (*arguments.values(), provider), ("offset_provider",)
        caller.repeat(entries[0].load(), [call], names, int(calls))
    else:
        names = {"bound": UNBOUND, "keywords": tuple(arguments), "variants": (*UNBOUND, *STATIC)}[way]
        call = tuple(arguments[name] for name in names)
        bound = {name: value for name, value in arguments.items() if name not in names}
        program = compiled(entries, bound, provider)
        caller.repeat(program, [call], names, int(calls))
    caller.repeat(caller.empty, [call], names, int(empty_calls))


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
