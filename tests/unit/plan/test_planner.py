"""The call plan: every kind of argument finds its slots, and every contradiction is refused with its own words."""

from __future__ import annotations

import dataclasses
import re

import pytest

from gtstub.errors import PlanError
from gtstub.stub.plan import model
from gtstub.stub.plan.model import (
    AxisContract,
    CallbackLeaf,
    CallPlan,
    Collection,
    FieldLeaf,
    ScalarLeaf,
    StaticLeaf,
    Tuple,
    Unused,
)
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature.dtypes import DType
from gtstub.stub.signature.model import (
    ArrayArgument,
    Axis,
    CallbackType,
    CallbackValue,
    Dimension,
    ProgramSignature,
    Requirement,
    ScalarArgument,
    SdfgSignature,
    Shapes,
    StaticDomain,
    TupleType,
    Type,
    Workspace,
)
from tests.support.signatures import (
    CALLING_PROGRAM,
    CALLING_SDFG,
    CELL,
    E2V,
    EDGE,
    NEIGHBORS,
    SHAPES_PROGRAM,
    SHAPES_SDFG,
    VERTEX,
    WHOLE_PROGRAM,
    WHOLE_SDFG,
    K,
    array,
    callback,
    collection_of,
    field,
    number,
    numbers,
    program,
    requirement,
    scalar,
    sdfg,
    symbol,
    tuple_of,
    with_static,
)

ANY = Axis()

Source = tuple[str | int, ...]
"""A source with the names of its leaves."""


def Data(leaf: str) -> Source:  # noqa: N802
    return "data", leaf


def AxisValue(leaf: str, axis: int, property_: str) -> Source:  # noqa: N802
    return "axis", leaf, axis, property_


def Value(leaf: str) -> Source:  # noqa: N802
    return "value", leaf


def Function(leaf: str) -> Source:  # noqa: N802
    return "function", leaf


def Metric(name: str) -> Source:  # noqa: N802
    return "metric", name


def shown(source: model.Source) -> Source:
    match source:
        case model.Data(leaf):
            return Data(leaf.name)
        case model.AxisValue(leaf, axis, property_):
            return AxisValue(leaf.name, axis, property_)
        case model.Value(leaf):
            return Value(leaf.name)
        case model.Function(leaf):
            return Function(leaf.name)
        case _:
            return Metric(source.name)


def assertions(plan: CallPlan) -> list[tuple[str, Source, Source]]:
    return [(each.symbol, shown(each.first), shown(each.later)) for each in plan.assertions]


def sources(plan: CallPlan) -> dict[str, Source]:
    return {slot.name: shown(slot.source) for slot in plan.slots}


# --- Every kind of argument -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"],
)
def test_scalar_of_every_dtype(dtype: DType) -> None:
    plan = make_plan(sdfg(symbol("x", dtype=dtype)), program(x=scalar(dtype)))
    assert plan.parameters == (ScalarLeaf(0, "x", "x", dtype, is_field=False),)
    assert sources(plan) == {"x": Value("x")}
    assert plan.slots[0].dtype == dtype
    assert not plan.slots[0].is_array


def test_zero_dimensional_field_is_a_scalar_slot() -> None:
    plan = make_plan(sdfg(symbol("x", dtype="float64")), program(x=field()))
    assert plan.parameters == (ScalarLeaf(0, "x", "x", "float64", is_field=True),)
    assert sources(plan) == {"x": Value("x")}


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 6])
def test_field_of_any_rank(rank: int) -> None:
    dims = [Dimension(f"D{i}", "horizontal") for i in range(rank)]
    symbols = [symbol(f"__x_D{i}_stride", ("x", i, "stride")) for i in range(rank)]
    plan = make_plan(sdfg(array("x", *[ANY] * rank), *symbols), program(x=field(*dims)))
    assert sources(plan) == {"x": Data("x")} | {f"__x_D{i}_stride": AxisValue("x", i, "stride") for i in range(rank)}
    (leaf,) = plan.leaves
    assert isinstance(leaf, FieldLeaf)
    assert leaf.axes == tuple(AxisContract(dim.name, ANY, ("stride",)) for dim in dims)


def test_every_property_of_an_axis() -> None:
    plan = make_plan(
        sdfg(
            array("x", ANY),
            symbol("n", ("x", 0, "size")),
            symbol("start", ("x", 0, "start")),
            symbol("stop", ("x", 0, "stop")),
            symbol("stride", ("x", 0, "stride")),
        ),
        program(x=field(K)),
    )
    assert sources(plan) == {
        "x": Data("x"),
        "n": AxisValue("x", 0, "size"),
        "start": AxisValue("x", 0, "start"),
        "stop": AxisValue("x", 0, "stop"),
        "stride": AxisValue("x", 0, "stride"),
    }
    (leaf,) = plan.leaves
    assert isinstance(leaf, FieldLeaf)
    assert leaf.axes[0].read == ("size", "start", "stop", "stride")


def test_local_dimension() -> None:
    plan = make_plan(sdfg(array("x", ANY, Axis(size=2, stride=1))), program(x=field(EDGE, E2V)))
    (leaf,) = plan.leaves
    assert isinstance(leaf, FieldLeaf)
    assert leaf.axes == (AxisContract("Edge", ANY, ()), AxisContract("E2V", Axis(size=2, stride=1), ()))


def test_constants_of_an_axis_are_its_contract() -> None:
    fixed = Axis(size=10, start=2, stop=12, stride=1)
    plan = make_plan(sdfg(array("x", fixed)), program(x=field(K)))
    (leaf,) = plan.leaves
    assert isinstance(leaf, FieldLeaf)
    assert leaf.axes == (AxisContract("K", fixed, ()),)
    assert sources(plan) == {"x": Data("x")}


def test_zero_origin_program_has_no_start_symbols() -> None:
    plan = make_plan(
        sdfg(array("x", Axis(start=0)), symbol("__x_K_range_1", ("x", 0, "stop"))),
        program(x=field(K)),
    )
    (leaf,) = plan.leaves
    assert isinstance(leaf, FieldLeaf)
    assert leaf.axes == (AxisContract("K", Axis(start=0), ("stop",)),)


def test_static_domain_fixes_start_and_stop() -> None:
    signature = dataclasses.replace(program(x=field(EDGE, K)), static_domains=(StaticDomain("x", ((0, 18), (1, 11))),))
    plan = make_plan(sdfg(array("x", Axis(stride=1), ANY)), signature)
    (leaf,) = plan.leaves
    assert isinstance(leaf, FieldLeaf)
    assert [axis.fixed for axis in leaf.axes] == [Axis(start=0, stop=18, stride=1), Axis(start=1, stop=11)]


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("bool", True),
        ("int8", -128),
        ("uint8", 255),
        ("int64", -(2**63)),
        ("uint64", 2**64 - 1),
        ("float32", 0.5),
        ("float64", 0.1),
        ("float64", 3),
        ("float64", float("-inf")),
    ],
)
def test_static_scalar_is_a_leaf_with_its_value(dtype: DType, value: float) -> None:
    plan = make_plan(sdfg(), with_static(program(x=scalar(dtype)), x=value))
    (leaf,) = plan.leaves
    assert leaf == StaticLeaf(0, "x", "x", dtype, value)
    assert isinstance(leaf, StaticLeaf)
    assert type(leaf.value) is (bool if dtype == "bool" else float if "float" in dtype else int)
    assert plan.arguments == ()


def test_static_float32_is_rounded_as_the_program_rounds_it() -> None:
    (leaf,) = make_plan(sdfg(), with_static(program(x=scalar("float32")), x=0.1)).leaves
    assert leaf == StaticLeaf(0, "x", "x", "float32", 0.10000000149011612)


def test_tuple_may_be_static_in_part() -> None:
    signature = with_static(program(x=tuple_of(scalar("int32"), scalar("bool"), tuple_of(scalar("int8")))), x_2_0=3)
    plan = make_plan(sdfg(symbol("x_0")), signature)
    taken, static = ScalarLeaf(0, "x_0", "x[0]", "int32", is_field=False), StaticLeaf(1, "x_2_0", "x[2][0]", "int8", 3)
    assert plan.parameters == (Tuple("x", "x", (taken, Unused("x[1]"), Tuple("x_2", "x[2]", (static,)))),)
    assert plan.leaves == (taken, static)
    assert plan.arguments == (taken,)


def test_nested_tuples() -> None:
    plan = make_plan(
        sdfg(array("x_1_0", ANY), symbol("x_0", dtype="bool"), symbol("x_1_1_0", dtype="int64")),
        program(x=tuple_of(scalar("bool"), tuple_of(field(K), tuple_of(scalar("int64"))))),
    )
    flag, inner = ScalarLeaf(0, "x_0", "x[0]", "bool", is_field=False), plan.leaves[1]
    number = ScalarLeaf(2, "x_1_1_0", "x[1][1][0]", "int64", is_field=False)
    assert isinstance(inner, FieldLeaf)
    assert inner.path == "x[1][0]"
    innermost = Tuple("x_1_1", "x[1][1]", (number,))
    assert plan.parameters == (Tuple("x", "x", (flag, Tuple("x_1", "x[1]", (inner, innermost)))),)
    assert sources(plan) == {"x_1_0": Data("x_1_0"), "x_0": Value("x_0"), "x_1_1_0": Value("x_1_1_0")}


def test_elements_of_a_collection_are_called_by_their_keys() -> None:
    plan = make_plan(
        sdfg(symbol("s_0", dtype="bool"), symbol("s_1_0_0", dtype="int64")),
        program(s=collection_of(flag=scalar("bool"), inner=tuple_of(collection_of(n=scalar("int64"))))),
    )
    flag = ScalarLeaf(0, "s_0", "s.flag", "bool", is_field=False)
    number = ScalarLeaf(1, "s_1_0_0", "s.inner[0].n", "int64", is_field=False)
    inner = Collection("s_1_0", "s.inner[0]", (number,), 0, ("n",))
    outer = Collection("s", "s", (flag, Tuple("s_1", "s.inner", (inner,))), 1, ("flag", "inner"))
    assert plan.parameters == (outer,)
    assert plan.collections == (inner, outer)


def test_collection_may_be_unused() -> None:
    plan = make_plan(sdfg(), program(s=collection_of(a=field(K)), t=collection_of()))
    assert plan.parameters == (Unused("s"), Unused("t"))
    assert plan.collections == ()


def test_out_tuple_is_written() -> None:
    plan = make_plan(
        sdfg(array("out_0", ANY, access="write"), array("out_1", ANY, access="readwrite"), array("x", ANY)),
        program(x=field(K), out=tuple_of(field(K), field(K))),
    )
    assert [(leaf.name, leaf.array.written) for leaf in plan.leaves if isinstance(leaf, FieldLeaf)] == [
        ("x", False),
        ("out_0", True),
        ("out_1", True),
    ]


def test_unused_parameters_keep_their_positions() -> None:
    plan = make_plan(
        sdfg(symbol("b", dtype="bool"), symbol("d_1", dtype="bool")),
        program(
            a=field(K),
            b=scalar("bool"),
            c=tuple_of(scalar("int32"), tuple_of(field(K))),
            d=tuple_of(scalar("bool"), scalar("bool")),
        ),
    )
    b, d_1 = (ScalarLeaf(i, n, p, "bool", is_field=False) for i, n, p in ((0, "b", "b"), (1, "d_1", "d[1]")))
    assert plan.parameters == (Unused("a"), b, Unused("c"), Tuple("d", "d", (Unused("d[0]"), d_1)))
    assert [parameter.path for parameter in plan.parameters] == ["a", "b", "c", "d"]


def test_empty_tuple_is_unused() -> None:
    assert make_plan(sdfg(), program(x=tuple_of())).parameters == (Unused("x"),)


def test_field_of_which_only_the_domain_is_used() -> None:
    plan = make_plan(
        sdfg(symbol("__x_K_range_1"), symbol("__x_K_size"), device="cuda"), program(x=field(EDGE, K, dtype="int32"))
    )
    assert sources(plan) == {
        "__x_K_range_1": AxisValue("x", 1, "stop"),
        "__x_K_size": AxisValue("x", 1, "size"),
    }
    axes = (AxisContract("Edge", ANY, ()), AxisContract("K", ANY, ("stop", "size")))
    assumed = array("x", ANY, ANY, dtype="int32", access="none", device="cuda")
    assert plan.leaves == (FieldLeaf(0, "x", "x", "int32", assumed, axes),)


def test_connectivities_come_last_and_only_when_the_sdfg_takes_them() -> None:
    other = dataclasses.replace(NEIGHBORS, name="C2E")
    plan = make_plan(
        sdfg(
            array("gt_conn_E2V", ANY, Axis(stride=1), dtype="int32"),
            array("vn", ANY),
            symbol("__gt_conn_E2V_source_size", ("gt_conn_E2V", 0, "size")),
            symbol("__gt_conn_E2V_source_stride", ("gt_conn_E2V", 0, "stride")),
        ),
        program("prog", other, NEIGHBORS, vn=field(EDGE)),
    )
    axes = (
        AxisContract("Edge", Axis(start=0), ("size", "stride")),
        AxisContract("E2V", Axis(start=0, size=2, stride=1), ()),
    )
    descriptor = array("gt_conn_E2V", ANY, Axis(stride=1), dtype="int32")
    table = FieldLeaf(1, "gt_conn_E2V", "E2V", "int32", descriptor, axes, "Vertex")
    assert plan.connectivities == (table,)
    assert [leaf.name for leaf in plan.leaves] == ["vn", "gt_conn_E2V"]
    assert sources(plan)["__gt_conn_E2V_source_size"] == AxisValue("gt_conn_E2V", 0, "size")


def test_parameter_that_is_called_like_a_connectivity_is_a_parameter() -> None:
    plan = make_plan(sdfg(array("gt_conn_E2V", ANY)), program(gt_conn_E2V=field(EDGE)))
    assert plan.connectivities == ()
    assert [leaf.name for leaf in plan.leaves] == ["gt_conn_E2V"]


def test_callbacks() -> None:
    plan = make_plan(CALLING_SDFG, CALLING_PROGRAM)
    assert [leaf.name for leaf in plan.callbacks] == ["now", "see", "weigh", "smooth", "split"]
    assert {name: source for name, source in sources(plan).items() if source[0] == "function"} == {
        name: Function(name) for name in ("now", "see", "smooth", "split", "weigh")
    }
    assert [(symbol.name, shown(symbol.source)) for symbol in plan.symbols] == [("M", AxisValue("y", 1, "size"))]
    assert [slot.c_type for slot in plan.init] == [
        "int32_t",
        "double",
        *(f"gts_function_{name} *" for name in ("now", "see", "smooth", "split", "weigh")),
    ]


@pytest.mark.parametrize(
    ("results", "returned", "passed"),
    [
        ((), None, []),
        ((number("bool"),), "bool", []),
        ((numbers("int64", "4"),), None, ["int64"]),
        ((number("bool"), number("int8")), None, ["bool", "int8"]),
    ],
)
def test_results_of_callbacks(results: tuple[CallbackValue, ...], returned: str | None, passed: list[str]) -> None:
    taken = sdfg(callback("f", number("float64"), returns=results))
    leaf = make_plan(taken, program(f=CallbackType())).leaves[0]
    assert isinstance(leaf, CallbackLeaf)
    assert (leaf.returned and leaf.returned.dtype) == returned
    assert [value.dtype for value in leaf.values] == ["float64", *passed]


def test_callback_that_is_called_like_a_metric_is_a_callback() -> None:
    plan = make_plan(sdfg(callback("gt_metrics_level")), program(gt_metrics_level=CallbackType()))
    assert sources(plan) == {"gt_metrics_level": Function("gt_metrics_level")}


def test_callback_may_be_unused() -> None:
    assert make_plan(sdfg(), program(f=CallbackType())).parameters == (Unused("f"),)


def test_metrics_slots_are_no_arguments_of_the_program() -> None:
    plan = make_plan(
        sdfg(array("gt_compute_time", Axis(size=1, stride=1), access="write"), symbol("gt_metrics_level")), program()
    )
    assert sources(plan) == {
        "gt_compute_time": Metric("gt_compute_time"),
        "gt_metrics_level": Metric("gt_metrics_level"),
    }
    assert plan.leaves == ()


def test_init_and_memory_symbols_are_slots() -> None:
    plan = make_plan(WHOLE_SDFG, WHOLE_PROGRAM)
    assert [slot.name for slot in plan.init] == ["__nk", "flag"]
    assert [slot.name for slot in plan.memory_symbols] == ["__nk"]
    assert plan.workspaces == (Workspace("CPU_Heap", "cpu"),)


def test_slots_are_in_the_order_of_the_sdfg() -> None:
    plan = make_plan(WHOLE_SDFG, WHOLE_PROGRAM)
    assert [(slot.index, slot.name) for slot in plan.slots] == [
        (i, argument.name) for i, argument in enumerate(WHOLE_SDFG.arguments)
    ]


# --- Symbols ----------------------------------------------------------------------------------------------------------


def test_first_leaf_in_program_order_defines_and_later_ones_assert() -> None:
    plan = make_plan(WHOLE_SDFG, WHOLE_PROGRAM)
    vn, x_0, out_0 = AxisValue("vn", 1, "size"), AxisValue("x_0", 0, "size"), AxisValue("out_0", 1, "size")
    assert sources(plan)["__nk"] == vn  # though 'out_0' comes first in the SDFG
    assert [(a.symbol, shown(a.first), shown(a.later)) for a in plan.assertions] == [
        ("__nk", vn, x_0),
        ("__nk", vn, out_0),
    ]


def test_two_axes_of_one_leaf_assert_each_other() -> None:
    plan = make_plan(
        sdfg(array("x", ANY, ANY), symbol("n", ("x", 1, "size"), ("x", 0, "size"))), program(x=field(CELL, K))
    )
    assert assertions(plan) == [("n", AxisValue("x", 0, "size"), AxisValue("x", 1, "size"))]


def test_scalar_that_is_a_size_as_well_defines_it() -> None:
    plan = make_plan(sdfg(array("x", ANY), symbol("n", ("x", 0, "size"))), program(x=field(K), n=scalar("int32")))
    assert sources(plan)["n"] == Value("n")
    assert assertions(plan) == [("n", Value("n"), AxisValue("x", 0, "size"))]


def test_roles_are_believed_before_names() -> None:
    plan = make_plan(
        sdfg(array("x", ANY), array("y", ANY), symbol("__x_K_stride", ("y", 0, "stride"))),
        program(x=field(K), y=field(K)),
    )
    assert sources(plan)["__x_K_stride"] == AxisValue("y", 0, "stride")


@pytest.mark.parametrize(
    ("suffix", "property_"), [("range_0", "start"), ("range_1", "stop"), ("size", "size"), ("stride", "stride")]
)
def test_symbol_that_no_descriptor_mentions_is_known_by_its_name(suffix: str, property_: str) -> None:
    name = f"__x_1_K_{suffix}"
    plan = make_plan(sdfg(array("x_1", ANY, ANY), symbol(name)), program(x=tuple_of(field(K), field(EDGE, K))))
    assert sources(plan)[name] == AxisValue("x_1", 1, property_)


# --- Refusals: the good case first ------------------------------------------------------------------------------------

CONTRADICT = "The signatures of program 'prog' contradict each other: "


def refuses(
    good: tuple[SdfgSignature, ProgramSignature], bad: tuple[SdfgSignature, ProgramSignature], text: str
) -> None:
    make_plan(*good)
    with pytest.raises(PlanError, match=f"^{re.escape(text)}$"):
        make_plan(*bad)


def test_refuses_dtype_of_a_scalar() -> None:
    refuses(
        (sdfg(symbol("x_0", dtype="int64")), program(x=tuple_of(scalar("int64")))),
        (sdfg(symbol("x_0", dtype="int64")), program(x=tuple_of(scalar("int32")))),
        CONTRADICT + "'x[0]' has dtype 'int32' in the program, but 'int64' in the SDFG.",
    )


@pytest.mark.parametrize("name", ["y", "x_0", "f"])
def test_refuses_static_argument_that_is_no_scalar_of_the_program(name: str) -> None:
    signature = program(x=scalar("int32"), f=field(K))
    refuses(
        (sdfg(), with_static(signature, x=1)),
        (sdfg(), with_static(signature, **{"x": 1, name: 1})),
        CONTRADICT + f"static argument '{name}' is not a scalar of the program.",
    )


@pytest.mark.parametrize(
    ("dtype", "good", "bad", "text"),
    [
        ("int8", 127, 128, "128"),
        ("uint8", 0, -1, "-1"),
        ("int32", 1, 1.0, "1.0"),
        ("int32", 1, True, "True"),
        ("bool", True, 1, "1"),
        ("float64", 1.0, True, "True"),
        ("float32", 1e38, 1e39, "1e+39"),
        ("float64", 10**300, 10**400, str(10**400)),
    ],
)
def test_refuses_static_value_that_does_not_fit(dtype: DType, good: float, bad: float, text: str) -> None:
    signature = program(x=tuple_of(scalar(dtype)))
    refuses(
        (sdfg(), with_static(signature, x_0=good)),
        (sdfg(), with_static(signature, x_0=bad)),
        CONTRADICT + f"static argument 'x[0]' is {text}, which does not fit '{dtype}'.",
    )


def test_refuses_static_argument_that_the_sdfg_takes() -> None:
    signature = program(x=scalar("int32"))
    refuses(
        (sdfg(symbol("x")), signature),
        (sdfg(symbol("x")), with_static(signature, x=1)),
        CONTRADICT + "'x' is static in the program, but an argument of the SDFG.",
    )


def test_refuses_another_number_of_keys_than_of_elements() -> None:
    elements = (scalar("bool"), scalar("bool"))
    refuses(
        (sdfg(symbol("x_0_0", dtype="bool")), program(x=tuple_of(TupleType(elements, ("a", "b"))))),
        (sdfg(symbol("x_0_0", dtype="bool")), program(x=tuple_of(TupleType(elements, ("a",))))),
        CONTRADICT + "'x[0]' has 2 elements, but 1 keys.",
    )


def test_refuses_dtype_of_a_field() -> None:
    refuses(
        (sdfg(array("x", ANY)), program(x=field(K))),
        (sdfg(array("x", ANY)), program(x=field(K, dtype="float32"))),
        CONTRADICT + "'x' has dtype 'float32' in the program, but 'float64' in the SDFG.",
    )


def test_refuses_dtype_of_a_connectivity() -> None:
    refuses(
        (sdfg(array("gt_conn_E2V", ANY, ANY, dtype="int32")), program("prog", NEIGHBORS)),
        (sdfg(array("gt_conn_E2V", ANY, ANY, dtype="int64")), program("prog", NEIGHBORS)),
        CONTRADICT + "'E2V' has dtype 'int32' in the program, but 'int64' in the SDFG.",
    )


def test_refuses_rank() -> None:
    refuses(
        (sdfg(array("x", ANY, ANY)), program(x=field(EDGE, K))),
        (sdfg(array("x", ANY)), program(x=field(EDGE, K))),
        CONTRADICT + "'x' has 2 dimensions in the program, but 1 in the SDFG.",
    )


def test_refuses_rank_of_a_connectivity() -> None:
    refuses(
        (sdfg(array("gt_conn_E2V", ANY, ANY, dtype="int32")), program("prog", NEIGHBORS)),
        (sdfg(array("gt_conn_E2V", ANY, dtype="int32")), program("prog", NEIGHBORS)),
        CONTRADICT + "'E2V' has 2 dimensions in the program, but 1 in the SDFG.",
    )


def test_refuses_rank_of_a_static_domain() -> None:
    def with_domain(*ranges: tuple[int, int]) -> ProgramSignature:
        return dataclasses.replace(program(x=field(EDGE, K)), static_domains=(StaticDomain("x", ranges),))

    refuses(
        (sdfg(array("x", ANY, ANY)), with_domain((0, 4), (0, 4))),
        (sdfg(array("x", ANY, ANY)), with_domain((0, 4))),
        CONTRADICT + "'x' has 2 dimensions in the program, but 1 in the SDFG.",
    )


@pytest.mark.parametrize(
    ("domains", "text"),
    [
        ([("x", (0, 4)), ("x", (0, 5))], "static domain 'x' is given several times."),
        ([("x", (4, 3))], "static domain 'x' has the range from 4 to 3."),
        ([("y", (0, 4))], "static domain 'y' is not that of a field of the program."),
        ([("n", (0, 4))], "static domain 'n' is not that of a field of the program."),
    ],
)
def test_refuses_static_domains(domains: list[tuple[str, tuple[int, int]]], text: str) -> None:
    def with_domains(domains: list[tuple[str, tuple[int, int]]]) -> tuple[SdfgSignature, ProgramSignature]:
        static = tuple(StaticDomain(leaf, (range_,)) for leaf, range_ in domains)
        signature = program(x=field(K), n=scalar("int32"), unused=field(K))
        return sdfg(array("x", ANY)), dataclasses.replace(signature, static_domains=static)

    refuses(with_domains([("x", (3, 3)), ("unused", (0, 4))]), with_domains(domains), CONTRADICT + text)


def test_refuses_what_is_given_several_times() -> None:
    static = with_static(program(x=scalar("int32")), x=1)
    twice = dataclasses.replace(static, static_arguments=2 * static.static_arguments)
    refuses((sdfg(), static), (sdfg(), twice), CONTRADICT + "static argument 'x' is given several times.")
    connectivities = program("prog", NEIGHBORS)
    twice = dataclasses.replace(connectivities, connectivities=2 * connectivities.connectivities)
    refuses((sdfg(), connectivities), (sdfg(), twice), CONTRADICT + "connectivity 'E2V' is given several times.")
    parameters = program(x=scalar("int32"))
    twice = dataclasses.replace(parameters, parameters=2 * parameters.parameters)
    refuses(
        (sdfg(), parameters),
        (sdfg(), twice),
        "Two parameters of program 'prog' are called 'x' after tuples are flattened.",
    )


def test_refuses_memory_symbol_that_is_no_integer() -> None:
    def of_dtype(dtype: DType) -> tuple[SdfgSignature, ProgramSignature]:
        made = dataclasses.replace(sdfg(symbol("n", dtype=dtype)), init=("n",), memory_symbols=("n",))
        return made, program(n=scalar(dtype))

    message = CONTRADICT + "memory symbol 'n' has dtype 'float64', not an integer."
    refuses(of_dtype("int32"), of_dtype("float64"), message)


@pytest.mark.parametrize(
    ("name", "problem"), [("int", "is reserved in C or C++"), ("n\n", "is not an identifier of C")]
)
def test_refuses_name_of_a_slot(name: str, problem: str) -> None:
    def named(name: str) -> tuple[SdfgSignature, ProgramSignature]:
        return sdfg(array("x", ANY), symbol(name, ("x", 0, "size"))), program(x=field(K))

    refuses(named("n"), named(name), f"The name of slot '{name}' of program 'prog' {problem}.")


@pytest.mark.parametrize("has_array", [True, False])
def test_refuses_more_dimensions_than_the_runtime_has(has_array: bool) -> None:
    """Also of a field of which the SDFG takes only symbols."""

    def of_rank(rank: int) -> tuple[SdfgSignature, ProgramSignature]:
        dims = [Dimension(f"D{i}", "horizontal") for i in range(rank)]
        argument = array("x", *[ANY] * rank) if has_array else symbol("__x_D0_range_1")
        return sdfg(argument), program(x=field(*dims))

    refuses(of_rank(6), of_rank(7), "'x' of program 'prog' has 7 dimensions, but a stub passes arrays of at most 6.")


def test_refuses_scalar_for_an_array() -> None:
    refuses(
        (sdfg(array("x", ANY)), program(x=field(K))),
        (sdfg(array("x", ANY)), program(x=scalar("float64"))),
        CONTRADICT + "'x' is a scalar in the program, but an array in the SDFG.",
    )


@pytest.mark.parametrize(
    ("type_", "kind"), [(scalar("float64"), "a scalar"), (field(dtype="float64"), "a scalar"), (field(K), "a field")]
)
def test_refuses_callback_for_another_kind(type_: Type, kind: str) -> None:
    refuses(
        (sdfg(callback("x")), program(x=CallbackType())),
        (sdfg(callback("x")), program(x=type_)),
        CONTRADICT + f"'x' is {kind} in the program, but a callback in the SDFG.",
    )


@pytest.mark.parametrize("argument", [array("x", ANY), symbol("x")])
def test_refuses_another_kind_for_a_callback(argument: ArrayArgument | ScalarArgument) -> None:
    refuses(
        (sdfg(callback("x")), program(x=CallbackType())),
        (sdfg(argument), program(x=CallbackType())),
        CONTRADICT + "'x' is a callback in the program, but not in the SDFG.",
    )


def test_refuses_callback_that_nobody_passes() -> None:
    refuses(
        (sdfg(callback("f")), program(f=CallbackType())),
        (sdfg(callback("f")), program()),
        CONTRADICT + "no argument of the program determines callback 'f' of the SDFG.",
    )


def test_refuses_field_for_a_scalar() -> None:
    refuses(
        (sdfg(symbol("x", dtype="float64")), program(x=scalar("float64"))),
        (sdfg(symbol("x", dtype="float64")), program(x=field(K))),
        CONTRADICT + "'x' is a field in the program, but a scalar in the SDFG.",
    )


def test_refuses_connectivity_that_the_program_does_not_have() -> None:
    good = sdfg(array("gt_conn_E2V", ANY, ANY, dtype="int32"))
    refuses(
        (good, program("prog", NEIGHBORS)),
        (good, program("prog")),
        CONTRADICT + "the SDFG takes connectivity 'gt_conn_E2V', which the program does not have.",
    )


def test_refuses_connectivity_that_is_a_scalar() -> None:
    refuses(
        (sdfg(array("gt_conn_E2V", ANY, ANY, dtype="int32")), program("prog", NEIGHBORS)),
        (sdfg(symbol("gt_conn_E2V")), program("prog", NEIGHBORS)),
        CONTRADICT + "connectivity 'E2V' is a scalar in the SDFG.",
    )


def test_refuses_number_of_neighbors() -> None:
    refuses(
        (sdfg(array("gt_conn_E2V", ANY, Axis(size=2), dtype="int32")), program("prog", NEIGHBORS)),
        (sdfg(array("gt_conn_E2V", ANY, Axis(size=4), dtype="int32")), program("prog", NEIGHBORS)),
        CONTRADICT + "connectivity 'E2V' has 2 neighbors in the program, but 4 in the SDFG.",
    )


def test_refuses_symbol_that_nobody_determines() -> None:
    refuses(
        (sdfg(array("x", ANY), symbol("__n", ("x", 0, "size"))), program(x=field(K))),
        (sdfg(array("x", ANY), symbol("__n")), program(x=field(K))),
        CONTRADICT + "no argument of the program determines symbol '__n' of the SDFG.",
    )


def test_refuses_array_that_nobody_determines() -> None:
    refuses(
        (sdfg(array("x", ANY)), program(x=field(K))),
        (sdfg(array("x", ANY), array("y", ANY)), program(x=field(K))),
        CONTRADICT + "no argument of the program determines array 'y' of the SDFG.",
    )


def test_refuses_symbol_of_an_array_that_is_no_argument() -> None:
    time = array("gt_compute_time", ANY, access="write")
    refuses(
        (sdfg(time), program()),
        (sdfg(time, symbol("__n", ("gt_compute_time", 0, "size"))), program()),
        CONTRADICT + "no argument of the program determines symbol '__n' of the SDFG.",
    )


@pytest.mark.parametrize(
    "bad", [array("gt_metrics_level", ANY, dtype="int32"), symbol("gt_metrics_level", dtype="int64")]
)
def test_refuses_metrics_level_of_another_type(bad: object) -> None:
    refuses(
        (sdfg(symbol("gt_metrics_level")), program()),
        (sdfg(bad), program()),  # type: ignore[arg-type]
        CONTRADICT + "'gt_metrics_level' is not of the type that gt4py gives its metrics.",
    )


def test_refuses_compute_time_of_another_type() -> None:
    refuses(
        (sdfg(array("gt_compute_time", ANY)), program()),
        (sdfg(symbol("gt_compute_time", dtype="float64")), program()),
        CONTRADICT + "'gt_compute_time' is not of the type that gt4py gives its metrics.",
    )


def test_refuses_symbol_that_is_no_integer_of_32_or_64_bits() -> None:
    for dtype in ("int32", "int64"):
        make_plan(sdfg(array("x", ANY), symbol("n", ("x", 0, "size"), dtype=dtype)), program(x=field(K)))
    refuses(
        (sdfg(array("x", ANY), symbol("n", ("x", 0, "size"))), program(x=field(K))),
        (sdfg(array("x", ANY), symbol("n", ("x", 0, "size"), dtype="int16")), program(x=field(K))),
        CONTRADICT + "symbol 'n' has dtype 'int16', not 'int32' or 'int64'.",
    )


def test_refuses_scalar_that_is_a_size_but_no_integer() -> None:
    def of_dtype(dtype: DType) -> tuple[SdfgSignature, ProgramSignature]:
        return (
            sdfg(array("x", ANY), symbol("n", ("x", 0, "size"), dtype=dtype)),
            program(x=field(K), n=scalar(dtype)),
        )

    refuses(
        of_dtype("int32"), of_dtype("float64"), CONTRADICT + "symbol 'n' has dtype 'float64', not 'int32' or 'int64'."
    )


@pytest.mark.parametrize("names", [(("y",), ()), (("x",), ("y",))])
def test_refuses_init_symbol_that_is_no_argument(names: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
    init, memory_symbols = names
    refuses(
        (sdfg(symbol("x"), init=("x",), memory_symbols=("x",)), program(x=scalar("int32"))),
        (sdfg(symbol("x"), init=init, memory_symbols=memory_symbols), program(x=scalar("int32"))),
        CONTRADICT + "__dace_init takes 'y', which is not an argument of the SDFG.",
    )


def test_refuses_vertex_field_that_shares_the_name_of_a_tuple_element() -> None:
    refuses(
        (sdfg(array("x_0", ANY)), program(x=tuple_of(field(K)))),
        (sdfg(array("x_0", ANY)), program(x=tuple_of(field(K)), x_0=field(VERTEX))),
        "Two arguments of program 'prog' are called 'x_0' after tuples are flattened.",
    )


# --- Sizes and strides that are polynomials ---------------------------------------------------------------------------


def shaped(
    *scalars: ScalarArgument,
    requirements: tuple[Requirement, ...],
    symbols: tuple[ScalarArgument, ...] = (),
) -> SdfgSignature:
    """An SDFG with arrays `a` and `b` of one axis, and these scalars."""
    arrays = array("a", Axis(start=0, stride=1)), array("b", Axis(start=0, stride=1))
    return dataclasses.replace(sdfg(*arrays, *scalars), shapes=Shapes(symbols, requirements))


TWO = program(a=field(K), b=field(K))


def test_symbols_and_shapes() -> None:
    plan = make_plan(SHAPES_SDFG, SHAPES_PROGRAM)
    assert sources(plan) == {
        **{name: Data(name) for name in ("a", "edges", "f", "g", "odd", "table", "twice", "wide")},
        "H": AxisValue("odd", 0, "size"),
        "L": AxisValue("wide", 0, "size"),
        "M": Value("M"),
        "N": AxisValue("a", 0, "size"),
    }
    (odd,) = (slot.source for slot in plan.slots if slot.name == "H")
    assert isinstance(odd, model.AxisValue)
    assert (odd.minus, odd.divisor) == (1, 2)
    assert [(slot.index, slot.name, shown(slot.source)) for slot in plan.symbols] == [
        (-1, "T", AxisValue("f", 0, "size"))
    ]
    assert assertions(plan) == [("T", AxisValue("f", 0, "size"), AxisValue("g", 0, "size"))]
    assert [
        (each.leaf.name, each.axis, each.name, str(each.value), each.has_scalar) for each in plan.required_shapes
    ] == [
        ("edges", 0, "size", "N + 1", False),
        ("twice", 0, "size", "2*N", False),
        ("table", 0, "size", "M*N", True),
        ("odd", 0, "size", "2*H + 1", False),
        ("f", 0, "stride", "N + T", False),
        ("g", 0, "stride", "2*M", True),
    ]
    assert {leaf.name: leaf.axes[0].wide for leaf in plan.fields if leaf.axes[0].wide} == {
        "table": ("size",),  # computed, and compared as int64
        "wide": ("size",),
        "f": ("stride",),
    }


def test_a_symbol_of_an_affine_size() -> None:
    """A factor of 1 needs no check: any size is one of a value of the symbol."""
    plan = make_plan(shaped(symbol("n"), requirements=(requirement("a", 0, "size", "n - 2"),)), TWO)
    (slot,) = (slot for slot in plan.slots if slot.name == "n")
    assert isinstance(slot.source, model.AxisValue)
    assert (shown(slot.source), slot.source.minus, slot.source.divisor) == (AxisValue("a", 0, "size"), -2, 1)
    assert plan.required_shapes == ()


def test_a_size_is_a_better_source_than_a_stride() -> None:
    requirements = requirement("a", 0, "stride", "n + 1"), requirement("b", 0, "size", "n + 2")
    plan = make_plan(shaped(symbol("n"), requirements=requirements), TWO)
    assert sources(plan)["n"] == AxisValue("b", 0, "size")
    assert [(each.leaf.name, each.name) for each in plan.required_shapes] == [("a", "stride")]


def test_sources_of_a_symbol_are_in_program_order_and_sizes_come_first() -> None:
    """Not in the order of the SDFG. A stride that differs follows from a size that does."""
    requirements = requirement("a", 0, "size", "n + 1"), requirement("b", 0, "size", "n + 2")
    plan = make_plan(shaped(symbol("n"), requirements=requirements), program(b=field(K), a=field(K)))
    assert sources(plan)["n"] == AxisValue("b", 0, "size")
    assert [each.leaf.name for each in plan.required_shapes] == ["a"]
    roles = ("a", 0, "stride"), ("a", 0, "size"), ("b", 0, "stride"), ("b", 0, "size")
    plan = make_plan(shaped(symbol("n", *roles), requirements=()), program(b=field(K), a=field(K)))
    first = AxisValue("b", 0, "size")
    others = AxisValue("a", 0, "size"), AxisValue("b", 0, "stride"), AxisValue("a", 0, "stride")
    assert assertions(plan) == [("n", first, other) for other in others]


def test_a_symbol_in_a_product_is_a_quotient() -> None:
    signature = shaped(symbol("m"), symbol("n", ("a", 0, "size")), requirements=(requirement("b", 0, "size", "m*n"),))
    plan = make_plan(signature, TWO)
    (slot,) = plan.solved
    assert isinstance(slot.source, model.Solution)
    assert (slot.name, slot.source.text) == ("m", "(size of axis 0 of 'b') / (n)")
    assert [(each.leaf.name, each.text, each.has_scalar) for each in plan.required_shapes] == [("b", "m*n", False)]
    plan = make_plan(signature, program(a=field(K), b=field(K), m=scalar("int32")))
    assert sources(plan)["m"] == Value("m")


def test_a_solution_depends_on_scalars() -> None:
    """So it is computed again when they change, and so is what is compared with it."""
    requirements = requirement("a", 0, "size", "k*m"), requirement("b", 0, "size", "m + n")
    signature = shaped(symbol("k"), symbol("m"), symbol("n"), requirements=requirements)
    plan = make_plan(signature, program(a=field(K), b=field(K), k=scalar("int32")))
    assert [(slot.name, slot.source.has_scalar) for slot in plan.solved] == [("m", True), ("n", True)]
    assert [each.has_scalar for each in plan.required_shapes] == [True, True]
    assert [slot.name for slot in plan.checked_scalars] == ["k"]


def test_symbols_that_nothing_determines_are_named_together() -> None:
    signature = shaped(symbol("m"), symbol("n"), symbol("o"), requirements=(requirement("b", 0, "size", "m*n"),))
    with pytest.raises(PlanError, match=r"no argument of the program determines symbols 'm', 'n', 'o' of the SDFG"):
        make_plan(signature, TWO)
    with pytest.raises(PlanError, match=r"no argument of the program determines symbol 'o' of the SDFG"):
        make_plan(signature, program(a=field(K), b=field(K), m=scalar("int32")))


def test_a_passed_symbol_that_the_sdfg_does_not_take() -> None:
    roles = ("a", 0, "size"), ("b", 0, "size")
    signature = shaped(requirements=(), symbols=(symbol("n", *roles),))
    plan = make_plan(signature, program(a=field(K), b=field(K), n=scalar("int32")))
    assert assertions(plan) == [
        ("n", Value("n"), AxisValue("a", 0, "size")),
        ("n", Value("n"), AxisValue("b", 0, "size")),
    ]
    assert sources(plan).keys() == {"a", "b"}
    with pytest.raises(PlanError, match="'n'"):
        make_plan(signature, program(a=field(K), b=field(K), n=scalar("int64")))


@pytest.mark.parametrize(
    ("dtype", "is_right"), [("int32", True), ("int64", True), ("int16", False), ("float64", False)]
)
def test_types_of_symbols(dtype: DType, is_right: bool) -> None:
    signature = shaped(symbol("n", ("a", 0, "size"), dtype=dtype), requirements=())
    if is_right:
        assert sources(make_plan(signature, TWO))["n"] == AxisValue("a", 0, "size")
        return
    with pytest.raises(PlanError, match=f"symbol 'n' has dtype '{dtype}', not 'int32' or 'int64'"):
        make_plan(signature, TWO)
