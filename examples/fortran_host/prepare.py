"""
What the Fortran hosts need before they start: the diffusion granule, exported, the state of the torus in raw files, and
what Python's run of the same steps gives.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from icon4py.model.atmosphere.diffusion.diffusion import DiffusionConfig

import gtstub
from examples.granule.granules import TIME_STEP, Diffusion, fields
from examples.granule.torus import Torus
from examples.granule.ways import Gtstub, descriptor

Array = np.ndarray[Any, Any]

LEVELS = 10

TABLES = ("C2E", "C2E2C", "C2E2CO", "E2C", "E2C2V", "V2E")


def set_up() -> Diffusion:
    """icon4py's granule on the torus through gtstub, its programs built, and no step made."""
    granule = Diffusion(Torus(LEVELS), descriptor(Gtstub), Gtstub.setup_program)
    Gtstub.wait_for_compilation()
    return granule


# --- The granule ------------------------------------------------------------------------------------------------------


def export(diffusion: Diffusion, folder: Path) -> Path:
    """Exports the initial step and the others, from the state as it is now. Returns the folder."""
    before = {name: array.copy() for name, array in fields(diffusion).items()}
    steps = {
        # The initial step allocates two arrays of its own, so that two calls differ. The granule keeps them.
        "run_initial": gtstub.capture(lambda: diffusion.step(0), name="diffusion, initial", verify=False),
        "run": gtstub.capture(lambda: diffusion.step(1), name="diffusion"),
    }
    for name, array in fields(diffusion).items():
        array[...] = before[name]
    granule = gtstub.Granule(
        "diffusion",
        steps=steps,
        arguments={"prog": diffusion.prognostic, "diag": diffusion.diagnostic},
        scalars={"dtime": "factor"},
        kept=diffusion.granule,
    )
    return granule.export(folder, force=True, progress=print)


# --- The state --------------------------------------------------------------------------------------------------------


def write_state(granule: Diffusion, steps: int, folder: Path) -> None:
    """`steps` is the number of steps after the initial one."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, array in _arrays(granule).items():
        array.ravel(order="F").tofile(folder / f"{name}.bin")
    (folder / "host.nml").write_text("\n".join(_namelists(granule, steps)) + "\n", encoding="utf-8")


def _arrays(granule: Diffusion) -> dict[str, Array]:
    inner = granule.granule
    edge, interpolation, metrics = inner._edge_params, inner._interpolation_state, inner._metric_state
    found = {
        "tangent_orientation": edge.tangent_orientation,
        "inv_primal_edge_length": edge.inverse_primal_edge_lengths,
        "inv_dual_edge_length": edge.inverse_dual_edge_lengths,
        "inv_vert_vert_length": edge.inverse_vertex_vertex_lengths,
        "edge_areas": edge.edge_areas,
        "primal_normal_vert_x": edge.primal_normal_vert[0],
        "primal_normal_vert_y": edge.primal_normal_vert[1],
        "dual_normal_vert_x": edge.dual_normal_vert[0],
        "dual_normal_vert_y": edge.dual_normal_vert[1],
        "cell_areas": inner._cell_params.area,
        "vct_a": inner._vertical_grid.interface_physical_height,
        **{name: value for name, value in vars(interpolation).items() if not name.startswith("geofac_n2s_")},
        **vars(metrics),
        **vars(granule.prognostic),
        **vars(granule.diagnostic),
    }
    tables = {name.lower(): inner._grid.connectivities[name].ndarray + np.int32(1) for name in TABLES}
    return {**{name: value.ndarray for name, value in found.items()}, **tables}  # ICON's tables begin at 1


def _namelists(granule: Diffusion, steps: int) -> Iterator[str]:
    """Under ICON's names."""
    grid, config = granule.granule._grid, granule.granule.config
    factors = granule.granule._params
    yield from _namelist(
        "patch_nml",
        {"cells": grid.num_cells, "edges": grid.num_edges, "vertices": grid.num_vertices, "levels": grid.num_levels},
    )
    yield from _namelist("run_nml", {"steps": steps, "dtime": TIME_STEP})
    yield from _namelist(
        "diffusion_nml",
        {
            "ndyn_substeps": config.ndyn_substeps,
            "lhdiff_temp": config.apply_to_temperature,
            "hdiff_efdt_ratio": config.hdiff_efdt_ratio,
            "hdiff_smag_fac": factors.smagorinski_factor,
            "hdiff_smag_z": factors.smagorinski_height,
            "itype_sher": int(config.shear_type),
            "loutshs": config.loutshs,
            "a_hshr": config.a_hshr,
        },
    )
    yield from _namelist("embedded_nml", _of_embedded_alone(config))


def _of_embedded_alone(config: DiffusionConfig) -> dict[str, Any]:
    """In the exported granule's programs these are compiled in."""
    return {
        "hdiff_w_efdt_ratio": config.hdiff_w_efdt_ratio,
        "denom_diffu_v": config.velocity_boundary_diffusion_denominator,
        "nudge_max_coeff": config.max_nudging_coefficient,
        "iforcing": int(config.iforcing),
    }


def _namelist(name: str, values: Mapping[str, Any]) -> Iterator[str]:
    yield f"&{name}"
    for key, value in values.items():
        yield f"  {key} = {', '.join(map(_literal, value if isinstance(value, tuple) else (value,)))}"
    yield "/"


def _literal(value: Any) -> str:
    """Reads back as the same number: Python writes the shortest text that does."""
    return f".{str(value).lower()}." if isinstance(value, bool) else repr(value)


# --- What Python gives ------------------------------------------------------------------------------------------------


def run(granule: Diffusion, steps: int) -> dict[str, Array]:
    """All fields that the steps may change, by their last name, after the initial step and `steps` more."""
    for number in range(steps + 1):
        granule.step(number)
    return {name.rpartition(".")[2]: array.copy() for name, array in fields(granule).items()}
