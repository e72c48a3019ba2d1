"""Caches that cannot be written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gtstub.entries.cache.store import Cache
from gtstub.entries.cache.temporary import say_if_temporary, writable


def test_cache_that_can_be_written_is_used(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "new" / "cache", (tmp_path / "shared",))
    assert writable(cache) == cache
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("root", ["/dev/null/cache", "/proc/cache"])  # /proc is a directory that root may write to.
def test_cache_that_cannot_be_written_becomes_a_layer(capsys: pytest.CaptureFixture[str], root: str) -> None:
    cache = Cache(Path(root), (Path("/shared"),))
    made = writable(cache)
    assert made.shared == cache.layers
    assert writable(cache) == made
    assert capsys.readouterr().err == ""  # All that is needed may be in the layers.
    for _ in range(2):
        say_if_temporary(made)
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"gtstub: the cache '{root}' cannot be written. What this process compiles is lost when it exits. To keep it,"
        " name another directory in GTSTUB_CACHE_DIR."
    )


def test_temporary_cache_ends_with_its_process_and_not_with_a_child() -> None:
    code = """if True:
        import os, sys
        from pathlib import Path
        from gtstub.entries.cache.store import Cache
        from gtstub.entries.cache.temporary import writable
        root = writable(Cache(Path("/dev/null/cache"))).root
        if (child := os.fork()) == 0:
            sys.exit()
        os.waitpid(child, 0)
        print(root, root.is_dir())
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    root, was_there = done.stdout.split()
    assert was_there == "True"
    assert not Path(root).exists()
