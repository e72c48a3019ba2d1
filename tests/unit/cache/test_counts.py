"""Hits and misses: counted by many processes at once, and never in the way of a run."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gtstub import ranks
from gtstub.entries.cache.counts import HITS, MISSES, count, counts
from gtstub.entries.cache.lookup import Request
from gtstub.entries.cache.store import Cache
from gtstub.errors import CacheError
from tests.support.entries import publish_made_of

ADD = f"""if True:
    from pathlib import Path
    from gtstub.entries.cache.counts import count
    for _ in range(500):
        count(Path("."), {HITS!r})
"""


def test_many_processes_count_at_once(tmp_path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", ADD], cwd=tmp_path) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert counts(tmp_path) == (2000, 0)


def test_what_cannot_be_counted_is_not(tmp_path: Path) -> None:
    count(tmp_path / "missing", HITS)
    os.mkfifo(tmp_path / HITS)
    count(tmp_path, HITS)
    (tmp_path / "elsewhere").write_text("text")
    (tmp_path / MISSES).symlink_to("elsewhere")
    count(tmp_path, MISSES)
    assert counts(tmp_path) == (0, 0)
    assert (tmp_path / "elsewhere").read_text() == "text"
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize(("directory", "file"), [(0o755, 0o644), (0o2775, 0o664)])
def test_all_members_of_a_group_count_in_its_cache(tmp_path: Path, directory: int, file: int) -> None:
    tmp_path.chmod(directory)
    mask = os.umask(0o022)
    try:
        count(tmp_path, HITS)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / HITS).stat().st_mode) == file
    count(tmp_path, HITS)
    assert counts(tmp_path).hits == 2


def test_a_program_that_is_found_is_a_hit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GTSTUB_MODE", raising=False)
    cache = Cache(tmp_path)
    publish_made_of(cache, {"n": 1})
    there, missing = (Request("prog", {"n": n}, {}, cache) for n in (1, 2))
    assert there.find() is not None
    assert missing.find() is None
    assert counts(tmp_path) == (1, 0)
    monkeypatch.setenv("GTSTUB_MODE", "Run")
    assert there.find() is not None
    with pytest.raises(CacheError):
        missing.find()
    assert counts(tmp_path) == (1, 0)


def test_the_first_of_several_ranks_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    publish_made_of(cache, {"n": 1})
    for rank in (0, 1):
        monkeypatch.setattr(ranks, "current", lambda rank=rank: ranks.Ranks(rank, 2))
        assert Request("prog", {"n": 1}, {}, cache).find() is not None
    assert counts(tmp_path) == (1, 0)
