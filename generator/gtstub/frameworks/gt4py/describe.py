"""
Describes the objects that a program or its backend uses as JSON for a cache key.

Equal objects have equal descriptions in every process, and different objects have different ones. Texts are quoted,
numbers are not: "'1'" is a text, "1.0" a float. Tags in angle brackets tell types apart that JSON does not know.

An operator of gt4py is described by the syntax tree that gt4py made when it was decorated, which is what gt4py lowers.
A function or class of Python is described by its code and by the objects that it uses. Objects of gt4py, DaCe, gtstub,
numpy and Python are described by name; the versions of these packages are in the key.
"""

from __future__ import annotations

import builtins
import contextlib
import copyreg
import dataclasses
import enum
import functools
import hashlib
import json
import types
from collections.abc import Iterable, Iterator, Set
from typing import Any

import numpy as np
from gt4py.eve import concepts
from gt4py.eve import utils as eve_utils
from gt4py.next import common
from gt4py.next.ffront import fbuiltins
from gt4py.next.ffront.stages import FOASTOperatorDef, PASTProgramDef
from gt4py.next.type_system import type_specifications as ts

from gtstub.errors import CacheError
from gtstub.frameworks.gt4py import code, members, origin, trees
from gtstub.frameworks.gt4py.internals import is_fingerprinted_field
from gtstub.frameworks.sources import instructions
from gtstub.util.canonical import canonical, plain

LONGEST_BYTES = 64
"""The number of bytes that a description quotes; longer ones are described by a digest."""

LITERALS = {"null", "true", "false"}
"""Identifiers that are also what JSON makes of other keys: None, True and False."""

IF_READ = {"__name__", "__qualname__", "__doc__", "__annotations__"}
"""The attributes of functions and classes that are described only if a function reads them."""


def describe(value: Any) -> Any:
    """A value as JSON. The texts of functions in it are under 'source', the objects that they use under 'constants'."""
    reader = Reader()
    description = reader.describe(value)
    reader.read_members()
    if not reader.sources and not reader.constants:
        return description
    return {"value": description, "source": reader.sources, "constants": reader.constants}


class Reader:
    """
    Describes objects, and collects the functions and operators in them, each once.

    sources:   the digest of the code of each, by its name
    constants: the objects that each uses, by the name of the function and the name in it
    scalars:   the numbers among those that operators use, by both names
    """

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.constants: dict[str, dict[str, Any]] = {}
        self.scalars: dict[str, Any] = {}
        self._names: dict[int, tuple[str, Any]] = {}  # with the objects, so that no other one gets their identity
        self._words = {"__getattr__"}  # which Python calls for the names that a module lacks
        self._path: list[Any] = []
        self._owner, self._variable = "a program or its backend", ""

    # --- Values -------------------------------------------------------------------------------------------------------

    def describe(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind is bool or kind is int:
            return value
        if kind is str or kind is float or kind is complex or value is Ellipsis or value is NotImplemented:
            return repr(value)  # JSON has no nan
        if kind is bytes or kind is bytearray:
            return _bytes(value)
        match value:
            case np.generic():
                return self._numpy_scalar(value)
            case enum.Enum():
                text = f"{kind.__qualname__}.{value.name} = {json.dumps(self.describe(value.value))}"
                return text if origin.is_known(kind) else {"<enum>": self.describe(kind), "<member>": text}
            case common.Dimension():
                return f"{_quoted(value.value)}[{value.kind.value}]"
            case fbuiltins.FieldOffset():
                target = ", ".join(self.describe(dimension) for dimension in value.target)
                return f"{_quoted(value.value)}: {self.describe(value.source)} -> ({target})"
            case ts.TypeSpec():
                return f"{value} {trees.digest(value, describe)}"
            case types.ModuleType():
                return self._module(value)
            case types.FunctionType():
                return self._function(value)
            case type():
                return self._class(value)
            case fbuiltins.BuiltInFunction() if origin.is_known(kind):
                return value.name.rpartition(".")[2]
        if origin.is_known(value):
            return origin.name_of(value)
        if any(value is outer for outer in self._path):
            raise self._refusal(value, "contains itself")
        self._path.append(value)
        try:
            return self._composite(value)
        finally:
            self._path.pop()

    def _composite(self, value: Any) -> Any:
        kind = type(value)
        if kind is dict:
            return self._dict(value)
        if kind is list:
            return [self.describe(element) for element in value]
        if kind is tuple:
            return {"<tuple>": [self.describe(element) for element in value]}
        if kind is set or kind is frozenset:
            return {f"<{kind.__name__}>": self._unordered(value)}
        match value:
            case types.MappingProxyType():
                return {"<mappingproxy>": self.describe(dict(value))}
            case functools.partial() if kind is functools.partial:
                return self._tagged("partial", value.func, value.args, value.keywords, vars(value))
            case functools._lru_cache_wrapper():
                return self._tagged("cache", value.__wrapped__, value.cache_parameters())
            case types.MethodType():
                return self._tagged("method", value.__func__, value.__self__)
            case staticmethod() | classmethod():
                return self._tagged(kind.__name__, value.__func__)
            case property():
                return self._tagged("property", value.fget, value.fset, value.fdel)
            case types.MethodDescriptorType() | types.WrapperDescriptorType() | types.ClassMethodDescriptorType():
                return self._tagged("method", value.__objclass__, value.__name__)
            case types.BuiltinFunctionType() | types.MethodWrapperType():
                return self._tagged("builtin", value.__self__, value.__name__)
            case FOASTOperatorDef() | PASTProgramDef():
                return self.stage(value)
            case concepts.Node():
                return trees.digest(value, describe)
        if hasattr(kind, "past_stage") or hasattr(kind, "__gt_gtir__"):  # An object may have a __getattr__ of its own.
            return self._operator(value)
        if dataclasses.is_dataclass(value):
            return self._dataclass(value)
        try:
            # As pickle does.
            reduced = copyreg.dispatch_table[kind](value) if kind in copyreg.dispatch_table else value.__reduce_ex__(2)
        except Exception as error:  # The object's own code may raise any error.
            raise self._refusal(value, f"cannot be described ({error})") from error
        if isinstance(reduced, str) and getattr(np, reduced, None) is value:
            return f"numpy.{reduced}"  # a ufunc
        if isinstance(reduced, str):
            raise self._refusal(value, f"cannot be described (its module only has its name '{reduced}')")
        parts = [list(part) if isinstance(part, Iterator) else part for part in reduced]
        again = self._found_again(value)
        parts[2:3] = [members.without(state, again) for state in parts[2:3]]
        if members.pickles_itself(kind):
            parts.append(members.without(members.attributes(value), again))
        return {"<class>": self.describe(kind), "<parts>": self.describe(parts)}

    def _tagged(self, tag: str, *parts: Any) -> Any:
        return {f"<{tag}>": [self.describe(part) for part in parts]}

    def _numpy_scalar(self, value: np.generic) -> Any:
        if value.dtype.names is not None or value.dtype.hasobject:
            return self._tagged(value.dtype.name, value.dtype, value.tolist())
        has_no_item = isinstance(value, np.longdouble | np.clongdouble | np.datetime64 | np.timedelta64)
        return f"{value.dtype.name}({(str(value) if has_no_item else value.item())!r})"

    def _dict(self, value: dict[Any, Any]) -> Any:
        keys = [
            key
            if type(key) is str and key.isidentifier() and key not in LITERALS
            else canonical(self.describe(key)).decode()
            for key in value
        ]
        elements = [self.describe(element) for element in value.values()]
        if len(set(keys)) != len(keys):
            return {"<dict>": [list(pair) for pair in zip(keys, elements, strict=True)]}
        described = dict(zip(keys, elements, strict=True))
        return described if keys == sorted(keys) else {**described, "<order>": keys}

    def _unordered(self, values: Iterable[Any]) -> list[Any]:
        """The elements of a set, in an order that is the same in every process."""
        return [self.describe(value) for value in sorted(values, key=self._alone)]

    def _alone(self, value: Any) -> bytes:
        """The description of a value with what is described in it for the first time."""
        reader = Reader()
        reader._names, reader._path = dict(self._names), self._path
        reader._owner, reader._variable = self._owner, self._variable
        description = reader.describe(value)
        return canonical([description, reader.sources, reader.constants])

    def _found_again(self, value: Any) -> Set[str]:
        """
        The attributes of an object that functools.cached_property has set, if it would set the same again: whether
        somebody has read them before does not matter.
        """
        kept = members.cached(value)
        attributes, before = getattr(value, "__dict__", {}), dict(getattr(value, "__dict__", {}))
        found = set()
        for name, property_ in kept.items():
            with contextlib.suppress(Exception):  # The object's own code may raise any error.
                if self._alone(property_.func(value)) == self._alone(before[name]):
                    found.add(name)
        if kept:
            attributes.clear()
            attributes.update(before)
        return found

    def _dataclass(self, value: Any) -> Any:
        fields = [field.name for field in dataclasses.fields(value) if is_fingerprinted_field(field.metadata)]
        if not origin.is_known(type(value)):
            left_out = {field.name for field in dataclasses.fields(value)} | self._found_again(value)
            fields += [name for name in sorted(members.attributes(value)) if name not in left_out]
        return {"<class>": self.describe(type(value)), **{name: self.describe(getattr(value, name)) for name in fields}}

    # --- Programs and operators ---------------------------------------------------------------------------------------

    def stage(self, stage: FOASTOperatorDef | PASTProgramDef, used: Set[str] = frozenset()) -> Any:
        """
        A program or operator that gt4py has parsed: its syntax tree, and the objects that its names mean. `used` has
        the names in its function: the tree has the values of constants, but no longer their names.
        """
        if isinstance(stage, PASTProgramDef):
            tree, digest = stage.past_node, trees.digest(stage.past_node, describe)
        else:
            tree, digest = stage.foast_node, trees.digest_of_operator(stage, describe)
        name = self._tree(stage, tree, digest, stage.closure_vars, used)
        return {"name": name, "grid_type": self.describe(stage.grid_type)}

    def _operator(self, operator: Any) -> Any:
        """An operator as its callers see it. Its own backend does not matter to them."""
        definition = getattr(getattr(operator, "definition_stage", None), "definition", None)
        used = code.names(definition.__code__) if isinstance(definition, types.FunctionType) else frozenset()
        stage = getattr(operator, "foast_stage", None) or getattr(operator, "past_stage", None)
        if isinstance(stage, FOASTOperatorDef | PASTProgramDef):
            return self.stage(stage, used)["name"]
        tree, closure = operator.__gt_gtir__(), operator.__gt_closure_vars__() or {}
        name = self._tree(operator, tree, trees.digest(tree, describe), closure, used)
        return {"name": name, "type": self.describe(operator.__gt_type__())}

    def _tree(self, operator: Any, tree: Any, digest: str, closure: dict[str, Any], used: Set[str]) -> str:
        if id(operator) in self._names:
            return self._names[id(operator)][0]
        name = self._add(str(tree.id), operator, digest)
        with self._within(name):
            seen: set[int] = set()
            for variable, value in sorted(closure.items()):
                self._compiled_in(name, variable, value, used, seen)
        return name

    def _compiled_in(self, owner: str, variable: str, value: Any, used: Set[str], seen: set[int]) -> None:
        """Adds the object of a name in an operator; of namespaces and modules, the members that the operator uses."""
        if isinstance(value, types.ModuleType | enum.EnumMeta | eve_utils.FrozenNamespace):
            if isinstance(value, types.ModuleType) and origin.is_known_module(value):
                self._set(owner, variable, value)
            elif id(value) not in seen:
                seen.add(id(value))
                for member in sorted(used):
                    if hasattr(value, member):
                        self._compiled_in(owner, f"{variable}.{member}", getattr(value, member), used, seen)
            return
        scalar = value.value if isinstance(value, enum.Enum) else value
        if isinstance(scalar, bool | int | float | np.bool | np.number) and not isinstance(scalar, np.complexfloating):
            self.scalars[f"{owner}.{variable}"] = plain(float(scalar) if isinstance(scalar, np.longdouble) else scalar)
        self._set(owner, variable, scalar)

    # --- Functions, classes and modules of Python ---------------------------------------------------------------------

    def _function(self, function: types.FunctionType) -> str:
        """A function that Python runs, such as an optimization hook: its code, and the objects that the code uses."""
        if origin.is_known(function):
            return origin.name_of(function)
        if id(function) in self._names:
            return self._names[id(function)][0]
        body = function.__code__
        name = self._add(body.co_qualname, function, code.text(body), repr(instructions(body)))
        self._words |= code.words(body)
        with self._within(name):
            for variable, cell in zip(body.co_freevars, function.__closure__ or (), strict=True):
                try:
                    self._set(name, variable, cell.cell_contents)
                except ValueError:  # The variable has no value yet.
                    self.constants.setdefault(name, {})[variable] = "<empty>"
            if not origin.is_of_known_module(function):
                words = code.words(body)
                for variable, value in sorted(function.__globals__.items()):
                    if variable in words and variable not in body.co_freevars:
                        self._set(name, variable, value)
                for variable in sorted(code.variables(body) - function.__globals__.keys()):
                    value = vars(builtins).get(variable)
                    if variable in vars(builtins) and not origin.is_known(value):
                        self._set(name, variable, value)  # The user added it.
                for module in code.imported(function):
                    self._set(name, f"<import {module.__name__}>", module)
            for what, found in (
                ("<defaults>", [function.__defaults__, function.__kwdefaults__]),
                ("<attributes>", vars(function)),
            ):
                if any(found):
                    self._set(name, what, found)
        return name

    def _class(self, class_: type) -> str:
        """A class: its members and bases."""
        if origin.is_known(class_):
            return origin.name_of(class_)
        if id(class_) in self._names:
            return self._names[id(class_)][0]
        name = self._add(class_.__qualname__, class_, "class")
        with self._within(name):
            for member, value in members.of_class(class_).items():
                self._set(name, member, value)
        return name

    def _module(self, module: types.ModuleType) -> str:
        """A module. Of the user's own modules, `read_members` adds the members that any function uses."""
        if origin.is_known_module(module):
            return module.__name__
        if id(module) in self._names:
            return self._names[id(module)][0]
        name = f"<module {module.__name__.replace('__mp_main__', '__main__')}>"
        name = self._add(name, module, code.binary(module))
        if type(module) is not types.ModuleType:
            with self._within(name):
                self._set(name, "<class>", type(module))
        return name

    def read_members(self) -> None:
        """
        Adds those members of the user's modules whose names are in any function that was described, and those `IF_READ`
        of functions and classes.
        """
        done: set[tuple[int, str]] = set()
        while missing := [
            (name, value, word)
            for name, value in self._names.values()
            for word in sorted(self._words & _members_by_name(value))
            if (id(value), word) not in done
        ]:
            for name, value, word in missing:
                done.add((id(value), word))
                with self._within(name):
                    self._set(
                        name, word, vars(value)[word] if isinstance(value, types.ModuleType) else getattr(value, word)
                    )

    # --- Names --------------------------------------------------------------------------------------------------------

    def _add(self, name: str, value: Any, *text: str) -> str:
        """Adds `text` to `sources`; returns the new name there, which is unique."""
        taken = {each for each, _ in self._names.values()}
        while name in taken:
            name += "'"
        self._names[id(value)] = (name, value)
        self.sources[name] = hashlib.sha256("\0".join(text).encode()).hexdigest()
        return name

    def _set(self, owner: str, variable: str, value: Any) -> None:
        """Adds an object that a function, operator, class or module uses."""
        outer, self._variable = self._variable, variable
        description = self.describe(value)
        self._variable = outer
        if not (callable(value) and description == variable.rpartition(".")[2]):  # otherwise redundant
            self.constants.setdefault(owner, {})[variable] = description

    @contextlib.contextmanager
    def _within(self, owner: str) -> Iterator[None]:
        """Names the function whose objects are described, for messages."""
        outer, self._owner = self._owner, f"'{owner}'"
        yield
        self._owner = outer

    def _refusal(self, value: Any, why: str) -> CacheError:
        what = f"Object '{self._variable}'" if self._variable else "An object"
        return CacheError(
            f"{what} of type '{type(value).__qualname__}', which {self._owner} uses, {why}: it cannot be part of a key."
        )


def _members_by_name(value: Any) -> Set[str]:
    """The members of an object that are described if a function has their names."""
    if isinstance(value, types.ModuleType):
        return vars(value).keys()
    return IF_READ if isinstance(value, types.FunctionType | type) else frozenset()


def _bytes(value: bytes | bytearray) -> str:
    kind = type(value).__name__
    if len(value) <= LONGEST_BYTES:
        return f"{kind}({value.hex()})"
    return f"{kind}({len(value)}, {hashlib.sha256(value).hexdigest()})"


def _quoted(name: str) -> str:
    return name if name.isidentifier() else repr(name)
