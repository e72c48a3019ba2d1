"""Keys depend on every ingredient and on nothing else; differences are named by where they are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gtstub.entries.cache.key import MISSING, Difference, differences, make_key
from gtstub.util.canonical import plain


def test_key_depends_on_every_ingredient_but_not_on_their_order() -> None:
    made = make_key("prog", {"a": 1, "b": {"c": [2]}})
    assert made == make_key("prog", {"b": {"c": [2]}, "a": 1})
    assert made.startswith("prog-")
    assert made != make_key("prog", {"a": 1, "b": {"c": [3]}})
    assert made != make_key("other", {"a": 1, "b": {"c": [2]}})


@pytest.mark.parametrize(
    "values", [(1, 1.0), (1, True), (0.0, -0.0), (None, "None"), ([1, 2], [2, 1]), (math.inf, 1e308)]
)
def test_values_that_differ_give_keys_that_differ(values: tuple[object, object]) -> None:
    one, other = values
    assert make_key("prog", {"x": one}) != make_key("prog", {"x": other})
    (difference,) = differences({"x": one}, {"x": other})
    assert difference.path == "x"


def test_values_that_are_equal_give_one_key() -> None:
    ours = {"n": np.int32(3), "x": np.float64(0.5), "flags": {"b", "a"}, "t": (1, 2), "flag": np.bool_(True)}
    theirs = {"n": 3, "x": 0.5, "flags": ["a", "b"], "t": [1, 2], "flag": True}
    assert make_key("prog", ours) == make_key("prog", theirs)
    assert differences(ours, theirs) == []


def test_what_json_has_no_word_for_is_refused() -> None:
    assert plain({"x": math.nan, "y": -math.inf}) == {"x": "nan", "y": "-inf"}
    with pytest.raises(TypeError) as caught:
        make_key("prog", {"x": object()})
    assert str(caught.value) == "'object' cannot be part of the manifest of a cache entry."


def test_key_of_a_very_long_or_strange_name_is_a_name_of_a_file() -> None:
    long = "p" * 300
    assert len(make_key(long, {})) == 100 + 1 + 32
    assert make_key(long, {}) != make_key(long + "p", {})
    assert make_key("../ä b", {}).startswith("_____b-")


def test_differences_name_the_place_and_both_values() -> None:
    ours = {"static": {"n": 1, "new": 2}, "cpu": ["avx", "avx512f"], "same": 0, "flags": ["-O2", "-g"]}
    theirs = {"static": {"n": 2, "old": None}, "cpu": ["avx"], "same": 0, "flags": ["-g", "-O2"]}
    assert differences(ours, theirs) == [
        Difference("static.n", 1, 2),
        Difference("static.new", 2, MISSING),
        Difference("static.old", MISSING, None),
        Difference("cpu", ["avx512f"], []),
        Difference("flags", ["-O2", "-g"], ["-g", "-O2"]),
    ]
    assert differences(ours, ours) == []
