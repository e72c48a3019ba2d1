"""
What a function can reach: by its variables, and by the attributes and the elements of what they have. This finds what a
captured method changes besides the arguments of programs.
"""

from __future__ import annotations

import argparse
import functools
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from gtstub import _host

MOST_OBJECTS = 20_000
"""Objects that are looked at. What is farther away is not found."""

MOST_ELEMENTS = 1000
"""Elements of one list or mapping that are looked at."""

DEEPEST = 5
"""Attributes and elements between a variable and an array."""

KINDS = "biufcmMSUVO"
"""Kinds of arrays: those of numbers, dates, texts of one length, structures and objects."""

OF_LIBRARIES = ("dace", "gt4py", "gtstub", "sympy")
"""What these packages have in their objects is theirs."""


NO_STATE = frozenset((*OF_LIBRARIES, "builtins", "cupy", "mpi4py", "numpy")) | sys.stdlib_module_names
"""Attributes of what these packages have belong together with what they have in C: they are not put back."""


def reachable_arrays(function: Callable[..., object]) -> Iterator[tuple[str, Any]]:
    """Names, such as 'self.vn', and arrays of numpy and CuPy. No code of the objects runs."""
    for name, value in _reachable(_variables(function), lambda _: True):
        array = array_of(value)
        if array is not None:
            yield name, array


def reachable_objects(function: Callable[..., object]) -> Iterator[Any]:
    """The function itself, and the objects, lists, mappings and functions that are the user's, and steps. No arrays."""
    yield function
    for _, value in _reachable(_variables(function), has_state):
        if has_state(value) or isinstance(value, _host.Step | _host.BoundCall | _host.Action):
            yield value


def has_state(value: Any) -> bool:
    """Whether an object, a list, a mapping or a function is the user's, so that it may be looked into and put back."""
    if isinstance(value, types.FunctionType):
        return str(value.__module__).partition(".")[0] not in NO_STATE
    if isinstance(
        value, dict | types.MappingProxyType | list | tuple | deque | set | types.MethodType | functools.partial
    ):
        return True
    if isinstance(value, type | types.ModuleType):
        return False
    return _library(value) not in NO_STATE or type(value) in (types.SimpleNamespace, argparse.Namespace)


def _reachable(first: Iterator[tuple[str, Any]], enters: Callable[[Any], bool]) -> Iterator[tuple[str, Any]]:
    """Names and values, each once, the nearest first: those of `first`, and what is in those that it enters."""
    waiting = deque((name, value, 0) for name, value in first)
    seen: dict[int, Any] = {}  # Keeps what it has seen, so that no other object gets its number.
    while waiting and len(seen) < MOST_OBJECTS:
        name, value, depth = waiting.popleft()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        yield name, value
        if depth < DEEPEST and len(waiting) < MOST_OBJECTS and enters(value):
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
    for name in code.co_names:
        value = function.__globals__.get(name)
        yield name, value
        if isinstance(value, types.ModuleType):  # what the function names of it
            yield from ((f"{name}.{each}", vars(value)[each]) for each in code.co_names if each in vars(value))
    defaults = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    yield from zip(names[len(names) - len(defaults) :], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()


def array_of(value: Any) -> Any:
    """The array that an object is, or that a field of gt4py has."""
    array: Any = getattr(value, "ndarray", None) if _library(value) == "gt4py" else value
    if _library(array) not in ("numpy", "cupy") or not hasattr(array, "flags") or not hasattr(array, "__setitem__"):
        return None  # also for a number
    return array if array.dtype.kind in KINDS and array.dtype.itemsize > 0 else None


def _library(value: Any) -> str:
    return str(type(value).__module__).partition(".")[0]


def _members(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    array = array_of(value)
    if array is not None:
        if array.dtype.kind == "O":
            yield from ((f"{name}.flat[{number}]", each) for number, each in enumerate(array.flat[:MOST_ELEMENTS]))
    elif kind in (bool, int, float, complex, str, bytes):
        return
    elif issubclass(kind, dict | types.MappingProxyType):
        for number, (key, each) in enumerate(islice(list(value.items()), MOST_ELEMENTS), 1):
            yield f"{name}[{repr(key) if type(key) in (str, int) else f'key {number}'}]", each
    elif issubclass(kind, list | tuple | deque):
        yield from ((f"{name}[{number}]", each) for number, each in enumerate(list(islice(value, MOST_ELEMENTS))))
    elif isinstance(value, types.FunctionType | types.MethodType | functools.partial):
        yield from _variables(value)
    elif not isinstance(value, type | types.ModuleType) and _library(value) not in OF_LIBRARIES:
        yield from ((f"{name}.{key}", each) for key, each in list(attributes(value).items()))
        yield from ((f"{name}.{slot.__name__}", each) for slot, each in slots(value))


def slots(value: Any) -> Iterator[tuple[types.MemberDescriptorType, Any]]:
    """Those of an object that are set, and what they have."""
    for slot in (each for base in type(value).__mro__ for each in vars(base).values()):
        if isinstance(slot, types.MemberDescriptorType):
            try:
                yield slot, slot.__get__(value)
            except AttributeError:  # is not set
                continue


def attributes(value: Any) -> dict[str, Any]:
    """Those of an object itself, without code of its class."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except Exception:  # has none, or a property of this name
        return {}
    return found if isinstance(found, dict) else {}
