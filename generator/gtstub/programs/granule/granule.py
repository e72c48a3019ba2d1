"""`gtstub.Granule`: captured steps over one set of arrays, to be exported to C and Fortran."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from gtstub import _host
from gtstub.errors import CaptureWarning, GranuleError
from gtstub.programs.granule.collect import Collected, collect, flat_actions
from gtstub.programs.granule.export import export
from gtstub.programs.granule.naming import arrays_of, layout_of, named_arrays
from gtstub.programs.granule.temporaries import temporaries
from gtstub.programs.layout import Layout
from gtstub.programs.unwritten import unwritten


class Granule:
    """
    Steps over one set of arrays, for hosts without Python::

        run = gtstub.capture(lambda: diffusion.run(diagnostic, prognostic, dtime))
        granule = gtstub.Granule(
            "diffusion", steps={"run": run}, arguments={"prog": prognostic, "diag": diagnostic}, scalars=["dtime"]
        )
        granule.export("diffusion_granule")

    `arguments` are the arrays that the host passes: a mapping of names to arrays, or to objects whose attributes are
    arrays, of which those are taken that a step has. Here 'prog_vn' is `prognostic.vn`. The granule keeps all other
    arrays of the steps, which begin with the values that they have when `export` is called. `kept`, a mapping or an
    object whose attributes are arrays, names some of them; the others are called as an argument of a program.

    A kept array that each step overwrites before it reads it is a temporary, and begins as zero, unless it is itself a
    value of the mapping `kept`. This is for an array that the host looks at or swaps before it runs a step. Such a
    value must be in a step, as a whole or by its sections.

    `scalars` are the scalars that the host passes to the steps, by their names in the programs; a mapping gives them
    names of their own. Others are constant.

    A function in a step is a hook: `hooks={"exchange": exchange}` names it, and the host passes a function of its own.

    Raises GranuleError if the steps cannot become a granule.
    """

    def __init__(
        self,
        name: str,
        *,
        steps: Mapping[str, _host.Step],
        arguments: Mapping[str, Any] | None = None,
        scalars: Sequence[str] | Mapping[str, str] = (),
        hooks: Mapping[str, Callable[..., object]] | None = None,
        kept: Any = None,
    ) -> None:
        if not steps:
            raise GranuleError(f"Granule '{name}' has no steps.")
        self.name = name
        self._steps = dict(steps)
        self._arguments = dict(arguments or {})
        self._scalars = dict(scalars) if isinstance(scalars, Mapping) else {each: each for each in scalars}
        if len(set(self._scalars.values())) < len(self._scalars):
            raise GranuleError(f"Two scalars of granule '{name}' are the same argument of programs.")
        self._hooks = dict(hooks or {})
        self._kept = kept
        self._collect()

    def export(
        self,
        folder: str | PathLike[str],
        *,
        force: bool = False,
        progress: Callable[[str], object] | None = None,
    ) -> Path:
        """
        Writes the granule to a folder, with its programs and the values of its kept arrays, and compares what the
        exported library does with what the steps do in Python, from slightly other values than the arrays have now. The
        arrays are afterwards as they are now. A CaptureWarning says if a step cannot begin with other values,
        or reads elements that nothing in it writes, although an earlier position writes others of the array.

        `force` replaces a granule that is there. `progress` gets a text before each part of the work. Returns the
        folder. Raises GranuleError if an array has other bits, or if the folder exists.
        """
        path = Path(folder)
        actions = {name: list(flat_actions(step)) for name, step in self._steps.items()}
        collected = self._collect()
        named = self._named()
        left_out = temporaries(collected, named)
        writable = {number for number, layout in enumerate(collected.layouts) if layout in named}
        limits = export(
            collected, left_out, writable, actions, path, force=force, progress=progress or (lambda _: None)
        )
        if collected.fixed:
            warnings.warn(
                f"Granule '{self.name}' has constants where Python has memory: {', '.join(collected.fixed.values())}. "
                f"The host passes those that are named: scalars={list(collected.fixed)}.",
                CaptureWarning,
                stacklevel=2,
            )
        said = [(step, f"was verified {text}.") for step, text in limits.items()]
        said += [(step, f"may lack something: {sign}") for step, each in actions.items() for sign in unwritten(each)]
        for step, text in said:
            warnings.warn(f"Step '{step}' of granule '{self.name}' {text}", CaptureWarning, stacklevel=2)
        return path

    def _named(self) -> set[Layout]:
        """The arrays that are values of the mapping `kept`."""
        return {layout for _, value in self._named_values() if (layout := layout_of(value)) is not None}

    def _named_values(self) -> Iterable[tuple[str, Any]]:
        return self._kept.items() if isinstance(self._kept, Mapping) else ()

    def _collect(self) -> Collected:
        """Reads the steps anew, because arrays may have been swapped."""
        arguments = named_arrays(self._arguments, self.name, "argument")
        kept = {} if self._kept is None else arrays_of(self._kept)
        named = {name.lstrip("_") for name, value in self._named_values() if layout_of(value) is not None}
        return collect(self.name, self._steps, set(self._arguments), arguments, self._scalars, self._hooks, kept, named)
