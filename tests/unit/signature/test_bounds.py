"""Bounds in SDFG signatures: what is read, and what is said of bounds that are none."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from gtstub.errors import SignatureError
from gtstub.signature import documents
from gtstub.signature.expressions import symbol
from gtstub.signature.model import Axis, Bounds, Claim, Condition, Follow, Unknown, Use
from tests.support.signatures import array, sdfg
from tests.support.signatures import symbol as argument

SDFG = sdfg(
    array("gt_conn_E2V", Axis(), Axis(size=2), dtype="int32"),
    array("vn", Axis(), Axis()),
    array("w", Axis()),
    argument("big", dtype="int64"),
    argument("end"),
    argument("flag", dtype="bool"),
    argument("level", dtype="uint32"),
    argument("real", dtype="float64"),
    argument("start"),
)
CLAIM = {
    "when": ["start < end", "flag != 0", "level == 2"],
    "uses": [{"array": "vn", "axis": 1, "lowest": ["start - 1", "3"], "highest": ["end - 1"]}],
    "follows": [
        {
            "table": "gt_conn_E2V",
            "first": ["start"],
            "last": ["end - 1"],
            "columns": [0, 1],
            "plus": "-start",
            "array": "w",
            "axis": 0,
        }
    ],
}
UNKNOWN = {"array": "vn", "why": "in a branch on data", "count": 2}


def document(change: Callable[[dict[str, Any]], None]) -> str:
    made = json.loads(documents.sdfg_to_json(SDFG))
    made["bounds"] = {"known": 3, "claims": [copy.deepcopy(CLAIM)], "unknown": [UNKNOWN]}
    change(made["bounds"]["claims"][0])
    return json.dumps(made)


def test_bounds_are_read() -> None:
    found = documents.sdfg_from_json(document(lambda claim: None), "s.json").bounds
    start, end = symbol("start"), symbol("end")
    assert found == Bounds(
        3,
        (
            Claim(
                (
                    Condition(start, "<", end),
                    Condition(symbol("flag"), "!=", start - start),
                    Condition(symbol("level"), "==", start - start + 2),
                ),
                (Use("vn", 1, (start - 1, start - start + 3), (end - 1,)),),
                (Follow("gt_conn_E2V", (start,), (end - 1,), (0, 1), start * -1, "w", 0),),
            ),
        ),
        (Unknown("vn", "in a branch on data", 2),),
    )


def test_bounds_are_written_as_they_were_read() -> None:
    signature = documents.sdfg_from_json(document(lambda claim: None), "s.json")
    text = documents.sdfg_to_json(signature)
    assert documents.sdfg_from_json(text, "s.json") == signature
    assert documents.sdfg_to_json(documents.sdfg_from_json(text, "s.json")) == text


def test_a_table_of_indices_of_a_temporary_has_a_size() -> None:
    def change(claim: dict[str, Any]) -> None:
        del claim["follows"][0]["array"], claim["follows"][0]["axis"]
        claim["follows"][0]["size"] = "end - start"

    bounds = documents.sdfg_from_json(document(change), "s.json").bounds
    assert bounds is not None
    (follow,) = bounds.claims[0].follows
    assert (follow.array, follow.axis, follow.size) == (None, None, symbol("end") - symbol("start"))


def _use(**changed: Any) -> Callable[[dict[str, Any]], None]:
    return lambda claim: claim["uses"][0].update(changed)


def _follow(**changed: Any) -> Callable[[dict[str, Any]], None]:
    def change(claim: dict[str, Any]) -> None:
        claim["follows"][0].update(changed)
        for name in [name for name, value in changed.items() if value is None]:
            del claim["follows"][0][name]

    return change


def _when(text: Any) -> Callable[[dict[str, Any]], None]:
    return lambda claim: claim["when"].append(text)


AT = "'s.json' is not an SDFG signature: at '$.bounds.claims[0]"
SUM = "expected a sum of integers and symbols, of limited size, found"
NAMES = f"{AT}', expected names of integer arguments of at most 32 bits, found"
RELATION = "expected two expressions with '<', '==' or '!=', found"
BAD = {
    "no array": (_use(array="vt"), f"{AT}', expected the name of an array argument, found 'vt'."),
    "a scalar as array": (_use(array="end"), f"{AT}', expected the name of an array argument, found 'end'."),
    "no axis": (_use(axis=2), f"{AT}', expected an axis of 'vn', which has 2, found '2'."),
    "no table": (_follow(table="gt_conn_V2E"), f"{AT}', expected the name of an array argument, found 'gt_conn_V2E'."),
    "no second axis": (_follow(table="w"), f"{AT}', expected an axis of 'w', which has 1, found '1'."),
    "no array to follow to": (_follow(array="vt"), f"{AT}', expected the name of an array argument, found 'vt'."),
    "no axis to follow to": (_follow(axis=1), f"{AT}', expected an axis of 'w', which has 1, found '1'."),
    "no symbol": (_use(lowest=["here"]), f"{NAMES} 'here'."),
    "no symbol above": (_use(highest=["max(end, there)"]), f"{NAMES} 'there'."),
    "an array as symbol": (_use(lowest=["vn"]), f"{NAMES} 'vn'."),
    "a large type": (_use(lowest=["big"]), f"{NAMES} 'big'."),
    "a floating-point type": (_when("real < end"), f"{NAMES} 'real'."),
    "no symbol in a row": (_follow(first=["here"]), f"{NAMES} 'here'."),
    "no symbol in a last row": (_follow(last=["here"]), f"{NAMES} 'here'."),
    "no symbol added": (_follow(plus="here"), f"{NAMES} 'here'."),
    "no symbol in a size": (_follow(array=None, axis=None, size="here"), f"{NAMES} 'here'."),
    "code": (_use(lowest=["f(end)"]), f"{AT}.uses[0].lowest[0]', {SUM} 'f(end)'."),
    "code above": (_use(highest=["1", "end // 2"]), f"{AT}.uses[0].highest[1]', {SUM} 'end // 2'."),
    "overflow": (_use(lowest=["65537*end"]), f"{AT}.uses[0].lowest[0]', {SUM} '65537*end'."),
    "a huge constant": (_follow(plus="9" * 99), f"{AT}.follows[0].plus', {SUM} '{'9' * 60}'."),
    "a huge sum": (_follow(first=["+".join(["end"] * 2000)]), f"{AT}.follows[0].first[0]', {SUM} '{'end+' * 15}'."),
    "a bad last row": (_follow(last=["end end"]), f"{AT}.follows[0].last[0]', {SUM} 'end end'."),
    "a bad size": (_follow(array=None, axis=None, size="-"), f"{AT}.follows[0].size', {SUM} '-'."),
    "array and size": (
        _follow(size="3"),
        f"{AT}.follows[0]', expected either 'array' and 'axis' or 'size', found both or neither.",
    ),
    "neither array nor size": (
        _follow(array=None, axis=None),
        f"{AT}.follows[0]', expected either 'array' and 'axis' or 'size', found both or neither.",
    ),
    "an array without axis": (
        _follow(axis=None),
        f"{AT}.follows[0]', expected either 'array' and 'axis' or 'size', found both or neither.",
    ),
    "no relation": (_when("start"), f"{AT}.when[3]', {RELATION} 'start'."),
    "another relation": (_when("start >= end"), f"{AT}.when[3]', {RELATION} 'start >= end'."),
    "two relations": (_when("start < end < level"), f"{AT}.when[3]', {RELATION} 'start < end < level'."),
    "a relation of code": (_when("start < end()"), f"{AT}.when[3]', {SUM} 'end()'."),
    "a relation of nothing": (_when("  < end"), f"{AT}.when[3]', {SUM} ' '."),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_other_bounds_are_refused(change: Callable[[dict[str, Any]], None], message: str) -> None:
    with pytest.raises(SignatureError) as caught:
        documents.sdfg_from_json(document(change), "s.json")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "change",
    [
        _use(axis=-1),
        _use(axis="0"),
        _use(lowest=[]),
        _use(highest=[]),
        _use(more=1),
        _use(lowest="end"),
        _follow(columns=[]),
        _follow(columns=[-1]),
        _follow(columns=[64]),
        _follow(first=[]),
        _when(1),
    ],
    ids=range(11),
)
def test_the_schema_refuses_the_rest(change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(SignatureError) as caught:
        documents.sdfg_from_json(document(change), "s.json")
    assert str(caught.value).startswith(AT)
