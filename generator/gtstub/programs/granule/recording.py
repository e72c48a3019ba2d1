"""
What a granule's steps do in Python, to be compared with what the exported library does: the values of all arrays at the
start, what hooks have written, and digests of all arrays there and after each step. Arrays begin with slightly other
values than at the start.

The folder of a granule has it as two files: `capture.npz` with the values, and `capture.json` with the digests.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from gtstub import _host
from gtstub.errors import GranuleError, reason
from gtstub.programs.granule.description import Description, GranuleStep, HookCall
from gtstub.programs.granule.naming import layout_of
from gtstub.programs.layout import Layout
from gtstub.programs.saved import Saved, may_be_written
from gtstub.programs.state import State
from gtstub.util.bits import differences, digest, first_difference
from gtstub.util.perturbed import can_change, hidden, perturb, writable

VALUES, DIGESTS = "capture.npz", "capture.json"


@dataclasses.dataclass(frozen=True)
class Run:
    """
    What a step does from the values of the export, but for arrays that begin with slightly other ones: those `changed`,
    by their names. `limits` says what this leaves out, or is empty. `hooks` are the arrays of a hook after its call, by
    the name of the array and the position. `after` are digests of all arrays after the step.
    """

    changed: Sequence[str]
    limits: str
    hooks: Mapping[tuple[int, str], npt.NDArray[Any]]
    after: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Recording:
    """
    `arguments` are the values of the host's arrays at the start, and `start` digests of all arrays but temporaries.
    `runs` are those of the steps, by their names.
    """

    arguments: Mapping[str, npt.NDArray[Any]]
    start: Mapping[str, str]
    runs: Mapping[str, Run]


def record(
    description: Description,
    layouts: Sequence[Layout],
    temporaries: Collection[int],
    actions: Mapping[str, Sequence[Any]],
) -> Recording:
    """
    Runs each step in Python: from the values that the arrays have now, which are restored, and from slightly other
    values of all arrays, or else of those that steps write. What does the same whatever these values are shows only so.
    `actions` are those of the steps, flat.

    Afterwards the arrays are as they are now, and so are the arrays, attributes, lists and mappings that hooks reach.

    With `temporaries`, each step then runs again with zeros in them, as in the granule. The digests are those after
    this. Raises GranuleError if another array is not as before, or if a hook changes an array that it does not get.
    """
    recorder = _Recorder(description, layouts, temporaries)
    state = State(_hooks_of(actions))
    saved = Saved((f"array '{name}'", each, each.copy()) for name, each in _around(state.arrays, layouts))
    try:
        runs = {step.name: recorder.run(step, actions[step.name]) for step in description.steps}
    finally:
        refusals = saved.restore()
        recorder.restore()
        state.restore()
    if refusals:
        raise GranuleError(f"Granule '{description.name}' cannot be exported: {refusals[0]}.")
    if recorder.refusal is not None:
        raise recorder.refusal
    return Recording(recorder.arguments, recorder.start, runs)


def change(description: Description, names: Collection[str], array_of: Callable[[str], npt.NDArray[Any]]) -> None:
    """Gives slightly other values to arrays of these names, which are the same for the same values."""
    for number, array in enumerate(description.arrays):
        if array.name in names:
            perturb(array_of(array.name), number)


class _Recorder:
    """The arrays of a granule in Python, and the values that they have now."""

    def __init__(self, description: Description, layouts: Sequence[Layout], temporaries: Collection[int]) -> None:
        self._description = description
        self._layouts = layouts
        self._arrays = {array.name: each.array() for array, each in zip(description.arrays, layouts, strict=True)}
        self._before = {name: array.copy(order="K") for name, array in self._arrays.items()}
        self._inputs: Mapping[str, npt.NDArray[Any]] = {}  # of a run: what nothing in it may change
        self.refusal: GranuleError | None = None
        self._temporaries = {description.arrays[each].name for each in temporaries}

    def _refuse(self, text: str) -> None:
        """Keeps the first refusal for the end: all ranks run all hooks, which communicate."""
        self.refusal = self.refusal or GranuleError(text)

    @property
    def arguments(self) -> Mapping[str, npt.NDArray[Any]]:
        return {array.name: self._before[array.name] for array in self._description.arguments}

    @property
    def start(self) -> Mapping[str, str]:
        return {name: digest(array) for name, array in self._before.items() if name not in self._temporaries}

    def restore(self) -> None:
        self._write(self._before)

    def run(self, step: GranuleStep, actions: Sequence[Any]) -> Run:
        """
        Runs a step from the values of now, from other ones in the arrays that steps write, and from other ones in all
        arrays. Returns the run that says most. Each rank does all three, because hooks communicate.
        """
        as_it_is = self._with_hidden(step, self._run(step, actions, []))
        finite = self._finite()
        arrays = self._changeable(actions)
        written = [name for name, is_written in arrays.items() if is_written]
        less, _ = self._run_changed(step, actions, written, finite)
        all_, why = self._run_changed(step, actions, list(arrays), finite)
        if all_ is not None:
            return all_
        if less is not None:
            return _with_limit(less, f"with other values only in arrays that steps write: {why}")
        return _with_limit(as_it_is, f"only from the values of the export: {why}")

    def _run_changed(
        self,
        step: GranuleStep,
        actions: Sequence[Any],
        changed: Sequence[str],
        finite: Mapping[str, npt.NDArray[np.bool_]],
    ) -> tuple[Run | None, str]:
        """What a step does from other values in some arrays; None, and why, if it cannot."""
        try:
            found = self._run(step, actions, changed)  # also without changes: see above
        except Exception as error:  # of a hook or a program, which need not accept any values
            return None, f"{type(error).__name__}: {reason(error)}"
        if not changed:
            return None, "it has no array of floating-point numbers that can be written"
        for name, now in self._finite().items():
            if (finite[name] & ~now).any():
                return None, f"array '{name}' is not finite"
        return self._with_hidden(step, found), ""

    def _with_hidden(self, step: GranuleStep, run: Run) -> Run:
        """The run that has just ended, with an array that it has left so that a comparison says little about it."""
        for number in sorted(
            step.arrays.union(*(each.arrays for each in step.positions if isinstance(each, HookCall)))
        ):
            name = self._description.arrays[number].name
            if (count := hidden(self._arrays[name])) is not None:
                return _with_limit(run, f"with array '{name}' not finite at {count}, which hides differences")
        return run

    def _changeable(self, actions: Sequence[Any]) -> dict[str, bool]:
        """The arrays of floating-point numbers whose memory can be written, and whether steps write them."""
        arrays = State(_hooks_of({"": actions})).arrays.values()
        reached = list(filter(None, (layout_of(array) for array in arrays if array.flags.writeable)))
        fixed = [
            layout
            for action in actions
            for layout in _fixed_arrays(action)
            if not any(layout.overlaps(each) for each in reached)
        ]
        return {
            array.name: array.written
            for array, layout in zip(self._description.arrays, self._layouts, strict=True)
            if can_change(self._arrays[array.name]) and not any(layout.overlaps(each) for each in fixed)
        }

    def _run(self, step: GranuleStep, actions: Sequence[Any], changed: Sequence[str]) -> Run:
        names = self._temporaries
        self._begin(changed)
        first = {name: self._arrays[name].copy(order="K") for name in names}
        hooks = dict(self._do(step, actions))
        after = self._digests()
        if names:
            written = {name: self._arrays[name].copy(order="K") for name in names}
            self._begin(changed)
            self._write({name: np.zeros_like(self._before[name]) for name in names})
            self._do_again(step, actions, hooks)
            again = self._digests()
            self._compare(step, after, again)
            for name in names:
                self._compare_written(step, name, first[name], written[name])
            after = again
        return Run([name for name in changed if name not in names], "", hooks, after)

    def _begin(self, changed: Sequence[str]) -> None:
        self.restore()
        change(self._description, changed, self._arrays.__getitem__)
        self._inputs = {
            each.name: self._arrays[each.name].copy(order="K") if each.name in changed else self._before[each.name]
            for each in self._description.arrays
            if not each.written
        }

    def _do(self, step: GranuleStep, actions: Sequence[Any]) -> Iterator[tuple[tuple[int, str], npt.NDArray[Any]]]:
        """Does the actions of a step. Yields what its hooks have written."""
        for number, (position, action) in enumerate(zip(step.positions, actions, strict=True)):
            if not isinstance(position, HookCall):
                action()
                continue
            own = [self._description.arrays[each].name for each in position.arrays]
            others = {
                each.name: self._arrays[each.name].copy(order="K") if each.written else self._inputs[each.name]
                for each in self._description.arrays
                if each.name not in own
            }
            action()
            for name, before in others.items():
                self._check_unchanged(step, number, self._description.hooks[position.hook], name, before)
            for name in own:
                yield (number, name), self._arrays[name].copy(order="K")

    def _do_again(
        self, step: GranuleStep, actions: Sequence[Any], hooks: Mapping[tuple[int, str], npt.NDArray[Any]]
    ) -> None:
        """Does them with what the hooks have written before: not all ranks have temporaries, but all communicate."""
        for number, (position, action) in enumerate(zip(step.positions, actions, strict=True)):
            if isinstance(position, HookCall):
                for each in position.arrays:
                    name = self._description.arrays[each].name
                    self._arrays[name][...] = hooks[number, name]
            else:
                action()

    def _check_unchanged(self, step: GranuleStep, number: int, hook: str, name: str, before: npt.NDArray[Any]) -> None:
        found = first_difference(self._arrays[name], before)
        if found is not None:
            self._refuse(
                f"Hook '{hook}' of granule '{self._description.name}' changes array '{name}', which it does not get, "
                f"at {found.elements} (position {number + 1} of step '{step.name}'): pass it to gtstub.action()."
            )

    def _compare(self, step: GranuleStep, expected: Mapping[str, str], found: Mapping[str, str]) -> None:
        for name, each in found.items():
            if name not in self._temporaries and each != expected[name]:
                listed = ", ".join(f"'{each}'" for each in sorted(self._temporaries))
                self._refuse(
                    f"Step '{step.name}' of granule '{self._description.name}' gives array '{name}' other values if "
                    f"temporaries are zero at the start, which are: {listed}. This is an error of gtstub. The granule "
                    f"keeps the values of those that are named in 'kept'."
                )

    def _compare_written(
        self, step: GranuleStep, temporary: str, first: npt.NDArray[Any], written: npt.NDArray[Any]
    ) -> None:
        """Refuses a temporary with an element that a step has written, and that is another one if it runs again."""
        again = self._arrays[temporary]
        if (differences(written, again)[0] & differences(written, first)[0]).any():
            self._refuse(
                f"Granule '{self._description.name}' does not do what its steps do in Python: array '{temporary}' "
                f"differs after step '{step.name}', which has written it. This is an error of gtstub. The granule "
                f"keeps the values of arrays that are named in 'kept'."
            )

    def _digests(self) -> dict[str, str]:
        return {name: digest(array) for name, array in self._arrays.items()}

    def _finite(self) -> dict[str, npt.NDArray[np.bool_]]:
        return {name: np.isfinite(array) for name, array in self._arrays.items() if can_change(array)}

    def _write(self, values: Mapping[str, npt.NDArray[Any]]) -> None:
        """Writes arrays where they are other ones: some cannot be written, but have not changed."""
        for name, each in values.items():
            if self._arrays[name].tobytes() != each.tobytes():
                self._arrays[name][...] = each


def _around(arrays: Mapping[str, Any], layouts: Sequence[Layout]) -> Iterator[tuple[str, Any]]:
    """Other arrays that can be written, perhaps by a hook alone, such as buffers of an exchange: they are put back."""
    known: set[Layout | None] = set(layouts)
    for name, array in arrays.items():
        layout = layout_of(array)
        if may_be_written(array) and (layout is None or layout not in known):
            known.add(layout)
            yield name, array


def _hooks_of(actions: Mapping[str, Sequence[Any]]) -> Iterator[Any]:
    for action in itertools.chain.from_iterable(actions.values()):
        if not isinstance(action, _host.BoundCall):
            yield action.function if isinstance(action, _host.Action) else action


def _with_limit(run: Run, text: str) -> Run:
    return dataclasses.replace(run, limits=", and ".join(filter(None, (text, run.limits))))


def _fixed_arrays(action: Any) -> Iterator[Layout]:
    """The arrays of an action that cannot be written."""
    values = action.arguments.values() if isinstance(action, _host.BoundCall) else getattr(action, "arrays", ())
    for value in values:
        array = writable(getattr(value, "ndarray", value))
        if isinstance(array, np.ndarray) and not array.flags.writeable and (layout := layout_of(array)) is not None:
            yield layout


def write(folder: Path, recording: Recording) -> None:
    values = {f"argument/{name}": array for name, array in recording.arguments.items()}
    runs = {}
    for step, run in recording.runs.items():
        values |= {f"hook/{step}/{number}/{name}": array for (number, name), array in run.hooks.items()}
        runs[step] = {"changed": [*run.changed], "limits": run.limits, "after": run.after}
    np.savez(folder / VALUES, allow_pickle=False, **values)
    digests = {"start": recording.start, "runs": runs}
    (folder / DIGESTS).write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> Recording:
    """Raises GranuleError if there is no recording, or only a part of it."""
    try:
        with np.load(folder / VALUES, allow_pickle=False) as file:
            values = {name: file[name] for name in file.files}
        digests = json.loads((folder / DIGESTS).read_text(encoding="utf-8"))
        start = digests["start"]
        runs = {
            step: Run(each["changed"], each["limits"], dict(_hooks(step, values)), each["after"])
            for step, each in digests["runs"].items()
        }
    except (OSError, ValueError, EOFError, BadZipFile, KeyError, TypeError) as error:
        raise GranuleError(f"The granule in '{folder}' has no recording to compare with: {error}.") from error
    arguments = {name.removeprefix("argument/"): each for name, each in values.items() if name.startswith("argument/")}
    return Recording(arguments, start, runs)


def _hooks(step: str, values: Mapping[str, npt.NDArray[Any]]) -> Iterator[tuple[tuple[int, str], npt.NDArray[Any]]]:
    for name, each in values.items():
        if name.startswith(f"hook/{step}/"):
            number, array = name.split("/")[2:]
            yield (int(number), array), each
