"""
gt4py's parsing and lowering of programs without its caches.

The keys of those caches contain the present text of an operator's file, but their values were made from the text and
from the constants that the operator was decorated with. After an edit they may return another program's result.
"""

from __future__ import annotations

import dataclasses
import inspect
import linecache
import typing
import weakref
from typing import Any

from gt4py.next.ffront import source_utils
from gt4py.next.ffront.stages import PASTProgramDef
from gt4py.next.otf import arguments, workflow

from gtstub.frameworks.gt4py.calls import checked
from gtstub.frameworks.gt4py.internals import ConcreteProgramDef
from gtstub.frameworks.sources import check_source

NO_ARGUMENTS = arguments.CompileTimeArgs.empty()

_parsed: weakref.WeakKeyDictionary[Any, tuple[list[Any], Any]] = weakref.WeakKeyDictionary()
"""By function: what its last parsing read, and the result."""


@dataclasses.dataclass(frozen=True)
class Parsing:
    """
    gt4py's parsing of a program or field operator, as its file is now. The last result is used again while the lines of
    the file, the objects that its names refer to, and its annotations are the same. Raises SourceError if the file was
    edited after its import.
    """

    step: workflow.Workflow[ConcreteProgramDef[Any, Any], ConcreteProgramDef[Any, Any]]

    def __call__(self, inp: ConcreteProgramDef[Any, Any]) -> ConcreteProgramDef[Any, Any]:
        function = inp.data.definition
        read = self._read(inp.data)
        known = _parsed.get(function)
        if known is None or len(known[0]) != len(read) or not all(map(_is_same, known[0], read)):
            check_source(function, function.__name__)
            _parsed[function] = known = (read, self.step(inp).data)
        # Without arguments, a `Program` asks, which then checks its calls with this type. No key depends on it.
        is_asked = isinstance(known[1], PASTProgramDef) and inp.args == NO_ARGUMENTS
        return ConcreteProgramDef(checked(known[1]) if is_asked else known[1], inp.args)

    def _read(self, stage: Any) -> list[Any]:
        """All objects on which the result depends."""
        function = stage.definition
        file = inspect.getsourcefile(function) or inspect.getfile(function)
        linecache.checkcache(file)  # As inspect.getsource() does, which gt4py calls.
        closure = source_utils.get_closure_vars_from_function(function)
        members = [getattr(stage, field.name) for field in dataclasses.fields(stage)]
        hints = typing.get_type_hints(function)
        tables = [*closure, *closure.values(), *hints, *hints.values()]
        return [self.step, function.__code__, linecache.getlines(file), *members, *tables]


def _is_same(one: Any, other: Any) -> bool:
    """
    Whether one object is another, or, for types with arguments, equal to it: `typing.get_type_hints` makes such as
    `tuple[float, float]` anew each time, and those of annotations that are texts.
    """
    if one is other:
        return True
    return typing.get_origin(one) is not None and type(one) is type(other) and bool(one == other)


def uncached(step: Any) -> Any:
    """A step of gt4py's lowering without its caches."""
    if isinstance(step, workflow.CachedStep):
        return uncached(step.step)
    if not dataclasses.is_dataclass(step) or isinstance(step, type):
        return step
    inner = {field.name: getattr(step, field.name) for field in dataclasses.fields(step) if field.init}
    return dataclasses.replace(step, **{name: uncached(value) for name, value in inner.items()})
