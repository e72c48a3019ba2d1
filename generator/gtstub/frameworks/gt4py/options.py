"""
The options of the installed gt4py, with the types of their values.

gt4py ignores a misspelt name among `optimization_args`; gtstub refuses it.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

from gt4py.eve import type_validation
from gt4py.next import config
from gt4py.next.program_processors.codegens.gtfn import gtfn_module
from gt4py.next.program_processors.runners.dace import transformations
from gt4py.next.program_processors.runners.dace.workflow import backend as dace_backend

from gtstub.errors import ConfigError
from gtstub.frameworks.backends.choice import nested
from gtstub.frameworks.dace import dace_config
from gtstub.util.suggest import did_you_mean

type Known = Mapping[str, Any]
"""Names of options with the types of their values; a mapping is a table of options."""

UNIT_STRIDE = "unstructured_horizontal_has_unit_stride"
"""An option that gt4py refuses for fields with several horizontal dimensions."""

HOOKS = {hook.name: hook for hook in transformations.GT4PyAutoOptHook}

OPTIMIZATION_ARGS: Known = {
    name: parameter.annotation
    for name, parameter in inspect.signature(transformations.gt_auto_optimize).parameters.items()
    if name not in ("sdfg", "gpu", "constant_symbols", "unit_strides_kind")  # set by make_dace_backend
    and parameter.kind is not inspect.Parameter.VAR_KEYWORD
} | {"optimization_hooks": dict.fromkeys(HOOKS, Callable[..., Any])}

DACE: Known = {
    name: type_
    for name, type_ in typing.get_type_hints(dace_backend.make_dace_backend).items()
    if name not in ("gpu", "external_workspace", "return")  # The tag sets the first; the second is memory.
} | {"optimization_args": OPTIMIZATION_ARGS}

GTSTUB: Known = {
    **DACE,
    "bounds": bool,
    "dace_config": nested((name.split("."), type(value)) for name, value in dace_config.defaults().items()),
}

GTFN_WORKFLOW: Known = {"cmake_build_type": config.CMakeBuildType, UNIT_STRIDE: bool}

_HINTS = typing.get_type_hints(gtfn_module.GTFNTranslationStep)

GTFN_TRANSLATION: Known = {
    field.name: _HINTS[field.name]
    for field in dataclasses.fields(gtfn_module.GTFNTranslationStep)
    if field.name not in ("code_spec", "device_type", "symbolic_domain_sizes")  # The second is the tag's.
}

GTFN: Known = {**GTFN_WORKFLOW, **GTFN_TRANSLATION}

DESCRIPTOR: Known = {"device": Any, "backend_factory": Any}
"""The members of an icon4py backend descriptor that are not options."""

GPU_MEMORY = "transient_memory_mode"

RENAMED = {"gpu_memory_pool": GPU_MEMORY, "make_persistent": GPU_MEMORY}
"""Options of older versions of gt4py, which gt4py still accepts but ignores, with the options that replaced them."""


def convert(
    options: Mapping[str, Any], known: Known, refuse: Callable[[tuple[str, ...], str], Exception]
) -> dict[str, Any]:
    """
    Converts the options of a table for gt4py: names become members of enumerations, and 'module:name' becomes the named
    object. Options from a program, which contain the members and objects themselves, are checked in the same way.
    `refuse` makes the error for the option at a path from a text that follows the option's name.
    """

    def table(path: tuple[str, ...], values: Mapping[Any, Any], known: Known) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, value in values.items():
            name = key.name if isinstance(key, transformations.GT4PyAutoOptHook) else str(key)
            here = (*path, name)
            if name not in known:
                raise refuse(here, f"is unknown.{_suggestion(name, known)}")
            if not isinstance(known[name], Mapping):
                made[HOOKS.get(name, name)] = single(here, value, known[name])
            elif isinstance(value, Mapping | None):  # In a program, None is gt4py's default.
                made[name] = table(here, value or {}, known[name])
            else:
                raise refuse(here, f"must be a table, but is {value!r}.")
        return made

    def single(path: tuple[str, ...], value: Any, type_: Any) -> Any:
        if isinstance(type_, type) and issubclass(type_, enum.Enum):
            if isinstance(value, type_):
                return value
            if not isinstance(value, str) or value not in type_.__members__:
                raise refuse(path, f"cannot be {value!r}.{did_you_mean(str(value), list(type_.__members__))}")
            return type_[value]
        try:
            made = value if type_ is str else _resolved(value)
            type_validation.simple_type_validator(made, type_, path[-1])
        except (ImportError, AttributeError) as error:
            raise refuse(path, f"is {value!r}, which cannot be imported: {error}.") from error
        except TypeError:
            raise refuse(path, f"must be {_wording(type_)}, but is {value!r}.") from None
        return made

    return table((), options, known)


def check_names(optimization_args: Mapping[Any, Any]) -> None:
    """Raises ConfigError for a name that gt4py's auto-optimization would ignore."""
    for name in optimization_args:
        if name not in OPTIMIZATION_ARGS:
            raise ConfigError(f"There is no optimization argument '{name}'.{_suggestion(name, OPTIMIZATION_ARGS)}")
    for hook in optimization_args.get("optimization_hooks") or ():
        if hook not in HOOKS.values():
            raise ConfigError(f"Optimization hook {hook!r} is not a 'GT4PyAutoOptHook'.")


def _suggestion(name: str, known: Known) -> str:
    if name in RENAMED and RENAMED[name] in known:
        return f" Did you mean: '{RENAMED[name]}'?"
    return did_you_mean(name, list(known))


def _resolved(value: Any) -> Any:
    if isinstance(value, list):
        return [_resolved(element) for element in value]
    module, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    return getattr(importlib.import_module(module), name) if module and name else value


def _wording(type_: Any) -> str:
    if type_ == Callable[..., Any]:
        return "the name of a function, 'module:function'"
    return f"of type '{inspect.formatannotation(type_).replace('typing.', '')}'"
