"""
The experiment: a baroclinic wave in a dry, global atmosphere, with an analytical initial state (C. Jablonowski and
D. Williamson, "A baroclinic instability test case for atmospheric model dynamical cores", Q. J. R. Meteorol. Soc. 132,
2006), as a configuration of icon4py's driver.
"""

from __future__ import annotations

import datetime
from pathlib import Path

from icon4py.model.atmosphere.diffusion.diffusion import DiffusionConfig
from icon4py.model.atmosphere.dycore.solve_nonhydro import NonHydrostaticConfig
from icon4py.model.common import initial_condition, topography
from icon4py.model.common.grid.geometry_config import GeometryConfig
from icon4py.model.common.grid.vertical import VerticalGridConfig
from icon4py.model.common.initial_condition.analytical import jablonowski_williamson as initial_state
from icon4py.model.common.interpolation.interpolation_factory import InterpolationConfig
from icon4py.model.common.metrics.metrics_factory import MetricsConfig
from icon4py.model.common.prescribed_tendencies import PrescribedTendenciesConfig
from icon4py.model.common.states.tracer_states import TracerConfig
from icon4py.model.common.topography.analytical import jablonowski_williamson as mountains
from icon4py.model.driver.config import DriverConfig, ExperimentConfig

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
TIME_STEP = 4800.0
"""Seconds of a time step, divided by n * 2^k of the grid R<n>B<k>: 600 s for R02B02, 150 s for R02B04."""


def make_config(
    *, root: int, level: int, levels: int, steps: int, substeps: int, only_diffusion: bool, output: Path
) -> ExperimentConfig:
    """
    The configuration of a run. With `only_diffusion` the dynamical core is left out, whose programs take longest to
    build. `output` must not exist: the driver makes it.
    """
    return ExperimentConfig(
        geometry=GeometryConfig(),
        metrics=MetricsConfig(),
        interpolation=InterpolationConfig(),
        vertical_grid=VerticalGridConfig(num_levels=levels, rayleigh_damping_height=15000.0),
        topography=topography.TopographyConfig(config=mountains.JablonowskiWilliamsonConfig()),
        initial_condition=initial_condition.InitialConditionConfig(config=initial_state.JablonowskiWilliamsonConfig()),
        prescribed_tendencies=PrescribedTendenciesConfig(),
        nonhydrostatic=None if only_diffusion else NonHydrostaticConfig(),
        diffusion=DiffusionConfig(),
        tracer_config=TracerConfig.none(),
        driver=DriverConfig.make_initial(
            experiment_name="baroclinic wave",
            profiling_options=None,
            start_of_simulation=START,
            end_of_simulation=steps,
            dtime=datetime.timedelta(seconds=TIME_STEP / (root * 2**level)),
            ndyn_substeps=substeps,
            output_path=output,
        ),
    )
