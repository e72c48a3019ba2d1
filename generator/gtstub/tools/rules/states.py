"""
Rules 2, 3 and 4 of background 5 (1, 4 and 5 of ADR-18): the states.

2: decides from an SDFG and the one before it whether the number of states is the same. States of nested SDFGs do not
   count, because optimisation inside of maps may fuse them, nor do those that gt4py adds at last for its metrics.
   Cannot decide it from one SDFG.
3: decides whether interstate edges, and conditions of branches and loops, use scalars and symbols only. It reads the
   names in the code, so that a name in a string literal counts, too.
4: decides whether a cycle of states exists. Loop regions are none.
"""

from __future__ import annotations

from collections.abc import Iterator

from gtstub.stub.sdfg.flow import reached, successors
from gtstub.stub.sdfg.model import Sdfg, code_in, regions_in, states_in, words_in
from gtstub.tools.rules.model import Found, Place


def rule_2(place: Place, before: Sdfg) -> Iterator[Found]:
    now, then = _count(place.sdfg), _count(before)
    if now != then and not place.path:
        yield "error", "", "", f"the number of states was {then} and is {now}"


def _count(sdfg: Sdfg) -> int:
    blocks = (each for each in sdfg.blocks.values() if each.label not in ("metrics_entry", "metrics_exit"))
    return sum(1 for block in blocks for _ in states_in(block))


def rule_3(place: Place) -> Iterator[Found]:
    arrays = {name for name, each in place.sdfg.containers.items() if each.kind != "Scalar"}
    found = {
        (region.label, name, where)
        for region in regions_in(place.sdfg)
        for where, text in code_in(region)
        for name in arrays.intersection(words_in(text))
    }
    for label, name, where in sorted(found):
        yield "error", label, name, f"{where} uses this array, and not a scalar"


def rule_4(place: Place) -> Iterator[Found]:
    for region in regions_in(place.sdfg):
        after = successors((edge.src, edge.dst) for edge in region.edges)
        cycle = [region.blocks[each].label for each in sorted(after, key=str) if each in reached(each, after)]
        if cycle:
            yield "error", cycle[0], "", f"the states {', '.join(cycle)} form a cycle"
