"""icon4py's apply_diffusion_to_vn on small grids: its arguments, and what numpy computes with the rows that it uses."""

from __future__ import annotations

from typing import Any

import gt4py.next as gtx
import numpy as np
from gt4py.next import common
from icon4py.model.common import dimension as dims

Arguments = dict[str, Any]
Table = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]

START, NUDGE, END = 4, 12, 30
EDGES, VERTICES, LEVELS = 36, 20, 3

_FIELDS = {
    "u_vert": "vk",
    "v_vert": "vk",
    "primal_normal_vert_v1": "en",
    "primal_normal_vert_v2": "en",
    "z_nabla2_e": "ek",
    "inv_vert_vert_length": "e",
    "inv_primal_edge_length": "e",
    "area_edge": "e",
    "kh_smag_e": "ek",
    "diff_multfac_vn": "k",
    "nudgecoeff_e": "e",
    "vn": "ek",
}


def field(values: np.ndarray, *dimensions: gtx.Dimension, start: int = 0) -> Any:
    """A field whose first dimension begins at `start`."""
    starts = (start, *(0 for _ in values.shape[1:]))
    ranges = {dim: (first, first + size) for dim, first, size in zip(dimensions, starts, values.shape, strict=True)}
    return common._field(values, domain=common.domain(ranges))


def connectivity(
    table: Table, source: gtx.Dimension, local: gtx.Dimension, target: gtx.Dimension, skip_value: int | None = None
) -> Any:
    """gt4py's own constructor refuses tables without rows, and copies the others."""
    domain = common.domain({source: (0, table.shape[0]), local: (0, table.shape[1])})
    return common._connectivity(table, codomain=target, domain=domain, skip_value=skip_value)


def diffusion(edges: int = EDGES, vertices: int = VERTICES, levels: int = LEVELS, **scalars: Any) -> Arguments:
    """The arguments, with random values; the same sizes give the same values in new objects."""
    random = np.random.default_rng(edges)
    axes = {"e": (dims.EdgeDim, edges), "v": (dims.VertexDim, vertices), "k": (dims.KDim, levels)}
    axes["n"] = (dims.E2C2VDim, 4)
    fields = {
        name: field(random.uniform(0.5, 1.5, [axes[each][1] for each in letters]), *(axes[each][0] for each in letters))
        for name, letters in _FIELDS.items()
    }
    return {
        **fields,
        "nudgezone_diff": 0.3,
        "fac_bdydiff_v": 0.2,
        "start_2nd_nudge_line_idx_e": NUDGE,
        "limited_area": True,
        "horizontal_start": START,
        "horizontal_end": END,
        "vertical_start": 0,
        "vertical_end": levels,
        **scalars,
    }


def neighbors(edges: int = EDGES, vertices: int = VERTICES) -> Table:
    """The table of random neighbors; each row from the nudging zone on has the first and the last vertex."""
    table = np.random.default_rng(vertices).integers(0, vertices, (edges, 4)).astype(np.int32)
    table[NUDGE:, 1], table[NUDGE:, 2] = 0, vertices - 1
    return table


def offset_provider(table: Table) -> dict[str, Any]:
    return {"E2C2V": connectivity(table, dims.EdgeDim, dims.E2C2VDim, dims.VertexDim)}


def rows_used(arguments: Arguments) -> slice:
    """The rows of the table that a call uses."""
    first = max(arguments["horizontal_start"], arguments["start_2nd_nudge_line_idx_e"])
    return slice(first, max(first, arguments["horizontal_end"]))


def expected_vn(arguments: Arguments, table: Table) -> np.ndarray:
    """What `vn` is after a call."""
    a = {name: value.ndarray if hasattr(value, "ndarray") else value for name, value in arguments.items()}
    vn: np.ndarray = a["vn"].copy()
    levels = slice(a["vertical_start"], max(a["vertical_start"], a["vertical_end"]))
    boundary = slice(a["horizontal_start"], min(a["horizontal_end"], a["start_2nd_nudge_line_idx_e"]))
    if a["limited_area"] and boundary.start < boundary.stop:
        increment = a["area_edge"][boundary, None] * a["fac_bdydiff_v"] * a["z_nabla2_e"][boundary, levels]
        vn[boundary, levels] += increment
    rows = rows_used(arguments)
    if rows.start == rows.stop:
        return vn
    u, v = (
        a[name][table[rows] - arguments[name].domain[dims.VertexDim].unit_range.start][:, :, levels]
        for name in ("u_vert", "v_vert")
    )
    along = u * a["primal_normal_vert_v1"][rows, :, None] + v * a["primal_normal_vert_v2"][rows, :, None]
    nabla2 = a["z_nabla2_e"][rows, levels]
    nabla4 = 4.0 * (
        (along[:, 2] + along[:, 3] - 2.0 * nabla2) * a["inv_vert_vert_length"][rows, None] ** 2
        + (along[:, 0] + along[:, 1] - 2.0 * nabla2) * a["inv_primal_edge_length"][rows, None] ** 2
    )
    coefficient = a["kh_smag_e"][rows, levels]
    if a["limited_area"]:
        coefficient = np.maximum(a["nudgezone_diff"] * a["nudgecoeff_e"][rows, None], coefficient)
    area = a["area_edge"][rows, None]
    vn[rows, levels] += area * (coefficient * nabla2 - area * a["diff_multfac_vn"][levels] * nabla4)
    return vn
