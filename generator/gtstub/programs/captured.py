"""What is checked of a captured step: that it has calls, and that it does what the captured method does."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gtstub import _host, ranks
from gtstub.errors import CaptureError, CaptureWarning, reason
from gtstub.programs.reachable import layout
from gtstub.programs.saved import Saved, is_writable, may_be_written
from gtstub.programs.state import State
from gtstub.programs.unwritten import unwritten
from gtstub.util.bits import Difference, differences, digest, first_difference, in_host_memory
from gtstub.util.callables import title
from gtstub.util.perturbed import can_change, hidden, perturb, writable

type Look = Callable[[int], object]
"""Is called before each action that is captured, with the number of those before it."""

type Action = _host.BoundCall | Callable[[], object]
"""What is captured: a call of a program, or what a step that the method runs does besides."""


def check_captured(name: str, actions: Sequence[Action]) -> None:
    """Raises CaptureError unless there are calls of programs, all on the same device."""
    calls = [action for action in actions if isinstance(action, _host.BoundCall)]
    if not calls:
        raise CaptureError(f"Step '{name}' has captured nothing: no program of gtstub was called in this thread.")
    other = next((call for call in calls if call.device != calls[0].device), None)
    if other is not None:
        raise CaptureError(
            f"Step '{name}' cannot be captured: program '{calls[0].__name__}' runs on '{calls[0].device}', "
            f"program '{other.__name__}' on '{other.device}'. Capture them apart."
        )


@dataclasses.dataclass(frozen=True)
class _Field:
    """
    An array of a step, whether an action may write it, and the place, for messages, that did so last. `array` can be
    written if its memory can, also if `value` is a read-only view of it.
    """

    place: str
    value: Any
    array: Any
    written: bool

    @property
    def can_change(self) -> bool:
        return can_change(self.array) and is_writable(self.array)


def verify_step(step: _host.Step, run_again: Callable[[Look | None], _host.Step], method: Callable[[], object]) -> None:
    """
    Raises CaptureError unless a step does the same as the method that it was captured from. The method has just run
    once, and `run_again` captures it again. Both begin with the arrays as they are now, and then with slightly other
    values in them: what a method changes besides its programs may have the same values in each call. If this cannot be
    tried, a CaptureWarning says why. Another one names arrays that the method changes, and that no program gets.
    Afterwards all these arrays are as they are now, and so is what the method reaches.

    In a parallel run, all ranks call the method and run the step equally often, also after an error: both communicate.
    """
    verification = _Verification(step, run_again, method)
    try:
        verification.look()
        _check_copies(step)
        verification.compare()
        limits = verification.compare_perturbed()
    except Exception:
        verification.keep_pace(RUNS)
        raise
    finally:
        verification.restore()
    if limits:
        warnings.warn(f"Step '{step.__name__}' was verified {', and '.join(limits)}.", CaptureWarning, stacklevel=3)
    if verification.lost:
        warnings.warn(
            f"Step '{step.__name__}' lacks what the method does to {verification.lost}. A function that does this "
            f"belongs to the step: gtstub.action(function, array).",
            CaptureWarning,
            stacklevel=3,
        )


def run_as_others(step: _host.Step, method: Callable[[], object]) -> None:
    """In a parallel run, does what other ranks do to verify a step. On this one its first capture was refused."""
    if not ranks.is_parallel():
        return
    verification = _Verification(step, lambda _: step, method)
    try:
        with contextlib.suppress(Exception):
            verification.look()
        verification.keep_pace(RUNS)
    finally:
        verification.restore()


RUNS = 6
"""Of a method and its step, in turn, by which each rank of a parallel run verifies the step."""


class _Verification:
    """A step, and the method that it was captured from; after `look`, with the values that their arrays have then."""

    def __init__(
        self,
        step: _host.Step,
        run_again: Callable[[Look | None], _host.Step],
        method: Callable[[], object],
    ) -> None:
        self._step = step
        self._run_again = run_again
        self._method = method
        self._is_parallel = ranks.is_parallel()
        self._runs = 0
        self._saved = Saved([])
        self._state = State([])
        self._hidden: list[str] = []
        self.lost = ""
        """An array that the method changes and the step does not, and where; empty if there is none."""

    def look(self) -> None:
        """Finds what the step and the method have now, which `restore` puts back."""
        self._fields = _fields(self._step)
        self._state = State([self._method, self._step])  # The step has callbacks of its programs.
        self._around = _around(self._fields, self._state.arrays)
        self._before = [field.array.copy() for field in self._fields]
        around = [(f"array '{name}'", array, array.copy()) for name, array in self._around.items()]
        fields = [(each.place, each.array, before) for each, before in zip(self._fields, self._before, strict=True)]
        self._saved = Saved([*around, *(each for each in fields if is_writable(each[1]))])

    def restore(self) -> None:
        refusals = self._saved.restore()
        self._state.restore()
        if refusals:
            raise CaptureError(f"Step '{self._step.__name__}' cannot be verified: {refusals[0]}")

    def compare(self) -> None:
        """Raises CaptureError if the step does not do what the method does from the values of now."""
        unlike = self._run_method(())
        if unlike is not None:
            raise CaptureError(f"Step '{self._step.__name__}' cannot be captured: {unlike}.")
        for field, array in zip(self._fields, self._before, strict=True):
            _check_restorable(self._step.__name__, field, array)
        replaced = self._find_replaced()
        self._compare_step(())
        self._hidden = self._find_hidden()
        self.lost = self.lost or replaced

    def compare_perturbed(self) -> list[str]:
        """
        Raises CaptureError if the step does not do what the method does from other values: those of all arrays, or else
        of those that programs write. Returns what this says little about: with which values that was possible, and why
        not with others, and an array that is hardly finite.
        """
        return [*filter(None, [self._compare_with_others()]), *self._hidden]

    def _compare_with_others(self) -> str | None:
        arrays = [*(field for field in self._fields if field.can_change), *self._behind_read_only()]
        written = [field for field in arrays if any(_may_share(field, each) for each in self._fields if each.written)]
        nothing = "it writes no array of floating-point numbers"
        why = self._compare_with(arrays) if arrays or self._is_parallel else nothing
        if why is None and not self._is_parallel:
            return None
        if self._is_parallel or 0 < len(written) < len(arrays):
            less = self._compare_with(written)
            if arrays and why is None:
                return None
            if written and less is None:
                return f"with other values only in arrays that its programs write: {why}"
        why = why if arrays else nothing
        return f"only with the values that its arrays have now: {why}"

    def _behind_read_only(self) -> list[_Field]:
        """Other arrays that the method can reach, and by which it can write what programs get read-only."""
        fixed = [field for field in self._fields if can_change(field.array) and not is_writable(field.array)]
        around = [_Field(f"array '{name}'", array, array, False) for name, array in self._around.items()]
        return [each for each in around if each.can_change and any(_may_share(each, field) for field in fixed)]

    def _compare_with(self, changed: Sequence[_Field]) -> str | None:
        try:
            return self._compare_run(changed)
        finally:
            self.keep_pace(self._runs + self._runs % 2)

    def _compare_run(self, changed: Sequence[_Field]) -> str | None:
        try:
            unlike = self._run_method(changed)
        except Exception as error:  # of the method, which need not accept any values
            return f"with other values, the method raises {type(error).__name__}: {reason(error)}"
        if unlike is not None:
            return f"with other values in the second call, {unlike}"
        finite = [_is_finite(field.array) for field in self._fields]
        try:
            self._compare_step(changed)
        except CaptureError:
            raise
        except Exception as error:  # of a program
            return f"with other values, the step raises {type(error).__name__}: {reason(error)}"
        for field, now, before in zip(self._fields, finite, map(_is_finite, self._before), strict=True):
            if (before & ~now).any():
                return f"with other values, {field.place} is not finite"
        self._hidden = self._find_hidden()
        return None

    def _find_replaced(self) -> str:
        """A name at which the call of the method that has just ended has put another array; empty if there is none."""
        before = self._state.arrays
        for name, array in State([self._method]).arrays.items():
            if name in before and layout(array) != layout(before[name]):
                return f"'{name}', which is another array after each call"
        return ""

    def _find_hidden(self) -> list[str]:
        """The first array that the last run has left so that a comparison says little about it."""
        found = ((field, hidden(field.array)) for field in self._fields)
        return [
            f"with {field.place} not finite at {count}, which hides differences" for field, count in found if count
        ][:1]

    def _run_method(self, changed: Sequence[_Field]) -> str | None:
        """Runs the method. Returns how its programs and arguments are unlike those of the step."""
        self._begin(changed)
        self._runs += 1
        return _unlike(self._step, self._run_again(None))

    def _compare_step(self, changed: Sequence[_Field]) -> None:
        """Raises CaptureError if the step does not leave the arrays as they are now, after the method."""
        expected = [field.array.copy() for field in self._fields]
        expected_around = {name: array.copy() for name, array in self._around.items()}
        self._begin(changed)
        self._runs += 1
        self._step()
        refusals = (_difference_at_end(field, array) for field, array in zip(self._fields, expected, strict=True))
        refusal = next(filter(None, refusals), None)
        if refusal is not None:
            del expected
            change = None
            if not self._is_parallel:  # The other ranks may have found nothing.
                change = _find_change(self._step, self._fields, lambda: self._begin(changed), self._run_again)
            where = " if its arrays begin with slightly other values" if changed else ""
            raise CaptureError(
                f"Step '{self._step.__name__}' does not do what the method does{where}: {change or refusal}"
            )
        for name, array in expected_around.items():
            found = first_difference(self._around[name], array)
            if found is not None and not self.lost:
                self.lost = f"array '{name}', which no program gets as a whole, at {found.elements}"

    def keep_pace(self, runs: int) -> None:
        """In a parallel run, does those runs of the method and the step, in turn, that this rank has left out."""
        while self._is_parallel and self._runs < runs:
            self._runs += 1
            for each in (self.restore, self._method if self._runs % 2 else self._step):
                with contextlib.suppress(Exception):  # The error is known that has ended the verification.
                    each()

    def _begin(self, changed: Sequence[_Field]) -> None:
        """Gives all arrays the values of now, and slightly other ones to those of `changed`: always the same."""
        self.restore()
        for seed, field in enumerate(changed):
            perturb(field.array, seed)


def warn_of_calls_elsewhere(step: _host.Step, count: int, stacklevel: int) -> None:
    """Warns of programs that other threads have called meanwhile, perhaps for the method."""
    if count > 0:
        warnings.warn(
            f"Step '{step.__name__}' lacks {count} call{'' if count == 1 else 's'} of programs that other threads have "
            f"made while it was captured.",
            CaptureWarning,
            stacklevel=stacklevel,
        )


def warn_of_unwritten(step: _host.Step, stacklevel: int) -> None:
    """Warns of elements that programs of a captured step read, and that something else may have to fill."""
    for sign in unwritten(list(step)):
        warnings.warn(f"Step '{step.__name__}' may lack something: {sign}", CaptureWarning, stacklevel=stacklevel)


class _Argument(NamedTuple):
    """
    What a program or a function gets: its place for messages, the value, whether it may be written, and the memory,
    layout and origin that a program has of an array.
    """

    place: str
    value: Any
    written: bool
    memory: tuple[Any, ...] | None


def _arguments(action: Action, number: int) -> Iterator[_Argument]:
    if isinstance(action, _host.BoundCall):
        written, arrays = set(action.written), action.arrays
        for name, value in action.arguments.items():
            place = f"argument '{name}' of program '{action.__name__}' (position {number})"
            yield _Argument(place, value, name in written, arrays.get(name))
    elif isinstance(action, _host.Action):
        for count, value in enumerate(action.arrays):
            place = f"array {count + 1} of function '{title(action.function)}' (position {number})"
            yield _Argument(place, value, True, None)  # What a function does is not known.


def _fields(step: _host.Step) -> Sequence[_Field]:
    """All arrays of a step that can be copied, each once."""
    found: dict[object, _Field] = {}
    for number, action in enumerate(step):
        for place, value, written, _ in _arguments(action, number + 1):
            array = _array(value)
            if array is not None and (id(value) not in found or written):
                found[id(value)] = _Field(place, value, writable(array), written)
    return list(found.values())


def _check_copies(step: _host.Step) -> None:
    """Raises CaptureError if an array cannot be copied, or not where the step has it."""
    for number, action in enumerate(step):
        for place, value, _, memory in _arguments(action, number + 1):
            array = _array(value)
            if array is None and not _is_scalar(value) and not callable(value) and isinstance(action, _host.BoundCall):
                raise CaptureError(
                    f"Step '{step.__name__}' cannot be verified: {place} is of type '{type(value).__qualname__}', "
                    f"which cannot be copied; pass verify=False."
                )
            if array is not None and memory is not None and memory[0] != layout(array)[0]:
                raise CaptureError(
                    f"Step '{step.__name__}' cannot be verified: {place} has other memory after the method than in its "
                    f"call. The step keeps the memory of the call."
                )


def _around(fields: Sequence[_Field], reachable: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arrays by their names that a method can reach, and those of which programs get sections; not the fields."""
    known = {layout(field.array) for field in fields if is_writable(field.array)}
    found = dict(reachable)
    for field in fields:
        owner = _owner(field.array)
        if hasattr(owner, "dtype"):
            found.setdefault(f"that {field.place} is a section of", owner)
    made: dict[str, Any] = {}
    for name, array in sorted(found.items(), key=lambda each: not is_writable(each[1])):
        if may_be_written(array) and array.size > 0 and layout(array) not in known:
            known.add(layout(array))
            made[name] = array
    return made


def _array(value: Any) -> Any:
    """The numpy or cupy array of a field; None for a scalar and for what cannot be copied."""
    array = getattr(value, "ndarray", getattr(value, "_ndarray", value))
    if _is_scalar(array):
        return None
    if hasattr(array, "copy") and hasattr(array, "dtype"):
        return array
    if hasattr(value, "__array_interface__"):
        import numpy as np

        return np.asarray(value)
    return None


def _is_scalar(value: Any) -> bool:
    import numpy as np

    return isinstance(value, bool | int | float | complex | np.generic)


def _may_share(field: _Field, other: _Field) -> bool:
    """Whether two arrays may have the same memory, or parts of it."""
    import numpy as np

    arrays = field.array, other.array
    return field is other or (all(isinstance(each, np.ndarray) for each in arrays) and np.may_share_memory(*arrays))


def _is_finite(array: Any) -> Any:
    """Which elements are finite, in host memory."""
    import numpy as np

    values = in_host_memory(array)
    return np.isfinite(values) if can_change(values) else np.ones(values.shape, np.bool_)


def _unlike(step: _host.Step, again: _host.Step) -> str | None:
    """How another call of a method has called other programs, or with other arguments; None if it has not."""
    first, second = list(step), list(again)
    of_first = [given.value for number, each in enumerate(first) for given in _arguments(each, number + 1)]
    for number, (action, other) in enumerate(zip(first, second, strict=False)):
        if not _do_the_same(action, other):
            return (
                f"at position {number + 1}, the first call of the method has called {_title(action)}, and the second "
                f"one {_title(other)}"
            )
        for one, new in zip(_arguments(action, number + 1), _arguments(other, number + 1), strict=True):
            difference = _difference(one.value, new.value, of_first)
            if difference is not None:
                return f"{one.place} was {difference}"
            if one.memory != new.memory:
                return f"{one.place} had other memory or another layout in the second call of the method"
    if len(first) != len(second):
        return f"the first call of the method has called {_count(first)}, and the second one {_count(second)}"
    return None


def _do_the_same(action: Action, other: Action) -> bool:
    if isinstance(action, _host.BoundCall) or isinstance(other, _host.BoundCall):
        return getattr(action, "program", action) is getattr(other, "program", other)
    if isinstance(action, _host.Action) and isinstance(other, _host.Action):
        return bool(action.function == other.function) and len(action.arrays) == len(other.arrays)
    return bool(action == other)


def _title(action: Action) -> str:
    if isinstance(action, _host.BoundCall):
        return f"program '{action.__name__}'"
    return f"function '{title(action.function if isinstance(action, _host.Action) else action)}'"


def _count(actions: Sequence[Action]) -> str:
    word = "program" if all(isinstance(each, _host.BoundCall) for each in actions) else "position"
    return f"{len(actions)} {word}{'' if len(actions) == 1 else 's'}"


def _difference(value: Any, new: Any, of_first: Sequence[Any]) -> str | None:
    """What has changed from the first call, with the arguments `of_first`, to the second; None if nothing has."""
    if not _is_scalar(value):
        if value is new or _is_same_array(value, new):
            return None
        if any(new is each for each in of_first):
            return (
                "another array of the step in the second call of the method. If the method exchanges the two, as time "
                "levels, capture each order, or leave this to step.swap(). If its first call has a branch of its own, "
                "call it once before the capture"
            )
        return "another object in the second call of the method: make it once, outside of the method"
    if repr(value) == repr(new):  # NaN equals NaN, and -0.0 is not 0.0
        return None
    return f"{value!r} in the first call, and {new!r} in the second one of the method"


def _is_same_array(value: Any, new: Any) -> bool:
    """
    Whether two objects are the same array, such as a section that each call makes anew: the same elements in the memory
    of the same object. The step keeps this object alive, so that no other one can have its address.
    """
    one, other = _array(value), _array(new)
    if one is None or other is None or type(value) is not type(new) or _owner(one) is not _owner(other):
        return False
    # Dimensions and origin of a field.
    return layout(one) == layout(other) and getattr(value, "domain", None) == getattr(new, "domain", None)


def _owner(array: Any) -> Any:
    """The object that owns the memory of an array, whose views it may be."""
    while True:
        base = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
        if base is None:
            return array
        array = base


def _check_restorable(step: str, field: _Field, before: Any) -> None:
    """Raises CaptureError if an array has changed that cannot be written."""
    if not is_writable(field.array) and differences(field.array, before)[0].any():
        raise CaptureError(
            f"Step '{step}' cannot be verified: {field.place} is read-only, but the method changes its memory. The "
            f"method does more than call these programs."
        )


def _difference_at_end(field: _Field, expected: Any) -> str | None:
    """How an array differs after the step from what the method leaves in it; None if it has the same bits."""
    found = first_difference(field.array, expected)
    if found is None:
        return None
    return (
        f"{field.place} differs at {found.elements}: {found.expected} after the method, {found.value} after the step. "
        f"The method does more than call these programs."
    )


# --- Where a method does more than call programs ----------------------------------------------------------------------


def _digests(fields: Iterable[_Field]) -> list[str]:
    """Digests of all arrays, because a step may have too many positions to keep copies of each."""
    return [digest(field.array) for field in fields]


class _FirstChange:
    """A Look that finds the first position before which an array is not as it is before that position of the step."""

    def __init__(self, fields: Sequence[_Field], digests: Sequence[Sequence[str]]) -> None:
        self._fields = fields
        self._digests = digests
        self.position = len(digests)
        self.field: _Field | None = None
        self.array: Any = None

    def __call__(self, position: int) -> None:
        # Called again for a position if a call has failed: then what the last one finds is what the program has read.
        if position > self.position or position == len(self._digests):
            return
        self.position, self.field, self.array = len(self._digests), None, None
        for field, found, expected in zip(self._fields, _digests(self._fields), self._digests[position], strict=True):
            if found != expected:
                self.position, self.field, self.array = position, field, field.array.copy()
                return


def _find_change(
    step: _host.Step, fields: Sequence[_Field], begin: Callable[[], None], run_again: Callable[[Look], _host.Step]
) -> str | None:
    """
    Says between which programs of a method something else changes which array. Calls the method once more, after
    `begin`. None if this call does not show it, as that of a method whose own state has changed.
    """
    calls = list(step)
    digests = []
    begin()
    for call in calls:
        digests.append(_digests(fields))
        call()
    digests.append(_digests(fields))
    look = _FirstChange(fields, digests)
    begin()
    try:
        if _unlike(step, run_again(look)) is not None:
            return None
        look(len(calls))
    except Exception:  # of the method: what was found before is the answer
        return None
    if look.field is None:
        return None
    begin()
    for call in calls[: look.position]:
        call()
    if _digests(fields) != digests[look.position]:
        return None  # The programs themselves do not give the same bits twice.
    return _change(calls, look.position, look.field, first_difference(look.field.array, look.array))


def _change(calls: Sequence[Action], position: int, field: _Field, found: Difference | None) -> str | None:
    if found is None:
        return None
    names = [f"position {number + 1} ({_title(each).partition(' ')[2]})" for number, each in enumerate(calls)]
    if position == 0:
        place = f"before {names[0]}"
    elif position == len(calls):
        place = f"after {names[-1]}"
    else:
        place = f"between {names[position - 1]} and {names[position]}"
    return (
        f"{place}, something other than a program changes {_argument_near(calls, position, field)} at "
        f"{found.elements}: {found.expected} in the method, {found.value} in the step. "
        f"A function that does this belongs there: gtstub.action(function, array)."
    )


def _argument_near(calls: Sequence[Action], position: int, field: _Field) -> str:
    """The next argument that gets an array at or after a position; the last one before it if there is none."""
    for number in (*range(position, len(calls)), *reversed(range(position))):
        for given in _arguments(calls[number], number + 1):
            if given.value is field.value:
                return given.place
    raise AssertionError(field)
