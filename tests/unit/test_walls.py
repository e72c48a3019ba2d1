"""The walls between the rooms of the generator (docs/design.md): who may import whom."""

from __future__ import annotations

import ast
import graphlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

import pytest

from tests.support.checkout import ROOT

PACKAGE = ROOT / "generator" / "gtstub"

ORDER = (
    "gtstub __main__ recorded",
    "cli",
    "frameworks",
    "programs",
    "tools",
    "entries",
    "stub",
    "ranks",
    "settings install",
    "util",
    "errors abi _version _host",
)
"""A wing or a module may import those below it, and itself. Those of one line do not import each other."""

ORDER_INSIDE = {
    "tools": ("report", "memory profiling recorded rules tracing"),
    "entries": ("building", "cache", "toolchain", "spans trust"),
    "stub": ("codegen", "bounds plan", "sdfg", "signature"),
    "frameworks": (
        "build_worker icon4py ndsl",
        "gt4py",
        "dace",
        "backends mpi resolve",
        "framework hooks sources versions",
    ),
}
"""As ORDER, for the rooms of a wing."""

FRAMEWORKS = set(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]["flake8-tidy-imports"][
        "banned-api"
    ]
)
"""Imported by frameworks/ alone."""

IMPORTED_INSIDE_FRAMEWORKS = {
    "gt4py": {"gt4py", "dace"},
    "dace": {"dace"},
    "icon4py": {"icon4py", "gt4py"},
    "ndsl": {"ndsl", "dace"},
    "mpi": {"mpi4py"},
    "hooks": {"gt4py", "dace"},
}
"""The packages of FRAMEWORKS that each of them may import; the others none."""

DEEPEST = 15
"""Modules of the longest chain of imports."""


def module_of(file: Path, root: Path) -> str:
    parts = file.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(file: Path) -> Iterator[str]:
    """The names that a module imports, wherever in it; not those for type checkers alone."""
    pending: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            pending.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} has a relative import."
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        pending.extend(ast.iter_child_nodes(node))


def imports_of(root: Path) -> dict[str, set[str]]:
    """The modules of a package, each with those of the package that it imports."""
    modules = {module_of(file, root): file for file in root.rglob("*.py")}
    known = {*modules, f"{root.name}._host"}

    def module(name: str) -> str:
        return name if name in known else name.rpartition(".")[0]

    return {
        name: {module(other) for other in imported(file) if module(other) in known} - {name}
        for name, file in modules.items()
    }


def upward(graph: Mapping[str, Set[str]], order: Sequence[str] = ORDER, package: str = "gtstub") -> list[str]:
    """The imports between rooms of a package that an order does not allow."""
    place = {room: number for number, rooms in enumerate(order) for room in rooms.split()}

    def room(module: str) -> str | None:
        if module == package:
            return "gtstub" if package == "gtstub" else None
        return module.removeprefix(f"{package}.").partition(".")[0] if module.startswith(f"{package}.") else None

    return sorted(
        f"{module} imports {other}"
        for module, others in graph.items()
        for other in others
        if (upper := room(module)) and (lower := room(other)) and upper != lower and place[lower] <= place[upper]
    )


def depth(graph: Mapping[str, Set[str]]) -> int:
    depths: dict[str, int] = {}
    for module in graphlib.TopologicalSorter(graph).static_order():
        depths[module] = 1 + max((depths[other] for other in graph.get(module, ())), default=0)
    return max(depths.values())


def test_no_module_imports_itself_over_others() -> None:
    graphlib.TopologicalSorter(imports_of(PACKAGE)).prepare()


def test_no_wing_imports_one_above_it() -> None:
    assert upward(imports_of(PACKAGE)) == []


def test_chains_of_imports_are_short() -> None:
    assert depth(imports_of(PACKAGE)) <= DEEPEST


def test_frameworks_are_imported_by_frameworks_alone() -> None:
    strangers = [
        f"{file.relative_to(PACKAGE)} imports {name}"
        for file in PACKAGE.rglob("*.py")
        if file.relative_to(PACKAGE).parts[0] != "frameworks"
        for name in imported(file)
        if name.partition(".")[0] in FRAMEWORKS
    ]
    assert strangers == []


@pytest.mark.parametrize("wing", ORDER_INSIDE)
def test_no_room_of_a_wing_imports_one_above_it(wing: str) -> None:
    assert upward(imports_of(PACKAGE), ORDER_INSIDE[wing], f"gtstub.{wing}") == []


def test_each_framework_imports_its_own_package_alone() -> None:
    strangers = [
        f"{file.relative_to(PACKAGE)} imports {name}"
        for file in (PACKAGE / "frameworks").rglob("*.py")
        for name in imported(file)
        if (package := name.partition(".")[0]) in FRAMEWORKS
        and package not in IMPORTED_INSIDE_FRAMEWORKS.get(file.relative_to(PACKAGE).parts[1].removesuffix(".py"), ())
    ]
    assert strangers == []


def test_unit_tests_import_no_framework() -> None:
    strangers = [
        f"{file} imports {name}"
        for file in Path(__file__).parent.rglob("*.py")
        for name in imported(file)
        if name.partition(".")[0] in FRAMEWORKS
    ]
    assert strangers == []


def write(root: Path, texts: Mapping[str, str]) -> Path:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_the_walls_hold(tmp_path: Path) -> None:
    """What these tests would not notice would not be a wall."""
    root = write(
        tmp_path / "gtstub",
        {
            "__init__.py": "",
            "cli/app.py": "from gtstub.stub import model",
            "stub/model.py": "def plan():\n    from gtstub.entries.store import make",
            "entries/store.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gtstub.cli import app",
            "util/a.py": "from gtstub import _host\nimport gtstub.util.b",
            "util/b.py": "from gtstub.util.a import one",
            "util/c.py": "if not TYPE_CHECKING:\n    from gtstub.cli import app",
        },
    )
    graph = imports_of(root)
    assert upward(graph) == [
        "gtstub.stub.model imports gtstub.entries.store",
        "gtstub.util.c imports gtstub.cli.app",
    ]
    assert depth({name: others for name, others in graph.items() if ".util" not in name}) == 3
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter(graph).prepare()
    with pytest.raises(AssertionError, match=r"a\.py has a relative import"):
        imports_of(write(tmp_path / "relative", {"a.py": "from .b import c"}))
