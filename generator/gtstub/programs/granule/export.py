"""
Writes the folder of a granule:

    granule.json                     the description
    <name>_granule.h, .c, .f90       the generated code, which contains nothing of this machine
    programs/<program>/              the cache entry of each program
    kept.bin                         the values of the kept arrays
    capture.npz, capture.json        what the steps have done in Python, for `gtstub granule verify`

A folder appears whole and verified, or not at all.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from gtstub.entries.cache.entry import Entry
from gtstub.entries.trust import restrict
from gtstub.errors import GranuleError
from gtstub.programs.granule import recording
from gtstub.programs.granule.collect import Collected
from gtstub.programs.granule.description import FILE, to_json
from gtstub.programs.granule.kept import write_kept
from gtstub.programs.granule.render import render
from gtstub.programs.granule.verify import verify
from gtstub.util.atomic import make_directories
from gtstub.util.canonical import sha256


def export(
    collected: Collected,
    temporaries: Collection[int],
    writable: Collection[int],
    actions: Mapping[str, Sequence[Any]],
    folder: Path,
    *,
    force: bool,
    progress: Callable[[str], object],
) -> Mapping[str, str]:
    """
    Writes a granule, without the values of `temporaries`, and with memory that can be written for `writable`. `actions`
    are those of the steps, flat. `force` replaces a folder that has a granule. `progress` gets what is done next.
    Returns what the verification of steps leaves out, by the names of the steps. Raises GranuleError, CacheError or
    OSError; then the folder is as before.
    """
    progress("Running the steps in Python")  # first: all ranks run all hooks, also one that refuses what follows
    recorded = recording.record(collected.description, collected.layouts, temporaries, actions)
    folder = folder.absolute()
    has_granule = (folder / FILE).is_file()
    if folder.exists() and not (force and has_granule):
        advice = "pass force=True to replace it" if has_granule else "it has no granule, which could be replaced"
        raise GranuleError(f"'{folder}' exists: {advice}.")
    make_directories(folder.parent)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    new = aside / folder.name
    try:
        new.mkdir()  # with the usual mode, which `aside` does not have
        _write(collected, temporaries, writable, new, progress)
        recording.write(new, recorded)
        for path in (new, *new.rglob("*")):
            restrict(path)
        verify(new, progress)
        _put(new, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return {step: run.limits for step, run in recorded.runs.items() if run.limits}


def _write(
    collected: Collected,
    temporaries: Collection[int],
    writable: Collection[int],
    folder: Path,
    progress: Callable[[str], object],
) -> None:
    description = collected.description
    text = to_json(description)
    digest = sha256(text.encode())
    files = {FILE: text, **render(description, digest)}
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    progress("Copying programs")
    features: set[str] = set()
    for program, entry in zip(description.programs, collected.entries, strict=True):
        features |= set(Entry(entry).verify().machine.cpu)
        shutil.copytree(entry, folder / program.folder)
    stored = {n for n, array in enumerate(description.arrays) if not array.is_argument} - set(temporaries)
    size = sum(layout.bytes for number, layout in enumerate(collected.layouts) if number in stored)
    progress(f"Writing kept arrays (up to {size / 1e6:.1f} MB)")
    write_kept(folder, description, digest, collected.layouts, temporaries, writable, features)


def _put(new: Path, folder: Path) -> None:
    """Moves a folder to its place. An old folder is moved away first, and comes back if this fails."""
    if not folder.exists():
        new.rename(folder)
        return
    old = folder.with_name(f"{new.parent.name}.old")
    folder.rename(old)
    try:
        new.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
