"""
Exports the captured steps of icon4py's time loop, its dynamical core and its diffusion, as one granule, and what a host
without Python needs to repeat time steps of the model: the values of its arrays, and those after these steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import gtstub
from examples.captured_diffusion.captured import Captured
from examples.model.host import FIRST
from examples.model.substeps import CapturedSubsteps

ORDERS = ("even", "odd")
"""The time levels are in the same order after two time steps."""


class Export:
    """
    Notes which steps the time steps FIRST and FIRST + 1 run, exports them before the next time step, and writes the
    fields of the model at the end.
    """

    def __init__(self, captured: Sequence[Captured], states: Any, folder: Path) -> None:
        self._diffusion, self._substeps = captured[0], captured[-1]
        assert isinstance(self._substeps, CapturedSubsteps)
        self._states, self._folder = states, folder
        self._logs: list[list[gtstub.Step]] = []
        self._levels: dict[str, Any] = {}

    def before(self, number: int) -> None:
        """Called before each time step; `number` is from 1."""
        if number == FIRST:
            self._states_at(number)
        if number in (FIRST, FIRST + 1):
            self._diffusion.log = self._substeps.log = log = list[gtstub.Step]()
            self._logs.append(log)
        if number == FIRST + 2:
            self._diffusion.log = self._substeps.log = None
            self._export()

    def _states_at(self, number: int) -> None:
        assert number % 2 == ORDERS.index("even")
        prognostic = self._states.prognostics
        self._levels = {"now": prognostic.current, "next": prognostic.next}

    def steps(self) -> Mapping[str, gtstub.Step]:
        """The steps of two time steps, such as 'even_3', in their order. Diffusion is the last one of its time step."""
        return {
            f"{order}_{position}": step
            for order, log in zip(ORDERS, self._logs, strict=True)
            for position, step in enumerate(log, 1)
        }

    def _export(self) -> None:
        diagnostic = self._substeps.diagnostic
        number = diagnostic.max_vertical_cfl
        granule = gtstub.Granule(
            "dycore",
            steps=self.steps(),
            arguments=self._levels,
            hooks={"courant_number": self._substeps.take_maximum},
        )
        granule.export(self._folder / "granule", force=True, progress=print)
        diagnostic.max_vertical_cfl = number  # The hook was called while the export has compared.
        self.write("before")

    def write(self, name: str) -> None:
        """Writes the fields of both time levels into a folder."""
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        for level, state in self._levels.items():
            for field, value in vars(state).items():
                array = np.asarray(value.ndarray)
                sizes = np.array(array.shape, np.int64)
                (folder / f"{level}_{field}.bin").write_bytes(sizes.tobytes() + array.tobytes(order="F"))
