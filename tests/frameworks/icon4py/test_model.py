"""The model of examples/model: its grid, and its substeps as steps. `make model` runs all of it."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import gt4py.next as gtx
import numpy as np
import pytest
from icon4py.model.common import dimension as dims
from icon4py.model.common.grid.grid_manager import GridManager
from icon4py.model.common.grid.gridfile import ToZeroBasedIndexTransformation
from icon4py.model.common.grid.vertical import VerticalGridConfig

from examples.captured_diffusion.captured import MOST
from examples.model import grid as grids
from examples.model.substeps import VERTICAL_MOMENTUM, CapturedSubsteps
from tests.support.checkout import ROOT

type Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module", params=["R01B01", "R02B01", "R03B00"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[grids.Icosahedron, Any]:
    """A grid, and what icon4py reads of its file."""
    path = tmp_path_factory.mktemp("grid") / "grid.nc"
    grid = grids.write_grid(request.param, path)
    manager = GridManager(
        grid_file=path,
        config=VerticalGridConfig(num_levels=5),
        offset_transformation=ToZeroBasedIndexTransformation(),
    )
    manager(allocator=None, keep_skip_values=True)
    return grid, manager


def _geometry(manager: GridManager, name: str) -> Array:
    return np.asarray(manager.geometry_fields[name].asnumpy())


def test_counts_are_those_of_the_bisected_icosahedron(made: tuple[grids.Icosahedron, Any]) -> None:
    grid, manager = made
    assert len(grid.points) - len(grid.edges) + len(grid.cells) == 2
    assert len(grid.cells) == 20 * grid.root**2 * 4**grid.level
    assert (manager.grid.num_cells, manager.grid.num_edges, manager.grid.num_vertices) == (
        len(grid.cells),
        len(grid.edges),
        len(grid.points),
    )
    assert (manager.grid.connectivities["V2E"].ndarray == -1).any(axis=1).sum() == 12  # those of the icosahedron


def test_areas_of_both_grids_cover_the_sphere(made: tuple[grids.Icosahedron, Any]) -> None:
    _, manager = made
    for name in ("cell_area", "dual_area"):
        areas = _geometry(manager, name)
        assert (areas > 0).all()
        np.testing.assert_allclose(areas.sum(), 4 * np.pi * grids.RADIUS**2, rtol=1e-13)


def test_divergence_and_vorticity_of_a_solid_body_rotation(made: tuple[grids.Icosahedron, Any]) -> None:
    grid, manager = made
    normal = np.cross(grids._unit(np.diff(grid.points[grid.edges], axis=1)[:, 0]), grid.edge_centers)
    wind = (np.cross((0.0, 0.0, 1.0), grid.edge_centers) * normal).sum(axis=1)  # of one radian a second
    tables = manager.grid.connectivities
    c2e, v2e = (np.asarray(tables[name].ndarray) for name in ("C2E", "V2E"))
    flow = wind[c2e] * _geometry(manager, "edge_length")[c2e] * _geometry(manager, "orientation_of_normal")
    divergence = grids.RADIUS * flow.sum(axis=1) / _geometry(manager, "cell_area")
    turn = wind[v2e] * _geometry(manager, "dual_edge_length")[v2e] * _geometry(manager, "edge_orientation")
    vorticity = grids.RADIUS * turn.sum(axis=1) / _geometry(manager, "dual_area")
    assert abs(divergence).max() < 0.03
    assert abs(vorticity - 2 * grid.points[:, 2]).max() < 0.2


def test_neighbours_agree(made: tuple[grids.Icosahedron, Any]) -> None:
    grid, manager = made
    tables = {name: np.asarray(table.ndarray) for name, table in manager.grid.connectivities.items()}
    cells = np.arange(len(grid.cells))[:, None]
    assert (tables["E2C"][tables["C2E"]] == cells[..., None]).any(axis=-1).all()
    assert (tables["C2E2C"][tables["C2E2C"]] == cells[..., None]).any(axis=-1).all()
    for around, ends in (("V2E", "E2V"), ("V2C", "C2V")):
        exists = tables[around] != -1
        own = np.broadcast_to(np.arange(len(grid.points))[:, None], exists.shape)
        assert (tables[ends][tables[around]] == own[..., None]).any(axis=-1)[exists].all()
    towards = grid.cell_centers[tables["E2C"][:, 1]] - grid.cell_centers[tables["E2C"][:, 0]]
    along = grid.points[tables["E2V"][:, 1]] - grid.points[tables["E2V"][:, 0]]
    up = (np.cross(towards, along) * grid.edge_centers).sum(axis=1)
    assert (up > 0).all()  # normal, tangent and vertical are right-handed, as 'edge_system_orientation' says


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("R2B2.nc", "'R2B2.nc' is no name of a grid: write R<n>B<k>, such as R02B04."),
        ("R00B02", "'R00B02' is no name of a grid: write R<n>B<k>, such as R02B04."),
        ("R02B08", "Grid 'R02B08' has 5,242,880 cells; this program makes grids of at most 1,000,000."),
    ],
)
def test_other_names_are_refused(name: str, text: str) -> None:
    with pytest.raises(ValueError) as error:
        grids.parse_name(name)
    assert str(error.value) == text
    found = subprocess.run(
        [sys.executable, "-m", "examples.model.run", name], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 2
    assert text in found.stderr


# --- Substeps ---------------------------------------------------------------------------------------------------------


@gtx.field_operator
def _advance(
    a: gtx.Field[[dims.CellDim, dims.KDim], gtx.float64], factor: gtx.float64
) -> gtx.Field[[dims.CellDim, dims.KDim], gtx.float64]:
    return a * factor


@gtx.field_operator
def _add(
    a: gtx.Field[[dims.CellDim, dims.KDim], gtx.float64], b: gtx.Field[[dims.CellDim, dims.KDim], gtx.float64]
) -> gtx.Field[[dims.CellDim, dims.KDim], gtx.float64]:
    return a + b


@gtx.program
def add_to_w(
    w: gtx.Field[[dims.CellDim, dims.KDim], gtx.float64],
    vertical_cfl: gtx.Field[[dims.CellDim, dims.KDim], gtx.float64],
) -> None:
    _add(w, vertical_cfl, out=w)


@gtx.program
def compute_advection_in_predictor_vertical_momentum(
    w: gtx.Field[[dims.CellDim, dims.KDim], gtx.float64],
    factor: gtx.float64,
    vertical_cfl: gtx.Field[[dims.CellDim, dims.KDim], gtx.float64],
) -> None:
    _advance(w, factor, out=vertical_cfl)


class _Granule:
    """What `CapturedSubsteps` knows of icon4py's `SolveNonhydro`, with a program that gtstub builds."""

    def __init__(self) -> None:
        import gtstub

        self.program = gtstub.compile(
            compute_advection_in_predictor_vertical_momentum, backend_tag="CPU", offset_provider={}
        )
        self.add = gtstub.compile(add_to_w, backend_tag="CPU", offset_provider={})
        self.cfl = gtx.as_field([dims.CellDim, dims.KDim], np.zeros((8, 3)))
        self.velocity_advection = SimpleNamespace(_start_cell_lateral_boundary_level_4=2, _end_cell_halo=7)
        self._dtime_previous_substep = 0.0
        self.calls = 0
        self.grows = False
        """Whether a substep changes what the next one reads."""

    def time_step(self, *, diagnostic_state_nh: Any, prognostic_states: Any, dtime: float) -> None:
        self.calls += 1
        self._dtime_previous_substep = dtime
        self.program(prognostic_states.current, dtime, self.cfl)
        found = self.cfl.ndarray[2:7].max()
        diagnostic_state_nh.max_vertical_cfl = np.maximum(found, diagnostic_state_nh.max_vertical_cfl)
        if self.grows:
            self.add(prognostic_states.current, self.cfl)


@pytest.fixture
def substep() -> tuple[_Granule, CapturedSubsteps, dict[str, Any]]:
    granule = _Granule()
    tendency = SimpleNamespace(predictor=object(), corrector=object())
    diagnostic = SimpleNamespace(
        vertical_wind_advective_tendency=tendency, normal_wind_advective_tendency=tendency, max_vertical_cfl=0.0
    )
    levels = (gtx.as_field([dims.CellDim, dims.KDim], np.arange(24.0).reshape(8, 3) + number) for number in (0, 100))
    states = SimpleNamespace(current=next(levels), next=next(levels))
    return granule, CapturedSubsteps(granule), {"diagnostic_state_nh": diagnostic, "prognostic_states": states}


def test_a_later_substep_is_a_step_with_the_courant_number(
    substep: tuple[_Granule, CapturedSubsteps, dict[str, Any]],
) -> None:
    granule, captured, arguments = substep
    diagnostic, states = arguments.values()
    captured(**arguments, dtime=2.0)
    captured(**arguments, dtime=2.0)  # with the length of the last substep
    calls = granule.calls
    diagnostic.max_vertical_cfl = 0.0
    states.current.ndarray[3, 1] = 500.0
    captured(**arguments, dtime=2.0)
    assert granule.calls == calls
    assert diagnostic.max_vertical_cfl == 1000.0
    assert [str(action.__name__) for action in captured.steps[-1] if hasattr(action, "program")] == [
        VERTICAL_MOMENTUM[0]
    ]


def test_other_levels_and_scalars_are_another_step(
    substep: tuple[_Granule, CapturedSubsteps, dict[str, Any]],
) -> None:
    granule, captured, arguments = substep
    diagnostic, states = arguments.values()
    for _ in range(2):
        captured(**arguments, dtime=2.0)
    states.current, states.next = states.next, states.current
    captured(**arguments, dtime=2.0)
    assert diagnostic.max_vertical_cfl == 2 * 120.0
    diagnostic.max_vertical_cfl = 0.0
    captured(**arguments, dtime=3.0)
    assert diagnostic.max_vertical_cfl == 3 * 120.0
    captured(**arguments, dtime=2.0)  # after a substep of another length the granule may call other programs
    assert granule._dtime_previous_substep == 2.0


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_capture_leaves_the_courant_number_of_one_call(
    substep: tuple[_Granule, CapturedSubsteps, dict[str, Any]], number: int
) -> None:
    """A capture calls twice; the first substep is called and refused, the second one captured, the third one a step."""
    granule, captured, arguments = substep
    diagnostic, states = arguments.values()
    granule.grows = True
    expected = states.current.ndarray[2:7].max() * 3 ** (number - 1) * 2.0
    for _ in range(number):
        captured(**arguments, dtime=2.0)
    assert diagnostic.max_vertical_cfl == expected


def test_scalars_that_always_change_make_no_steps_for_ever(
    substep: tuple[_Granule, CapturedSubsteps, dict[str, Any]],
) -> None:
    _, captured, arguments = substep
    for number in range(MOST + 3):
        captured(**arguments, dtime=1.0 + number)
    assert len(captured.steps) <= MOST
    np.testing.assert_equal(arguments["diagnostic_state_nh"].max_vertical_cfl, 20.0 * (MOST + 3))
