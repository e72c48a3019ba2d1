"""
What Fortran calls through embedded Python: icon4py's own `diffusion_init` and `diffusion_run`, which icon4py's py2fgen
exports to Fortran; and what hands a step of the granule over, so that Fortran need not call Python for the next ones.

icon4py's `grid_init` needs an MPI communicator and takes all tables of the grid; here the grid is the torus of
examples/granule, so that both hosts run the very same SDFGs.
"""

from __future__ import annotations

from typing import Any

import gt4py.next as gtx
from icon4py.bindings import common, diffusion_wrapper, grid_wrapper, icon4py_export
from icon4py.bindings.diffusion_wrapper import diffusion_init, diffusion_run
from icon4py.model.atmosphere.diffusion import diffusion
from icon4py.model.atmosphere.diffusion.diffusion_states import DiffusionDiagnosticState
from icon4py.model.common import dimension as dims
from icon4py.model.common import field_type_aliases as fa
from icon4py.model.common import model_backends
from icon4py.model.common.decomposition.definitions import SingleNodeExchange
from icon4py.model.common.states.prognostic_state import PrognosticState

import gtstub
from examples.granule.torus import Torus
from gtstub.frameworks import icon4py as gtstub_icon4py

__all__ = ["diffusion_hand_over", "diffusion_init", "diffusion_run", "torus_init"]


@icon4py_export.export
def torus_init(vct_a: gtx.Field[gtx.Dims[dims.KDim], gtx.float64]) -> None:
    """`vct_a`, the height of the levels' interfaces, says how many levels there are."""
    torus = Torus(vct_a.ndarray.size - 1)
    grid_wrapper.grid_state = grid_wrapper.GridState(
        grid=torus.grid,
        vertical_grid=torus.vertical,
        edge_geometry=torus.edge_params(),
        cell_geometry=torus.cell_params(),
        exchange_runtime=SingleNodeExchange(),
    )


Cells = gtx.Field[gtx.Dims[dims.CellDim, dims.KDim], gtx.float64]


@icon4py_export.export
def diffusion_hand_over(
    w: Cells,
    vn: fa.EdgeKField[gtx.float64],
    exner: Cells,
    theta_v: Cells,
    rho: Cells,
    hdef_ic: Cells,
    div_ic: Cells,
    dwdx: Cells,
    dwdy: Cells,
    dtime: gtx.float64,
) -> None:
    """Does a step that is not the first, as `diffusion_run` does, and hands over what it does with Fortran's arrays."""
    prognostic = PrognosticState(rho=rho, w=w, vn=vn, exner=exner, theta_v=theta_v)
    diagnostic = DiffusionDiagnosticState(hdef_ic=hdef_ic, div_ic=div_ic, dwdx=dwdx, dwdy=dwdy)
    granule = diffusion_wrapper.granule.diffusion
    step = gtstub.capture(lambda: granule.run(diagnostic, prognostic, dtime, initial_run=False), name="nh_hdiff_run")
    gtstub.hand_over(step, "nh_hdiff_run")


def use_gtstub() -> None:
    """For PY2FGEN_EXTRA_CALLABLES, which py2fgen calls when Python starts: programs run through gtstub."""

    def select_backend(selector: Any, on_gpu: bool) -> model_backends.BackendDescriptor:
        return {"backend_factory": gtstub_icon4py.make_backend, "device": model_backends.CPU}

    common.select_backend = select_backend
    diffusion.setup_program = gtstub_icon4py.setup_program
