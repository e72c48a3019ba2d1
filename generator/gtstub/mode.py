"""Run modes: whether programs are compiled, only looked up, or not used at all."""

from __future__ import annotations

import os
from enum import StrEnum

from gtstub.errors import ConfigError
from gtstub.util.toml import did_you_mean


class Mode(StrEnum):
    """GTSTUB_MODE, in any case."""

    PYTHON = "Python"  # gt4py's embedded execution; nothing is compiled
    BUILD = "Build"  # build what is missing, then stop
    BUILD_AND_RUN = "BuildAndRun"
    RUN = "Run"  # never build


def current() -> Mode:
    """What GTSTUB_MODE says, else FV3_DACEMODE, its older name; BuildAndRun where neither does."""
    for variable in ("GTSTUB_MODE", "FV3_DACEMODE"):
        if said := os.environ.get(variable):
            for mode in Mode:
                if mode.lower() == said.lower():
                    return mode
            raise ConfigError(f"{variable} cannot be '{said}'.{did_you_mean(said, list(Mode))}")
    return Mode.BUILD_AND_RUN
