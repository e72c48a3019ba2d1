"""Processes that own something in a cache, and whether they have ended."""

from __future__ import annotations

import dataclasses
import os
import socket
import zlib
from functools import cache
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Process:
    """
    A process. `boot` identifies the running system that numbers its processes: a container has numbers of its own, and
    two hosts of a cluster may have the same name. `start` is when the process was started, in ticks since the system
    was, because numbers of processes are used again.
    """

    host: str
    boot: str
    pid: int
    start: int

    @property
    def is_here(self) -> bool:
        """Whether this process can see it, and so can tell whether it has ended."""
        return self.boot == _boot() != ""

    @property
    def has_ended(self) -> bool:
        """Whether it has certainly ended; False if it runs where this process cannot see it."""
        return self.is_here and _start(self.pid) != self.start

    @property
    def tag(self) -> str:
        """What stands for it in the name of a file; see `tagged_has_ended`."""
        return f"{_short(self.boot)}.{self.pid}.{self.start}"

    def __str__(self) -> str:
        return f"process {self.pid} on host '{self.host}'"


def this_process() -> Process:
    pid = os.getpid()
    return Process(socket.gethostname(), _boot(), pid, _start(pid) or 0)


def tagged_has_ended(tag: str) -> bool | None:
    """Whether the process of a tag has ended; None if this process cannot tell."""
    boot, *numbers = tag.split(".")
    if boot != _short(_boot()) or not _boot() or len(numbers) != 2 or not all(map(str.isdigit, numbers)):
        return None
    pid, start = map(int, numbers)
    return _start(pid) != start


def _short(boot: str) -> str:
    return f"{zlib.crc32(boot.encode()):08x}"


@cache
def _boot() -> str:
    """Empty if /proc is not there to tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        return ""
    return f"{boot}.{namespace}"


def _start(pid: int) -> int | None:
    """When a process was started; None if it has ended, even if its parent has not collected its status."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *rest = status.rpartition(")")[2].split()  # The name of the program comes before; it may hold anything.
    return None if state in "ZX" else int(rest[18])
