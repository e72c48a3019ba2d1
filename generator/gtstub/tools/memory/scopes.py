"""Where the code of an SDFG runs: its states, branches, loops and maps, as far as they decide about memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from gtstub.stub.sdfg.flow import Steps, flow
from gtstub.stub.sdfg.model import (
    Block,
    Conditional,
    Loop,
    Node,
    Region,
    Sdfg,
    State,
    assigned_in,
    code_in,
    regions_in,
    words_in,
)

Step = tuple[Literal["then", "or", "any"], int]
"""
One of the parts of a block, by its index: parts that run one after the other, of which at most one runs, or that run in
any order.
"""

Path = tuple[Step, ...]
"""The way from the outermost SDFG to a block."""


@dataclasses.dataclass(frozen=True)
class Place:
    """
    A part of the code: an SDFG, a state, a branch, a loop or a map.

    path:      where it is
    branch:    the conditions on the way to it, as text
    repeats:   the loops and maps around it, as text, outermost first
    schedules: those of the maps around it, outermost first
    outer:     the part around it
    """

    path: Path = ()
    branch: str = ""
    repeats: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    outer: Place | None = None

    def at(self, step: Step, *, branch: str = "", repeat: str = "", schedule: str = "") -> Place:
        """A part of this place."""
        return Place(
            path=(*self.path, step),
            branch=" / ".join(filter(None, (self.branch, branch))),
            repeats=(*self.repeats, *([repeat] if repeat else [])),
            schedules=(*self.schedules, *([schedule] if schedule else [])),
            outer=self,
        )

    @property
    def on_the_host(self) -> Place:
        """The innermost part around this one that is not in a map on a GPU."""
        place = self
        while place.outer is not None and any(schedule.startswith("GPU_") for schedule in place.schedules):
            place = place.outer
        return place


def common(places: Sequence[Place]) -> Place:
    """The innermost part that contains all of at least one place."""
    found, *others = places
    while found.outer is not None and any(other.path[: len(found.path)] != found.path for other in others):
        found = found.outer
    return found


@dataclasses.dataclass(frozen=True)
class PlacedState:
    """
    A state: the data of its access nodes and its nested SDFGs, each with its place, which may be a map, and the
    variables of its maps.
    """

    place: Place
    accesses: tuple[tuple[str, Place], ...]
    nested: tuple[tuple[Node, Place], ...]
    variables: frozenset[str]


@dataclasses.dataclass(frozen=True)
class Code:
    """
    The control flow of one SDFG.

    states:      in the order of DaCe
    names:       those in conditions and on the edges between states
    assignments: what the edges between states assign to each symbol
    variables:   of loops
    """

    states: tuple[PlacedState, ...]
    names: frozenset[str]
    assignments: Mapping[str, set[str]]
    variables: frozenset[str]


def code_of(sdfg: Sdfg, place: Place) -> Code:
    """The control flow of an SDFG that runs in `place`."""
    return Code(
        tuple(_states(_steps(sdfg), place)),
        frozenset(words_in(*(text for region in regions_in(sdfg) for _, text in code_in(region)))),
        assigned_in(sdfg),
        frozenset(each.variable for each in regions_in(sdfg) if isinstance(each, Loop) and each.variable),
    )


def _states(steps: Iterable[tuple[Step, Block]], place: Place) -> Iterator[PlacedState]:
    for step, block in steps:
        match block:
            case State():
                yield _state(block, place.at(step))
            case Conditional():
                for number, branch in enumerate(block.branches):
                    word = f"{'elif' if number else 'if'} {branch.condition}" if branch.condition else "else"
                    inner = place.at(step).at(("or", number), branch=f"{block.label}: {word}")
                    yield from _states(_in_turn(branch.body), inner)
            case Loop():
                yield from _states(_steps(block), place.at(step, repeat=f"loop {block.label}"))
            case Region():
                yield from _states(_steps(block), place.at(step))


def _steps(region: Region) -> Sequence[tuple[Step, Block]]:
    """The blocks of a region in the order in which DaCe visits them: that of the document."""
    found = flow(region)
    if found.others:
        return [(("any", number), block) for number, block in enumerate(region.blocks.values())]
    visited = {block: number for number, block in enumerate(region.blocks.values())}
    return sorted(_in_turn(found.steps), key=lambda each: visited.get(each[1], len(visited)))


def _in_turn(steps: Steps) -> list[tuple[Step, Block]]:
    blocks = (each for each in steps if isinstance(each, Block))
    return [(("then", number), block) for number, block in enumerate(blocks)]


def _state(state: State, place: Place) -> PlacedState:
    maps: dict[int, Place] = {}

    def around(node: Node) -> Place:
        """The map around a node, or else the state."""
        if node.entry is None:
            return place
        if node.entry not in maps:
            entry = state.nodes[node.entry]
            outer = around(entry)
            maps[node.entry] = outer.at(
                ("any", node.entry),
                repeat=f"map {entry.label}[{', '.join(entry.variables)}]",
                schedule=_schedule(entry.schedule, outer.schedules),
            )
        return maps[node.entry]

    accesses: list[tuple[str, Place]] = []
    nested: list[tuple[Node, Place]] = []
    for node in state.nodes.values():
        inside = around(node)
        if node.container:
            accesses.append((node.container.partition(".")[0], inside))
        elif node.sdfg is not None:
            nested.append((node, inside.at(("any", node.id))))
    variables = frozenset(name for number in maps for name in state.nodes[number].variables)
    return PlacedState(place, tuple(accesses), tuple(nested), variables)


def _schedule(schedule: str, outer: Sequence[str]) -> str:
    """A schedule, or what DaCe chooses for 'Default' inside other schedules."""
    if schedule != "Default":
        return schedule
    return _INNER_SCHEDULES.get(outer[-1], "Sequential") if outer else "CPU_Multicore"


_INNER_SCHEDULES = {
    "MPI": "CPU_Multicore",
    "GPU_Persistent": "GPU_Device",
    "GPU_Device": "GPU_ThreadBlock",
}
