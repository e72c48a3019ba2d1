"""How a call reads again what DaCe has read: along a path, or by evaluating an expression once more."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from dace import dtypes, symbolic
from dace.frontend.python import astutils

from gtstub.frameworks.dace.front_end import FrontEnd
from gtstub.frameworks.dace.libraries import is_library, is_own_builtin, is_pure, own
from gtstub.frameworks.dace.paths import Step, own_names, path_of, paths_in
from gtstub.frameworks.dace.recording import Scope


@dataclasses.dataclass(frozen=True)
class Passed:
    """The argument of a call for the parameter `name`."""

    name: str


@dataclasses.dataclass(frozen=True)
class Again:
    """
    An expression that calls evaluate: a function of the arguments for the parameters `names`, which ends with the
    conversion `convert`, if that is not None.
    """

    function: Callable[..., Any]
    names: tuple[str, ...]
    convert: Callable[[Any], Any] | None


@dataclasses.dataclass(frozen=True)
class Object:
    """An object that stays the same, such as the `self` of a method; what is in it may change."""

    value: Any


@dataclasses.dataclass(frozen=True)
class Reading:
    """
    What a call reads: `root` is a dict of globals, a cell, an argument of the call, an expression that it evaluates, an
    object that stays the same, or a function. `steps` lead from there to the object; the first one is the name of a
    global. `source` is the user's text for it.
    """

    root: Any
    steps: tuple[Step, ...]
    source: str

    def plain(self, places: Mapping[str, int]) -> tuple[Any, tuple[Step, ...], str]:
        """As the host takes it. `places` has the number of each argument of a call."""
        match self.root:
            case Passed(name):
                return places[name], self.steps, self.source
            case Again(function, names, _):
                return (function, tuple(places[name] for name in names)), self.steps, self.source
            case Object(value):
                return CellType(value), self.steps, self.source
        return self.root, self.steps, self.source

    def read(self, arguments: Mapping[str, Any]) -> Any:
        """What a call with these arguments reads; raises the error of the step that fails."""
        found, steps = self.root, self.steps
        if isinstance(found, Passed):
            found = arguments[found.name]
        elif isinstance(found, Again):
            found = found.function(*(arguments[name] for name in found.names))
        elif isinstance(found, Object):
            found = found.value
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

    def then(self, *steps: Step, source: str | None = None) -> Reading:
        """The reading of an attribute or item of this."""
        return Reading(self.root, (*self.steps, *steps), self.source if source is None else source)

    @property
    def parent(self) -> Reading | None:
        """The reading of the object whose attribute or item this is; None for a variable."""
        is_variable = len(self.steps) == isinstance(self.root, dict)
        return None if is_variable else dataclasses.replace(self, steps=self.steps[:-1])

    @property
    def identity(self) -> tuple[Any, ...]:
        """The same for two readings of one place."""
        match self.root:
            case Passed():
                return self.root, self.steps
            case Object(value):
                return id(value), self.steps
            case Again(function=FunctionType() as function, names=names, convert=convert):
                cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
                found = tuple(id(cell.cell_contents if name.startswith(_FIXED) else cell) for name, cell in cells)
                return self.source, id(function.__globals__), found, names, convert, self.steps
        return id(self.root), self.steps


_FIXED = "gtstub_fixed_"
"""How the names of cells begin that an expression has for objects without a name."""


@dataclasses.dataclass(frozen=True)
class Fixed:
    """
    What a name or path stands for that no call can change: a builtin function, the `self` of a method, what a calling
    program passes, or a function of a library. Where a calling program has it from is an evaluation of that program.
    What is in an object may change. `library` reads the module in which it is, if the name for that may change.
    """

    value: Any
    library: Reading | None = None


def _library(found: Reading | Fixed) -> ModuleType | None:
    """The library that a name stands for; None for other names."""
    match found:
        case Fixed(value):
            module = value
        case Reading(root=dict() as names, steps=(name,)):
            module = names.get(name)
        case Reading(root=CellType() as cell, steps=()) if cell != CellType():
            module = cell.cell_contents
        case _:
            return None
    return module if is_library(module) else None


class Names:
    """Finds what the names in a function that DaCe parses stand for. `arguments` are those that were compiled in."""

    def __init__(
        self, scope: Scope, arguments: Mapping[str, Any], passed: Mapping[int, Reading], front_end: FrontEnd
    ) -> None:
        self._scope = scope
        self._front_end = front_end
        self._arguments = arguments
        self._passed = passed

    def find(self, name: str) -> Reading | Fixed:
        """How a call reads a name."""
        scope, function = self._scope, self._scope.function
        code = function.__code__
        if name in self._arguments:
            return Reading(Passed(name), (), name)
        if name in _parameters(code):
            if name in scope.defaults:
                steps = _default(function, name)
                return Fixed(None) if steps is None else Reading(function, steps, name)
            value = scope.values.get(name)
            return self._passed[id(value)] if id(value) in self._passed else Fixed(value)
        if name in code.co_freevars and function.__closure__ is not None:
            return Reading(function.__closure__[code.co_freevars.index(name)], (), name)
        if name in function.__globals__ and not self._is_symbol(name):
            return Reading(function.__globals__, (sys.intern(name),), name)
        if name in scope.values:
            return Fixed(scope.values[name])
        if hasattr(builtins, name) and not is_own_builtin(name):
            return Reading(vars(builtins), (sys.intern(name),), name)
        return Fixed(getattr(builtins, name, None))

    def _is_symbol(self, name: str) -> bool:
        """
        Whether the global is a symbol, in the place of which DaCe has put another one or what a program passes to the
        one that it calls; or whether DaCe has put a symbol in the place of another global.
        """
        found, value = self._scope.function.__globals__[name], self._scope.values.get(name)
        is_symbol = isinstance(value, symbolic.symbol) or (value is not None and isinstance(found, symbolic.symbol))
        return is_symbol and value is not found

    def path(self, node: ast.expr) -> Reading | Fixed | None:
        """How a call reads a path, or what it stands for if nothing of it can change; None for other expressions."""
        if (path := path_of(node)) is None:
            return None
        name, steps = path
        source = ast.unparse(node)
        found = self.find(name)
        if (module := _library(found)) is not None and (of_library := own(module, steps)) is not None:
            return Fixed(of_library.value, found if isinstance(found, Reading) else None)
        if isinstance(found, Reading):
            return found.then(*steps, source=source)
        is_builtin = found.value is getattr(builtins, name, ...)
        reading = Reading(Object(found.value), steps, source)
        if not (is_builtin or dtypes.isconstant(found.value)) or any(str(step).startswith("_") for step in steps):
            return reading
        try:
            return Fixed(reading.read({}))
        except Exception:  # of a step that leads nowhere
            return found

    def is_of_library(self, node: ast.expr) -> bool:
        """Whether an expression is a path into a library."""
        path = path_of(node)
        return path is not None and _library(self.find(path[0])) is not None

    def expanded(self, node: ast.expr) -> ast.expr:
        """An expression in the function's own names, without those that DaCe has made up."""
        expanded = _Expanded(self._scope).visit(astutils.copy_tree(node))
        return _AsRead(self, self._front_end).visit(expanded)  # type: ignore[no-any-return]

    def value(self, node: ast.expr) -> Any:
        """The value of a path now; None for another expression, and if there is no such value."""
        found = self.path(node)
        try:
            return found.value if isinstance(found, Fixed) else found and found.read(self._arguments)
        except Exception:  # of any object's attributes
            return None

    def is_pure(self, node: ast.expr) -> bool:
        """
        Whether an expression has the same value as long as its paths have: it calls only functions that are known to
        be pure, and all its paths that may change are functions or types.
        """
        called = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
        for each in paths_in(node):
            value = self.value(each)
            if ((called and callable(value)) or isinstance(self.path(each), Reading)) and not is_pure(value):
                return False
        return all(path_of(each) is not None or _is_method(each) for each in called)

    def again(self, node: ast.expr, convert: Callable[[Any], Any] | None, source: str) -> Reading:
        """A reading that evaluates an expression, and converts what comes out."""
        bound = _Bound(self, own_names(node))
        body = bound.visit(astutils.copy_tree(node))
        if convert is not None:
            body = ast.Call(func=bound.fixed(convert), args=[body], keywords=[])
        for names in (bound.passed, bound.cells):
            args = [ast.arg(arg=name) for name in names]
            body = ast.Lambda(ast.arguments([], args, kwonlyargs=[], kw_defaults=[], defaults=[]), body)
        globals_ = self._scope.function.__globals__
        made = eval(compile(ast.fix_missing_locations(ast.Expression(body)), source, "eval"), globals_)
        code = made(*bound.cells).__code__
        cells = tuple(bound.cells[name] for name in code.co_freevars)
        function = FunctionType(code, globals_, source, None, cells)
        return Reading(Again(function, tuple(bound.passed.values()), convert), (), source)


class _Expanded(ast.NodeTransformer):
    """Replaces the names that DaCe has made up."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def visit_Name(self, node: ast.Name) -> ast.expr:
        node.ctx = node.ctx if isinstance(node.ctx, ast.expr_context) else ast.Load()
        if node.id in self._scope.derived:
            return self.visit(astutils.copy_tree(self._scope.derived[node.id]))  # type: ignore[no-any-return]
        aliases = self._scope.aliases.get(node.id, (node.id,))
        return node if node.id in aliases else ast.Name(id=aliases[0], ctx=ast.Load())

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        name = getattr(node.value, "__name__", None)
        is_builtin = isinstance(name, str) and getattr(builtins, name, None) is node.value
        return ast.Name(id=name, ctx=ast.Load()) if is_builtin and name is not None else node


class _AsRead(ast.NodeTransformer):
    """Replaces the attributes that a front end has calls read by other steps."""

    def __init__(self, names: Names, front_end: FrontEnd) -> None:
        self._names = names
        self._front_end = front_end

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        node.value = self.visit(node.value)
        if type(self._front_end) is FrontEnd:
            return node
        steps = self._front_end.attribute(self._names.value(node.value), node.attr)
        return node if steps == (node.attr,) else _with_steps(node.value, steps)


class _Bound(ast.NodeTransformer):
    """
    Makes an expression that can be compiled: variables of enclosing functions and objects without a name become
    `cells`, and arguments parameters: `passed` has the name of each argument by that of its parameter.
    """

    def __init__(self, names: Names, own: frozenset[str]) -> None:
        self.cells: dict[str, CellType] = {}
        self.passed: dict[str, str] = {}
        self._names = names
        self._own = own

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._own:
            return node
        match self._names.find(node.id):
            case Reading(root=Passed(name), steps=steps):
                self.passed[f"passed_{name}"] = name
                return _with_steps(ast.Name(id=f"passed_{name}", ctx=ast.Load()), steps)
            case Reading(root=CellType() as cell, steps=()):
                self.cells[node.id] = cell
            case Reading(root=FunctionType() as function, steps=steps):
                return _with_steps(self.fixed(function), steps)
            case Fixed(value) if not hasattr(builtins, node.id) or value is not getattr(builtins, node.id):
                return self.fixed(value)
        return ast.Name(id=node.id, ctx=ast.Load())

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        is_literal = node.value is ... or isinstance(node.value, bool | int | float | complex | str | bytes | None)
        return node if is_literal and type(node.value).__module__ == "builtins" else self.fixed(node.value)

    def fixed(self, value: Any) -> ast.expr:
        """The name of a cell with a value."""
        name = f"{_FIXED}{len(self.cells)}"
        self.cells[name] = CellType(value)
        return ast.Name(id=name, ctx=ast.Load())


def _is_method(node: ast.expr) -> bool:
    """Whether what is called is a method of the value of an expression, such as a literal, and a public one."""
    return isinstance(node, ast.Attribute) and not node.attr.startswith("_")


def _with_steps(node: ast.expr, steps: Iterable[Step]) -> ast.expr:
    for step in steps:
        if isinstance(step, str):
            node = ast.Attribute(value=node, attr=step, ctx=ast.Load())
        else:
            node = ast.Subscript(value=node, slice=ast.Constant(value=step[0]), ctx=ast.Load())
    return node


def _parameters(code: CodeType) -> tuple[str, ...]:
    count = code.co_argcount + code.co_kwonlyargcount
    return code.co_varnames[: count + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)]


def _default(function: FunctionType, name: str) -> tuple[Step, ...] | None:
    """The steps from a function to the default of one of its parameters; None if it has none, as optional ones may."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    if name not in positional:
        return ("__kwdefaults__", (name,)) if name in (function.__kwdefaults__ or {}) else None
    place = positional.index(name) - len(positional)
    return ("__defaults__", (place,)) if -place <= len(function.__defaults__ or ()) else None
