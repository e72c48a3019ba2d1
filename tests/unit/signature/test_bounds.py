"""Bounds in SDFG signatures: what is read, and what is said of bounds that are none."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from gtstub.errors import SignatureError
from gtstub.stub.signature import documents
from gtstub.stub.signature.expressions import symbol
from gtstub.stub.signature.facts import Fact
from gtstub.stub.signature.model import Axis, Bounds, Claim, Condition, Follow, Unknown, Use
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
            "skips": True,
            "array": "w",
            "axis": 0,
        }
    ],
    "is_needed": False,
}
FACT = {"name": "holds", "text": "real > 0.5 or flag"}
UNKNOWN = {"array": "vn", "why": "in a branch on data", "count": 2}


def document(change: Callable[[dict[str, Any]], None]) -> str:
    made = json.loads(documents.sdfg_to_json(SDFG))
    made["bounds"] = {"known": 3, "claims": [copy.deepcopy(CLAIM)], "unknown": [UNKNOWN], "facts": [dict(FACT)]}
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
                (Follow("gt_conn_E2V", (start,), (end - 1,), (0, 1), start * -1, True, "w", 0),),
                is_needed=False,
            ),
        ),
        (Unknown("vn", "in a branch on data", 2),),
        (Fact("holds", "real > 0.5 or flag"),),
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
NAMES = f"{AT}', expected names of integer arguments, found"
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
    "a floating-point type": (_when("real < end"), f"{NAMES} 'real'."),
    "no symbol in a row": (_follow(first=["here"]), f"{NAMES} 'here'."),
    "no symbol in a last row": (_follow(last=["here"]), f"{NAMES} 'here'."),
    "no symbol added": (_follow(plus="here"), f"{NAMES} 'here'."),
    "no symbol in a size": (_follow(array=None, axis=None, size="here"), f"{NAMES} 'here'."),
    "code": (_use(lowest=["f(end)"]), f"{AT}.uses[0].lowest[0]', {SUM} 'f(end)'."),
    "code above": (_use(highest=["1", "end % 2"]), f"{AT}.uses[0].highest[1]', {SUM} 'end % 2'."),
    "overflow": (_use(lowest=["65537*end"]), f"{AT}.uses[0].lowest[0]', {SUM} '65537*end'."),
    "a huge constant": (_follow(plus="9" * 99), f"{AT}.follows[0].plus', {SUM} '{'9' * 60}'."),
    "a huge sum": (_follow(first=["+".join(["end"] * 2000)]), f"{AT}.follows[0].first[0]', {SUM} '{'end+' * 15}'."),
    "a large factor": (_use(lowest=["65536*65536*end"]), f"{AT}.uses[0].lowest[0]', {SUM} '65536*65536*end'."),
    "a huge extremum": (
        _use(highest=[f"max({', '.join(f'end + {i}*start' for i in range(40))})"]),
        f"{AT}.uses[0].highest[0]', {SUM} 'max(end + 0*start, end + 1*start, end + 2*start, end + 3*sta'.",
    ),
    "many minus signs": (_use(lowest=["-" * 4000 + "end"]), f"{AT}.uses[0].lowest[0]', {SUM} '{'-' * 60}'."),
    "many brackets": (
        _use(lowest=["(" * 999 + "end" + ")" * 999]),
        f"{AT}.uses[0].lowest[0]', {SUM} '{'(' * 60}'.",
    ),
    "deep extrema": (
        _use(lowest=["max(start, min(end, " * 60 + "1" + "))" * 60]),
        f"{AT}.uses[0].lowest[0]', {SUM} '{'max(start, min(end, ' * 3}'.",
    ),
    "a text that is too long": (_use(lowest=["1" + " " * 4096]), f"{AT}.uses[0].lowest[0]', {SUM} '1{' ' * 59}'."),
    "a call of Python": (
        _use(lowest=["__import__('os').abort()"]),
        f"{AT}.uses[0].lowest[0]', {SUM} '__import__('os').abort()'.",
    ),
    "a statement of C": (_use(lowest=["end; abort()"]), f"{AT}.uses[0].lowest[0]', {SUM} 'end; abort()'."),
    "an attribute": (_use(lowest=["end.start"]), f"{AT}.uses[0].lowest[0]', {SUM} 'end.start'."),
    "a product of four symbols": (_use(lowest=["end**4"]), f"{AT}.uses[0].lowest[0]', {SUM} 'end**4'."),
    "a fraction": (_use(lowest=["end + 0.5"]), f"{AT}.uses[0].lowest[0]', {SUM} 'end + 0.5'."),
    "a truth value": (_use(lowest=["end + True"]), f"{AT}.uses[0].lowest[0]', {SUM} 'end + True'."),
    "a null character": (_use(lowest=["end\0"]), f"{AT}.uses[0].lowest[0]', {SUM} 'end\\x00'."),
    "half a character": (_use(lowest=["\ud800"]), f"{AT}.uses[0].lowest[0]', {SUM} '\\ud800'."),
    "two lines": (_use(lowest=["end +\n1"]), f"{AT}.uses[0].lowest[0]', {SUM} 'end +\\n1'."),
    "no text": (_use(lowest=[""]), f"{AT}.uses[0].lowest[0]', {SUM} ''."),
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
    "a relation on two lines": (_when("start\n<end"), f"{AT}.when[3]', {RELATION} 'start\\n<end'."),
    "a relation of a large number": (_when(f"start < {2**48 + 1}"), f"{AT}.when[3]', {SUM} '{2**48 + 1}'."),
    "a relation of nothing": (_when("  < end"), f"{AT}.when[3]', {SUM} ' '."),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_other_bounds_are_refused(change: Callable[[dict[str, Any]], None], message: str) -> None:
    with pytest.raises(SignatureError) as caught:
        documents.sdfg_from_json(document(change), "s.json")
    assert str(caught.value) == message


def _bounds(**changed: Any) -> Callable[[dict[str, Any]], None]:
    return lambda bounds: bounds.update(changed)


def _in_claim(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    return lambda bounds: change(bounds["claims"][0])


def _without(member: str) -> Callable[[dict[str, Any]], None]:
    def change(item: dict[str, Any]) -> None:
        del item[member]

    return change


BELOW, ABOVE = "expected at least 0, found", "expected at most 63, found"
NO_EXPRESSION = "expected a value that 'minItems' allows, found '[]'"
OTHER_FORMS = {
    "an axis below 0": (_in_claim(_use(axis=-1)), f".claims[0].uses[0].axis', {BELOW} '-1'."),
    "a huge axis": (_in_claim(_use(axis=10**30)), f".claims[0].uses[0].axis', expected at most 100, found '{10**30}'."),
    "an axis as text": (_in_claim(_use(axis="0")), ".claims[0].uses[0].axis', expected integer, found '\"0\"'."),
    "an axis that is no integer": (
        _in_claim(_use(axis=1.0)),
        ".claims[0].uses[0].axis', expected integer, found '1.0'.",
    ),
    "nothing lowest": (_in_claim(_use(lowest=[])), f".claims[0].uses[0].lowest', {NO_EXPRESSION}."),
    "nothing highest": (_in_claim(_use(highest=[])), f".claims[0].uses[0].highest', {NO_EXPRESSION}."),
    "one lowest": (_in_claim(_use(lowest="end")), ".claims[0].uses[0].lowest', expected array, found '\"end\"'."),
    "a number": (_in_claim(_use(lowest=[3])), ".claims[0].uses[0].lowest[0]', expected string, found '3'."),
    "many expressions": (
        _in_claim(_use(lowest=["end"] * 101)),
        ".claims[0].uses[0].lowest', expected at most 100 elements, found 101.",
    ),
    "a member too many": (_in_claim(_use(more=1)), ".claims[0].uses[0]', expected no member 'more', found one."),
    "no columns": (_in_claim(_follow(columns=[])), f".claims[0].follows[0].columns', {NO_EXPRESSION}."),
    "a column below 0": (_in_claim(_follow(columns=[-1])), f".claims[0].follows[0].columns[0]', {BELOW} '-1'."),
    "a column that is too large": (
        _in_claim(_follow(columns=[64])),
        f".claims[0].follows[0].columns[0]', {ABOVE} '64'.",
    ),
    "a column twice": (
        _in_claim(_follow(columns=[1, 1])),
        ".claims[0].follows[0].columns', expected a value that 'uniqueItems' allows, found '[1, 1]'.",
    ),
    "no first row": (_in_claim(_follow(first=[])), f".claims[0].follows[0].first', {NO_EXPRESSION}."),
    "a name that is none": (
        _in_claim(_use(array="vn; abort()")),
        ".claims[0].uses[0].array', expected text that matches '^[A-Za-z_][A-Za-z0-9_]*$', found '\"vn; abort()\"'.",
    ),
    "a condition that is no text": (_in_claim(_when(1)), ".claims[0].when[3]', expected string, found '1'."),
    "no claims": (_without("claims"), "', expected a member 'claims', found none."),
    "no number of accesses": (_without("known"), "', expected a member 'known', found none."),
    "a number below 0": (_bounds(known=-1), f".known', {BELOW} '-1'."),
    "a huge number": (_bounds(known=2**63), f".known', expected at most {2**63 - 1}, found '{2**63}'."),
    "claims that are none": (_bounds(claims={}), ".claims', expected array, found '{}'."),
    "many claims": (_bounds(claims=[CLAIM] * 1001), ".claims', expected at most 1000 elements, found 1001."),
    "a reason that is none": (
        _bounds(unknown=[{**UNKNOWN, "why": None}]),
        ".unknown[0].why', expected string, found 'null'.",
    ),
    "a count below 0": (_bounds(unknown=[{**UNKNOWN, "count": -1}]), f".unknown[0].count', {BELOW} '-1'."),
    "an unknown access without an array": (
        _bounds(unknown=[{"why": "", "count": 1}]),
        ".unknown[0]', expected a member 'array', found none.",
    ),
}


@pytest.mark.parametrize(("change", "message"), OTHER_FORMS.values(), ids=OTHER_FORMS)
def test_bounds_of_another_form_are_refused(change: Callable[[dict[str, Any]], None], message: str) -> None:
    made = json.loads(document(lambda claim: None))
    change(made["bounds"])
    with pytest.raises(SignatureError) as caught:
        documents.sdfg_from_json(json.dumps(made), "s.json")
    assert str(caught.value) == f"'s.json' is not an SDFG signature: at '$.bounds{message}"
