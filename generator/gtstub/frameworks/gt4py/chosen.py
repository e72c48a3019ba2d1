"""Makes the gt4py backend of a choice of `gtstub.frameworks.backends.choice`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from gt4py.next import backend as gtx_backend
from gt4py.next import common
from gt4py.next.type_system import type_specifications as ts

from gtstub.errors import ConfigError
from gtstub.frameworks.backends.choice import Choice
from gtstub.frameworks.backends.tables import OWN_FILE, Backend
from gtstub.frameworks.gt4py import options
from gtstub.frameworks.gt4py.backend import make_backend
from gtstub.frameworks.gt4py.internals import make_dace_backend, make_gtfn_backend

NOTHING: Mapping[str, Any] = {}

KNOWN: Mapping[Backend, options.Known] = {"gtfn": options.GTFN, "dace": options.DACE, "gtstub": options.GTSTUB}

OBJECTS: Mapping[Backend, options.Known] = {
    "gtfn": {},
    "dace": {"external_workspace": Any},
    "gtstub": {"external_workspace": Any, "stream": Any},
}
"""Options that are objects, so that a descriptor can have them but no table."""


def make_chosen_backend(
    choice: Choice, descriptor: Mapping[str, Any] = NOTHING, types: Mapping[str, Any] = NOTHING
) -> gtx_backend.Backend[Any]:
    """
    The chosen backend for a program with parameters of these types. `descriptor` is a backend descriptor of icon4py
    with the device and factory of the choice; its options override those of the choice.

    Raises ConfigError for an option that is unknown or does not fit the program, with the line of the table that sets
    it.
    """
    fitted = _fitted(choice, types)
    gpu = choice.device == "gpu"
    overrides = _overrides(fitted, descriptor)
    merged = _merged(converted(fitted), overrides)
    if choice.backend == "gtstub":
        made = make_backend(gpu, **merged)
        if made is not None and not overrides:
            object.__setattr__(made, "choice", choice)
        return made
    if choice.backend == "dace":
        return make_dace_backend(gpu, **merged)
    steps = {name: value for name, value in merged.items() if name in options.GTFN_WORKFLOW}
    return make_gtfn_backend(gpu, steps, {name: value for name, value in merged.items() if name not in steps})


def _fitted(choice: Choice, types: Mapping[str, Any]) -> Choice:
    """
    Leaves out the unit stride, which gt4py refuses for fields with several horizontal dimensions, if it is the default
    of gtstub's table.
    """
    argument = next((name for name, type_ in types.items() if len(_horizontal(type_)) > 1), None)
    if choice.backend == "gtfn" or argument is None or not choice.options.get(options.UNIT_STRIDE):
        return choice
    setting = next(each.setting for each in choice.reasons if each.setting.path[1:] == (options.UNIT_STRIDE,))
    if setting.file != OWN_FILE:
        dims = ", ".join(f"'{dim}'" for dim in _horizontal(types[argument]))
        raise ConfigError(
            f"{setting.place}: {_option(choice, (options.UNIT_STRIDE,))} must be false or left out, because argument"
            f" '{argument}' has several horizontal dimensions: {dims}."
        )
    left = {name: value for name, value in choice.options.items() if name != options.UNIT_STRIDE}
    return dataclasses.replace(choice, options=left)


def _horizontal(type_: Any) -> list[str]:
    """The horizontal dimensions of a field; of a tuple, those of its first field with several."""
    if isinstance(type_, ts.TupleType):
        return next((dims for each in type_.types if len(dims := _horizontal(each)) > 1), [])
    found: list[common.Dimension] = type_.dims if isinstance(type_, ts.FieldType) else []
    return [dim.value for dim in found if dim.kind == common.DimensionKind.HORIZONTAL]


def converted(choice: Choice) -> dict[str, Any]:
    """The options of a choice, converted for gt4py. Raises ConfigError as `make_chosen_backend` does."""

    def refuse(path: tuple[str, ...], what: str) -> ConfigError:
        setting = next(reason.setting for reason in choice.reasons if reason.setting.path[1 : len(path) + 1] == path)
        return ConfigError(f"{setting.place}: {_option(choice, path)} {what}")

    return options.convert(choice.options, KNOWN[choice.backend], refuse)


def _overrides(choice: Choice, descriptor: Mapping[str, Any]) -> dict[str, Any]:
    def refuse(path: tuple[str, ...], what: str) -> ConfigError:
        return ConfigError(f"{_option(choice, path)} {what}")

    known = {**KNOWN[choice.backend], **OBJECTS[choice.backend], **options.DESCRIPTOR}
    given = options.convert(descriptor, known, refuse)
    return {name: value for name, value in given.items() if name not in options.DESCRIPTOR}


def _option(choice: Choice, path: tuple[str, ...]) -> str:
    return f"Option '{'.'.join(path)}' of backend '{choice.backend}' for program '{choice.program}'"


def _merged(values: Mapping[Any, Any], overrides: Mapping[Any, Any]) -> dict[Any, Any]:
    """Merges nested tables as well."""
    merged = dict(values)
    for name, value in overrides.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = _merged(merged[name], value) if both else value
    return merged
