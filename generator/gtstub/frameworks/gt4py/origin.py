"""
Tells objects that a version in the key identifies from those of the user.

Those of Python, gt4py, DaCe, numpy and gtstub are known by their names. Where a module's file is decides this, because
the user's modules may have the same names.
"""

from __future__ import annotations

import functools
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

import dace
import gt4py
import numpy as np

from gtstub import install

PACKAGES = (gt4py, dace, np)

HEAP_TYPE = 1 << 9
"""CPython's Py_TPFLAGS_HEAPTYPE, of all classes that class statements make. Other types may have no importable name."""


def is_known(value: Any) -> bool:
    """Whether its name identifies a module, function, class or another object, together with a version in the key."""
    if isinstance(value, types.ModuleType):
        return is_known_module(value)
    module = sys.modules.get(str(getattr(value, "__module__", None)))
    if module is None or not is_known_module(module):
        return False
    if isinstance(value, type) and not value.__flags__ & HEAP_TYPE:
        return True
    # functools.wraps copies the names of a function to the user's function around it.
    if isinstance(value, types.FunctionType) and not is_of_known_module(value):
        return False
    found: Any = module
    for part in _qualified(value).split("."):
        found = getattr(found, part, None)
    return found is value


def is_of_known_module(function: types.FunctionType) -> bool:
    """Whether the code of a function is in a module that a version identifies."""
    module = sys.modules.get(str(function.__globals__.get("__name__")))
    return module is not None and vars(module) is function.__globals__ and is_known_module(module)


def name_of(value: Any) -> str:
    """The name of an object that is known."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    return f"{value.__module__}.{_qualified(value)}"


def is_known_module(module: types.ModuleType) -> bool:
    name, file = module.__name__, getattr(module, "__file__", None)
    if file is None:
        return name in sys.builtin_module_names or getattr(module.__spec__, "origin", None) == "frozen"
    return is_known_file(file)


@functools.cache
def is_known_file(file: str) -> bool:
    path = Path(file).resolve()
    if any(path.is_relative_to(package) for package in _packages()):
        return True
    inside = (path.relative_to(library) for library in _libraries() if path.is_relative_to(library))
    return any({"site-packages", "dist-packages"}.isdisjoint(relative.parts) for relative in inside)


@functools.cache
def _packages() -> tuple[Path, ...]:
    found = (Path(folder) for package in PACKAGES for folder in package.__path__)
    return tuple(path.resolve() for path in (*found, Path(install.__file__).parent))


@functools.cache
def _libraries() -> tuple[Path, ...]:
    """The folders of the standard library."""
    return tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))


def _qualified(value: Any) -> str:
    return str(getattr(value, "__qualname__", None) or getattr(value, "__name__", ""))
