"""For every layout: each code path has exactly one builder of each key, and all its ranks take part in the work."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gtstub.ranks import Ranks, one_path, path_of_each_rank, tile_position

LAYOUTS = st.tuples(st.integers(1, 6), st.integers(1, 6))
CODE_PATHS = st.sampled_from([one_path, tile_position, path_of_each_rank])


def all_ranks(layout: tuple[int, int], tiles: int, code_path) -> list[Ranks]:  # type: ignore[no-untyped-def]
    size = layout[0] * layout[1] * tiles
    return [Ranks(rank, size, layout, code_path) for rank in range(size)]


@given(layout=LAYOUTS, tiles=st.integers(1, 6), code_path=CODE_PATHS, key=st.text())
def test_each_code_path_has_one_builder(layout, tiles, code_path, key) -> None:  # type: ignore[no-untyped-def]
    ranks = all_ranks(layout, tiles, code_path)
    said = {(one.path, one.builder(key)) for one in ranks}
    assert Counter(path for path, _ in said) == dict.fromkeys({one.path for one in ranks}, 1)
    for path, builder in said:
        assert ranks[builder].path == path
    first = [one.rank for one in ranks if one.turn(key) == 0]
    assert sorted(first) == sorted(builder for _, builder in said)


@given(layout=LAYOUTS, tiles=st.integers(1, 6), code_path=CODE_PATHS)
def test_builders_spread(layout, tiles, code_path) -> None:  # type: ignore[no-untyped-def]
    """A hundred keys for each rank of a code path: none has fewer than 40 or more than 200."""
    ranks = all_ranks(layout, tiles, code_path)
    for one in {one.path: one for one in ranks}.values():
        count = min(100, 2000 // len(one.peers))
        builds = Counter(one.builder(f"key-{number}") for number in range(count * len(one.peers)))
        assert builds.keys() == set(one.peers)
        assert max(builds.values()) <= 4 * count
