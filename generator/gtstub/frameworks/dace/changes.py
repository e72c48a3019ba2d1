"""What differs now from what a program was compiled for, or from what it was when no stub could carry it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from dace import dtypes
from dace.frontend.python.parser import DaceProgram

from gtstub.frameworks.dace.closures import Closure, Identical, readings_of
from gtstub.frameworks.dace.front_end import FrontEnd
from gtstub.frameworks.dace.readings import Reading
from gtstub.frameworks.dace.recording import Recorder
from gtstub.frameworks.dace.values import TheObject, copy_of, is_equal, same, type_of


@dataclasses.dataclass(frozen=True)
class Change:
    """A difference. Its text is what is said of the program, and `values` are what stands in it."""

    text: str
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return self.text.format(*self.values)


def change_of(closure: Closure, arguments: Mapping[str, Any]) -> Change | None:
    """
    The first difference from what was compiled in that a call with these arguments finds; None if there is none. The
    host finds the same, and also makes sure when it calls.
    """
    for reading, value in closure.constants:
        compiled = value.value if isinstance(value, Identical) else value
        try:
            now = reading.read(arguments)
        except Exception:  # of any object's attributes
            return Change(MISSING, (reading.source,))
        if not (now is compiled if isinstance(value, Identical) else same(now, value)):
            return Change("was compiled for '{}' = {!r}, but it is {!r} now", (reading.source, compiled, now))
    return _change_of_arrays(closure, arguments)


def _change_of_arrays(closure: Closure, arguments: Mapping[str, Any]) -> Change | None:
    found: dict[str, Any] = {}
    for name, reading in (*closure.arrays.items(), *((name, reading) for reading, name in closure.shared)):
        try:
            array = reading.read(arguments)
        except Exception:  # of any object's attributes
            return Change(MISSING, (reading.source,))
        if found.setdefault(name, array) is not array:
            return Change("was compiled for one array as '{}' and '{}'", (closure.arrays[name].source, reading.source))
    for name, array in found.items():
        if type_of(array) != closure.types[name]:
            return Change("was compiled for another type of the array '{}'", (closure.arrays[name].source,))
    if len({id(found[name]) for name in closure.distinct}) < len(closure.distinct):
        names = sorted(closure.arrays[name].source for name in closure.distinct)
        return Change("was compiled for different arrays as {}", (", ".join(map(repr, names)),))
    return None


MISSING = "reads '{}', which does not exist any more"


@dataclasses.dataclass(frozen=True)
class Watch:
    """What DaCe has read while it parsed a program that no stub can carry: as long as it is the same, none can."""

    seen: tuple[tuple[Reading, Any], ...]

    @classmethod
    def of(cls, program: DaceProgram, arguments: Mapping[str, Any], recorder: Recorder, front_end: FrontEnd) -> Watch:
        readings = readings_of(program, arguments, recorder, front_end)
        seen = [(reading, _mark(reading, arguments)) for reading in readings]
        return cls(tuple((reading, mark) for reading, mark in seen if same(_mark(reading, arguments), mark)))

    def change(self, arguments: Mapping[str, Any]) -> Change | None:
        for reading, mark in self.seen:
            if not same(_mark(reading, arguments), mark):
                return Change("could not be carried with another '{}'", (reading.source,))
        return None


def _mark(reading: Reading, arguments: Mapping[str, Any]) -> Any:
    """What must differ before a program is tried again: a value, the type of an array, or which object it is."""
    try:
        value = reading.read(arguments)
    except Exception as error:  # of any object's attributes
        return type(error)
    if dtypes.is_array(value):
        return type_of(value)
    return copy_of(value) if is_equal(value) else TheObject(value)
