"""
Records what DaCe's front end evaluates while it parses a program: the expression, where it stands, and the value.

DaCe 2.0.0a10 evaluates in three places: `astutils.evalnode`, `GlobalResolver.global_value_to_node` for the names and
expressions that it replaces, and its replacement of `len()`. They are observed for the time of one parse, in the thread
that parses: methods of DaCe's classes are wrapped meanwhile, and record nothing in other threads. DaCe's own calls keep
SDFGs that they have made, maybe with other settings, under keys that lack some of what was compiled in, such as
functions. So DaCe parses a program meanwhile instead of taking one of these.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dataclasses
import enum
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

from dace import symbolic
from dace.frontend.common import op_repository
from dace.frontend.python import astutils, cached_program, newast, preprocessing

from gtstub.frameworks.sources import inner_code

_LOCK = threading.RLock()

_OF_LOOP = re.compile(r"gen\d+_(\d+)(?:_(\d+))?")
"""DaCe's names for the elements of an unrolled loop: the line, the element, and the part of it."""


class Purpose(enum.Enum):
    """What DaCe does with a value."""

    VALUE = enum.auto()
    """DaCe compiles it in, or what follows from it."""
    TRUTH = enum.auto()
    """DaCe asks whether it is true."""
    BOUND = enum.auto()
    """DaCe passes it to a program that it parses next, as a value of one of its parameters."""
    HELD = enum.auto()
    """DaCe passes it to a callback, which keeps the value itself."""
    ITEMS = enum.auto()
    """DaCe goes over its items."""
    KIND = enum.auto()
    """DaCe leaves the expression as it is, because the value is none that it compiles in."""


@dataclasses.dataclass(eq=False)
class Scope:
    """
    A function that DaCe parses: what its names stand for, and which parameters have their defaults. `derived` has the
    expressions behind the names that DaCe makes up, and `aliases` the function's names of modules, by their own names.
    """

    function: FunctionType
    values: Mapping[str, Any]
    defaults: frozenset[str]
    aliases: Mapping[str, Sequence[str]]
    derived: dict[str, ast.expr] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(eq=False)
class Evaluation:
    """
    An expression that DaCe evaluates in a function, and what came out. `callback` is the function that keeps a value
    whose use is HELD. If it `is_measured`, DaCe asks for the number of its items. An expression `in_annotation` says
    what is passed.
    """

    scope: Scope
    node: ast.expr
    value: Any
    use: Purpose
    callback: Any = None
    is_measured: bool = False
    in_annotation: bool = False


class Recorder:
    """
    What DaCe evaluates in one thread, and the functions that it parses. `meet` is called with each value, before DaCe
    goes on with it.
    """

    def __init__(self, meet: Callable[[Any], None]) -> None:
        self.evaluations: list[Evaluation] = []
        self.functions: dict[FunctionType, None] = {}
        self._meet = meet
        self._thread = threading.get_ident()
        self._scopes: list[Scope] = []
        self._of_tree: dict[int, tuple[Any, Scope]] = {}
        self._annotations: dict[int, ast.AST] = {}
        self._use: Purpose | None = Purpose.VALUE
        self._evaluated: Evaluation | None = None
        self._replacing: tuple[str, Evaluation] | None = None

    @property
    def is_here(self) -> bool:
        """Whether this is the thread that is recorded; others may parse meanwhile."""
        return threading.get_ident() == self._thread

    @property
    def _is_on(self) -> bool:
        return self.is_here and bool(self._scopes)

    @contextlib.contextmanager
    def scope(self, scope: Scope | None) -> Iterator[None]:
        """Evaluations in the block are of this function."""
        if not self.is_here:
            yield
            return
        saved = self._use, self._evaluated, self._replacing
        self._use, self._evaluated, self._replacing = Purpose.VALUE, None, None
        if scope is not None:
            self._scopes.append(scope)
            self.functions[scope.function] = None
        try:
            yield
        finally:
            self._use, self._evaluated, self._replacing = saved
            if scope is not None:
                self._scopes.pop()

    @contextlib.contextmanager
    def used(self, use: Purpose | None) -> Iterator[None]:
        """Evaluations in the block are for this. None: DaCe asks only whether they are symbolic expressions."""
        if not self.is_here:
            yield
            return
        saved, self._use = self._use, use
        try:
            yield
        finally:
            self._use = saved

    def hold(self, make: Callable[[], Any]) -> Any:
        """DaCe makes a callback, which keeps the values that it evaluates meanwhile."""
        if not self._is_on:
            return make()
        saved, count = self._evaluated, len(self.evaluations)
        with self.used(Purpose.HELD):
            callback = make()
        self._evaluated = saved
        for each in self.evaluations[count:]:
            each.callback = callback
        return callback

    def add_function(self, node: ast.FunctionDef | ast.Lambda) -> None:
        """DaCe goes over the definition of a function."""
        if self.is_here:
            annotations = [each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg)]
            for annotation in (*annotations, getattr(node, "returns", None)):
                self._annotations |= {id(each): each for each in ast.walk(annotation or ast.Pass())}

    def measure(self, value: Any) -> None:
        """DaCe asks for the number of items of an object that it has left as it is."""
        if self._is_on:
            for each in self.evaluations:
                each.is_measured |= each.value is value

    def add_tree(self, tree: Any, scope: Scope) -> None:
        """`tree` is what DaCe has made of the source of the function."""
        if self.is_here:
            self._of_tree[id(tree)] = tree, scope

    def scope_of_tree(self, tree: Any) -> Scope | None:
        return self._of_tree.get(id(tree), (None, None))[1]

    def add_evaluated(self, node: Any, value: Any) -> None:
        """DaCe has evaluated an expression."""
        if not self._is_on or not isinstance(node, ast.expr) or isinstance(node, ast.Constant):
            return
        is_symbolic = isinstance(value, symbolic.sympy.Basic)
        if self._use is None and not is_symbolic:
            return
        self._evaluated = self._add(node, value, Purpose.VALUE if self._use is None or is_symbolic else self._use)

    def _add(self, node: ast.expr, value: Any, use: Purpose) -> Evaluation:
        self._meet(value)
        in_annotation = id(node) in self._annotations
        evaluation = Evaluation(self._scopes[-1], astutils.copy_tree(node), value, use, in_annotation=in_annotation)
        self.evaluations.append(evaluation)
        return evaluation

    def replace(
        self, make: Callable[[], ast.AST | None], value: Any, node: Any, name: str, *, keeps: bool
    ) -> ast.AST | None:
        """
        DaCe replaces `node` by what `make` makes of `value`; `name` is its text for it. `keeps`: DaCe makes up a name
        for an object that it has no other one for.
        """
        outer = self._replacing
        if not self._is_on or isinstance(node, ast.Constant) or (outer is not None and outer[0] == name):
            return make()
        evaluation = self._evaluation_of(value, node, name, outer)
        if evaluation is None:
            return make()
        self._replacing = name, evaluation
        count = len(self.evaluations)
        try:
            made = make()
        finally:
            self._replacing = outer
        if made is None and evaluation.use is Purpose.VALUE:
            evaluation.use = Purpose.KIND
            if isinstance(value, list | tuple):  # DaCe leaves its items as they are, too
                del self.evaluations[count:]
        if keeps and isinstance(made, ast.Name):
            evaluation.scope.derived[made.id] = evaluation.node
        return made

    def _evaluation_of(
        self, value: Any, node: Any, name: str, outer: tuple[str, Evaluation] | None
    ) -> Evaluation | None:
        """The evaluation with which DaCe has got a value that it replaces something by."""
        if outer is not None and name.startswith(f"{outer[0]}["):  # an item of a list
            return self._add(item(outer[1].node, int(name[len(outer[0]) + 1 : -1])), value, Purpose.VALUE)
        if isinstance(node, ast.Name) and node.id == name:
            return self._add(node, value, Purpose.VALUE)
        last = self._evaluated
        if last is not None and (match := _OF_LOOP.fullmatch(name)):
            element = item(_listed(last.node, last.value), int(match[1]))
            part = match[2]
            return self._add(element if part is None else item(call("list", element), int(part)), value, Purpose.VALUE)
        if last is not None and last.value is value:
            return last
        if last is not None and isinstance(last.value, list | tuple):
            for number, each in enumerate(last.value):
                if each is value:
                    return self._add(item(last.node, number), value, Purpose.VALUE)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Constant) and node.func.value is value:
            return None  # the object that is called was evaluated before, and DaCe's text for it is no expression
        try:
            parsed = ast.parse(name, mode="eval").body
        except SyntaxError:
            return None
        return None if isinstance(parsed, ast.Constant) else self._add(parsed, value, Purpose.VALUE)


def item(node: ast.expr, index: int) -> ast.expr:
    """The expression for an item."""
    return ast.Subscript(value=node, slice=ast.Constant(value=index), ctx=ast.Load())


def call(builtin: str, node: ast.expr) -> ast.expr:
    """The expression for the call of a builtin function."""
    name = ast.Constant(value=getattr(builtins, builtin))
    return ast.Call(func=name, args=[node], keywords=[])


def _listed(node: ast.expr, value: Any) -> ast.expr:
    return node if isinstance(value, list | tuple) else call("list", node)


def _aliases(code: CodeType, modules: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """The names of modules that a function uses, or else that it might use, by the names of the modules."""
    used = _names_in(code)
    found: dict[str, list[str]] = {}
    for name, own in sorted(modules.items(), key=lambda each: each[0] not in used):
        if name != "builtins" and (name in used or own not in found):
            found.setdefault(own, []).append(name)
    return found


def _names_in(code: CodeType) -> set[str]:
    return {name for each in (code, *inner_code(code)) for name in (*each.co_names, *each.co_freevars)}


@contextlib.contextmanager
def recording(meet: Callable[[Any], None]) -> Iterator[Recorder]:
    """
    Records what DaCe evaluates in the block, in this thread. `meet` is called with each value, before DaCe goes on with
    it.
    """
    with _LOCK, _observed(Recorder(meet)) as recorder:
        yield recorder


@contextlib.contextmanager
def _observed(recorder: Recorder) -> Iterator[Recorder]:
    """Has DaCe tell a recorder what it evaluates."""
    evaluate, preprocess, parse = astutils.evalnode, preprocessing.preprocess_dace_program, newast.parse_dace_program
    flatten = preprocessing.flatten_callback

    def evalnode(node: Any, gvars: dict[str, Any]) -> Any:
        value = evaluate(node, gvars)
        recorder.add_evaluated(node, value)
        return value

    def preprocess_dace_program(
        f: Any,
        argtypes: dict[str, Any],
        global_vars: dict[str, Any],
        modules: Mapping[str, str],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        function = getattr(f, "__func__", f)
        defaults = frozenset(kwargs.get("default_args") or ())
        scope = Scope(function, dict(global_vars), defaults, _aliases(function.__code__, modules))
        with recorder.scope(scope):
            tree, closure = preprocess(f, argtypes, global_vars, modules, *args, **kwargs)
        recorder.add_tree(tree, scope)
        return tree, closure

    def parse_dace_program(name: str, preprocessed_ast: Any, *args: Any, **kwargs: Any) -> Any:
        with recorder.scope(recorder.scope_of_tree(preprocessed_ast)):
            return parse(name, preprocessed_ast, *args, **kwargs)

    def flatten_callback(func: Any, node: ast.Call, global_vars: dict[str, Any]) -> Any:
        return recorder.hold(lambda: flatten(func, node, global_vars))

    def global_value_to_node(
        resolver: Any,
        value: Any,
        parent_node: Any,
        qualname: str,
        recurse: bool = False,
        detect_callables: bool = False,
        keep_object: bool = False,
    ) -> ast.AST | None:
        def make() -> ast.AST | None:
            return make_node(  # type: ignore[no-any-return]
                resolver, value, parent_node, qualname, recurse, detect_callables, keep_object
            )

        return recorder.replace(make, value, parent_node, qualname, keeps=keep_object)

    def used(
        class_: type, method: str, purpose: Purpose | None, add: Callable[[Any], None] = lambda _: None
    ) -> tuple[type, str, Callable[..., Any]]:
        function = getattr(class_, method)

        def observed(visitor: Any, node: ast.AST) -> Any:
            add(node)
            with recorder.used(purpose):
                return function(visitor, node)

        return class_, method, observed

    def has(cache: Any, key: Any) -> bool:
        return not recorder.is_here and is_cached(cache, key)

    def length(visitor: Any, sdfg: Any, state: Any, value: Any) -> Any:
        recorder.measure(value)
        return measure(visitor, sdfg, state, value)

    functions, is_cached = op_repository.Replacements._rep, cached_program.DaceProgramCache.has
    measure, make_node = functions["len"], preprocessing.GlobalResolver.global_value_to_node
    places = (
        (astutils, "evalnode", evalnode),
        (cached_program.DaceProgramCache, "has", has),
        (newast, "parse_dace_program", parse_dace_program),
        (preprocessing, "preprocess_dace_program", preprocess_dace_program),
        (preprocessing, "flatten_callback", flatten_callback),
        (preprocessing.GlobalResolver, "global_value_to_node", global_value_to_node),
        used(preprocessing.GlobalResolver, "visit_Assert", Purpose.TRUTH),
        used(preprocessing.ConditionalCodeResolver, "visit_If", Purpose.TRUTH),
        used(preprocessing.CallTreeResolver, "_eval_args", Purpose.BOUND),
        used(preprocessing.LoopUnroller, "visit_For", Purpose.ITEMS),
        used(preprocessing.GlobalResolver, "visit_FunctionDef", Purpose.VALUE, recorder.add_function),
        used(preprocessing.RewriteSympyEquality, "visit_Compare", None),
    )
    old = [(place, name, getattr(place, name)) for place, name, _ in places]
    try:
        functions["len"] = length
        for place, name, each in places:
            setattr(place, name, each)
        yield recorder
    finally:
        functions["len"] = measure
        for place, name, each in old:
            setattr(place, name, each)
