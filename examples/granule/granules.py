"""
icon4py's diffusion and velocity advection on the torus: their states, and their steps.

Both classes are icon4py's own. A granule gets what it calls from the function `setup_program` that its module imports:
to run it through gtstub, that one name is bound to gtstub's function of the same signature.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import gt4py.next as gtx
import numpy as np
from gt4py.next import common
from icon4py.model.atmosphere.diffusion import diffusion
from icon4py.model.atmosphere.diffusion.diffusion_states import (
    DiffusionDiagnosticState,
    DiffusionInterpolationState,
    DiffusionMetricState,
    initialize_diffusion_diagnostic_state,
)
from icon4py.model.atmosphere.dycore import velocity_advection
from icon4py.model.atmosphere.dycore.dycore_states import InterpolationState, MetricStateNonHydro
from icon4py.model.common import dimension as dims
from icon4py.model.common.decomposition.definitions import SingleNodeExchange
from icon4py.model.common.states.nonhydro_states import (
    DiagnosticStateNonHydro,
    initialize_solve_nonhydro_diagnostic_state,
)
from icon4py.model.common.states.prognostic_state import PrognosticState
from icon4py.model.common.utils import PredictorCorrectorPair

from examples.granule.torus import ALLOCATOR, Torus, field

TIME_STEP = 10.0
"""Seconds."""

SetupProgram = Callable[..., Callable[..., None]]


class Granule(Protocol):
    """A granule with its state: `granule` is icon4py's object."""

    name: str
    granule: Any

    def step(self, number: int) -> None: ...

    def state(self) -> dict[str, Any]:
        """What the steps read and write, under readable names."""
        ...


def fields(granule: Granule) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of all fields that a step may change: of the state, and those the granule keeps for itself."""
    found: dict[str, np.ndarray[Any, Any]] = {}
    for name, value in {**granule.state(), **vars(granule.granule)}.items():
        found |= dict(_leaves(name, value))
    return found


def _leaves(name: str, value: Any) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    match value:
        case common.Field():
            yield name.lstrip("_"), value.ndarray
        case np.ndarray() | np.generic():
            yield name, np.asarray(value)
        case PredictorCorrectorPair():
            yield from _leaves(f"{name}.predictor", value.predictor)
            yield from _leaves(f"{name}.corrector", value.corrector)
        case PrognosticState() | DiffusionDiagnosticState() | DiagnosticStateNonHydro():
            for item, element in vars(value).items():
                yield from _leaves(f"{name}.{item}", element)


class _Random:
    """Random fields on the torus; the same seed gives the same values."""

    def __init__(self, torus: Torus, seed: int) -> None:
        self._torus = torus
        self._random = np.random.default_rng(seed)

    def __call__(self, low: float, high: float, *dimensions: gtx.Dimension, extra: int = 0) -> gtx.Field[Any, Any]:
        """Uniform values; `extra` levels more than the model has."""
        return field(self._random.uniform(low, high, self._shape(dimensions, extra)), *dimensions)

    def perturbed(self, profile: np.ndarray[Any, Any], amplitude: float) -> gtx.Field[Any, Any]:
        """On cells: a value for each level, and noise."""
        noise = self._random.uniform(-amplitude, amplitude, self._shape((dims.CellDim, dims.KDim), 0))
        return field(profile + noise, dims.CellDim, dims.KDim)

    def _shape(self, dimensions: tuple[gtx.Dimension, ...], extra: int) -> list[int]:
        return [self._torus.grid.size[dim] + (extra if dim == dims.KDim else 0) for dim in dimensions]


def _profiles(torus: Torus) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Potential temperature [K] and Exner function of an atmosphere at rest, on full levels."""
    interfaces = torus.vertical.vct_a.asnumpy()
    height = 0.5 * (interfaces[1:] + interfaces[:-1])
    return 290.0 + 0.005 * height, np.exp(-height / 30_000.0)


def _prognostic(torus: Torus, random: _Random) -> PrognosticState:
    theta, exner = _profiles(torus)
    return PrognosticState(
        rho=random(0.2, 1.2, dims.CellDim, dims.KDim),
        w=random(-1.0, 1.0, dims.CellDim, dims.KDim, extra=1),
        vn=random(-20.0, 20.0, dims.EdgeDim, dims.KDim),
        exner=random.perturbed(exner, 1e-3),
        theta_v=random.perturbed(theta, 8.0),  # cold enough in places to need the extra diffusion of cold pools
    )


# --- Diffusion --------------------------------------------------------------------------------------------------------


class Diffusion:
    """icon4py's horizontal diffusion; its first step is the initial one."""

    name = "diffusion"

    def __init__(self, torus: Torus, backend: Any, setup_program: SetupProgram) -> None:
        random = _Random(torus, seed=1)
        config = diffusion.DiffusionConfig(
            shear_type=diffusion.TurbulenceShearForcingType.VERTICAL_HORIZONTAL_OF_HORIZONTAL_VERTICAL_WIND
        )
        self.prognostic = _prognostic(torus, random)
        self.diagnostic = initialize_diffusion_diagnostic_state(torus.grid, ALLOCATOR)
        diffusion.setup_program = setup_program
        self.granule = diffusion.Diffusion(
            grid=torus.grid,
            config=config,
            params=diffusion.DiffusionParams(config),
            vertical_grid=torus.vertical,
            metric_state=_diffusion_metrics(torus, random),
            interpolation_state=_diffusion_interpolation(torus),
            edge_params=torus.edge_params(),
            cell_params=torus.cell_params(),
            backend=backend,
            exchange=SingleNodeExchange(),
        )

    def step(self, number: int) -> None:
        self.granule.run(self.diagnostic, self.prognostic, TIME_STEP, initial_run=number == 0)

    def state(self) -> dict[str, Any]:
        return {"prognostic": self.prognostic, "diagnostic": self.diagnostic}


def _diffusion_metrics(torus: Torus, random: _Random) -> DiffusionMetricState:
    shape = (torus.grid.num_cells, 3, torus.levels)
    offsets = np.random.default_rng(2).integers(-1, 2, shape, dtype=np.int32)
    offsets[..., 0], offsets[..., -2:] = 0, -1  # its program reads the level of the offset and the one below
    steep = np.random.default_rng(3).uniform(0.0, 0.01, shape[::2])
    steep[:, ::2] = 0.0
    return DiffusionMetricState(
        theta_ref_mc=random.perturbed(_profiles(torus)[0], 0.0),
        wgtfac_c=random(0.4, 0.6, dims.CellDim, dims.KDim, extra=1),
        zd_vertoffset=field(offsets, dims.CellDim, dims.C2E2CDim, dims.KDim),
        zd_diffcoef=field(steep, dims.CellDim, dims.KDim),
        zd_intcoef=random(0.0, 1.0, dims.CellDim, dims.C2E2CDim, dims.KDim),
    )


def _diffusion_interpolation(torus: Torus) -> DiffusionInterpolationState:
    return DiffusionInterpolationState(
        e_bln_c_s=field(np.full((torus.grid.num_cells, 3), 1 / 3), dims.CellDim, dims.C2EDim),
        rbf_coeff_1=field(torus.rbf_vertex[0], dims.VertexDim, dims.V2EDim),
        rbf_coeff_2=field(torus.rbf_vertex[1], dims.VertexDim, dims.V2EDim),
        geofac_div=field(torus.geofac_div, dims.CellDim, dims.C2EDim),
        geofac_n2s=field(torus.geofac_n2s, dims.CellDim, dims.C2E2CODim),
        geofac_grg_x=field(torus.geofac_grg[0], dims.CellDim, dims.C2E2CODim),
        geofac_grg_y=field(torus.geofac_grg[1], dims.CellDim, dims.C2E2CODim),
        nudgecoeff_e=field(np.zeros(torus.grid.num_edges), dims.EdgeDim),  # the torus has no boundary
    )


# --- Velocity advection -----------------------------------------------------------------------------------------------


class VelocityAdvection:
    """icon4py's velocity advection; a step is its predictor step and its corrector step."""

    name = "velocity advection"

    def __init__(self, torus: Torus, backend: Any, setup_program: SetupProgram) -> None:
        random = _Random(torus, seed=4)
        self.prognostic = _prognostic(torus, random)
        self.diagnostic = initialize_solve_nonhydro_diagnostic_state(torus.grid, ALLOCATOR)
        self.on_edges = {
            name: random(0.0, 0.0, dims.EdgeDim, dims.KDim)
            for name in (
                "contravariant_correction_at_edges_on_model_levels",
                "horizontal_kinetic_energy_at_edges_on_model_levels",
                "tangential_wind_on_half_levels",
            )
        }
        self.area = torus.cell_params().area
        velocity_advection.setup_program = setup_program
        self.granule = velocity_advection.VelocityAdvection(
            grid=torus.grid,
            metric_state=_dycore_metrics(torus, random),
            interpolation_state=_dycore_interpolation(torus),
            vertical_params=torus.vertical,
            edge_params=torus.edge_params(),
            owner_mask=field(np.ones(torus.grid.num_cells, dtype=bool), dims.CellDim),
            backend=backend,
        )

    def step(self, number: int) -> None:
        correction, energy, tangential = self.on_edges.values()
        self.granule.run_predictor_step(
            skip_compute_predictor_vertical_advection=number % 2 == 1,
            diagnostic_state=self.diagnostic,
            prognostic_state=self.prognostic,
            contravariant_correction_at_edges_on_model_levels=correction,
            horizontal_kinetic_energy_at_edges_on_model_levels=energy,
            tangential_wind_on_half_levels=tangential,
            dtime=TIME_STEP,
            cell_areas=self.area,
        )
        self.granule.run_corrector_step(
            diagnostic_state=self.diagnostic,
            prognostic_state=self.prognostic,
            horizontal_kinetic_energy_at_edges_on_model_levels=energy,
            tangential_wind_on_half_levels=tangential,
            dtime=TIME_STEP,
            cell_areas=self.area,
        )

    def state(self) -> dict[str, Any]:
        return {"prognostic": self.prognostic, "diagnostic": self.diagnostic, **self.on_edges}


def _dycore_metrics(torus: Torus, random: _Random) -> MetricStateNonHydro:
    interfaces = torus.vertical.vct_a.asnumpy()
    thickness = interfaces[:-1] - interfaces[1:]
    on_half_levels = np.concatenate([thickness[:1] / 2, (thickness[1:] + thickness[:-1]) / 2, thickness[-1:] / 2])
    cells, edges = torus.grid.num_cells, torus.grid.num_edges
    needed = {
        "wgtfac_c": random(0.4, 0.6, dims.CellDim, dims.KDim, extra=1),
        "wgtfac_e": random(0.4, 0.6, dims.EdgeDim, dims.KDim, extra=1),
        "wgtfacq_e": random(0.2, 0.4, dims.EdgeDim, dims.KDim),
        "ddxn_z_full": random(-0.05, 0.05, dims.EdgeDim, dims.KDim),
        "ddxt_z_full": random(-0.05, 0.05, dims.EdgeDim, dims.KDim),
        "ddqz_z_half": field(np.tile(on_half_levels, (cells, 1)), dims.CellDim, dims.KDim),
        "ddqz_z_full_e": field(np.tile(thickness, (edges, 1)), dims.EdgeDim, dims.KDim),
        "coeff1_dwdz": field(np.tile(0.5 / thickness, (cells, 1)), dims.CellDim, dims.KDim),
        "coeff2_dwdz": field(np.tile(0.5 / thickness, (cells, 1)), dims.CellDim, dims.KDim),
        "coeff_gradekin": field(np.full((edges, 2), 1 / torus.dual_length), dims.EdgeDim, dims.E2CDim),
    }
    return _partly(MetricStateNonHydro, needed)


def _dycore_interpolation(torus: Torus) -> InterpolationState:
    grid = torus.grid
    needed = {
        "e_bln_c_s": field(np.full((grid.num_cells, 3), 1 / 3), dims.CellDim, dims.C2EDim),
        "geofac_n2s": field(torus.geofac_n2s, dims.CellDim, dims.C2E2CODim),
        "c_lin_e": field(np.full((grid.num_edges, 2), 0.5), dims.EdgeDim, dims.E2CDim),
        "geofac_grdiv": field(torus.geofac_grdiv, dims.EdgeDim, dims.E2C2EODim),
        "rbf_vec_coeff_e": field(torus.rbf_edge, dims.EdgeDim, dims.E2C2EDim),
        "c_intp": field(np.full((grid.num_vertices, 6), 1 / 6), dims.VertexDim, dims.V2CDim),
        "geofac_rot": field(torus.geofac_rot, dims.VertexDim, dims.V2EDim),
    }
    return _partly(InterpolationState, needed)


def _partly(state: Any, needed: dict[str, Any]) -> Any:
    """A state of the dycore with what velocity advection reads of it; the rest is None."""
    return state(**dict.fromkeys(item.name for item in dataclasses.fields(state)) | needed)
