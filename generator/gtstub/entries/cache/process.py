"""Identifies processes that own files in a cache, and detects whether they have ended."""

from __future__ import annotations

import dataclasses
import os
import socket
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Process:
    """
    A process. `boot` identifies the boot of the system and the PID namespace, because containers number their own
    processes and two hosts of a cluster may have the same name. `start` is the start time of the process in ticks since
    boot, because the system reuses process numbers. Raises TypeError or ValueError for members of other types.
    """

    host: str
    boot: str
    pid: int
    start: int

    def __post_init__(self) -> None:
        if [type(member) for member in (self.host, self.boot, self.pid, self.start)] != [str, str, int, int]:
            raise TypeError(self)
        if self.pid <= 0 or not self.host.isprintable():
            raise ValueError(self)

    @property
    def has_ended(self) -> bool | None:
        """Whether it has ended; None if the current process cannot tell."""
        return _has_ended(self.pid, self.start) if self.boot == _boot() != "" else None

    @property
    def tag(self) -> str:
        """Identifies the process in file names; see `tagged_has_ended`."""
        return f"{_short(self.boot)}.{self.pid}.{self.start}"

    def __str__(self) -> str:
        return f"process {self.pid} on host '{self.host}'"


def this_process() -> Process:
    pid = os.getpid()
    try:
        start = _start(_status(pid))
    except OSError:
        start = 0
    return Process(socket.gethostname(), _boot(), pid, start)


def tagged_has_ended(tag: str) -> bool | None:
    """Whether the process with this tag has ended; None if the current process cannot tell."""
    boot, *numbers = tag.split(".")
    if boot != _short(_boot()) or not _boot() or len(numbers) != 2 or not all(map(is_number, numbers)):
        return None
    pid, start = map(int, numbers)
    return _has_ended(pid, start)


def is_number(text: str) -> bool:
    """Whether a text consists of the digits 0 to 9. int() knows others, and str.isdigit() even more."""
    return text.isascii() and text.isdigit()


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


def _has_ended(pid: int, start: int) -> bool | None:
    """Whether no process has this number and start time, or it is a zombie; None if the system hides the process."""
    try:
        status = _status(pid)
    except OSError:
        pass
    else:
        return status[0] in "ZX" or _start(status) != start
    with suppress(PermissionError):  # Another user's. The mount option 'hidepid' removes those from /proc.
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return True
    return None


def _status(pid: int) -> list[str]:
    """What /proc says about a process after its name. Raises OSError if it has ended or is hidden."""
    status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return status.rpartition(")")[2].split()  # The program name before it may contain anything.


def _start(status: list[str]) -> int:
    """The start time of a process in ticks since boot."""
    return int(status[19])
