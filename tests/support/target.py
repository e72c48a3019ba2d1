"""
The machine that the tests compile C and Fortran hosts for: this one or, with CROSS_COMPILE=<triple>-, another one,
whose programs run under qemu-user here. The same tests run on both (`make arm`).

Tests that load libraries into the interpreter are for this machine alone.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

PREFIX = os.environ.get("CROSS_COMPILE", "")
"""How the names of the cross compilers begin, as 'aarch64-linux-gnu-'; empty for this machine."""

IS_NATIVE = not PREFIX

ONLY_HERE = "for this machine alone: sanitizers do not run under qemu-user, and other builds add nothing there"
"""The reason of a test that is left out for another machine."""

VERBS = () if (PREFIX or platform.machine()).startswith("x86_64") else ("accessed",)
"""The verb of errors of the check 'bounds' where a signal does not tell a read from a write; empty where it does."""

_TRIPLE = PREFIX.removesuffix("-")
_TOOLS = ("gcc", "g++", "gfortran", "nm", "readelf", "objdump")

EMULATOR: tuple[str, ...] = () if IS_NATIVE else (f"qemu-{_TRIPLE.split('-')[0]}-static", "-L", f"/usr/{_TRIPLE}")
"""What runs a program; empty for this machine."""


def tool(name: str) -> str:
    """The name of a compiler, or of a program that reads what it makes, for the machine of the tests."""
    return f"{PREFIX}{name}" if name in _TOOLS else name


def compiler(name: str) -> tuple[str, ...]:
    """The command of the compiler `name`: clang is one for all machines."""
    if name.startswith("clang") and not IS_NATIVE:
        return name, f"--target={_TRIPLE}"
    return (tool(name),)


def command(program: str | Path, *arguments: str | Path) -> list[str]:
    """What runs a program of the machine of the tests."""
    return [*EMULATOR, str(program), *map(str, arguments)]
