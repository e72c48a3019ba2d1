"""Handing steps over to C and Fortran hosts in the same process."""

from __future__ import annotations

import atexit
from dataclasses import dataclass

from gtstub import _host

atexit.register(_host.end_steps)


@dataclass(frozen=True)
class HandedOver:
    """A step that was handed over under a name. A `with` statement takes it back."""

    name: str

    def __enter__(self) -> HandedOver:
        return self

    def __exit__(self, *_exception: object) -> None:
        take_back(self.name)


def hand_over(step: _host.Step, name: str) -> HandedOver:
    """
    Hands a step over to C and Fortran in this process, which find it by the name::

        gtstub.hand_over(step, "diffusion")  # C: gts_step_find("diffusion", &step)

    They run the same step with the same arrays, and their changes are changes of `step`. The step and its arrays stay
    alive until `take_back(name)`, or the end of a `with` statement around the result. Raises ValueError if the name is
    in use, or if the step is handed over already.
    """
    _host.hand_over(step, name)
    return HandedOver(name)


def take_back(name: str) -> None:
    """
    Takes a step back that was handed over. From now on it is refused in C and Fortran, also where it was found before.
    Raises ValueError if there is none of this name, and RuntimeError while the step is running.
    """
    _host.take_back(name)
