"""
What DaCe keeps from one build for the next: what CMake found out about the compilers, and a precompiled header.

DaCe looks for it under its own settings alone, and so misses a change of LDFLAGS, of a toolchain file or of a compiler.
gtstub therefore names a directory of its cache to DaCe whose name has a digest of all of these. DaCe's third cache, of
commands, stays off: it saves a fiftieth of a second, and replaces the name of a program anywhere in them, such as that
of a program 'g' in '-g'.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib import metadata
from pathlib import Path

import dace
from dace import config, nodes
from dace.dtypes import ScheduleType

from gtstub.entries.cache.process import this_process
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.entries.toolchain.identity import identity_on_path
from gtstub.entries.toolchain.machine import BUILD_CACHES, machine_directory
from gtstub.entries.trust import check_root, make_directory
from gtstub.frameworks.dace.dace_config import Setting
from gtstub.stub.signature.model import Device

DIRECTORY = "DACE_BUILD_CACHE_DIR"
"""DaCe's environment variable for the directory. A user who sets it decides on DaCe's caches himself."""

STANDARD = "dace.libraries.standard."
"""The library of DaCe whose nodes need nothing but the compiler on a CPU."""

SEARCHED_BY_NONE = {
    ScheduleType.Default,
    ScheduleType.Sequential,
    ScheduleType.CPU_Multicore,
    ScheduleType.CPU_Persistent,
}
"""The schedules for which DaCe's CMake file searches no package besides OpenMP and threads."""

_alone = threading.Lock()
"""Held while the variable is set. DaCe's temporary files have the number of the process in their names, and no more."""


@contextmanager
def build_caches(
    root: Path, toolchain: Toolchain, settings: Mapping[str, Setting], sdfg: dace.SDFG, device: Device
) -> Iterator[None]:
    """
    Within the block, a build of `sdfg` by DaCe uses what an earlier build with the same toolchain and settings has left
    below the cache `root`, and leaves it for later ones. The block changes an environment variable of the process. If
    another thread is in such a block, or the directory cannot be made, the build uses nothing and leaves nothing.

    Raises TrustError if somebody who is not trusted could have written the directory.
    """
    if not _alone.acquire(blocking=False):
        with no_build_caches(settings):
            yield
        return
    try:
        if os.environ.get(DIRECTORY):
            yield
            return
        try:
            directory = _made(root, toolchain, settings)
        except OSError:
            with no_build_caches(settings):
                yield
            return
        reused = device == "cpu" and not searches_packages(sdfg)  # for a GPU, CMake looks for its toolkit
        with _set(settings, configure_cache=reused), _variable(directory):
            yield
    finally:
        _alone.release()


@contextmanager
def no_build_caches(settings: Mapping[str, Setting]) -> Iterator[None]:
    """Within the block, a build by DaCe neither uses nor leaves anything, except what a user has set in `settings`."""
    with _set(settings, precompiled_header=False, configure_cache=False):
        yield


def searches_packages(sdfg: dace.SDFG) -> bool:
    """
    Whether CMake may look for packages on the machine, such as BLAS, MPI or CUDA, when `sdfg` is built. What it finds
    is not part of the toolchain.
    """
    for node, _ in sdfg.all_nodes_recursive():
        if isinstance(node, nodes.LibraryNode) and not type(node).__module__.startswith(STANDARD):
            return True
        if isinstance(node, nodes.NestedSDFG) and node.sdfg is None:  # in a file
            return True
        if not all(name.startswith(f"{STANDARD}environments.cpu.") for name in getattr(node, "environments", ())):
            return True
        if getattr(node, "schedule", ScheduleType.Default) not in SEARCHED_BY_NONE:
            return True
    return False


def _made(root: Path, toolchain: Toolchain, settings: Mapping[str, Setting]) -> Path:
    """The directory for a toolchain and these settings, marked as used. Raises OSError and TrustError."""
    directory = (machine_directory() or root) / BUILD_CACHES / _name(toolchain, settings)
    make_directory(directory.parent, exist_ok=True)
    make_directory(directory, 0o700, exist_ok=True)
    check_root(directory.parent)
    check_root(directory)
    os.utime(directory)
    return directory


def _name(toolchain: Toolchain, settings: Mapping[str, Setting]) -> str:
    """
    Differs for all that CMake's answers depend on, and for each precompiled header, of which a directory thus has one.
    Also for users and boots, because process numbers are unique only within one (see `_alone`), and for containers,
    whose headers may differ although they have the same compiler.
    """
    known = {
        "toolchain": toolchain.digest,
        "dace": metadata.version("dace"),
        "settings": {name: str(each.value) for name, each in settings.items() if name.startswith("compiler.")},
        "path": os.environ.get("PATH"),
        "cmake": identity_on_path("cmake"),
        "user": os.getuid(),
        "boot": this_process().boot,
        "system": [_identity(path) for path in ("/", "/usr/include")],
    }
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:16]


def _identity(directory: str) -> list[int] | None:
    """Device, number and time of a directory; the time changes when a package adds or replaces what is in it."""
    try:
        status = os.stat(directory)  # noqa: PTH116
    except OSError:
        return None
    return [status.st_dev, status.st_ino, status.st_mtime_ns]


@contextmanager
def _set(settings: Mapping[str, Setting], **values: bool) -> Iterator[None]:
    """Sets those of DaCe's settings 'compiler.*' that no user has set and that the installed DaCe has."""
    with ExitStack() as changed:
        for name, value in values.items():
            if settings[f"compiler.{name}"].by == "gtstub":
                with suppress(KeyError):
                    changed.enter_context(config.set_temporary("compiler", name, value=value))
        yield


@contextmanager
def _variable(directory: Path) -> Iterator[None]:
    before = os.environ.get(DIRECTORY)
    os.environ[DIRECTORY] = str(directory)
    try:
        yield
    finally:
        if before is None:
            del os.environ[DIRECTORY]
        else:
            os.environ[DIRECTORY] = before
