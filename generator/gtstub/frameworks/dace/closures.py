"""
What a DaCe program reads from around it: globals, variables of enclosing functions, and attributes of `self`.

Each evaluation of DaCe's front end (recording.py) ends in one of these ways: it reads what no call can change; calls
read it again along a path, and compare it; calls evaluate its expression again, and compare what comes out; or the
program is refused.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any

from dace import dtypes, symbolic
from dace.frontend.python.parser import DaceProgram

from gtstub.errors import SignatureError
from gtstub.frameworks.dace.front_end import FrontEnd
from gtstub.frameworks.dace.libraries import LIBRARIES
from gtstub.frameworks.dace.paths import paths_in
from gtstub.frameworks.dace.readings import Again, Fixed, Names, Object, Passed, Reading
from gtstub.frameworks.dace.recording import Evaluation, Purpose, Recorder, Scope
from gtstub.frameworks.dace.values import (
    copy_of,
    has_index,
    held,
    is_collection,
    is_equal,
    is_iterable,
    is_plain,
    items_of,
    kept,
    same,
    type_of,
)


class UsedUpError(SignatureError):
    """DaCe has used up an iterator: if it parses the program again, it finds nothing there."""


class End(enum.Enum):
    """What becomes of an evaluation."""

    FIXED = enum.auto()
    READ = enum.auto()
    EVALUATED_AGAIN = enum.auto()


@dataclasses.dataclass(frozen=True)
class Identical:
    """An object that a call must read as it is: another one may be equal now, and differ later."""

    value: Any


@dataclasses.dataclass(frozen=True)
class Closure:
    """
    The arrays that a program reads and the functions that it calls, by their names in the SDFG, and the values that
    were compiled in. DaCe binds the arguments of a function that are no data; calls use what it has made. `shared` are
    the other paths to an array that was at several paths when the program was compiled, each with the array's name in
    the SDFG. `distinct` are the names of arrays that had no other name: DaCe takes them for different memory. `types`
    are those of the arrays. `ends` counts what has become of DaCe's evaluations, and `again` are the expressions that
    each call evaluates.
    """

    arrays: Mapping[str, Reading]
    types: Mapping[str, str]
    callbacks: Mapping[str, Reading]
    constants: tuple[tuple[Reading, Any], ...]
    shared: tuple[tuple[Reading, str], ...]
    distinct: frozenset[str]
    ends: Mapping[End, int]
    again: tuple[str, ...]


def closure_of(
    program: DaceProgram,
    arguments: Mapping[str, Any],
    called: Collection[Any],
    recorder: Recorder,
    front_end: FrontEnd,
) -> Closure:
    """
    The closure of a program that DaCe has parsed for the arguments of a call, from what DaCe has evaluated and parsed.
    `arguments` are those that were compiled in, `called` the functions that the SDFG calls.

    Raises SignatureError for what a call can neither read nor evaluate again.
    """
    maker = _Maker(program, arguments, called, front_end)
    ends = Counter(maker.end(each) for each in recorder.evaluations)
    for function in recorder.functions:
        maker.compare(Reading(function, ("__code__",), f"{function.__name__}.__code__"))
    arrays: dict[str, Reading] = {}
    types: dict[str, str] = {}
    shared: list[tuple[Reading, str]] = []
    place = {}
    for name, (source, descriptor, evaluator, _) in program.resolver.closure_arrays.items():
        array = evaluator()
        place[name] = id(array)
        found = [reading for reading, value in maker.arrays if value is array]
        found = sorted(found, key=lambda reading: reading.source != source) or [
            reading for reading, _ in maker.arrays if reading.source == source
        ]
        readings = list({reading.identity: reading for reading in found}.values())
        if not readings:
            raise SignatureError(
                f"Program '{program.name}' reads the array '{source}', which a call cannot find again."
            )
        if descriptor.transient:  # the SDFG's own memory, which does not fit another kind of object
            maker.compare_type(readings[0])
        readings = [reading.then(*front_end.steps(array)) for reading in readings]
        arrays[name], types[name] = readings[0], type_of(array)
        shared += [(reading, name) for reading in readings[1:]]
    sources = {reading.identity for reading in (*arrays.values(), *(reading for reading, _ in shared))}
    bound = Counter(place.values())
    for reading, value in maker.arrays:
        if id(value) not in bound and reading.then(*front_end.steps(value)).identity not in sources:
            maker.compare_type(reading)
    callbacks = {
        name: Reading(function, (), source) for name, (source, function, _) in program.resolver.callbacks.items()
    }
    constants = sorted(maker.constants.values(), key=lambda each: isinstance(each[0].root, Again))
    distinct = frozenset(name for name, array in place.items() if bound[array] == 1)
    return Closure(arrays, types, callbacks, tuple(constants), tuple(shared), distinct, ends, tuple(maker.again))


def readings_of(
    program: DaceProgram, arguments: Mapping[str, Any], recorder: Recorder, front_end: FrontEnd
) -> tuple[Reading, ...]:
    """The paths in what DaCe has evaluated."""
    maker = _Maker(program, arguments, (), front_end)
    found = (each for evaluation in recorder.evaluations for each in maker.paths(evaluation))
    return tuple({each.identity: each for each in found}.values())


class _Maker:
    """
    Decides for each evaluation how calls check it. `arrays` are the arrays that were found, `constants` what is
    compared, by its place, and `again` the expressions that calls evaluate.
    """

    def __init__(
        self, program: DaceProgram, arguments: Mapping[str, Any], called: Collection[Any], front_end: FrontEnd
    ) -> None:
        self.arrays: list[tuple[Reading, Any]] = []
        self.constants: dict[Any, tuple[Reading, Any]] = {}
        self.again: dict[str, Reading] = {}
        self._scopes: dict[Scope, Names] = {}
        self._program = program
        self._arguments = arguments
        self._called = {id(each) for each in called}
        self._front_end = front_end
        self._passed: dict[int, Reading] = {
            id(value): Reading(Passed(name), (), name) for name, value in arguments.items() if not is_plain(value)
        }

    def end(self, evaluation: Evaluation) -> End:
        """Has calls check an evaluation."""
        if evaluation.use is Purpose.HELD and id(evaluation.callback) not in self._called:
            evaluation.use = Purpose.VALUE  # DaCe has parsed the function, and drops the callback
        names = self._names(evaluation.scope)
        node = names.expanded(evaluation.node)
        if evaluation.in_annotation and names.is_of_library(node):
            return End.FIXED
        source = names.path(node)
        if isinstance(source, Fixed):
            return self._end_fixed(source)
        if source is None:
            return self._end_expression(names, node, evaluation)
        value, use = evaluation.value, evaluation.use
        if isinstance(source.root, Passed) and not is_plain(value):
            self._passed.setdefault(id(value), source)
        has_items = is_iterable(value) or (use is Purpose.ITEMS and isinstance(value, Iterable))
        is_path = dtypes.is_array(value) or isinstance(value, list | tuple)  # whose items are at paths, too
        is_gone_over = use in (Purpose.VALUE, Purpose.ITEMS) and has_items and not is_path
        if is_gone_over or (use is Purpose.TRUTH and not is_plain(value)):
            return End.READ if self._read_plain(source, value) else self._evaluate_again(names, node, evaluation)
        self._read(source, value, Purpose.VALUE if use is Purpose.ITEMS else use)
        if evaluation.is_measured and not is_plain(value):
            self._compare_length(source)
        if has_index(value):
            self.compare(self._again(names, node, operator.index, f"operator.index({source.source})"))
        return End.READ

    def _end_fixed(self, fixed: Fixed) -> End:
        """Has calls compare the module in which something is, unless its name always stands for it."""
        if fixed.library is None or fixed.library.source in LIBRARIES:
            return End.FIXED
        self.compare(fixed.library)
        return End.READ

    def _names(self, scope: Scope) -> Names:
        if scope not in self._scopes:
            is_top = scope.function is getattr(self._program.f, "__func__", self._program.f)
            self._scopes[scope] = names = Names(scope, self._arguments if is_top else {}, self._passed, self._front_end)
            for aliases in scope.aliases.values():  # DaCe does not say which of them stands where
                for each in map(names.find, aliases if len(aliases) > 1 else ()):
                    if isinstance(each, Reading) and each.source not in LIBRARIES:
                        self.compare(each)
        return self._scopes[scope]

    def paths(self, evaluation: Evaluation) -> list[Reading]:
        """The paths in what was evaluated that do not lead to a library."""
        names = self._names(evaluation.scope)
        found = [names.path(each) for each in paths_in(names.expanded(evaluation.node))]
        return [each for each in found if isinstance(each, Reading)]

    def _read_plain(self, reading: Reading, value: Any) -> bool:
        """Has calls compare a value that is the same if it is equal; False for others."""
        if is_equal(value):
            self.compare(reading, value)
        return is_equal(value)

    def _read(self, reading: Reading, value: Any, use: Purpose) -> None:
        is_passed = isinstance(reading.root, Passed)
        if use is Purpose.HELD and (is_collection(value) or not is_plain(value)):  # the callback sees what is in it
            self._compare_identical(reading, value)
        elif dtypes.is_array(value):
            self.arrays.append((reading, value))
        elif self._read_plain(reading, value):
            return
        elif use is Purpose.BOUND and not is_passed:
            self._compare_identical(reading, value)
        elif isinstance(value, BuiltinFunctionType):
            parent = None if isinstance(value.__self__, ModuleType | None) else reading.parent
            if parent is None:
                self._compare_identical(reading, value)
            else:  # of a collection, such as dict.items
                self.compare_type(parent)
        elif isinstance(value, list | tuple) and use is Purpose.VALUE:
            self._compare_length(reading)
            for index, each in enumerate(value):
                self._read(reading.then((index,), source=f"{reading.source}[{index}]"), each, use)
        elif use is Purpose.VALUE and not is_passed:
            self._compare_identical(reading, value)
        else:
            self.compare_type(reading)

    def _compare_length(self, reading: Reading) -> None:
        self.compare(reading.then((), source=f"len({reading.source})"))

    def _compare_identical(self, reading: Reading, value: Any) -> None:
        self.compare(reading, Identical(value))
        if callable(value) and not isinstance(value, type | BuiltinFunctionType):  # an object that DaCe may call
            self.compare(reading.then("__class__", "__call__", source=f"type({reading.source}).__call__"))

    def _end_expression(self, names: Names, node: ast.expr, evaluation: Evaluation) -> End:
        if _is_only_called(evaluation):
            return End.FIXED
        in_annotation = evaluation.in_annotation
        found = [names.path(each) for each in paths_in(node) if not (in_annotation and names.is_of_library(each))]
        readings = [each for each in found if isinstance(each, Reading)]
        ends = {self._end_fixed(each) for each in found if isinstance(each, Fixed)}
        if names.is_pure(node) or (evaluation.use is Purpose.KIND and not readings):
            for reading in readings:
                self.compare(reading)
            return End.READ if readings or End.READ in ends else End.FIXED
        if evaluation.use is Purpose.KIND or isinstance(node, _OF_VALUES):
            try:
                values = [(reading, reading.read(self._arguments)) for reading in readings]
            except Exception as error:  # of any object's attributes
                raise self._refusal(ast.unparse(node)) from error
            if evaluation.use is Purpose.KIND or (_is_of_values(node) and all(is_plain(value) for _, value in values)):
                for reading, value in values:
                    self._read(reading, value, Purpose.KIND)
                return End.READ
        return self._evaluate_again(names, node, evaluation)

    def _evaluate_again(self, names: Names, node: ast.expr, evaluation: Evaluation) -> End:
        value, source = evaluation.value, ast.unparse(node)
        convert: Callable[[Any], Any] | None = None
        if evaluation.use is Purpose.TRUTH and not isinstance(value, symbolic.sympy.Basic):
            convert, source = bool, source if isinstance(value, bool) else f"bool({source})"
        elif evaluation.use is Purpose.HELD:
            convert = held
        elif dtypes.is_array(value) and evaluation.use is not Purpose.ITEMS:
            self.arrays.append((self._again(names, node, None, source), value))
            return End.EVALUATED_AGAIN
        elif isinstance(value, Iterator):
            if names.again(node, None, source).read(self._arguments) is value:  # DaCe has used it up
                raise UsedUpError(f"{self._refusal(source)} DaCe has used it up: make it a list.")
            self.compare(self._again(names, node, kept, source))
            return End.EVALUATED_AGAIN
        elif evaluation.use is not Purpose.BOUND and is_iterable(value):
            convert = kept
        elif evaluation.use is Purpose.ITEMS and isinstance(value, Iterable):
            convert = items_of
        elif not is_equal(value):
            self._compare_identical(self._again(names, node, None, source), value)
            return End.EVALUATED_AGAIN
        self.compare(self._again(names, node, convert, source), convert(value) if convert else value)
        return End.EVALUATED_AGAIN

    def _again(self, names: Names, node: ast.expr, convert: Callable[[Any], Any] | None, source: str) -> Reading:
        try:
            reading = names.again(node, convert, source)
        except (SyntaxError, TypeError, ValueError) as error:
            raise self._refusal(source) from error
        self.again.setdefault(source, reading)
        return reading

    def compare(self, reading: Reading, value: Any = ...) -> None:
        """Has calls compare what they read with `value`, or with what is there now."""
        if isinstance(reading.root, Object) and not reading.steps and not is_collection(reading.root.value):
            return  # the object is the same
        if reading.identity in self.constants or self._is_compared_whole(reading):
            return
        try:
            now = reading.read(self._arguments)
        except Exception as error:  # of any object's attributes
            raise self._refusal(reading.source) from error
        value = now if value is ... else value
        if not (now is value.value if isinstance(value, Identical) else same(now, value)):
            raise self._refusal(reading.source)
        self.constants[reading.identity] = reading, copy_of(value)

    def _is_compared_whole(self, reading: Reading) -> bool:
        """Whether it is an item of a collection that calls compare with all its items."""
        if not reading.steps or not isinstance(reading.steps[-1], tuple):
            return False
        whole = dataclasses.replace(reading, steps=reading.steps[:-1])
        return whole.identity in self.constants and is_plain(self.constants[whole.identity][1])

    def compare_type(self, reading: Reading) -> None:
        """Has calls compare the type of what they read."""
        self.compare(reading.then("__class__", source=f"type({reading.source})"))

    def _refusal(self, source: str) -> SignatureError:
        return SignatureError(
            f"Program '{self._program.name}' was parsed with the value of '{source}', which a call cannot find again."
        )


_METHODS = BuiltinFunctionType | FunctionType | MethodType | MethodWrapperType


def _is_only_called(evaluation: Evaluation) -> bool:
    """
    Whether DaCe asks for a function only to see whether it is a word of its language: it has no name for a method of
    what a call makes, nor for a lambda expression, and parses neither. What the function makes is another evaluation.
    """
    node = evaluation.node
    is_made = isinstance(node, ast.Attribute) and any(isinstance(each, ast.Call) for each in ast.walk(node))
    is_passed = evaluation.use in (Purpose.BOUND, Purpose.HELD, Purpose.TRUTH)
    return (is_made or isinstance(node, ast.Lambda)) and isinstance(evaluation.value, _METHODS) and not is_passed


_OF_VALUES = (
    ast.Compare
    | ast.BoolOp
    | ast.BinOp
    | ast.UnaryOp
    | ast.IfExp
    | ast.Tuple
    | ast.List
    | ast.JoinedStr
    | ast.Subscript
    | ast.Slice
)


def _is_of_values(node: ast.expr) -> bool:
    """Whether an expression depends on nothing but the values of its paths."""
    inner = {id(each) for path in paths_in(node) for each in ast.walk(path)}
    allowed = _OF_VALUES | ast.Constant | ast.FormattedValue
    return all(
        isinstance(each, allowed) for each in ast.walk(node) if isinstance(each, ast.expr) and id(each) not in inner
    )
