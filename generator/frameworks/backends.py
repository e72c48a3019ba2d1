"""Makes the gt4py backend that `gtstub.backends.choose` chose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gt4py.next import backend as gtx_backend
from gt4py.next.program_processors.runners import gtfn
from gt4py.next.program_processors.runners.dace import make_dace_backend

from gtstub.backends import Choice, at
from gtstub.errors import ConfigError
from gtstub.frameworks import gt4py, options

NOTHING: Mapping[str, Any] = {}


def make(choice: Choice, overrides: Mapping[str, Any] = NOTHING) -> gtx_backend.Backend[Any]:
    """
    The chosen backend. Raises ConfigError for an option that it does not know, with the line that has it.

    `overrides` are options as `make_dace_backend` takes them, which win over those of the choice.
    """
    gpu = choice.device == "gpu"
    if choice.backend != "gtfn":
        make_one = gt4py.make_backend if choice.backend == "gtstub" else make_dace_backend
        merged = _merged(_converted(choice, options.DACE), overrides)
        options.check_names(merged.get("optimization_args") or {})
        return make_one(gpu, **merged)
    if overrides:
        raise ConfigError(f"Backend 'gtfn' for program '{choice.program}' takes no option {', '.join(overrides)}.")
    of_step = {
        f"otf_workflow__{'bare_translation__' if name in options.GTFN_TRANSLATION else ''}{name}": value
        for name, value in _converted(choice, options.GTFN).items()
    }
    return gtfn.GTFNBackendFactory(gpu=gpu, **of_step)


def _merged(values: Mapping[Any, Any], overrides: Mapping[Any, Any]) -> dict[Any, Any]:
    """Tables within them are merged as well."""
    merged = dict(values)
    for name, value in overrides.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = _merged(merged[name], value) if both else value
    return merged


def _converted(choice: Choice, known: options.Known) -> dict[str, Any]:
    def refuse(path: tuple[str, ...], what: str) -> ConfigError:
        setting = next(reason.setting for reason in choice.reasons if reason.setting.path[1 : len(path) + 1] == path)
        option = f"Option '{'.'.join(path)}' of backend '{choice.backend}' for program '{choice.program}'"
        return ConfigError(f"{at(setting)}: {option} {what}")

    return options.convert(choice.options, known, refuse)
