"""Reads the bounds in an SDFG signature, and checks that they are about its arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gtstub.errors import SignatureError
from gtstub.signature.expressions import Expression, parse
from gtstub.signature.facts import Fact, canonical
from gtstub.signature.model import (
    INDEX_TYPES,
    ArrayArgument,
    Bounds,
    Claim,
    Condition,
    Follow,
    ScalarArgument,
    SdfgSignature,
    Unknown,
    Use,
)

Json = Mapping[str, Any]

_CONDITION = re.compile(r"([^<=!]+) (<|==|!=) ([^<=!]+)")


def read(document: Json, source: str) -> Bounds:
    """The bounds of a validated document; `source` is its file name. Raises SignatureError for other expressions."""
    place = "$.bounds.claims"
    return Bounds(
        known=document["known"],
        claims=tuple(_claim(item, f"{place}[{i}]", source) for i, item in enumerate(document["claims"])),
        unknown=tuple(Unknown(**item) for item in document["unknown"]),
        facts=tuple(_fact(item, f"$.bounds.facts[{i}]", source) for i, item in enumerate(document["facts"])),
    )


def _fact(item: Json, place: str, source: str) -> Fact:
    fact = Fact(**item)
    if canonical(fact.text, {name: name for name in fact.symbols}) != fact.text:
        raise _refusal(source, f"{place}.text", f"expected a condition on scalars, found '{_shown(fact.text)}'")
    return fact


def _claim(item: Json, place: str, source: str) -> Claim:
    return Claim(
        tuple(_condition(text, f"{place}.when[{i}]", source) for i, text in enumerate(item["when"])),
        tuple(_use(each, f"{place}.uses[{i}]", source) for i, each in enumerate(item["uses"])),
        tuple(_follow(each, f"{place}.follows[{i}]", source) for i, each in enumerate(item["follows"])),
        item["is_needed"],
    )


def _use(item: Json, place: str, source: str) -> Use:
    lowest = _expressions(item["lowest"], f"{place}.lowest", source)
    return Use(item["array"], item["axis"], lowest, _expressions(item["highest"], f"{place}.highest", source))


def _follow(item: Json, place: str, source: str) -> Follow:
    if ("array" in item) == ("size" in item) or ("array" in item) != ("axis" in item):
        raise _refusal(source, place, "expected either 'array' and 'axis' or 'size', found both or neither")
    size = _expression(item["size"], f"{place}.size", source) if "size" in item else None
    return Follow(
        item["table"],
        _expressions(item["first"], f"{place}.first", source),
        _expressions(item["last"], f"{place}.last", source),
        tuple(item["columns"]),
        _expression(item["plus"], f"{place}.plus", source),
        item["skips"],
        item.get("array"),
        item.get("axis"),
        size,
    )


def _expressions(texts: list[str], place: str, source: str) -> tuple[Expression, ...]:
    return tuple(_expression(text, f"{place}[{i}]", source) for i, text in enumerate(texts))


def _expression(text: str, place: str, source: str) -> Expression:
    found = parse(text)
    if found is None:
        raise _refusal(
            source, place, f"expected a sum of integers and symbols, of limited size, found '{_shown(text)}'"
        )
    return found


def _condition(text: str, place: str, source: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise _refusal(source, place, f"expected two expressions with '<', '==' or '!=', found '{_shown(text)}'")
    left, relation, right = match.groups()
    return Condition(_expression(left, place, source), relation, _expression(right, place, source))  # type: ignore[arg-type]


def _shown(text: str) -> str:
    """The start of a text, on one line."""
    start = text[:60]
    return start if start.isprintable() else start.encode("unicode_escape").decode()


def _refusal(source: str, place: str, problem: str) -> SignatureError:
    return SignatureError(f"'{source}' is not an SDFG signature: at '{place}', {problem}.")


# --- References -------------------------------------------------------------------------------------------------------


def check_references(signature: SdfgSignature, refuse: Callable[[str, str], SignatureError]) -> None:
    """Raises what `refuse` makes of a place and a problem if bounds name no array, axis or integer of the signature."""
    ranks = {item.name: len(item.axes) for item in signature.arguments if isinstance(item, ArrayArgument)}
    scalars = {item.name: item.dtype for item in signature.arguments if isinstance(item, ScalarArgument)}
    facts = signature.bounds.facts if signature.bounds else ()
    for number, fact in enumerate(facts):
        for name in sorted(fact.symbols - scalars.keys()):
            raise refuse(f"$.bounds.facts[{number}]", f"expected names of scalar arguments, found '{name}'")
        if fact.name in scalars or fact.name in ranks or fact.name in {each.name for each in facts[:number]}:
            raise refuse(f"$.bounds.facts[{number}]", f"expected a new name, found '{fact.name}'")
    for number, claim in enumerate(signature.bounds.claims if signature.bounds else ()):
        place = f"$.bounds.claims[{number}]"
        for name in sorted(claim.symbols - {each.name for each in facts}):
            if scalars.get(name) not in INDEX_TYPES:
                raise refuse(place, f"expected names of integer arguments, found '{name}'")
        for array, axis in _places(claim):
            if array not in ranks:
                raise refuse(place, f"expected the name of an array argument, found '{array}'")
            if axis >= ranks[array]:
                raise refuse(place, f"expected an axis of '{array}', which has {ranks[array]}, found '{axis}'")


def _places(claim: Claim) -> Iterator[tuple[str, int]]:
    """The arrays that a claim is about, each with an axis that it must have."""
    yield from ((use.array, use.axis) for use in claim.uses)
    for follow in claim.follows:
        yield follow.table, 1
        if follow.array is not None and follow.axis is not None:
            yield follow.array, follow.axis
