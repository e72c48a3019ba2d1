"""
Removes what killed builders left in a cache, and what builds no longer need. The next build does this, and so does
'gtstub cache prune'.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gtstub.entries.cache.claims import DIRECTORY as CLAIMS
from gtstub.entries.cache.claims import FAILURES, LOWERING, read_claim
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.process import is_number, tagged_has_ended, this_process
from gtstub.entries.toolchain.machine import BUILD_CACHES, BYTE_CODE, machine_directory

BUILDING = ".building-"

SET_ASIDE = "set-aside"
"""The subdirectory of a private directory for an entry, under its own name, that is being removed or may go back."""

LONGEST_BUILD = 24 * 60 * 60
"""Seconds after which the files of a process on another host count as left behind."""

FAILED_KEPT = 21 * LONGEST_BUILD
"""Seconds that gtstub keeps a stub that did not compile."""

BUILD_CACHES_KEPT = 4
"""How many of both stay, those that were used last. A new one costs a build a few seconds."""

BUILD_CACHE_IN_USE = 60 * 60
"""Seconds for which a build may still use one of them."""


def building_name(key: str) -> str:
    """A new name for a directory to build in. It identifies the process."""
    return f"{BUILDING}{key[:64]}-{this_process().tag}-{os.urandom(4).hex()}"


def sweep(root: Path) -> None:
    """Removes all leftovers from a cache, except those that it has no permission to remove."""
    for path in leftovers(root):  # a generator: each claim is read immediately before it is removed
        if path.is_dir():
            discard(path, root)
        else:
            with suppress(OSError):
                path.unlink()


def set_aside(path: Path, private: Path) -> Path:
    """
    Moves an entry into a private directory; returns its new path. `discard`, or a later `sweep` if this process is
    killed, moves a whole entry back if its key is free. To remove it for good, rename it within the directory.
    """
    (private / SET_ASIDE).mkdir()
    return path.rename(private / SET_ASIDE / path.name)


def discard(private: Path, root: Path) -> None:
    """Removes a private directory. Moves an entry that was set aside back, if it is whole and its key is free."""
    for path in _listed(private / SET_ASIDE):
        if Entry(path).whole_manifest() is not None or Entry(path).is_foreign():
            try:
                path.rename(root / path.name)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    return  # The next sweep tries again.
    shutil.rmtree(private, ignore_errors=True)


def leftovers(root: Path) -> Iterator[Path]:
    """Directories and needless claims of processes that have ended, and old records of failed builds."""
    for path in _listed(root):
        if path.name.startswith(BUILDING):
            has_ended = tagged_has_ended(path.name.split("-")[-2])
            if has_ended or (has_ended is None and _is_older(path, LONGEST_BUILD)):
                yield path
    yield from (path for path in _listed(root / CLAIMS) if _is_needless(path, root))
    for directory, kept in (("failed", FAILED_KEPT), (FAILURES, LONGEST_BUILD)):
        yield from (path for path in _listed(root / directory) if _is_older(path, kept))
    for place in dict.fromkeys((root, machine_directory() or root)):
        for directory in (BUILD_CACHES, BYTE_CODE):
            yield from _needless_build_caches(place / directory)


def _needless_build_caches(directory: Path) -> Iterator[Path]:
    """Those not used for as long as stubs are kept, and all but the most recently used ones if no build uses them."""
    by_use = sorted(_listed(directory), key=_time, reverse=True)
    for number, path in enumerate(by_use):
        if _is_older(path, BUILD_CACHE_IN_USE if number >= BUILD_CACHES_KEPT else FAILED_KEPT):
            yield path


def _is_needless(path: Path, root: Path) -> bool:
    """
    Whether the owner of a claim has ended, and the entry exists or the claim is a day old; an owner that this process
    cannot see counts as ended after that day. Otherwise the next builder must remove the claim: if generations began
    anew, two processes, one that looked before the removal and one that looked after it, would both build.
    """
    is_old = _is_older(path, LONGEST_BUILD)
    key, _, generation = path.name.rpartition(".")
    claim = read_claim(path) if is_number(generation) else None
    has_ended = None if claim is None or claim.owner is None else claim.owner.has_ended
    if has_ended is None:
        return is_old
    return has_ended and (is_old or (root / key.removesuffix(LOWERING)).exists())


def _listed(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def _is_older(path: Path, seconds: float) -> bool:
    """False for a time in the future, which a clock that was set back can cause."""
    return time.time() - _time(path) > seconds


def _time(path: Path) -> float:
    """The modification time in seconds since 1970; infinite for what no longer exists."""
    try:
        return path.stat().st_mtime
    except OSError:
        return math.inf
