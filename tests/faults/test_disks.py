"""Disks that are really full, and directories that really cannot be written."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults import invariants
from tests.faults.builder import key_of
from tests.faults.workshop import Ended, Workshop, environment

PAGE = os.sysconf("SC_PAGE_SIZE")
"""In which a file system in memory counts."""

SIZES = 10
"""Disks that are tried: from one that a directory hardly fits on to one that holds twice what a build leaves."""


def mounting(script: str, workshop: Workshop, root: Path) -> Ended:
    """
    Runs a script of the shell where it may mount on `root`, and where '$build' is a builder of program 0 there. Skips
    the test where this system has no such place.
    """
    unshare = ["unshare", "--mount", "--map-root-user"]
    can_mount = shutil.which("unshare") and subprocess.run(
        [*unshare, "mount", "-t", "tmpfs", "none", root], capture_output=True, text=True, check=False
    )
    if not can_mount or can_mount.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {can_mount.stderr if can_mount else 'unshare is missing'}")
    return Ended(
        subprocess.Popen(
            [*unshare, "sh", "-c", script],
            env=environment({"build": shlex.join(workshop.command(root)), "root": root}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )


def test_full_disk(workshop: Workshop, tmp_path: Path) -> None:
    """On disks of several sizes; what was complete is still there, and when there is room again the rest is built."""
    assert workshop.run(tmp_path / "whole").status == 0
    pages = sum(-(-path.stat().st_size // PAGE) for path in (tmp_path / "whole").rglob("*") if path.is_file())
    root = tmp_path / "disk"
    root.mkdir()
    built = 0
    for size in (2 * pages * PAGE * part // SIZES for part in range(1, SIZES + 1)):
        script = f"""
            mount -t tmpfs -o size={size},mode=755 none "$root" || exit 99
            $build; status=$?
            cp -r "$root/." {tmp_path}/{size}
            exit $status
        """
        ended = mounting(script, workshop, root)
        assert ended.status != 99, ended.errors
        built += ended.status == 0
        if ended.status != 0:
            assert ended.is_refusal, ended.errors
            assert str(root) in ended.errors
        invariants.check(workshop, tmp_path / f"{size}")
    assert 0 < built < SIZES


def test_largest_file_is_too_small(workshop: Workshop, tmp_path: Path) -> None:
    """A limit of the shell's, as a quota: writes stop in the middle, with another error than a full disk gives."""
    largest = max(path.stat().st_size for path in (workshop.parts / "0").iterdir())
    refused = 0
    for size in (0, 100, 1000, largest - 1, largest):
        root = tmp_path / f"{size}"
        process = subprocess.Popen(
            workshop.command(root),
            env=environment({}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda size=size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        )
        ended = Ended(process)
        refused += ended.status != 0
        invariants.check(workshop, root, ended)
    assert refused == 4


@pytest.mark.parametrize("has_entry", [True, False])
def test_read_only_file_system(workshop: Workshop, tmp_path: Path, has_entry: bool) -> None:
    root = tmp_path / "cache"
    root.mkdir()
    if has_entry:
        assert workshop.run(root, 0).status == 0
    before = invariants.entries(root)
    script = 'mount --bind "$root" "$root" && mount -o remount,bind,ro "$root" || exit 99; $build'
    ended = mounting(script, workshop, root)
    check_read_only(ended, root, has_entry)
    invariants.check(workshop, root, None, before)


MISSING = """if True:
    import sys
    from pathlib import Path
    from gtstub.entries.cache.lookup import Request
    from gtstub.entries.cache.store import Cache
    from gtstub.entries.cache.temporary import writable
    from gtstub.errors import CacheError
    try:
        print(Request("prog", {}, {}, writable(Cache(Path(sys.argv[1])))).find())
    except CacheError as error:
        print(error)
"""


def test_mounted_noexec(workshop: Workshop, tmp_path: Path) -> None:
    """An entry cannot be loaded, and what is missing is not built to find that out; a list of programs is built."""
    root = tmp_path / "cache"
    root.mkdir()
    find = shlex.join([sys.executable, "-c", MISSING, str(root)])
    script = f"""
        mount -t tmpfs -o noexec,mode=755 none "$root" || exit 99
        {find}; GTSTUB_MODE=Build {find}
        $build
    """
    ended = mounting(script, workshop, root)
    assert ended.output == (
        f"No program can be loaded from the cache '{root}': its file system is mounted with the option noexec. Name a"
        " directory on another file system in GTSTUB_CACHE_DIR.\nNone\n"
    )
    assert ended.errors.rstrip().endswith(
        f"RuntimeError: Cannot load library '{root / key_of(0)}/prog_stub.so': its file system is mounted with the"
        " option noexec, so no library can be loaded from there; name a directory on another file system in"
        " GTSTUB_CACHE_DIR, or copy the directory of the library to one."
    )


def test_temporary_directory_mounted_noexec(workshop: Workshop, tmp_path: Path) -> None:
    """The user has not chosen the cache of the refusal, so a message says before why it is used."""
    find = shlex.join([sys.executable, "-c", MISSING, "/proc/cache"])
    ended = mounting(f'mount -t tmpfs -o noexec none "$root" || exit 99; TMPDIR="$root" {find}', workshop, tmp_path)
    assert ended.output.startswith(f"No program can be loaded from the cache '{tmp_path}/gtstub-")
    assert ended.errors.startswith("gtstub: the cache '/proc/cache' cannot be written.")


@pytest.mark.parametrize("has_entry", [True, False])
def test_read_only_directory(workshop: Workshop, tmp_path: Path, has_entry: bool) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write to every directory")
    root = tmp_path / "cache"
    root.mkdir()
    if has_entry:
        assert workshop.run(root, 0).status == 0
    root.chmod(0o555)
    ended = workshop.run(root, 0)
    root.chmod(0o755)
    check_read_only(ended, root, has_entry)
    invariants.check(workshop, root)


def check_read_only(ended: Ended, root: Path, has_entry: bool) -> None:
    """An entry is used where it lies; one that is missing cannot be built, and the error says where and why."""
    if has_entry:
        assert (ended.status, ended.errors, ended.output) == (0, "", f"{root / key_of(0)}\n")
        return
    assert ended.is_refusal, ended.errors
    assert str(root) in ended.errors
    assert "Read-only file system" in ended.errors or "Permission denied" in ended.errors
