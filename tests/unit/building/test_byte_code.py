"""Byte code of the processes that build."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gtstub.entries.toolchain.machine import BYTE_CODE

SCRIPT = """
import os, shutil, sys, time
sys.prefix += os.environ.get("OTHER_PREFIX", "")
from gtstub.entries.building.workers import workers

def found():
    import sys
    from pathlib import Path
    if "MOVED" in os.environ:
        os.rename("cache", "moved")
        shutil.copytree("moved", "cache")
    from gtstub.entries.building import outcome  # not imported before
    return os.path.realpath(sys.pycache_prefix), Path(outcome.__cached__).exists(), Path(outcome.__file__).exists()

if __name__ == "__main__":
    print(*workers.submit((time.sleep, (0,)), found).result(), sep="\\n")
"""


def run(folder: Path, **variables: str) -> list[str]:
    """What a worker says: the directory of its byte code, and whether it has the byte code of a module."""
    (folder / "script.py").write_text(SCRIPT)
    others = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    environment = others | {"GTSTUB_CACHE_DIR": str(folder / "cache")} | variables
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.fixture
def without(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who wants no byte code, and has none."""
    pytest.importorskip("dace", reason="Only processes that build need byte code.")
    return {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": str(tmp_path / "none")}


def test_workers_have_byte_code_where_the_process_has_none(tmp_path: Path, without: dict[str, str]) -> None:
    directory, exists, _ = run(tmp_path, **without)
    assert Path(directory).parent == tmp_path / "cache" / BYTE_CODE
    assert exists == "True"
    assert Path(directory).stat().st_mode & 0o777 == 0o700
    assert not (tmp_path / "none").exists()
    assert not list(tmp_path.glob("__pycache__"))
    assert run(tmp_path, **without)[0] == directory


def test_a_cache_that_another_user_replaces(tmp_path: Path, without: dict[str, str]) -> None:
    """By renaming a directory above it after it was checked."""
    directory, exists, _ = run(tmp_path, MOVED="1", **without)
    assert Path(directory).parent == tmp_path / "moved" / BYTE_CODE
    assert exists == "True"


def test_another_python_has_a_directory_of_its_own(tmp_path: Path, without: dict[str, str]) -> None:
    first, second = (Path(run(tmp_path, OTHER_PREFIX=each, **without)[0]) for each in ("", "/other"))
    assert first.parent == second.parent
    assert first != second


def test_byte_code_that_python_finds_or_writes_itself_is_enough(tmp_path: Path) -> None:
    prefix = str(tmp_path / "mine")
    assert run(tmp_path, PYTHONPYCACHEPREFIX=prefix) == [prefix, "True", "True"]
    assert not (tmp_path / "cache" / BYTE_CODE).exists()


def test_without_a_cache_that_can_be_written_there_is_none(tmp_path: Path, without: dict[str, str]) -> None:
    (tmp_path / "cache").write_text("a file in its place")
    assert run(tmp_path, **without)[:2] == [without["PYTHONPYCACHEPREFIX"], "False"]


def test_a_directory_that_others_could_have_written_is_not_used(tmp_path: Path, without: dict[str, str]) -> None:
    """Nor one in a cache that they can write: Python reads the files by their paths."""
    directory = Path(run(tmp_path, **without)[0])
    for path in (directory, directory.parent, tmp_path / "cache"):
        path.chmod(0o777)
        assert run(tmp_path, **without)[:2] == [without["PYTHONPYCACHEPREFIX"], "False"]
        path.chmod(0o700)
