"""The versions of the packages that compile a program, for keys."""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from gtstub._version import __version__
from gtstub.entries.cache.own_files import own_files


def dace_versions() -> dict[str, Any]:
    """
    The versions of the packages that compile an SDFG, and of numpy, which keys describe by name. gtstub's version
    includes digests of its files.
    """
    return {
        "python": ".".join(map(str, sys.version_info[:2])),
        "numpy": version_of("numpy"),
        "gtstub": {"version": __version__, "files": dict(own_files())},
        "dace": version_of("dace"),
    }


@functools.cache
def version_of(package: str) -> list[str]:
    """The version of a package, with a digest of the sizes and times of its files if it is in editable mode."""
    installed = distribution(package)
    if not json.loads(installed.read_text("direct_url.json") or "{}").get("dir_info", {}).get("editable"):
        return [installed.version]
    directory = Path(str(importlib.import_module(package).__file__)).parent
    stats = [(str(file.relative_to(directory)), file.stat()) for file in sorted(directory.glob("**/*.py"))]
    text = repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
    return [installed.version, hashlib.sha256(text.encode()).hexdigest()]
