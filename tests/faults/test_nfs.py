"""What NFS does that a local file system does not (nfs.c). No test mounts it, because few systems let tests do so."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gtstub.entries.cache.store import Cache
from tests.faults import invariants
from tests.faults.builder import build, key_of
from tests.faults.workshop import Ended, Workshop, environment

CLIENT_OF_NFS = {"nfs": "names,silly"}


def test_entry_that_was_missing_before_is_found(workshop: Workshop, tmp_path: Path) -> None:
    """A process that has waited for a builder does not build again what it remembers to be missing."""
    calls = workshop.calls(tmp_path / "counted", tmp_path / "log")
    at = next(number for number, name in enumerate(calls, 1) if name.startswith("rename"))
    root, builds, looks = tmp_path / "cache", tmp_path / "builds", tmp_path / "looks"
    patient = {"GTSTUB_BUILD_TIMEOUT": 60}
    builder = workshop.start(root, builds=builds, **workshop.injecting(root, at=at, fault="stop"), **patient)
    os.waitpid(builder.pid, os.WUNTRACED)
    reads = workshop.injecting(root, nfs="names,reads", log=looks)
    waiting = workshop.start(root, builds=builds, **reads, **patient)
    while not (looks.exists() and key_of(0) in looks.read_text()):
        time.sleep(0.01)
    builder.send_signal(signal.SIGCONT)
    for ended in (Ended(builder), Ended(waiting)):
        assert (ended.status, ended.errors) == (0, "")
    assert builds.read_text().split() == ["0"]
    invariants.check(workshop, root)


def test_stale_handles(workshop: Workshop, tmp_path: Path) -> None:
    """
    Each file or directory of an entry in turn was removed on the server since it was last seen. While a process looks
    for the entry, it then finds it anew; a load of the entry that it has found is refused, with the reason.
    """
    template = tmp_path / "template"
    assert workshop.run(template, 0).status == 0
    log = tmp_path / "log"
    reads = {"nfs": "names,silly,reads"}
    assert workshop.run(template, **workshop.injecting(template, log=log, **reads)).status == 0
    calls = [line.split(" ", 3) for line in log.read_text().splitlines()]
    assert [each[1] for each in calls].count("read") > 3
    loads = [number for number, each in enumerate(calls) if each[3] == calls[0][3]][1]  # It is opened again.
    for number in range(1, len(calls) + 1):
        root = tmp_path / f"{number}"
        shutil.copytree(template, root)
        before = invariants.entries(root)
        ended = workshop.run(root, **workshop.injecting(root, at=number, fault="estale", **reads))
        is_stale = ended.is_refusal and "Stale file handle" in ended.errors
        assert (ended.status, ended.errors) == (0, "") or (is_stale and number > loads), (number, ended.errors)
        assert invariants.entries(root) == before
        invariants.check_entries(root)


LOADED_AND_REMOVED = """if True:
    import os, sys
    from array import array
    from pathlib import Path
    from gtstub.entries.cache.inventory import inventory
    from gtstub.entries.cache.prune import remove
    from gtstub.entries.cache.store import Cache
    cache = Cache(Path(sys.argv[1]))
    (item,) = inventory(cache)
    program = cache.find(item.key).load()
    (item,) = inventory(cache)
    print(remove(cache, item), cache.find(item.key))
    out = array("d", [0])
    program(array("d", [1]), 10.0, out)
    print(out.tolist())
"""


def test_loaded_entry_is_removed(workshop: Workshop, tmp_path: Path) -> None:
    """Its libraries stay as .nfs files, and their directory with them, until the next build after this process."""
    root = tmp_path / "cache"
    build(Cache(root), workshop.parts, 0, None)
    process = subprocess.Popen(
        [sys.executable, "-c", LOADED_AND_REMOVED, str(root)],
        env=environment(workshop.injecting(root, **CLIENT_OF_NFS)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    ended = Ended(process)
    assert (ended.status, ended.errors, ended.output) == (0, "", "True None\n[10.0]\n")
    (left,) = root.glob(".building-*")
    assert len(list(left.rglob(".nfs*"))) == 2
    assert list(left.rglob("manifest.json")) == []
    invariants.check(workshop, root)


@pytest.mark.parametrize("call", ["rename", "mkdir", "unlink", "rmdir"])
def test_answer_of_the_server_is_lost(workshop: Workshop, tmp_path: Path, call: str) -> None:
    """The client asks again, and is told that it is done already."""
    calls = workshop.calls(tmp_path / "counted", tmp_path / "log")
    for number, name in enumerate(calls, 1):
        if name.split()[0] != call:
            continue
        root = tmp_path / f"{number}"
        ended = workshop.run(root, **workshop.injecting(root, at=number, fault="lost"))
        if call != "mkdir":
            assert (ended.status, ended.errors) == (0, ""), name
        invariants.check(workshop, root, ended)


def test_no_locks(workshop: Workshop, tmp_path: Path) -> None:
    """Some servers have none, and the calls fail with ENOLCK."""
    root = tmp_path / "cache"
    for _ in range(2):
        ended = workshop.run(root, **workshop.injecting(root, nfs="locks"))
        assert (ended.status, ended.errors, ended.output) == (0, "", f"{root / key_of(0)}\n")
