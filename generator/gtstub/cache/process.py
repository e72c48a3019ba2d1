"""Identifies processes that own files in a cache, and detects whether they have ended."""

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
    A process. `boot` identifies the boot of the system and the PID namespace, because containers number their own
    processes and two hosts of a cluster may have the same name. `start` is the start time of the process in ticks since
    boot, because the system reuses process numbers.
    """

    host: str
    boot: str
    pid: int
    start: int

    @property
    def is_here(self) -> bool:
        """Whether the current process can see this one, and so can tell whether it has ended."""
        return self.boot == _boot() != ""

    @property
    def has_ended(self) -> bool:
        """Whether it has certainly ended; False if the current process cannot see it."""
        return self.is_here and _start(self.pid) != self.start

    @property
    def tag(self) -> str:
        """Identifies the process in file names; see `tagged_has_ended`."""
        return f"{_short(self.boot)}.{self.pid}.{self.start}"

    def __str__(self) -> str:
        return f"process {self.pid} on host '{self.host}'"


def this_process() -> Process:
    pid = os.getpid()
    return Process(socket.gethostname(), _boot(), pid, _start(pid) or 0)


def tagged_has_ended(tag: str) -> bool | None:
    """Whether the process with this tag has ended; None if the current process cannot tell."""
    boot, *numbers = tag.split(".")
    if boot != _short(_boot()) or not _boot() or len(numbers) != 2 or not all(map(str.isdigit, numbers)):
        return None
    pid, start = map(int, numbers)
    return _start(pid) != start


def _short(boot: str) -> str:
    return f"{zlib.crc32(boot.encode()):08x}"


@cache
def _boot() -> str:
    """Boot ID and PID namespace; empty on a system without /proc."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        return ""
    return f"{boot}.{namespace}"


def _start(pid: int) -> int | None:
    """The start time of a process in ticks since boot; None if it has ended, also for a zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *rest = status.rpartition(")")[2].split()  # The program name before it may contain anything.
    return None if state in "ZX" else int(rest[18])
