"""
Compares what an exported granule does with what its steps have done in Python, bit for bit: all arrays after each step.
Hooks are replaced by what they have written then.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gtstub.entries.cache.store import open_cache
from gtstub.entries.toolchain.compiler import find
from gtstub.entries.trust import read_trusted
from gtstub.errors import GranuleError
from gtstub.programs.granule.description import FILE, Description, GranuleArray, GranuleStep, HookCall, from_json
from gtstub.programs.granule.library import HookFunction, Library
from gtstub.programs.granule.recording import Recording, Run, change, read
from gtstub.programs.layout import Layout
from gtstub.util.bits import digest
from gtstub.util.canonical import sha256

LARGEST = 2**26
"""Bytes of the largest generated file that is read."""


def read_granule(folder: Path) -> Description:
    """The description of an exported granule. Raises GranuleError or SignatureError."""
    try:
        return from_json((folder / FILE).read_bytes(), str(folder / FILE))
    except OSError as error:
        raise GranuleError(f"'{folder}' is no exported granule: {FILE} cannot be read ({error.strerror}).") from None


def verify(folder: Path, progress: Callable[[str], object]) -> Description:
    """
    Compiles the C file in a folder, and runs each step from where it was recorded. Raises GranuleError for the first
    array that has other bits than in Python, or if the granule cannot be run, TrustError if somebody who is not trusted
    could have written what is compiled. `progress` gets what is done next.
    """
    description = read_granule(folder)
    recording = read(folder)
    source = folder / f"{description.name}_granule.c"
    try:
        texts = {file.name: read_trusted(file, LARGEST) for file in (folder / FILE, source, source.with_suffix(".h"))}
    except OSError as error:
        file = folder / Path(error.filename or source).name
        raise GranuleError(f"'{file}' cannot be read ({error.strerror}): export the granule again.") from None
    if f'"{sha256(texts[FILE])}"'.encode() not in texts[source.name]:
        raise GranuleError(f"'{source}' was not generated from the {FILE} beside it: export the granule again.")
    with tempfile.TemporaryDirectory(prefix="gtstub-granule-") as temporary:
        for name, text in texts.items():
            (Path(temporary) / name).write_bytes(text)
        library = Path(temporary) / f"{description.name}_granule.so"
        find(open_cache().root).start(library.with_suffix(".c"), library).wait()
        for step in description.steps:
            limits = recording.runs[step.name].limits
            progress(f"Comparing step '{step.name}' with Python{', ' if limits else ''}{limits}")
            _verify_step(description, step, recording, library, folder)
    return description


def _verify_step(
    description: Description, step: GranuleStep, recording: Recording, library: Path, folder: Path
) -> None:
    run = recording.runs[step.name]
    hooks = _Hooks(description, step, run)
    arguments = {array.name: _as_captured(array, recording.arguments[array.name]) for array in description.arguments}
    with _opened(library, description, folder) as granule:
        granule.bind(arguments, {name: hooks.function(name) for name in description.hooks})
        hooks.granule = granule
        for array in description.arrays:
            if array.name in recording.start and digest(granule.array(array.name)) != recording.start[array.name]:
                raise GranuleError(
                    f"Array '{array.name}' of granule '{description.name}' has other values than when it was exported: "
                    f"a file in '{folder}' was changed."
                )
        change(description, run.changed, granule.writable_array)
        granule.run(step)
        has = step.arrays
        for number, array in enumerate(description.arrays):
            if number not in has and array.name not in recording.start:
                continue  # a temporary of other steps
            if digest(granule.array(array.name)) != run.after[array.name]:
                raise GranuleError(
                    f"Granule '{description.name}' does not do what its steps do in Python: array '{array.name}' "
                    f"differs after step '{step.name}'."
                )


@contextmanager
def _opened(library: Path, description: Description, folder: Path) -> Iterator[Library]:
    granule = Library(library, description, folder)
    try:
        yield granule
    finally:
        granule.close()


def _as_captured(array: GranuleArray, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values in memory with the strides of the capture."""
    layout = Layout(0, array.dtype, array.shape, array.strides)
    made = layout.over(np.zeros(layout.bytes, np.uint8))
    made[...] = values
    return made


class _Hooks:
    """Functions that write what the hooks of a step have written in Python."""

    def __init__(self, description: Description, step: GranuleStep, run: Run) -> None:
        self._description, self._run = description, run
        self._waiting = {
            name: iter([(n, each) for n, each in _hook_calls(step) if each.hook == number])
            for number, name in enumerate(description.hooks)
        }
        self.granule: Library | None = None

    def function(self, name: str) -> HookFunction:
        def write(_data: Any, _arrays: Any) -> int:
            assert self.granule is not None
            number, position = next(self._waiting[name])
            for each in position.arrays:
                array = self._description.arrays[each].name
                self.granule.array(array)[...] = self._run.hooks[number, array]
            return 0

        return write


def _hook_calls(step: GranuleStep) -> Iterator[tuple[int, HookCall]]:
    for number, each in enumerate(step.positions):
        if isinstance(each, HookCall):
            yield number, each
