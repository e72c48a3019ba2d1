"""The programs that the judge judges, and how it calls each of them."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Any

import gt4py.next as gtx
import numpy as np
from gt4py.next import common

from tests.support import reaching_programs as reaching
from tests.support import small_programs as small
from tests.support.bounds_judge import Setting
from tests.support.gt4py_programs import SMALL_CASES, Case

Scalars = Mapping[str, Any]

RANGES = {"I": (-6, 9), "K": (-3, 9), "Vertex": (0, 10), "Edge": (0, 12), "V2E": (0, 2), "E2V": (0, 2)}
"""Larger than any domain below, so that arrays can have more than what is used; I and K begin below 0."""


def ring(_: bool = False) -> common.OffsetProvider:
    """Ten vertices and twelve edges; the first vertex lacks a neighbor."""
    v2e = np.array([[i, (i - 1) % 12] for i in range(10)], dtype=np.int32)
    v2e[0, 1] = -1
    e2v = np.array([[i % 10, (i + 1) % 10] for i in range(12)], dtype=np.int32)
    return {
        "V2E": gtx.as_connectivity([small.Vertex, small.V2EDim], small.Edge, v2e, skip_value=-1),
        "E2V": gtx.as_connectivity([small.Edge, small.E2VDim], small.Vertex, e2v),
    }


@dataclasses.dataclass(frozen=True, eq=False)
class Judged:
    """
    A program, and all the values of its scalars with which it is judged. `skips` has the tables in which -1 may stand;
    the others are used without a test for it. `copied` has the arrays that gt4py copies whole before it uses a part.
    """

    case: Case
    scalars: tuple[Scalars, ...]
    skips: frozenset[str] = frozenset()
    copied: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.case.name

    def settings(self) -> Iterator[Setting]:
        for scalars in self.scalars:
            yield Setting(
                self.case.ranges, self.case.own_ranges, {**self.case.values, **scalars}, self.skips, self.copied
            )


def _reaching(
    name: str, scalars: tuple[Scalars, ...], skips: tuple[str, ...] = (), copied: tuple[str, ...] = (), **own: Any
) -> Iterator[Judged]:
    """A program without and with gt4py's optimisation."""
    for is_optimized in (False, True):
        case = Case(
            f"{name}_optimized" if is_optimized else name,
            reaching.__name__,
            name,
            RANGES,
            options={"auto_optimize": is_optimized},
            own_ranges=own,
            values=scalars[0],
            offset_provider=ring,
        )
        yield Judged(case, scalars, frozenset(skips), frozenset(() if is_optimized else copied))


def _ik(i_end: int, k_end: int, **more: int) -> Scalars:
    return {"i_end": i_end, "k_end": k_end, **more}


def _rows(start: int, end: int, k_end: int, **more: int) -> Scalars:
    return {"start": start, "end": end, "k_end": k_end, **more}


_IK = _ik(4, 5)
_ROWS = (_rows(2, 8, 4), _rows(0, 1, 4), _rows(4, 4, 4), _rows(5, 3, 4), _rows(2, 8, 0))
_LEVELS = (_ik(4, 5, k_start=-1), _ik(4, 2, k_start=2), _ik(4, 2, k_start=3))

REACHING = tuple(
    itertools.chain(
        _reaching(
            "offsets",
            (
                _ik(4, 5, i_start=0, k_start=0),
                _ik(-2, 4, i_start=-4, k_start=3),
                _ik(2, 3, i_start=2, k_start=0),
                _ik(1, 3, i_start=3, k_start=0),
            ),
        ),
        _reaching("staggered", ({},), out={"K": (0, 4), "I": (-2, 3)}),
        _reaching("broadcasts", (_IK, _ik(1, 5), _ik(-1, 5))),
        _reaching("smooth_twice", (_ik(4, 5, k_start=0), _ik(0, 5, k_start=0))),
        _reaching("computed_offset", (_IK,)),
        _reaching("masked", (_IK,)),
        _reaching("masked_in_place", (_IK,)),
        _reaching("by_flag", ({"flag": True, **_IK}, {"flag": False, **_IK})),
        _reaching("by_number", tuple({"n": n, "m": m, **_IK} for n, m in ((4, 2), (3, 3), (2, 2)))),
        _reaching(
            "by_two_flags",
            tuple({"first": a, "second": b, **_IK} for a, b in itertools.product((True, False), repeat=2)),
        ),
        _reaching("by_place", tuple({"middle": middle, **_IK} for middle in (-1, 1, 2, 3, 5, 7))),
        _reaching("boundaries", tuple({"last": last, "i_end": 3} for last in (5, 1, 0))),
        _reaching(
            "between",
            tuple({"first": first, "last": last, **_IK} for first, last in ((1, 3), (0, 2), (2, 9), (3, 3), (4, 2))),
        ),
        _reaching(
            "between_shifted",
            tuple(
                {"first": first, "last": last, **_ik(4, k_end)}
                for first, last, k_end in ((1, 3, 5), (0, 2, 5), (4, 6, 1), (7, 9, 6), (3, 3, 5), (-1, 9, 4), (2, 4, 0))
            ),
        ),
        _reaching(
            "outside_shifted",
            tuple(
                {"first": first, "last": last, **_ik(4, k_end)}
                for first, last, k_end in ((1, 3, 5), (2, 2, 5), (4, 2, 5), (7, 8, 5), (-1, 8, 4))
            ),
        ),
        _reaching(
            "corner_shifted",
            tuple(
                {"i_first": i_first, "k_first": k_first, **_ik(i_end, 5)}
                for i_first, k_first, i_end in ((2, 3, 4), (0, 0, 4), (9, 2, 4), (2, 9, 4), (4, 5, 4), (1, 1, 0))
            ),
        ),
        _reaching("framed", ({"i_last": 4, "k_last": 6}, {"i_last": 1, "k_last": 1}, {"i_last": 3, "k_last": 2})),
        _reaching("chosen", (_IK,)),
        _reaching("by_fraction", ({"x": 1.0, **_IK}, {"x": 0.0, **_IK})),
        _reaching("both_ways", _LEVELS),
        _reaching("backward", _LEVELS),
        _reaching("forward_pair", ({"k_end": 5}, {"k_end": 1}, {"k_end": -1})),
        _reaching("two_domains", (_IK, _ik(1, 5))),
        _reaching("slices", ({},), out={"K": (0, 4), "I": (-2, 3)}),
        _reaching("two_steps", (_IK, _ik(4, 2))),
        _reaching("copies", ({"i_start": -3, **_IK}, {"i_start": 5, **_IK}), copied=("a",)),
        _reaching("fills", (_IK,)),
        _reaching("extremes", _ROWS),
        _reaching("neighbor_levels", _ROWS),
        _reaching("second_only", _ROWS),
        _reaching("chain", _ROWS, skips=("V2E",)),
        _reaching("direct_chain", _ROWS),
        _reaching("weighted", _ROWS, skips=("V2E",)),
        _reaching("scan_of_neighbors", _ROWS, skips=("V2E",)),
        _reaching("first_neighbor", _ROWS),
        _reaching("masked_neighbors", ({"end": 8, "k_end": 4},), skips=("V2E",)),
        _reaching("regions", tuple(_rows(2, 8, 4, first=first) for first in (0, 2, 5, 8, 9)), skips=("V2E",)),
    )
)

SMALL = tuple(Judged(case, ({},), frozenset({"V2E"} if "V2E" in case.ranges else ())) for case in SMALL_CASES)

ALL = "GTSTUB_BOUNDS_ALL" in os.environ
"""Whether all programs are judged: `make bounds`. Building them takes minutes."""

DIFFERENT = ("dimensions", "explicit_domain", "static_domains", "zero_origin", "unit_stride", "persistent_memory")
"""Programs of SMALL that differ from those of REACHING."""

CHOSEN = (
    (*SMALL, *REACHING)
    if ALL
    else (
        *(each for each in SMALL if each.name in DIFFERENT),
        *REACHING[0::4],
        *REACHING[3::4],
    )
)
"""Without ALL, each program of REACHING is judged either plain or optimised."""

ENDS: Mapping[str, int] = {
    "nested_tuples": 20,
    "named_collections": 16,
    "scalars": 4,
    "field_dtypes": 40,
    "dimensions": 52,
    "implicit_domain": 16,
    "field_operator": 16,
    "explicit_domain": 24,
    "in_place": 8,
    "scan": 8,
    "vertical_shift": 16,
    "parameters_left_out": 8,
    "static_arguments": 4,
    "static_domains": 12,
    "zero_origin": 8,
    "no_metrics": 16,
    "gather": 17,
    "unit_stride": 13,
    "auto_optimized": 16,
    "persistent_memory": 16,
    "external_workspace": 16,
    "offsets": 48,
    "offsets_optimized": 48,
    "staggered": 14,
    "staggered_optimized": 14,
    "broadcasts": 16,
    "broadcasts_optimized": 16,
    "smooth_twice": 20,
    "smooth_twice_optimized": 20,
    "computed_offset": 16,
    "computed_offset_optimized": 16,
    "masked": 32,
    "masked_optimized": 32,
    "masked_in_place": 24,
    "masked_in_place_optimized": 24,
    "by_flag": 32,
    "by_flag_optimized": 32,
    "by_number": 56,
    "by_number_optimized": 56,
    "by_two_flags": 64,
    "by_two_flags_optimized": 64,
    "by_place": 120,
    "by_place_optimized": 128,
    "boundaries": 70,
    "boundaries_optimized": 70,
    "both_ways": 24,
    "both_ways_optimized": 24,
    "backward": 24,
    "backward_optimized": 24,
    "forward_pair": 32,
    "forward_pair_optimized": 32,
    "two_domains": 52,
    "two_domains_optimized": 52,
    "slices": 22,
    "slices_optimized": 22,
    "two_steps": 52,
    "two_steps_optimized": 52,
    "copies": 16,
    "copies_optimized": 16,
    "fills": 8,
    "fills_optimized": 8,
    "extremes": 54,
    "extremes_optimized": 54,
    "neighbor_levels": 38,
    "neighbor_levels_optimized": 38,
    "second_only": 48,
    "second_only_optimized": 48,
    "chain": 70,
    "chain_optimized": 52,
    "direct_chain": 44,
    "direct_chain_optimized": 44,
    "weighted": 46,
    "weighted_optimized": 52,
    "scan_of_neighbors": 54,
    "scan_of_neighbors_optimized": 54,
    "masked_neighbors": 33,
    "masked_neighbors_optimized": 33,
    "regions": 117,
    "regions_optimized": 117,
    "between": 148,
    "between_optimized": 144,
    "between_shifted": 200,
    "between_shifted_optimized": 180,
    "outside_shifted": 188,
    "outside_shifted_optimized": 168,
    "corner_shifted": 160,
    "corner_shifted_optimized": 160,
    "framed": 66,
    "framed_optimized": 66,
    "chosen": 24,
    "chosen_optimized": 24,
    "by_fraction": 40,
    "by_fraction_optimized": 40,
    "first_neighbor": 32,
    "first_neighbor_optimized": 32,
}
"""How many ends of bounds there are to judge in all calls of a program. Fewer mean that less is known of it."""
