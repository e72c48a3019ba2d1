"""
The manifest of a cache entry: its program, its ingredients, and the digests of its files.

The file `manifest.json` is a JSON object with the members of `Manifest`, a `schema`, and its own `digest`
(docs/formats.md). The classes are named tuples, because loading an entry imports this module, and importing dataclasses
would take longer than everything else here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from gtstub.util.canonical import canonical, plain

FILE = "manifest.json"
SCHEMA = "gtstub/cache-entry/2"

EMPTY: Mapping[str, Any] = MappingProxyType({})

_PLAIN_NAME = re.compile(r"[\w+-][\w.+-]*", re.ASCII)


class ManifestError(Exception):
    """A document is not a manifest of this version of gtstub. The text completes a sentence about the document."""


class File(NamedTuple):
    """Size and SHA-256 (hexadecimal) of a file of an entry."""

    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> File:
        """Reads a file. Raises OSError."""
        content = path.read_bytes()
        return cls(len(content), hashlib.sha256(content).hexdigest())


class Machine(NamedTuple):
    """
    The hardware that an entry requires: CPU features, as /proc/cpuinfo names them, and the GPU architecture `arch`,
    which is empty for a CPU program. `device` is gt4py's name of the device.
    """

    cpu: tuple[str, ...] = ()
    device: str = ""
    arch: str = ""


class Built(NamedTuple):
    """The build of an entry: its `time` in seconds since 1970, its host, and its duration in `seconds`."""

    time: float = 0.0
    host: str = ""
    seconds: float = 0.0


class Manifest(NamedTuple):
    """
    The manifest of program `name`. `stub` and `library` are file names. `workspaces` maps each storage of memory that
    the caller lends to its device. `ingredients` are described in key.py; `baked` maps the names that users know to the
    values that were compiled in. `files` lists all files except the manifest. `Cache.publish` fills in `key`, `files`,
    `built.time` and `built.host`.
    """

    name: str
    stub: str
    library: str
    workspaces: Mapping[str, str] = EMPTY
    ingredients: Mapping[str, Any] = EMPTY
    baked: Mapping[str, Any] = EMPTY
    machine: Machine = Machine()
    built: Built = Built()
    key: str = ""
    files: Mapping[str, File] = EMPTY

    def to_json(self) -> dict[str, Any]:
        """The whole document. Raises TypeError for an ingredient or a baked value that JSON cannot express."""
        files = {name: file._asdict() for name, file in self.files.items()}
        parts = {"files": files, "machine": self.machine._asdict(), "built": self.built._asdict()}
        document: dict[str, Any] = {"schema": SCHEMA, **plain({**self._asdict(), **parts})}
        return {**document, "digest": digest(document)}


def read(path: Path) -> Manifest:
    """Reads a manifest. Raises FileNotFoundError, or ManifestError if gtstub did not write the file in this form."""
    try:
        document: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise ManifestError(f"cannot be read: {error}") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ManifestError(f"is not of schema '{SCHEMA}'")
    if document.get("digest") != digest(document):
        raise ManifestError("is not the one that was written: its digest differs")
    return _parse(document)


def digest(document: Mapping[str, Any]) -> str:
    """The SHA-256 (hexadecimal) of a manifest without its member 'digest'."""
    rest = {name: value for name, value in document.items() if name != "digest"}
    try:
        return hashlib.sha256(canonical(rest)).hexdigest()
    except ValueError:  # NaN, which no manifest contains
        return ""


def is_foreign(path: Path) -> bool:
    """Whether a file is a manifest of another version of gtstub, with another schema."""
    try:
        document = json.loads(path.read_bytes())
        schema, found = document["schema"], document.get("digest")
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return False
    family = SCHEMA.rpartition("/")[0]
    if schema == f"{family}/1":  # Schema 1 had no digest.
        return True
    # A wrong digest means a damaged entry, such as one with a flipped bit in `schema`. gtstub rebuilds such entries.
    return schema != SCHEMA and str(schema).rpartition("/")[0] == family and found == digest(document)


def _parse(document: dict[str, Any]) -> Manifest:
    """The manifest of a document whose digest is correct. Anybody can compute a digest, so all members are checked."""
    machine, built, files = (_member(document, name, dict) for name in ("machine", "built", "files"))
    cpu = tuple(_member(machine, "cpu", list))
    manifest = Manifest(
        **{name: _member(document, name, str) for name in ("name", "stub", "library", "key")},
        **{name: _member(document, name, dict) for name in ("workspaces", "ingredients", "baked")},
        machine=Machine(cpu, _member(machine, "device", str), _member(machine, "arch", str)),
        built=Built(
            _member(built, "time", int, float), _member(built, "host", str), _member(built, "seconds", int, float)
        ),
        files={name: _file(name, file) for name, file in files.items()},
    )
    for name, values in (("workspaces", manifest.workspaces.values()), ("machine.cpu", cpu)):
        if not all(isinstance(value, str) for value in values):
            raise ManifestError(f"has values other than text in member '{name}'")
    for name in (manifest.stub, manifest.library):
        if name not in manifest.files:
            raise ManifestError(f"lists no file '{name}'")
    return manifest


def _file(name: str, file: Any) -> File:
    if _PLAIN_NAME.fullmatch(name) is None:
        raise ManifestError(f"lists a file '{name}', whose name has characters other than [A-Za-z0-9_.+-]")
    if not isinstance(file, dict):
        raise ManifestError(f"gives neither size nor digest of file '{name}'")
    return File(_member(file, "bytes", int), _member(file, "sha256", str))


def _member(document: Mapping[str, Any], name: str, *kinds: type) -> Any:
    value = document.get(name)
    if type(value) not in kinds:
        raise ManifestError(f"has no member '{name}' of type '{kinds[0].__name__}'")
    return value
