"""
Claims: files that say which process builds an entry. Claims replace locks, which are unreliable on some
parallel file systems.

A claim is a file `<root>/.claims/<key>.<generation>`. The process that creates the file owns the claim. Among several
claims of a key, the one with the highest generation counts. The claim of a process that has ended stays: the next
process claims one generation more, so no process can remove another one's claim by mistake. If two processes build the
same entry all the same, `Cache.publish` lets both succeed.

The owner renews its claim every second. A process on another host cannot see whether the owner has ended, but it sees
the renewals.
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gtstub.entries.cache.process import Process, is_number, this_process
from gtstub.entries.trust import make_directory, restrict
from gtstub.errors import unwritable
from gtstub.util.regular import read_regular

DIRECTORY = ".claims"

LOWERING = ".lowering"
"""Appended to a key for the claim of the process that lowers the program, before the build."""

FAILURES = ".failures"
"""The directory of the notes that report failed builds to the waiting ranks (building/pending.py)."""

RENEWAL = 1.0
"""Seconds between two renewals of a claim."""

LARGEST = 2**16
"""Bytes of the largest claim that is read."""


@dataclasses.dataclass(frozen=True)
class BuildClaim:
    """A claim as it was read. `owner` is None while the file is being written; `renewals` counts from 0."""

    generation: int
    owner: Process | None
    renewals: int


def claim_file(root: Path, key: str, generation: int) -> Path:
    return root / DIRECTORY / f"{key}.{generation}"


def claim_files(root: Path, key: str) -> dict[int, Path]:
    """The files of all claims of a key by generation."""
    found = {}
    with suppress(OSError):
        for file in (root / DIRECTORY).iterdir():
            name, _, generation = file.name.rpartition(".")
            if name == key and is_number(generation):
                found[int(generation)] = file
    return found


def read_claim(file: Path) -> BuildClaim | None:
    """Reads a claim; None if it has been released. A file that is no claim counts as one that is being written."""
    generation = int(file.suffix[1:])
    try:
        document = json.loads(read_regular(file, LARGEST))
        renewals = document["renewals"]
        if type(renewals) is int:
            return BuildClaim(generation, Process(**document["owner"]), renewals)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        pass
    return BuildClaim(generation, None, 0)


@contextmanager
def claiming(root: Path, key: str, generation: int) -> Iterator[bool]:
    """
    Claims a key until the end of the block. Yields False if another process or thread was faster.

    Raises CacheError if the cache cannot be written.
    """
    file = claim_file(root, key, generation)
    owner = this_process()
    try:
        make_directory(file.parent, exist_ok=True)
    except OSError as error:
        raise unwritable(file.parent, error) from error
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        yield False
        return
    except OSError as error:
        raise unwritable(file, error) from error
    try:
        restrict(file)
        _write(descriptor, owner, 0)
    except OSError as error:
        _release(root, key, generation, descriptor)
        raise unwritable(file, error) from error
    released = threading.Event()
    renewing = threading.Thread(target=_renew, args=(descriptor, owner, released), daemon=True)
    renewing.start()
    try:
        yield True
    finally:
        if os.getpid() == owner.pid:  # A forked child must not release its parent's claim.
            released.set()
            renewing.join()
            _release(root, key, generation, descriptor)


def _renew(descriptor: int, owner: Process, released: threading.Event) -> None:
    renewals = 0
    while not released.wait(RENEWAL):
        renewals += 1
        with suppress(OSError):  # At worst another host sees no renewal and builds the entry too.
            _write(descriptor, owner, renewals)


def _write(descriptor: int, owner: Process, renewals: int) -> None:
    document = {"owner": dataclasses.asdict(owner), "renewals": renewals}
    os.pwrite(descriptor, json.dumps(document).encode(), 0)


def _release(root: Path, key: str, generation: int, descriptor: int) -> None:
    """Removes a claim and the older ones of its key. The claim itself comes last, so that no older one counts again."""
    file = claim_file(root, key, generation)
    with suppress(OSError):
        # If the file is a different one, the owner of a later claim has already removed this one.
        if os.path.samestat(os.fstat(descriptor), file.stat()):
            for older, overtaken in sorted(claim_files(root, key).items()):
                if older < generation:
                    overtaken.unlink(missing_ok=True)
            file.unlink()
    with suppress(OSError):  # A network file system may report a failed write only now. The claim is released anyway.
        os.close(descriptor)
