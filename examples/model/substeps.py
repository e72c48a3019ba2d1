"""A substep of icon4py's dynamical core as a step of gtstub."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gtstub
from examples.captured_diffusion.captured import key_of
from gtstub.errors import CaptureError

VERTICAL_MOMENTUM = (
    "compute_advection_in_predictor_vertical_momentum",
    "compute_advection_in_corrector_vertical_momentum",
)
"""The programs after which the granule takes the largest Courant number from the field that they have written."""

MOST = 64
"""Captured substeps that are kept. A scalar that is another one in each substep would make new ones for ever."""


class CapturedSubsteps:
    """
    Calls `time_step` of a `SolveNonhydro`. A substep becomes a step when it is called for the first time with these
    time levels, tendencies and scalars, and `gtstub.capture()` compares both bit for bit. The granule reduces the
    vertical Courant number to one value between two programs, with numpy and into a new array, which no program can:
    in the step a function does it. A substep that is no step stays a call of the granule; `refusals` says why.
    """

    def __init__(self, granule: Any) -> None:
        self._granule = granule
        self._method: Callable[..., None] = granule.time_step
        self._known: dict[tuple[Any, ...], tuple[tuple[Any, ...], Callable[[], None]]] = {}
        self.refusals: list[str] = []

    def __call__(self, *, diagnostic_state_nh: Any, prognostic_states: Any, **arguments: Any) -> None:
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
        key = tuple(map(key_of, objects))
        if key in self._known:
            self._known[key][1]()
            return
        call = lambda: self._method(  # noqa: E731  a name would be that of the step
            diagnostic_state_nh=diagnostic_state_nh, prognostic_states=prognostic_states, **arguments
        )
        if len(self._known) >= MOST:
            call()
            return
        # Keeps the objects, so that their ids stay theirs.
        self._known[key] = objects, self._captured(call, diagnostic_state_nh)

    @property
    def steps(self) -> list[gtstub.Step]:
        return [action for _, action in self._known.values() if isinstance(action, gtstub.Step)]

    def _captured(self, call: Callable[[], None], diagnostic: Any) -> Callable[[], None]:
        """Calls the granule once, as far as its state is concerned. Returns the step, or `call` if there is none."""
        numbers: list[Any] = []

        def call_and_keep_number() -> None:
            call()
            numbers.append(diagnostic.max_vertical_cfl)

        try:
            step = gtstub.capture(call_and_keep_number, name="substep")
        except CaptureError as error:
            self.refusals.append(str(error))
            return call
        finally:
            if numbers:  # A capture calls twice, and takes back in arrays alone what the second call has done.
                diagnostic.max_vertical_cfl = numbers[0]
        return self._with_courant_number(step, diagnostic)

    def _with_courant_number(self, step: gtstub.Step, diagnostic: Any) -> gtstub.Step:
        """The same step with the reductions of `VelocityAdvection.run_predictor_step` and `run_corrector_step`."""
        advection = self._granule.velocity_advection
        cells = slice(advection._start_cell_lateral_boundary_level_4, advection._end_cell_halo)

        def take_maximum(vertical_cfl: Any) -> None:
            xp = vertical_cfl.array_ns
            found = xp.max(vertical_cfl.ndarray[cells, :].ravel(order="K"))
            diagnostic.max_vertical_cfl = xp.maximum(found, diagnostic.max_vertical_cfl)

        actions: list[Any] = []
        for call in step:
            actions.append(call)
            if call.__name__ in VERTICAL_MOMENTUM:
                actions.append(gtstub.action(take_maximum, call.arguments["vertical_cfl"]))
        return gtstub.Step(actions, name="substep")
