"""
The environment variables that change what compilers and CMake make, and those that do not. docs/dace-config.md lists
all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gtstub.errors import ToolchainError

ANSWERED = ("CC", "CFLAGS", "CXX", "LDFLAGS", "CMAKE_TOOLCHAIN_FILE")
"""CMake's answer contains the effect of these variables, and the key contains the answer instead of their values."""

IN_KEY = (
    *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"),
    *("LIBRARY_PATH", "LD_RUN_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"),
    *("CCC_OVERRIDE_OPTIONS", "ICXCFG", "ICPXCFG", "CRAY_CPU_TARGET", "CRAYPE_LINK_TYPE", "SDKROOT"),
    *(
        "OMPI_CFLAGS",
        "OMPI_CXXFLAGS",
        "OMPI_CPPFLAGS",
        "OMPI_LDFLAGS",
        "OMPI_LIBS",
        "MPICH_MPICC_FLAGS",
        "MPICH_MPICXX_FLAGS",
    ),
    *("OpenMP_ROOT", "OPENMP_ROOT"),
)
"""The key contains the values of these variables, and of all others whose names begin with 'CMAKE_'."""

WITHOUT_EFFECT = (
    *("CMAKE_ARGS", "CMAKE_BUILD_PARALLEL_LEVEL", "CMAKE_BUILD_TYPE", "CMAKE_COLOR_DIAGNOSTICS"),
    *("CMAKE_EXPORT_COMPILE_COMMANDS", "CMAKE_INSTALL_MODE", "CMAKE_INSTALL_PARALLEL_LEVEL", "CMAKE_INSTALL_PREFIX"),
    *("CMAKE_NO_VERBOSE", "CMAKE_TEST_LAUNCHER", "SOURCE_DATE_EPOCH"),
)
"""CMake reads these variables, except the first, but they do not change a library, or builds replace their values."""

_OVERRIDING = re.compile(r"-?[bdikmnpqrstvwBLRS]*e[bdeikmnpqrstvwBLRS]*")
"""Short options of make with '-e' among them."""

_OVERRIDE = re.compile(r"(?:^|\s)((?:C|CXX|CUDA|HIP)_(?:FLAGS|DEFINES|INCLUDES))\s*[:+?]?=")
"""A definition of a variable that CMake's makefiles define."""


def in_key(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables whose values are ingredients of keys, if they are set and not empty."""
    excluded = {*ANSWERED, *WITHOUT_EFFECT}
    return {
        name: value
        for name, value in sorted(environ.items())
        if value and (name in IN_KEY or (name.startswith("CMAKE_") and name not in excluded))
    }


def refuse_overrides(environ: Mapping[str, str]) -> None:
    """Raises ToolchainError if a variable of make would replace flags that CMake has chosen."""
    if environ.get("MAKEFILES"):
        raise ToolchainError("Variable 'MAKEFILES' adds makefiles to builds, which gtstub cannot check: unset it.")
    for name in ("MAKEFLAGS", "GNUMAKEFLAGS"):
        value = environ.get(name, "")
        options = value.split(" -- ")[0].split()
        if (found := _OVERRIDE.search(value)) is not None:
            raise ToolchainError(f"Variable '{name}' replaces '{found[1]}' in the makefiles of builds: unset it.")
        if "--environment-overrides" in options or (options and _OVERRIDING.fullmatch(options[0])):
            raise ToolchainError(f"Variable '{name}' lets the environment replace flags in builds: unset it.")
