"""
The accesses of a tasklet. A tasklet with a pointer to a whole container reads one element of it, whose index it gets
from a table. gt4py writes this in one of a few forms, which are read here.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from gtstub.frameworks.dace.bounds.access import (
    COMPUTED,
    Access,
    Json,
    Lookup,
    Scope,
    State,
    Subset,
    Unread,
    is_dynamic,
    one,
    subset,
)
from gtstub.signature.expressions import Expression, symbol
from gtstub.signature.model import CONNECTIVITY_PREFIX


def of_tasklet(state: State, node: int, scope: Scope) -> Iterator[Access | Unread]:
    """The accesses of a tasklet to its arguments, and to temporaries if an index comes from a table."""
    document = state.nodes[node]
    indexed = _indexed(document["attributes"].get("code", {}))
    for edge in state.into[node]:
        name = state.source(edge)
        if name is None:
            continue
        part = subset(edge, name, None, of_source=True)
        if _is_element(part) or is_dynamic(edge):
            yield from one(scope.access(name, part, is_dynamic(edge)))
        elif name in scope.containers:
            yield from _at(state, node, scope, name, part, indexed.get(str(edge["dst_connector"])))
    for edge in state.out[node]:
        name = state.destination(edge)
        if name is not None and name in scope.containers:
            part = subset(edge, None, name, of_source=False)
            found = scope.access(name, part, is_dynamic(edge)) if _is_element(part) else scope.unread(name, COMPUTED)
            yield from one(found)


def _is_element(part: Subset) -> bool:
    return part is not None and all(first == last for first, last in part)


def _at(
    state: State, node: int, scope: Scope, name: str, part: Subset, indices: tuple[ast.expr, ...] | None
) -> Iterator[Access | Unread]:
    """The access of a tasklet to the element of a container with these indices."""
    location = scope.containers[name]
    firsts = scope.values(first for first, _ in part or ())
    if scope.conditions is None or indices is None or part is None or firsts is None:
        yield from one(scope.unread(name, COMPUTED))
        return
    # Axes of one element have no index in the tasklet.
    axes = [axis for axis, (first, last) in enumerate(part) if first != last]
    if len(indices) == len(part):
        axes = list(range(len(part)))
    if len(indices) != len(axes):
        yield from one(scope.unread(name, COMPUTED))
        return
    found: list[tuple[Expression, Expression] | Lookup] = [(value, value) for value in location.index(firsts)]
    for axis, tree in zip(axes, indices, strict=True):
        outer = location.axes[axis]
        made = _index(state, node, scope, tree)
        if made is None or outer is None:
            yield from one(scope.unread(name, COMPUTED))
            return
        start = found[outer]
        assert isinstance(start, tuple)
        if isinstance(made, Lookup):
            found[outer] = dataclasses.replace(made, plus=made.plus + start[0])
        else:
            found[outer] = (start[0] + made, start[1] + made)
    if location.sizes is None or any(isinstance(each, Lookup) for each in found):
        yield Access(location.array, scope.ranges, scope.conditions, tuple(found), location.sizes)


def _index(state: State, node: int, scope: Scope, tree: ast.expr) -> Expression | Lookup | None:
    """An index in a tasklet: an expression over symbols, or the value of one connector plus such an expression."""
    connectors = {str(edge["dst_connector"]): edge for edge in state.into[node]}
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
    return _table_element(state, connectors[name], scope, plus - value)


def _table_element(state: State, edge: Json, scope: Scope, plus: Expression) -> Lookup | None:
    """The element of a table at the source of an edge, also through temporaries of one element."""
    for _ in state.nodes:
        name = state.source(edge)
        part = subset(edge, name, state.destination(edge), of_source=True)
        if name is None or not _is_element(part) or part is None:
            return None
        location = scope.containers.get(name)
        if location is None:
            return None
        if location.sizes is None:
            indices = scope.values(first for first, _ in part)
            if not location.array.startswith(CONNECTIVITY_PREFIX) or indices is None:
                return None
            row, column = location.index(indices)
            return Lookup(location.array, row, column, plus)
        writes = [
            each for each in state.edges if state.kind(each["dst"]) == "AccessNode" and state.destination(each) == name
        ]
        # The one that is written in this state must be the one that is read: another state may write it, too.
        first = state.first(edge)
        if len(writes) != 1 or first is None or writes[0]["dst"] != first["src"]:
            return None
        if any(size != Expression(1) for size in location.sizes):
            return None
        (edge,) = writes
        if state.kind(edge["src"]) == "Tasklet":
            return None
    return None


def _indexed(code: Json) -> dict[str, tuple[ast.expr, ...]]:
    """
    The indices at which a tasklet reads each container, if it reads one element of it: `x = f[i, j]`, or
    `x = f[i, j] if i != -1 else nan`.
    """
    if code.get("language") != "Python":
        return {}
    try:
        body = ast.parse(code["string_data"]).body
    except (SyntaxError, ValueError, RecursionError):
        return {}
    match body:
        case [ast.Assign(value=value)]:
            pass
        case _:
            return {}
    match value:
        case ast.IfExp(body=guarded, test=test) if _is_skip_test(test, guarded):
            value = guarded
    match value:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=elements)):
            return {name: tuple(elements)}
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            return {name: (index,)}
    return {}


def _is_skip_test(test: ast.expr, guarded: ast.expr) -> bool:
    """Whether a test is that a connector in the index is not -1."""
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.NotEq()], comparators=[other]):
            return ast.unparse(other) in ("-1", "(-1)") and name in {
                each.id for each in ast.walk(guarded) if isinstance(each, ast.Name)
            }
    return False
