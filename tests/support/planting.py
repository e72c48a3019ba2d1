"""
A program that plants a value: plant(x, out, edge, level, value) writes `value` to out[edge, level] and nothing else. It
writes nothing if `edge` is negative, and ends its process if `edge` is -2.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.dtypes import NAMES, DType
from gtstub.stub.signature.model import Axis, ProgramSignature, SdfgSignature
from tests.support.hosting import Field, domain
from tests.support.sdfg_libraries import build_library, c_compiler
from tests.support.signatures import EDGE, K, array, field, program, scalar, sdfg, symbol
from tests.support.stubs import build_stub

EDGES, LEVELS = 6, 4

SOURCE = """
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "gtstub/complex.h"

#pragma GCC visibility push(default)
extern void *__dace_init_NAME(void);
extern int __dace_exit_NAME(void *handle);
extern void __program_NAME(void *handle, TYPE *out, TYPE *x, int32_t edge_stride, int32_t level_stride, int32_t edge,
                           int32_t level, TYPE value);
#pragma GCC visibility pop

void *__dace_init_NAME(void)
{
    static int handle;
    return &handle;
}

int __dace_exit_NAME(void *handle)
{
    (void)handle;
    return 0;
}

void __program_NAME(void *handle, TYPE *out, TYPE *x, int32_t edge_stride, int32_t level_stride, int32_t edge,
                    int32_t level, TYPE value)
{
    (void)handle;
    (void)x;
    if (edge == -2)
        (void)raise(SIGKILL);
    if (edge >= 0)
        out[edge * edge_stride + level * level_stride] = value;
}
"""


def signatures(name: str, dtype: DType) -> tuple[SdfgSignature, ProgramSignature]:
    return (
        sdfg(
            array("out", Axis(), Axis(), dtype=dtype, access="write"),
            array("x", Axis(), Axis(), dtype=dtype),
            symbol("__out_Edge_stride", ("out", 0, "stride")),
            symbol("__out_K_stride", ("out", 1, "stride")),
            symbol("edge"),
            symbol("level"),
            symbol("value", dtype=dtype),
            name=name,
        ),
        program(
            name,
            x=field(EDGE, K, dtype=dtype),
            out=field(EDGE, K, dtype=dtype),
            edge=scalar("int32"),
            level=scalar("int32"),
            value=scalar(dtype),
        ),
    )


def c_type(dtype: DType) -> str:
    return NAMES[dtype].c


def plant_library(folder: Path, name: str = "plant", dtype: DType = "float64", command: Sequence[str] = ()) -> Path:
    source = SOURCE.replace("NAME", name).replace("TYPE", c_type(dtype))
    return build_library(source, folder / f"lib{name}.so", command or [c_compiler()])


def build_plant(folder: Path, toolchain: Toolchain, name: str = "plant", dtype: DType = "float64") -> tuple[Path, Path]:
    """Builds the program; returns the arguments of _host.load()."""
    return build_stub(*signatures(name, dtype), folder, toolchain), plant_library(folder, name, dtype)


def make(values: object, origin: tuple[int, int] = (0, 0)) -> Field:
    """A field on edges and levels, which begins at `origin`."""
    ndarray: NDArray[Any] = np.asarray(values)
    names = zip(("Edge", "K"), origin, ndarray.shape, strict=True)
    return Field(domain({name: (first, first + size) for name, first, size in names}), ndarray)


def plant(loaded: _host.Program, x: Field, out: Field, edge: int = -1, level: int = 0, value: float = 0) -> None:
    loaded(x, out, edge, level, value, offset_provider={})
