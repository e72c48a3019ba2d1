"""
What a granule's steps do in Python, to be compared with what the exported library does: the values of all arrays at the
start, what hooks have written, and digests of all arrays there and after each step.

The folder of a granule has it as two files: `capture.npz` with the values, and `capture.json` with the digests.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from gtstub.errors import GranuleError
from gtstub.granule.description import Description, GranuleStep, HookCall
from gtstub.granule.memory import Layout
from gtstub.util.bits import differences, digest

VALUES, DIGESTS = "capture.npz", "capture.json"


@dataclasses.dataclass(frozen=True)
class Recording:
    """
    `arguments` are the values of the host's arrays at the start. `hooks` are those of the arrays of a hook after its
    call, by the names of the step and of the array and by the position. `start` are digests of all arrays but
    temporaries at the start, and `after` those of all arrays after a step that begins there.
    """

    arguments: Mapping[str, npt.NDArray[Any]]
    hooks: Mapping[tuple[str, int, str], npt.NDArray[Any]]
    start: Mapping[str, str]
    after: Mapping[str, Mapping[str, str]]


def record(
    description: Description,
    layouts: Sequence[Layout],
    temporaries: Collection[int],
    actions: Mapping[str, Sequence[Any]],
) -> Recording:
    """
    Runs each step in Python, from the values that the arrays have now, which are restored. `actions` are those of the
    steps, flat.

    With `temporaries`, each step then runs again with zeros in them, as in the granule. The digests are those after
    this. Raises GranuleError if another array is not as before.
    """
    arrays = {array.name: layout.array() for array, layout in zip(description.arrays, layouts, strict=True)}
    before = {name: array.copy(order="K") for name, array in arrays.items()}
    names = {description.arrays[each].name for each in temporaries}
    zeros = before | {name: np.zeros_like(before[name]) for name in names}
    hooks: dict[tuple[str, int, str], npt.NDArray[Any]] = {}
    after = {}
    try:
        for step in description.steps:
            _restore(arrays, before)
            hooks |= _run(description, step, actions[step.name], arrays, before)
            after[step.name] = {name: digest(array) for name, array in arrays.items()}
            if temporaries:
                written = {name: arrays[name].copy(order="K") for name in names}
                _restore(arrays, zeros)
                _run_again(description, step, actions[step.name], arrays, hooks)
                again = {name: digest(array) for name, array in arrays.items()}
                _compare(description, step, names, after[step.name], again)
                for name in names:
                    _compare_written(description, step, name, before[name], written[name], arrays[name])
                after[step.name] = again
    finally:
        _restore(arrays, before)
    start = {name: digest(array) for name, array in before.items() if name not in names}
    return Recording({array.name: before[array.name] for array in description.arguments}, hooks, start, after)


def _run(
    description: Description,
    step: GranuleStep,
    actions: Sequence[Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    before: Mapping[str, npt.NDArray[Any]],
) -> Mapping[tuple[str, int, str], npt.NDArray[Any]]:
    """Runs a step. Returns what its hooks have written."""
    hooks: dict[tuple[str, int, str], npt.NDArray[Any]] = {}
    for number, (position, action) in enumerate(zip(step.positions, actions, strict=True)):
        action()
        if isinstance(position, HookCall):
            names = [description.arrays[each].name for each in position.arrays]
            hooks |= {(step.name, number, name): arrays[name].copy(order="K") for name in names}
            _check_hook(description, position, arrays, before)
    return hooks


def _run_again(
    description: Description,
    step: GranuleStep,
    actions: Sequence[Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    hooks: Mapping[tuple[str, int, str], npt.NDArray[Any]],
) -> None:
    """Runs a step, with what the hooks have written before: not all ranks have temporaries, but all communicate."""
    for number, (position, action) in enumerate(zip(step.positions, actions, strict=True)):
        if isinstance(position, HookCall):
            for each in position.arrays:
                name = description.arrays[each].name
                arrays[name][...] = hooks[step.name, number, name]
        else:
            action()


def _compare(
    description: Description,
    step: GranuleStep,
    temporaries: Collection[str],
    expected: Mapping[str, str],
    found: Mapping[str, str],
) -> None:
    for name, each in found.items():
        if name not in temporaries and each != expected[name]:
            listed = ", ".join(f"'{each}'" for each in sorted(temporaries))
            raise GranuleError(
                f"Step '{step.name}' of granule '{description.name}' gives array '{name}' other values if temporaries "
                f"are zero at the start, which are: {listed}. This is an error of gtstub. The granule keeps the values "
                f"of those that are named in 'kept'."
            )


def _compare_written(
    description: Description,
    step: GranuleStep,
    temporary: str,
    before: npt.NDArray[Any],
    written: npt.NDArray[Any],
    again: npt.NDArray[Any],
) -> None:
    """Refuses a temporary with an element that a step has written, and that is another one if the step runs again."""
    if (differences(written, again)[0] & differences(written, before)[0]).any():
        raise GranuleError(
            f"Granule '{description.name}' does not do what its steps do in Python: array '{temporary}' differs after "
            f"step '{step.name}', which has written it. Does a hook change it that does not get it?"
        )


def _check_hook(
    description: Description,
    position: HookCall,
    arrays: Mapping[str, npt.NDArray[Any]],
    before: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Refuses a hook that changes an array which is taken for a constant, because nothing else writes it."""
    for number, array in enumerate(description.arrays):
        if array.written or number in position.arrays:
            continue
        if arrays[array.name].tobytes() != before[array.name].tobytes():
            raise GranuleError(
                f"Hook '{description.hooks[position.hook]}' of granule '{description.name}' changes array "
                f"'{array.name}', which it does not get: pass it to gtstub.action()."
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
        start, after = digests["start"], digests["after"]
    except (OSError, ValueError, EOFError, BadZipFile, KeyError, TypeError) as error:
        raise GranuleError(f"The granule in '{folder}' has no recording to compare with: {error}.") from error
    return Recording(
        {name.removeprefix("argument/"): each for name, each in values.items() if name.startswith("argument/")},
        dict(_hooks(values)),
        start,
        after,
    )


def _hooks(values: Mapping[str, npt.NDArray[Any]]) -> Iterator[tuple[tuple[str, int, str], npt.NDArray[Any]]]:
    for name, each in values.items():
        kind, _, rest = name.partition("/")
        if kind == "hook":
            step, number, array = rest.split("/")
            yield (step, int(number), array), each
