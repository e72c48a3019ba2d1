"""
What the names in an SDFG stand for: the values of its symbols and scalars in terms of the arguments, and which of them
depend on elements of arrays.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
from collections.abc import Iterator

from gtstub.frameworks.dace.bounds.access import Scope
from gtstub.frameworks.dace.bounds.dataflow import Json, State, arrays_of, subset
from gtstub.signature.expressions import Expression


def enter(sdfg: Json, scope: Scope) -> Scope:
    """
    The scope inside an SDFG, with the values of the symbols that its edges assign and of the scalars that its tasklets
    write. A name has a value if it has the same one in the whole SDFG.
    """
    assigned, writers = assignments_in(sdfg), _writers(sdfg)
    changing = {*assigned, *writers} & {*scope.symbols, *scope.texts}
    scope = scope.without(changing)
    assigned = {name: texts for name, texts in assigned.items() if name not in changing}
    scalars = {name: each for name, each in writers.items() if name not in changing and is_scalar(sdfg, name)}
    return _with_data(sdfg, _with_values(scope, assigned, scalars), assigned, scalars)


def is_scalar(sdfg: Json, name: str) -> bool:
    """Whether a container has one element."""
    shape = arrays_of(sdfg)[name]["attributes"].get("shape") or ("1",)
    return all(str(size) == "1" for size in shape)


def assignments_in(region: Json) -> dict[str, set[str]]:
    """What edges inside a region assign to symbols; the variables of the loops in it get several values."""
    found: collections.defaultdict[str, set[str]] = collections.defaultdict(set)
    for inner in regions_in(region):
        for edge in edges_of(inner):
            for name, text in edge["attributes"]["data"]["attributes"].get("assignments", {}).items():
                found[name].add(str(text))
        if inner is not region and inner["type"] == "LoopRegion":
            found[inner["attributes"].get("loop_variable") or ""] |= {"", "?"}
    return found


@dataclasses.dataclass(frozen=True)
class _Writer:
    """An edge that writes a scalar."""

    state: State
    edge: Json

    def value(self, scope: Scope) -> Expression | None:
        """The value that is written, if it is known."""
        source, state = int(self.edge["src"]), self.state
        if state.kind(source) == "AccessNode":
            return scope.symbols.get(str(state.source(self.edge)))
        if state.kind(source) != "Tasklet":
            return None
        connectors = {}
        for each in state.into[source]:
            name = str(state.source(each))
            part = subset(each, name, None, of_source=True)
            if name in scope.symbols and part is not None and all(first == last for first, last in part):
                connectors[str(each["dst_connector"])] = scope.symbols[name]
        inner = dataclasses.replace(scope, symbols={**scope.symbols, **connectors})
        text = _assigned_text(state.nodes[source]["attributes"].get("code", {}), str(self.edge["src_connector"]))
        return None if text is None else inner.value(text)

    def depends_on_data(self, scope: Scope) -> bool:
        """Whether the value depends on elements of arrays, or on where in a loop it is written."""
        source, state = int(self.edge["src"]), self.state
        if state.kind(source) == "AccessNode":
            return str(state.source(self.edge)) in scope.data
        names = {str(state.source(each)) for each in state.into[source]}
        attributes = state.nodes[source]["attributes"]
        texts = [str(attributes.get("code", {}).get("string_data", ""))]
        texts += map(str, attributes.get("symbol_mapping", {}).values())
        inside = dataclasses.replace(scope, data=scope.data.union(state.parameters(source)))
        is_known_node = state.kind(source) in ("Tasklet", "NestedSDFG")
        return not (is_known_node and scope.data.isdisjoint(names)) or any(map(inside.depends_on_data, texts))


def _assigned_text(code: Json, connector: str) -> str | None:
    """What a tasklet of one statement assigns to a connector."""
    if code.get("language") != "Python":
        return None
    try:
        body = ast.parse(code["string_data"]).body
    except (SyntaxError, ValueError, RecursionError):
        return None
    match body:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)] if name == connector:
            return ast.unparse(value)
    return None


def _writers(sdfg: Json) -> dict[str, list[_Writer]]:
    """The edges that write to each container."""
    found: collections.defaultdict[str, list[_Writer]] = collections.defaultdict(list)
    for document in states_in(sdfg):
        state = State(document, sdfg)
        for node, each in state.nodes.items():
            if each["type"] == "AccessNode":
                found[each["attributes"]["data"]] += (_Writer(state, edge) for edge in state.into[node])
    return {name: each for name, each in found.items() if each}


def _with_values(scope: Scope, assigned: dict[str, set[str]], scalars: dict[str, list[_Writer]]) -> Scope:
    values = dict(scope.symbols)
    is_changed = True
    while is_changed:
        is_changed = False
        here = dataclasses.replace(scope, symbols=values)
        texts = {name: next(iter(each)) for name, each in assigned.items() if len(each) == 1}
        found = {name: here.value(text) for name, text in texts.items() if name not in values}
        writers = {name: each[0] for name, each in scalars.items() if len(each) == 1 and name not in values}
        found |= {name: writer.value(here) for name, writer in writers.items()}
        for name, value in found.items():
            if value is not None:
                values[name] = value
                is_changed = True
    return dataclasses.replace(scope, symbols=values)


def _with_data(sdfg: Json, scope: Scope, assigned: dict[str, set[str]], scalars: dict[str, list[_Writer]]) -> Scope:
    data = scope.data | {name for name in arrays_of(sdfg) if not is_scalar(sdfg, name)}
    while True:
        here = dataclasses.replace(scope, data=data)
        found = {name for name, texts in assigned.items() if any(map(here.depends_on_data, texts))}
        # A scalar that is written several times may depend on how often.
        found |= {name for name, each in scalars.items() if len(each) > 1 or each[0].depends_on_data(here)}
        if found <= data:
            return here
        data |= found


# --- Control flow -----------------------------------------------------------------------------------------------------


def blocks_of(region: Json) -> list[Json]:
    """The blocks of a region, or the branches of a conditional block."""
    match region["type"]:
        case "SDFGState":
            return []
        case "ConditionalBlock":
            return [branch[1] for branch in region["branches"]]
    return list(region.get("nodes", []))


def edges_of(region: Json) -> list[Json]:
    """The edges between the blocks of a region."""
    return list(region.get("edges", [])) if region["type"] not in ("SDFGState", "ConditionalBlock") else []


def regions_in(region: Json) -> Iterator[Json]:
    """A region and all regions and blocks in it, but not those of nested SDFGs."""
    yield region
    for block in blocks_of(region):
        yield from regions_in(block)


def states_in(region: Json) -> Iterator[Json]:
    return (each for each in regions_in(region) if each["type"] == "SDFGState")
