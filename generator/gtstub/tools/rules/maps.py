"""
Rules 9, 10 and 11 of background 5 (11 and 12 of ADR-18): maps and the names of their variables. Rule 10 of ADR-18,
which background 5 does not have: memory inside of maps.

9:  decides whether each map variable is spelled as gt4py spells it, i_<dimension>_gtx_<kind>, where the kind is
    horizontal, vertical or localdim, and whether a dimension has one kind. Two underscores before "gtx", as in the
    documents, and a prefix, as of blocked loops, are allowed. Inside of a map this is advice: gt4py's own library
    nodes have maps over "i" there. With the signature of the program (11.1) it decides whether the dimension is one of
    the program's, of this kind, and whether the variable indexes only axes of that dimension in the arrays of the
    program. Cannot decide this for transients, whose axes have no names.
10: finds maps of a state with the same variables and ranges. They may be merged: the rule is a permission.
11: decides from an SDFG and the one before it whether variables have new names (11.5). This is unknown if a name that
    is gone was not spelled so, because such a variable may be renamed. If no map has a name any more, its maps were
    removed, or merged with others: this is not decidable. SDFGs that are nested in a map do not count, because the
    maps of library nodes appear there.

10 of ADR-18: decides whether a transient that an access node inside a map refers to has the lifetime Scope, and the
storage Default or Register. This includes the transients of SDFGs that are nested in a map. Global memory is left to
rule 1, which takes precedence. Other arrays of nested SDFGs, and views, are memory from outside under another name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gtstub.stub.sdfg.dataflow import Dataflow
from gtstub.stub.sdfg.model import Node, Sdfg, words_in
from gtstub.stub.signature.model import Dimension, ProgramSignature
from gtstub.stub.signature.roles import MAP_VARIABLE, dims_of_arrays
from gtstub.tools.rules.model import Found, Level, Place, places


def _entries(flow: Dataflow) -> list[Node]:
    return [node for node in flow.nodes.values() if node.kind == "MapEntry"]


def _variables(place: Place) -> Mapping[str, str]:
    """The variables of maps in the order of their names, each with the label of the first state that has it."""
    labels = ((name, flow.state.label) for flow in place.states for node in _entries(flow) for name in node.variables)
    return dict(sorted(dict(reversed([*labels])).items()))


def rule_9(place: Place) -> Iterator[Found]:
    variables = _variables(place)
    by_dimension: dict[str, dict[str, str]] = {}
    for name, label in variables.items():
        if (match := MAP_VARIABLE.search(name)) is not None:
            by_dimension.setdefault(match["dimension"], {})[name] = match["kind"]
        else:
            message = "this variable of a map is not spelled i_<dimension>_gtx_<horizontal, vertical or localdim>"
            yield "advice" if place.is_in_map else "error", label, name, message
    for dimension, kinds in by_dimension.items():
        if len({*kinds.values()}) > 1:
            name, other = [*kinds][:2]
            yield "error", variables[name], name, f"the dimension '{dimension}' is also iterated over as {other}"


def rule_9_dimensions(place: Place, program: ProgramSignature) -> Iterator[Found]:
    fields = dict(dims_of_arrays(program))
    every = [*(axis for axes in fields.values() for axis in axes), *(each.codomain for each in program.connectivities)]
    kinds = {_base(each.name): _kind(each) for each in every}
    for name, label in _variables(place).items():
        match = MAP_VARIABLE.search(name)
        if match is not None and (kind := kinds.get(_base(match["dimension"]))) != match["kind"]:
            dimension = match["dimension"]
            message = f"the dimension '{dimension}' of the program is {kind}"
            yield "error", label, name, f"the program has no dimension '{dimension}'" if kind is None else message
    found: dict[tuple[str, str], Found] = {}
    for flow in () if place.path else place.states:
        spelled = {name: MAP_VARIABLE.search(name) for node in _entries(flow) for name in node.variables}
        for data, axis, name in _indexed(flow, fields):
            if (match := spelled.get(name)) is not None:
                dimension = _base(match["dimension"])
                if match["kind"] != _kind(axis) or (dimension in kinds and dimension != _base(axis.name)):
                    message = f"this variable of a map indexes the axis '{axis.name}' of '{data}'"
                    found.setdefault((name, data), ("error", flow.state.label, name, message))
    yield from (found[each] for each in sorted(found))


def _indexed(flow: Dataflow, fields: Mapping[str, Sequence[Dimension]]) -> Iterator[tuple[str, Dimension, str]]:
    """Fields that a state accesses, each with an axis and a name that indexes it."""
    for node in flow.access_nodes:
        axes = fields.get(node.container, ())
        reads = (flow.read(inner) for edge in flow.outputs(node) for inner, _ in flow.inner(edge))
        writes = (flow.write(inner) for edge in flow.inputs(node) for inner, _ in flow.inner(edge))
        for subset in (*reads, *writes) if axes else ():
            if subset is not None and len(subset.ranges) == len(axes):
                for axis, each in zip(axes, subset.ranges, strict=True):
                    yield from ((node.container, axis, name) for name in words_in(each.start, each.end, each.step))


def _base(dimension: str) -> str:
    """gt4py lets variables of a dimension index the axes of its staggered counterpart."""
    return dimension.removeprefix("_Staggered")


def _kind(dimension: Dimension) -> str:
    return "localdim" if dimension.kind == "local" else dimension.kind


def rule_10(place: Place) -> Iterator[Found]:
    for flow in place.states:
        equal: dict[tuple[object, ...], list[Node]] = {}
        for node in _entries(flow):
            ranges = frozenset(zip(node.variables, node.ranges.ranges, strict=True))
            equal.setdefault((node.entry, ranges), []).append(node)
        for first, *others in equal.values():
            if others:
                message = f"{1 + len(others)} maps have these variables and ranges, and may be merged"
                yield "info", flow.state.label, first.text, message


def _outer_variables(sdfg: Sdfg) -> set[str]:
    return {name for place in places(sdfg) if not place.is_in_map for name in _variables(place)}


def rule_11_new(place: Place, before: Sdfg) -> Iterator[Found]:
    now, then = _outer_variables(place.sdfg), _outer_variables(before)
    for name in () if place.path else now - then:
        if not name.startswith("__gtx_coarse_"):
            level: Level = "error" if all(map(MAP_VARIABLE.search, then - now)) else "unknown"
            yield level, "", name, "no map had a variable of this name before"


def rule_11_gone(place: Place, before: Sdfg) -> Iterator[Found]:
    for name in () if place.path else _outer_variables(before) - _outer_variables(place.sdfg):
        yield "unknown", "", name, "no map has this variable any more: its maps were removed, or merged with others"


def rule_adr_10(place: Place) -> Iterator[Found]:
    for flow in place.states:
        for data, nodes in place.transients(flow).items():
            it = place.sdfg.containers[data]
            is_inside = place.is_in_map or any(node.entry is not None for node in nodes)
            is_local = it.lifetime == "Scope" and it.storage in ("Default", "Register")
            if is_inside and not is_local and not it.is_view:
                message = f"it is used inside a map, but has the lifetime {it.lifetime} and the storage {it.storage}"
                yield "error", flow.state.label, data, message
