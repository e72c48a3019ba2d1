"""What messages and tables call a function."""

from __future__ import annotations

import functools
from pathlib import PurePath
from typing import Any


def title(function: Any) -> str:
    """
    The name by which a reader finds a function: 'Diffusion.run', 'exchange' for one that is defined inside another, and
    'run at model.py:42' for a lambda in line 42, where 'run' is the function around it.
    """
    if isinstance(function, functools.partial):
        return title(function.func)
    name = getattr(function, "__qualname__", None)
    if not isinstance(name, str):
        return str(getattr(function, "__name__", type(function).__qualname__))
    around, _, own = name.rpartition("<locals>.")
    code = getattr(function, "__code__", None)
    if own.rpartition(".")[2] != "<lambda>" or code is None:
        return own
    place = f"{PurePath(code.co_filename).name}:{code.co_firstlineno}"
    outer = (own.removesuffix("<lambda>") or around).removesuffix(".").rpartition("<locals>.")[2]
    return f"{outer} at {place}" if outer else place
