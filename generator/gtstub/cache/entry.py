"""
A cache entry: the directory of one compiled program.

    <program>-<32 hexadecimal digits>/   its name is the key (key.py)
        lib<name>.so                     the SDFG library that DaCe built
        <name>_stub.so                   the call stub, with its text in <name>_stub.c and <name>_stub.h
        program.json, sdfg.json          the two signatures
        manifest.json                    what all of this is (manifest.py)

An entry can be moved: nothing in it says where it lies. `store.py` publishes entries. This module imports little,
because a model loads many programs.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gtstub import settings
from gtstub.cache import manifest as manifests
from gtstub.cache.manifest import File, Manifest, ManifestError
from gtstub.errors import CacheError
from gtstub.util.canonical import canonical, plain

if TYPE_CHECKING:
    from gtstub._host import Program

DAY = 24 * 60 * 60
"""Seconds. The last use of an entry is known to the day, so that a model does not write to its cache at every start."""


class Entry(NamedTuple):
    """
    The entry in the directory `path`, which need not be there.

    An entry is what processes pass to each other for a compiled program. Loading it needs neither gt4py nor DaCe.
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
        The manifest of an entry whose files are all there and as long as they were when it was built.

        Raises CacheError otherwise. The files are not read: `verify` does that.
        """
        try:
            manifest = manifests.read(self.manifest_file)
        except FileNotFoundError:
            raise CacheError(f"There is no cache entry at '{self.path}'.") from None
        except ManifestError as error:
            raise CacheError(f"The manifest of cache entry '{self.path}' {error}.") from None
        for name, expected in manifest.files.items():
            try:
                size = (self.path / name).stat().st_size
            except OSError:
                raise CacheError(f"The cache entry '{self.path}' lacks its file '{name}'.") from None
            if size != expected.bytes:
                raise CacheError(f"File '{name}' of cache entry '{self.path}' has {size} bytes, not {expected.bytes}.")
        return manifest

    def verify(self) -> Manifest:
        """The manifest, if every file is the one that was built. Raises CacheError otherwise."""
        manifest = self.manifest()
        for name, expected in manifest.files.items():
            try:
                found = File.of(self.path / name)
            except OSError as error:
                raise CacheError(
                    f"File '{name}' of cache entry '{self.path}' cannot be read: {error.strerror}."
                ) from None
            if found != expected:
                raise CacheError(
                    f"File '{name}' of cache entry '{self.path}' is not the one that was built: its digest differs."
                )
        return manifest

    def verify_usable(self) -> Manifest:
        """The manifest, if the entry is whole and this machine can run it. Raises CacheError otherwise."""
        manifest = self.verify()
        if reason := unsupported(manifest):
            raise CacheError(f"The cache entry '{self.path}' {reason}: build it on this machine.")
        return manifest

    def is_whole(self) -> bool:
        """Whether every file is the one that was built. Whether this machine can run the entry is not asked."""
        try:
            self.verify()
        except CacheError:
            return False
        return True

    def is_foreign(self) -> bool:
        """Whether another version of gtstub made the entry. Such an entry is left alone."""
        return manifests.is_foreign(self.manifest_file)

    def load(self, baked: Mapping[str, Any] | None = None) -> Program:
        """
        Loads the compiled program.

        Raises CacheError if a file is missing or is not the one that was built, if this machine cannot run the entry,
        and if a value was compiled in that differs from the one that `baked` has under its name.
        """
        program, _ = self.load_with_manifest(baked)
        return program

    def load_with_manifest(self, baked: Mapping[str, Any] | None = None) -> tuple[Program, Manifest]:
        """The same, with the manifest, which is read once."""
        manifest = self.verify_usable()
        self._check_baked(manifest, baked or {})
        from gtstub import _host  # Here, because commands that only look at entries do not need the host.

        try:
            program = _host.load(self.path / manifest.stub, self.path / manifest.library)
        except RuntimeError:
            # Another process may have removed or replaced the entry meanwhile; then verify() says so.
            manifest = self.verify()
            program = _host.load(self.path / manifest.stub, self.path / manifest.library)
        self.mark_used()
        return program, manifest

    def _check_baked(self, manifest: Manifest, baked: Mapping[str, Any]) -> None:
        """Values of `baked` that were not compiled in are free."""
        for name, value in baked.items():
            if name in manifest.baked and canonical(manifest.baked[name]) != canonical(plain(value)):
                raise CacheError(
                    f"The cache entry '{self.path}' has {name} = {json.dumps(manifest.baked[name])} compiled in,"
                    f" but is wanted with {name} = {json.dumps(plain(value))}: build it for that value,"
                    " or leave it to run time."
                )

    def mark_used(self) -> None:
        """
        Notes, at most once a day, that the entry was used, as the time of its directory. Shared layers are left
        alone.
        """
        if any(self.path.is_relative_to(layer) for layer in settings.shared_cache_dirs()):
            return
        try:
            if abs(time.time() - self.path.stat().st_mtime) > DAY:
                os.utime(self.path)
        except OSError:
            pass  # It may belong to another user, and can be used all the same.


def unsupported(manifest: Manifest) -> str:
    """Why this machine cannot run an entry, as the end of a sentence about the entry; empty if it can."""
    machine = manifest.machine
    if machine.cpu:
        from gtstub.toolchain.cpu import lacking  # Here, because not every entry needs to know.

        if missing := lacking(machine.cpu):
            names = ", ".join(f"'{name}'" for name in missing)
            return f"was built for a CPU with {names}, which this one lacks"
    if machine.arch.startswith(("sm_", "gfx")):
        from gtstub.toolchain.arch import arch  # Here, because only programs for a GPU need to ask for it.

        if (found := arch("gpu")) not in ("", machine.arch):
            return f"was built for '{machine.arch}', but the GPU here is '{found}'"
    return ""
