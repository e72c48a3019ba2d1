"""Cache entries for tests that need no compiler: their libraries are text, which is never loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gtstub.cache.key import make_key as key_of
from gtstub.cache.store import Cache, StubArtifact

STUB, LIBRARY = "prog_stub.so", "libprog.so"


def write_files(directory: Path, content: str = "library") -> dict[str, Any]:
    """Makes `directory` ready to be published; returns the least of a manifest."""
    for name in (STUB, LIBRARY):
        (directory / name).write_text(f"{name} {content}\n", encoding="utf-8")
    return {"name": "prog", "stub": STUB, "library": LIBRARY}


def publish(cache: Cache, key: str, content: str = "library", **manifest: Any) -> StubArtifact:
    with cache.private_directory(key) as directory:
        return cache.publish(directory, key, {**write_files(directory, content), **manifest})


def publish_made_of(
    cache: Cache, ingredients: Mapping[str, Any], content: str = "library", **manifest: Any
) -> StubArtifact:
    """The entry of program 'prog' under the key that its ingredients give it."""
    return publish(cache, key_of("prog", ingredients), content, ingredients=ingredients, **manifest)


def flip_a_bit(file: Path, position: int = -2) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)
