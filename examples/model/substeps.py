"""A substep of icon4py's dynamical core as a step of gtstub."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gtstub
from examples.captured_diffusion.captured import Captured

VERTICAL_MOMENTUM = (
    "compute_advection_in_predictor_vertical_momentum",
    "compute_advection_in_corrector_vertical_momentum",
)
"""The programs after which the granule takes the largest Courant number from the field that they have written."""


class CapturedSubsteps(Captured):
    """
    Calls `time_step` of a `SolveNonhydro`. A substep becomes a step when it is called for the first time with these
    time levels, tendencies and scalars. The granule reduces the vertical Courant number to one value between two
    programs, with numpy and into a new array, which no program can: in the step a function does it.
    """

    def __init__(self, granule: Any) -> None:
        super().__init__(granule.time_step)
        self._granule = granule
        self.diagnostic: Any = None
        """The diagnostic state of the present call."""

    def __call__(self, *, diagnostic_state_nh: Any, prognostic_states: Any, **arguments: Any) -> None:
        self.diagnostic = diagnostic_state_nh
        objects = (
            prognostic_states.current,
            prognostic_states.next,
            diagnostic_state_nh,
            diagnostic_state_nh.vertical_wind_advective_tendency.predictor,
            diagnostic_state_nh.vertical_wind_advective_tendency.corrector,
            diagnostic_state_nh.normal_wind_advective_tendency.predictor,
            diagnostic_state_nh.normal_wind_advective_tendency.corrector,
            *arguments,
            *arguments.values(),
            self._granule._dtime_previous_substep,  # another length of the last substep calls one program more
        )
        self._do(
            objects,
            lambda: self._method(
                diagnostic_state_nh=diagnostic_state_nh, prognostic_states=prognostic_states, **arguments
            ),
        )

    def _capture(self, call: Callable[[], None]) -> gtstub.Step:
        return self._with_courant_number(gtstub.capture(call, name="substep"))

    def _with_courant_number(self, step: gtstub.Step) -> gtstub.Step:
        """The same step with the reductions of `VelocityAdvection.run_predictor_step` and `run_corrector_step`."""
        actions: list[Any] = []
        for call in step:
            actions.append(call)
            if call.__name__ in VERTICAL_MOMENTUM:
                actions.append(gtstub.action(self.take_maximum, call.arguments["vertical_cfl"]))
        return gtstub.Step(actions, name="substep")

    def take_maximum(self, vertical_cfl: Any) -> None:
        """Reduces the vertical Courant number on cells to the diagnostic state's."""
        advection, diagnostic = self._granule.velocity_advection, self.diagnostic
        cells = slice(advection._start_cell_lateral_boundary_level_4, advection._end_cell_halo)
        xp = vertical_cfl.array_ns
        found = xp.max(vertical_cfl.ndarray[cells, :].ravel(order="K"))
        diagnostic.max_vertical_cfl = xp.maximum(found, diagnostic.max_vertical_cfl)
