"""Keeps the compiled templates of stubs: to compile them takes longer than all else that makes the text of a stub."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket

from gtstub.entries.toolchain.machine import BYTE_CODE, machine_directory
from gtstub.entries.trust import make_directory
from gtstub.stub.codegen import render


class CompiledTemplates(jinja2.FileSystemBytecodeCache):
    """Compiled templates in a directory. What is damaged is compiled again, and what cannot be written is not kept."""

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except Exception:  # Reading a damaged file may raise any error.
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().dump_bytecode(bucket)


@functools.cache
def compiled_templates() -> CompiledTemplates | None:
    """Those of this user, interpreter and Jinja; None without a directory that only this user can write."""
    if (machine := machine_directory()) is None:
        return None
    # render.py has the options with which templates are compiled. Jinja compares the texts of templates itself.
    known = f"{sys.version}\0{jinja2.__version__}\0".encode() + Path(render.__file__).read_bytes()
    directory = machine / BYTE_CODE / f"templates-{hashlib.sha256(known).hexdigest()[:16]}"
    try:
        make_directory(directory, 0o700, exist_ok=True)
        os.utime(directory)
    except OSError:
        return None
    return CompiledTemplates(str(directory))
