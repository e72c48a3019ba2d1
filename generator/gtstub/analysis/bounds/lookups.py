"""
The accesses of a tasklet. A tasklet with a pointer to a whole container reads one element of it, whose index it gets
from a table. gt4py writes this in one of a few forms, which are read here.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from gtstub.analysis.bounds.access import COMPUTED, DATA_CONDITION, OTHER, Access, Indices, Lookup, Scope, Unread
from gtstub.sdfg.dataflow import Dataflow
from gtstub.sdfg.model import Edge, Node, Subset
from gtstub.signature.expressions import Expression, symbol
from gtstub.signature.model import CONNECTIVITY_PREFIX


def of_tasklet(state: Dataflow, node: Node, scope: Scope) -> Iterator[Access | Unread]:
    """The accesses of a tasklet."""
    indexed = _indexed(node)
    for edge, name, part in state.reads(node):
        if (part is not None and part.is_point) or edge.is_dynamic:
            yield scope.access(name, part, is_write=False, is_dynamic=edge.is_dynamic)
        else:
            yield _at(state, node, scope, name, part, indexed.get(str(edge.dst_connector)))
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
    state: Dataflow, node: Node, scope: Scope, name: str, subset: Subset | None, element: _Element | None
) -> Access | Unread:
    """The access of a tasklet to an element of a container."""
    location, part = scope.containers.get(name), None if subset is None else subset.ends
    firsts = scope.values(first for first, _ in part or ())
    if location is None or scope.doubt or element is None or part is None or firsts is None:
        return scope.unread(name, OTHER if element is None else COMPUTED, is_write=False)
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
        made = _index(state, node, scope, tree, element.guard)
        if made is None or outer is None:
            return scope.unread(name, COMPUTED, is_write=False)
        start = found[outer]
        assert isinstance(start, tuple)
        if isinstance(made, Lookup):
            found[outer] = dataclasses.replace(made, plus=made.plus + start[0])
        else:
            found[outer] = (start[0] + made, start[1] + made)
    looked_up = [each for each in found if isinstance(each, Lookup)]
    if element.guard is not None and not (looked_up and all(each.skips for each in looked_up)):
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
    """The element of a container with these indices, which is not read if the connector `guard` is -1."""

    indices: tuple[ast.expr, ...]
    guard: str | None


def _indexed(node: Node) -> dict[str, _Element]:
    """
    The element that a tasklet reads of each container, if it reads one: `x = f[i, j]`, or `x = f[i, j] if i != -1 else
    nan`.
    """
    match node.statements:
        case [ast.Assign(value=value)]:
            pass
        case _:
            return {}
    guard = None
    match value:
        case ast.IfExp(body=guarded, test=test) if (guard := _guard(test)) is not None:
            value = guarded
    match value:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=elements)):
            return {name: _Element(tuple(elements), guard)}
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            return {name: _Element((index,), guard)}
    return {}


def _guard(test: ast.expr) -> str | None:
    """The connector of which this tests that it is not -1; None for another test."""
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.NotEq()], comparators=[other]):
            return name if ast.unparse(other) in ("-1", "(-1)") else None
    return None
