"""
A cache entry: the directory of one compiled program.

    <program>-<32 hexadecimal digits>/   the key (key.py)
        lib<name>.so                     the SDFG library that DaCe built
        <name>_stub.so                   the call stub, with its sources <name>_stub.c and <name>_stub.h
        program.json, sdfg.json          the two signatures
        sdfg.json.gz                     the SDFG as it was lowered, for `gtstub check` and `gtstub report`
        stage-00-lowered.sdfg.json.gz    and so on: the SDFGs of gt4py's stages before it, with GTSTUB_KEEP_STAGES=1
        program.sdfgz                    the SDFG as DaCe compiled it, for DaCe's tools
        manifest.json                    describes the entry (manifest.py)

An entry can be moved, because it does not contain its own path. `store.py` publishes entries. This module imports
little, because a model loads many programs.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gtstub import settings
from gtstub.entries import spans
from gtstub.entries.cache import manifest as manifests
from gtstub.entries.cache.manifest import File, Manifest, ManifestError
from gtstub.entries.trust import check_directory, check_file
from gtstub.errors import CacheError
from gtstub.util.canonical import canonical, plain
from gtstub.util.regular import opened

if TYPE_CHECKING:
    from gtstub._host import Program

_END_OF_KEY = re.compile(r"-[0-9a-f]{32}\Z")

COMPILED_SDFG = "program.sdfgz"
"""The file of an entry with the SDFG after DaCe's code generation."""

LOWERED_SDFG = "sdfg.json.gz"
"""The file of an entry with the SDFG before DaCe's code generation: compressed JSON. Older entries have none."""

STAGE = "stage-"
"""How the files of an entry with the SDFGs of earlier stages begin."""

USE_KNOWN = 60 * 60
"""Seconds to which an entry records its last use, so that a model does not write to its cache at every start."""


_compared: set[tuple[tuple[int, ...], File]] = set()
"""States of files whose contents this process has compared: a program is found first, and loaded later."""


class _Found(NamedTuple):
    """The manifest of an entry, and the state of each file before it was read."""

    manifest: Manifest
    files: Mapping[str, os.stat_result]


def _state(status: os.stat_result) -> tuple[int, int, int, int]:
    """Differs for a file that was replaced or written to."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class Entry(NamedTuple):
    """
    The entry in the directory `path`, which need not exist.

    Processes pass compiled programs to each other as entries. Loading one requires neither gt4py nor DaCe.
    """

    path: Path

    @property
    def key(self) -> str:
        return self.path.name

    @property
    def manifest_file(self) -> Path:
        return self.path / manifests.FILE

    def manifest(self) -> Manifest:
        """
        The manifest. Raises CacheError unless all files exist and have the sizes that they were built with, or if the
        directory has the key of another entry for its name. `verify` also compares the contents of the files.
        """
        with self._opened() as directory:
            return self._find_files(directory).manifest

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """A descriptor of the directory: what is checked and read through it is one entry, whatever has its path."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise self._missing() from None
        except OSError as error:
            raise CacheError(f"The cache entry '{self.path}' cannot be read: {error.strerror}.") from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _missing(self) -> CacheError:
        return CacheError(f"There is no cache entry at '{self.path}'.")

    def _find_files(self, directory: int) -> _Found:
        try:
            manifest = manifests.read(self.manifest_file, directory)
        except FileNotFoundError:
            raise self._missing() from None
        except ManifestError as error:
            raise CacheError(f"The manifest of cache entry '{self.path}' {error}.") from error.__cause__
        if self.key != manifest.key and _END_OF_KEY.search(self.key):
            raise CacheError(f"The cache entry '{self.path}' was renamed: its manifest has the key '{manifest.key}'.")
        files = {}
        for name, expected in manifest.files.items():
            try:
                status = files[name] = os.stat(name, dir_fd=directory)
            except OSError:
                raise CacheError(f"The cache entry '{self.path}' lacks its file '{name}'.") from None
            if not stat.S_ISREG(status.st_mode):  # To read a FIFO or a device might never end.
                raise CacheError(f"File '{name}' of cache entry '{self.path}' is not a regular file.")
            if status.st_size != expected.bytes:
                raise CacheError(
                    f"File '{name}' of cache entry '{self.path}' has {status.st_size} bytes, not {expected.bytes}."
                )
        return _Found(manifest, files)

    def verify(self) -> Manifest:
        """The manifest. Raises CacheError unless every file has the size and digest that it was built with."""
        return self._verify_files().manifest

    def _verify_files(self, *, for_calls: bool = False) -> _Found:
        """
        Reads the files after their states, so that a file that is replaced meanwhile has another state. Calls do not
        need the SDFGs. For calls, raises TrustError if somebody who is not trusted could have written a file.
        """
        with self._opened() as directory:
            if for_calls:
                check_directory(directory, self.path)
                self._check_manifest(directory)
            manifest, _ = self._find_files(directory)
            states = {}
            for name, expected in manifest.files.items():
                is_needed = not (for_calls and name.endswith((COMPILED_SDFG, LOWERED_SDFG)))
                try:
                    with opened(self.path / name, directory) as file:
                        if for_calls:
                            check_file(file, self.path, name)
                        states[name] = os.fstat(file)
                        is_same = not is_needed or _is_same(file, states[name], expected, for_calls=for_calls)
                except OSError as error:
                    raise self.unreadable(name, error) from None
                if not is_same:
                    raise CacheError(
                        f"File '{name}' of cache entry '{self.path}' is not the one that was built: its digest differs."
                    )
            return _Found(manifest, states)

    def _check_manifest(self, directory: int) -> None:
        try:
            with opened(self.manifest_file, directory) as file:
                check_file(file, self.path, manifests.FILE)
        except OSError:
            pass  # Reading it says why.

    def unreadable(self, name: str, error: OSError) -> CacheError:
        return CacheError(f"File '{name}' of cache entry '{self.path}' cannot be read: {error.strerror}.")

    def verify_usable(self) -> Manifest:
        """The manifest. Raises CacheError unless the files that calls need are whole and this machine can run them."""
        manifest = self._verify_files(for_calls=True).manifest
        self._check_machine(manifest)
        return manifest

    def check_trusted(self) -> None:
        """Raises TrustError if somebody who is not trusted could have written it, CacheError if it is unreadable."""
        with self._opened() as directory:
            check_directory(directory, self.path)
            for name in sorted(os.listdir(directory)):  # noqa: PTH208  of a descriptor
                try:
                    with opened(Path(name), directory) as file:
                        check_file(file, self.path, name)
                except OSError as error:
                    raise self.unreadable(name, error) from None

    def _check_machine(self, manifest: Manifest) -> None:
        if reason := unsupported(manifest):
            raise CacheError(f"The cache entry '{self.path}' {reason}: build it on this machine.")

    def whole_manifest(self) -> Manifest | None:
        """The manifest; None if `verify` raises an error. This machine may still be unable to run the entry."""
        try:
            return self.verify()
        except CacheError:
            return None

    def is_unreadable(self) -> bool:
        """Whether it exists, but this user lacks the permission to read it."""
        if not os.access(self.path, os.R_OK | os.X_OK):
            return self.path.is_dir()
        try:
            return any(not os.access(file, os.R_OK) and file.exists() for file in self.path.iterdir())
        except (FileNotFoundError, NotADirectoryError):  # It was removed just now.
            return False

    def is_foreign(self) -> bool:
        """Whether another version of gtstub made the entry. gtstub neither loads nor replaces such an entry."""
        return manifests.is_foreign(self.manifest_file)

    def load(self, baked: Mapping[str, Any] | None = None) -> Program:
        """
        Loads the compiled program.

        Raises CacheError if a file is missing or has changed, if this machine cannot run the entry, or if a value that
        was compiled in differs from the value of the same name in `baked`; TypeError if `baked` is no mapping.
        """
        return self.load_with_manifest(baked)[0]

    def load_with_manifest(self, baked: Mapping[str, Any] | None = None) -> tuple[Program, Manifest]:
        """Does the same as `load`; returns the manifest too, which it reads only once."""
        with spans.span("load", self.key):
            found = self._verify_files(for_calls=True)
            self._check_machine(found.manifest)
            self._check_baked(found.manifest, {} if baked is None else baked)
            try:
                program = self._load_files(found)
            except RuntimeError:
                # If another process removed or replaced the entry, this raises CacheError or the second attempt
                # succeeds.
                found = self._verify_files(for_calls=True)
                program = self._load_files(found)
            self.mark_used()
        built = found.manifest.built
        spans.add_build(self.key, found.manifest.name, built.time, built.stages)
        return program, found.manifest

    def _load_files(self, found: _Found) -> Program:
        """Raises RuntimeError if the stub or the library is no longer the file that was found."""
        from gtstub import _host  # Here, because commands that only inspect entries do not need the host.

        path = self.path.absolute()  # The program keeps it.
        stub, library = found.manifest.stub, found.manifest.library
        return _host.load(path / stub, path / library, (_state(found.files[stub]), _state(found.files[library])))

    def _check_baked(self, manifest: Manifest, baked: Mapping[str, Any]) -> None:
        if not isinstance(baked, Mapping):
            raise TypeError(f"'baked' must be a mapping of names to values, not '{type(baked).__name__}'.")
        for name, value in baked.items():
            if name in manifest.baked and canonical(manifest.baked[name]) != canonical(plain(value)):
                raise CacheError(
                    f"The cache entry '{self.path}' has {name} = {json.dumps(manifest.baked[name])} compiled in,"
                    f" but {name} = {json.dumps(plain(value))} was requested: build it for that value, or pass the"
                    " value at run time."
                )

    def mark_used(self) -> None:
        """Records the use in the directory's modification time, once in `USE_KNOWN`, except in shared layers."""
        if shared := settings.shared_cache_dirs():
            # The innermost layer has the entry: the root may be in a shared layer, and a shared layer in the root.
            root, place = settings.cache_dir()[0].resolve(), self.path.resolve()
            layers = {root, *(layer.resolve() for layer in shared)}
            if next((each for each in place.parents if each in layers), root) != root:
                return
        try:
            if abs(time.time() - self.path.stat().st_mtime) > USE_KNOWN:
                os.utime(self.path)
        except OSError:
            pass  # The entry may belong to another user.


def _is_same(file: int, status: os.stat_result, expected: File, *, for_calls: bool) -> bool:
    """Whether a file has the content that was built. For calls, one that has not changed since is not read again."""
    known = (*_state(status), status.st_ctime_ns), expected
    if for_calls and known in _compared:
        return True
    if File.of(file) != expected:
        return False
    _compared.add(known)
    return True


def is_entry(path: Path) -> bool:
    """Whether a path is an entry, whole or not. The subdirectory of a code path, for example, is not."""
    if path.name.startswith(".") or not path.is_dir():
        return False
    return _END_OF_KEY.search(path.name) is not None or Entry(path).manifest_file.exists()


def entries_in(directory: Path) -> list[Path]:
    """The entries in a directory, whole or not, in the order of their keys. Raises OSError."""
    return sorted(filter(is_entry, directory.iterdir()))


def is_in_entry(path: Path) -> bool:
    """Whether a file, which need not exist, is in an entry, or would be once links are followed."""
    return any(_is_made(parent) for parent in path.resolve().parents)


def _is_made(path: Path) -> bool:
    """Whether gtstub has made a directory as an entry. Other programs have manifests, too."""
    try:
        manifests.read(path / manifests.FILE)
    except (OSError, ManifestError):
        return _END_OF_KEY.search(path.name) is not None
    return True


def unsupported(manifest: Manifest) -> str:
    """Why this machine cannot run an entry, to complete a sentence about the entry; empty if it can run it."""
    machine = manifest.machine
    if machine.cpu:
        from gtstub.entries.toolchain.cpu import lacking  # Here, because only some entries need it.

        if missing := lacking(machine.cpu):
            names = ", ".join(f"'{name}'" for name in missing)
            return f"was built for a CPU with {names}, which this one lacks"
    if machine.arch.startswith(("sm_", "gfx")):
        from gtstub.entries.toolchain.arch import arch  # Here, because only programs for a GPU need it.

        if (found := arch("gpu")) not in ("", machine.arch):
            return f"was built for '{machine.arch}', but the GPU here is '{found}'"
    return ""
