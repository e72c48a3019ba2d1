"""The plug-in for gt4py: `make_backend` makes a backend whose programs are called through stubs."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

from gtstub._version import GT4PY_VERSIONS
from gtstub.errors import VersionError

# Before gt4py's modules are imported, because other versions lack some of them. A development version counts as the
# release that it precedes or follows.
try:
    installed = version("gt4py")
except PackageNotFoundError:
    text = f"gtstub's backend needs gt4py, which is not installed: 'pip install gt4py=={GT4PY_VERSIONS[-1]}'."
    raise ModuleNotFoundError(text, name="gt4py") from None
if (release := re.match(r"[0-9]+\.[0-9]+\.[0-9]+", installed)) is None or release[0] not in GT4PY_VERSIONS:
    raise VersionError(
        f"gtstub supports gt4py {', '.join(GT4PY_VERSIONS)}, but {installed} is installed:"
        f" 'pip install gt4py=={GT4PY_VERSIONS[-1]}'."
    )

from gtstub.frameworks.gt4py.backend import make_backend

__all__ = ["make_backend"]
