"""Bounds of an SDFG become indices of dimensions, in contracts where they are the same in each call."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from gtstub.errors import PlanError
from gtstub.stub.plan.model import CallPlan, FieldLeaf
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.plan.wording import accesses_not_known, indices_used
from gtstub.stub.signature.expressions import Expression
from gtstub.stub.signature.model import Axis, Bounds, Claim, Condition, StaticDomain, Unknown
from tests.support.signatures import (
    EDGE,
    GATHER_PROGRAM,
    GATHER_SDFG,
    K,
    array,
    field,
    follow,
    program,
    scalar,
    sdfg,
    symbol,
    use,
    value,
)

START = symbol("__x_K_range_0", ("x", 0, "start"))
PROGRAM = program(x=field(K), n=scalar("int32"))


def plan_of(*claims: Claim, axis: Axis = Axis(), start: bool = True) -> CallPlan:  # noqa: B008  frozen
    arguments = (array("x", axis), *([START] if start else []), symbol("n"))
    return make_plan(sdfg(*arguments, bounds=Bounds(1, claims, ())), PROGRAM)


def claim(lowest: str, highest: str, *when: Condition) -> Claim:
    return Claim(when, (use("x", 0, lowest, highest),), ())


def used(plan: CallPlan) -> tuple[int, int] | None:
    (leaf,) = plan.fields
    return leaf.axes[0].used


def test_the_start_cancels() -> None:
    plan = plan_of(claim("2 - __x_K_range_0", "7 - __x_K_range_0"))
    assert used(plan) == (2, 7)
    assert plan.bounds == ()
    assert indices_used(plan, plan.leaves[0]) == ("K 2 to 7",)


def test_a_second_claim_widens_the_first() -> None:
    ends = ("0", "9"), ("4", "5"), ("-2", "-1")
    claims = [claim(f"{low} - __x_K_range_0", f"{high} - __x_K_range_0") for low, high in ends]
    for order in itertools.permutations(claims):
        assert used(plan_of(*order)) == (-2, 9)
    assert used(plan_of(Claim((), tuple(each.uses[0] for each in claims), ()))) == (-2, 9)


def test_a_condition_on_no_symbol_is_decided() -> None:
    zero, one, start = value("0"), value("1"), value("__x_K_range_0")
    here = ("2 - __x_K_range_0", "7 - __x_K_range_0")
    assert used(plan_of(claim(*here, Condition(zero, "<", one)))) == (2, 7)
    assert used(plan_of(claim(*here, Condition(start, "==", start)))) == (2, 7)
    assert used(plan_of(claim(*here, Condition(one, "<", one)))) is None
    plan = plan_of(claim(*here, Condition(start, "!=", start), Condition(zero, "<", value("n"))))
    assert (used(plan), plan.bounds) == (None, ())


def test_a_start_that_was_fixed_is_added() -> None:
    assert used(plan_of(claim("0", "3"), axis=Axis(start=-2), start=False)) == (-2, 1)


def test_without_a_start_nothing_is_claimed() -> None:
    plan = plan_of(claim("0", "3"), start=False)
    assert used(plan) is None
    assert plan.bounds == ()


def test_scalars_and_conditions_are_left_to_calls() -> None:
    positive = Condition(value("0"), "<", value("n"))
    plan = plan_of(
        claim("-__x_K_range_0", "n - 1 - __x_K_range_0", positive), claim("-__x_K_range_0", "-__x_K_range_0")
    )
    assert used(plan) == (0, 0)
    (bounds,) = plan.bounds
    (indices,) = bounds.indices
    assert bounds.when == (positive,)
    assert (indices.lowest, indices.highest) == ((Expression(),), (value("n - 1"),))
    assert [slot.name for slot in plan.checked_scalars] == ["n"]
    assert indices_used(plan, plan.leaves[0]) == ("K 0 to 0", "K 0 to n - 1 if 0 < n")


def test_a_symbol_of_an_array_is_no_scalar() -> None:
    plan = plan_of(claim("0", "n"))
    assert [slot.name for slot in plan.bounding_slots] == ["__x_K_range_0", "n"]
    assert [slot.name for slot in plan.checked_scalars] == ["n"]


@pytest.mark.parametrize(
    ("start", "is_claimed"), [(2**48, True), (-(2**48), True), (2**48 + 1, False), (1 - 2**63, False)]
)
def test_starts_with_which_sums_could_overflow_make_no_claim(start: int, is_claimed: bool) -> None:
    plan = plan_of(claim("0", "3"), claim("0", "n"), axis=Axis(start=start), start=False)
    assert used(plan) == ((start, start + 3) if is_claimed else None)
    assert len(plan.bounds) == is_claimed
    signature = dataclasses.replace(PROGRAM, static_domains=(StaticDomain("x", ((start, start),)),))
    document = sdfg(array("x", Axis()), symbol("n"), bounds=Bounds(1, (claim("0", "n"),), ()))
    assert len(make_plan(document, signature).bounds) == is_claimed


@pytest.mark.parametrize(
    ("axis", "indices"),
    [
        (Axis(start=0, stop=3), "0 to 2"),
        (Axis(start=0, size=3), "0 to 2"),
        (Axis(start=1, stop=4), "1 to 3"),
        (Axis(start=0), None),
    ],
)
def test_indices_that_were_compiled_out_are_a_contradiction(axis: Axis, indices: str | None) -> None:
    assert axis.start is not None
    whole = claim("0", f"{3 - axis.start}") if axis.start == 0 else claim("-1", "1")
    if indices is None:
        assert used(plan_of(whole, axis=axis, start=False)) == (0, 3)
        return
    with pytest.raises(PlanError, match=rf"the SDFG accesses the indices 0 to \d on axis 0 \('K'\) of 'x'.* {indices}"):
        plan_of(whole, axis=axis, start=False)


def test_a_static_domain_is_the_start() -> None:
    signature = dataclasses.replace(PROGRAM, static_domains=(StaticDomain("x", ((4, 9),)),))
    document = sdfg(array("x", Axis()), symbol("n"), bounds=Bounds(1, (claim("0", "4"),), ()))
    assert used(make_plan(document, signature)) == (4, 8)
    with pytest.raises(PlanError, match="accesses the indices 4 to 9 on axis 0"):
        make_plan(dataclasses.replace(document, bounds=Bounds(1, (claim("0", "5"),), ())), signature)


def test_tables_and_their_fields() -> None:
    plan = make_plan(GATHER_SDFG, GATHER_PROGRAM)
    ((table,),) = (bounds.tables for bounds in plan.bounds)
    assert (table.table.path, table.follow.columns, table.follow.axis) == ("E2V", (0, 1), 0)
    assert table.leaf is plan.leaves[0]
    assert table.follow.plus == Expression()
    assert plan.followed_tables == (table,)
    x, out, e2v = plan.fields
    assert indices_used(plan, x) == ("Vertex as in E2V if 0 < __out_Edge_range_1",)
    assert indices_used(plan, out) == ()
    assert indices_used(plan, e2v) == ("Edge 0 to __out_Edge_range_1 - 1 if 0 < __out_Edge_range_1",)


def test_tables_of_which_all_calls_use_the_same_rows_come_first() -> None:
    last = "7", "__out_Edge_range_1 - 1"
    same, other = (follow("gt_conn_E2V", each, "x", plus="-__x_Vertex_range_0") for each in last)
    claims = Claim((), (), (other,)), Claim((), (), (same,))
    plan = make_plan(dataclasses.replace(GATHER_SDFG, bounds=Bounds(2, claims, ())), GATHER_PROGRAM)
    assert [table.follow.last for table in plan.followed_tables] == [same.last, other.last]
    assert [table.follow.last for table in plan.constant_tables] == [same.last]
    assert [table.follow.last for each in plan.varying_bounds for table in each.tables] == [other.last]
    when = Condition(value("0"), "<", value("__out_Edge_range_1"))
    sometimes = dataclasses.replace(GATHER_SDFG, bounds=Bounds(1, (Claim((when,), (), (same,)),), ()))
    assert make_plan(sometimes, GATHER_PROGRAM).constant_tables == ()


def test_arrays_with_bounds_are_compared_by_their_start_and_size() -> None:
    plan = make_plan(GATHER_SDFG, GATHER_PROGRAM)
    assert [plan.compared(leaf) for leaf in plan.fields] == [
        ("start", "size", "stride"),
        ("stop", "stride"),
        ("size", "stride"),
    ]
    without = make_plan(dataclasses.replace(GATHER_SDFG, bounds=None), GATHER_PROGRAM)
    assert without.bounds == ()
    assert without.compared(without.fields[0]) == ("start", "stride")


def test_what_is_not_known_is_said_of_arguments() -> None:
    unknown = (Unknown("x", "in a branch on data", 1), Unknown("gt_compute_time", "in a branch on data", 1))
    arguments = (array("gt_compute_time", Axis(size=1, stride=1)), array("x", Axis()))
    plan = make_plan(sdfg(*arguments, bounds=Bounds(3, (), unknown)), program(x=field(K)))
    assert accesses_not_known(plan) == ("'x': 1 access in a branch on data",)
    assert plan.known == 3


def test_bounds_of_arrays_that_are_no_arguments_are_left_out() -> None:
    claims = (Claim((), (use("gt_compute_time", 0, "0", "0"),), ()),)
    arguments = (array("gt_compute_time", Axis(size=1, stride=1, start=0)), array("x", Axis(), Axis()))
    plan = make_plan(sdfg(*arguments, bounds=Bounds(1, claims, ())), program(x=field(EDGE, K)))
    (leaf,) = plan.fields
    assert isinstance(leaf, FieldLeaf)
    assert [axis.used for axis in leaf.axes] == [None, None]
    assert plan.bounds == ()


def test_a_table_must_be_a_connectivity_with_the_columns() -> None:
    bounds = GATHER_SDFG.bounds
    assert bounds is not None
    (claim_,) = bounds.claims
    (follow,) = claim_.follows
    for wrong in (dataclasses.replace(follow, columns=(0, 2)), dataclasses.replace(follow, table="out")):
        claims = (dataclasses.replace(claim_, follows=(wrong,)),)
        document = dataclasses.replace(GATHER_SDFG, bounds=Bounds(1, claims, ()))
        with pytest.raises(PlanError, match=r"takes indices from column \d of '.*', which no connectivity has"):
            make_plan(document, GATHER_PROGRAM)


@pytest.mark.parametrize("name", ["nothing", "x", "real"])
def test_bounds_may_depend_on_integers_alone(name: str) -> None:
    document = sdfg(array("x", Axis(start=0)), symbol("n"), symbol("real", dtype="float64"))
    signature = program(x=field(K), n=scalar("int32"), real=scalar("float64"))
    bounds = Bounds(1, (claim("0", f"{name} + n"),), ())
    with pytest.raises(PlanError, match=f"the bounds depend on '{name}', which is no integer"):
        make_plan(dataclasses.replace(document, bounds=bounds), signature)


def test_tables_of_types_that_the_runtime_does_not_read_are_not_followed() -> None:
    small = tuple(
        dataclasses.replace(each, dtype="int16") if each.name == "gt_conn_E2V" else each
        for each in GATHER_SDFG.arguments
    )
    (connectivity,) = GATHER_PROGRAM.connectivities
    signature = dataclasses.replace(GATHER_PROGRAM, connectivities=(dataclasses.replace(connectivity, dtype="int16"),))
    assert make_plan(GATHER_SDFG, GATHER_PROGRAM).followed_tables != ()
    assert make_plan(dataclasses.replace(GATHER_SDFG, arguments=small), signature).followed_tables == ()


def test_bounds_of_the_measured_time_are_left_out() -> None:
    measured = Condition(value("9"), "<", value("gt_metrics_level"))
    document = sdfg(array("x", Axis(start=0)), symbol("gt_metrics_level"), symbol("n"))
    claims = (claim("0", "n", measured),)
    plan = make_plan(dataclasses.replace(document, bounds=Bounds(1, claims, ())), PROGRAM)
    assert plan.bounds == ()
