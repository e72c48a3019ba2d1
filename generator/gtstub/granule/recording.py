"""
What a granule's steps do in Python, to be compared with what the exported library does: the values of all arrays at the
start, what hooks have written, and digests of all arrays there and after each step.

The folder of a granule has it as two files: `capture.npz` with the values, and `capture.json` with the digests.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from gtstub.errors import GranuleError
from gtstub.granule.description import Description, HookCall
from gtstub.granule.memory import Layout

VALUES, DIGESTS = "capture.npz", "capture.json"


@dataclasses.dataclass(frozen=True)
class Recording:
    """
    `arguments` are the values of the host's arrays at the start. `hooks` are those of the arrays of a hook after its
    call, by the names of the step and of the array and by the position. `start` are digests of all arrays at the start,
    and `after` those after a step that begins there.
    """

    arguments: Mapping[str, npt.NDArray[Any]]
    hooks: Mapping[tuple[str, int, str], npt.NDArray[Any]]
    start: Mapping[str, str]
    after: Mapping[str, Mapping[str, str]]


def digest_of(array: npt.NDArray[Any]) -> str:
    """A digest of the elements in C order, bit for bit."""
    return hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=16).hexdigest()


def record(
    description: Description, layouts: Sequence[Layout], actions: Mapping[str, Sequence[Any]], granule: str
) -> Recording:
    """
    Runs each step in Python, from the values that the arrays have now, which are restored. `actions` are those of the
    steps, flat.
    """
    arrays = {array.name: layout.array() for array, layout in zip(description.arrays, layouts, strict=True)}
    before = {name: array.copy(order="K") for name, array in arrays.items()}
    hooks: dict[tuple[str, int, str], npt.NDArray[Any]] = {}
    after = {}
    try:
        for step in description.steps:
            for number, (position, action) in enumerate(zip(step.positions, actions[step.name], strict=True)):
                action()
                if isinstance(position, HookCall):
                    names = [description.arrays[each].name for each in position.arrays]
                    hooks |= {(step.name, number, name): arrays[name].copy(order="K") for name in names}
                    _check_hook(description, position, arrays, before, granule)
            after[step.name] = {name: digest_of(array) for name, array in arrays.items()}
            _restore(arrays, before)
    finally:
        _restore(arrays, before)
    start = {name: digest_of(array) for name, array in before.items()}
    return Recording({array.name: before[array.name] for array in description.arguments}, hooks, start, after)


def _check_hook(
    description: Description,
    position: HookCall,
    arrays: Mapping[str, npt.NDArray[Any]],
    before: Mapping[str, npt.NDArray[Any]],
    granule: str,
) -> None:
    """Refuses a hook that changes an array which is taken for a constant, because nothing else writes it."""
    for number, array in enumerate(description.arrays):
        if array.written or number in position.arrays:
            continue
        if arrays[array.name].tobytes() != before[array.name].tobytes():
            raise GranuleError(
                f"Hook '{description.hooks[position.hook]}' of granule '{granule}' changes array '{array.name}', "
                f"which it does not get: pass it to gtstub.action()."
            )


def _restore(arrays: Mapping[str, npt.NDArray[Any]], values: Mapping[str, npt.NDArray[Any]]) -> None:
    for name, array in arrays.items():
        if array.tobytes() != values[name].tobytes():
            array[...] = values[name]


def write(folder: Path, recording: Recording) -> None:
    values = {f"argument/{name}": array for name, array in recording.arguments.items()}
    values |= {f"hook/{step}/{number}/{name}": array for (step, number, name), array in recording.hooks.items()}
    np.savez(folder / VALUES, allow_pickle=False, **values)
    digests = {"start": recording.start, "after": recording.after}
    (folder / DIGESTS).write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> Recording:
    """Raises GranuleError if there is no recording, or only a part of it."""
    try:
        with np.load(folder / VALUES, allow_pickle=False) as file:
            values = {name: file[name] for name in file.files}
        digests = json.loads((folder / DIGESTS).read_text(encoding="utf-8"))
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise GranuleError(f"The granule in '{folder}' has no recording to compare with: {error}.") from error
    return Recording(
        {name.removeprefix("argument/"): each for name, each in values.items() if name.startswith("argument/")},
        dict(_hooks(values)),
        digests["start"],
        digests["after"],
    )


def _hooks(values: Mapping[str, npt.NDArray[Any]]) -> Iterator[tuple[tuple[str, int, str], npt.NDArray[Any]]]:
    for name, each in values.items():
        kind, _, rest = name.partition("/")
        if kind == "hook":
            step, number, array = rest.split("/")
            yield (step, int(number), array), each
