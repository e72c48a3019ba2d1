"""The SDFGs that a command line names: files, cache entries, and folders of stages."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from gtstub.analysis.document import Document, SdfgError, read
from gtstub.cache.entry import LOWERED_SDFG, STAGE
from gtstub.cache.store import Cache
from gtstub.errors import SignatureError
from gtstub.signature.documents import program_from_json
from gtstub.signature.model import ProgramSignature

SUFFIXES = (".sdfg", ".sdfgz", ".json", ".json.gz")


@dataclasses.dataclass(frozen=True)
class Named:
    """An SDFG, and the signature of its program if an entry has it."""

    document: Document
    program: ProgramSignature | None = None

    @property
    def name(self) -> str:
        return str((self.document.get("attributes") or {}).get("name", ""))


def sdfg_or_entry(path: Path) -> Named:
    """The SDFG in a file or a cache entry. Raises SdfgError if there is none that can be read."""
    if not path.is_dir():
        return Named(read(path))
    if not (path / LOWERED_SDFG).exists():
        raise SdfgError(f"'{path}' keeps no SDFG: it is no cache entry, or an older gtstub built it.")
    program = path / "program.json"
    return Named(read(path / LOWERED_SDFG), program_of(program) if program.exists() else None)


def entries(cache: Path) -> list[Path]:
    """The entries of a cache. Raises SdfgError if there is none."""
    found = [entry.path for entry in Cache(cache.absolute()).entries()]
    if not found:
        raise SdfgError(f"'{cache}' has no cache entry.")
    return found


def stages(directory: Path) -> list[Path]:
    """
    The SDFGs in a folder, in the order of their names; in a cache entry, those of the stages that it keeps, and its own
    as the last one. Raises SdfgError if there is none.
    """
    try:
        found = sorted(file for file in directory.iterdir() if file.name.endswith(SUFFIXES))
        if (directory / LOWERED_SDFG).exists():
            found = [file for file in found if file.name.startswith(STAGE)] + [directory / LOWERED_SDFG]
    except OSError as error:
        raise SdfgError(f"'{directory}' cannot be read: {error.strerror}.") from None
    if not found:
        raise SdfgError(f"'{directory}' has no SDFG: none of its files ends in {', '.join(SUFFIXES)}.")
    return found


def program_of(file: Path) -> ProgramSignature:
    """The program signature in a file. Raises SdfgError if there is none that can be read."""
    try:
        return program_from_json(file.read_text(encoding="utf-8"), str(file))
    except SignatureError as error:
        raise SdfgError(str(error)) from None
    except OSError as error:
        raise SdfgError(f"'{file}' cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SdfgError(f"'{file}' is not a program signature: it is not UTF-8.") from None
