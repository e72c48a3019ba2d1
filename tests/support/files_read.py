"""
Which files processes read, and which of them they ask the check of trust about: each process of a run, also those that
it starts, writes down the audit events of both.
"""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gtstub.entries.trust import ASKED

HOOK = f"""
import json, os, sys

log = os.open(os.environ["READS_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def full(path):
    if not isinstance(path, (str, bytes, os.PathLike)):
        return None
    path = os.fsdecode(path)
    if os.sep not in path:
        here = sys._getframe(2).f_locals
        if isinstance(here.get("directory"), int):  # gtstub.util.regular.opened
            return os.path.join(os.readlink(f"/proc/self/fd/{{here['directory']}}"), path)
    return os.path.abspath(path)


def note(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        is_read = flags & os.O_ACCMODE != os.O_WRONLY
        kind, path = "read", full(path) if is_read else None
        if path is not None and not os.path.isfile(path):  # It looks for a file that is made later.
            path = None
    elif event == "{ASKED}":
        kind, path = "asked", os.path.abspath(arguments[0])
    else:
        return
    if path is not None:
        os.write(log, (json.dumps([os.getpid(), kind, path]) + "\\n").encode())


sys.addaudithook(note)
"""


@dataclasses.dataclass(frozen=True)
class Reads:
    """What one process has read, and asked about."""

    read: frozenset[Path]
    asked: frozenset[Path]

    def unasked(self, places: Sequence[Path]) -> list[Path]:
        """
        The files in `places` that it has read and not asked about, unless they are in a directory that it has asked
        about and that nobody else can enter.
        """
        private = {path for path in self.asked if path.is_dir() and not stat.S_IMODE(path.stat().st_mode) & 0o077}
        return sorted(
            path
            for path in self.read - self.asked
            if path.is_file()
            and any(path.is_relative_to(place) for place in places)
            and private.isdisjoint(path.parents)
        )


def run_noting(command: Sequence[str | Path], folder: Path, **environment: str) -> list[Reads]:
    """Runs a command of Python, and returns what each process has read. `folder` is for what this needs."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
    log = folder / "log"
    search = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, **environment, "READS_LOG": str(log), "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]

    def paths(process: int, kind: str) -> frozenset[Path]:
        return frozenset(Path(path) for pid, each, path in events if (pid, each) == (process, kind))

    return [Reads(paths(process, "read"), paths(process, "asked")) for process in sorted({pid for pid, *_ in events})]
