"""
Whether the source of a function is that of its code. DaCe and gt4py parse the text that the file of a function has now;
if the file was edited after its import, Python runs the old code, and a program would be compiled of the new text.
"""

from __future__ import annotations
import __future__

import ast
import functools
import importlib.machinery
import inspect
import linecache
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from gtstub.entries.cache.process import this_process
from gtstub.errors import SourceError

MARGIN = 60.0
"""Seconds by which the clock of a file server may be behind."""

_FUTURES: int = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


@functools.cache
def _started() -> float:
    """When this process started, in seconds since 1970; 0 if it is not known."""
    ticks = this_process().start
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return booted + ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0


def check_source(function: Any, program: str) -> None:
    """Raises SourceError if what a program parses of a function is not what Python has compiled."""
    function = inspect.unwrap(function)
    if isinstance(function, FunctionType) and not _is_same(function):
        code = function.__code__
        raise SourceError(
            f"Program '{program}' cannot be compiled: the source of '{code.co_qualname}' at {code.co_filename}:"
            f"{code.co_firstlineno} has changed since the import. Import the module again, or start the process anew."
        )


def _is_same(function: FunctionType) -> bool:
    """
    True also where it cannot be told: of a module that is not compiled of its text alone, as those are whose
    assertions pytest rewrites, and of a text that is no module.
    """
    code = function.__code__
    try:
        status = Path(code.co_filename).stat()
    except OSError:  # of a notebook, an archive, or code that was generated
        is_file = False
    else:
        is_file = True
        loader = function.__globals__.get("__loader__")
        is_plain = loader is None or type(loader) is importlib.machinery.SourceFileLoader
        if max(status.st_mtime, status.st_ctime) + MARGIN < _started() or not is_plain:
            return True
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        return True  # which inspect says
    try:
        flags = code.co_flags & _FUTURES | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        module = _compiled("".join(lines), code.co_filename, flags)
    except (SyntaxError, ValueError, RecursionError):
        return not is_file
    here, expected = (code.co_qualname, code.co_firstlineno), instructions(code)
    found = (each for each in inner_code(module) if (each.co_qualname, each.co_firstlineno) == here)
    return any(instructions(each) == expected for each in found)


@functools.lru_cache(maxsize=16)
def _compiled(text: str, file: str, flags: int) -> CodeType:
    """A module, whose functions are checked one after the other."""
    module: CodeType = compile(text, file, "exec", flags, dont_inherit=True)
    return module


def inner_code(code: CodeType) -> Iterator[CodeType]:
    """The code of all functions, classes and comprehensions inside a code object."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from inner_code(each)


def instructions(code: CodeType) -> list[Any]:
    """The parts of a code object that determine its behaviour."""
    return [
        *(code.co_code.hex(), code.co_exceptiontable.hex(), code.co_flags),
        *(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
        *(code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        [_constant(each) for each in code.co_consts],
    ]


def _constant(value: Any) -> Any:
    match value:
        case CodeType():
            return instructions(value)
        case tuple():
            return tuple(map(_constant, value))
        case frozenset():
            return {"frozenset": sorted(map(repr, value))}
    return repr(value)
