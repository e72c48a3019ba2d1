"""One call of a build and publish goes wrong, or the process is killed there: each call in turn, in each way."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.faults import invariants
from tests.faults.builder import key_of
from tests.faults.workshop import Workshop

WRITES = ("write", "pwrite", "sendfile", "copy_file_range", "writev")


def repeat(workshop: Workshop, tmp_path: Path, fault: str, only: Collection[str] = (), stays: bool = False) -> None:
    """
    Builds once for each call of a build, with the fault at that call; `only` may name those that it makes sense for. A
    fault that stays happens to all later calls too.
    """
    template = tmp_path / "template"
    assert workshop.run(template, 1).status == 0
    shutil.copytree(template, tmp_path / "counted")
    calls = workshop.calls(tmp_path / "counted", tmp_path / "log")
    assert {"fsync libprog.so", "fsync manifest.json", f"rename {key_of(0)}", "fsync counted"} <= set(calls)
    for number, call in enumerate(calls, 1):
        if only and call.split()[0] not in only:
            continue
        root = tmp_path / f"{number}"
        shutil.copytree(template, root)
        before = invariants.entries(root)
        settings = {"at": number, "fault": fault} | ({"stays": 1} if stays else {})
        ended = workshop.run(root, **workshop.injecting(root, **settings))
        try:
            invariants.check(workshop, root, ended, before)
        except Exception as error:
            error.add_note(
                f"'{fault}' at call {number} of {len(calls)}, '{call}'; then: {ended.errors or ended.status}"
            )
            raise


@pytest.mark.parametrize("fault", ["enospc", "before", "power"])
def test_each_call(workshop: Workshop, tmp_path: Path, fault: str) -> None:
    repeat(workshop, tmp_path, fault)


def test_from_each_call_on(workshop: Workshop, tmp_path: Path) -> None:
    """As on a disk that breaks: what tidies up fails too. test_disks.py has disks that are full."""
    repeat(workshop, tmp_path, "eio", stays=True)


@pytest.mark.parametrize("fault", ["short", "torn"])
def test_each_write(workshop: Workshop, tmp_path: Path, fault: str) -> None:
    repeat(workshop, tmp_path, fault, WRITES)
