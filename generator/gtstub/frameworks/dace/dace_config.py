"""
The DaCe configuration of gtstub's builds (docs/dace-config.md): dace_config.toml and its overrides. No `.dace.conf` is
read or written. All functions except `frozen` work without DaCe.
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
from gtstub.stub.signature.model import Device
from gtstub.util.suggest import did_you_mean

FILE = Path(__file__).with_suffix(".toml")

NOTHING: Mapping[str, Any] = MappingProxyType({})

FLAGS = {
    "compiler.cpu.args": "CXXFLAGS",
    "compiler.cuda.args": "CUDAFLAGS",
    "compiler.cuda.hip_args": "HIPFLAGS",
}
"""The settings that gt4py's environment variables replace."""

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
"""The flags that a build type adds before flags without an override, as in gt4py."""

GPU_VARIABLES = (
    *("CUDACXX", "CUDAHOSTCXX", "CUDAFLAGS", "CUDA_HOME", "CUDA_PATH", "CUDAToolkit_ROOT"),
    *("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN"),
    *("HIPCXX", "HIPHOSTCXX", "HIPFLAGS", "HIP_PATH", "HIP_PLATFORM", "ROCM_PATH"),
    *("HIPCC_COMPILE_FLAGS_APPEND", "HIPCC_LINK_FLAGS_APPEND"),
)
"""
The variables that CMake, DaCe and compilers for GPUs read. Those for all programs are in
`entries/toolchain/environment.py`. CUDAARCHS is not among them: DaCe tells CMake the architecture of
'compiler.cuda.cuda_arch', for which gt4py reads that variable, and sets it in the processes that build.
"""


@dataclasses.dataclass(frozen=True)
class Setting:
    """
    The value of a setting and its origin: 'DaCe' for DaCe's default, 'gtstub', 'build type', 'device', the name of an
    environment variable, or 'dace_config'.
    """

    value: Any
    by: str


def configuration(
    device: Device, build_type: str, overrides: Mapping[str, Any] = NOTHING, environ: Mapping[str, str] = os.environ
) -> dict[str, Setting]:
    """
    All settings by name ('compiler.cpu.args') for a device and a CMake build type.

    Later sources win: the file, the build type and device, CXXFLAGS and the like, DaCe's DACE_* variables, and
    `overrides`, nested or by name. Raises ConfigError for an override of an unknown setting or of another type.
    """
    made = dict(_of_file())
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
    """The part of a cache key for the configuration. Settings for GPUs are not in the key of a CPU's entry."""
    file = _of_file()
    counting = {
        name: setting.value
        for name, setting in configuration(device, build_type, overrides, environ).items()
        if name not in _document()["neutral"] and (device != "cpu" or not name.startswith("compiler.cuda."))
    }
    rules = json.dumps({name: file[name].value for name in counting}, sort_keys=True)
    return {
        "defaults": hashlib.sha256(rules.encode()).hexdigest(),
        "overrides": {name: value for name, value in sorted(counting.items()) if value != file[name].value},
        "environment": {name: environ[name] for name in GPU_VARIABLES if device != "cpu" and environ.get(name)},
    }


def defaults() -> dict[str, Any]:
    """All settings of the file by name."""
    return {name: setting.value for name, setting in _of_file().items()}


@functools.cache
def _of_file() -> Mapping[str, Setting]:
    """All settings of the file, which is read once."""
    default = {name: Setting(value, "DaCe") for name, value in leaves(_document()["default"]).items()}
    chosen = {name: Setting(value, "gtstub") for name, value in leaves(_document()["chosen"]).items()}
    return MappingProxyType(default | chosen)


def leaves(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The settings in nested tables by name. Names with dots stay as they are."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        found |= leaves(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found


def checked(name: str, value: Any) -> Any:
    """The value of an override; raises ConfigError for an unknown setting, another type, and what has no effect."""
    known = defaults()
    if name not in known:
        raise ConfigError(f"DaCe has no setting '{name}'.{did_you_mean(name, list(known))}")
    expected = type(known[name])
    if expected is float and type(value) is int:
        return float(value)
    if type(value) is not expected:
        raise ConfigError(f"DaCe's setting '{name}' must be {_ARTICLES[expected]}, but is {value!r}.")
    if name in _document()["without_effect"] and value != known[name]:
        raise ConfigError(
            f"DaCe's setting '{name}' would have no effect: gtstub makes the calls, and decides where it builds."
        )
    return value


_ARTICLES = {bool: "a boolean", int: "an integer", float: "a number", str: "text"}


def _from_text(name: str, variable: str, text: str) -> Any:
    """Reads the value of a variable as DaCe does, but raises ConfigError for a value that DaCe would ignore."""
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


# --- Applying the configuration ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def frozen(device: Device, build_type: str, overrides: Mapping[str, Any] = NOTHING) -> Iterator[None]:
    """
    Applies the configuration to `dace.Config` of this thread, and restores the old values at the end.

    Raises ConfigError as `configuration` does, and if DaCe was imported with other values that are fixed since then.
    """
    from dace.config import Config, set_temporary

    from gtstub.frameworks.dace.internals import fixed_settings

    settings = configuration(device, build_type, overrides)
    if not settings["compiler.cpu.args"].value:  # Then DaCe passes no flags, and CMake would take those in CXXFLAGS.
        extra = settings["compiler.extra_cmake_args"]
        empty = dataclasses.replace(extra, value=f"-DCMAKE_CXX_FLAGS= {extra.value}".strip())
        settings["compiler.extra_cmake_args"] = empty
    for name, value in fixed_settings().items():
        if settings[name].value != value:
            raise ConfigError(
                f"DaCe was imported with '{name}' = {value!r}, but gtstub builds with {settings[name].value!r}:"
                f" remove it from '{Config.cfg_filename()}', or set it in 'DACE_{name.replace('.', '_')}'."
            )
    with contextlib.ExitStack() as changed:
        for name, setting in settings.items():
            try:
                changed.enter_context(set_temporary(*name.split("."), value=setting.value))
            except KeyError:  # The file lists the settings of the newest supported DaCe; older ones lack some.
                if setting.by == "dace_config":
                    raise ConfigError(f"The installed DaCe has no setting '{name}'.") from None
        yield
