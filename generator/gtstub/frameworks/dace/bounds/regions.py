"""Walks the control flow of an SDFG in its JSON form, with the conditions under which each state runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping

from gtstub.frameworks.dace.bounds import conditions, states
from gtstub.frameworks.dace.bounds.access import OTHER, Access, Json, Location, Scope, Unread, arrays_of, has_offset
from gtstub.frameworks.dace.bounds.conditions import Conditions
from gtstub.signature.expressions import Expression, symbol

_LEAVING = {"BreakBlock", "ContinueBlock", "ReturnBlock"}


def accesses(sdfg: Json, integers: Iterable[str]) -> Iterator[Access | Unread]:
    """The accesses of a whole SDFG to its arguments. `integers` are its scalar arguments that expressions may have."""
    arrays = arrays_of(sdfg)
    scope = Scope({name: symbol(name) for name in integers}, {})
    arguments = {name: each for name, each in arrays.items() if not _is_transient(each)}
    containers = {name: _whole(name, each, scope) for name, each in arguments.items() if not has_offset(each)}
    yield from (Unread(name, OTHER) for name in sorted(arguments.keys() - containers.keys()))
    yield from in_sdfg(sdfg, dataclasses.replace(scope, containers=containers))


def _whole(name: str, descriptor: Json, scope: Scope) -> Location:
    """The location of an argument or a temporary in itself."""
    strides = descriptor["attributes"].get("strides", ("1",))
    rank = len(strides)
    return Location(name, (Expression(),) * rank, tuple(range(rank)), tuple(map(scope.value, strides)))


def in_sdfg(sdfg: Json, scope: Scope) -> Iterator[Access | Unread]:
    """The accesses of an SDFG, possibly a nested one, whose arguments `scope` already contains."""
    if _leaves(sdfg):
        scope = scope.when(None)
    scope = scope.without({*arrays_of(sdfg), *_assigned(sdfg)})
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
    return any(block["type"] in _LEAVING or _leaves(block) for block in _blocks(region))


def _assigned(region: Json) -> set[str]:
    """The symbols that edges between the blocks of a region, and the loops in it, assign."""
    own = {name for edge in _edges(region) for name in edge["attributes"]["data"]["attributes"].get("assignments", {})}
    own |= {
        block["attributes"].get("loop_variable") or "" for block in _blocks(region) if block["type"] == "LoopRegion"
    }
    return own.union(*(_assigned(block) for block in _blocks(region)))


def _blocks(region: Json) -> list[Json]:
    match region["type"]:
        case "SDFGState":
            return []
        case "ConditionalBlock":
            return [branch[1] for branch in region["branches"]]
    return list(region.get("nodes", []))


def _edges(region: Json) -> list[Json]:
    return list(region.get("edges", [])) if region["type"] not in ("SDFGState", "ConditionalBlock") else []


def _in_region(region: Json, scope: Scope, sdfg: Json) -> Iterator[Access | Unread]:
    reached = _reached(region, scope)
    for block in _blocks(region):
        yield from _in_block(block, scope.when(reached[int(block["id"])]), sdfg)


def _in_block(block: Json, scope: Scope, sdfg: Json) -> Iterator[Access | Unread]:
    match block["type"]:
        case "SDFGState":
            yield from states.accesses(block, scope, sdfg, in_sdfg)
        case "ControlFlowRegion":
            yield from _in_region(block, scope, sdfg)
        case "ConditionalBlock":
            before: Conditions = ()
            for condition, branch in block["branches"]:
                text = condition["string_data"] if condition else "True"
                own = conditions.read(text, scope)
                yield from _in_region(branch, scope.when(before).when(own), sdfg)
                otherwise = conditions.negated(text, scope)
                before = None if before is None or otherwise is None else (*before, *otherwise)
        case "LoopRegion":
            yield from _in_region(block, _in_loop(block, scope), sdfg)
        case _:
            yield from _in_region(block, scope.when(None), sdfg)


def _in_loop(loop: Json, scope: Scope) -> Scope:
    attributes = loop["attributes"]
    variable = attributes.get("loop_variable") or ""
    init, condition, update = ((attributes.get(name) or {}).get("string_data", "") for name in _LOOP)
    ends = conditions.loop(init, condition, update, variable, scope)
    if ends is None or variable in _assigned(loop) or attributes.get("inverted"):
        return scope.without({variable}).when(None)
    return scope.inside({variable: ends})


_LOOP = ("init_statement", "loop_condition", "update_statement")


def _reached(region: Json, scope: Scope) -> dict[int, Conditions]:
    """
    For each block the conditions under which it runs, once: none if each path through the region has the block, those
    of the edges to it if there is only one path to it. Not known in other cases and if there are cycles.
    """
    blocks = [int(block["id"]) for block in _blocks(region)]
    edges = [(int(edge["src"]), int(edge["dst"]), edge["attributes"]["data"]["attributes"]) for edge in _edges(region)]
    into = {block: [(src, data) for src, dst, data in edges if dst == block] for block in blocks}
    out = {block: {dst for src, dst, _ in edges if src == block} for block in blocks}
    starts = [block for block in blocks if not into[block]]
    ends = {block for block in blocks if not _goes_on([data for src, _, data in edges if src == block])}
    order = _in_order(blocks, out)
    if len(starts) != 1 or order is None:
        return dict.fromkeys(blocks)
    found: dict[int, Conditions] = {}
    for block in order:
        if _is_on_all_paths(block, starts[0], out, ends):
            found[block] = ()
        elif len(into[block]) == 1 and (before := found[into[block][0][0]]) is not None:
            own = conditions.read(_condition(into[block][0][1]), scope)
            found[block] = None if own is None else (*before, *own)
        else:
            found[block] = None
    return found


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
