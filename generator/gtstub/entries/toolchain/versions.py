"""The versions of gt4py and DaCe that work together and with gtstub. Reads metadata only, and imports neither."""

from __future__ import annotations

import re
from importlib import metadata

from gtstub._version import GT4PY_VERSIONS

INSTALL_GT4PY = f"'pip install gt4py=={GT4PY_VERSIONS[-1]}'"

BROKEN_DACE = {"2.0.0b1": "breaks gt4py: 'ConditionalBlock' object has no attribute 'all_states'"}
"""Versions of DaCe that satisfy gt4py's requirement but do not work."""


def problem_of_gt4py() -> str:
    """
    A sentence if the installed gt4py is not supported, else an empty text. A development version counts as the release
    that it precedes or follows. Raises PackageNotFoundError if gt4py is not installed.
    """
    installed = metadata.version("gt4py")
    release = re.match(r"[0-9]+\.[0-9]+\.[0-9]+", installed)
    if release is not None and release[0] in GT4PY_VERSIONS:
        return ""
    return f"gtstub supports gt4py {', '.join(GT4PY_VERSIONS)}, but {installed} is installed: {INSTALL_GT4PY}."


def problem_of_dace() -> str:
    """
    A sentence if the installed DaCe is not one that the installed gt4py works with, else an empty text. Raises
    PackageNotFoundError if DaCe is not installed.
    """
    installed = metadata.version("dace")
    advice = f"'pip install dace=={_tested_dace()}'"
    if installed in BROKEN_DACE:
        return f"DaCe {installed} {BROKEN_DACE[installed]}. Install another: {advice}."
    try:
        requirements = metadata.requires("gt4py") or []
        from packaging.requirements import Requirement  # gt4py requires it.
    except ImportError:  # without gt4py
        return ""
    for requirement in map(Requirement, requirements):
        if requirement.name == "dace" and not requirement.specifier.contains(installed, prereleases=True):
            return f"gt4py requires '{requirement}', but DaCe {installed} is installed: {advice}."
    return ""


def _tested_dace() -> str:
    """The version that gtstub's extras pin."""
    pins = (requirement.split(";")[0].partition("==") for requirement in metadata.requires("gtstub") or ())
    return next(version.strip() for name, _, version in pins if name.strip() == "dace")
