"""Walks the control flow of an SDFG, with the conditions under which each state runs."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gtstub.stub.bounds import conditions, names, states
from gtstub.stub.bounds.access import OTHER, Access, Allocation, Location, Scope, Unread
from gtstub.stub.bounds.wrapping import SIGNED
from gtstub.stub.sdfg.dataflow import Dataflow
from gtstub.stub.sdfg.flow import flow
from gtstub.stub.sdfg.model import (
    Block,
    Conditional,
    Container,
    Loop,
    Range,
    Region,
    Sdfg,
    State,
    Subset,
    Transition,
    blocks_in,
    states_in,
    words_in,
)
from gtstub.stub.signature.dtypes import DType
from gtstub.stub.signature.expressions import Expression, symbol, syntax_tree
from gtstub.stub.signature.facts import Fact
from gtstub.stub.signature.model import INDEX_TYPES

_LEAVING = {"BreakBlock", "ContinueBlock", "ReturnBlock"}


@dataclasses.dataclass(frozen=True)
class Found:
    """The accesses to arguments and temporaries, the temporaries that are allocated, and the facts in conditions."""

    accesses: Sequence[Access | Unread]
    allocations: Sequence[Allocation]
    facts: tuple[Fact, ...]


def accesses(sdfg: Sdfg, scalars: Mapping[str, DType], *, evaluates_both: bool = False) -> Found:
    """
    What a whole SDFG accesses and allocates. `scalars` are its scalar arguments. `evaluates_both` says whether the
    program evaluates both sides of a choice that depends on data.
    """
    integers = {name: symbol(name) for name, dtype in scalars.items() if dtype in INDEX_TYPES}
    texts = {name: name for name in scalars}
    scope = Scope(integers, {}, evaluates_both=evaluates_both, texts=texts, types=scalars)
    arguments = {
        name: each for name, each in sdfg.containers.items() if not each.is_transient and each.kind != "Scalar"
    }
    containers = {name: _whole(name, each, scope) for name, each in arguments.items() if not each.has_offset}
    found = list(in_sdfg(sdfg, dataclasses.replace(scope, containers=containers)))
    # Nothing is left out: what no reader has found is an access of another form.
    seen = {each.array for each in found if isinstance(each, Access) or not each.is_temporary}
    left = _accessed(sdfg) & arguments.keys() - seen
    facts = tuple(Fact(name, text) for text, name in scope.facts.items())
    return Found([*found, *(Unread(name, OTHER) for name in sorted(left))], scope.allocations, facts)


def _accessed(sdfg: Sdfg) -> set[str]:
    """The containers that the states of an SDFG access."""
    found = set()
    for each in states_in(sdfg):
        state = Dataflow(each, sdfg.containers)
        found |= {node.container for node in state.nodes.values() if state.into[node.id] or state.out[node.id]}
    return found - {""}


def _whole(name: str, container: Container, scope: Scope) -> Location:
    """The location of an argument or a temporary in itself."""
    rank = len(container.strides)
    strides = tuple(map(scope.value, container.strides))
    return Location(name, (Expression(),) * rank, tuple(range(rank)), (1,) * rank, strides)


def in_sdfg(sdfg: Sdfg, scope: Scope) -> Iterator[Access | Unread]:
    """The accesses of an SDFG, possibly a nested one, whose arguments `scope` already contains."""
    if any(each.kind in _LEAVING for each in blocks_in(sdfg)):  # Then any block may be skipped.
        scope = scope.in_doubt(OTHER)
    scope = names.enter(sdfg, scope)
    temporaries = dict(scope.containers)
    for name, container in sdfg.containers.items():
        if container.is_transient and container.kind in ("Array", "Scalar") and not container.has_offset:
            sizes = tuple(map(scope.value, container.shape))
            own = _whole(f"{name}#{next(scope.counter)}", container, scope)
            is_local = scope.is_multicore and container.storage == "Default"
            temporaries[name] = dataclasses.replace(own, sizes=sizes, is_local=is_local)
    yield from _in_region(sdfg, dataclasses.replace(scope, containers=temporaries), sdfg)


def _in_region(region: Region, scope: Scope, sdfg: Sdfg) -> Iterator[Access | Unread]:
    found = flow(region)
    yield from _in_steps(found.steps, scope, sdfg)
    doubt = scope.in_doubt(OTHER)
    yield from _in_steps(found.others, doubt, sdfg)
    for edge in found.others:
        if isinstance(edge, Transition):
            yield from _in_text(edge.condition or "", doubt)


def _in_steps(steps: Iterable[Block | Transition], scope: Scope, sdfg: Sdfg) -> Iterator[Access | Unread]:
    for step in steps:
        match step:
            case Transition():
                for text in step.assignments.values():
                    yield from _in_text(text, scope)
                scope = names.behind(step, scope, sdfg)
            case State():
                yield from states.accesses(step, scope, sdfg, in_sdfg)
            case Conditional():
                yield from _in_branches(step, scope, sdfg)
            case Loop():
                for text in step.texts:
                    yield from _in_text(text, scope)
                yield from _in_region(step, _in_loop(step, scope, sdfg), sdfg)
            case Region(kind="ControlFlowRegion"):
                yield from _in_region(step, scope, sdfg)
            case Region():
                yield from _in_region(step, scope.in_doubt(OTHER), sdfg)


def _in_branches(block: Conditional, scope: Scope, sdfg: Sdfg) -> Iterator[Access | Unread]:
    for branch in block.branches:
        if branch.condition is None:
            yield from _in_steps(branch.body, scope, sdfg)
            return
        yield from _in_text(branch.condition, scope)
        true, false = conditions.choice(branch.condition, scope, next(scope.counter))
        yield from _in_steps(branch.body, scope.when(true), sdfg)
        scope = scope.when(false)


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
                point = Subset(tuple(Range(each, each) for each in map(ast.unparse, parts)))
                yield unit.access(name, point, is_write=False)
    for name in sorted(unit.containers.keys() & set(words_in(text)) - inner):
        first = Subset((Range("0", "0"),) * len(unit.containers[name].axes))
        yield unit.access(name, first, is_write=False)


def _in_loop(loop: Loop, scope: Scope, sdfg: Sdfg) -> Scope:
    """The scope in all rounds of a loop."""
    dtype = sdfg.symbols.get(loop.variable, SIGNED)
    found = conditions.loop(loop.init, loop.condition or "", loop.update, loop.variable, scope, dtype)
    inside = dataclasses.replace(scope, data=scope.data | {loop.variable})
    if found is None or loop.variable in names.assignments_in(loop) or loop.is_inverted:
        return inside.inside({loop.variable: (None, None, 1, SIGNED)})
    return inside.inside({loop.variable: found})
