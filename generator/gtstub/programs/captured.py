"""What is checked of a captured step: that it has calls, and that it does what the captured method does."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gtstub import _host
from gtstub.errors import CaptureError


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
    """An array of a step, the name of its argument, and the position and the program that wrote it last."""

    argument: str
    position: int
    program: str
    array: Any


def verify_step(step: _host.Step, run_again: Callable[[], _host.Step]) -> None:
    """
    Raises CaptureError unless a step does the same as the method that it was captured from. The method has just run
    once, and `run_again` captures it again. Afterwards the arrays are as they are now.
    """
    fields = _fields(step)
    before = [field.array.copy() for field in fields]
    try:
        _check_same(step, run_again())
        for field, array in zip(fields, before, strict=True):
            _check_restorable(step.__name__, field, array)
        expected = [field.array.copy() for field in fields]
        _restore(fields, before)
        step()
        for field, array in zip(fields, expected, strict=True):
            _check_equal(step.__name__, field, array)
    finally:
        _restore(fields, before)


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
                found[id(value)] = _Field(name, number + 1, call.__name__, array)
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

    return isinstance(value, bool | int | float | np.generic)


def _restore(fields: Iterable[_Field], arrays: Iterable[Any]) -> None:
    for field, array in zip(fields, arrays, strict=True):
        if _is_writable(field.array):
            field.array[...] = array


def _is_writable(array: Any) -> bool:
    return bool(getattr(getattr(array, "flags", None), "writeable", True))


def _check_same(step: _host.Step, again: _host.Step) -> None:
    """Raises CaptureError unless two calls of a method have called the same programs with the same arguments."""
    first, second = _calls(step), _calls(again)
    refused = f"Step '{step.__name__}' cannot be captured: "
    for number, (call, other) in enumerate(zip(first, second, strict=False)):
        if call.program is not other.program:
            raise CaptureError(
                f"{refused}at position {number + 1}, the first call of the method has called program "
                f"'{call.__name__}', and the second one '{other.__name__}'."
            )
        for argument, value in call.arguments.items():
            difference = _difference(value, other.arguments[argument])
            if difference is not None:
                raise CaptureError(
                    f"{refused}argument '{argument}' of program '{call.__name__}' (position {number + 1}) was "
                    f"{difference} of the method."
                )
    if len(first) != len(second):
        raise CaptureError(
            f"{refused}the first call of the method has called {_programs(len(first))}, and the second one "
            f"{_programs(len(second))}."
        )


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
    if not _is_writable(field.array) and _differences(field.array, before)[0].any():
        raise CaptureError(
            f"Step '{step}' cannot be verified: argument '{field.argument}' of program '{field.program}' (position "
            f"{field.position}) is read-only, but the method changes its memory. The method does more than call these "
            f"programs."
        )


def _differences(array: Any, other: Any) -> tuple[Any, Any, Any]:
    """Which elements of two arrays differ in their bits, in C order, and both arrays in host memory."""
    import numpy as np

    found, wanted = (np.ascontiguousarray(each.get() if hasattr(each, "get") else each) for each in (array, other))
    size = found.dtype.itemsize
    differ = (found.view(np.uint8).reshape(-1, size) != wanted.view(np.uint8).reshape(-1, size)).any(axis=1)
    return differ, found, wanted


def _check_equal(step: str, field: _Field, expected: Any) -> None:
    """Raises CaptureError unless an array has the same bits."""
    import numpy as np

    differ, found, wanted = _differences(field.array, expected)
    count = int(differ.sum())
    if count == 0:
        return
    index = tuple(int(each) for each in np.unravel_index(int(differ.argmax()), found.shape))
    raise CaptureError(
        f"Step '{step}' does not do what the method does: argument '{field.argument}' of program '{field.program}' "
        f"(position {field.position}) differs at {count} of {found.size} elements, first at {index}: "
        f"{wanted[index]!s} after the method, {found[index]!s} after the step. "
        f"The method does more than call these programs."
    )
