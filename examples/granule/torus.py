r"""
A small world for icon4py's granules: its simple grid taken as a flat torus of equilateral triangles.

    0v---0e-- 1v      a vertex has three edges of its own, numbered 3 * vertex + kind:
     |  \ 0c   |      0 to the right, 1 to the lower right, 2 downwards
     |2e  \1e  |
     |  3c   \ |

On equilateral triangles all of ICON's geometrical coefficients follow from positions, one edge length and signs: winds,
gradients and Laplacians come out as on a real grid.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import gt4py.next as gtx
import numpy as np
from icon4py.model.common import dimension as dims
from icon4py.model.common import model_backends
from icon4py.model.common.grid import base, simple, states, vertical

Array = np.ndarray[Any, Any]

EDGE_LENGTH = 2_000.0
"""Metres."""

ALLOCATOR = model_backends.get_allocator(model_backends.CPU)

_ROW = 3
_RIGHT = EDGE_LENGTH * np.array([1.0, 0.0])
_DOWN = EDGE_LENGTH * np.array([-0.5, -math.sqrt(0.75)])


def field(values: Array, *dimensions: gtx.Dimension) -> gtx.Field[Any, Any]:
    """A field laid out as icon4py lays out its own."""
    return gtx.as_field(dimensions, values, allocator=ALLOCATOR)


def _shortest(offset: Array) -> Array:
    """The shortest of the vectors that lead, around the torus, from a point to another."""
    steps = np.linalg.solve(np.stack([_RIGHT, _DOWN], axis=1), offset[..., None])[..., 0]
    return (steps - _ROW * np.round(steps / _ROW)) @ np.stack([_RIGHT, _DOWN])


@dataclasses.dataclass(frozen=True)
class Torus:
    """The grid, and ICON's geometrical coefficients on it as arrays."""

    levels: int = 10

    @functools.cached_property
    def grid(self) -> Any:
        """icon4py's, but a cell comes before its neighbors: so do ICON's coefficients."""
        grid = simple.simple_grid(allocator=ALLOCATOR, num_levels=self.levels)
        cells = np.concatenate([np.arange(grid.num_cells)[:, None], grid.connectivities["C2E2C"].ndarray], axis=1)
        table = base.construct_connectivity(dims.C2E2CO, cells, allocator=ALLOCATOR)
        return dataclasses.replace(grid, connectivities={**grid.connectivities, "C2E2CO": table})

    @functools.cached_property
    def vertical(self) -> vertical.VerticalGrid:
        config = vertical.VerticalGridConfig(
            num_levels=self.levels, rayleigh_damping_height=8_000.0, flat_height=11_000.0
        )
        heights, pressures = vertical.get_vct_a_and_vct_b(config, ALLOCATOR)
        # To a micrometre: numpy's arccos differs in the last bit between CPUs with AVX-512 and without, and two heights
        # are compiled into a program.
        heights.ndarray[:] = np.round(heights.ndarray, 6)
        return vertical.VerticalGrid(config, heights, pressures)

    def table(self, offset: str) -> Array:
        return np.asarray(self.grid.connectivities[offset].ndarray)

    # --- Lengths and directions ---------------------------------------------------------------------------------------

    cell_area = math.sqrt(3) / 4 * EDGE_LENGTH**2
    dual_length = EDGE_LENGTH / math.sqrt(3)

    @functools.cached_property
    def tangents(self) -> Array:
        """Unit vectors along the edges."""
        kinds = np.stack([_RIGHT, _RIGHT + _DOWN, _DOWN]) / EDGE_LENGTH
        return np.tile(kinds, (self.grid.num_vertices, 1))

    @functools.cached_property
    def normals(self) -> Array:
        """Unit vectors across the edges, from the first to the second cell of each."""
        across = np.stack([-self.tangents[:, 1], self.tangents[:, 0]], axis=1)
        first, second = self.cell_centers[self.table("E2C")].swapaxes(0, 1)
        return across * np.sign(np.sum(across * _shortest(second - first), axis=1))[:, None]

    @functools.cached_property
    def vertices(self) -> Array:
        row, column = np.divmod(np.arange(self.grid.num_vertices), _ROW)
        return column[:, None] * _RIGHT + row[:, None] * _DOWN

    @functools.cached_property
    def edge_centers(self) -> Array:
        return np.repeat(self.vertices, 3, axis=0) + self.tangents * EDGE_LENGTH / 2

    @functools.cached_property
    def cell_centers(self) -> Array:
        corners = self.vertices[self.table("C2V")]
        return corners[:, 0] + _shortest(corners - corners[:, :1]).mean(axis=1)

    @functools.cached_property
    def outward(self) -> Array:
        """For each cell and edge of it: 1 where the edge's normal points out of the cell, else -1."""
        return np.where(self.table("E2C")[self.table("C2E"), 0] == np.arange(self.grid.num_cells)[:, None], 1.0, -1.0)

    # --- Coefficients, under ICON's names -----------------------------------------------------------------------------

    @functools.cached_property
    def geofac_div(self) -> Array:
        """Normal wind on a cell's edges to divergence."""
        return self.outward * EDGE_LENGTH / self.cell_area

    @functools.cached_property
    def geofac_rot(self) -> Array:
        """Normal wind on a vertex's edges to vorticity."""
        around = _shortest(self.edge_centers[self.table("V2E")] - self.vertices[:, None])
        normals = self.normals[self.table("V2E")]
        turning = np.sign(around[..., 0] * normals[..., 1] - around[..., 1] * normals[..., 0])
        return turning * self.dual_length / (6 * self.cell_area / 3)

    @functools.cached_property
    def geofac_n2s(self) -> Array:
        """A cell and its neighbors to the Laplacian."""
        factor = EDGE_LENGTH / self.dual_length / self.cell_area
        return np.tile([-3.0 * factor, factor, factor, factor], (self.grid.num_cells, 1))

    @functools.cached_property
    def geofac_grg(self) -> tuple[Array, Array]:
        """A cell and its neighbors to the gradient."""
        around = _shortest(self.cell_centers[self.table("C2E2CO")] - self.cell_centers[:, None])
        factor = 0.5 * EDGE_LENGTH / self.cell_area / self.dual_length
        return factor * around[..., 0], factor * around[..., 1]

    @functools.cached_property
    def geofac_grdiv(self) -> Array:
        """Normal wind on an edge and its neighbors to the gradient of the divergence across the edge."""
        result = np.zeros(self.table("E2C2EO").shape)
        for edge, edges in enumerate(self.table("E2C2EO")):
            for sign, cell in zip((-1.0, 1.0), self.table("E2C")[edge], strict=True):
                for neighbor, factor in zip(self.table("C2E")[cell], self.geofac_div[cell], strict=True):
                    result[edge, list(edges).index(neighbor)] += sign * factor / self.dual_length
        return result

    @functools.cached_property
    def rbf_vertex(self) -> tuple[Array, Array]:
        """Normal wind on a vertex's edges to the two components of the wind."""
        normals = self.normals[self.table("V2E")]
        return normals[..., 0] / 3, normals[..., 1] / 3

    @functools.cached_property
    def rbf_edge(self) -> Array:
        """Normal wind on an edge's neighbors to the tangential wind."""
        normals = self.normals[self.table("E2C2E")]
        return np.stack(
            [tangent @ np.linalg.pinv(across.T).T for tangent, across in zip(self.tangents, normals, strict=True)]
        )

    def edge_params(self) -> states.EdgeParams:
        """What icon4py's granules want to know of the edges."""
        edges = self.grid.num_edges

        def constant(value: float) -> gtx.Field[Any, Any]:
            return field(np.full(edges, value), dims.EdgeDim)

        def on_vertices(values: Array) -> gtx.Field[Any, Any]:
            return field(np.repeat(values[:, None], 4, axis=1), dims.EdgeDim, dims.E2C2VDim)

        cross = self.normals[:, 0] * self.tangents[:, 1] - self.normals[:, 1] * self.tangents[:, 0]
        return states.EdgeParams(
            tangent_orientation=field(np.sign(cross), dims.EdgeDim),
            inverse_primal_edge_lengths=constant(1.0 / EDGE_LENGTH),
            inverse_dual_edge_lengths=constant(1.0 / self.dual_length),
            inverse_vertex_vertex_lengths=constant(1.0 / (math.sqrt(3) * EDGE_LENGTH)),
            primal_normal_vert_x=on_vertices(self.normals[:, 0]),
            primal_normal_vert_y=on_vertices(self.normals[:, 1]),
            dual_normal_vert_x=on_vertices(self.tangents[:, 0]),
            dual_normal_vert_y=on_vertices(self.tangents[:, 1]),
            edge_areas=constant(EDGE_LENGTH * self.dual_length),
            coriolis_frequency=constant(1e-4),
        )

    def cell_params(self) -> states.CellParams:
        area = field(np.full(self.grid.num_cells, self.cell_area), dims.CellDim)
        return states.CellParams(area=area, mean_cell_area=self.cell_area)
