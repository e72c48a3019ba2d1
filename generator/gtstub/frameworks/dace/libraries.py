"""What nobody is expected to change of builtins and of `dace`, `math` and `numpy`, and which functions are pure."""

from __future__ import annotations

import builtins
import dataclasses
import enum
import math
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import dace
import numpy as np
from dace import dtypes
from dace.frontend.python import interface

from gtstub.frameworks.dace.paths import Step

LIBRARIES = ("dace", "math", "numpy")
"""These names always stand for the modules; another name of one, as 'np', is compared."""

_IMPORTED: dict[str, Mapping[str, Any]] = {module.__name__: dict(vars(module)) for module in (builtins, dace, math, np)}
"""What was in modules when this module was imported, or when a program first named them."""

_PURE_BUILTINS = {
    *("abs", "all", "any", "bin", "bool", "bytes", "callable", "chr", "complex", "dict", "divmod", "enumerate"),
    *("filter", "float", "frozenset", "hex", "int", "isinstance", "issubclass", "len", "list", "map", "max", "min"),
    *("oct", "ord", "pow", "range", "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple"),
    *("type", "zip"),
}

_PURE_OF_NUMPY = {
    *("arange", "array", "asarray", "clip", "dtype", "empty", "eye", "finfo", "full", "identity", "iinfo", "isscalar"),
    *("linspace", "max", "min", "ndim", "ones", "prod", "promote_types", "result_type", "round", "shape", "size"),
    *("sum", "where", "zeros"),
}


@dataclasses.dataclass(frozen=True)
class Own:
    """Something that a library had when it was imported, and that nobody is expected to replace."""

    value: Any


def is_library(value: Any) -> bool:
    return isinstance(value, ModuleType) and _is_of_library(value.__name__)


def own(module: ModuleType, steps: tuple[Step, ...]) -> Own | None:
    """
    What some steps from a library lead to, if it is a module, function or class of the library. None for what somebody
    else has put there, and for what DaCe compiles in: numbers, texts and types of elements.
    """
    found: Any = module
    for step in steps:
        if isinstance(found, enum.EnumType) and step in found.__members__:  # which nobody can replace
            found = found[str(step)]
            continue
        if not is_library(found) or not isinstance(step, str):
            return None
        imported = _IMPORTED.setdefault(found.__name__, dict(vars(found)))
        value = vars(found).get(step)
        if value is None or imported.get(step) is not value or not _is_made_by(found, step, value):
            return None
        found = value
    return Own(found)


def is_own_builtin(name: str) -> bool:
    """Whether a name is that of a builtin function or class, and not of what somebody has put there."""
    value = vars(builtins).get(name)
    return _IMPORTED[builtins.__name__].get(name) is value and isinstance(value, BuiltinFunctionType | type)


def is_pure(function: Any) -> bool:
    """
    Whether a function or class is known to make the same of the same arguments, whatever else has changed. The words of
    DaCe's language count as such: DaCe itself gives them their meaning.
    """
    name, module = getattr(function, "__name__", None), getattr(function, "__module__", None)
    match function:
        case dtypes.typeclass():
            return True
        case enum.Enum():  # those of DaCe can be called
            return _is_of_library(type(function).__module__)
        case FunctionType() if function.__globals__ is vars(interface):
            return True
        case np.ufunc(__name__=of_numpy):
            return vars(np).get(of_numpy) is function
        case type() if issubclass(function, np.generic) or module == interface.__name__:
            return module in (np.__name__, interface.__name__)
        case BuiltinFunctionType() if module == math.__name__:
            return True
    return (name in _PURE_BUILTINS and vars(builtins)[name] is function) or (
        name in _PURE_OF_NUMPY and getattr(np, name) is function
    )


def _is_of_library(name: Any) -> bool:
    return isinstance(name, str) and name.partition(".")[0] in LIBRARIES


def _is_made_by(module: ModuleType, name: str, value: Any) -> bool:
    """Whether a library itself has put a value under a name of one of its modules, and DaCe does not compile it in."""
    match value:
        case ModuleType():
            return is_library(value)
        case FunctionType():
            return _is_of_library(value.__globals__.get("__name__"))
        case type():
            return _is_of_library(value.__module__) and not issubclass(value, np.generic)
        case BuiltinFunctionType() if _is_of_library(value.__module__):
            return True
    is_compiled_in = dtypes.isconstant(value) or isinstance(value, dtypes.typeclass | list | tuple | dict | set)
    return name in getattr(module, "__all__", ()) and not is_compiled_in
