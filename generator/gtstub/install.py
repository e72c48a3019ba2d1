"""
The folders of an installed gtstub, and how to install more of it.

CMake installs templates, headers, libraries and the extension module `gtstub._host` into one folder. This is the folder
of the package, except in an editable installation, whose Python files stay in the checkout.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from gtstub.abi import SONAME


def _folder() -> Path:
    host = find_spec("gtstub._host")
    return Path(__file__ if host is None or host.origin is None else host.origin).parent


FOLDER = _folder()
TEMPLATES = FOLDER / "templates"
INCLUDE = FOLDER / "include"
EMBEDDED = FOLDER / "embedded"
"""Texts for the C++ code of SDFGs."""
LIBRARIES = FOLDER / "lib"
RUNTIME = LIBRARIES / SONAME
FORTRAN = FOLDER / "fortran"


def how_to_install(extra: str) -> str:
    """The advice to install gtstub with one of its extras. No package index has gtstub."""
    return f"\"pip install '.[{extra}]'\" in a checkout of gtstub, or with the path of its wheel instead of '.'"
