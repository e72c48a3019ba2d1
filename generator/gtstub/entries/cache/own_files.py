"""Digests of the files of gtstub that determine the generated code and its compilation: ingredients of every key."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path

from gtstub import install

PARTS = (
    "abi.py",
    "stub",
    "entries/toolchain/answer.py",
    "entries/toolchain/compiler.py",
    "entries/toolchain/cmake",
    "frameworks/hooks.py",
)
"""
Paths in this package, besides the folder of each framework. The other parts choose options, which keys contain, or
find, publish, call or print entries.
"""


@functools.cache
def own_files() -> Mapping[str, str]:
    """The SHA-256 (hexadecimal) of the names and contents of each part's files, including templates and headers."""
    package = Path(__file__).parents[2]
    parts = {name: package / name for name in PARTS}
    frameworks = {init.parent for init in package.glob("frameworks/*/__init__.py")} - {package / "frameworks/backends"}
    parts |= {f"frameworks/{folder.name}": folder for folder in frameworks}
    parts |= {"templates": install.TEMPLATES, "include": install.INCLUDE, "embedded": install.EMBEDDED}
    return {name: _digest(path) for name, path in parts.items()}


def _digest(part: Path) -> str:
    digest = hashlib.sha256()
    others = _others()
    for file in [part] if part.is_file() else sorted(part.rglob("*")):
        if file.is_file() and file.suffix != ".pyc" and others.isdisjoint((file, *file.parents)):
            content = file.read_bytes()
            digest.update(f"{file.relative_to(part.parent)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _others() -> frozenset[Path]:
    """Templates and headers for pages about entries, and for granules, which are made of entries."""
    reports = install.TEMPLATES / "report"
    return frozenset((install.INCLUDE / "gtstub" / "granule.h", reports, install.TEMPLATES / "granule"))
