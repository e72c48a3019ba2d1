"""What is checked of a captured step: that it has calls, and that it does what the captured method does."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gtstub import _host
from gtstub.errors import CaptureError, CaptureWarning, reason
from gtstub.programs.unwritten import unwritten
from gtstub.util.bits import Difference, differences, digest, first_difference, in_host_memory
from gtstub.util.perturbed import can_change, perturb

type Look = Callable[[int], object]
"""Is called before each program that a method calls, with the number of those that it has called."""


def check_captured(name: str, calls: Sequence[_host.BoundCall]) -> None:
    """Raises CaptureError unless there are calls, all of programs on the same device."""
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
    """An array of a step, whether a program writes it, and the argument, position and program that did so last."""

    argument: str
    position: int
    program: str
    value: Any
    array: Any
    written: bool

    @property
    def can_change(self) -> bool:
        return can_change(self.array) and _is_writable(self.array)


def verify_step(step: _host.Step, run_again: Callable[[Look | None], _host.Step]) -> None:
    """
    Raises CaptureError unless a step does the same as the method that it was captured from. The method has just run
    once, and `run_again` captures it again. Both begin with the arrays as they are now, and then with slightly other
    values in them: what a method changes besides its programs may have the same values in each call. If this cannot be
    tried, a CaptureWarning says why. Afterwards the arrays are as they are now.
    """
    verification = _Verification(step, _fields(step), run_again)
    try:
        verification.compare()
        why = verification.compare_perturbed()
    finally:
        verification.restore()
    if why is not None:
        warnings.warn(f"Step '{step.__name__}' was verified {why}.", CaptureWarning, stacklevel=3)


class _Verification:
    """A step, its arrays with the values that they have now, and the method that it was captured from."""

    def __init__(
        self, step: _host.Step, fields: Sequence[_Field], run_again: Callable[[Look | None], _host.Step]
    ) -> None:
        self._step = step
        self._fields = fields
        self._run_again = run_again
        self._before = [field.array.copy() for field in fields]

    def restore(self) -> None:
        _restore(self._fields, self._before)

    def compare(self) -> None:
        """Raises CaptureError if the step does not do what the method does from the values of now."""
        unlike = self._run_method(())
        if unlike is not None:
            raise CaptureError(f"Step '{self._step.__name__}' cannot be captured: {unlike}.")
        for field, array in zip(self._fields, self._before, strict=True):
            _check_restorable(self._step.__name__, field, array)
        self._compare_step(())

    def compare_perturbed(self) -> str | None:
        """
        Raises CaptureError if the step does not do what the method does from other values: those of all arrays, or else
        of those that programs write. Returns with which values that was possible, and why not with others.
        """
        arrays = [field for field in self._fields if field.can_change]
        written = [field for field in arrays if any(_may_share(field, each) for each in self._fields if each.written)]
        why = self._compare_with(arrays) if arrays else "it writes no array of floating-point numbers"
        if why is None:
            return None
        if 0 < len(written) < len(arrays) and self._compare_with(written) is None:
            return f"with other values only in arrays that its programs write: {why}"
        return f"only with the values that its arrays have now: {why}"

    def _compare_with(self, changed: Sequence[_Field]) -> str | None:
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
                return (
                    f"with other values, argument '{field.argument}' of program '{field.program}' (position "
                    f"{field.position}) is not finite"
                )
        return None

    def _run_method(self, changed: Sequence[_Field]) -> str | None:
        """Runs the method. Returns how its programs and arguments are unlike those of the step."""
        self._begin(changed)
        return _unlike(self._step, self._run_again(None))

    def _compare_step(self, changed: Sequence[_Field]) -> None:
        """Raises CaptureError if the step does not leave the arrays as they are now, after the method."""
        expected = [field.array.copy() for field in self._fields]
        self._begin(changed)
        self._step()
        refusals = (_difference_at_end(field, array) for field, array in zip(self._fields, expected, strict=True))
        refusal = next(filter(None, refusals), None)
        if refusal is not None:
            del expected
            change = _find_change(self._step, self._fields, lambda: self._begin(changed), self._run_again)
            where = " if its arrays begin with slightly other values" if changed else ""
            raise CaptureError(
                f"Step '{self._step.__name__}' does not do what the method does{where}: {change or refusal}"
            )

    def _begin(self, changed: Sequence[_Field]) -> None:
        """Gives all arrays the values of now, and slightly other ones to those of `changed`: always the same."""
        self.restore()
        for seed, field in enumerate(changed):
            perturb(field.array, seed)


def warn_of_unwritten(step: _host.Step, stacklevel: int) -> None:
    """Warns of elements that programs of a captured step read, and that something else may have to fill."""
    for sign in unwritten(_calls(step)):
        warnings.warn(f"Step '{step.__name__}' may lack something: {sign}", CaptureWarning, stacklevel=stacklevel)


def _calls(step: _host.Step) -> list[_host.BoundCall]:
    return [action for action in step if isinstance(action, _host.BoundCall)]


def _fields(step: _host.Step) -> Sequence[_Field]:
    """All arrays of a step, each once. Raises CaptureError if one cannot be copied."""
    found: dict[object, _Field] = {}
    for number, call in enumerate(_calls(step)):
        written = set(call.written)
        for name, value in call.arguments.items():
            array = _array(value)
            if array is None and not _is_scalar(value) and not callable(value):
                raise CaptureError(
                    f"Step '{step.__name__}' cannot be verified: argument '{name}' of program '{call.__name__}' "
                    f"(position {number + 1}) is of type '{type(value).__qualname__}', which cannot be copied; "
                    f"pass verify=False."
                )
            if array is not None and (id(value) not in found or name in written):
                found[id(value)] = _Field(name, number + 1, call.__name__, value, array, name in written)
    return list(found.values())


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


def _restore(fields: Iterable[_Field], arrays: Iterable[Any]) -> None:
    for field, array in zip(fields, arrays, strict=True):
        if _is_writable(field.array):
            field.array[...] = array


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


def _is_writable(array: Any) -> bool:
    return bool(getattr(getattr(array, "flags", None), "writeable", True))


def _unlike(step: _host.Step, again: _host.Step) -> str | None:
    """How another call of a method has called other programs, or with other arguments; None if it has not."""
    first, second = _calls(step), _calls(again)
    for number, (call, other) in enumerate(zip(first, second, strict=False)):
        if call.program is not other.program:
            return (
                f"at position {number + 1}, the first call of the method has called program '{call.__name__}', and the "
                f"second one '{other.__name__}'"
            )
        for argument, value in call.arguments.items():
            difference = _difference(value, other.arguments[argument])
            if difference is not None:
                return (
                    f"argument '{argument}' of program '{call.__name__}' (position {number + 1}) was {difference} of "
                    f"the method"
                )
    if len(first) != len(second):
        return (
            f"the first call of the method has called {_programs(len(first))}, and the second one "
            f"{_programs(len(second))}"
        )
    return None


def _programs(count: int) -> str:
    return f"{count} program{'' if count == 1 else 's'}"


def _difference(value: Any, new: Any) -> str | None:
    """What has changed from the first call to the second; None if nothing has."""
    if not _is_scalar(value):
        return None if value is new else "another object in the second call"
    if repr(value) == repr(new):  # NaN equals NaN, and -0.0 is not 0.0
        return None
    return f"{value!r} in the first call, and {new!r} in the second one"


def _check_restorable(step: str, field: _Field, before: Any) -> None:
    """Raises CaptureError if an array has changed that cannot be written."""
    if not _is_writable(field.array) and differences(field.array, before)[0].any():
        raise CaptureError(
            f"Step '{step}' cannot be verified: argument '{field.argument}' of program '{field.program}' (position "
            f"{field.position}) is read-only, but the method changes its memory. The method does more than call these "
            f"programs."
        )


def _difference_at_end(field: _Field, expected: Any) -> str | None:
    """How an array differs after the step from what the method leaves in it; None if it has the same bits."""
    found = first_difference(field.array, expected)
    if found is None:
        return None
    return (
        f"argument '{field.argument}' of program '{field.program}' (position {field.position}) differs at "
        f"{found.elements}: {found.expected} after the method, {found.value} after the step. "
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
    calls = _calls(step)
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


def _change(calls: Sequence[_host.BoundCall], position: int, field: _Field, found: Difference | None) -> str | None:
    if found is None:
        return None
    names = [f"position {number + 1} ('{call.__name__}')" for number, call in enumerate(calls)]
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


def _argument_near(calls: Sequence[_host.BoundCall], position: int, field: _Field) -> str:
    """The next argument that gets an array at or after a position; the last one before it if there is none."""
    for number in (*range(position, len(calls)), *reversed(range(position))):
        for name, value in calls[number].arguments.items():
            if value is field.value:
                return f"argument '{name}' of program '{calls[number].__name__}' (position {number + 1})"
    raise AssertionError(field)
