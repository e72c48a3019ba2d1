"""What a DaCe program reads from around it: globals, variables of enclosing functions, and attributes of `self`."""

from __future__ import annotations

import ast
import dataclasses
import sys
from collections.abc import Collection, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

from dace.frontend.python.common import SDFGClosure
from dace.frontend.python.parser import DaceProgram

from gtstub.errors import SignatureError
from gtstub.frameworks.dace.front_end import FrontEnd

LIBRARIES = ("dace", "math", "numpy")
"""The modules whose attributes never change."""

Step = str | tuple[Any]
"""An attribute by its name, or an item by its index."""


@dataclasses.dataclass(frozen=True)
class Given:
    """An argument of the call, by the name of its parameter."""

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
        """As the C host wants it. `places` has the numbers of the arguments of a call."""
        return places[self.root.name] if isinstance(self.root, Given) else self.root, self.steps, self.source


@dataclasses.dataclass(frozen=True)
class Closure:
    """
    The arrays that a program reads and the functions that it calls, by their names in the SDFG, and the values that
    were compiled in. DaCe binds the arguments of a function that are no data; calls use what it has made.
    """

    arrays: Mapping[str, Reading]
    callbacks: Mapping[str, Reading]
    constants: tuple[tuple[Reading, Any], ...]


def closure_of(program: DaceProgram, given: Mapping[str, Any], front_end: FrontEnd) -> Closure:
    """
    The closure of a program that DaCe has parsed, and of the programs that it calls. `given` are the arguments of the
    call by the names of their parameters.

    Raises SignatureError for an array that a call cannot read again, or that it could read from two places.
    """
    parts = list(_parts(program, program.resolver, front_end))
    by_evaluator = {
        id(evaluator): (each, source)
        for each, part in parts
        for source, _, evaluator, is_nested in part.closure_arrays.values()
        if not is_nested
    }
    leaves = _leaves(given, front_end)
    arrays = {}
    for name, (_, _, evaluator, _) in program.resolver.closure_arrays.items():
        owner, source = by_evaluator.get(id(evaluator), (None, name))
        reading = None if owner is None else _reading(owner, source, given if owner is program else ())
        array = evaluator()
        found = [leaf for leaf, value in leaves if value is array]
        if reading is None and found:
            reading = found[0]
        if reading is None:
            raise SignatureError(
                f"Program '{program.name}' reads the array '{source}', which a call cannot find again."
            )
        if places := [leaf.source for leaf in found if (leaf.root, leaf.steps) != (reading.root, reading.steps)]:
            raise SignatureError(
                f"Program '{program.name}' cannot be compiled with '{reading.source}' and '{places[0]}' being the same"
                " array, because DaCe makes one of both."
            )
        arrays[name] = dataclasses.replace(reading, steps=(*reading.steps, *front_end.steps(array)))
    constants = []
    for each, part in parts:
        for source, value in part.closure_constants.items():
            reading = _reading(each, source, given if each is program else ())
            if reading is not None and not _is_fixed(reading):
                constants.append((reading, value))
            elif reading is None and each is not program:  # perhaps of an argument that a called program has got
                _, _, rest = source.partition(".")
                constants += [(leaf, found) for leaf, found in leaves if rest and leaf.source.endswith(f".{rest}")]
    callbacks = {
        name: Reading(function, (), source) for name, (source, function, _) in program.resolver.callbacks.items()
    }
    return Closure(arrays, callbacks, tuple(constants))


def _leaves(given: Mapping[str, Any], front_end: FrontEnd) -> list[tuple[Reading, Any]]:
    """What the compile-time arguments that calls read contain."""
    return [
        (Reading(Given(name), steps, ".".join((name, *steps))), leaf)
        for name, value in given.items()
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


def _reading(program: DaceProgram, source: str, given: Collection[str]) -> Reading | None:
    """How to read `source`, a text in a program; None if it is the default of a parameter, or not a path."""
    try:
        node = ast.parse(source, mode="eval").body
    except SyntaxError:
        return None
    steps: list[Step] = []
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute(value=value, attr=name):
                steps.insert(0, sys.intern(name))
            case ast.Subscript(value=value, slice=ast.Constant(value=index)):
                steps.insert(0, (index,))
            case _:
                return None
        node = value
    root, function = node.id, program.f
    if root in given:
        return Reading(Given(root), tuple(steps), source)
    if root == program.objname and program.methodobj is not None:
        return Reading(program.methodobj, tuple(steps), source)
    if root in _parameters(function.__code__):
        return None
    if function.__closure__ is not None and root in function.__code__.co_freevars:
        cell = function.__closure__[function.__code__.co_freevars.index(root)]
        return Reading(cell, tuple(steps), source)
    if root in function.__globals__:
        return Reading(function.__globals__, (sys.intern(root), *steps), source)
    return None


def _parameters(code: CodeType) -> tuple[str, ...]:
    count = code.co_argcount + code.co_kwonlyargcount
    return code.co_varnames[: count + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)]


def _is_fixed(reading: Reading) -> bool:
    """Whether it is an attribute of a library, or a function, of which only the name is compiled in."""
    if not isinstance(reading.root, dict) or not isinstance(reading.steps[0], str):
        return False
    first = reading.root.get(reading.steps[0])
    if isinstance(first, ModuleType):
        return first.__name__.partition(".")[0] in LIBRARIES
    return isinstance(first, FunctionType | type) and len(reading.steps) == 1
