"""The SDFGs that a command line names: files, cache entries, and folders of stages."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from gtstub.analysis.document import Document, SdfgError, read
from gtstub.cache.entry import LOWERED_SDFG, STAGE, is_entry
from gtstub.cache.inspection import inspect, program_text
from gtstub.cache.store import Cache
from gtstub.errors import GtstubError

SUFFIXES = (".sdfg", ".sdfgz", ".json", ".json.gz")


@dataclasses.dataclass(frozen=True)
class Named:
    """An SDFG and its name, and the signature of its program if an entry has it. Both are JSON."""

    text: str
    name: str
    program: str | None = None


@contextlib.contextmanager
def exit_code_2() -> Iterator[None]:
    """Gives errors of the block the exit code of the commands that read SDFGs: SdfgError is raised in their place."""
    try:
        yield
    except GtstubError as error:
        raise SdfgError(str(error)) from None
    except OSError as error:
        where = "" if error.filename is None else f" '{error.filename}'"
        raise SdfgError(f"Cannot read or write{where}: {error.strerror}.") from None


def sdfg_or_entry(path: Path) -> Named:
    """The SDFG in a file or a cache entry. Raises GtstubError or OSError if there is none that can be read."""
    if not path.is_dir():
        return _named(read(path))
    manifest = inspect(path)
    if LOWERED_SDFG not in manifest.files:
        raise SdfgError(f"'{path}' keeps no SDFG, because an older gtstub built it: build it again.")
    return _named(read(path / LOWERED_SDFG), program_text(path, manifest))


def _named(document: Document, program: str | None = None) -> Named:
    return Named(json.dumps(document, separators=(",", ":")), str(document["attributes"]["name"]), program)


def entries(cache: Path) -> list[Path]:
    """The entries of a cache. Raises SdfgError if there is none."""
    found = [entry.path for entry in Cache(cache.absolute()).entries()]
    if not found:
        raise SdfgError(f"'{cache}' has no cache entry.")
    return found


def stages(directory: Path) -> tuple[Sequence[Path], str | None]:
    """
    The SDFGs in a folder, in the order of their names. Of a cache entry, those of the stages that it keeps, then its
    own, and the signature of its program. Raises GtstubError or OSError if there is none.
    """
    if is_entry(directory):
        manifest = inspect(directory)
        names = sorted(name for name in manifest.files if name.startswith(STAGE))
        if not names:
            raise SdfgError(f"'{directory}' keeps no stages: build it with GTSTUB_KEEP_STAGES=1.")
        return [directory / name for name in (*names, LOWERED_SDFG)], program_text(directory, manifest)
    found = sorted(file for file in directory.iterdir() if file.name.endswith(SUFFIXES))
    if not found:
        raise SdfgError(f"'{directory}' has no SDFG: none of its files ends in {', '.join(SUFFIXES)}.")
    return found, None
