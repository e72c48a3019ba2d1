"""The document of a granule."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtstub.errors import SignatureError
from gtstub.programs.granule.description import (
    Argument,
    ArrayValue,
    Call,
    Constant,
    Description,
    GranuleArray,
    GranuleProgram,
    GranuleScalar,
    GranuleStep,
    HookCall,
    Section,
    Variable,
    from_json,
    to_json,
)
from gtstub.stub.signature.dtypes import DTYPES

TEXT = st.text(max_size=5)
NUMBER = st.integers(-(2**63), 2**64 - 1)
NUMBERS = st.lists(NUMBER, max_size=3).map(tuple)
VALUE = st.booleans() | NUMBER | st.floats()
INDEX = st.integers(0, 5)
DTYPE = st.sampled_from(DTYPES)

SECTIONS = st.builds(Section, NUMBERS, NUMBERS, NUMBERS, NUMBERS)
VALUES = (
    st.none()
    | st.builds(ArrayValue, INDEX, NUMBERS, st.none() | SECTIONS)
    | st.builds(Constant, DTYPE, VALUE)
    | st.builds(Variable, INDEX)
)
POSITIONS = st.builds(Call, INDEX, st.lists(st.builds(Argument, TEXT, VALUES), max_size=4).map(tuple)) | st.builds(
    HookCall, INDEX, NUMBERS
)
FLAG = st.booleans()


def tuples(of: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(of, max_size=3).map(tuple)


DESCRIPTIONS = st.builds(
    Description,
    TEXT,
    tuples(st.builds(GranuleArray, TEXT, DTYPE, tuples(TEXT), NUMBERS, NUMBERS, FLAG, FLAG, FLAG)),
    tuples(st.builds(GranuleProgram, TEXT, TEXT, TEXT, TEXT)),
    tuples(st.builds(GranuleScalar, TEXT, TEXT, DTYPE, VALUE)),
    tuples(TEXT),
    tuples(st.builds(GranuleStep, TEXT, tuples(POSITIONS))),
)


@given(DESCRIPTIONS)
def test_a_description_comes_back(description: Description) -> None:
    text = to_json(description)
    again = from_json(text, "granule.json")
    assert repr(again) == repr(description)  # NaN is equal to itself, and -0.0 differs from 0.0
    assert to_json(again) == text


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan, -0.0, 5e-324, True, 2**64 - 1])
def test_values_keep_their_bits_and_type(number: float) -> None:
    scalar = GranuleScalar("x", "x", "float64", number)
    (found,) = from_json(to_json(Description("g", (), (), (scalar,), (), ())), "granule.json").scalars
    assert repr(found.value) == repr(number)


EMPTY = json.loads(to_json(Description("g", (), (), (), (), ())))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "gtstub/granule/2"}, r"'granule.json' is not the description of a granule: at '\$.schema'"),
        ({"arrays": [{"name": "x"}]}, r"at '\$.arrays\[0\]'"),
        ({"more": 1}, r"at '\$'"),
        ({"steps": [{"name": "run", "positions": [{"hook": 0}]}]}, r"at '\$.steps\[0\].positions\[0\]'"),
        ({"hooks": [3]}, r"at '\$.hooks\[0\]'"),
    ],
)
def test_other_documents_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SignatureError, match=message):
        from_json(json.dumps(EMPTY | change), "granule.json")


def test_text_that_is_no_json() -> None:
    with pytest.raises(SignatureError, match=r"'granule.json' is not JSON"):
        from_json(b"{", "granule.json")
