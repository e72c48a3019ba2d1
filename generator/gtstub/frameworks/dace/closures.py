"""What a DaCe program reads from around it: globals, variables of enclosing functions, and attributes of `self`."""

from __future__ import annotations

import ast
import copy
import dataclasses
import enum
import sys
from collections.abc import Iterator, Mapping
from types import CellType, CodeType, ModuleType
from typing import Any

import numpy as np
from dace import dtypes, symbolic
from dace.frontend.python.common import SDFGClosure
from dace.frontend.python.parser import DaceProgram

from gtstub.errors import SignatureError
from gtstub.frameworks.dace.front_end import FrontEnd
from gtstub.frameworks.dace.source_paths import Step, Use, path_of, source_paths

LIBRARIES = ("dace", "math", "numpy")
"""The modules whose attributes never change."""


@dataclasses.dataclass(frozen=True)
class Passed:
    """The argument of a call for the parameter `name`."""

    name: str


@dataclasses.dataclass(frozen=True)
class Reading:
    """
    What a call reads: `root` is a dict of globals, a cell, an argument of the call, or any other object. `steps` lead
    from there to the object; the first one is the name of a global. `source` is the user's text for it.
    """

    root: Any
    steps: tuple[Step, ...]
    source: str

    def plain(self, places: Mapping[str, int]) -> tuple[Any, tuple[Step, ...], str]:
        """As the host takes it. `places` has the number of each argument of a call."""
        root = places[self.root.name] if isinstance(self.root, Passed) else self.root
        return root, self.steps, self.source

    def read(self, arguments: Mapping[str, Any]) -> Any:
        """What a call with these arguments reads; raises the error of the step that fails."""
        found, steps = self.root, self.steps
        if isinstance(found, Passed):
            found = arguments[found.name]
        elif isinstance(found, CellType):
            found = found.cell_contents
        elif isinstance(found, dict) and steps:
            found, steps = found[steps[0]], steps[1:]
        for step in steps:
            match step:
                case str():
                    found = getattr(found, step)
                case (index,):
                    found = found[index]
                case _:
                    found = len(found)
        return found


@dataclasses.dataclass(frozen=True)
class Closure:
    """
    The arrays that a program reads and the functions that it calls, by their names in the SDFG, and the values that
    were compiled in. DaCe binds the arguments of a function that are no data; calls use what it has made. `shared` are
    the other paths to an array that was at several paths when the program was compiled, each with the array's name in
    the SDFG.
    """

    arrays: Mapping[str, Reading]
    callbacks: Mapping[str, Reading]
    constants: tuple[tuple[Reading, Any], ...]
    shared: tuple[tuple[Reading, str], ...]


def closure_of(program: DaceProgram, arguments: Mapping[str, Any], front_end: FrontEnd) -> Closure:
    """
    The closure of a program that DaCe has parsed for the arguments of a call, and of the programs that it calls.
    `arguments` are those that were compiled in.

    Raises SignatureError for an array that a call cannot read again.
    """
    parts = list(_parts(program, program.resolver, front_end))
    leaves = _leaves(arguments, front_end)
    mentioned = [
        each for owner, part in parts for each in _mentioned(owner, part, arguments if owner is program else {})
    ]
    mentioned += [(reading, value, None) for reading, value in leaves]
    arrays, shared = {}, []
    for name, (source, _, evaluator, _) in program.resolver.closure_arrays.items():
        array = evaluator()
        readings = list({_identity(reading): reading for reading, value, _ in mentioned if value is array}.values())
        if not readings:
            raise SignatureError(
                f"Program '{program.name}' reads the array '{source}', which a call cannot find again."
            )
        steps = front_end.steps(array)
        readings = [dataclasses.replace(reading, steps=(*reading.steps, *steps)) for reading in readings]
        arrays[name] = readings[0]
        shared += [(reading, name) for reading in readings[1:]]
    constants = {}
    for each, part in parts:
        for source, value in part.closure_constants.items():
            reading = _reading(each, source, arguments if each is program else {})
            if reading is not None:
                constants[_identity(reading)] = reading, value
            elif each is not program:  # perhaps of an argument that a called program has got
                _, _, rest = source.partition(".")
                of_leaves = [(leaf, found) for leaf, found in leaves if rest and leaf.source.endswith(f".{rest}")]
                constants |= {_identity(leaf): (leaf, found) for leaf, found in of_leaves}
    for reading, value, use in mentioned:
        if _is_plain(value):
            constants.setdefault(_identity(reading), (reading, copy.copy(value)))
        elif use is None:
            continue
        elif use.is_called or _is_compiled_in(value):
            constants.setdefault(_identity(reading), (reading, value))
        elif use.is_whole and isinstance(value, list | tuple | dict):
            count = Reading(reading.root, (*reading.steps, ()), f"len({reading.source})")
            constants.setdefault(_identity(count), (count, len(value)))
    kept = tuple((reading, value) for reading, value in constants.values() if not _is_of_library(reading))
    callbacks = {
        name: Reading(function, (), source) for name, (source, function, _) in program.resolver.callbacks.items()
    }
    return Closure(arrays, callbacks, kept, tuple(shared))


def _leaves(arguments: Mapping[str, Any], front_end: FrontEnd) -> list[tuple[Reading, Any]]:
    """What the compile-time arguments that calls read contain."""
    return [
        (Reading(Passed(name), steps, ".".join((name, *steps))), leaf)
        for name, value in arguments.items()
        for steps, leaf in front_end.leaves(value)
    ]


def _parts(
    program: DaceProgram, closure: SDFGClosure, front_end: FrontEnd
) -> Iterator[tuple[DaceProgram, SDFGClosure]]:
    """A program with its closure, and all DaCe programs that it calls with theirs."""
    yield program, closure
    called = dict(closure.closure_sdfgs.values())
    for name, inner in closure.nested_closures:
        if (callee := front_end.program_of(called.get(name))) is not None:
            yield from _parts(callee, inner, front_end)


def _mentioned(
    program: DaceProgram, closure: SDFGClosure, arguments: Mapping[str, Any]
) -> Iterator[tuple[Reading, Any, Use | None]]:
    """
    What the source of a program reads from around it: how, what is there now, and what it is used for. Collections come
    with what they contain, which the source does not use itself.
    """
    pending: list[tuple[str, Use | None]]
    pending = [(source, None) for source, *_, is_nested in closure.closure_arrays.values() if not is_nested]
    pending += source_paths(program.f).items()
    known = set()
    while pending:
        source, use = pending.pop(0)
        reading = _reading(program, source, arguments)
        if reading is None or _identity(reading) in known:
            continue
        known.add(_identity(reading))
        try:
            value = reading.read(arguments)
        except Exception:  # of any object's attributes
            continue
        yield reading, value, use
        if isinstance(value, list | tuple):
            pending += [(f"{source}[{index}]", None) for index in range(len(value))]
        elif isinstance(value, dict) and value is not reading.root:
            pending += [(f"{source}[{key!r}]", None) for key in value if isinstance(key, str | int)]


def _identity(reading: Reading) -> tuple[Any, tuple[Step, ...]]:
    return reading.root if isinstance(reading.root, Passed) else id(reading.root), reading.steps


def _is_compiled_in(value: Any) -> bool:
    """
    Whether DaCe compiles in what it finds, or what follows from it: an index of a collection, as in `weights[order]`, a
    member of an enumeration, the type of elements, or a size.
    """
    is_type = isinstance(value, np.dtype | dtypes.typeclass) or (
        isinstance(value, type) and issubclass(value, np.generic)
    )
    return bool(dtypes.isconstant(value)) or is_type or isinstance(value, enum.Enum | symbolic.sympy.Basic)


def _is_plain(value: Any) -> bool:
    """Whether it is a collection of numbers and texts, whose size may be compiled in, too."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    elif not isinstance(value, list | tuple | set | frozenset):
        return False
    return all(isinstance(each, bool | int | float | str | None) for each in value)


def _reading(program: DaceProgram, source: str, arguments: Mapping[str, Any]) -> Reading | None:
    """How to read `source`, a text in a program; None if it is the default of a parameter, or not a path."""
    try:
        node = ast.parse(source, mode="eval").body
    except SyntaxError:
        return None
    if (path := path_of(node)) is None:
        return None
    (root, steps), function = path, program.f
    if root in arguments:
        return Reading(Passed(root), steps, source)
    if root == program.objname and program.methodobj is not None:
        return Reading(program.methodobj, steps, source)
    if root in _parameters(function.__code__):
        return None
    if function.__closure__ is not None and root in function.__code__.co_freevars:
        cell = function.__closure__[function.__code__.co_freevars.index(root)]
        return Reading(cell, steps, source)
    if root in function.__globals__:
        return Reading(function.__globals__, (sys.intern(root), *steps), source)
    return None


def _parameters(code: CodeType) -> tuple[str, ...]:
    count = code.co_argcount + code.co_kwonlyargcount
    return code.co_varnames[: count + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)]


def _is_of_library(reading: Reading) -> bool:
    """Whether it is an attribute of a library."""
    if not isinstance(reading.root, dict) or not isinstance(reading.steps[0], str):
        return False
    first = reading.root.get(reading.steps[0])
    return isinstance(first, ModuleType) and first.__name__.partition(".")[0] in LIBRARIES
