"""
The plug-in for gt4py: `make_backend` makes a backend whose programs are called through stubs, and `use` makes it the
default of a process.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

from gtstub.entries.toolchain.versions import INSTALL_GT4PY, problem_of_dace, problem_of_gt4py
from gtstub.errors import VersionError

# Before gt4py's modules are imported, because other versions lack some of them.
try:
    if problem := problem_of_gt4py() or problem_of_dace():
        raise VersionError(problem)
except PackageNotFoundError as error:
    text = f"gtstub's backend needs {error.name}, which is not installed: {INSTALL_GT4PY}."
    raise ModuleNotFoundError(text, name=error.name) from None

from gtstub.frameworks.gt4py.backend import make_backend, use

__all__ = ["make_backend", "use"]
