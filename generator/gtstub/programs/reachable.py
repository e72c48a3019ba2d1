"""
The arrays that a function can reach: by its variables, and by the attributes and the elements of what they have. This
finds what a captured method changes besides the arguments of programs.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

MOST_OBJECTS = 20_000
"""Objects that are looked at. What is farther away is not found."""

MOST_ELEMENTS = 1000
"""Elements of one list or mapping that are looked at."""

DEEPEST = 5
"""Attributes and elements between a variable and an array."""

OF_LIBRARIES = ("dace", "gt4py", "gtstub", "sympy")
"""What these packages have in their objects is theirs."""


def reachable_arrays(function: Callable[..., object]) -> Iterator[tuple[str, Any]]:
    """Names, such as 'self.vn', and arrays of numpy and CuPy with numbers. No code of the objects runs."""
    waiting = deque((name, value, 0) for name, value in _variables(function))
    seen: dict[int, Any] = {}  # Keeps what it has seen, so that no other object gets its number.
    while waiting and len(seen) < MOST_OBJECTS:
        name, value, depth = waiting.popleft()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        array = _array_of(value)
        if array is not None:
            yield name, array
        elif depth < DEEPEST:
            waiting.extend((inner, each, depth + 1) for inner, each in _members(name, value))


def _variables(function: Any) -> Iterator[tuple[str, Any]]:
    """What a function gets from around it, also by its arguments' default values."""
    if isinstance(function, functools.partial):
        yield from ((f"argument {number + 1}", each) for number, each in enumerate(function.args))
        yield from function.keywords.items()
        function = function.func
    if isinstance(function, types.MethodType):
        yield "self", function.__self__
        function = function.__func__
    code = getattr(function, "__code__", None)
    if code is None:
        yield "self", function  # an object that can be called
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # is not set
            continue
    yield from ((name, function.__globals__[name]) for name in code.co_names if name in function.__globals__)
    defaults = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    yield from zip(names[len(names) - len(defaults) :], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()


def _array_of(value: Any) -> Any:
    """The array that an object is, or that a field of gt4py has."""
    array: Any = getattr(value, "ndarray", None) if type(value).__module__.partition(".")[0] == "gt4py" else value
    if type(array).__module__.partition(".")[0] not in ("numpy", "cupy") or not hasattr(array, "flags"):
        return None
    return array if getattr(array.dtype, "kind", "O") in "biufc" and hasattr(array, "copy") else None


def _members(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if isinstance(value, bool | int | float | complex | str | bytes):
        return
    if isinstance(value, Mapping) and kind.__module__ in ("builtins", "collections", "types"):
        for key, each in islice(list(value.items()), MOST_ELEMENTS):
            yield f"{name}[{repr(key) if isinstance(key, str | int) else '...'}]", each
    elif isinstance(value, list | tuple | deque):
        yield from ((f"{name}[{number}]", each) for number, each in enumerate(list(islice(value, MOST_ELEMENTS))))
    elif isinstance(value, types.FunctionType | types.MethodType | functools.partial):
        yield from _variables(value)
    elif not isinstance(value, type | types.ModuleType) and kind.__module__.partition(".")[0] not in OF_LIBRARIES:
        yield from ((f"{name}.{key}", each) for key, each in list(getattr(value, "__dict__", {}).items()))
        for slot in (each for base in kind.__mro__ for each in vars(base).values()):
            if isinstance(slot, types.MemberDescriptorType):
                try:
                    yield f"{name}.{slot.__name__}", slot.__get__(value)
                except AttributeError:  # is not set
                    continue
