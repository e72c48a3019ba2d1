"""
Describes the objects that a program or its backend uses as JSON for a cache key.

Equal objects have equal descriptions in every process. The description of a function or class contains its text and
the objects that it uses. Those of gt4py, DaCe, gtstub, numpy and Python are described by name. The versions of the
first three are in the key.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import inspect
import json
import sys
import textwrap
import types
from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np
from gt4py.eve import concepts
from gt4py.eve import utils as eve_utils
from gt4py.next import common, fingerprinting
from gt4py.next.ffront import fbuiltins, source_utils
from gt4py.next.ffront.stages import DSLFieldOperatorDef, DSLProgramDef, FOASTOperatorDef, PASTProgramDef
from gt4py.next.type_system import type_specifications as ts

from gtstub.errors import CacheError
from gtstub.frameworks.gt4py.internals import is_fingerprinted_field
from gtstub.util.canonical import canonical, plain

KNOWN_BY_VERSION = {"gt4py", "dace", "numpy", "gtstub", *sys.stdlib_module_names}
"""The packages whose functions and classes are described by name."""


def describe(value: Any) -> Any:
    """A value as JSON. The texts of functions in it are under 'source', the objects that they use under 'constants'."""
    reader = Reader()
    description = reader.describe(value)
    if not reader.sources:
        return description
    return {"value": description, "source": reader.sources, "constants": reader.constants}


class Reader:
    """Describes objects, and collects the functions in them, each once."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.constants: dict[str, Any] = {}
        self.scalars: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._path: list[Any] = []

    def describe(self, value: Any) -> Any:
        match value:
            case None | bool() | str():
                return value
            case enum.Enum():
                return f"{type(value).__qualname__}.{value.name} = {self.describe(value.value)}"
            case np.generic():
                return f"{value.dtype.name}({value.item()!r})"
            case int():
                return value
            case float() | complex():
                return repr(value)  # JSON has no nan
            case bytes():
                return value.hex()
            case common.Dimension():
                return f"{value.value}[{value.kind.value}]"
            case fbuiltins.FieldOffset():
                target = ", ".join(self.describe(dimension) for dimension in value.target)
                return f"{value.value}: {self.describe(value.source)} -> ({target})"
            case ts.TypeSpec():
                return f"{value} {fingerprinting.lenient_fingerprinter(value)}"
            case types.FunctionType():
                return self._function(value)
            case types.MethodType():
                return self.describe([value.__func__, value.__self__])
            case type():
                return self._class(value)
            case types.BuiltinFunctionType() | types.ModuleType():
                return _name(value)
            case fbuiltins.BuiltInFunction():
                return value.name.rpartition(".")[2]
            case functools.partial():
                return {"partial": self.describe([value.func, value.args, value.keywords])}
            case _ if _is_named(value):
                return _name(value)
        if any(value is outer for outer in self._path):
            raise _refusal(value, "contains itself")
        self._path.append(value)
        try:
            return self._composite(value)
        finally:
            self._path.pop()

    def _composite(self, value: Any) -> Any:
        match value:
            case Mapping():
                return {str(self.describe(key)): self.describe(value[key]) for key in sorted(value, key=str)}
            case list() | tuple():
                return [self.describe(element) for element in value]
            case Set():
                return sorted((self.describe(element) for element in value), key=repr)
        if hasattr(value, "definition_stage"):  # An operator; its own backend does not matter to its callers.
            return self._stage(value.definition_stage, str(value.__gt_type__()))
        if isinstance(value, DSLProgramDef | DSLFieldOperatorDef):
            return self._stage(value, "")
        if isinstance(value, FOASTOperatorDef | PASTProgramDef):
            return self._ast_stage(value)
        if isinstance(value, concepts.Node):
            return hashlib.sha256(canonical(self._node(value))).hexdigest()
        if dataclasses.is_dataclass(value):
            members = {
                field.name: self.describe(getattr(value, field.name))
                for field in dataclasses.fields(value)
                if is_fingerprinted_field(field.metadata)
            }
            return {"class": self.describe(type(value)), **members}
        try:
            reduced = value.__reduce_ex__(2)  # as pickle does
        except Exception as error:  # The object's own code may raise any error.
            raise _refusal(value, f"cannot be described ({error})") from error
        if isinstance(reduced, str):
            return f"{value.__module__}.{reduced}"
        parts = [list(part) if isinstance(part, Iterator) else part for part in reduced]
        return {"class": self.describe(type(value)), "parts": self.describe(parts)}

    def _stage(self, stage: DSLProgramDef | DSLFieldOperatorDef, type_: str) -> str:
        """
        The function of an operator as gt4py reads it: its text, and the objects that its names refer to. The other
        members of the stage go into the digest.
        """
        members = {field.name: getattr(stage, field.name) for field in dataclasses.fields(stage)}
        function = members.pop("definition")
        if _is_known_by_version(function):
            return _name(function)
        if (name := self._names.get(id(function))) is None:
            name = self._add(function, json.dumps([type_, self.describe(members)]), _text(function))
            used = frozenset(function.__code__.co_names)
            for variable, value in source_utils.get_closure_vars_from_function(function).items():
                self._variable(f"{name}.{variable}", value, used)
        return name

    def _ast_stage(self, stage: FOASTOperatorDef | PASTProgramDef) -> Any:
        """A program or operator that gt4py has parsed already: its syntax tree, and the objects that its names mean."""
        members = {field.name: getattr(stage, field.name) for field in dataclasses.fields(stage)}
        tree = stage.past_node if isinstance(stage, PASTProgramDef) else stage.foast_node
        used = frozenset(str(text) for text in tree.walk_values() if isinstance(text, str))
        for variable, value in sorted(members.pop("closure_vars").items()):
            self._variable(f"{tree.id}.{variable}", value, used)
        return self.describe(members)

    def _node(self, value: Any) -> Any:
        """A tree of gt4py's IR without the places of its nodes in source files, so that a model can be moved."""
        match value:
            case concepts.Node():
                names = sorted(value.__datamodel_fields__.keys() - {"location"})
                return {"node": type(value).__qualname__, **{name: self._node(getattr(value, name)) for name in names}}
            case list() | tuple():
                return [self._node(element) for element in value]
        return self.describe(value)

    def _function(self, function: types.FunctionType) -> str:
        """A function that Python runs, such as an optimization hook: its code, and the objects that the code uses."""
        if _is_known_by_version(function):
            return _name(function)
        if (name := self._names.get(id(function))) is None:
            name = self._add(function, _text(function.__code__), repr(_instructions(function.__code__)))
            used = _names_in(function.__code__)
            reached = {name: value for name, value in function.__globals__.items() if name in used}
            for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
                reached[variable] = cell.cell_contents
            for variable, value in sorted(reached.items()):
                self._variable(f"{name}.{variable}", value, used)
            self.constants[f"{name}.defaults"] = self.describe([function.__defaults__, function.__kwdefaults__])
        return name

    def _class(self, class_: type) -> str:
        """A class: its text, functions and bases."""
        if _is_known_by_version(class_):
            return _name(class_)
        if (name := self._names.get(id(class_))) is None:
            name = self._add(class_, _text(class_))
            members = {member: value for member, value in vars(class_).items() if inspect.isfunction(value)}
            self.constants[f"{name}.class"] = self.describe([class_.__bases__, members])
        return name

    def _add(self, value: Any, *text: str) -> str:
        """Adds `text` to `sources`; returns the new name there, which is unique."""
        name = value.__qualname__
        while name in self.sources:
            name += "'"
        self._names[id(value)] = name
        self.sources[name] = hashlib.sha256("\0".join(text).encode()).hexdigest()
        return str(name)

    def _variable(self, name: str, value: Any, used: Set[str]) -> None:
        """Adds the object of a name in a function; for namespaces and modules, those members that the function uses."""
        if isinstance(value, types.ModuleType | enum.EnumMeta | eve_utils.FrozenNamespace):
            if isinstance(value, types.ModuleType) and _is_known_by_version(value):
                return
            for member in sorted(used):
                if hasattr(value, member):
                    self._variable(f"{name}.{member}", getattr(value, member), used)
            return
        scalar = value.value if isinstance(value, enum.Enum) else value
        if isinstance(scalar, bool | int | float | np.generic):
            self.scalars[name] = plain(scalar)
        if (description := self.describe(value)) != name.rpartition(".")[2]:  # otherwise redundant
            self.constants[name] = description


def _text(value: Any) -> str:
    """The source, empty if it is unavailable: gt4py needs that of operators itself; other functions have their code."""
    try:
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        return ""


def _instructions(code: types.CodeType) -> list[Any]:
    """The parts of a code object that determine its behaviour, equal in every process."""
    constants = [
        _instructions(each) if isinstance(each, types.CodeType) else _constant(each) for each in code.co_consts
    ]
    return [code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, code.co_flags, constants]


def _constant(value: Any) -> Any:
    return sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)


def _names_in(code: types.CodeType) -> frozenset[str]:
    """The names in a code object and in the functions inside it."""
    inner = (_names_in(each) for each in code.co_consts if isinstance(each, types.CodeType))
    return frozenset(code.co_names).union(*inner)


def _name(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return value.__name__
    return f"{value.__module__}.{getattr(value, '__qualname__', value.__name__)}"


def _is_named(value: Any) -> bool:
    """Whether the name identifies a value, as for builtins of gt4py's language and types."""
    return _is_known_by_version(value) and hasattr(value, "__name__") and not hasattr(value, "definition_stage")


def _is_known_by_version(value: Any) -> bool:
    module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return str(module).partition(".")[0] in KNOWN_BY_VERSION


def _refusal(value: Any, why: str) -> CacheError:
    return CacheError(
        f"An object of type '{type(value).__qualname__}', which a program or its backend uses, {why}:"
        " it cannot be part of a key."
    )
