"""What a rule is given, and what it finds."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from gtstub.stub.sdfg.dataflow import Dataflow
from gtstub.stub.sdfg.model import Node, Sdfg, State, nested_in, regions_in

Level = Literal["error", "advice", "unknown", "info"]
LEVELS: tuple[Level, ...] = ("error", "advice", "unknown", "info")
"""
error: a rule that must hold for an array is broken, or there is a race. advice: a recommendation, or a scalar.
unknown: the SDFG does not tell whether the rule is broken. info: allowed, and worth knowing.
"""

Found = tuple[Level, str, str, str]
"""Of a finding: its level, the label of the state in its SDFG, the data, and the message."""


@dataclasses.dataclass(frozen=True, eq=False)
class Place:
    """An SDFG at any depth. `path` has the labels of what it is nested in, 'state/nested/'; the outermost has none."""

    sdfg: Sdfg
    path: str = ""
    is_in_map: bool = False

    @functools.cached_property
    def states(self) -> Sequence[Dataflow]:
        """Its states; those of a region come before those of the regions in it."""
        blocks = (block for region in regions_in(self.sdfg) for block in region.blocks.values())
        return [Dataflow(block, self.sdfg.containers) for block in blocks if isinstance(block, State)]

    def is_transient(self, data: str) -> bool:
        return data in self.sdfg.containers and self.sdfg.containers[data].is_transient

    def transients(self, flow: Dataflow) -> Mapping[str, Sequence[Node]]:
        """The access nodes of each transient in a state."""
        found: dict[str, list[Node]] = {}
        for node in flow.access_nodes:
            if self.is_transient(node.container):
                found.setdefault(node.container, []).append(node)
        return found


def places(sdfg: Sdfg, path: str = "", *, is_in_map: bool = False) -> Iterator[Place]:
    """An SDFG, and those that are nested in it."""
    yield Place(sdfg, path, is_in_map)
    for state, node, inner in nested_in(sdfg):
        is_inside = is_in_map or node.entry is not None
        yield from places(inner, f"{path}{state.label}/{node.label}/", is_in_map=is_inside)
