"""The SDFGs that a command line names: files, cache entries, and folders of stages."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gtstub.cli.output import cannot
from gtstub.entries.cache.entry import LOWERED_SDFG, STAGE, entries_in, is_entry
from gtstub.entries.cache.inspection import inspect
from gtstub.errors import GtstubError
from gtstub.stub.sdfg.model import Sdfg
from gtstub.stub.sdfg.read import SdfgError, read
from gtstub.stub.signature.documents import program_in
from gtstub.stub.signature.model import ProgramSignature

SUFFIXES = (".sdfg", ".sdfgz", ".json", ".json.gz")


@contextlib.contextmanager
def exit_code_2() -> Iterator[None]:
    """Gives errors of the block the exit code of the commands that read SDFGs: SdfgError is raised in their place."""
    try:
        yield
    except GtstubError as error:
        raise SdfgError(str(error)) from None
    except OSError as error:
        raise SdfgError(cannot(error)) from None


def sdfg_or_entry(path: Path) -> tuple[Sdfg, ProgramSignature | None]:
    """
    The SDFG in a file or a cache entry, and the signature of the program of an entry. Raises GtstubError or OSError if
    there is no SDFG that can be read.
    """
    if not path.is_dir():
        return read(path), None
    if LOWERED_SDFG not in inspect(path).files:
        raise SdfgError(f"'{path}' keeps no SDFG, because an older gtstub built it: build it again.")
    return read(path / LOWERED_SDFG), program_in(path / "program.json")


def entries(cache: Path) -> list[Path]:
    """The entries of a cache. Raises SdfgError if there is none."""
    try:
        found = entries_in(cache.absolute())
    except FileNotFoundError:
        found = []
    if not found:
        raise SdfgError(f"'{cache}' has no cache entry.")
    return found


def stages(directory: Path) -> tuple[Sequence[Path], ProgramSignature | None]:
    """
    The SDFGs in a folder, in the order of their names. Of a cache entry, those of the stages that it keeps, then its
    own, and the signature of its program. Raises GtstubError or OSError if there is none.
    """
    if is_entry(directory):
        names = sorted((name for name in inspect(directory).files if name.startswith(STAGE)), key=_natural)
        if not names:
            how = "those of gt4py's programs are kept with GTSTUB_KEEP_STAGES=1"
            raise SdfgError(f"'{directory}' keeps no stages: {how}.")
        return [directory / name for name in (*names, LOWERED_SDFG)], program_in(directory / "program.json")
    names = sorted((file.name for file in directory.iterdir() if file.name.endswith(SUFFIXES)), key=_natural)
    if not names:
        raise SdfgError(f"'{directory}' has no SDFG: none of its files ends in {', '.join(SUFFIXES)}.")
    return [directory / name for name in names], None


def _natural(name: str) -> list[tuple[int, str]]:
    """A key by which 'stage-99' comes before 'stage-100'."""
    return [(int(digits or -1), text) for digits, text in re.findall(r"(\d*)(\D*)", name)]
