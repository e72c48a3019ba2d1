"""
What the parse of a DaCe program depends on outside of DaCe, gtstub and the call: the program's source, and all that its
names and paths stand for, with the source of the functions that it calls, and so on.

It is read from the source alone, before DaCe parses it. What this module does not know how to describe makes a program
an `UnfitError`; such a program is parsed in each process.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import inspect
import json
from collections.abc import Iterator
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import dace
import numpy as np
from dace import data, dtypes, symbolic
from dace.frontend.common.op_repository import Replacements
from dace.frontend.python import astutils
from dace.frontend.python.parser import DaceProgram

from gtstub.frameworks.dace.internals import program_of
from gtstub.frameworks.dace.paths import Step, path_of
from gtstub.frameworks.dace.readings import LIBRARIES, Object, Passed, Reading

MOST = 200
"""Functions that are followed. A program with more takes minutes to parse for other reasons."""

Path = tuple[str, int, str, tuple[Step, ...]]
"""
A kind of root ('global', 'cell', 'self', 'function' or 'passed'), the number of a function, the name of a variable or
parameter, and steps from there.
"""


class UnfitError(Exception):
    """A program depends on what this module cannot describe."""


class Reachable:
    """
    What can be reached from a program. `functions` are those that it may call, itself first; `selves` are the objects
    whose methods they are, if they are methods; `paths` are those whose values are in the digest.
    """

    def __init__(self, program: DaceProgram) -> None:
        self.functions: list[FunctionType] = []
        self.selves: list[Any] = []
        self.paths: dict[Path, Any] = {}
        self._described: list[Any] = []
        self._arrays: list[Any] = []
        self._add(program.f, program.methodobj)
        number = 0
        while number < len(self.functions):
            if number >= MOST:
                raise UnfitError("too many functions")
            self._described.append(self._describe_function(number))
            number += 1
        self.program = describe_program(program)

    @property
    def digest(self) -> str:
        """The same for two programs that DaCe parses alike, if it parses them for the same types."""
        return hashlib.sha256(json.dumps([self.program, self._described]).encode()).hexdigest()

    # --- Functions ----------------------------------------------------------------------------------------------------

    def _add(self, function: Any, self_: Any) -> int:
        """The number of a function or method."""
        if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
            raise UnfitError(f"{function!r}")
        for number, known in enumerate(self.functions):
            if known is function:
                if self.selves[number] is not self_:
                    raise UnfitError(f"the method '{function.__qualname__}' of two objects")
                return number
        self.functions.append(function)
        self.selves.append(self_)
        return len(self.functions) - 1

    def _describe_function(self, number: int) -> Any:
        function = self.functions[number]
        try:
            source = inspect.getsource(function)
            tree = ast.parse(astutils._remove_outer_indentation(source))
        except (OSError, TypeError, SyntaxError, ValueError) as error:
            raise UnfitError(f"the source of '{function.__qualname__}'") from error
        if len(tree.body) != 1 or not isinstance(definition := tree.body[0], ast.FunctionDef):
            raise UnfitError(f"the source of '{function.__qualname__}'")
        parameters = [
            [each.name, str(each.kind), self._describe_default(each), self._describe_annotation(each.annotation)]
            for each in inspect.signature(function).parameters.values()
        ]
        names = [self._describe_path(number, node) for node in self._paths_in(function, definition)]
        variables = {**function.__globals__, **_enclosing(function)}
        symbols = [[name, _symbol(each)] for name, each in variables.items() if isinstance(each, symbolic.symbol)]
        return [
            *(function.__module__, function.__qualname__, source, _code(function.__code__)),
            *(parameters, self._describe_annotation(inspect.signature(function).return_annotation)),
            *(names, sorted(symbols)),
        ]

    def _describe_default(self, parameter: inspect.Parameter) -> Any:
        return None if parameter.default is parameter.empty else [self.describe(parameter.default)]

    def _describe_annotation(self, annotation: Any) -> Any:
        if annotation is inspect.Parameter.empty:
            return None
        if isinstance(annotation, data.Data):
            return describe_data(annotation)
        return self.describe(annotation)

    def _paths_in(self, function: FunctionType, definition: ast.FunctionDef) -> Iterator[ast.expr]:
        """The longest paths in a function that do not begin with its own variables, also those in annotations."""
        code = function.__code__
        own = {*code.co_varnames, *code.co_cellvars}
        pending: list[ast.AST] = [*definition.body, definition.args]
        if definition.returns is not None:
            pending.append(definition.returns)
        for annotation in function.__annotations__.values():
            if isinstance(annotation, str):
                pending.append(_parsed(annotation))
        while pending:
            node = pending.pop()
            if isinstance(node, _OWN_NAMES):
                raise UnfitError(f"names that '{function.__qualname__}' defines in an expression")
            found = path_of(node)
            if found is None:
                pending += ast.iter_child_nodes(node)
            elif isinstance(node, ast.expr) and (found[0] not in own or self._is_self(function, found[0])):
                yield node

    def _is_self(self, function: FunctionType, name: str) -> bool:
        """Whether a name is that of the object whose method a function is."""
        number = self.functions.index(function)
        return self.selves[number] is not None and function.__code__.co_varnames[:1] == (name,)

    # --- Values -------------------------------------------------------------------------------------------------------

    def _describe_path(self, number: int, node: ast.expr) -> Any:
        function, found = self.functions[number], path_of(node)
        assert found is not None
        name, steps = found
        text = ast.unparse(node)
        enclosing = _enclosing(function)
        kind = "global"
        if self._is_self(function, name):
            kind, value = "self", self.selves[number]
        elif name in function.__code__.co_freevars:
            if name not in enclosing:
                return [text, "empty"]
            kind, value = "cell", enclosing[name]
        elif name in function.__globals__:
            value = function.__globals__[name]
        elif hasattr(builtins, name):
            kind, value = "builtin", getattr(builtins, name)
        else:
            return [text, "absent"]
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in LIBRARIES:
            self.paths[kind, number, name, ()] = value
            # What is in it depends on its version, except what somebody has put there.
            return [text, "module", value.__name__, self._describe_constant(value, steps)]
        for count, step in enumerate(steps):
            # Of an array, DaCe evaluates only what its descriptor says; of a collection, it may read all items.
            if isinstance(value, np.ndarray | list | tuple | dict):
                steps = steps[:count]
                break
            try:
                value = getattr(value, step) if isinstance(step, str) else value[step[0]]
            except Exception as error:  # of any object's attributes
                return [text, "raises", type(error).__qualname__]
        described = [text, self.describe(value)]
        self.paths[kind, number, name, steps] = value
        return described

    def _describe_constant(self, module: ModuleType, steps: tuple[Step, ...]) -> Any:
        """What steps from a library lead to, if DaCe compiles that in as a constant."""
        value: Any = module
        for step in steps:
            if not isinstance(step, str) or not hasattr(value, step):
                break
            value = getattr(value, step)
        is_constant = dtypes.isconstant(value) or isinstance(value, list | tuple | dict)
        return [self.describe(value)] if is_constant else None

    def describe(self, value: Any) -> Any:
        """A value as JSON, so that two values that DaCe treats differently differ. Functions are followed."""
        match value:
            case None | bool() | int() | str() if type(value) in (type(None), bool, int, str):
                return [type(value).__name__, value]
            case float() if type(value) is float:
                return ["float", value.hex()]
            case np.generic():
                return ["numpy", value.dtype.str, value.tobytes().hex()]
            case list() | tuple() if type(value) in (list, tuple):
                return [type(value).__name__, [self.describe(each) for each in value]]
            case dict() if type(value) is dict:
                return ["dict", [[self.describe(key), self.describe(each)] for key, each in value.items()]]
            case symbolic.symbol():
                return ["symbol", _symbol(value)]
            case dtypes.typeclass() if type(value) is dtypes.typeclass:
                return ["typeclass", value.to_string()]
            case np.ndarray() if type(value) is np.ndarray:
                # Two paths to one array are one argument.
                number = next((n for n, each in enumerate(self._arrays) if each is value), len(self._arrays))
                self._arrays[number:] = self._arrays[number:] or [value]
                return ["array", number, describe_data(data.create_datadescriptor(value))]
            case type():
                if value.__module__.partition(".")[0] in ("builtins", *LIBRARIES):
                    return ["type", value.__module__, value.__qualname__]
            case BuiltinFunctionType(__name__=name) if getattr(builtins, str(name), None) is value:
                return ["builtin", name]
            case ModuleType():
                return ["module", value.__name__]
            case FunctionType():
                module = str(value.__globals__.get("__name__"))  # a decorator may have changed `__module__`
                if module.partition(".")[0] in LIBRARIES:
                    return ["library", module, value.__qualname__]
                return ["function", self._add(value, None)]
            case MethodType():
                return ["method", self._add(value.__func__, self._known_self(value.__self__))]
        if (program := program_of(value)) is not None:
            self_ = None if program.methodobj is None else self._known_self(program.methodobj)
            return ["program", type(value).__qualname__, describe_program(program), self._add(program.f, self_)]
        raise UnfitError(f"{type(value).__qualname__}")

    def _known_self(self, value: Any) -> Any:
        """An object whose methods are followed already: there is a path to it, its name `self`."""
        if not any(value is known for known in self.selves if known is not None):
            raise UnfitError("a method of another object")
        return value

    # --- Readings -----------------------------------------------------------------------------------------------------

    def path_to(self, reading: Reading) -> Path:
        """The path of a reading, of which the digest contains what it reads. Raises UnfitError if it does not."""
        for kind, number, name in self._roots(reading):
            steps = reading.steps[kind == "global" :]
            for length in range(len(steps), -1, -1):
                value = self.paths.get((kind, number, name, steps[:length]), _Missing)
                if value is not _Missing and _contains(value, steps[length:]):
                    return kind, number, name, steps
            if kind == "passed" or (kind == "function" and _contains(reading.root, steps)):
                return kind, number, name, steps
        raise UnfitError(f"the reading '{reading.source}'")

    def _roots(self, reading: Reading) -> Iterator[tuple[str, int, str]]:
        root = reading.root
        if isinstance(root, Passed):
            yield "passed", 0, root.name
        for number, function in enumerate(self.functions):
            if root is function:
                yield "function", number, ""
            if root is function.__globals__ and reading.steps and isinstance(reading.steps[0], str):
                yield "global", number, reading.steps[0]
            for name, cell in _cells(function).items():
                if root is cell:
                    yield "cell", number, name
            if isinstance(root, Object) and self.selves[number] is not None and root.value is self.selves[number]:
                yield "self", number, function.__code__.co_varnames[0]

    def reading_of(self, path: Path, source: str) -> Reading:
        """The reading of a path, which `path_to` has made of an equal program."""
        kind, number, name, steps = path
        function = self.functions[number]
        match kind:
            case "passed":
                return Reading(Passed(name), steps, source)
            case "function":
                return Reading(function, steps, source)
            case "global":
                return Reading(function.__globals__, (name, *steps), source)
            case "cell":
                return Reading(_cells(function)[name], steps, source)
            case _:
                return Reading(Object(self.selves[number]), steps, source)


_Missing: Any = object()

_OWN_NAMES = (
    *(ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Global, ast.Nonlocal),
    *(ast.Import, ast.ImportFrom, ast.comprehension, ast.NamedExpr),
)


def _contains(value: Any, steps: tuple[Step, ...]) -> bool:
    """Whether the description of a value says what these steps lead to."""
    if not steps:
        return not isinstance(value, ModuleType) or value.__name__.partition(".")[0] in LIBRARIES
    if isinstance(value, list | tuple | dict):  # with all its items
        return all(isinstance(step, tuple) for step in steps)
    if isinstance(value, FunctionType | MethodType):
        return steps[0] in ("__code__", "__defaults__", "__kwdefaults__") or steps == ("__class__",)
    if isinstance(value, np.ndarray) or program_of(value) is not None:
        return steps in (("__class__",), ("__class__", "__call__"))
    return False


def _cells(function: FunctionType) -> dict[str, CellType]:
    """The variables of enclosing functions."""
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def _enclosing(function: FunctionType) -> dict[str, Any]:
    """The values of the variables of enclosing functions that have one."""
    return {name: cell.cell_contents for name, cell in _cells(function).items() if cell != CellType()}


def _parsed(annotation: str) -> ast.AST:
    try:
        return ast.parse(annotation, mode="eval").body
    except SyntaxError:
        raise UnfitError(f"the annotation '{annotation}'") from None


def _code(code: CodeType) -> Any:
    """What a code object does, wherever its source is."""

    def constant(each: Any) -> Any:
        if isinstance(each, CodeType):
            return _code(each)
        return [type(each).__name__, sorted(map(repr, each)) if isinstance(each, frozenset) else repr(each)]

    constants = list(map(constant, code.co_consts))
    names = [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars]
    counts = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
    return [code.co_name, code.co_code.hex(), constants, names, counts]


def _symbol(symbol: Any) -> Any:
    assumptions = sorted((name, str(value)) for name, value in symbol.assumptions0.items())
    return [symbol.name, symbol.dtype.to_string(), assumptions, list(map(str, symbol._constraints))]


def describe_data(descriptor: data.Data) -> Any:
    """The descriptor of an argument as JSON, with its symbols. Raises UnfitError for structures and the like."""
    if type(descriptor) not in (data.Array, data.Scalar):
        raise UnfitError(f"an argument of type '{type(descriptor).__name__}'")
    symbols = sorted((_symbol(each) for each in descriptor.free_symbols), key=repr)
    return json.loads(json.dumps([descriptor.to_json(), symbols], default=str))


def describe_program(program: DaceProgram) -> Any:
    """How DaCe parses a program. Raises UnfitError if it is not parsed as others are."""
    is_usual = type(program) is DaceProgram and program.recreate_sdfg and not program.dec_args
    if not is_usual or program.autoopt or program._cache.cache:
        raise UnfitError(f"the settings of program '{program.name}'")
    settings = (program.name, program.objname, str(program.device), program.resolve_functions, program.regenerate_code)
    more = (program.recompile, program.use_explicit_cf, program.ignore_type_hints, program.validate)
    return [*settings, *more, sorted((name, repr(value)) for name, value in program.dec_kwargs.items())]


def check_registered() -> None:
    """Raises UnfitError if another package than DaCe has told DaCe how to parse something."""
    tables = ("_rep", "_oprep", "_ufunc_rep", "_method_rep", "_attr_rep")
    for function in (each for table in tables for each in getattr(Replacements, table).values()):
        if function.__module__.partition(".")[0] != dace.__name__:
            raise UnfitError(f"'{function.__module__}', which extends DaCe's parser")
