"""
Rules 5, 6, 7 and 8 of background 5 (6, 9, 7 and 8 of ADR-18): each transient is written once.

5: decides whether a state that follows the write of a transient, in the order of states and regions, has another
   access node that writes it. Branches exclude each other; a loop does not follow itself.
6: decides whether an access node that reads a transient which its state does not write is a source node, that is,
   has no incoming edge, not even one that only orders.
7: decides whether an access node is written by one edge. This is only recommended.
8: decides whether a state has two access nodes of one transient.

All four are decidable. A scalar that breaks rule 5 or 8 carries a scan, or is private to an iteration: this is advice.
Global memory is left to rule 1, which takes precedence over these: it is info under rule 7, and not looked at under
the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from gtstub.stub.sdfg.flow import reached, successors
from gtstub.stub.sdfg.model import regions_in, states_in
from gtstub.tools.rules.model import Found, Level, Place


def rule_5(place: Place) -> Iterator[Found]:
    written = {
        flow.state: [data for data, nodes in place.transients(flow).items() if any(map(flow.inputs, nodes))]
        for flow in place.states
    }
    for region in regions_in(place.sdfg):
        writes = {
            number: [(data, state.label) for state in states_in(block) for data in written[state]]
            for number, block in region.blocks.items()
        }
        after = successors((edge.src, edge.dst) for edge in region.edges)
        found: dict[tuple[str, str], str] = {}
        for number in region.blocks:
            first = dict(reversed(writes[number]))
            later = [each for other in reached(number, after) if other != number for each in writes[other]]
            for data, label in later:
                if data in first:
                    found.setdefault((data, label), first[data])
        for (data, label), before in found.items():
            yield _level(place, data), label, data, f"it is written again, after state '{before}' has written it"


def rule_6(place: Place) -> Iterator[Found]:
    message = "it is read and not written here, so its access node must have no incoming edge"
    for flow in place.states:
        views = {edge.dst for edge in flow.state.edges if edge.dst_connector == "views"}
        late = {edge.dst for edge in flow.state.edges} - views
        for data, nodes in place.transients(flow).items():
            is_late = any(node.id in late and flow.outputs(node) for node in nodes)
            if is_late and not any(map(flow.inputs, nodes)):
                yield "error", flow.state.label, data, message


def rule_7(place: Place) -> Iterator[Found]:
    for flow in place.states:
        for node in flow.access_nodes:
            if (count := len(flow.inputs(node))) > 1:
                level: Level = "advice" if place.is_transient(node.container) else "info"
                yield level, flow.state.label, node.container, f"its access node is written by {count} edges"


def rule_8(place: Place) -> Iterator[Found]:
    for flow in place.states:
        for data, nodes in place.transients(flow).items():
            if len(nodes) > 1:
                yield _level(place, data), flow.state.label, data, f"it has {len(nodes)} access nodes in this state"


def _level(place: Place, data: str) -> Level:
    return "advice" if place.sdfg.containers[data].kind == "Scalar" else "error"
