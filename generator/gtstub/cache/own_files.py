"""The files of gtstub itself that decide what is generated and how it is compiled: ingredients of every key."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path

from gtstub import install

PARTS = (
    "abi.py",
    "signature",
    "plan",
    "codegen",
    "toolchain/compiler.py",
    "toolchain/cmake",
    "frameworks/dace",
    "frameworks/gt4py",
)
"""Paths in this package. What looks for entries, builds, calls or prints does not change what an entry holds."""


@functools.cache
def own_files() -> Mapping[str, str]:
    """For each part, and for the templates and headers, SHA-256 (hexadecimal) of its files with their names."""
    package = Path(__file__).parents[1]
    parts = {name: package / name for name in PARTS}
    return {
        name: _digest(path)
        for name, path in {**parts, "templates": install.TEMPLATES, "include": install.INCLUDE}.items()
    }


def _digest(part: Path) -> str:
    files = [part] if part.is_file() else sorted(file for file in part.rglob("*") if file.is_file())
    digest = hashlib.sha256()
    for file in files:
        if file.suffix != ".pyc":
            content = file.read_bytes()
            digest.update(f"{file.relative_to(part.parent)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
