"""
The DaCe configuration of gtstub's builds (docs/dace-config.md): all of it stands in dace_config.toml, and what
overrides a setting says so. What a `.dace.conf` says does not matter, and none is written. All but `frozen` works
without DaCe.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gtstub.errors import ConfigError
from gtstub.signature.model import Device
from gtstub.util.suggest import did_you_mean

FILE = Path(__file__).with_suffix(".toml")

NOTHING: Mapping[str, Any] = MappingProxyType({})

FLAGS = {
    "compiler.cpu.args": "CXXFLAGS",
    "compiler.cuda.args": "CUDAFLAGS",
    "compiler.cuda.hip_args": "HIPFLAGS",
}
"""Settings for which gt4py has a variable, which comes in their place."""

DEBUG_FLAGS = {
    "Debug": {
        "compiler.cpu.args": "-g",
        "compiler.cuda.args": "--device-debug -Xcompiler -g",
        "compiler.cuda.hip_args": "-g",
    },
    "RelWithDebInfo": {
        "compiler.cpu.args": "-g",
        "compiler.cuda.args": "--generate-line-info -Xcompiler -g",
        "compiler.cuda.hip_args": "-g",
    },
}
"""What a build type adds to flags that nothing overrides, as in gt4py."""

GPU_COMPILERS = ("CUDACXX", "CUDAHOSTCXX", "HIPCXX")
"""Variables in which CMake finds the compilers for GPUs; that of the rest is an ingredient by its version."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """
    A setting's value, and what decided it: 'DaCe' where its default holds, 'gtstub', 'build type', 'device', the name
    of a variable, or 'dace_config'.
    """

    value: Any
    by: str


def configuration(
    device: Device, build_type: str, overrides: Mapping[str, Any] = NOTHING, environ: Mapping[str, str] = os.environ
) -> dict[str, Setting]:
    """
    Every setting by its name, as 'compiler.cpu.args', for a device and a build type of CMake.

    What is said later wins: the file, the build type and device, CXXFLAGS and the like, DACE_* variables as DaCe names
    them, `overrides`, nested or by their names. Raises ConfigError for an override that DaCe does not know, or of
    another type than the setting.
    """
    made = {name: Setting(value, "DaCe") for name, value in leaves(_document()["default"]).items()}
    made |= {name: Setting(value, "gtstub") for name, value in leaves(_document()["chosen"]).items()}
    made["compiler.build_type"] = Setting(build_type, "build type")
    for name, flags in DEBUG_FLAGS.get(build_type, {}).items():
        made[name] = Setting(f"{flags} {made[name].value}", "build type")
    if device != "cpu":
        made["compiler.cuda.backend"] = Setting("hip" if device == "rocm" else "cuda", "device")
    for name, variable in FLAGS.items():
        if environ.get(variable):
            made[name] = Setting(environ[variable], variable)
    for name in made:
        variable = f"DACE_{name.replace('.', '_')}"
        if variable in environ:
            made[name] = Setting(_from_text(name, variable, environ[variable]), variable)
    for name, value in leaves(overrides).items():
        made[name] = Setting(checked(name, value), "dace_config")
    return made


def ingredients(
    device: Device, build_type: str, overrides: Mapping[str, Any] = NOTHING, environ: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """What the key of a cache entry has of the configuration. What a CPU's build does not read is not in a CPU's."""
    file = defaults()
    counting = {
        name: setting.value
        for name, setting in configuration(device, build_type, overrides, environ).items()
        if name not in _document()["neutral"] and (device != "cpu" or not name.startswith("compiler.cuda."))
    }
    rules = json.dumps({name: file[name] for name in counting}, sort_keys=True)
    return {
        "defaults": hashlib.sha256(rules.encode()).hexdigest(),
        "overrides": {name: value for name, value in sorted(counting.items()) if value != file[name]},
        "compilers": {name: environ[name] for name in GPU_COMPILERS if device != "cpu" and environ.get(name)},
    }


def defaults() -> dict[str, Any]:
    """The file: every setting by its name."""
    return leaves(_document()["chosen"]) | leaves(_document()["default"])


def leaves(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The settings in nested tables by their names; those that are there under their names are as they are."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        found |= leaves(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found


def checked(name: str, value: Any) -> Any:
    """The value of an override; raises ConfigError if DaCe has no such setting, or one of another type."""
    known = defaults()
    if name not in known:
        raise ConfigError(f"DaCe has no setting '{name}'.{did_you_mean(name, list(known))}")
    expected = type(known[name])
    if expected is float and type(value) is int:
        return float(value)
    if type(value) is not expected:
        raise ConfigError(f"DaCe's setting '{name}' must be {_ARTICLES[expected]}, but is {value!r}.")
    return value


_ARTICLES = {bool: "a boolean", int: "an integer", float: "a number", str: "text"}


def _from_text(name: str, variable: str, text: str) -> Any:
    """As DaCe reads its variables; but what it would ignore is refused."""
    expected = type(defaults()[name])
    if expected is bool:
        return text.lower() in ("true", "1", "y", "yes", "on", "verbose")
    try:
        return expected(text)
    except ValueError:
        raise ConfigError(f"Variable '{variable}' must be {_ARTICLES[expected]}, but is '{text}'.") from None


@functools.cache
def _document() -> Mapping[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


# --- In force ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def frozen(device: Device, build_type: str, overrides: Mapping[str, Any] = NOTHING) -> Iterator[None]:
    """
    Makes `dace.Config` of this thread the configuration, and puts back what it was.

    Raises ConfigError as `configuration` does, and if DaCe was imported with what cannot be changed any more.
    """
    from dace import Config

    settings = configuration(device, build_type, overrides)
    for name, value in _imported().items():
        if settings[name].value != value:
            raise ConfigError(
                f"DaCe was imported with '{name}' = {value!r}, and gtstub builds with {settings[name].value!r}:"
                f" remove it from '{Config.cfg_filename()}', or say it in 'DACE_{name.replace('.', '_')}'."
            )
    before = {name: Config.get(name) for name in settings}
    try:
        for name, setting in settings.items():
            Config.set(*name.split("."), value=setting.value)
        yield
    finally:
        for name, value in before.items():
            Config.set(*name.split("."), value=value)


def _imported() -> dict[str, Any]:
    """The settings that DaCe reads only when it is imported, and that change what it generates: what it has made."""
    import dace
    from dace.sdfg import type_inference

    int_ = type_inference._py2c_typeconversion["int"].to_string()
    return {
        "compiler.cpu.openmp_sections": dace.SDFG.openmp_sections.default,
        "compiler.default_data_types": {"int32": "C", "int64": "Python"}[int_],
    }
