"""
Whose files decide what runs. Loading an entry runs its code, and an answer of CMake names the compiler, so only this
user, root, and those whom GTSTUB_TRUST names may have been able to write them. The runtime decides
(runtime/program/trust.c), because hosts in C and Fortran load, too.

Directories that gtstub makes get the permissions that this requires. Extension modules are imported in the functions,
because commands that only inspect entries do not need the host.

Each check raises the audit event ASKED with the path that was checked (docs.python.org/3/library/sys.html#sys.audit).
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from gtstub.errors import ConfigError, GtstubError, TrustError
from gtstub.util.atomic import WRITABLE_BY_OTHERS
from gtstub.util.regular import opened, read_opened

ASKED = "gtstub.check_trust"

MARKER = ".gtstub-cache"
"""The file by which the runtime knows the root of a cache: it checks all directories from there down to an entry."""


def check_directory(directory: int, path: Path) -> None:
    """
    Raises TrustError if somebody who is not trusted could have written a directory, of which `directory` is a
    descriptor, or for an entry one of those from the root of the cache down to it. ConfigError if GTSTUB_TRUST is
    malformed.
    """
    from gtstub import _host

    sys.audit(ASKED, str(path))
    try:
        _host.trust_directory(directory, os.fsencode(path))
    except (RuntimeError, ValueError) as error:
        raise _refusal(error, path) from None


def check_file(file: int, path: Path, name: str) -> None:
    """Does the same for the file with this name in the directory `path`, of which `file` is a descriptor."""
    from gtstub import _host

    sys.audit(ASKED, f"{path}/{name}")
    try:
        _host.trust_file(file, os.fsencode(f"{path}/{name}"))
    except (RuntimeError, ValueError) as error:
        raise _refusal(error, path) from None


def check_root(root: Path) -> None:
    """Does the same for the directory of a cache, before a program is built that could not be loaded from there."""
    with opened(root) as directory:
        check_directory(directory, root)


def mark_root(root: Path) -> None:
    """
    Makes the marker of a cache in its root if it is missing. First checks the root as `check_root` does, so that a
    directory such as /tmp gets none.
    """
    if not (root / MARKER).exists():
        check_root(root)
        with suppress(OSError):  # Another process was faster, or this user can write only in a subdirectory.
            (root / MARKER).touch(0o644, exist_ok=False)


def read_trusted(file: Path, most: int) -> bytes:
    """
    The contents of a regular file of at most `most` bytes. Raises TrustError as `check_file` for the file and its
    directory, ConfigError if GTSTUB_TRUST is malformed, OSError if it cannot be read.
    """
    with opened(file.parent) as directory:
        check_directory(directory, file.parent)
        with opened(file, directory) as descriptor:
            check_file(descriptor, file.parent, file.name)
            return read_opened(descriptor, most, file)


def make_directory(path: Path, mode: int = 0o755, *, exist_ok: bool = False) -> None:
    """Makes a directory of the cache and those above it, whatever the umask is. Raises OSError."""
    if not path.parent.exists():
        make_directory(path.parent, exist_ok=True)
    try:
        path.mkdir(mode)
    except FileExistsError:
        if not stat.S_ISDIR(path.stat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from None
        if not exist_ok:
            raise
    else:
        restrict(path)


def restrict(path: Path) -> None:
    """
    Takes from a file or a directory, which this process has just made, the permissions with which it would not be
    loaded. What is in a group cache, whose bit 'setgid' gives it its group, gets those that the group needs.
    """
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    wanted = mode & ~WRITABLE_BY_OTHERS
    above = path.parent.stat()
    is_of_group = above.st_mode & stat.S_ISGID and above.st_mode & stat.S_IWGRP and above.st_gid == status.st_gid
    if is_of_group:
        from gtstub import _host

        if _host.trusts_group(status.st_gid):
            wanted |= stat.S_IRWXG if stat.S_ISDIR(status.st_mode) else stat.S_IRGRP
    if wanted != mode:
        path.chmod(wanted)


def _refusal(error: RuntimeError | ValueError, path: Path) -> GtstubError:
    return ConfigError(str(error)) if isinstance(error, ValueError) else TrustError(f"'{path}' is not used: {error}")
