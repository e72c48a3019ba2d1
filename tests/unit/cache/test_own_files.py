"""Which of gtstub's own files are ingredients of keys."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gtstub import install
from gtstub.entries.cache import own_files

DECIDES = {
    "stub/signature/model.py": "stub",
    "stub/plan/planner.py": "stub",
    "stub/codegen/render.py": "stub",
    "entries/toolchain/answer.py": "entries/toolchain/answer.py",
    "entries/toolchain/compiler.py": "entries/toolchain/compiler.py",
    "entries/toolchain/cmake/CMakeLists.txt": "entries/toolchain/cmake",
    "stub/sdfg/reduce.jq": "stub",
    "stub/bounds/claims.py": "stub",
    "frameworks/dace/dace_config.toml": "frameworks/dace",
    "frameworks/gt4py/workflow.py": "frameworks/gt4py",
    "frameworks/hooks.py": "frameworks/hooks.py",
    "abi.py": "abi.py",
    "templates/stub.c.j2": "templates",
    "include/gtstub/stub.h": "include",
    "embedded/memory.h": "embedded",
}
"""Files, each with the part that it belongs to."""

DOES_NOT_MATTER = [
    *("cli/stub.py", "cli/tables/plan.py", "entries/cache/prune.py", "entries/building/pool.py"),
    *("tools/profiling/table.py", "tools/memory/memory.py", "tools/report/page.py", "templates/report/page.html.j2"),
    "frameworks/backends/choice.py",
]


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the installed package, whose files can be changed."""
    folder = tmp_path / "gtstub"
    shutil.copytree(install.FOLDER, folder)
    monkeypatch.setattr(own_files, "__file__", str(folder / "entries" / "cache" / "own_files.py"))
    monkeypatch.setattr(install, "TEMPLATES", folder / "templates")
    monkeypatch.setattr(install, "INCLUDE", folder / "include")
    monkeypatch.setattr(install, "EMBEDDED", folder / "embedded")
    return folder


digests: Callable[[], Mapping[str, str]] = own_files.own_files.__wrapped__


def changed(folder: Path, file: str) -> set[str]:
    """The parts whose digests change with a file."""
    before = digests()
    (folder / file).write_bytes((folder / file).read_bytes() + b"\n")
    after = digests()
    assert before.keys() == after.keys()
    return {part for part in before if before[part] != after[part]}


@pytest.mark.parametrize("file", DECIDES)
def test_a_file_that_decides_what_is_built_changes_the_digest_of_its_part(copied: Path, file: str) -> None:
    assert changed(copied, file) == {DECIDES[file]}


def test_every_part_is_tried() -> None:
    assert set(DECIDES.values()) == set(own_files.own_files())


@pytest.mark.parametrize("file", DOES_NOT_MATTER)
def test_what_is_printed_or_said_of_an_entry_changes_no_key(copied: Path, file: str) -> None:
    assert changed(copied, file) == set()


def test_a_file_that_is_renamed_is_another_one(copied: Path) -> None:
    before = digests()
    (copied / "stub" / "plan" / "names.py").rename(copied / "stub" / "plan" / "names2.py")
    assert digests()["stub"] != before["stub"]
