"""Where the code of an SDFG runs: its states, branches, loops and maps, as far as they decide about memory."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from gtstub.analysis.branches import condition, structured

Json = Mapping[str, Any]

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
class State:
    """
    A state: the data of its access nodes and its nested SDFGs, each with its place, which may be a map, and the
    parameters of its maps.
    """

    place: Place
    accesses: tuple[tuple[str, Place], ...]
    nested: tuple[tuple[Json, Place], ...]
    params: frozenset[str]


@dataclasses.dataclass(frozen=True)
class Flow:
    """
    The control flow of one SDFG.

    states:      in the order of DaCe
    names:       those in conditions and on the edges between states
    assignments: what the edges between states assign to each symbol
    variables:   of loops
    """

    states: tuple[State, ...]
    names: frozenset[str]
    assignments: Mapping[str, tuple[str, ...]]
    variables: frozenset[str]


def flow(sdfg: Json, place: Place) -> Flow:
    """The control flow of an SDFG that runs in `place`."""
    states: list[State] = []
    texts: list[str] = []
    assignments: dict[str, list[str]] = {}
    variables: set[str] = set()

    def visit(region: Json, place: Place) -> None:
        for edge in region.get("edges", []):
            attributes = edge["attributes"]["data"]["attributes"]
            texts.append(condition(attributes.get("condition")))
            for name, value in (attributes.get("assignments") or {}).items():
                assignments.setdefault(name, []).append(str(value))
                texts.append(str(value))
        for step, block in _steps(region):
            inner = place.at(step)
            match block["type"]:
                case "SDFGState":
                    states.append(_state(block, inner))
                case "ConditionalBlock":
                    for which, (code, branch) in enumerate(block["branches"]):
                        text = condition(code)
                        texts.append(text)
                        word = f"{'elif' if which else 'if'} {text}" if text else "else"
                        visit(branch, inner.at(("or", which), branch=f"{block['label']}: {word}"))
                case "LoopRegion":
                    loop = block["attributes"]
                    texts.extend(condition(loop.get(name)) for name in _CODE_OF_LOOPS)
                    variables.add(loop.get("loop_variable") or "")
                    visit(block, place.at(step, repeat=f"loop {block['label']}"))
                case _ if "nodes" in block:
                    visit(block, inner)

    visit(sdfg, place)
    return Flow(
        tuple(states),
        frozenset(_identifiers(texts)),
        {name: tuple(values) for name, values in assignments.items()},
        frozenset(filter(None, variables)),
    )


def _steps(region: Json) -> Sequence[tuple[Step, Json]]:
    """The blocks of a region in the order in which DaCe visits them: that of its nodes."""
    blocks = structured(region)
    if blocks is None:
        return [(("any", number), block) for number, block in enumerate(region["nodes"])]
    visited = {id(block): number for number, block in enumerate(region["nodes"])}
    steps: list[tuple[Step, Json]] = [(("then", number), block) for number, block in enumerate(blocks)]
    return sorted(steps, key=lambda each: visited.get(id(each[1]), len(visited)))


_CODE_OF_LOOPS = ("init_statement", "loop_condition", "update_statement")


def _identifiers(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from re.findall(r"[A-Za-z_]\w*", text)


def _state(state: Json, place: Place) -> State:
    nodes: dict[str, Json] = {str(node["id"]): node for node in state["nodes"]}
    maps: dict[str, Place] = {}
    params: list[str] = []

    def around(node: Json) -> Place:
        """The map around a node, or else the state."""
        entry = node.get("scope_entry")
        if entry is None:
            return place
        if entry not in maps:
            outer, attributes = around(nodes[entry]), nodes[entry]["attributes"]
            own = attributes.get("params") or [attributes.get("pe_index", "")]
            params.extend(own)
            maps[entry] = outer.at(
                ("any", int(entry)),
                repeat=f"map {attributes['label']}[{', '.join(own)}]",
                schedule=_schedule(attributes.get("schedule") or "Default", outer.schedules),
            )
        return maps[entry]

    accesses: list[tuple[str, Place]] = []
    nested: list[tuple[Json, Place]] = []
    for node in state["nodes"]:
        inside = around(node)
        if node["type"] == "AccessNode":
            accesses.append((node["attributes"]["data"].partition(".")[0], inside))
        elif node["type"] == "NestedSDFG" and node["attributes"].get("sdfg"):
            nested.append((node, inside.at(("any", int(node["id"])))))
    return State(place, tuple(accesses), tuple(nested), frozenset(params))


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
