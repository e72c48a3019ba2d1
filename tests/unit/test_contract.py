"""A member of the contract of an array is in every source that docs/design.md lists for it."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from pathlib import Path

import pytest

import gtstub.frameworks
import gtstub.stub.signature
from gtstub.abi import ABI
from gtstub.install import INCLUDE
from gtstub.stub.plan.document import plan_to_json
from gtstub.stub.plan.model import AxisContract
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature.documents import sdfg_from_json, sdfg_to_json
from gtstub.stub.signature.model import PROPERTIES, ArrayArgument, Axis, Property
from tests.support.checkout import ROOT
from tests.support.signatures import K, array, field, program, sdfg
from tests.support.stubs import render_stub

ARRAY = array("x", Axis(), device="cuda", access="readwrite")
"""An array of which calls check everything that an SDFG signature can tell: each member has another value than none."""

SDFG, PROGRAM = sdfg(ARRAY, device="cuda"), program(x=field(K))

LEAVES_OF_ABI = {
    11: "name path kind dtype device rank written has_skip_values is_followed codomain member is_parallel slot axes"
    " value",
}
"""The members of `gts_contract` by the number of the interface. Stubs lay them out, so one more raises GTS_ABI."""

PLACES = ("name", "dtype", "access", "axes")
"""The members of an array argument that say which one it is, or have a check of their own."""


def members_in_c() -> list[str]:
    """Those of `gts_contract`, and of the union in it."""
    (body,) = re.findall(r"typedef struct gts_contract \{(.*?)\} gts_contract;", header(), re.DOTALL)
    return re.findall(r"(\w+);", body)


def header() -> str:
    return re.sub(r"/\*.*?\*/", "", (INCLUDE / "gtstub" / "contract.h").read_text(encoding="utf-8"), flags=re.DOTALL)


def test_signature_tells_each_member() -> None:
    told = {each.name for each in dataclasses.fields(ArrayArgument)}
    assert told - set(PLACES) == ARRAY.contract.keys() - {"written"}
    assert all(ARRAY.contract.values())
    schema = json.loads((Path(gtstub.stub.signature.__file__).parent / "schema" / "sdfg.schema.json").read_text())
    (of_array,) = (each["then"] for each in schema["$defs"]["argument"]["allOf"] if "axes" in each["then"]["required"])
    assert of_array["properties"].keys() == told | {"kind"}
    assert sdfg_from_json(sdfg_to_json(SDFG), "x") == SDFG


def test_signature_of_dace_tells_each_member() -> None:
    source = Path(gtstub.frameworks.__file__).parent / "dace" / "sdfg_signature.py"
    calls = [each for each in ast.walk(ast.parse(source.read_text())) if isinstance(each, ast.Call)]
    (made,) = (each for each in calls if isinstance(each.func, ast.Name) and each.func.id == "ArrayArgument")
    assert {each.arg for each in made.keywords} == {each.name for each in dataclasses.fields(ArrayArgument)}


def test_stub_tells_each_member() -> None:
    assert members_in_c() == LEAVES_OF_ABI[ABI].split(), "docs/design.md: the new member raises GTS_ABI"
    assert ARRAY.contract.keys() <= set(members_in_c())
    (row,) = re.findall(r"GTS_MEMBER_ON\(.*?GTS_AXES", render_stub(SDFG, PROGRAM).source, re.DOTALL)
    assert ARRAY.contract.keys() <= {*re.findall(r"\.(\w+) = ", row), *(["device"] if "GTS_CUDA" in row else [])}


def test_tables_and_documents_tell_each_member() -> None:
    (leaf,) = make_plan(SDFG, PROGRAM).fields
    assert all(name in leaf.text for name in ARRAY.contract.keys() - {"device"})  # Tables say 'on cuda' beside it.
    (told,) = plan_to_json(make_plan(SDFG, PROGRAM))["leaves"]
    assert ARRAY.contract.items() <= told.items()


@pytest.mark.parametrize("name", ARRAY.contract)
def test_calls_of_all_hosts_are_refused(name: str) -> None:
    """A test of docs/refusals.md finds the message of each refusal on the page."""
    check = (ROOT / "runtime" / "arguments" / "check.c").read_text(encoding="utf-8")
    (body,) = re.findall(r"^int gts_check_array\(.*?^\}", check, re.DOTALL | re.MULTILINE)
    assert re.search(rf"leaf->{name}\b[^;]*\)\s*return GTS_REFUSE\(", body), f"check.c: nothing refuses another {name}"


@pytest.mark.parametrize("name", PROPERTIES)
def test_calls_compare_what_the_contract_of_an_axis_is_about(name: Property) -> None:
    assert AxisContract("K", Axis(**{name: 1}), ()).compared == {name}
    assert AxisContract("K", Axis(), (name,)).compared == {name}


def test_calls_compare_what_each_member_of_an_axis_is_about() -> None:
    none = AxisContract("K", Axis(), ())
    about = {"fixed": Axis(stop=9), "read": ("size",), "used": (0, 4)}
    assert [each.name for each in dataclasses.fields(none)] == ["dim", *about, "wide"]
    assert [each.name for each in dataclasses.fields(Axis)] == ["size", "start", "stop", "stride"]
    assert set(PROPERTIES) == {each.name for each in dataclasses.fields(Axis)}
    assert not none.compared
    for member, value in about.items():
        assert dataclasses.replace(none, **{member: value}).compared, member  # type: ignore[arg-type]
    assert dataclasses.replace(none, used=(0, 4)).compared == {"start", "size"}
