"""
What the names in an SDFG stand for: the values of its symbols and scalars in terms of the arguments, and which of them
depend on elements of arrays.
"""

from __future__ import annotations

import ast
import dataclasses

from gtstub.stub.bounds import conditions
from gtstub.stub.bounds.access import Scope
from gtstub.stub.bounds.wrapping import Typed
from gtstub.stub.sdfg.dataflow import Dataflow, around
from gtstub.stub.sdfg.model import Edge, Loop, Node, Region, Sdfg, Transition, assigned_in, regions_in, states_in


def enter(sdfg: Sdfg, scope: Scope) -> Scope:
    """
    The scope inside an SDFG, with the values of the symbols that its edges assign and of the scalars that its tasklets
    write. A name has a value if it has the same one in the whole SDFG.
    """
    all_assigned, writers = assignments_in(sdfg), _writers(sdfg)
    changing = {*all_assigned, *writers} & {*scope.symbols, *scope.texts}
    variables = {each.variable for each in regions_in(sdfg) if isinstance(each, Loop)}
    scope = scope.without(changing)
    assigned = {name: texts for name, texts in all_assigned.items() if name not in changing}
    scalar = {name for name, container in sdfg.containers.items() if container.has_one_element}
    scalars = {name: each for name, each in writers.items() if name not in changing and name in scalar}
    # An argument has its value from outside until it is written.
    own = {name: each for name, each in scalars.items() if sdfg.containers[name].is_transient}
    scope = _with_data(sdfg, _with_values(sdfg, scope, assigned, own), assigned, scalars)
    alike = {name for name, texts in all_assigned.items() if len(set(map(scope.meaning, texts))) == 1}
    return dataclasses.replace(scope, alike=frozenset(alike - variables))


def behind(edge: Transition, scope: Scope, sdfg: Sdfg) -> Scope:
    """
    The scope behind an edge, where the symbols that all edges assign alike have their values: in each round of the
    loops around the edge another one. DaCe assigns the size of a section before each operation on it, and the parts of
    a condition before a branch.
    """
    texts = {name: text for name, text in edge.assignments.items() if name in scope.alike - scope.symbols.keys()}
    found = {name: value for name, text in texts.items() if (value := value_in(name, text, scope, sdfg)) is not None}
    if scope.doubt:
        return scope
    others = {name: conditions.choice(text, scope, 0) for name, text in texts.items() if name not in found}
    # What is not known may differ although the text is the same, as an element of an array.
    choices = {name: each for name, each in others.items() if not any(map(conditions.unknown_in, each))}
    return dataclasses.replace(scope.knowing(found), choices={**scope.choices, **choices})


def assignments_in(region: Region) -> dict[str, set[str]]:
    """What edges inside a region assign to symbols; the variables of the loops in it get several values."""
    found = assigned_in(region)
    for inner in regions_in(region):
        if inner is not region and isinstance(inner, Loop):
            found[inner.variable] = found.get(inner.variable, set()) | {"", "?"}
    return found


@dataclasses.dataclass(frozen=True)
class _Writer:
    """An edge that writes a scalar."""

    state: Dataflow
    edge: Edge

    @property
    def _node(self) -> Node:
        return self.state.nodes[self.edge.src]

    def value(self, scope: Scope) -> Typed | None:
        """The value that is written, if it is known."""
        found = self._computed(scope)
        container = self.state.containers[self.state.nodes[self.edge.dst].container]
        return None if found is None else found.stored(container.dtype)

    def _computed(self, scope: Scope) -> Typed | None:
        state, node = self.state, self._node
        if self.edge.is_wcr:
            return None
        if node.container:
            return scope.typed(str(state.source(self.edge)))
        if node.kind != "Tasklet":
            return None
        symbols, types = dict(scope.symbols), dict(scope.types)
        for each, name, part in state.reads(node):
            if name in scope.symbols and part is not None and part.is_point:
                symbols[str(each.dst_connector)] = scope.symbols[name]
                types |= {str(each.dst_connector): scope.types[name]} if name in scope.types else {}
        text = _assigned_text(node, str(self.edge.src_connector))
        return None if text is None else dataclasses.replace(scope, symbols=symbols, types=types).typed(text)

    def depends_on_data(self, scope: Scope) -> bool:
        """Whether the value depends on elements of arrays, or on where in a loop it is written."""
        state, node = self.state, self._node
        if node.container:
            return str(state.source(self.edge)) in scope.data
        names = {name for _, name, _ in state.reads(node)}
        variables = (name for entry in around(state.state, node) for name in entry.variables)
        inside = dataclasses.replace(scope, data=scope.data.union(variables))
        is_known_node = node.kind in ("Tasklet", "NestedSDFG")
        return not (is_known_node and scope.data.isdisjoint(names)) or any(
            map(inside.depends_on_data, (node.code, *node.mapping.values()))
        )


def _assigned_text(node: Node, connector: str) -> str | None:
    """What a tasklet of one statement assigns to a connector."""
    match node.statements:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)] if name == connector:
            return ast.unparse(value)
    return None


def _writers(sdfg: Sdfg) -> dict[str, list[_Writer]]:
    """The edges that write to each container."""
    found: dict[str, list[_Writer]] = {}
    for each in states_in(sdfg):
        state = Dataflow(each, sdfg.containers)
        for node in state.nodes.values():
            for edge in state.into[node.id] if node.container else ():
                found.setdefault(node.container, []).append(_Writer(state, edge))
    return found


def value_in(name: str, text: str, scope: Scope, sdfg: Sdfg) -> Typed | None:
    """The value of an expression in a symbol of an SDFG, if it is known."""
    found = scope.typed(text)
    return found.stored(sdfg.symbols[name]) if found is not None and name in sdfg.symbols else found


def _with_values(sdfg: Sdfg, scope: Scope, assigned: dict[str, set[str]], scalars: dict[str, list[_Writer]]) -> Scope:
    writers = {name: each[0] for name, each in scalars.items() if len(each) == 1}
    while True:
        left = {name: texts for name, texts in assigned.items() if name not in scope.symbols}
        values = {name: {value_in(name, text, scope, sdfg) for text in texts} for name, texts in left.items()}
        found = {name: next(iter(each)) for name, each in values.items() if len(each) == 1}
        found |= {name: writer.value(scope) for name, writer in writers.items() if name not in scope.symbols}
        known = {name: each for name, each in found.items() if each is not None}
        if not known:
            return scope
        scope = scope.knowing(known)


def _with_data(sdfg: Sdfg, scope: Scope, assigned: dict[str, set[str]], scalars: dict[str, list[_Writer]]) -> Scope:
    data = scope.data | {name for name, each in sdfg.containers.items() if not each.has_one_element}
    while True:
        here = dataclasses.replace(scope, data=data)
        found = {name for name, texts in assigned.items() if any(map(here.depends_on_data, texts))}
        # A scalar that is written several times may depend on how often.
        found |= {name for name, each in scalars.items() if len(each) > 1 or each[0].depends_on_data(here)}
        if found <= data:
            return here
        data |= found
