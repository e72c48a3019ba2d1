"""
What decides the result of compiling a gt4py program, found without lowering it: the ingredients of a cache key.

gt4py compiles the text of functions together with what the names in it mean: other operators, dimensions, constants.
So both are read here, from the functions themselves. A function is known by its text, not by where it stands, so that
entries survive when a model is moved. What gt4py, DaCe and gtstub make of it is known by their versions.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import importlib
import inspect
import json
import sys
import textwrap
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Set
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
from gt4py.eve import utils as eve_utils
from gt4py.next import common, config, fingerprinting
from gt4py.next.ffront import fbuiltins, source_utils
from gt4py.next.ffront.stages import DSLFieldOperatorDef, DSLProgramDef
from gt4py.next.otf import arguments
from gt4py.next.otf.definitions import ConcreteProgramDef
from gt4py.next.type_system import type_specifications as ts

from gtstub import __version__
from gtstub.errors import CacheError
from gtstub.util.canonical import plain

KNOWN_BY_VERSION = {"gt4py", "dace", "numpy", "gtstub", *sys.stdlib_module_names}
"""Packages whose functions and classes are named, not read."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """What a program adds to a key, and the values that are compiled in, by the names that its user knows."""

    ingredients: dict[str, Any]
    baked: dict[str, Any]


def read(inp: ConcreteProgramDef[Any, Any]) -> Reading:
    """
    A program or field operator with its compile-time arguments.

    Raises CacheError for an object that the program uses and that cannot be described.
    """
    args: arguments.CompileTimeArgs = inp.args
    contexts = args.argument_descriptor_contexts
    reader = _Reader()
    program = reader.describe(inp.data)
    static = contexts.get(arguments.StaticArg, {})
    ingredients = {
        "program": {
            "definition": program,
            "source": reader.sources,
            "constants": reader.constants,
            "types": {"args": describe(args.args), "kwargs": describe(args.kwargs)},
            "column_axis": describe(args.column_axis),
        },
        "static": _members(static, "value", describe),
        "static_domains": _members(contexts.get(arguments.FieldDomainDescriptor, {}), "domain", describe),
        "offset_provider": {name: _provider_element(element) for name, element in sorted(args.offset_provider.items())},
    }
    baked = {**reader.scalars, **_sizes(args.offset_provider), **_members(static, "value", plain)}
    return Reading(ingredients, baked)


def versions() -> dict[str, Any]:
    """Of the packages that make a library of a program. Where one is no installed release, its files stand for it."""
    return {
        "gtstub": {"version": __version__, "files": _own_files()},
        "gt4py": [config.BUILD_CACHE_VERSION_ID, *_edited("gt4py")],
        "dace": [distribution("dace").version, *_edited("dace")],
    }


@functools.cache
def _own_files() -> str:
    """SHA-256 of the templates, the runtime's headers, and the code that plans and renders."""
    package = Path(__file__).parents[2]
    files = sorted(file for pattern in ("**/*.py", "**/*.j2", "**/*.h") for file in package.glob(pattern))
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(package)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()


@functools.cache
def _edited(package: str) -> tuple[str, ...]:
    """A package that is installed from a checkout can change while its version stays."""
    installed = distribution(package)
    if not json.loads(installed.read_text("direct_url.json") or "{}").get("dir_info", {}).get("editable"):
        return ()
    directory = Path(str(importlib.import_module(package).__file__)).parent
    stats = [(str(file.relative_to(directory)), file.stat()) for file in sorted(directory.glob("**/*.py"))]
    text = repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
    return (hashlib.sha256(text.encode()).hexdigest(),)


def _members(descriptors: Mapping[str, Any], member: str, convert: Callable[[Any], Any]) -> dict[str, Any]:
    """A member of each static descriptor, by parameter; within tuples None stands for what is not static."""

    def value(descriptor: Any) -> Any:
        if isinstance(descriptor, tuple):
            return [value(element) for element in descriptor]
        return None if descriptor is None else convert(getattr(descriptor, member))

    return {name: value(descriptor) for name, descriptor in sorted(descriptors.items()) if descriptor is not None}


# --- Offset providers -------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Table:
    """What gt4py can compile in of a table: with static domains which rows reach where, else only the sizes."""

    content: str
    largest: int


_tables: dict[int, tuple[weakref.ref[Any], _Table]] = {}
"""By identity: a table serves many programs."""


def _table(element: Any) -> _Table:
    known = _tables.get(id(element))
    if known is not None and known[0]() is element:
        return known[1]
    content = element.asnumpy()
    digest = hashlib.sha256(f"{content.dtype.str}{content.shape}".encode())
    digest.update(np.ascontiguousarray(content))
    table = _Table(digest.hexdigest(), int(content.max(initial=-1)))
    _tables[id(element)] = (weakref.ref(element), table)
    return table


def _provider_element(element: Any) -> Any:
    if not common.is_neighbor_table(element):
        return describe(element)
    return {"type": describe(element.__gt_type__()), "content": _table(element).content}


def _sizes(offset_provider: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of dimensions that gt4py takes from tables."""
    sizes: dict[str, int] = {}
    for element in filter(common.is_neighbor_table, offset_provider.values()):
        type_ = element.__gt_type__()
        for dimension, size in (
            (type_.source_dim, int(element.ndarray.shape[0])),
            (type_.codomain, _table(element).largest + 1),
        ):
            name = f"{dimension.value}.size"
            sizes[name] = max(sizes.get(name, 0), size)
    return sizes


# --- Objects ----------------------------------------------------------------------------------------------------------


def describe(value: Any) -> Any:
    """A value as JSON that is equal for equal values, in every process; functions by text and by what they use."""
    reader = _Reader()
    description = reader.describe(value)
    if not reader.sources:
        return description
    return {"value": description, "source": reader.sources, "constants": reader.constants}


class _Reader:
    """Describes objects, and collects the functions that they are made of, each once."""

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
        if hasattr(value, "definition_stage"):  # an operator: its backend does not matter where another calls it
            return self._stage(value.definition_stage, str(value.__gt_type__()))
        if isinstance(value, DSLProgramDef | DSLFieldOperatorDef):
            return self._stage(value, "")
        if dataclasses.is_dataclass(value):
            members = {
                field.name: self.describe(getattr(value, field.name))
                for field in dataclasses.fields(value)
                if fingerprinting._is_fingerprinted_field(field.metadata)
            }
            return {"class": self.describe(type(value)), **members}
        try:
            reduced = value.__reduce_ex__(2)  # what pickle would write of it
        except Exception as error:  # of any class: it is the object's own code
            raise _refusal(value, f"cannot be described ({error})") from error
        if isinstance(reduced, str):
            return f"{value.__module__}.{reduced}"
        parts = [list(part) if isinstance(part, Iterator) else part for part in reduced]
        return {"class": self.describe(type(value)), "parts": self.describe(parts)}

    def _stage(self, stage: DSLProgramDef | DSLFieldOperatorDef, type_: str) -> str:
        """
        The function of an operator, as gt4py reads it: its text, and what its own names mean. What surrounds it goes
        into the digest.
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

    def _function(self, function: types.FunctionType) -> str:
        """A function that Python runs, as a hook of the optimization: its code, and what that can reach."""
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
        """A class by its functions and bases."""
        if _is_known_by_version(class_):
            return _name(class_)
        if (name := self._names.get(id(class_))) is None:
            name = self._add(class_, _text(class_))
            members = {member: value for member, value in vars(class_).items() if inspect.isfunction(value)}
            self.constants[f"{name}.class"] = self.describe([class_.__bases__, members])
        return name

    def _add(self, value: Any, *text: str) -> str:
        """Its name in `sources`; others may be called the same."""
        name = value.__qualname__
        while name in self.sources:
            name += "'"
        self._names[id(value)] = name
        self.sources[name] = hashlib.sha256("\0".join(text).encode()).hexdigest()
        return str(name)

    def _variable(self, name: str, value: Any, used: Set[str]) -> None:
        """What a name in a function means. Of namespaces and modules, the members that the function may mean."""
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
        if (description := self.describe(value)) != name.rpartition(".")[2]:  # else it says nothing new
            self.constants[name] = description


def _text(value: Any) -> str:
    """Empty where there is none: gt4py itself needs the text of operators; of others there is the code."""
    try:
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        return ""


def _instructions(code: types.CodeType) -> list[Any]:
    """All of a code object that decides what it does, the same in every process."""
    constants = [
        _instructions(each) if isinstance(each, types.CodeType) else _constant(each) for each in code.co_consts
    ]
    return [code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, code.co_flags, constants]


def _constant(value: Any) -> Any:
    return sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)


def _names_in(code: types.CodeType) -> frozenset[str]:
    """Those of functions within a function as well."""
    inner = (_names_in(each) for each in code.co_consts if isinstance(each, types.CodeType))
    return frozenset(code.co_names).union(*inner)


def _name(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return value.__name__
    return f"{value.__module__}.{getattr(value, '__qualname__', value.__name__)}"


def _is_named(value: Any) -> bool:
    """Whether a name says all of a value: of the builtins of gt4py's language, of types."""
    return _is_known_by_version(value) and hasattr(value, "__name__") and not hasattr(value, "definition_stage")


def _is_known_by_version(value: Any) -> bool:
    module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return str(module).partition(".")[0] in KNOWN_BY_VERSION


def _refusal(value: Any, why: str) -> CacheError:
    return CacheError(
        f"An object of type '{type(value).__qualname__}', which a program or its backend uses, {why}:"
        " no key can be made of it."
    )
