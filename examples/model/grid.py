"""
Writes the grid of a global model: the bisected icosahedron R<n>B<k>, in the netCDF format of ICON.

An icosahedron has 20 triangles. Its edges are divided into n parts, and each triangle is then divided into four, k
times: 20 n^2 4^k cells, 30 n^2 4^k edges, 10 n^2 4^k + 2 vertices. The names of variables and the orientations are
those that icon4py's `GridManager` reads (icon4py/model/common/grid/gridfile.py). ICON's own generator then moves the
vertices to make the cells more equal; this one does not.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np

RADIUS = 6.371229e6
"""Of the Earth in metres, as in icon4py's constants."""

MISSING = -1
"""The index of a neighbour that a vertex with five neighbours lacks. Other indices begin with 1."""

LARGEST = 1_000_000
"""Cells of the largest grid that can be made: a larger one needs more memory than this way of making it is worth."""

type Array = np.ndarray[Any, np.dtype[Any]]


@dataclasses.dataclass(frozen=True)
class Icosahedron:
    """
    `cells` has three vertices for each cell, anticlockwise as seen from outside; `edges` two vertices for each edge.
    `points` are the vertices, unit vectors. The left side of an edge, which goes from its first vertex to its second,
    is the cell `edge_cells[:, 0]`; the normal points from there to `edge_cells[:, 1]`.
    """

    root: int
    level: int
    points: Array
    cells: Array
    edges: Array
    edge_cells: Array
    cell_edges: Array
    """The edge between the vertices 0 and 1, that between 1 and 2, and that between 2 and 0."""

    @functools.cached_property
    def cell_centers(self) -> Array:
        """The centres of the circles through the vertices: unit vectors."""
        a, b, c = (self.points[self.cells[:, i]] for i in range(3))
        return _unit(np.cross(b - a, c - a))

    @functools.cached_property
    def edge_centers(self) -> Array:
        return _unit(self.points[self.edges].sum(axis=1))

    @property
    def cell_cells(self) -> Array:
        """The neighbour behind each edge of a cell."""
        sides = self.edge_cells[self.cell_edges]
        return np.where(sides[..., 0] == np.arange(len(self.cells))[:, None], sides[..., 1], sides[..., 0])

    def around_vertices(self, centers: Array, members: Array, first: Array | None = None) -> Array:
        """
        The edges or cells around each vertex, anticlockwise; MISSING where there are five. `members` has the vertices
        of each edge or cell, and `centers` its centre. They begin at the direction of `first`, one point for each
        vertex.
        """
        vertices = members.ravel()
        objects = np.repeat(np.arange(len(members)), members.shape[1])
        east, north = _tangents(self.points)
        towards = centers[objects] - self.points[vertices]

        def angle(vectors: Array, of: Array) -> Array:
            return np.arctan2((vectors * north[of]).sum(axis=-1), (vectors * east[of]).sum(axis=-1))

        angles = angle(towards, vertices)
        if first is not None:
            begin = angle(first - self.points, np.arange(len(self.points)))
            angles = angles - begin[vertices]
        order = np.lexsort((angles % (2 * np.pi), vertices))
        begins = np.searchsorted(vertices[order], np.arange(len(self.points)))
        table = np.full((len(self.points), 6), MISSING)
        table[vertices[order], np.arange(len(order)) - begins[vertices[order]]] = objects[order]
        return table


def parse_name(name: str) -> tuple[int, int]:
    """The numbers n and k of a name such as 'R02B04'. Raises ValueError for another name, and for a grid too large."""
    found = re.fullmatch(r"R(\d{1,2})B(\d{1,2})", name)
    if found is None or int(found[1]) == 0:
        raise ValueError(f"'{name}' is no name of a grid: write R<n>B<k>, such as R02B04.")
    root, level = int(found[1]), int(found[2])
    if (cells := 20 * root**2 * 4**level) > LARGEST:
        raise ValueError(f"Grid '{name}' has {cells:,} cells; this program makes grids of at most {LARGEST:,}.")
    return root, level


def make_icosahedron(root: int, level: int) -> Icosahedron:
    points, cells = _divide(*_base(), root)
    for _ in range(level):
        points, cells = _divide(points, cells, 2)
    edges, cell_edges = _edges(cells)
    ahead = cells == edges[cell_edges][..., 0]  # then the cell is on the left of the edge
    edge_cells = np.empty_like(edges)
    numbers = np.repeat(np.arange(len(cells))[:, None], 3, axis=1)
    edge_cells[cell_edges[ahead], 0] = numbers[ahead]
    edge_cells[cell_edges[~ahead], 1] = numbers[~ahead]
    return Icosahedron(root, level, points, cells, edges, edge_cells, cell_edges)


def write_grid(name: str, path: Path) -> Icosahedron:
    """Writes the grid with this name; lengths are in metres, angles in radians."""
    grid = make_icosahedron(*parse_name(name))
    vertex_edges = grid.around_vertices(grid.edge_centers, grid.edges)
    vertex_cells = grid.around_vertices(grid.cell_centers, grid.cells, grid.edge_centers[vertex_edges[:, 0]])
    exists = vertex_edges != MISSING
    own = np.arange(len(grid.points))[:, None]
    begins_here = grid.edges[vertex_edges][..., 0] == own
    neighbours = np.where(begins_here, grid.edges[vertex_edges][..., 1], grid.edges[vertex_edges][..., 0])
    to_vertices = _arc(grid.points[grid.edges], grid.edge_centers[:, None])
    to_cells = _arc(grid.cell_centers[grid.edge_cells], grid.edge_centers[:, None])
    is_left = grid.edge_cells[grid.cell_edges][..., 0] == np.arange(len(grid.cells))[:, None]

    integers = {
        "vertex_of_cell": ("nv", "cell", grid.cells + 1),
        "edge_of_cell": ("nv", "cell", grid.cell_edges + 1),
        "neighbor_cell_index": ("nv", "cell", grid.cell_cells + 1),
        "orientation_of_normal": ("nv", "cell", np.where(is_left, 1, -1)),
        "edge_vertices": ("nc", "edge", grid.edges + 1),
        "adjacent_cell_of_edge": ("nc", "edge", grid.edge_cells + 1),
        "edges_of_vertex": ("ne", "vertex", np.where(exists, vertex_edges + 1, MISSING)),
        "cells_of_vertex": ("ne", "vertex", np.where(exists, vertex_cells + 1, MISSING)),
        "vertices_of_vertex": ("ne", "vertex", np.where(exists, neighbours + 1, MISSING)),
        # Whether a normal goes around the vertex anticlockwise: it points to the right of an edge, so it does where the
        # edge ends.
        "edge_orientation": ("ne", "vertex", np.where(exists, np.where(begins_here, -1, 1), 0)),
    }
    reals = {
        "edge_cell_distance": ("nc", "edge", RADIUS * to_cells),
        "edge_vert_distance": ("nc", "edge", RADIUS * to_vertices),
    }
    for place, dimension, points in (
        ("c", "cell", grid.cell_centers),
        ("e", "edge", grid.edge_centers),
        ("v", "vertex", grid.points),
    ):
        reals[f"{place}lon"] = ("", dimension, np.arctan2(points[:, 1], points[:, 0]))
        reals[f"{place}lat"] = ("", dimension, np.arcsin(np.clip(points[:, 2], -1.0, 1.0)))
        # All zero: a global grid has no boundary.
        integers[f"refin_{place}_ctrl"] = ("", dimension, np.zeros(len(points), dtype=int))
    cell_area, dual_area = _areas(grid)
    reals |= {
        "cell_area": ("", "cell", RADIUS**2 * cell_area),
        "dual_area": ("", "vertex", RADIUS**2 * dual_area),
        "edge_length": ("", "edge", RADIUS * to_vertices.sum(axis=1)),
        "dual_edge_length": ("", "edge", RADIUS * to_cells.sum(axis=1)),
        "edge_system_orientation": ("", "edge", np.ones(len(grid.edges))),
    }
    with netCDF4.Dataset(path, "w") as file:
        _set_attributes(file, name, grid)
        sizes = {"cell": len(grid.cells), "edge": len(grid.edges), "vertex": len(grid.points)}
        for dimension, size in {**sizes, "nv": 3, "nc": 2, "ne": 6}.items():
            file.createDimension(dimension, size)
        for kind, variables in (("i4", integers), ("f8", reals)):
            for variable, (first, dimension, values) in variables.items():
                dimensions = (first, dimension) if first else (dimension,)
                file.createVariable(variable, kind, dimensions)[...] = values.T
    return grid


def _set_attributes(file: netCDF4.Dataset, name: str, grid: Icosahedron) -> None:
    file.title = f"ICON grid {name}"
    file.source = "gtstub, examples/model/grid.py"
    file.uuidOfHGrid = f"gtstub-{name}"
    file.grid_root, file.grid_level = np.int32(grid.root), np.int32(grid.level)
    file.sphere_radius = RADIUS


# --- Points and triangles ---------------------------------------------------------------------------------------------


def _base() -> tuple[Array, Array]:
    """The icosahedron with a vertex at each pole."""
    height, radius = 1 / np.sqrt(5), 2 / np.sqrt(5)
    upper, lower = 2 * np.pi * np.arange(5) / 5, 2 * np.pi * (np.arange(5) + 0.5) / 5
    points = np.array(
        [
            (0, 0, 1),
            *((radius * np.cos(x), radius * np.sin(x), height) for x in upper),
            *((radius * np.cos(x), radius * np.sin(x), -height) for x in lower),
            (0, 0, -1),
        ]
    )
    cells = []
    for i in range(5):
        a, b, c, d = 1 + i, 1 + (i + 1) % 5, 6 + i, 6 + (i + 1) % 5
        cells += [(0, a, b), (a, c, b), (b, c, d), (11, d, c)]
    return points, np.array(cells)


def _divide(points: Array, cells: Array, parts: int) -> tuple[Array, Array]:
    """Divides each edge into so many parts, and each cell into the square of it."""
    if parts == 1:
        return points, cells
    edges, cell_edges = _edges(cells)
    number = len(points)
    steps = np.arange(1, parts)
    weights = (steps / parts)[:, None]
    on_edges = (1 - weights) * points[edges[:, None, 0]] + weights * points[edges[:, None, 1]]
    inner = [(i, j) for i in range(1, parts) for j in range(1, parts - i)]
    table = np.empty((parts + 1, parts + 1, len(cells)), dtype=int)
    table[0, 0], table[parts, 0], table[0, parts] = cells.T
    along = number + cell_edges[..., None] * (parts - 1) + (steps - 1)
    is_ahead = (cells == edges[cell_edges][..., 0])[..., None]
    along = np.where(is_ahead, along, along[..., ::-1])
    for step in steps:  # (i, j) is i steps towards the second vertex, and j towards the third
        table[step, 0] = along[:, 0, step - 1]
        table[parts - step, step] = along[:, 1, step - 1]
        table[0, parts - step] = along[:, 2, step - 1]
    a, b, c = (points[cells[:, i]] for i in range(3))
    inside = []
    for place, (i, j) in enumerate(inner):
        table[i, j] = number + len(edges) * (parts - 1) + place * len(cells) + np.arange(len(cells))
        inside.append(((parts - i - j) * a + i * b + j * c) / parts)
    smaller = [
        triangle
        for i in range(parts)
        for j in range(parts - i)
        for triangle in (
            ((i, j), (i + 1, j), (i, j + 1)),
            *([((i + 1, j), (i + 1, j + 1), (i, j + 1))] if i + j < parts - 1 else []),
        )
    ]
    divided = np.stack([np.stack([table[corner] for corner in triangle], axis=-1) for triangle in smaller], axis=1)
    return _unit(np.concatenate([points, on_edges.reshape(-1, 3), *inside])), divided.reshape(-1, 3)


def _edges(cells: Array) -> tuple[Array, Array]:
    """The edges, each from its smaller vertex to the larger one, and those of each cell."""
    ends = np.stack([cells, np.roll(cells, -1, axis=1)], axis=-1).reshape(-1, 2)
    edges, numbers = np.unique(np.sort(ends, axis=1), axis=0, return_inverse=True)
    return edges, numbers.reshape(-1, 3)


def _unit(vectors: Array) -> Array:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _tangents(points: Array) -> tuple[Array, Array]:
    """Two tangents of the sphere at each point, right-handed with it: east and north, except near a pole."""
    axis = np.where(np.abs(points[:, 2:]) < 0.9, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
    east = _unit(np.cross(axis, points))
    return east, np.cross(points, east)


def _arc(a: Array, b: Array) -> Array:
    """The angle between unit vectors, exact for small ones as well."""
    return np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), (a * b).sum(axis=-1))


def _area(a: Array, b: Array, c: Array) -> Array:
    """
    The signed area of a spherical triangle, positive if it is anticlockwise (A. Van Oosterom and J. Strackee, "The
    solid angle of a plane triangle", IEEE Trans. Biomed. Eng. 30, 1983).
    """
    volume = (a * np.cross(b, c)).sum(axis=-1)
    return 2 * np.arctan2(volume, 1 + (a * b).sum(axis=-1) + (b * c).sum(axis=-1) + (c * a).sum(axis=-1))


def _areas(grid: Icosahedron) -> tuple[Array, Array]:
    """Of the cells, and of the cells of the dual grid, on the unit sphere."""
    corners, middles = grid.points[grid.cells], grid.edge_centers[grid.cell_edges]
    center = grid.cell_centers[:, None]
    kites = _area(corners, middles, center) + _area(corners, center, np.roll(middles, 1, axis=1))
    return _area(*np.moveaxis(corners, 1, 0)), np.bincount(grid.cells.ravel(), kites.ravel())
