"""Which process something belongs to, and whether that process is gone."""

from __future__ import annotations

import dataclasses
import os
import socket
import zlib
from functools import cache
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Owner:
    """
    A process. `boot` is of the running system that counts its process numbers: a container counts its own, and two
    hosts of a cluster may have one name. `start` is when the process was started, in ticks since the system was:
    numbers of processes are used again.
    """

    host: str
    boot: str
    pid: int
    start: int

    @property
    def is_here(self) -> bool:
        """Whether this process can see it, and so knows whether it is gone."""
        return self.boot == _boot() != ""

    @property
    def is_gone(self) -> bool:
        """Whether it has surely ended; False where it runs elsewhere."""
        return self.is_here and _start(self.pid) != self.start

    @property
    def tag(self) -> str:
        """What the name of a file says of its owner; see `is_tag_of_gone()`."""
        return f"{_short(self.boot)}.{self.pid}.{self.start}"

    def __str__(self) -> str:
        return f"process {self.pid} on host '{self.host}'"


def this_process() -> Owner:
    pid = os.getpid()
    return Owner(socket.gethostname(), _boot(), pid, _start(pid) or 0)


def is_tag_of_gone(tag: str) -> bool | None:
    """Whether the process of a tag has ended; None where this process cannot tell."""
    boot, *numbers = tag.split(".")
    if boot != _short(_boot()) or not _boot() or len(numbers) != 2 or not all(map(str.isdigit, numbers)):
        return None
    pid, start = map(int, numbers)
    return _start(pid) != start


def _short(boot: str) -> str:
    return f"{zlib.crc32(boot.encode()):08x}"


@cache
def _boot() -> str:
    """Empty where /proc is not there to tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        return ""
    return f"{boot}.{namespace}"


def _start(pid: int) -> int | None:
    """When a process was started; None where it has ended, even if its parent has not noticed."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *rest = status.rpartition(")")[2].split()  # behind the name of its program, which may hold anything
    return None if state in "ZX" else int(rest[18])
