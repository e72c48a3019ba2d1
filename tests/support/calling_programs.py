"""Programs that call back: their stubs, and SDFG libraries that really call their functions."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.dtypes import NAMES, SCALAR_DTYPES, DType
from gtstub.stub.signature.model import (
    ArrayArgument,
    Axis,
    CallbackArgument,
    CallbackType,
    ProgramSignature,
    ScalarArgument,
    SdfgSignature,
)
from tests.support.sdfg_libraries import build_library, c_compiler
from tests.support.signatures import (
    CALLING_PROGRAM,
    CALLING_SDFG,
    K,
    array,
    callback,
    field,
    number,
    numbers,
    program,
    scalar,
    sdfg,
    symbol,
)
from tests.support.stubs import build_stub

DTYPES: tuple[DType, ...] = SCALAR_DTYPES


@dataclasses.dataclass(frozen=True)
class CallingProgram:
    """A program with the statements of its SDFG, in C. The arguments have their names in the signature."""

    sdfg: SdfgSignature
    program: ProgramSignature
    body: str

    def build(self, folder: Path, toolchain: Toolchain, command: Sequence[str] = ()) -> Built:
        library = build_library(self.source, folder / self.sdfg.library, command or [c_compiler(), "-O1", "-fopenmp"])
        return Built(build_stub(self.sdfg, self.program, folder, toolchain), library)

    @property
    def source(self) -> str:
        """The text of the SDFG library."""
        of = {argument.name: argument for argument in self.sdfg.arguments}
        name = self.sdfg.name
        init = ", ".join(_parameter(of[each]) for each in self.sdfg.init) or "void"
        taken = ", ".join(("void *handle", *map(_parameter, self.sdfg.arguments)))
        unused = "".join(f"    (void){each};\n" for each in ("handle", *of))
        return f"""\
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gtstub/complex.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void *__dace_init_{name}({init})
{{
    static int handle;
{"".join(f"    (void){each};{chr(10)}" for each in self.sdfg.init)}    return &handle;
}}

EXPORT int __dace_exit_{name}(void *handle)
{{
    return handle == NULL;
}}

EXPORT void __program_{name}({taken})
{{
{unused}{self.body}}}
"""


@dataclasses.dataclass(frozen=True)
class Built:
    """The two libraries of a program."""

    stub: Path
    library: Path

    def load(self) -> _host.Program:
        return _host.load(self.stub, self.library)


def _parameter(argument: ArrayArgument | ScalarArgument | CallbackArgument) -> str:
    if isinstance(argument, CallbackArgument):
        one = len(argument.results) == 1 and not argument.results[0].shape
        values = [
            f"const {NAMES[each.dtype].c} *" if each.shape else NAMES[each.dtype].c for each in argument.arguments
        ]
        values += [f"{NAMES[each.dtype].c} *" for each in argument.results if not one]
        returned = NAMES[argument.results[0].dtype].c if one else "void"
        return f"{returned} (*{argument.name})({', '.join(values) or 'void'})"
    return f"{NAMES[argument.dtype].c} {'*' if isinstance(argument, ArrayArgument) else ''}{argument.name}"


# It calls functions of every form: `weigh` from two threads of OpenMP, `smooth` and `split` with memory of its own.
CALLING = CallingProgram(
    CALLING_SDFG,
    CALLING_PROGRAM,
    """\
    static double memory[1000];
    static float tile[1000];
    const int m = 3; /* M, which it does not take */
    int32_t count = 0;
    for (int i = 0; i < 1000; ++i)
        memory[i] = i;
    x[0] = now();
    see(x, y);
    smooth(memory, x + 0);
    split(a, &count, tile);
    x[0] += count;
    for (int i = 0; i < 4 * m; ++i)
        y[i % (N * m)] += tile[i];
    bool weighed[2];
    #pragma omp parallel for num_threads(2)
    for (int i = 0; i < 2; ++i)
        weighed[i] = weigh(a, i, i == 1);
    x[1] += 10 * weighed[0] + 100 * weighed[1];
""",
)

# It calls a function for each element of an array, in `threads` threads of OpenMP.
LOOP_BODY = """\
    #pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int32_t i = 0; i < L; ++i)
        out[i] = f(i, x);
"""


def loop(name: str, *, is_parallel: bool) -> CallingProgram:
    return CallingProgram(
        sdfg(
            array("out", Axis(start=0, stride=1), access="write"),
            array("x", Axis(start=0)),
            symbol("L", ("out", 0, "size")),
            symbol("M", ("x", 0, "stride")),
            symbol("N", ("x", 0, "size")),
            callback(
                "f",
                number("int32"),
                numbers("float64", "N", strides=("M",)),
                returns=(number("float64"),),
                is_parallel=is_parallel,
            ),
            symbol("threads"),
            name=name,
        ),
        program(name, x=field(K), out=field(K), threads=scalar("int32"), f=CallbackType()),
        LOOP_BODY,
    )


SERIAL = loop("serial", is_parallel=False)
PARALLEL = loop("parallel", is_parallel=True)

# Each element of `out_<dtype>` is what a function returns for that of `in_<dtype>`.
EVERY_DTYPE = CallingProgram(
    sdfg(
        *(array(f"in_{dtype}", Axis(start=0, size=3, stride=1), dtype=dtype) for dtype in DTYPES),
        *(array(f"out_{dtype}", Axis(start=0, size=3, stride=1), dtype=dtype, access="write") for dtype in DTYPES),
        *(callback(f"f_{dtype}", number(dtype), returns=(number(dtype),)) for dtype in DTYPES),
        name="every",
    ),
    program(
        "every",
        **{f"in_{dtype}": field(K, dtype=dtype) for dtype in DTYPES},
        **{f"out_{dtype}": field(K, dtype=dtype) for dtype in DTYPES},
        **{f"f_{dtype}": CallbackType() for dtype in DTYPES},
    ),
    "".join(
        f"    for (int i = 0; i < 3; ++i)\n        out_{dtype}[i] = f_{dtype}(in_{dtype}[i]);\n" for dtype in DTYPES
    ),
)


def call(program: _host.Program, f: Callable[..., Any], count: int = 10, threads: int = 1, x: Any = None) -> Any:
    """Has SERIAL or PARALLEL call `f(i, x)` for each i below `count`; returns the results."""
    out = np.full(count, -1.0)
    program(np.zeros(4) if x is None else x, out, threads, f)
    return out


@contextlib.contextmanager
def another_thread() -> Iterator[None]:
    """Another thread of Python, so that calls release the GIL."""
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    try:
        yield
    finally:
        ended.set()
        other.join()
