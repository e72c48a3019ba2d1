"""Conditions on variables of loops narrow what an access reaches to the elements that it does reach."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType

import pytest

from gtstub.stub.bounds import conditions
from gtstub.stub.bounds.access import Access, BoundedLoop, Scope
from gtstub.stub.bounds.claims import _claims
from gtstub.stub.bounds.needs import Needs
from gtstub.stub.signature.expressions import Expression, parse, symbol
from gtstub.stub.signature.model import Claim

SYMBOLS = ("a", "b", "flag")
LOOPS = (
    BoundedLoop("i", Expression(0), symbol("b"), is_parallel=True),
    BoundedLoop("j", symbol("a"), Expression(3), is_parallel=True),
)
SCOPE = Scope({name: symbol(name) for name in (*SYMBOLS, "i", "j")}, {}, loops=LOOPS)
GIVEN = [{"a": a, "b": b, "flag": flag} for a in range(-1, 5) for b in range(-1, 5) for flag in (0, 1)]


def read(text: str) -> Expression:
    found = parse(text)
    assert found is not None
    return found


def claims_of(test: str, *indices: str, is_true: bool = True) -> Sequence[Claim] | None:
    stated = conditions.stated(test, SCOPE, holds=is_true)
    assert stated is not None
    found = _claims(Access("x", LOOPS, stated, tuple((read(each), read(each)) for each in indices)))
    return None if found is None else [claim for _, claim in found]


def ends_of(claims: Sequence[Claim], values: Mapping[str, int]) -> dict[int, tuple[int, int]]:
    """The lowest and the highest index on each axis."""
    found: dict[int, tuple[int, int]] = {}
    for claim in claims:
        if all(_holds(str(each), values) for each in claim.when):
            for use in claim.uses:
                low = min(each.evaluate(values) for each in use.lowest)
                high = max(each.evaluate(values) for each in use.highest)
                before = found.get(use.axis, (low, high))
                found[use.axis] = min(low, before[0]), max(high, before[1])
    return found


@functools.cache
def _compiled(text: str) -> CodeType:
    return compile(text, text, "eval")


def _holds(text: str, values: Mapping[str, int]) -> bool:
    return bool(eval(_compiled(text), {"min": min, "max": max, "int_floor": _rounded}, dict(values)))


def _rounded(numerator: int, divisor: int) -> int:
    return int(numerator / divisor)


def reached(test: str, *indices: str, values: Mapping[str, int]) -> dict[int, tuple[int, int]]:
    """The same by going through all rounds."""
    rounds = [
        [read(each).evaluate({**values, "i": i, "j": j}) for each in indices]
        for i in range(values["b"] + 1)
        for j in range(values["a"], 4)
        if _holds(test, {**values, "i": i, "j": j})
    ]
    return {axis: (min(each), max(each)) for axis, each in enumerate(zip(*rounds, strict=True))}


TESTS = [
    "0 < i",
    "i < b",
    "i + 1 < b and 0 < i",
    "i - 1 >= a",
    "not i == 0",
    "i != 1",
    "i == a",
    "i != a and i != b",
    "0 < i and j < 3",
    "0 < i or j < 3",
    "not (0 < i and i < b and a < j and j < 3)",
    "i < a or i > b - 1",
    "i == 0 or i == b",
    "flag and 0 < i",
    "flag or 0 < i",
    "i < min(a, 2)",
    "i < max(a, 2) and i >= min(a, b) - 1",
    "max(i, 1) < b",
    "min(i, 2) >= a",
    "max(0, b - 1) - i >= 0",
    "0 <= i - a and i - a <= max(a, min(b, 3)) - a - 1",
    "2*i < b",
    "3*i > a + 1",
    "2*i == b",
    "i + j == a",
    "2*j < b",
    "2*j >= b - 3",
    "3*j <= a + 1",
    "3*j > b - 2*a",
    "2*j == b",
    "min(i, a) < b and 2*j != a",
]


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("is_true", [True, False])
def test_what_is_claimed_is_what_is_reached(test: str, is_true: bool) -> None:
    indices = ("i + 1", "j - a", "2*i - j")
    found = claims_of(test, *indices, is_true=is_true)
    assert found is not None
    text = test if is_true else f"not ({test})"
    for values in GIVEN:
        assert ends_of(found, values) == reached(text, *indices, values=values), values


@pytest.mark.parametrize(
    "test",
    [
        "a*i < b",
        " and ".join(f"(i != {number})" for number in range(5)),
    ],
)
def test_what_cannot_be_narrowed_is_not_known(test: str) -> None:
    assert claims_of(test, "i") is None


def _tests(draw: random.Random, depth: int = 2) -> str:
    if depth and draw.random() < 0.6:
        op = draw.choice(("and", "or"))
        return f"{draw.choice(('', 'not '))}({_tests(draw, depth - 1)} {op} {_tests(draw, depth - 1)})"
    sides = [
        f"{draw.choice(('i', 'j', 'i', 'j', 'a'))} + {draw.randint(-2, 2)}",
        draw.choice(("a", "b", "min(a, b)", "max(a, 1)", "min(a + 1, max(b, 2))", "0", "2")),
    ]
    draw.shuffle(sides)
    return f"({sides[0]} {draw.choice(('<', '<=', '>', '>=', '==', '!='))} {sides[1]})"


def _random(seed: int) -> Iterator[str]:
    draw = random.Random(seed)
    return (_tests(draw) for _ in range(20))


@pytest.mark.parametrize("seed", range(7))
def test_random_conditions_are_narrowed(seed: int) -> None:
    known = 0
    for test in _random(seed):
        stated = conditions.stated(test, SCOPE)
        if stated is None or (found := claims_of(test, "i", "j + 1")) is None:
            continue
        known += 1
        for values in itertools.islice(GIVEN, seed, None, 7):
            assert ends_of(found, values) == reached(test, "i", "j + 1", values=values), (test, values)
    assert known > 12


def test_only_the_rounds_that_read_a_temporary_need_what_it_was_computed_from() -> None:
    """`t = x; y = t if 1 < i`, as a copy of x and a loop over t."""
    sizes = (symbol("b"),)
    loop = BoundedLoop("k", Expression(0), symbol("b") - 1, is_parallel=True)
    index = ((symbol("k"), symbol("k")),)
    source = Access("x", (loop,), (), index, unit=1)
    copy = Access("t", (loop,), (), index, sizes, unit=1, is_write=True, overwrites=True)
    condition = conditions.stated("1 < i", SCOPE)
    assert condition is not None
    use = Access("t", LOOPS[:1], condition, ((symbol("i"), symbol("i")),), sizes, unit=2)
    out = Access("y", LOOPS[:1], condition, ((symbol("i"), symbol("i")),), unit=2, is_write=True)
    (rounds,) = Needs([source, copy, use, out]).rounds(1) or ()
    assert rounds.limits == (("k", Expression(2), symbol("b")),)
