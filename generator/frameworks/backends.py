"""Makes the gt4py backend that `gtstub.backends.choose` chose."""

from __future__ import annotations

from typing import Any

from gt4py.next import backend as gtx_backend
from gt4py.next.program_processors.runners import gtfn
from gt4py.next.program_processors.runners.dace import make_dace_backend

from gtstub.backends import Choice, at
from gtstub.errors import ConfigError
from gtstub.frameworks import gt4py, options


def make(choice: Choice) -> gtx_backend.Backend[Any]:
    """The chosen backend. Raises ConfigError for an option that it does not know, with the line that has it."""
    gpu = choice.device == "gpu"
    if choice.backend == "gtstub":
        return gt4py.make_backend(gpu, **_converted(choice, options.DACE))
    if choice.backend == "dace":
        return make_dace_backend(gpu, **_converted(choice, options.DACE))
    of_step = {
        f"otf_workflow__{'bare_translation__' if name in options.GTFN_TRANSLATION else ''}{name}": value
        for name, value in _converted(choice, options.GTFN).items()
    }
    return gtfn.GTFNBackendFactory(gpu=gpu, **of_step)


def _converted(choice: Choice, known: options.Known) -> dict[str, Any]:
    def refuse(path: tuple[str, ...], what: str) -> ConfigError:
        setting = next(reason.setting for reason in choice.reasons if reason.setting.path[1 : len(path) + 1] == path)
        option = f"Option '{'.'.join(path)}' of backend '{choice.backend}' for program '{choice.program}'"
        return ConfigError(f"{at(setting)}: {option} {what}")

    return options.convert(choice.options, known, refuse)
