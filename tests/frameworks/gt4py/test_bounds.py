"""
Calls as models make them, and the elements that programs access: grids with lateral boundaries, ranks of different
sizes, empty ranges. What a call does not use may have any value; what it uses is refused by its row and its column.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping
from typing import Any

import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next import common
from icon4py.model.common import dimension as dims

from gtstub import _host
from gtstub.frameworks.gt4py.backend import make_backend
from tests.bounds.cases import RANGES
from tests.support import reaching_programs as reaching
from tests.support import small_programs as small
from tests.support.diffusion_calls import (
    EDGES,
    END,
    LEVELS,
    NUDGE,
    START,
    VERTICES,
    Arguments,
    Table,
    connectivity,
    diffusion,
    expected_vn,
    field,
    neighbors,
    offset_provider,
    rows_used,
)
from tests.support.gt4py_programs import CASES, ICON_CASES, Case, build_lowered

pytestmark = pytest.mark.xdist_group("apply_diffusion_to_vn")  # with the tests that lower it

LEAST, MOST = int(np.iinfo(np.int32).min), int(np.iinfo(np.int32).max)
HINT = "Set GTSTUB_BOUNDS=0 to build the program without this check."

INVALID = np.full((EDGES, 4), -1, np.int32)


def built(case: Case) -> _host.Program:
    """What gt4py calls after it has compiled a program."""
    backend = make_backend(gpu=False, auto_optimize=False)
    if case in ICON_CASES:
        build_lowered(case, backend)
    program = case.program().with_backend(backend)
    program(**case.make_arguments(), offset_provider=case.make_offset_provider())
    (executable,) = program._compiled_programs.compiled_programs.values()
    assert isinstance(executable, _host.Program)
    return executable


def values_of(arguments: Arguments) -> dict[str, np.ndarray]:
    return {name: value.ndarray.copy() for name, value in arguments.items() if hasattr(value, "ndarray")}


def check_writes(
    program: _host.Program, arguments: Arguments, tables: common.OffsetProvider, **written: np.ndarray
) -> None:
    """A call is not refused, and changes nothing but `written`."""
    wanted = {**values_of(arguments), **written}
    program(**arguments, offset_provider=tables)
    for name, value in values_of(arguments).items():
        np.testing.assert_allclose(value, wanted[name], rtol=1e-13 if name in written else 0.0, err_msg=name)


def check_refused(
    program: _host.Program, arguments: Arguments, tables: common.OffsetProvider, message: str, hint: str = HINT
) -> None:
    """A call is refused, and changes nothing."""
    before = values_of(arguments)
    with pytest.raises(ValueError) as caught:
        program(**arguments, offset_provider=tables)
    assert str(caught.value) == f"{message} {hint}"
    for name, value in values_of(arguments).items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)


# --- icon4py's apply_diffusion_to_vn ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def program() -> _host.Program:
    return built(CASES["apply_diffusion_to_vn"])


def check_result(program: _host.Program, arguments: Arguments, tables: common.OffsetProvider) -> None:
    check_writes(program, arguments, tables, vn=expected_vn(arguments, tables["E2C2V"].ndarray))


def index_message(value: int, row: int, column: int, argument: str, has: str) -> str:
    return (
        f"Connectivity 'E2C2V' of program 'apply_diffusion_to_vn' has index {value} in row {row}, column {column}, "
        f"but argument '{argument}' {has} on axis 0 ('Vertex')."
    )


NUDGES = {"inside": NUDGE, "at the start": START, "before the start": 1, "at the end": END, "after the end": 33}


@pytest.mark.parametrize("limited_area", [True, False])
@pytest.mark.parametrize("nudge", NUDGES.values(), ids=NUDGES)
def test_rows_of_the_lateral_boundary_may_have_any_indices(
    program: _host.Program, nudge: int, limited_area: bool
) -> None:
    arguments = diffusion(start_2nd_nudge_line_idx_e=nudge, limited_area=limited_area)
    rows = rows_used(arguments)
    table = np.resize(np.array([-1, LEAST, MOST, 99], np.int32), (EDGES, 4))
    table[rows] = neighbors()[rows]
    writes = not np.array_equal(expected_vn(arguments, table), arguments["vn"].ndarray)
    assert writes == (limited_area or nudge < END)
    check_result(program, arguments, offset_provider(table))
    if nudge < END:
        wrong = table.copy()
        wrong[rows.start, 3] = VERTICES
        message = index_message(VERTICES, rows.start, 3, "u_vert", f"has the indices 0 to {VERTICES - 1}")
        check_refused(program, arguments, offset_provider(wrong), message)


def test_fields_need_not_have_the_rows_that_are_treated_otherwise(program: _host.Program) -> None:
    """Outside of a limited area, only `vn` must have the rows before the nudging zone."""
    whole = diffusion(edges=END, limited_area=False)
    part = {
        name: field(value.ndarray[NUDGE:].copy(), *value.domain.dims, start=NUDGE)
        for name, value in whole.items()
        if name != "vn" and hasattr(value, "ndarray") and dims.EdgeDim in value.domain.dims
    }
    table = neighbors(edges=END)
    check_writes(program, whole | part, offset_provider(table), vn=expected_vn(whole, table))
    message = (
        "Argument 'area_edge' of program 'apply_diffusion_to_vn' must have the indices 4 to 11 on axis 0 ('Edge'), "
        "which this call uses, not 12 to 29."
    )
    check_refused(program, whole | part | {"limited_area": True}, offset_provider(table), message)


# --- Ranks ------------------------------------------------------------------------------------------------------------


def rank(owned: int, halo: int, vertices: int, start: int, nudge: int) -> tuple[Arguments, Table]:
    """What a rank passes. The neighbors of edges in its halo are elsewhere: -1, or indices that it does not have."""
    scalars = {"horizontal_start": start, "horizontal_end": owned, "start_2nd_nudge_line_idx_e": nudge}
    table = neighbors(owned + halo, vertices)
    table[owned:] = np.resize(np.array([-1, vertices, vertices + 7], np.int32), (halo, 4))
    table[: max(start, nudge)] = MOST
    return diffusion(owned + halo, vertices, **scalars), table


RANKS = ((30, 6, 20, 4, 12), (50, 0, 31, 0, 0), (17, 12, 9, 2, 1), (0, 5, 3, 0, 0))


def test_ranks_of_different_sizes_call_in_turn(program: _host.Program) -> None:
    kept = [(arguments, offset_provider(table)) for arguments, table in (rank(*sizes) for sizes in RANKS)]
    for _ in range(3):
        for (arguments, tables), sizes in zip(kept, RANKS, strict=True):
            check_result(program, arguments, tables)
            new_arguments, table = rank(*sizes)
            check_result(program, new_arguments, offset_provider(table))


@pytest.mark.parametrize("wrong", [-1, 20, LEAST, MOST])
def test_a_wrong_neighbor_is_refused_by_its_row_and_column(program: _host.Program, wrong: int) -> None:
    arguments, table = rank(*RANKS[0])
    of_another, other_table = rank(*RANKS[1])
    for row, column in ((12, 0), (21, 2), (29, 3)):
        changed = table.copy()
        changed[row, column] = wrong
        message = index_message(wrong, row, column, "u_vert", "has the indices 0 to 19")
        tables = offset_provider(changed)
        check_refused(program, arguments, tables, message)
        check_result(program, of_another, offset_provider(other_table))
        check_refused(program, arguments, tables, message)
        check_result(program, arguments, offset_provider(table))


# --- Empty ranges -----------------------------------------------------------------------------------------------------

EMPTY: Mapping[str, Mapping[str, int]] = {
    "no rows": {"horizontal_start": 7, "horizontal_end": 7},
    "fewer than no rows": {"horizontal_start": 20, "horizontal_end": 5},
    "no rows after the last": {"horizontal_start": 90, "horizontal_end": 80},
    "no rows before the first": {"horizontal_start": -5, "horizontal_end": -9},
    "no levels": {"vertical_start": 2, "vertical_end": 2},
    "fewer than no levels": {"vertical_start": 2, "vertical_end": 1},
    "no levels after the last": {"vertical_start": 9, "vertical_end": 9},
}


@pytest.mark.parametrize("limited_area", [True, False])
@pytest.mark.parametrize("ranges", EMPTY.values(), ids=EMPTY)
def test_empty_ranges_are_not_refused(program: _host.Program, ranges: Mapping[str, int], limited_area: bool) -> None:
    check_result(program, diffusion(), offset_provider(neighbors()))
    check_writes(program, diffusion(**ranges, limited_area=limited_area), offset_provider(INVALID))


@pytest.mark.parametrize(
    ("sizes", "end"), [((0, 0, 0), 0), ((0, VERTICES, LEVELS), 0), ((EDGES, 0, LEVELS), 0), ((EDGES, VERTICES, 0), END)]
)
def test_arrays_without_elements_are_not_refused(program: _host.Program, sizes: tuple[int, int, int], end: int) -> None:
    arguments = diffusion(*sizes, horizontal_start=0, horizontal_end=end)
    check_writes(program, arguments, offset_provider(INVALID[: sizes[0]]))


def test_warm_calls_touch_no_new_page(program: _host.Program) -> None:
    """Temporary arrays are in the pool; without it, each of these calls has 2,400 faults."""
    edges, levels = 1_000, 35
    arguments = diffusion(edges, 400, levels, horizontal_end=edges)
    tables = offset_provider(neighbors(edges, 400))

    def faults(calls: int) -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(calls):
            program(**arguments, offset_provider=tables)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    faults(3)
    assert faults(10) <= 5


# --- Sizes and origins ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scalars", "indices"),
    [
        ({"horizontal_end": EDGES + 1}, f"{START} to {EDGES}"),
        ({"horizontal_end": MOST}, f"{START} to {MOST - 1}"),
        ({"horizontal_start": LEAST, "start_2nd_nudge_line_idx_e": LEAST}, f"{LEAST} to 29"),
    ],
)
def test_sizes_at_the_ends_of_int32_do_not_overflow(
    program: _host.Program, scalars: Mapping[str, int], indices: str
) -> None:
    arguments, tables = diffusion(), offset_provider(neighbors())
    for _ in range(3):  # then all arrays are known, and the scalars alone are new
        check_result(program, arguments, tables)
    message = (
        f"Argument 'vn' of program 'apply_diffusion_to_vn' must have the indices {indices} on axis 0 ('Edge'), "
        "which this call uses, not 0 to 35."
    )
    check_refused(program, arguments | scalars, tables, message)
    check_result(program, arguments, tables)


def test_of_two_fields_the_smaller_decides(program: _host.Program) -> None:
    table = neighbors()
    table[15, 3] = VERTICES + 1
    table[16, 0] = VERTICES
    tables = offset_provider(table)
    arguments = diffusion(vertices=VERTICES + 2)
    for smaller, larger in (("u_vert", "v_vert"), ("v_vert", "u_vert")):
        check_result(program, arguments, tables)
        short = arguments | {smaller: diffusion()[smaller]}
        message = index_message(VERTICES + 1, 15, 3, smaller, f"has the indices 0 to {VERTICES - 1}")
        check_refused(program, short, tables, message)
        check_result(program, short | {"horizontal_end": 15}, tables)
        late = arguments | {larger: field(arguments[larger].ndarray[1:].copy(), dims.VertexDim, dims.KDim, start=1)}
        message = index_message(0, 12, 1, larger, f"has the indices 1 to {VERTICES + 1}")
        check_refused(program, late, tables, message)


def test_a_field_without_elements_is_said_to_be_empty(program: _host.Program) -> None:
    table = neighbors()
    arguments = diffusion() | {"v_vert": diffusion(vertices=0)["v_vert"]}
    check_refused(program, arguments, offset_provider(table), index_message(table[12, 0], 12, 0, "v_vert", "is empty"))


def test_fields_may_begin_below_0(program: _host.Program) -> None:
    """Then -1 is an index like others."""
    arguments = diffusion()
    for name in ("u_vert", "v_vert"):
        arguments[name] = field(arguments[name].ndarray, dims.VertexDim, dims.KDim, start=-5)
    table = neighbors() - np.int32(5)
    assert -1 in table[NUDGE:END]
    check_result(program, arguments, offset_provider(table))
    table = table.copy()
    table[14, 1] = -6
    message = index_message(-6, 14, 1, "u_vert", f"has the indices -5 to {VERTICES - 6}")
    check_refused(program, arguments, offset_provider(table), message)


# --- Skip values, columns, types, temporary memory --------------------------------------------------------------------

ROWS = {"start": 2, "end": 8, "k_end": LEVELS}
LEAST_64, MOST_64 = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)


def both_tables(v2e: Table | None = None, e2v: Table | None = None) -> dict[str, Any]:
    """V2E has skip values, E2V has 64 bits."""
    v2e = np.full((10, 2), 3, np.int32) if v2e is None else v2e
    e2v = np.full((12, 2), 3, np.int64) if e2v is None else e2v
    return {
        "V2E": connectivity(v2e, small.Vertex, small.V2EDim, small.Edge, skip_value=-1),
        "E2V": connectivity(e2v, small.Edge, small.E2VDim, small.Vertex),
    }


def built_small(name: str, **scalars: int) -> _host.Program:
    values = {**ROWS, **scalars}
    return built(Case(name, reaching.__name__, name, RANGES, values=values, offset_provider=lambda _: both_tables()))


def random_field(rows: int, dimension: gtx.Dimension) -> Any:
    return field(np.random.default_rng(rows).random((rows, LEVELS)), dimension, small.K)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (0, "must have the indices 1 to 7 on axis 1 ('K'), which this call uses, not 0 to 6."),
        (1, "must have the indices 0 to 3 on axis 0 ('I'), which this call uses, not 1 to 3."),
    ],
)
def test_a_choice_of_intervals_that_is_shifted_needs_what_it_reads(start: int, message: str) -> None:
    """gt4py makes a choice in a tasklet of it."""
    program = reaching.between_shifted.with_backend(make_backend(gpu=False))
    memory = np.full((6, 9), 1e6)
    memory[1 : 5 - start, :7] = 1.0
    b = field(memory[1 : 5 - start, :7], small.I, small.K, start=start)
    a, out = (field(np.zeros((5, 9)), small.I, small.K) for _ in range(2))
    scalars = {"i_end": 4, "k_end": 7 if start == 0 else 5, "first": 8, "last": 10}
    arguments = {"a": a, "out": out, **{name: np.int32(value) for name, value in scalars.items()}}
    with pytest.raises(ValueError) as caught:
        program(b=b, **arguments, offset_provider={})
    assert str(caught.value) == f"Argument 'b' of program 'between_shifted' {message} {HINT}"
    program(b=field(np.ones((5, 8)), small.I, small.K), **arguments, offset_provider={})
    expected = np.zeros((5, 9))
    expected[:4, : scalars["k_end"]] = 2.0
    np.testing.assert_array_equal(out.ndarray, expected)


@pytest.mark.parametrize("wrong", [-1, 10, LEAST_64, MOST_64])
def test_columns_that_are_not_used_may_have_any_indices(wrong: int) -> None:
    program = built_small("second_only")
    arguments = {name: random_field(12, small.Edge) for name in ("a", "out")} | {"b": random_field(10, small.Vertex)}
    arguments |= ROWS
    table = np.full((12, 2), wrong, np.int64)
    table[2:8, 1] = (0, 9, 3, 4, 9, 0)
    out = arguments["out"].ndarray.copy()
    out[2:8, 1:] = (arguments["b"].ndarray[table[2:8, 1]] - arguments["a"].ndarray[2:8])[:, 1:]
    check_writes(program, arguments, both_tables(e2v=table), out=out)
    changed = table.copy()
    changed[5, 1] = wrong
    message = (
        f"Connectivity 'E2V' of program 'second_only' has index {wrong} in row 5, column 1, "
        "but argument 'b' has the indices 0 to 9 on axis 0 ('Vertex')."
    )
    check_refused(program, arguments, both_tables(e2v=changed), message)
    check_writes(program, arguments, both_tables(e2v=table), out=out)


def test_a_skip_value_is_an_index_where_the_sdfg_does_not_test_for_it() -> None:
    """gt4py does not in `a(V2E[1])`."""
    program = built_small("first_neighbor")
    arguments = {"a": random_field(12, small.Edge), "out": random_field(10, small.Vertex), **ROWS}
    table = np.full((10, 2), -1, np.int32)
    table[2:8, 1] = (0, 11, 3, 4, 9, 0)
    out = arguments["out"].ndarray.copy()
    out[2:8, 1:] = arguments["a"].ndarray[table[2:8, 1], 1:] + 1.0
    check_writes(program, arguments, both_tables(v2e=table), out=out)
    changed = table.copy()
    changed[4, 1] = -1
    message = (
        "Connectivity 'V2E' of program 'first_neighbor' has index -1 in row 4, column 1, "
        "but argument 'a' has the indices 0 to 11 on axis 0 ('Edge')."
    )
    check_refused(program, arguments, both_tables(v2e=changed), message)
    check_writes(program, arguments, both_tables(v2e=table), out=out)


def test_both_sides_of_where_are_evaluated() -> None:
    arguments = {name: gtx.as_field({small.I: (0, 4), small.K: (0, 5)}, np.ones((4, 5))) for name in ("u", "q", "out")}
    arguments |= {"i_end": 3, "k_end": 5}
    program = built(Case("chosen", reaching.__name__, "chosen", RANGES, values={"i_end": 3, "k_end": 5}))
    program(**arguments, offset_provider={})
    message = (
        "Argument 'q' of program 'chosen' must have the indices 0 to 4 on axis 0 ('I'), "
        "which this call uses, not 0 to 3."
    )
    check_refused(program, arguments | {"i_end": 4}, {}, message)


def test_skip_values_are_no_indices_and_each_field_has_its_own_rows() -> None:
    """Rows below `first` have indices of `a`, the others of `b`, which has more edges."""
    program = built_small("regions", first=5)
    arguments = {"a": random_field(6, small.Edge), "b": random_field(12, small.Edge), **ROWS, "first": 5}
    arguments["out"] = random_field(10, small.Vertex)
    table = np.full((10, 2), MOST, np.int32)
    table[2:8] = [[0, 5], [-1, -1], [5, -1], [11, 0], [-1, 11], [6, 7]]
    tables = both_tables(v2e=table)

    def check_sums(arguments: Arguments) -> None:
        out = arguments["out"].ndarray.copy()
        for row in range(2, 8):
            values = arguments["a" if row < arguments["first"] else "b"].ndarray
            out[row, 1:] = sum((values[edge] for edge in table[row] if edge != -1), np.zeros(LEVELS))[1:]
        check_writes(program, arguments, tables, out=out)

    def message(value: int, row: int, column: int, has: str) -> str:
        index = f"Connectivity 'V2E' of program 'regions' has index {value} in row {row}, column {column}"
        return f"{index}, but argument {has} on axis 0 ('Edge')."

    check_sums(arguments)
    check_refused(program, arguments | {"first": 6}, tables, message(11, 5, 0, "'a' has the indices 0 to 5"))
    later = {"first": 8, "start": 6}
    check_refused(program, arguments | later, tables, message(11, 6, 1, "'a' has the indices 0 to 5"))
    for first in (5, 2, 0, -7):
        check_sums(arguments | {"first": first})
    check_sums(arguments | {"a": arguments["b"], "first": 9})
    for value, row, column, has in (
        (-2, 3, 1, "'a' has the indices 0 to 5"),
        (LEAST, 2, 0, "'a' has the indices 0 to 5"),
        (MOST, 4, 1, "'a' has the indices 0 to 5"),
        (12, 6, 0, "'b' has the indices 0 to 11"),
        (-2, 7, 1, "'b' has the indices 0 to 11"),
    ):
        changed = table.copy()
        changed[row, column] = value
        check_refused(program, arguments, both_tables(v2e=changed), message(value, row, column, has))
        check_sums(arguments)


def test_indices_of_temporary_memory_are_those_of_the_values_that_are_computed() -> None:
    program = built_small("chain")
    arguments = {"a": random_field(12, small.Edge), "out": random_field(12, small.Edge), **ROWS}
    table = np.full((12, 2), -1, np.int64)
    table[2:8] = np.arange(12).reshape(6, 2) % 10
    out = arguments["out"].ndarray.copy()
    out[2:8, 1:] = 4.0 * arguments["a"].ndarray[3, 1:]
    check_writes(program, arguments, both_tables(e2v=table), out=out)
    for wrong in (10, -1):
        changed = table.copy()
        changed[7, 0] = wrong
        message = (
            f"Connectivity 'E2V' of program 'chain' has index {wrong} in row 7, column 0, "
            "but this program computes values for the indices 0 to 9 only: Vertex.size = 10 was compiled in, from the "
            "tables that it was built with."
        )
        check_refused(program, arguments, both_tables(e2v=changed), message, "Build the program for each grid.")
        check_writes(program, arguments, both_tables(e2v=table), out=out)
