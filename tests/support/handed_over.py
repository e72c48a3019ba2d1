"""Steps that Python has handed over, as C has them."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gtstub.abi import SONAME
from gtstub.install import FORTRAN, INCLUDE, LIBRARIES, RUNTIME
from tests.support.checkout import ROOT
from tests.support.fortran_hosts import MODULES
from tests.support.programs import need

TYPE_ERROR, VALUE_ERROR, RUNTIME_ERROR = 1, 2, 3


class Error(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("message", ctypes.c_char * 1024))


class CStep:
    """A step as C has it. Each use releases the GIL, as ctypes does."""

    def __init__(self, name: str, runtime: ctypes.CDLL | None = None) -> None:
        self.c = runtime or ctypes.CDLL(SONAME)
        self.c.gts_last_error.restype = ctypes.POINTER(Error)
        self.handle = ctypes.c_void_p()
        self.done(self.c.gts_step_find(name.encode(), ctypes.byref(self.handle)))

    def done(self, status: int) -> None:
        if status != 0:
            error = self.c.gts_last_error(None).contents
            raise CError(error.kind, error.message.decode())

    def run(self) -> None:
        self.done(self.c.gts_step_run(self.handle))

    def set(self, value: Any, dtype: int = 11, name: str = "factor") -> None:
        self.done(self.c.gts_step_set_scalar(self.handle, name.encode(), dtype, ctypes.byref(value)))

    def swap(self, a: np.ndarray, b: np.ndarray) -> None:
        self.done(self.c.gts_step_swap(self.handle, ctypes.c_void_p(a.ctypes.data), ctypes.c_void_p(b.ctypes.data)))

    def free(self) -> None:
        self.c.gts_step_free(ctypes.byref(self.handle))


class CError(Exception):
    def __init__(self, kind: int, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@contextmanager
def refused(kind: int, message: str) -> Iterator[None]:
    """Expects an error of C: its kind and its whole text."""
    with pytest.raises(CError) as caught:
        yield
    got = (caught.value.kind, str(caught.value))
    assert got == (kind, message), f"{got}"


def build_host(folder: Path) -> Path:
    """A library of C that runs steps in its own threads, linked with a libgtstub of its own: another file."""
    shutil.copy(RUNTIME, folder)
    output = folder / "libhost.so"
    source = ROOT / "tests" / "python_host" / "host_of_steps.c"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-shared", "-fPIC", "-pthread", "-I", str(INCLUDE)]
    command = ["cc", *flags, str(source), "-L", str(folder), f"-l:{SONAME}", "-Wl,-rpath,$ORIGIN", "-o", str(output)]
    subprocess.run(command, check=True)
    return output


def build_fortran_host(folder: Path) -> Path:
    """A library of Fortran that uses the module `gtstub`."""
    need("gfortran")
    output = folder / "libfortranhost.so"
    modules = [FORTRAN / f"{name}.f90" for name in MODULES]
    source = ROOT / "tests" / "python_host" / "host_of_steps.f90"
    flags = ["-std=f2018", "-Wall", "-Wextra", "-Werror", "-g", "-shared", "-fPIC", "-J", folder]
    command = ["gfortran", *flags, *modules, source, "-L", LIBRARIES, f"-l:{SONAME}", "-o", output]
    subprocess.run(list(map(str, command)), check=True)
    return output


def in_thread(library: ctypes.CDLL, name: str, times: int = 1) -> str:
    """Runs a step in a thread of C; returns its error."""
    text = ctypes.create_string_buffer(1024)
    status = library.run_in_thread(name.encode(), times, text)
    assert status >= 0, "the thread did not end"
    assert (status == 0) == (text.value == b"")
    return text.value.decode()
