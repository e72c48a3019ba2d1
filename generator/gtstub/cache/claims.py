"""
Claims: files that say which process builds an entry. There are no locks, because parallel file systems promise locks
and do not keep the promise.

A claim is a file `<root>/.claims/<key>.<generation>`. The one process that creates the file has the claim, and of
several claims of a key the one with the highest generation counts. The claim of a process that has ended is not
removed: the next process claims one generation more. So no process can remove the claim of another one by mistake. If
two processes build the same entry all the same, `Cache.publish` lets both succeed.

While a process holds a claim, it renews it every second. A process on another host, which cannot see whether the holder
has ended, sees the renewals.
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gtstub.cache.process import Process, this_process
from gtstub.errors import unwritable

DIRECTORY = ".claims"

LOWERING = ".lowering"
"""Appended to a key for the claim of the process that lowers the program, which comes before the build."""

FAILURES = ".failures"
"""The directory of the notes that tell waiting ranks that a build failed (building/pending.py)."""

RENEWAL = 1.0
"""Seconds between two renewals of a claim."""


@dataclasses.dataclass(frozen=True)
class Claim:
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
            if name == key and generation.isdigit():
                found[int(generation)] = file
    return found


def read_claim(file: Path) -> Claim | None:
    """Reads a claim; None if it has been released."""
    generation = int(file.suffix[1:])
    try:
        document = json.loads(file.read_bytes())
        return Claim(generation, Process(**document["owner"]), document["renewals"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError):
        return Claim(generation, None, 0)


@contextmanager
def claiming(root: Path, key: str, generation: int) -> Iterator[bool]:
    """
    Claims a key for the time of the block; gives False if another process or thread was faster.

    Raises CacheError if the cache cannot be written.
    """
    file = claim_file(root, key, generation)
    owner = this_process()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(file.parent, error) from error
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        yield False
        return
    except OSError as error:
        raise unwritable(file, error) from error
    try:
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
        if os.getpid() == owner.pid:  # A fork of the builder leaves the claim to the builder.
            released.set()
            renewing.join()
            _release(root, key, generation, descriptor)


def _renew(descriptor: int, owner: Process, released: threading.Event) -> None:
    renewals = 0
    while not released.wait(RENEWAL):
        renewals += 1
        with suppress(OSError):  # If other hosts see no renewal, one of them builds the entry too: no more is lost.
            _write(descriptor, owner, renewals)


def _write(descriptor: int, owner: Process, renewals: int) -> None:
    document = {"owner": dataclasses.asdict(owner), "renewals": renewals}
    os.pwrite(descriptor, json.dumps(document).encode(), 0)


def _release(root: Path, key: str, generation: int, descriptor: int) -> None:
    """Removes a claim and the older ones of its key; its own comes last, so that no older one counts again."""
    file = claim_file(root, key, generation)
    with suppress(OSError):
        # If the file is another one, a later claim has ended and removed this one.
        if os.path.samestat(os.fstat(descriptor), file.stat()):
            for older, overtaken in sorted(claim_files(root, key).items()):
                if older < generation:
                    overtaken.unlink(missing_ok=True)
            file.unlink()
    with suppress(OSError):  # A network file system may report a failed write now; the claim is gone all the same.
        os.close(descriptor)
