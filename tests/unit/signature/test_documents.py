"""Reading and writing signatures: round trips, stable bytes, and what is said of documents that are none."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from gtstub.errors import SignatureError
from gtstub.stub.signature import documents
from gtstub.stub.signature.dtypes import DType
from gtstub.stub.signature.model import (
    ArrayArgument,
    Axis,
    CallbackArgument,
    CallbackType,
    CallbackValue,
    Connectivity,
    Dimension,
    FieldType,
    Parameter,
    ProgramSignature,
    Role,
    ScalarArgument,
    ScalarType,
    SdfgSignature,
    StaticArgument,
    StaticDomain,
    TupleType,
    Workspace,
)
from gtstub.util.canonical import readable
from tests.support import goldens
from tests.support.signatures import SHAPES_SDFG, polynomial

EDGE = Dimension("Edge", "horizontal")
K = Dimension("K", "vertical")
E2V = Dimension("E2V", "local")
VERTEX = Dimension("Vertex", "horizontal")

PROGRAM = ProgramSignature(
    name="prog",
    parameters=(
        Parameter("x", TupleType((FieldType("float64", (EDGE, K)), TupleType((ScalarType("int32"),))))),
        Parameter("zero", FieldType("bool", ())),
        Parameter("see", CallbackType(), "self.see"),
        Parameter("state", TupleType((ScalarType("int8"), TupleType(())), ("vn", "w"))),
    ),
    connectivities=(Connectivity("E2V", "int32", EDGE, E2V, VERTEX, 2, has_skip_values=False),),
    static_arguments=(StaticArgument("x_1_0", 3), StaticArgument("flag", value=True), StaticArgument("a", 0.1)),
    static_domains=(StaticDomain("x_0", ((0, 10), (-1, 4))),),
)

SDFG = SdfgSignature(
    name="prog",
    device="cuda",
    library="libprog.so",
    arguments=(
        ArrayArgument("x_0", "float64", "cuda", "readwrite", (Axis(stride=1), Axis(size=4, start=0, stop=4))),
        ScalarArgument("__x_0_Edge_range_0", "int32", (Role("x_0", 0, "start"),)),
        ScalarArgument("x_1_0", "int32"),
        CallbackArgument(
            "see",
            (CallbackValue("bool"), CallbackValue("float32", (polynomial("2*x_1_0 + 1"),), (polynomial("1"),))),
            (CallbackValue("int64"),),
            is_parallel=True,
        ),
    ),
    init=("__x_0_Edge_range_0", "x_1_0"),
    memory_symbols=("x_1_0",),
    workspaces=(Workspace("GPU_Global", "cuda"),),
)


DTYPES = ", ".join(map(repr, get_args(DType)))


def program_document() -> Any:
    return json.loads(documents.program_to_json(PROGRAM))


def sdfg_document() -> Any:
    return json.loads(documents.sdfg_to_json(SDFG))


def refusal(read: Callable[[str, str], object], text: str) -> str:
    with pytest.raises(SignatureError) as caught:
        read(text, "file.json")
    return str(caught.value)


# --- Round trips ------------------------------------------------------------------------------------------------------


def test_program_signature_survives_a_round_trip() -> None:
    assert documents.program_from_json(documents.program_to_json(PROGRAM), "file.json") == PROGRAM


def test_sdfg_signature_survives_a_round_trip() -> None:
    assert documents.sdfg_from_json(documents.sdfg_to_json(SDFG), "file.json") == SDFG


@pytest.mark.parametrize("path", sorted(goldens.SIGNATURES.glob("*.program.json")), ids=lambda path: path.name)
def test_signatures_of_real_programs_are_canonical(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert documents.program_to_json(documents.program_from_json(text, path.name)) == text
    path = path.with_name(path.name.replace(".program.", ".sdfg."))
    text = path.read_text(encoding="utf-8")
    assert documents.sdfg_to_json(documents.sdfg_from_json(text, path.name)) == text


def test_text_is_canonical() -> None:
    text = documents.program_to_json(dataclasses.replace(PROGRAM, static_arguments=(StaticArgument("ä", 1),)))
    assert text == readable(json.loads(text))
    assert "ä" in text


def test_equal_signatures_have_equal_digests_and_others_have_not() -> None:
    text = documents.sdfg_to_json(SDFG)
    assert documents.digest(text) == documents.digest(documents.sdfg_to_json(dataclasses.replace(SDFG)))
    assert documents.digest(text) != documents.digest(documents.sdfg_to_json(dataclasses.replace(SDFG, name="other")))
    assert len(documents.digest(text)) == 64


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e-300, -0.0, 1.0, 1, True, 2**63])
def test_static_value_keeps_its_value_and_type(value: float) -> None:
    signature = dataclasses.replace(PROGRAM, static_arguments=(StaticArgument("a", value),))
    (argument,) = documents.program_from_json(documents.program_to_json(signature), "file.json").static_arguments
    assert (argument.value, type(argument.value)) == (value, type(value))
    assert math.copysign(1, argument.value) == math.copysign(1, value)


def test_static_nan_survives() -> None:
    signature = dataclasses.replace(PROGRAM, static_arguments=(StaticArgument("a", math.nan),))
    (argument,) = documents.program_from_json(documents.program_to_json(signature), "file.json").static_arguments
    assert math.isnan(argument.value)


# --- Documents that are none ------------------------------------------------------------------------------------------


def test_truncated_json_is_refused_at_every_length() -> None:
    text = documents.sdfg_to_json(SDFG).rstrip()
    documents.sdfg_from_json(text, "file.json")
    for length in range(len(text)):
        assert refusal(documents.sdfg_from_json, text[:length]).startswith("'file.json' is not JSON: ")


def test_truncated_json_is_refused_with_its_place() -> None:
    message = "'file.json' is not JSON: Expecting value at line 2, column 9."
    assert refusal(documents.program_from_json, '{\n "name":') == message


def test_deeply_nested_json_is_refused() -> None:
    message = "'file.json' is not a program signature: it is nested too deeply."
    assert refusal(documents.program_from_json, "[" * 200_000) == message


def test_deeply_nested_tuples_are_refused() -> None:
    document = json.loads(documents.program_to_json(PROGRAM))
    for _ in range(300):
        type_ = document["parameters"][0]["type"]
        document["parameters"][0]["type"] = {"kind": "tuple", "elements": [type_]}
    message = "'file.json' is not a program signature: it is nested too deeply."
    assert refusal(documents.program_from_json, json.dumps(document)) == message


@pytest.mark.parametrize("name", ["start", "stop", "stride"])
@pytest.mark.parametrize("value", [2**63, -(2**63), 10**400])
def test_axis_value_that_is_no_int64_is_refused(name: str, value: int) -> None:
    """C has no literal for -2^63."""
    document = json.loads(documents.sdfg_to_json(SDFG))
    for good in (2**63 - 1, -(2**63) + 1):
        document["arguments"][0]["axes"][0] = {name: good}
        documents.sdfg_from_json(json.dumps(document), "file.json")
    document["arguments"][0]["axes"][0] = {name: value}
    bound = "at most 9223372036854775807" if value > 0 else "at least -9223372036854775807"
    message = refusal(documents.sdfg_from_json, json.dumps(document))
    assert message.startswith(
        f"'file.json' is not an SDFG signature: at '$.arguments[0].axes[0].{name}', expected {bound}"
    )


def test_a_number_of_too_many_digits_is_refused() -> None:
    message = refusal(documents.program_from_json, f'{{"name": {"1" * 5000}}}')
    assert message.startswith("'file.json' is not JSON: Exceeds the limit (4300 digits)")


def test_the_other_document_is_refused() -> None:
    assert refusal(documents.program_from_json, documents.sdfg_to_json(SDFG)) == (
        "'file.json' is not a program signature: at '$.schema',"
        " expected 'gtstub/program-signature/1', found '\"gtstub/sdfg-signature/1\"'."
    )


def edit(document: Any, path: tuple[str | int, ...], value: Any) -> str:
    *parents, last = path
    place = document
    for step in parents:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("name",), None, "at '$', expected a member 'name', found none"),
        (("surplus",), 1, "at '$', expected no member 'surplus', found one"),
        (("name",), 7, "at '$.name', expected string, found '7'"),
        (
            ("name",),
            "no name",
            "at '$.name', expected text that matches '^[A-Za-z_][A-Za-z0-9_]*$', found '\"no name\"'",
        ),
        (
            ("parameters", 0, "type", "elements", 1, "kind"),
            "list",
            "at '$.parameters[0].type.elements[1].kind', expected one of 'scalar', 'field', 'tuple', 'callback',"
            " found '\"list\"'",
        ),
        (
            ("parameters", 0, "type", "elements", 0, "dims"),
            None,
            "at '$.parameters[0].type.elements[0]', expected a member 'dims', found none",
        ),
        (
            ("parameters", 1, "type", "size"),
            3,
            "at '$.parameters[1].type', expected no member 'size', found one",
        ),
        (
            ("connectivities", 0, "max_neighbors"),
            2.0,
            "at '$.connectivities[0].max_neighbors', expected integer, found '2.0'",
        ),
        (
            ("connectivities", 0, "max_neighbors"),
            -1,
            "at '$.connectivities[0].max_neighbors', expected at least 0, found '-1'",
        ),
    ],
)
def test_violation_of_the_program_schema(path: tuple[str | int, ...], value: Any, problem: str) -> None:
    documents.program_from_json(json.dumps(program_document()), "file.json")
    message = refusal(documents.program_from_json, edit(program_document(), path, value))
    assert message == f"'file.json' is not a program signature: {problem}."


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (
            ("arguments", 0, "axes", 1, "size"),
            -4,
            "at '$.arguments[0].axes[1].size', expected at least 0, found '-4'",
        ),
        (("library",), "../lib.so", "at '$.library', expected text that matches '^[^/]+$', found '\"../lib.so\"'"),
        (("init", 1), "__x_0_Edge_range_0", "at '$.init', expected a value that 'uniqueItems' allows, found '{found}'"),
        (
            ("arguments", 1, "roles", 0, "array"),
            "y",
            "at '$.arguments[1].roles[0].array', expected the name of an array argument, found 'y'",
        ),
        (
            ("arguments", 1, "roles", 0, "axis"),
            2,
            "at '$.arguments[1].roles[0].axis', expected an axis of 'x_0', which has 2, found '2'",
        ),
        (("init", 0), "x_0", "at '$.init[0]', expected the name of a scalar argument, found 'x_0'"),
        (("arguments", 3, "is_parallel"), 1, "at '$.arguments[3].is_parallel', expected boolean, found '1'"),
        (
            ("arguments", 3, "arguments", 0, "dtype"),
            "string",
            f"at '$.arguments[3].arguments[0].dtype', expected one of {DTYPES}, found '\"string\"'",
        ),
        (
            ("arguments", 3, "arguments", 1, "shape", 0),
            "sin(N)",
            "at '$.arguments[3].arguments[1].shape[0]', expected a polynomial, found '\"sin(N)\"'",
        ),
        (
            ("arguments", 3, "arguments", 1, "strides"),
            [],
            "at '$.arguments[3].arguments[1]', expected as many strides as sizes, found 1 sizes and 0 strides",
        ),
        (
            ("arguments", 3, "results", 0),
            {"dtype": "int8", "shape": ["M*y"], "strides": ["1"]},
            "at '$.arguments', expected names of scalars in the sizes of 'see', found 'M'",
        ),
        (("arguments", 3, "name"), "x_0", "at '$.arguments', expected each name once, found 'x_0' several times"),
        (("memory_symbols", 0), "y", "at '$.memory_symbols[0]', expected a name in 'init', found 'y'"),
        (("arguments", 2, "name"), "x_0", "at '$.arguments', expected each name once, found 'x_0' several times"),
    ],
)
def test_violation_of_the_sdfg_schema(path: tuple[str | int, ...], value: Any, problem: str) -> None:
    documents.sdfg_from_json(json.dumps(sdfg_document()), "file.json")
    message = refusal(documents.sdfg_from_json, edit(sdfg_document(), path, value))
    found = '["__x_0_Edge_range_0", "__x_0_Edge_range_0"]'
    assert message == f"'file.json' is not an SDFG signature: {problem.format(found=found)}."


def test_nothing_that_is_no_object_is_a_signature() -> None:
    for text in ("[]", "null", "1", '""'):
        message = f"'file.json' is not an SDFG signature: at '$', expected object, found '{text}'."
        assert refusal(documents.sdfg_from_json, text) == message


# --- Sizes and strides that are polynomials, and parameters that a host reads -----------------------------------------


def test_shapes_survive_a_round_trip() -> None:
    text = documents.sdfg_to_json(SHAPES_SDFG)
    assert documents.sdfg_from_json(text, "s.json") == SHAPES_SDFG
    assert json.loads(text)["shapes"]["requirements"][2]["value"] == "M*N"


def test_the_source_of_a_parameter_survives_a_round_trip() -> None:
    parameters = (Parameter("self_w", FieldType("float64", (K,)), "self.w"), Parameter("x", ScalarType("int32")))
    signature = ProgramSignature("prog", parameters)
    text = documents.program_to_json(signature)
    assert documents.program_from_json(text, "p.json") == signature
    assert [each.get("source") for each in json.loads(text)["parameters"]] == ["self.w", None]


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("requirements", 0, "value"), "sin(N)", "at '$.shapes.requirements[0].value', expected a"),
        (
            ("requirements", 0, "value"),
            "Z + 1",
            "at '$.shapes.requirements[0].value', expected names of scalars, found 'Z'",
        ),
        (("requirements", 1, "array"), "nowhere", "at '$.shapes.requirements[1]"),
        (("requirements", 1, "axis"), 1, "at '$.shapes.requirements[1]"),
        (("requirements", 1, "property"), "start", "at '$.shapes.requirements[1].property'"),
        (("symbols", 0, "name"), "N", "at '$.shapes.symbols', expected each name once, and not that of an argument"),
        (("symbols", 0, "name"), "a", "at '$.shapes.symbols', expected each name once, and not that of an argument"),
        (("symbols", 0, "roles", 0, "axis"), 7, "at '$.shapes.symbols[0]"),
        (("symbols", 0, "kind"), "array", "at '$.shapes.symbols[0].kind'"),
    ],
)
def test_shapes_that_are_none(path: tuple[str | int, ...], value: Any, problem: str) -> None:
    document = json.loads(documents.sdfg_to_json(SHAPES_SDFG))
    place: Any = document["shapes"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(SignatureError) as caught:
        documents.sdfg_from_json(json.dumps(document), "s.json")
    assert str(caught.value).startswith(f"'s.json' is not an SDFG signature: {problem}")


@pytest.mark.parametrize("source", ["", "a b", "w[0]", 3, None])
def test_a_source_that_is_none(source: object) -> None:
    document = json.loads(documents.program_to_json(PROGRAM))
    document["parameters"][1]["source"] = source
    with pytest.raises(SignatureError, match=re.escape("at '$.parameters[1].source'")):
        documents.program_from_json(json.dumps(document), "p.json")


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(number: str) -> None:
    with pytest.raises(SignatureError) as caught:
        documents.parse(f'{{"wall": {number}}}', "file.json", "profile")
    assert str(caught.value) == f"'file.json' is not JSON: the number {number} is not finite."
