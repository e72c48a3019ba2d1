"""Checks an entry for tools that read its documents, and neither load nor run it."""

from __future__ import annotations

import re
from pathlib import Path

from gtstub.abi import ABI
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.manifest import Manifest
from gtstub.errors import CacheError
from gtstub.stub.signature import documents
from gtstub.stub.signature.model import ProgramSignature, SdfgSignature


def inspect(path: Path) -> Manifest:
    """
    The manifest of the entry at `path`. Raises CacheError if there is no whole entry, if a file is not the one that was
    built, or if the entry was made by another version or for another ABI of gtstub.
    """
    entry = Entry(path)
    if entry.is_foreign():
        raise CacheError(f"The cache entry '{path}' was made by another version of gtstub: build it again.")
    manifest = entry.manifest()
    found = _abi(path / f"{manifest.stub.removesuffix('.so')}.c")
    if found is not None and found != ABI:
        raise CacheError(
            f"The cache entry '{path}' was built for ABI {found} of gtstub, and this gtstub has ABI {ABI}: build it"
            " again, or use the gtstub that built it."
        )
    return entry.verify()


def signatures(path: Path) -> tuple[Manifest, SdfgSignature, ProgramSignature]:
    """The manifest and the signatures of the entry at `path`. Raises CacheError, SignatureError or OSError."""
    return inspect(path), documents.sdfg_in(path / "sdfg.json"), documents.program_in(path / "program.json")


def _abi(source: Path) -> int | None:
    """The ABI that the source of a stub names. The manifest does not name it."""
    if not source.is_file():
        return None
    found = re.search(r"^#if GTS_ABI != (\d{1,9})$", source.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    return None if found is None else int(found[1])
