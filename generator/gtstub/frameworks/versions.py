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
from gtstub.cache.own_files import own_files


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
def _version(package: str) -> str:
    return distribution(package).version


def version_of(package: str) -> list[str]:
    """The version of a package, with a digest of its files if it is installed in editable mode."""
    return [_version(package), *_edited(package)]


@functools.cache
def _edited(package: str) -> tuple[str, ...]:
    """A digest of the file sizes and times of a package in editable mode; empty for other packages."""
    installed = distribution(package)
    if not json.loads(installed.read_text("direct_url.json") or "{}").get("dir_info", {}).get("editable"):
        return ()
    directory = Path(str(importlib.import_module(package).__file__)).parent
    stats = [(str(file.relative_to(directory)), file.stat()) for file in sorted(directory.glob("**/*.py"))]
    text = repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
    return (hashlib.sha256(text.encode()).hexdigest(),)
