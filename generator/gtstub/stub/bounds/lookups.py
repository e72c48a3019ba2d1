"""
The accesses of a tasklet. A tasklet with a pointer to a whole container reads elements of it, at indices over symbols
or from a table, possibly under conditions: `x = f[i - 1] if 0 < i else g[i]`.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator

from gtstub.stub.bounds import conditions
from gtstub.stub.bounds.access import COMPUTED, DATA_CONDITION, OTHER, Access, Indices, Lookup, Scope, Unread
from gtstub.stub.sdfg.dataflow import Dataflow
from gtstub.stub.sdfg.model import Edge, Node, Subset
from gtstub.stub.signature.expressions import Expression, symbol
from gtstub.stub.signature.model import CONNECTIVITY_PREFIX


def of_tasklet(state: Dataflow, node: Node, scope: Scope) -> Iterator[Access | Unread]:
    """The accesses of a tasklet."""
    elements = _elements(node)
    for edge, name, part in state.reads(node):
        if (part is not None and part.is_point) or edge.is_dynamic:
            yield scope.access(name, part, is_write=False, is_dynamic=edge.is_dynamic)
        elif found := elements.get(str(edge.dst_connector)):
            for element in found:
                yield _at(state, node, scope, name, part, element)
        else:
            yield scope.unread(name, OTHER, is_write=False)
    for edge, name, part in state.writes(node):
        if part is not None and part.is_point:
            overwrites = not edge.is_wcr and _assigns(node, edge)
            yield scope.access(name, part, is_write=True, is_dynamic=edge.is_dynamic, overwrites=overwrites)
        else:
            yield scope.unread(name, COMPUTED, is_write=True)


def _assigns(node: Node, edge: Edge) -> bool:
    """Whether a tasklet assigns a value to the connector of an edge under no condition."""
    targets = (target for each in node.statements if isinstance(each, ast.Assign) for target in each.targets)
    return any(isinstance(target, ast.Name) and target.id == edge.src_connector for target in targets)


def _at(
    state: Dataflow, node: Node, scope: Scope, name: str, subset: Subset | None, element: _Element
) -> Access | Unread:
    """The access of a tasklet to an element of a container."""
    location, part = scope.containers.get(name), None if subset is None else subset.ends
    firsts = scope.values(first for first, _ in part or ())
    if location is None or scope.doubt or part is None or firsts is None:
        return scope.unread(name, COMPUTED, is_write=False)
    reached = _reached(state, node, scope, element)
    if reached is None:
        return scope.unread(name, DATA_CONDITION, is_write=False)
    scope, guard = reached
    indices = element.indices
    # Axes of one element have no index in the tasklet.
    axes = [axis for axis, (first, last) in enumerate(part) if first != last]
    if len(indices) == len(part):
        axes = list(range(len(part)))
    if len(indices) != len(axes):
        return scope.unread(name, COMPUTED, is_write=False)
    found: list[Indices] = [(value, value) for value in location.index(firsts)]
    for axis, tree in zip(axes, indices, strict=True):
        outer = location.axes[axis]
        made = _index(state, node, scope, tree, guard)
        if made is None or outer is None or location.steps[axis] != 1:
            return scope.unread(name, COMPUTED, is_write=False)
        start = found[outer]
        assert isinstance(start, tuple)
        if isinstance(made, Lookup):
            found[outer] = dataclasses.replace(made, plus=made.plus + start[0])
        else:
            found[outer] = (start[0] + made, start[1] + made)
    looked_up = [each for each in found if isinstance(each, Lookup)]
    if guard is not None and not (looked_up and all(each.skips for each in looked_up)):
        return scope.unread(name, DATA_CONDITION, is_write=False)
    return Access(location.array, scope.loops, scope.conditions, tuple(found), location.sizes, scope.unit or 0)


def _index(state: Dataflow, node: Node, scope: Scope, tree: ast.expr, guard: str | None) -> Expression | Lookup | None:
    """
    An index in a tasklet: an expression over symbols, or the value of one connector plus such an expression. The
    element is read unless the connector `guard` is -1.
    """
    connectors = {str(edge.dst_connector): edge for edge in state.into[node.id]}
    names = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)} & connectors.keys()
    if not names:
        return scope.value(ast.unparse(tree))
    if len(names) > 1:
        return None
    (name,) = names
    value = symbol(name)
    plus = dataclasses.replace(scope, symbols={**scope.symbols, name: value}).value(ast.unparse(tree))
    if plus is None or (name, 1) not in plus.terms or name in (plus - value).symbols:
        return None
    return _table_element(state, connectors[name], scope, plus - value, skips=name == guard)


def _table_element(state: Dataflow, edge: Edge, scope: Scope, plus: Expression, *, skips: bool) -> Lookup | None:
    """The element of a table at the source of an edge, also through temporaries of one element."""
    for _ in state.nodes:
        name, part = state.source(edge), state.read(edge)
        if name is None or part is None or not part.is_point:
            return None
        location = scope.containers.get(name)
        if location is None:
            return None
        if location.sizes is None:
            indices = scope.values(each.start for each in part.ranges)
            if not location.array.startswith(CONNECTIVITY_PREFIX) or indices is None:
                return None
            row, column = location.index(indices)
            return Lookup(location.array, row, column, plus, skips)
        writes = [each for each in state.edges if state.container(each.dst) == name]
        # The one that is written in this state must be the one that is read: another state may write it, too.
        first = state.first(edge)
        if len(writes) != 1 or first is None or writes[0].dst != first.src:
            return None
        if any(size != Expression(1) for size in location.sizes):
            return None
        (edge,) = writes
        if state.nodes[edge.src].kind == "Tasklet":
            return None
    return None


@dataclasses.dataclass(frozen=True)
class _Element:
    """The element of a container with these indices, which is read if each of the tests is as true as it says."""

    indices: tuple[ast.expr, ...]
    tests: tuple[tuple[ast.expr, bool], ...] = ()


def _reached(state: Dataflow, node: Node, scope: Scope, element: _Element) -> tuple[Scope, str | None] | None:
    """
    The scope in which an element is read, and the connector that is not -1 then, if there is one. None if that depends
    on data in another way.
    """
    connectors = {str(edge.dst_connector) for edge in state.into[node.id]}
    guards: list[str] = []
    # A choice in a tasklet reads one side, even if the program evaluates both sides of others.
    scope = dataclasses.replace(scope, evaluates_both=False)
    for test, is_true in element.tests:
        if (guard := _guard(test, is_true)) in connectors:
            guards.append(str(guard))
        elif connectors.isdisjoint(each.id for each in ast.walk(test) if isinstance(each, ast.Name)):
            holds, fails = conditions.choice(ast.unparse(test), scope, next(scope.counter))
            scope = scope.when(holds if is_true else fails)
        else:
            return None
    return (scope, next(iter(guards), None)) if len(guards) <= 1 else None


def _guard(test: ast.expr, is_true: bool) -> str | None:
    """The name of which a test says that it is not -1; None for another test."""
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.NotEq() | ast.Eq() as op], comparators=[other]):
            is_other = isinstance(op, ast.NotEq) == is_true
            return name if is_other and ast.unparse(other) in ("-1", "(-1)") else None
    return None


def _elements(node: Node) -> dict[str, list[_Element]]:
    """The elements that a tasklet of one statement reads of each container of which it reads nothing else."""
    match node.statements:
        case [ast.Assign() as statement]:
            found = _Elements()
            found.visit(statement)
            return {name: elements for name, elements in found.elements.items() if name not in found.others}
    return {}


class _Elements(ast.NodeVisitor):
    """Finds the elements that an expression reads, with the tests before each of them, and the names of all others."""

    def __init__(self) -> None:
        self.elements: dict[str, list[_Element]] = {}
        self.others: set[str] = set()
        self._tests: tuple[tuple[ast.expr, bool], ...] = ()

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        self._visit_after(node.body, [(node.test, True)])
        self._visit_after(node.orelse, [(node.test, False)])

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        before: list[tuple[ast.expr, bool]] = []
        for each in node.values:
            self._visit_after(each, before)
            before.append((each, isinstance(node.op, ast.And)))

    def _visit_after(self, node: ast.expr, tests: Iterable[tuple[ast.expr, bool]]) -> None:
        outer, self._tests = self._tests, (*self._tests, *tests)
        self.visit(node)
        self._tests = outer

    def visit_Subscript(self, node: ast.Subscript) -> None:
        match node.value:
            case ast.Name(id=name):
                indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                self.elements.setdefault(name, []).append(_Element(tuple(indices), self._tests))
                self.visit(node.slice)
            case _:
                self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self.others.add(node.id)
