"""Cache entries for tests that need no compiler: their libraries are text, which is never loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.key import make_key as key_of
from gtstub.entries.cache.manifest import Built, Manifest
from gtstub.entries.cache.store import Cache

RANGES = [{"<class>": "gt4py.next.common.UnitRange", "start": start, "stop": stop} for start, stop in ((0, 10), (2, 5))]

DESCRIBED_DOMAIN = {
    "<class>": "gt4py.next.common.Domain",
    "dims": {"<tuple>": ["I[horizontal]", "K[vertical]"]},
    "ranges": {"<tuple>": RANGES},
}
"""A static domain among the ingredients of gt4py's programs."""

STUB, LIBRARY = "prog_stub.so", "libprog.so"


def write_files(directory: Path, content: str = "library") -> Manifest:
    """Makes `directory` ready to be published; returns the least of a manifest."""
    for name in (STUB, LIBRARY):
        (directory / name).write_text(f"{name} {content}\n", encoding="utf-8")
    return Manifest("prog", STUB, LIBRARY)


def publish(cache: Cache, key: str, content: str = "library", built: Built | None = None, **manifest: Any) -> Entry:
    """A new entry; with `built` as if it had been built at that time."""
    with cache.private_directory(key) as private:
        directory = private / "entry"
        directory.mkdir()
        entry = cache.publish(directory, key, write_files(directory, content)._replace(**manifest))
    if built is not None:
        text = json.dumps(entry.manifest()._replace(built=built).to_json())
        entry.manifest_file.write_text(text, encoding="utf-8")
    return entry


def publish_made_of(cache: Cache, ingredients: Mapping[str, Any], content: str = "library", **manifest: Any) -> Entry:
    """The entry of program 'prog' under the key that its ingredients give it."""
    return publish(cache, key_of("prog", ingredients), content, ingredients=ingredients, **manifest)


def flip_a_bit(file: Path, position: int = -2) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)
