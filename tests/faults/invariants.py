"""What must hold in a cache whatever happened to those who used it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gtstub.entries.cache.claims import read_claim
from gtstub.entries.cache.entry import Entry
from gtstub.entries.trust import MARKER
from tests.faults.builder import key_of
from tests.faults.workshop import Ended, Workshop

KILLED = -9

LAST = 3
"""The number of a program that only the observer has built: every build tidies up."""


def check(
    workshop: Workshop,
    root: Path,
    failed: Ended | None = None,
    before: Mapping[Path, int] | None = None,
    number: int = 0,
) -> None:
    """Holds everything below against a cache in which a process ended as `failed`, if one did."""
    if failed is not None:
        check_ending(failed, root)
    check_entries(root)
    check_works(workshop, root, number)
    assert (before or {}).items() <= entries(root).items(), "an entry that was complete is gone, or another one now"


def entries(root: Path) -> dict[Path, int]:
    """The inodes of all directories that have the name of an entry."""
    return {path: path.stat().st_ino for path in root.glob("*") if not path.name.startswith(".")}


def check_ending(ended: Ended, root: Path) -> None:
    """A process succeeds, is killed, or says in one message where and why it failed."""
    if ended.status not in (0, KILLED):
        assert ended.is_refusal, (ended.status, ended.errors)
        assert str(root) in ended.errors


def check_entries(root: Path) -> None:
    """What has the name of an entry is whole: at any time, whoever was killed."""
    for path in entries(root):
        Entry(path).verify()


def check_works(workshop: Workshop, root: Path, number: int) -> None:
    """A new process gets programs that compute what they should, and leaves nothing of those that failed before."""
    done = workshop.run(root, number, LAST)
    assert (done.status, done.errors) == (0, ""), f"exit status {done.status}:\n{done.errors}"
    assert done.output == f"{root / key_of(number)}\n{root / key_of(LAST)}\n", f"other entries: {done.output}"
    left = [path.name for path in root.iterdir() if path.name.startswith(".") and path.name not in (".claims", MARKER)]
    # A claim that was cut short does not say whose it is: it goes after a day. One whose entry is not there goes when
    # somebody builds that.
    left += [
        path.name
        for path in (root / ".claims").iterdir()
        if (claim := read_claim(path)) and claim.owner and (root / path.name.rpartition(".")[0]).exists()
    ]
    assert left == [], f"left behind: {left}"
