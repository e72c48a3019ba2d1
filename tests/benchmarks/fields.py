"""The arguments of the measured program: icon4py's apply_diffusion_to_vn on its simple grid, horizontal unit stride."""

from __future__ import annotations

from typing import Any

import numpy as np
from gt4py.next import common
from icon4py.model.common import dimension as dims
from icon4py.model.common.grid import simple

GRID = simple.simple_grid()
EK = (dims.EdgeDim, dims.KDim)
VK = (dims.VertexDim, dims.KDim)
SIZES = {dims.EdgeDim: GRID.num_edges, dims.VertexDim: GRID.num_vertices, dims.KDim: GRID.num_levels, dims.E2C2VDim: 4}

FIELDS = {
    "u_vert": VK,
    "v_vert": VK,
    "primal_normal_vert_v1": (dims.EdgeDim, dims.E2C2VDim),
    "primal_normal_vert_v2": (dims.EdgeDim, dims.E2C2VDim),
    "z_nabla2_e": EK,
    "inv_vert_vert_length": (dims.EdgeDim,),
    "inv_primal_edge_length": (dims.EdgeDim,),
    "area_edge": (dims.EdgeDim,),
    "kh_smag_e": EK,
    "diff_multfac_vn": (dims.KDim,),
    "nudgecoeff_e": (dims.EdgeDim,),
    "vn": EK,
}
"""The parameters that are fields, in order; the scalars follow."""

SCALARS = {
    "nudgezone_diff": 0.1,
    "fac_bdydiff_v": 0.2,
    "start_2nd_nudge_line_idx_e": 9,
    "limited_area": True,
    "horizontal_start": 0,
    "horizontal_end": GRID.num_edges,
    "vertical_start": 0,
    "vertical_end": GRID.num_levels,
}

NUMPY_SCALARS = {"float": np.float64, "int": np.int32, "bool": np.bool_}


def offset_provider() -> dict[str, common.Connectivity[Any, Any]]:
    """The one connectivity that the program uses, laid out as its fields are."""
    table = GRID.connectivities["E2C2V"]
    laid_out = common._connectivity(
        np.asfortranarray(table.ndarray), codomain=table.codomain, domain=table.domain, skip_value=table.skip_value
    )
    return {"E2C2V": laid_out}


class Fields:
    """Makes the fields of a call, again and again: always new objects, on memory that is always the same."""

    def __init__(self) -> None:
        self._memory = {
            name: np.ones([SIZES[dim] for dim in field_dims], order="F") for name, field_dims in FIELDS.items()
        }
        self._domains = {name: self._domain(name) for name in FIELDS}

    def make(self, *, own_domains: bool = False) -> tuple[common.Field[Any, Any], ...]:
        """New field and array objects; on Domain objects that all calls share, or on new ones."""
        return tuple(
            common._field(self._memory[name].view(), domain=self._domain(name) if own_domains else self._domains[name])
            for name in FIELDS
        )

    @staticmethod
    def _domain(name: str) -> common.Domain:
        return common.domain({dim: (0, SIZES[dim]) for dim in FIELDS[name]})


def numpy_scalars() -> tuple[np.generic, ...]:
    return tuple(NUMPY_SCALARS[type(value).__name__](value) for value in SCALARS.values())
