"""What the CLI shows: plans as JSON, tables that stay whole, jq, and code with and without colours."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from gtstub.cli.doctor import _print as print_checks
from gtstub.cli.output import FilterError, print_code, print_json
from gtstub.cli.tables.plan import print_plan, print_slots
from gtstub.entries.toolchain.doctor import Check
from gtstub.stub.plan.document import plan_to_json
from gtstub.stub.plan.model import CallPlan
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature.model import (
    Axis,
    Bounds,
    CallbackArgument,
    CallbackType,
    CallbackValue,
    Claim,
    Parameter,
    Requirement,
    Shapes,
    Unknown,
)
from tests.support.signatures import (
    EDGE,
    WHOLE_PROGRAM,
    WHOLE_SDFG,
    K,
    array,
    collection_of,
    field,
    polynomial,
    program,
    scalar,
    sdfg,
    symbol,
    tuple_of,
    use,
    with_static,
)

WHOLE = make_plan(WHOLE_SDFG, WHOLE_PROGRAM)

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Rich takes stdout for a terminal of 60 columns."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return monkeypatch


# --- Plans as JSON ----------------------------------------------------------------------------------------------------


def small_plan() -> CallPlan:
    return make_plan(
        sdfg(
            array("gt_compute_time", Axis(size=1, stride=1), access="write"),
            array("x_0", Axis(start=2, stop=9, stride=1), Axis(), access="readwrite"),
            array("y", Axis()),
            symbol("__nk", ("x_0", 1, "size"), ("y", 0, "size")),
            symbol("x_1", dtype="bool"),
            init=("__nk",),
            bounds=Bounds(1, (Claim((), (use("x_0", 0, "0", "3"),), ()),), (Unknown("y", "in a branch on data", 2),)),
        ),
        program(x=tuple_of(field(EDGE, K), scalar("bool"), scalar("int8")), gone=field(K), y=field(K)),
    )


def test_static_arguments_are_shown_with_their_values(capsys: pytest.CaptureFixture[str]) -> None:
    signature = program(n=scalar("int32"), x=tuple_of(scalar("float64"), scalar("bool")), f=scalar("float64"))
    plan = make_plan(sdfg(symbol("n")), with_static(signature, x_0=float("-inf"), x_1=True, f=0.25))
    assert plan_to_json(plan)["leaves"] == [
        {"name": "n", "path": "n", "kind": "scalar", "dtype": "int32"},
        {"name": "x_0", "path": "x[0]", "kind": "static", "dtype": "float64", "value": "-inf"},
        {"name": "x_1", "path": "x[1]", "kind": "static", "dtype": "bool", "value": True},
        {"name": "f", "path": "f", "kind": "static", "dtype": "float64", "value": 0.25},
    ]
    print_plan(plan)
    text = capsys.readouterr().out
    assert re.search(r"^x\[0\] +x_0 +float64, compiled in as -inf$", text, re.MULTILINE)
    for show in (print_plan, print_slots):
        show(plan)
        text = capsys.readouterr().out
        assert "1 slots, filled from 1 leaves." in text
        assert "\nCompiled in: x[0] = -inf, x[1] = True, f = 0.25.\n" in text
        assert "Not used" not in text


def test_collections_are_shown_with_their_keys(capsys: pytest.CaptureFixture[str]) -> None:
    plan = make_plan(sdfg(symbol("s_1")), program(s=collection_of(a=field(K), n=scalar("int32"))))
    document = plan_to_json(plan)
    assert document["parameters"] == [
        {"path": "s", "keys": ["a", "n"], "elements": [{"path": "s.a", "leaf": None}, {"path": "s.n", "leaf": "s_1"}]}
    ]
    assert document["slots"][0]["source"]["text"] == "'s.n'"
    print_plan(plan)
    text = capsys.readouterr().out
    assert re.search(r"^s\.n +s_1 +int32 +0$", text, re.MULTILINE)
    assert "The SDFG does not use 's.a'." in text


def test_a_plan_as_json_says_all_that_is_in_it() -> None:
    size_of_x = {"kind": "axis", "leaf": "x_0", "axis": 1, "property": "size", "text": "size of axis 1 of 'x[0]'"}
    size_of_y = {"kind": "axis", "leaf": "y", "axis": 0, "property": "size", "text": "size of axis 0 of 'y'"}
    assert plan_to_json(small_plan()) == {
        "schema": "gtstub/call-plan/1",
        "name": "prog",
        "sdfg_name": "prog",
        "device": "cpu",
        "parameters": [
            {
                "path": "x",
                "elements": [
                    {"path": "x[0]", "leaf": "x_0"},
                    {"path": "x[1]", "leaf": "x_1"},
                    {"path": "x[2]", "leaf": None},
                ],
            },
            {"path": "gone", "leaf": None},
            {"path": "y", "leaf": "y"},
        ],
        "leaves": [
            {
                "name": "x_0",
                "path": "x[0]",
                "kind": "field",
                "dtype": "float64",
                "device": "cpu",
                "written": True,
                "axes": [
                    {"dim": "Edge", "fixed": {"start": 2, "stop": 9, "stride": 1}, "taken": [], "used": [2, 5]},
                    {"dim": "K", "fixed": {}, "taken": ["size"]},
                ],
            },
            {"name": "x_1", "path": "x[1]", "kind": "scalar", "dtype": "bool"},
            {
                "name": "y",
                "path": "y",
                "kind": "field",
                "dtype": "float64",
                "device": "cpu",
                "written": False,
                "axes": [{"dim": "K", "fixed": {}, "taken": ["size"]}],
            },
        ],
        "slots": [
            {
                "index": 0,
                "name": "gt_compute_time",
                "dtype": "float64",
                "is_array": True,
                "c_type": "double *",
                "source": {"kind": "metric", "name": "gt_compute_time", "text": "compute time"},
            },
            {
                "index": 1,
                "name": "x_0",
                "dtype": "float64",
                "is_array": True,
                "c_type": "double *",
                "source": {"kind": "data", "leaf": "x_0", "text": "data of 'x[0]'"},
            },
            {
                "index": 2,
                "name": "y",
                "dtype": "float64",
                "is_array": True,
                "c_type": "double *",
                "source": {"kind": "data", "leaf": "y", "text": "data of 'y'"},
            },
            {
                "index": 3,
                "name": "__nk",
                "dtype": "int32",
                "is_array": False,
                "c_type": "int32_t",
                "source": size_of_x,
            },
            {
                "index": 4,
                "name": "x_1",
                "dtype": "bool",
                "is_array": False,
                "c_type": "bool",
                "source": {"kind": "value", "leaf": "x_1", "text": "'x[1]'"},
            },
        ],
        "symbols": [],
        "required_shapes": [],
        "assertions": [{"symbol": "__nk", "first": size_of_x, "later": size_of_y}],
        "init": ["__nk"],
        "memory_symbols": [],
        "bounds": [],
        "facts": [],
        "known": 1,
        "unknown": [{"array": "y", "why": "in a branch on data", "count": 2}],
        "unneeded": [],
        "workspaces": [],
    }


def test_a_plan_as_json_names_kinds_of_leaves_and_workspaces() -> None:
    document = plan_to_json(WHOLE)
    assert {leaf["name"]: leaf["kind"] for leaf in document["leaves"]} == {
        "vn": "field",
        "x_0": "field",
        "x_1_0": "scalar",
        "x_1_1": "zero_dim_field",
        "flag": "scalar",
        "out_0": "field",
        "out_1": "field",
        "gt_conn_E2V": "connectivity",
    }
    assert document["workspaces"] == [{"storage": "CPU_Heap", "device": "cpu"}]
    assert document["memory_symbols"] == ["__nk"]


# --- Tables -----------------------------------------------------------------------------------------------------------


def test_the_plan_in_a_pipe_is_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(small_plan())
    assert capsys.readouterr().out == (
        "Program 'prog', SDFG 'prog': 5 slots, filled from 3 leaves. Its fields are on cpu.\n"
        "\n"
        "argument  leaf  contract                                                         slots\n"
        "x[0]      x_0   float64 field on [Edge (start 2, stop 9, stride 1), K], written  1 3\n"
        "x[1]      x_1   bool                                                             4\n"
        "y               float64 field on [K]                                             2\n"
        "\n"
        "slot  C type    name             source\n"
        "   0  double *  gt_compute_time  compute time\n"
        "   1  double *  x_0              data of 'x[0]'\n"
        "   2  double *  y                data\n"
        "\n"
        "slot  C type   name  source\n"
        "   3  int32_t  __nk  size of axis 1 of 'x[0]'\n"
        "   4  bool     x_1   'x[1]'\n"
        "\n"
        "argument  axis  indices used\n"
        "x[0]      Edge  2 to 5\n"
        "\n"
        "Must agree:\n"
        "  __nk: size of axis 0 of 'y' equals size of axis 1 of 'x[0]'\n"
        "The SDFG does not use 'x[2]', 'gone'.\n"
        "The first call initialises the SDFG with '__nk'.\n"
        "Not known which elements are accessed: 'y': 2 accesses in a branch on data.\n"
    )


def test_the_slots_in_a_pipe_are_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    written = "float64 field on [Edge (start 2, stop 9, stride 1), K], written"
    print_slots(small_plan())
    assert capsys.readouterr().out == (
        "Program 'prog', SDFG 'prog': 5 slots, filled from 3 leaves. Its fields are on cpu.\n"
        "\n"
        "slot  C type    name             source          contract\n"
        "   0  double *  gt_compute_time  compute time\n"
        f"   1  double *  x_0              data of 'x[0]'  {written}\n"
        "   2  double *  y                data            float64 field on [K]\n"
        "\n"
        "slot  C type   name  source                    contract\n"
        "   3  int32_t  __nk  size of axis 1 of 'x[0]'  equals size of axis 0 of 'y'\n"
        "   4  bool     x_1   'x[1]'\n"
        "\n"
        "argument  axis  indices used\n"
        "x[0]      Edge  2 to 5\n"
        "\n"
        "Starts, sizes and strides of arguments must fit the C types of their slots.\n"
        "The SDFG does not use 'x[2]', 'gone'.\n"
        "The first call initialises the SDFG with '__nk'.\n"
        "Not known which elements are accessed: 'y': 2 accesses in a branch on data.\n"
    )


@pytest.mark.parametrize(
    ("init", "memory_symbols", "expected"),
    [
        ((), (), "The SDFG is initialised when the program is loaded."),
        (tuple("abcdefg"), (), "The first call initialises the SDFG with 7 symbols."),
        (("a",), ("a",), "The first call initialises the SDFG with 'a', and again when 'a' changes."),
        (
            ("a", "b"),
            ("a", "b"),
            "The first call initialises the SDFG with 'a', 'b', and again when 'a' or 'b' changes.",
        ),
    ],
)
def test_the_table_says_when_the_handle_is_initialised(
    init: tuple[str, ...], memory_symbols: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = sorted({"a", *init})
    symbols = sdfg(*map(symbol, names), init=init, memory_symbols=memory_symbols)
    print_slots(make_plan(symbols, program(**{name: scalar("int32") for name in names})))
    assert capsys.readouterr().out.splitlines()[-1] == expected


def test_the_table_names_workspaces(capsys: pytest.CaptureFixture[str]) -> None:
    print_slots(WHOLE)
    assert capsys.readouterr().out.endswith("The caller lends memory in 'CPU_Heap' on cpu.\n")


def test_nothing_is_cut_off_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 300
    print_slots(make_plan(sdfg(symbol(long)), program(**{long: scalar("int32")})))
    assert capsys.readouterr().out.count(long) == 2


@pytest.mark.usefixtures("terminal")
def test_nothing_is_cut_off_on_a_narrow_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_slots(WHOLE)
    text = ESCAPE.sub("", capsys.readouterr().out)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 60
    # A folded name goes on in the same columns of the next line.
    names = ""
    for table in re.split(r"^(?=slot)", text, flags=re.MULTILINE)[1:]:
        header, *lines = table.splitlines()
        start, end = header.index("name"), header.index("source")
        names += "".join(line[start:end].strip() for line in lines)
    for slot in WHOLE.slots:
        assert slot.name in names


def test_a_program_without_arguments_has_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(make_plan(sdfg(), program()))
    assert capsys.readouterr().out.startswith("Program 'prog', SDFG 'prog': 0 slots, filled from 0 leaves.\n")


def test_dimensions_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    """Rich would take '[bold]' for a style."""
    bold = dataclasses.replace(K, name="bold")
    print_slots(make_plan(sdfg(array("a", Axis())), program(a=field(bold))))
    assert "float64 field on [bold]" in capsys.readouterr().out


def test_slots_of_a_dace_program_show_its_polynomials_and_callbacks(capsys: pytest.CaptureFixture[str]) -> None:
    rows = polynomial("N + 2")
    described = sdfg(
        array("a", Axis(start=0)),
        array("b", Axis(start=0)),
        symbol("N", ("a", 0, "size")),
        CallbackArgument("see", (CallbackValue("float64", (rows,), (polynomial("1"),)),), (), is_parallel=False),
    )
    described = dataclasses.replace(described, shapes=Shapes((), (Requirement("b", 0, "size", rows),)))
    called = program(a=field(K), b=field(K))
    called = dataclasses.replace(
        called, parameters=(*called.parameters, Parameter("see", CallbackType(), source="self.see"))
    )
    print_slots(make_plan(described, called))
    text = capsys.readouterr().out
    assert "float64 field on [K (start 0)]; size of axis 0 is N + 2" in text
    assert "function that calls 'self.see'  function of (float64[N + 2]) that returns nothing" in text


def test_checks_name_what_is_missing_and_how_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    print_checks((Check("CMake", True, "3.30.1"), Check("C compiler", False, "not found", "Install one.")))
    assert capsys.readouterr().out == (
        "         check       found\n"
        "ok       CMake       3.30.1\n"
        "MISSING  C compiler  not found\n"
        "\n"
        "C compiler: Install one.\n"
    )


# --- Code and documents -----------------------------------------------------------------------------------------------

CODE = "/* [bold] */\nint main(void)\n{\n    return 0; /* " + 30 * "long " + "*/\n}\n"


def test_code_in_a_pipe_is_byte_for_byte(capsys: pytest.CaptureFixture[str]) -> None:
    print_code(CODE)
    assert capsys.readouterr().out == CODE


@pytest.mark.usefixtures("terminal")
def test_code_on_a_terminal_has_colours_and_the_same_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_code(CODE)
    text = capsys.readouterr().out
    assert ESCAPE.search(text)
    assert ESCAPE.sub("", text) == CODE


def test_a_document_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"ü": [1, None]})
    text = capsys.readouterr().out
    assert json.loads(text) == {"ü": [1, None]}
    assert "ü" in text


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        (".a", "1\n"),
        (".b[]", "x\ny\n"),
        (".b", '[\n "x",\n "y"\n]\n'),
        (".none", "null\n"),
        ("empty", ""),
    ],
)
def test_jq_prints_a_result_a_line(filter_: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": 1, "b": ["x", "y"]}, filter_)
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    ("filter_", "reason"),
    [
        (".[", "syntax error, unexpected end of file"),
        ("nothing", "nothing/0 is not defined"),
        (".a[]", "Cannot iterate over number (1)"),
        ('error("")', "it fails"),
    ],
)
def test_a_bad_filter_is_one_sentence(filter_: str, reason: str) -> None:
    with pytest.raises(FilterError) as error:
        print_json({"a": 1}, filter_)
    assert str(error.value) == f"The jq filter '{filter_}' does not work: {reason}."
