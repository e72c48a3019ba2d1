"""The plug-in for gt4py: `make_backend` makes a backend whose programs are called through stubs."""

from __future__ import annotations

import re
from importlib.metadata import version

from gtstub._version import GT4PY_VERSIONS
from gtstub.errors import VersionError

# Before gt4py's modules are imported, because other versions lack some of them. A development version counts as the
# release that it precedes or follows.
if (release := re.match(r"[0-9]+\.[0-9]+\.[0-9]+", version("gt4py"))) is None or release[0] not in GT4PY_VERSIONS:
    raise VersionError(
        f"gtstub supports gt4py {', '.join(GT4PY_VERSIONS)}, but {version('gt4py')} is installed:"
        f" 'pip install gt4py=={GT4PY_VERSIONS[-1]}'."
    )

from gtstub.frameworks.gt4py.backend import make_backend

__all__ = ["make_backend"]
