"""What killed builders leave in a cache: it goes away with the next build there, or by 'gtstub cache prune'."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gtstub.cache.claims import DIRECTORY as CLAIMS
from gtstub.cache.claims import FAILURES, LOWERING, read_claim
from gtstub.cache.entry import Entry
from gtstub.cache.process import tagged_has_ended, this_process

BUILDING = ".building-"

SET_ASIDE = "set-aside"
"""Where in a private directory an entry lies, under its own name, that is on its way out but may yet go back."""

LONGEST_BUILD = 24 * 60 * 60
"""Seconds after which what a process left that runs elsewhere, if it runs, is taken for left behind."""

FAILED_KEPT = 21 * LONGEST_BUILD
"""Seconds that a stub is kept that did not compile."""


def building_name(key: str) -> str:
    """A new name for a directory to build in; it says whose it is."""
    return f"{BUILDING}{key[:64]}-{this_process().tag}-{os.urandom(4).hex()}"


def sweep(root: Path) -> None:
    """Removes from a cache what nobody will ever want again. What cannot be removed stays."""
    for path in leftovers(root):  # not listed before: each claim is read right before it is removed
        if path.is_dir():
            discard(path, root)
        else:
            with suppress(OSError):
                path.unlink()


def set_aside(path: Path, private: Path) -> Path:
    """
    Takes an entry out of its place, into a private directory; returns where it is. With the directory it goes back, if
    it is needed, even if this process is killed: who wants it gone for good gives it another name there.
    """
    (private / SET_ASIDE).mkdir()
    return path.rename(private / SET_ASIDE / path.name)


def discard(private: Path, root: Path) -> None:
    """Removes a private directory. What was set aside goes back where it is whole, unless there is a new one."""
    for path in _listed(private / SET_ASIDE):
        if Entry(path).is_whole() or Entry(path).is_foreign():
            try:
                path.rename(root / path.name)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    return  # The next sweep tries again.
    shutil.rmtree(private, ignore_errors=True)


def leftovers(root: Path) -> Iterator[Path]:
    """What `sweep` removes: directories and needless claims of processes that are gone, old notes of failed builds."""
    for path in _listed(root):
        if path.name.startswith(BUILDING):
            has_ended = tagged_has_ended(path.name.split("-")[-2])
            if has_ended or (has_ended is None and _is_older(path, LONGEST_BUILD)):
                yield path
    yield from (path for path in _listed(root / CLAIMS) if _is_needless(path, root))
    for directory, kept in (("failed", FAILED_KEPT), (FAILURES, LONGEST_BUILD)):
        yield from (path for path in _listed(root / directory) if _is_older(path, kept))


def _is_needless(path: Path, root: Path) -> bool:
    """
    Whether a claim's builder is gone and nobody builds in its place: the entry is there, or it is a day old. Else the
    next builder removes it: where claims begin anew, two that looked before and after would both build.
    """
    is_old = _is_older(path, LONGEST_BUILD)
    key, _, generation = path.name.rpartition(".")
    claim = read_claim(path) if generation.isdigit() else None
    if claim is None or claim.owner is None or not claim.owner.is_here:
        return is_old
    return claim.owner.has_ended and (is_old or (root / key.removesuffix(LOWERING)).exists())


def _listed(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def _is_older(path: Path, seconds: float) -> bool:
    """Where the clock went backwards, what is of the future is new."""
    try:
        return time.time() - path.stat().st_mtime > seconds
    except OSError:
        return False
