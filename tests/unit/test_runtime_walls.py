"""
The walls between the folders of the runtime (docs/design.md): a file uses its own folder and those below it. A header
says what a file could use; the symbols of its object say what it does use, whoever has declared them.
"""

from __future__ import annotations

import graphlib
import re
import subprocess
import sysconfig
from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.support.programs import need
from tests.support.runtime import RUNTIME

OBSERVERS = "observers/times observers/record observers/debug"
ORDER = ("include embedded", "base", "program", "arguments", "steps", OBSERVERS, "observers/observers.c", "python")
"""A file may use its own folder and those before it. Folders of one entry do not use each other."""

PLACE = {name: number for number, names in enumerate(ORDER) for name in names.split()}


def folder(path: str) -> str:
    """The name in ORDER of the folder, or of the file, that a path in the runtime belongs to."""
    return next((name for name in PLACE if f"{path}/".startswith(f"{name}/")), "")


def upward(graph: Mapping[str, Set[str]]) -> list[str]:
    """What ORDER does not allow, in a graph of paths in the runtime."""
    return sorted(
        f"{path} uses {other}"
        for path, others in graph.items()
        for other in others
        if folder(path) != folder(other) and PLACE[folder(other)] >= PLACE[folder(path)]
    )


# --- Headers ----------------------------------------------------------------------------------------------------------


def included(file: Path) -> Iterator[str]:
    """The headers of the runtime that a file includes."""
    for name in re.findall(r'#include [<"]([a-z_]+/[^>"]+)[>"]', file.read_text(encoding="utf-8")):
        path = f"include/{name}" if name.startswith("gtstub/") else name
        if folder(path):
            yield path


def headers_of(root: Path) -> dict[str, set[str]]:
    return {str(file.relative_to(root)): set(included(file)) for file in root.rglob("*.[ch]")}


def test_no_file_includes_a_folder_above_its_own() -> None:
    graph = headers_of(RUNTIME)
    assert sum(map(len, graph.values())) > 200
    assert upward(graph) == []


def test_no_header_includes_itself_over_others() -> None:
    graphlib.TopologicalSorter(headers_of(RUNTIME)).prepare()


def test_python_is_known_to_the_python_host_alone() -> None:
    knows = {file for file in RUNTIME.rglob("*.[ch]") if re.search(r"[<\"]Python\.h", file.read_text(encoding="utf-8"))}
    assert knows
    assert [file for file in knows if not file.is_relative_to(RUNTIME / "python")] == []


# --- Names ------------------------------------------------------------------------------------------------------------


def static_functions(root: Path) -> dict[str, set[str]]:
    """The names of static functions, each with the files that define one."""
    files: dict[str, set[str]] = {}
    for file in root.rglob("*.[ch]"):
        for name in re.findall(r"^static [^;=()]*?(\w+)\(", file.read_text(encoding="utf-8"), re.MULTILINE):
            files.setdefault(name, set()).add(str(file.relative_to(root)))
    return files


def test_a_name_of_a_static_function_says_where_it_is() -> None:
    """A debugger or a profiler shows the name alone. Names of few files are left to the eye."""
    files = static_functions(RUNTIME)
    assert files["find_times"] == {"observers/times/profile.c"}
    assert {name: sorted(where) for name, where in files.items() if len(where) >= 5} == {}


# --- Symbols ----------------------------------------------------------------------------------------------------------


def compile_all(root: Path, folder: Path, flags: Sequence[str] = ()) -> dict[str, Path]:
    """The objects of all C files, by their paths in `root`."""
    need("gcc", "nm")
    objects = {str(file.relative_to(root)): folder / f"{number}.o" for number, file in enumerate(root.rglob("*.c"))}

    def compile_one(source: str) -> None:
        command = ["gcc", "-std=c11", "-w", "-I", "include", "-I", ".", *flags, "-c", source, "-o", objects[source]]
        subprocess.run(command, cwd=root, check=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, objects))
    return objects


def symbols_of(item: Path) -> Iterator[tuple[str, bool]]:
    """The external symbols of an object, and whether it defines them."""
    listed = subprocess.run(["nm", "-P", "-g", item], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        name, kind = line.split()[:2]
        yield name, kind not in "Uwv"


def uses_of(objects: Mapping[str, Path]) -> dict[str, set[str]]:
    """The files, each with those that define what it uses."""
    symbols = {source: list(symbols_of(item)) for source, item in objects.items()}
    home = {name: source for source, names in symbols.items() for name, is_defined in names if is_defined}
    return {
        source: {home[name] for name, is_defined in names if not is_defined and name in home}
        for source, names in symbols.items()
    }


@pytest.fixture(scope="module")
def uses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    folders = (sysconfig.get_path("include"), np.get_include())
    return uses_of(compile_all(RUNTIME, tmp_path_factory.mktemp("objects"), [f"-I{folder}" for folder in folders]))


pytestmark = pytest.mark.xdist_group("runtime_walls")  # one process compiles the runtime


def test_no_file_uses_a_symbol_of_a_folder_above_its_own(uses: Mapping[str, Set[str]]) -> None:
    assert uses["program/load.c"] >= {"program/library.c", "base/error.c"}
    assert upward(uses) == []


def test_no_file_uses_itself_over_others(uses: Mapping[str, Set[str]]) -> None:
    graphlib.TopologicalSorter(uses).prepare()


def test_the_walls_hold(tmp_path: Path) -> None:
    """What these tests would not notice would not be a wall."""
    texts = {
        "base/error.c": "int gts_error(void) { return 0; }",
        "base/error.h": '#include "program/load.h"\n#include <gtstub/stub.h>\n#include <stdio.h>',
        "program/load.c": "int gts_error(), gts_profile(); int gts_load(void) { return gts_error() + gts_profile(); }",
        "program/load.h": '#include "base/error.h"',
        "observers/times/times.c": "extern int gts_record; int gts_profile(void) { return gts_record; }",
        "observers/record/recorder.c": "int gts_load(void); int gts_record; int gts_play(void) { return gts_load(); }",
    }
    for name, text in texts.items():
        file = tmp_path / "runtime" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    headers = headers_of(tmp_path / "runtime")
    assert headers["base/error.h"] == {"program/load.h", "include/gtstub/stub.h"}
    assert upward(headers) == ["base/error.h uses program/load.h"]
    graph = uses_of(compile_all(tmp_path / "runtime", tmp_path))
    times = "observers/times/times.c"
    assert upward(graph) == [f"{times} uses observers/record/recorder.c", f"program/load.c uses {times}"]
    for circle in (headers, graph):
        with pytest.raises(graphlib.CycleError):
            graphlib.TopologicalSorter(circle).prepare()
