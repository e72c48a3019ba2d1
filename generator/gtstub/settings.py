"""
The environment variables of gtstub. Each function reads its variable at every call.

The runtime reads GTSTUB_DEBUG, GTSTUB_CHECK, GTSTUB_PROFILE, GTSTUB_RECORD and GTSTUB_TRUST in C, and
GTSTUB_BUILD_CHECKS, GTSTUB_TRACE and GTSTUB_TRACE_EVENTS too.
gtstub.entries.toolchain reads the variables of compilers, and gtstub.frameworks.dace reads those of DaCe.
"""

from __future__ import annotations

import math
import os
from enum import StrEnum
from pathlib import Path

from gtstub.errors import ConfigError
from gtstub.util.quantity import size
from gtstub.util.suggest import did_you_mean

MODE = "GTSTUB_MODE"
FV3_MODE = "FV3_DACEMODE"
"""The older name of MODE."""

CACHE_DIR = "GTSTUB_CACHE_DIR"
GT_CACHE_ROOT = "GT_CACHE_ROOT"
"""The directory of caches in icon4py and NDSL."""

GT4PY_CACHE_DIR = "GT4PY_BUILD_CACHE_DIR"
CACHE_MAX_SIZE = "GTSTUB_CACHE_MAX_SIZE"

MACHINE_DIR = "GTSTUB_MACHINE_DIR"
SHARED_CACHE_DIR = "GTSTUB_SHARED_CACHE_DIR"
TRUST = "GTSTUB_TRUST"
"""Read by the runtime: runtime/program/trusted.c."""

BUILD_TIMEOUT = "GTSTUB_BUILD_TIMEOUT"
BUILDER_GRACE = "GTSTUB_BUILDER_GRACE"
WAIT = "GTSTUB_WAIT"
LAZY = "GTSTUB_LAZY"
RECOMPILE = "GTSTUB_RECOMPILE"
PROGRESS = "GTSTUB_PROGRESS"
TRACEBACK = "GTSTUB_TRACEBACK"
LIST_FILE = "GTSTUB_LIST_FILE"
LIST_GRID = "GTSTUB_LIST_GRID"
"""Set by 'gtstub build --from-run' for the process that it starts."""

ARCH = "GTSTUB_ARCH"
BOUNDS = "GTSTUB_BOUNDS"
BACKENDS = "GTSTUB_BACKENDS"
BUILD_CHECKS = "GTSTUB_BUILD_CHECKS"
CHECK = "GTSTUB_CHECK"
CHECK_SDFG = "GTSTUB_CHECK_SDFG"
KEEP_STAGES = "GTSTUB_KEEP_STAGES"
TRACE = "GTSTUB_TRACE"
TRACE_EVENTS = "GTSTUB_TRACE_EVENTS"
LAYOUT = "GTSTUB_LAYOUT"
CODE_PATH = "GTSTUB_CODE_PATH"


class Mode(StrEnum):
    """The values of GTSTUB_MODE, in any case."""

    PYTHON = "Python"  # gt4py's embedded execution; nothing is compiled
    BUILD = "Build"  # build what is missing, and stop in the time loop
    BUILD_AND_RUN = "BuildAndRun"
    RUN = "Run"  # never build


class Progress(StrEnum):
    """The values of GTSTUB_PROGRESS, in any case: how the progress of builds is shown on stderr."""

    AUTO = "auto"  # a bar on a terminal, lines anywhere else
    LINES = "lines"
    OFF = "off"


DEFAULT_CHECKS = "finite"


def checks() -> str | None:
    """The debug checks in GTSTUB_CHECK; None if it has none."""
    text = os.environ.get(CHECK, "")
    return None if text in ("", "0") else text


def mode() -> Mode:
    """The mode in GTSTUB_MODE, or else in FV3_DACEMODE, or else BuildAndRun. Raises ConfigError for an unknown name."""
    return _choice(FV3_MODE if not os.environ.get(MODE) else MODE, Mode.BUILD_AND_RUN)


def progress() -> Progress:
    """How the progress of builds is shown; AUTO by default. Raises ConfigError for an unknown name."""
    return _choice(PROGRESS, Progress.AUTO)


def shows_frames() -> bool:
    """Whether gtstub's own errors show all lines that lead to them: if GTSTUB_TRACEBACK is 'full'."""
    return os.environ.get(TRACEBACK) == "full"


def cache_dir() -> tuple[Path, str]:
    """The directory of cache entries, and the variable that names it; by default the user's cache directory."""
    inner = {CACHE_DIR: "", GT_CACHE_ROOT: ".gtstub_cache", GT4PY_CACHE_DIR: ".gt4py_cache/gtstub"}
    for variable, subdirectory in inner.items():
        if directory := os.environ.get(variable):
            return Path(directory) / subdirectory, variable
    import platformdirs  # Here, because most callers name a directory.

    return platformdirs.user_cache_path("gtstub"), "the user's cache directory"


def cache_max_size() -> float:
    """The bytes to which a cache is reduced when a program is built; 5 GiB by default, and inf for '0'."""
    text = os.environ.get(CACHE_MAX_SIZE) or "5GiB"
    try:
        return size(text) or math.inf
    except ValueError as error:
        raise ConfigError(f"{CACHE_MAX_SIZE}: {error}") from None


def shared_cache_dirs() -> tuple[Path, ...]:
    """The absolute paths of the caches in GTSTUB_SHARED_CACHE_DIR, which gtstub only reads."""
    return tuple(path.absolute() for path in _paths(SHARED_CACHE_DIR))


def machine_dir() -> Path | None:
    """The directory in GTSTUB_MACHINE_DIR for what all caches of this user on this machine share."""
    directory = os.environ.get(MACHINE_DIR)
    return Path(directory).absolute() if directory else None


def backend_tables() -> tuple[Path, ...]:
    """The tables of backends in GTSTUB_BACKENDS."""
    return _paths(BACKENDS)


def archs() -> tuple[str, ...]:
    """The architectures in GTSTUB_ARCH, which replace those of this machine."""
    return tuple(filter(None, (part.strip() for part in os.environ.get(ARCH, "").split(","))))


def bounds() -> bool:
    """Whether stubs check the elements that programs access: unless GTSTUB_BOUNDS is 0."""
    return os.environ.get(BOUNDS) != "0"


def build_checks() -> bool:
    """Whether SDFGs are built with debug checks after their maps."""
    return os.environ.get(BUILD_CHECKS, "") not in ("", "0")


def checks_sdfgs() -> bool:
    """Whether SDFGs are checked against gt4py's rules when they are built."""
    return os.environ.get(CHECK_SDFG, "") not in ("", "0")


def keeps_stages() -> bool:
    """Whether entries keep the SDFGs of the stages of gt4py's optimisation."""
    return os.environ.get(KEEP_STAGES, "") not in ("", "0")


def build_timeout() -> float:
    """Seconds after which a builder counts as dead if it does not renew its claim; 60 by default."""
    return _seconds(BUILD_TIMEOUT, 60)


def builder_grace() -> float:
    """Seconds that a rank waits for the builder of a key to claim it; 5 by default."""
    return _seconds(BUILDER_GRACE, 5, may_be_zero=True)


def check_builds() -> None:
    """Raises ConfigError if a variable that builds read has no meaning."""
    for read in (progress, cache_max_size, build_timeout, builder_grace):
        read()


def waits() -> bool:
    """Whether `gtstub.compile()` waits until its builds are finished."""
    return os.environ.get(WAIT, "0") not in ("", "0")


def is_lazy() -> bool:
    """Whether `gtstub.compile()` leaves the variants of a program with several until they are called."""
    return os.environ.get(LAZY, "0") not in ("", "0")


def recompiles() -> bool:
    """Whether a DaCe program that does not say so itself is compiled anew if what was compiled in has changed."""
    return os.environ.get(RECOMPILE, "0") not in ("", "0")


def list_file() -> Path | None:
    """The file into which mode Build writes the list of all programs; set by 'gtstub build --from-run'."""
    file = os.environ.get(LIST_FILE)
    return Path(file) if file else None


def list_grid() -> str:
    """The function, as `module:name`, that makes the offset provider of the programs in that list; empty for none."""
    return os.environ.get(LIST_GRID, "")


def _choice[Choice: StrEnum](variable: str, default: Choice) -> Choice:
    """The member of an enumeration that a variable names, in any case. Raises ConfigError for an unknown name."""
    if not (name := os.environ.get(variable)):
        return default
    for each in type(default):
        if each.lower() == name.lower():
            return each
    raise ConfigError(f"{variable} cannot be '{name}'.{did_you_mean(name, list(type(default)))}")


def _paths(variable: str) -> tuple[Path, ...]:
    return tuple(map(Path, filter(None, os.environ.get(variable, "").split(os.pathsep))))


def _seconds(variable: str, default: float, *, may_be_zero: bool = False) -> float:
    text = os.environ.get(variable) or str(default)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (0 < seconds < math.inf or (seconds == 0 and may_be_zero)):
        raise ConfigError(f"{variable} must be a number of seconds, but is '{text}'.")
    return seconds
