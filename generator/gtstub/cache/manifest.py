"""
The manifest of a cache entry: what the entry is, what it was made of, and the digests of its files.

On disk it is `manifest.json`, a JSON object with the members of `Manifest`, its `schema`, and its own `digest`
(docs/formats.md). Its classes are named tuples, because whoever loads an entry imports this module, and importing
dataclasses would take longer than the rest.
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
    """A document is not a manifest of this version of gtstub; the text ends a sentence about it."""


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
    What a machine must have to run an entry: features of the CPU, as /proc/cpuinfo names them, and the architecture of
    the GPU. `device` is gt4py's name of the device; `arch` is empty for a CPU.
    """

    cpu: tuple[str, ...] = ()
    device: str = ""
    arch: str = ""


class Built(NamedTuple):
    """When an entry was built, in seconds since 1970, on which host, and how many seconds that took."""

    time: float = 0.0
    host: str = ""
    seconds: float = 0.0


class Manifest(NamedTuple):
    """
    `name` is the program's; `stub` and `library` are the file names of the two libraries. `workspaces` names the
    storages of memory that the caller lends, with their devices. The entry was made of the `ingredients` (see key.py);
    `baked` are the values that were compiled in, by the names that users know. `files` has all files but the manifest.

    Whoever builds an entry leaves out `key`, `built.time`, `built.host` and `files`: `Cache.publish` fills them in.
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
        machine, built = self.machine._asdict(), self.built._asdict()
        members = self._replace(files=files, machine=machine, built=built)._asdict()  # type: ignore[arg-type]
        document: dict[str, Any] = {"schema": SCHEMA, **plain(members)}
        return {**document, "digest": digest(document)}


def read(path: Path) -> Manifest:
    """Reads a manifest. Raises FileNotFoundError, and ManifestError if it is not what gtstub wrote."""
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
    """SHA-256 of a manifest without its member 'digest', hexadecimal."""
    rest = {name: value for name, value in document.items() if name != "digest"}
    try:
        return hashlib.sha256(canonical(rest)).hexdigest()
    except ValueError:  # NaN, which a manifest never has
        return ""


def is_foreign(path: Path) -> bool:
    """Whether a file is the manifest of an entry of another version of gtstub, which has another schema."""
    try:
        document = json.loads(path.read_bytes())
        schema, found = document["schema"], document.get("digest")
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return False
    family = SCHEMA.rpartition("/")[0]
    if schema == f"{family}/1":  # It had no digest.
        return True
    # The digest tells it from a broken entry, the name of whose schema has a flipped bit: that is built again.
    return schema != SCHEMA and str(schema).rpartition("/")[0] == family and found == digest(document)


def _parse(document: dict[str, Any]) -> Manifest:
    """The manifest of a document whose digest is right. It may still be any document that somebody has signed."""
    text = {name: _member(document, name, str) for name in ("name", "stub", "library", "key")}
    machine, built, files = (_member(document, name, dict) for name in ("machine", "built", "files"))
    cpu = _member(machine, "cpu", list)
    manifest = Manifest(
        **text,
        workspaces={
            name: _text("workspaces", device) for name, device in _member(document, "workspaces", dict).items()
        },
        ingredients=_member(document, "ingredients", dict),
        baked=_member(document, "baked", dict),
        machine=Machine(
            tuple(_text("machine.cpu", feature) for feature in cpu),
            _member(machine, "device", str),
            _member(machine, "arch", str),
        ),
        built=Built(
            _member(built, "time", int, float), _member(built, "host", str), _member(built, "seconds", int, float)
        ),
        files={name: _file(name, file) for name, file in files.items()},
    )
    for name in (manifest.stub, manifest.library):
        if name not in manifest.files:
            raise ManifestError(f"lists no file '{name}'")
    return manifest


def _file(name: str, file: Any) -> File:
    if _PLAIN_NAME.fullmatch(name) is None:
        raise ManifestError(f"lists a file '{name}', whose name has characters other than [A-Za-z0-9_.+-]")
    if not isinstance(file, dict):
        raise ManifestError(f"says of file '{name}' neither size nor digest")
    return File(_member(file, "bytes", int), _member(file, "sha256", str))


def _member(document: Mapping[str, Any], name: str, *kinds: type) -> Any:
    value = document.get(name)
    if type(value) not in kinds:
        raise ManifestError(f"has no member '{name}' of type '{kinds[0].__name__}'")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ManifestError(f"has a member '{name}' that holds more than text")
    return value
