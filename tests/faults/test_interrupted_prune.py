"""`prune` takes an entry away and sees that it was used meanwhile; each call of that fails, or is the last one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gtstub.entries.cache.store import Cache
from gtstub.entries.trust import MARKER
from tests.faults import invariants
from tests.faults.builder import build, key_of
from tests.faults.workshop import Ended, Workshop, environment

PRUNER = """if True:
    import dataclasses, sys
    from pathlib import Path
    from gtstub.entries.cache.store import Cache
    from gtstub.errors import CacheError
    from gtstub.entries.cache.inventory import inventory
    from gtstub.entries.cache.prune import remove
    cache = Cache(Path(sys.argv[1]))
    (item,) = inventory(cache)
    try:
        print(remove(cache, dataclasses.replace(item, used=item.used - float(sys.argv[2]))))
    except CacheError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
"""


def prune(workshop: Workshop, root: Path, used: int, **settings: object) -> Ended:
    process = subprocess.Popen(
        [sys.executable, "-c", PRUNER, str(root), str(used)],
        env=environment(workshop.injecting(root, **settings)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Ended(process)


@pytest.mark.parametrize("fault", ["before", "eio"])
def test_entry_that_was_used_meanwhile_stays(workshop: Workshop, tmp_path: Path, fault: str) -> None:
    build(Cache(tmp_path / "counted"), workshop.parts, 0, None)
    log = tmp_path / "log"
    assert prune(workshop, tmp_path / "counted", 1, log=log).output == "False\n"
    calls = [" ".join(line.split()[1:2]) for line in log.read_text().splitlines()]
    assert calls.count("rename") == 2
    for number in range(1, len(calls) + 1):
        root = tmp_path / f"{number}"
        cache = Cache(root)
        inode = build(cache, workshop.parts, 0, None).path.stat().st_ino
        ended = prune(workshop, root, 1, at=number, fault=fault)
        invariants.check_ending(ended, root)
        build(cache, workshop.parts, 1, None)  # which tidies up
        assert cache.find(key_of(0)) is not None, (number, calls)
        assert (root / key_of(0)).stat().st_ino == inode
        assert [path.name for path in root.glob(".*")] == [MARKER]


def test_prune_that_was_killed_can_be_done_again(workshop: Workshop, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    for number in range(1, 20):
        if cache.find(key_of(0)) is None:
            build(cache, workshop.parts, 0, None)
        if prune(workshop, cache.root, 0, at=number, fault="before").status == 0:
            break
        invariants.check_entries(cache.root)
    else:
        pytest.fail("It never ended.")
    assert [path.name for path in cache.root.iterdir()] == [MARKER]
