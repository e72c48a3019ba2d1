"""
The manifest of a cache entry: its program, its ingredients, and the digests of its files.

The file `manifest.json` is a JSON object with the members of `Manifest`, a `schema`, and its own `digest`
(docs/formats.md). The classes are named tuples, because loading an entry imports this module, and importing dataclasses
would take longer than everything else here.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from gtstub.util.canonical import canonical, plain, sha256
from gtstub.util.regular import read_regular

FILE = "manifest.json"
SCHEMA = "gtstub/cache-entry/2"

LARGEST = 2**24
"""Bytes of the largest manifest that is read."""

DEEPEST = 100
"""Objects and arrays that a manifest may nest. Python could not compare ingredients that are nested much deeper."""

LATEST = 2.0**37
"""The latest time of a build, in seconds since 1970: it still has a date."""

MOST_STAGES = 100
"""The most stages of a build that a manifest may list."""

EMPTY: Mapping[str, Any] = MappingProxyType({})

_PLAIN_NAME = re.compile(r"[\w+-][\w.+-]*", re.ASCII)


class ManifestError(Exception):
    """A document is not a manifest of this version of gtstub. The text completes a sentence about the document."""


class File(NamedTuple):
    """Size and SHA-256 (hexadecimal) of a file of an entry."""

    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path | int) -> File:
        """Reads a file, or that of a descriptor, but never all of it into memory. Raises OSError."""
        import hashlib  # Here for the same reason as in util/canonical.py.

        with open(path, "rb", buffering=0, closefd=isinstance(path, Path)) as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            return cls(file.tell(), sha256)


class Machine(NamedTuple):
    """
    The hardware that an entry requires: CPU features, as /proc/cpuinfo names them, and the GPU architecture `arch`,
    which is empty for a CPU program. `device` is gt4py's name of the device.
    """

    cpu: tuple[str, ...] = ()
    device: str = ""
    arch: str = ""


class BuildStage(NamedTuple):
    """
    A stage of a build: its `name`, its `begin` in seconds since 1970, its duration in `seconds`, and the `pid` of the
    process that ran it, or waited for the compiler that did.
    """

    name: str
    begin: float
    seconds: float
    pid: int

    @classmethod
    def since(cls, begin: float, name: str, end: float | None = None) -> BuildStage:
        """A stage that this process began at the time `begin`, and that ends at the time `end`, or now."""
        seconds = (time.time() if end is None else end) - begin
        return cls(name, round(begin, 3), round(max(0.0, seconds), 3), os.getpid())  # A clock may be set back.


class Built(NamedTuple):
    """
    The build of an entry: its `time` (of its end) in seconds since 1970, its host, its duration in `seconds`, and its
    `stages`, which an older gtstub did not keep.
    """

    time: float = 0.0
    host: str = ""
    seconds: float = 0.0
    stages: tuple[BuildStage, ...] = ()

    @property
    def whole(self) -> float:
        """The seconds in which a stage was under way, which `seconds` only begin to count when DaCe's do."""
        whole = end = 0.0
        for stage in sorted(self.stages, key=lambda stage: stage.begin):
            begin, end = max(end, stage.begin), max(end, stage.begin + stage.seconds)
            whole += end - begin
        return round(whole, 3) if self.stages else self.seconds

    def to_json(self) -> dict[str, Any]:
        """The member 'built' of the document, which has no stages if none are known."""
        stages = {"stages": [stage._asdict() for stage in self.stages]} if self.stages else {}
        return {"time": self.time, "host": self.host, "seconds": self.seconds, **stages}


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
        parts = {"files": files, "machine": self.machine._asdict(), "built": self.built.to_json()}
        document: dict[str, Any] = {"schema": SCHEMA, **plain({**self._asdict(), **parts})}
        return {**document, "digest": digest(document)}


def read(path: Path, directory: int | None = None) -> Manifest:
    """
    Reads a manifest, which is in the directory with this descriptor if there is one. Raises FileNotFoundError, or
    ManifestError if gtstub did not write the file in this form.
    """
    try:
        content = read_regular(path, LARGEST, directory)
        document: Any = json.loads(content)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ManifestError(f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"cannot be read: {error}") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ManifestError(f"is not of schema '{SCHEMA}'")
    if content.count(b"{") + content.count(b"[") > DEEPEST and not _is_shallow(document):  # Counting takes no time.
        raise ManifestError(f"is nested more than {DEEPEST} times")
    if not _has_own_digest(document):
        raise ManifestError("is not the one that was written: its digest differs")
    return _parse(document)


def digest(document: Mapping[str, Any]) -> str | None:
    """The SHA-256 (hexadecimal) of a manifest without its member 'digest'; None if it cannot be a manifest."""
    rest = {name: value for name, value in document.items() if name != "digest"}
    try:
        return sha256(canonical(rest))
    except (ValueError, RecursionError):  # NaN, which no manifest contains
        return None


def is_plain(name: str) -> bool:
    """Whether a text is a file name without separators, and not that of a hidden file."""
    return _PLAIN_NAME.fullmatch(name) is not None


def is_foreign(path: Path) -> bool:
    """Whether a file is a manifest of another version of gtstub, with another schema."""
    try:
        document = json.loads(read_regular(path, LARGEST))
        schema = document["schema"]
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return False
    family, _, own = SCHEMA.rpartition("/")
    found, _, version = str(schema).rpartition("/")
    # A wrong digest means a damaged entry, such as one with a flipped bit in `schema`. gtstub rebuilds such entries.
    # Schema 1 had no digest.
    return found == family and version != own and (version == "1" or _has_own_digest(document))


def _has_own_digest(document: Mapping[str, Any]) -> bool:
    found = digest(document)
    return found is not None and document.get("digest") == found


def _is_shallow(document: Any) -> bool:
    level = [document]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) in (dict, list)
        ]
        if not level:
            return True
    return False


def _parse(document: dict[str, Any]) -> Manifest:
    """The manifest of a document whose digest is correct. Anybody can compute a digest, so all members are checked."""
    machine, built, files = (_member(document, name, dict) for name in ("machine", "built", "files"))
    cpu = tuple(_member(machine, "cpu", list))
    manifest = Manifest(
        **{name: _line(document, name) for name in ("name", "stub", "library", "key")},
        **{name: _member(document, name, dict) for name in ("workspaces", "ingredients", "baked")},
        machine=Machine(cpu, _line(machine, "device"), _line(machine, "arch")),
        built=Built(_seconds(built, "time"), _line(built, "host"), _seconds(built, "seconds"), _stages(built)),
        files={name: _file(name, file) for name, file in files.items()},
    )
    for name, values in (("workspaces", manifest.workspaces.values()), ("machine.cpu", cpu)):
        if not all(isinstance(value, str) and value.isprintable() for value in values):
            raise ManifestError(f"has values other than a line of text in member '{name}'")
    for name in (manifest.stub, manifest.library):
        if name not in manifest.files:
            raise ManifestError(f"lists no file {name!r}")
    if FILE in manifest.files:
        raise ManifestError("lists itself among its files")
    return manifest


def _file(name: str, file: Any) -> File:
    if not is_plain(name):
        raise ManifestError(f"lists a file {name!r}, whose name has characters other than [A-Za-z0-9_.+-]")
    if not isinstance(file, dict):
        raise ManifestError(f"gives neither size nor digest of file '{name}'")
    return File(_member(file, "bytes", int), _line(file, "sha256"))


def _line(document: Mapping[str, Any], name: str) -> Any:
    """A text without line breaks and escape sequences, because commands print it."""
    text = _member(document, name, str)
    if not text.isprintable():
        raise ManifestError(f"has a member '{name}' that is not a line of text")
    return text


def _seconds(built: Mapping[str, Any], name: str) -> int | float:
    seconds: int | float = _member(built, name, int, float)
    if not 0 <= seconds <= LATEST:
        raise ManifestError(f"has a member '{name}' that is not a time")
    return seconds


def _stages(built: Mapping[str, Any]) -> tuple[BuildStage, ...]:
    if "stages" not in built:
        return ()
    stages = _member(built, "stages", list)
    if len(stages) > MOST_STAGES or not all(isinstance(stage, dict) for stage in stages):
        raise ManifestError("has a member 'stages' that is not a list of the stages of a build")
    return tuple(
        BuildStage(_line(stage, "name"), _seconds(stage, "begin"), _seconds(stage, "seconds"), _pid(stage))
        for stage in stages
    )


def _pid(stage: Mapping[str, Any]) -> int:
    pid: int = _member(stage, "pid", int)
    if not 0 < pid < 2**31:
        raise ManifestError("has a member 'pid' that is not the number of a process")
    return pid


def _member(document: Mapping[str, Any], name: str, *kinds: type) -> Any:
    value = document.get(name)
    if type(value) not in kinds:
        raise ManifestError(f"has no member '{name}' of type '{kinds[0].__name__}'")
    return value
