"""How values are compared with those that were compiled in: by their equality, or by what is in them."""

from __future__ import annotations

import copy
import dataclasses
import enum
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from dace import data, dtypes, symbolic


def is_plain(value: Any) -> bool:
    """
    Whether it is a number, a text, a type, a function without a state, or a collection of these: what is the same if it
    is equal.
    """
    if is_collection(value):
        each_of = [*value, *value.values()] if isinstance(value, dict) else value
        return all(is_plain(each) for each in each_of)
    is_type = isinstance(value, np.dtype | dtypes.typeclass | type)
    is_value = isinstance(value, bytes | enum.Enum | symbolic.sympy.Basic | range)
    return bool(dtypes.isconstant(value)) or is_type or is_value


def copy_of(value: Any) -> Any:
    """A copy of a collection that its owner may change, or another value itself."""
    return copy.deepcopy(value) if is_collection(value) and is_plain(value) else value


def _is_code(value: Any) -> bool:
    """Whether it is something that DaCe calls or parses."""
    return isinstance(value, FunctionType | MethodType | ModuleType) or hasattr(value, "__sdfg__")


def is_equal(value: Any) -> bool:
    """Whether a value is the same if it is equal."""
    return is_plain(value) or _is_code(value)


def type_of(array: Any) -> str:
    """What DaCe compiles in of an array: the type of its elements, sizes and strides."""
    try:
        return str(data.create_datadescriptor(array).to_json())
    except (TypeError, ValueError):
        return str(type(array))


def is_collection(value: Any) -> bool:
    return type(value) in (list, tuple, dict, set, frozenset)


def is_iterable(value: Any) -> bool:
    return is_collection(value) or isinstance(value, Iterator) or type(value) in _VIEWS


_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))


def kept(value: Any) -> Any:
    """
    What calls compare of a collection: its numbers, texts, types and functions, and the types of the other objects,
    which are read by themselves.
    """
    if isinstance(value, list | Iterator) or type(value) in _VIEWS:
        return [kept(each) for each in value]
    match value:
        case tuple():
            return tuple(kept(each) for each in value)
        case dict():
            return [(kept(key), kept(each)) for key, each in value.items()]
        case set() | frozenset():
            return [kept(each) for each in value]
    return value if is_plain(value) or _is_code(value) else type(value)


def items_of(value: Iterable[Any]) -> list[Any]:
    """The same of the items of another object than a collection of Python."""
    return [kept(each) for each in value]


@dataclasses.dataclass(frozen=True, eq=False)
class TheObject:
    """An object among what a callback keeps: equal to the same object only."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TheObject) and self.value is other.value

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.value)


def held(value: Any) -> Any:
    """What calls compare of a value that a callback keeps: its numbers, texts and types, and its very objects."""
    if type(value) in (list, tuple):
        return type(value)(map(held, value))
    if type(value) is dict:
        return {key: held(each) for key, each in value.items()}
    return value if is_plain(value) else TheObject(value)


def has_index(value: Any) -> bool:
    """Whether an object is one that DaCe takes for an integer."""
    return hasattr(type(value), "__index__") and not is_plain(value) and not dtypes.is_array(value)


def same(a: Any, b: Any) -> bool:
    """As the host compares what it reads with what was compiled in."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    match a:
        case float() | complex() | np.generic():
            return np.asarray(a).tobytes() == np.asarray(b).tobytes()
        case list() | tuple():
            return len(a) == len(b) and all(map(same, a, b))
        case dict():
            return same(list(a.items()), list(b.items()))
        case set() | frozenset():
            return a == b and {(type(each), repr(each)) for each in a} == {(type(each), repr(each)) for each in b}
    try:
        return bool(a == b)
    except Exception:  # of any object's comparison
        return False
