"""Walks the control flow of an SDFG in its JSON form, with the conditions under which each state runs."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Collection, Iterator, Mapping

from gtstub.frameworks.dace.bounds import conditions, names, states
from gtstub.frameworks.dace.bounds.access import NAME, OTHER, Access, Conditions, Location, Scope, Unread
from gtstub.frameworks.dace.bounds.dataflow import Json, State, arrays_of, has_offset
from gtstub.signature.dtypes import DType
from gtstub.signature.expressions import Expression, symbol, syntax_tree
from gtstub.signature.facts import Fact
from gtstub.signature.model import INDEX_TYPES

_LEAVING = {"BreakBlock", "ContinueBlock", "ReturnBlock"}


def accesses(
    sdfg: Json, scalars: Mapping[str, DType], *, evaluates_both: bool = False
) -> tuple[list[Access | Unread], tuple[Fact, ...]]:
    """
    The accesses of a whole SDFG to its arguments and temporaries, and the facts in their conditions. `scalars` are its
    scalar arguments. Does the program `evaluates_both` sides of a choice that depends on data?
    """
    arrays = arrays_of(sdfg)
    integers = {name: symbol(name) for name, dtype in scalars.items() if dtype in INDEX_TYPES}
    scope = Scope(integers, {}, evaluates_both=evaluates_both, texts={name: name for name in scalars})
    arguments = {name: each for name, each in arrays.items() if not _is_transient(each) and each["type"] != "Scalar"}
    containers = {name: _whole(name, each, scope) for name, each in arguments.items() if not has_offset(each)}
    found = list(in_sdfg(sdfg, dataclasses.replace(scope, containers=containers)))
    # Nothing is left out: what no reader has found is an access of another form.
    seen = {each.array for each in found if isinstance(each, Access) or not each.is_temporary}
    left = _accessed(sdfg) & arguments.keys() - seen
    facts = tuple(Fact(name, text) for text, name in scope.facts.items())
    return [*found, *(Unread(name, OTHER) for name in sorted(left))], facts


def _accessed(sdfg: Json) -> set[str]:
    """The containers that the states of an SDFG access."""
    found = set()
    for document in names.states_in(sdfg):
        state = State(document, sdfg)
        found |= {state.container(node) for node in state.nodes if state.into[node] or state.out[node]}
    return {name for name in found if name is not None}


def _whole(name: str, descriptor: Json, scope: Scope) -> Location:
    """The location of an argument or a temporary in itself."""
    strides = descriptor["attributes"].get("strides", ("1",))
    rank = len(strides)
    return Location(name, (Expression(),) * rank, tuple(range(rank)), tuple(map(scope.value, strides)))


def in_sdfg(sdfg: Json, scope: Scope) -> Iterator[Access | Unread]:
    """The accesses of an SDFG, possibly a nested one, whose arguments `scope` already contains."""
    if _leaves(sdfg):
        scope = scope.in_doubt(OTHER)
    scope = names.enter(sdfg, scope)
    temporaries = dict(scope.containers)
    for name, descriptor in arrays_of(sdfg).items():
        if _is_transient(descriptor) and descriptor["type"] in ("Array", "Scalar") and not has_offset(descriptor):
            sizes = tuple(scope.value(size) for size in descriptor["attributes"].get("shape", ("1",)))
            own = _whole(f"{name}#{next(scope.counter)}", descriptor, scope)
            temporaries[name] = dataclasses.replace(own, sizes=sizes)
    yield from _in_region(sdfg, dataclasses.replace(scope, containers=temporaries), sdfg)


def _is_transient(descriptor: Json) -> bool:
    return bool(descriptor["attributes"].get("transient"))


def _leaves(region: Json) -> bool:
    """Whether blocks that leave a loop or the program are anywhere in an SDFG, so that any block may be skipped."""
    return any(each["type"] in _LEAVING for each in names.regions_in(region))


def _in_region(region: Json, scope: Scope, sdfg: Json) -> Iterator[Access | Unread]:
    reached = _reached(region, scope)
    for block in names.blocks_of(region):
        found = reached[int(block["id"])]
        yield from _in_block(block, scope.in_doubt(OTHER) if found is None else scope.when(found), sdfg)
    for edge in names.edges_of(region):
        data = edge["attributes"]["data"]["attributes"]
        found = reached[int(edge["src"])]
        here = scope.in_doubt(OTHER) if found is None else scope.when(found)
        yield from _in_text(_condition(data), here)
        true, _ = conditions.choice(_condition(data), scope, next(scope.counter))
        for text in data.get("assignments", {}).values():
            yield from _in_text(str(text), here.when(true))


def _in_text(text: str, scope: Scope) -> Iterator[Access | Unread]:
    """The elements of containers that a condition or an assignment reads."""
    tree = syntax_tree(text)
    unit = scope.as_unit()
    inner: set[str] = set()
    for node in ast.walk(tree) if tree is not None else ():
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                inner.add(name)
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                texts = tuple(ast.unparse(each) for each in parts)
                yield from unit.access(name, tuple((each, each) for each in texts), is_write=False)
    for name in sorted(unit.containers.keys() & set(NAME.findall(text)) - inner):
        yield from unit.access(name, (("0", "0"),) * len(unit.containers[name].axes), is_write=False)


def _in_block(block: Json, scope: Scope, sdfg: Json) -> Iterator[Access | Unread]:
    match block["type"]:
        case "SDFGState":
            yield from states.accesses(block, scope, sdfg, in_sdfg)
        case "ControlFlowRegion":
            yield from _in_region(block, scope, sdfg)
        case "ConditionalBlock":
            for condition, branch in block["branches"]:
                text = condition["string_data"] if condition else "True"
                yield from _in_text(text, scope)
                true, false = conditions.choice(text, scope, next(scope.counter))
                yield from _in_region(branch, scope.when(true), sdfg)
                scope = scope.when(false) if condition else scope
        case "LoopRegion":
            attributes = block["attributes"]
            for each in _LOOP:
                yield from _in_text((attributes.get(each) or {}).get("string_data", ""), scope)
            yield from _in_region(block, _in_loop(block, scope), sdfg)
        case _:
            yield from _in_region(block, scope.in_doubt(OTHER), sdfg)


def _in_loop(loop: Json, scope: Scope) -> Scope:
    attributes = loop["attributes"]
    variable = attributes.get("loop_variable") or ""
    init, condition, update = ((attributes.get(name) or {}).get("string_data", "") for name in _LOOP)
    ends = conditions.loop(init, condition, update, variable, scope)
    inside = dataclasses.replace(scope, data=scope.data | {variable})
    if ends is None or variable in names.assignments_in(loop) or attributes.get("inverted"):
        return inside.inside({variable: (None, None)})
    return inside.inside({variable: ends})


_LOOP = ("init_statement", "loop_condition", "update_statement")


def _reached(region: Json, scope: Scope) -> dict[int, Conditions | None]:
    """
    For each block the conditions under which it runs, once: those of the last block before it that is on all paths to
    it if each path on from there has the block, or those and that of the edge from there if no other leads to the
    block. Not known in other cases and if there are cycles.
    """
    blocks = [int(block["id"]) for block in names.blocks_of(region)]
    edges = [
        (int(each["src"]), int(each["dst"]), each["attributes"]["data"]["attributes"])
        for each in names.edges_of(region)
    ]
    into = {block: [(src, data) for src, dst, data in edges if dst == block] for block in blocks}
    out = {block: {dst for src, dst, _ in edges if src == block} for block in blocks}
    starts = [block for block in blocks if not into[block]]
    ends = {block for block in blocks if not _goes_on([data for src, _, data in edges if src == block])}
    order = _in_order(blocks, out)
    if len(starts) != 1 or order is None:
        return dict.fromkeys(blocks)
    choices: dict[tuple[int, str], tuple[Conditions, Conditions]] = {}
    found: dict[int, Conditions | None] = {starts[0]: ()}
    dominators = _dominators(order, {block: [src for src, _ in edges] for block, edges in into.items()})
    for block in order[1:]:
        before = found[dominators[block]]
        if before is None or _is_on_all_paths(block, dominators[block], out, ends):
            found[block] = before
        elif len(into[block]) == 1:
            ((source, data),) = into[block]
            text, is_negated = _without_not(_condition(data))
            if (source, text) not in choices:
                choices[source, text] = conditions.choice(text, scope, next(scope.counter))
            found[block] = (*before, *choices[source, text][is_negated])
        else:
            found[block] = None
    return found


def _dominators(order: list[int], before: Mapping[int, list[int]]) -> dict[int, int]:
    """For each block but the first the last block before it that is on all paths to it."""
    found: dict[int, int] = {}
    place = {block: number for number, block in enumerate(order)}
    for block in order[1:]:
        common = before[block][0]
        for other in before[block][1:]:
            while common != other:
                if place[common] > place[other]:
                    common = found[common]
                else:
                    other = found[other]
        found[block] = common
    return found


def _without_not(text: str) -> tuple[str, bool]:
    """A condition without 'not', and whether it had one: both edges out of a block then have the same text."""
    match syntax_tree(text):
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ast.unparse(operand), True
        case None:
            return text, False
        case tree:
            return ast.unparse(tree), False


def _condition(edge: Json) -> str:
    condition = edge.get("condition")
    return condition["string_data"] if condition else "True"


def _goes_on(edges: list[Json]) -> bool:
    """Whether the condition of one of these edges always holds; else a region may end where they begin."""
    texts = [_condition(each) for each in edges]
    return any(conditions.is_true(text) for text in texts) or (
        len(texts) == 2 and (conditions.are_opposite(*texts) or conditions.are_opposite(*reversed(texts)))
    )


def _in_order(blocks: list[int], out: Mapping[int, set[int]]) -> list[int] | None:
    """The blocks, each after those before it; None if there is a cycle."""
    left = {block: sum(block in others for others in out.values()) for block in blocks}
    order: list[int] = []
    while ready := [block for block, count in left.items() if count == 0]:
        for block in ready:
            del left[block]
            order.append(block)
            for other in out[block]:
                left[other] -= 1
    return None if left else order


def _is_on_all_paths(block: int, start: int, out: Mapping[int, set[int]], ends: Collection[int]) -> bool:
    """Whether none of the `ends` can be reached from the start without this block."""
    seen, todo = {block}, [start]
    while todo:
        if (each := todo.pop()) in seen:
            continue
        if each in ends:
            return False
        seen.add(each)
        todo.extend(out[each])
    return True
