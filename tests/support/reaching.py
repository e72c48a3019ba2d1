"""
A program that may reach outside of its arguments: reach(x, out, what, at, offset_provider) writes 2 * x to out, and
then accesses the element number `at` (counted in memory, from the first one) of what `what` says.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.install import INCLUDE
from gtstub.stub.signature.model import Axis, SdfgSignature, Workspace
from tests.support.sdfg_libraries import build_library, c_compiler
from tests.support.signatures import EDGE, NEIGHBORS, K, array, field, program, scalar, symbol
from tests.support.signatures import sdfg as make_sdfg
from tests.support.stubs import build_stub

NOTHING, READ_X, WRITE_OUT, READ_TABLE, WRITE_WORKSPACE, WILD, RAISE, BOTH, FAR, COPY = range(10)
"""What is accessed. WILD and RAISE end the process; BOTH reads x and then writes out; FAR reads x, and then
1000 elements farther; COPY writes to out what it reads of x."""

IN_THREAD = 10
"""Is added to `what`: another thread does it."""

WORKSPACE_BYTES = 512

SDFG = make_sdfg(
    array("gt_conn_E2V", Axis(), Axis(size=2), dtype="int32"),
    array("out", Axis(), Axis(), access="readwrite"),
    array("x", Axis(start=0), Axis(start=0)),
    symbol("__nk", ("out", 1, "size"), ("x", 1, "size")),
    symbol("__out_Edge_stride", ("out", 0, "stride")),
    symbol("__out_K_stride", ("out", 1, "stride")),
    symbol("__x_Edge_stride", ("x", 0, "stride")),
    symbol("__x_K_stride", ("x", 1, "stride")),
    symbol("at"),
    symbol("n", ("out", 0, "size"), ("x", 0, "size")),
    symbol("what"),
    name="reach",
    init=("__nk",),
    memory_symbols=("__nk",),
    workspaces=(Workspace("CPU_Heap", "cpu"),),
)
PROGRAM = program("reach", NEIGHBORS, x=field(EDGE, K), out=field(EDGE, K), what=scalar("int32"), at=scalar("int32"))

SOURCE = """
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include "gtstub/gtstub.h"
#include "embedded/map_output.h"

#pragma GCC visibility push(default)
extern void *__dace_init_reach(int32_t nk);
extern int __dace_exit_reach(void *handle);
extern size_t __dace_get_external_memory_size_CPU_Heap(void *handle, int32_t nk);
extern void __dace_set_external_memory_CPU_Heap(void *handle, char *memory, int32_t nk);
extern void __program_reach(void *handle, int32_t *table, double *out, double *x, int32_t nk, int32_t out_edge,
                            int32_t out_level, int32_t x_edge, int32_t x_level, int32_t at, int32_t n, int32_t what);
#ifdef MAPS
extern gts_after_map *__gtstub_after_map_reach;
#endif
#pragma GCC visibility pop

#ifdef MAPS
gts_after_map *__gtstub_after_map_reach;
#else
static gts_after_map *const __gtstub_after_map_reach = NULL;
#endif

struct handle {
    char *workspace;
};

struct access {
    struct handle *handle;
    const volatile int32_t *table;
    volatile double *out;
    const volatile double *x;
    int32_t what, at;
    double seen;
};

void *__dace_init_reach(int32_t nk)
{
    (void)nk;
    return calloc(1, sizeof(struct handle));
}

int __dace_exit_reach(void *handle)
{
    free(handle);
    return 0;
}

size_t __dace_get_external_memory_size_CPU_Heap(void *handle, int32_t nk)
{
    (void)nk;
    return handle == NULL ? 0 : 512;
}

void __dace_set_external_memory_CPU_Heap(void *handle, char *memory, int32_t nk)
{
    (void)nk;
    ((struct handle *)handle)->workspace = memory;
}

static void *reach(void *argument)
{
    struct access *const a = argument;
    switch (a->what % 10) {
    case 1:
    case 7:
        a->seen = a->x[a->at];
        if (a->what % 10 == 7)
            a->out[a->at] = 7;
        break;
    case 2:
        a->out[a->at] = 7;
        break;
    case 3:
        a->seen = a->table[a->at];
        break;
    case 4:
        ((volatile char *)a->handle->workspace)[a->at] = 1;
        break;
    case 8:
        a->seen = a->x[a->at] + a->x[a->at + 1000];
        break;
    case 9:
        a->out[a->at] = a->x[a->at];
        break;
    case 5:
        *(volatile int *)16 = 0;
        break;
    case 6:
        (void)raise(SIGSEGV);
        break;
    default:
        break;
    }
    return NULL;
}

static void end_map(void *handle, const char *map, double *out)
{
    if (__gtstub_after_map_reach != NULL)
        __gtstub_after_map_reach(handle, &(gts_map_output){map, "out", out, GTS_FLOAT64, 1, true, false, false,
                                                           {{0, 1, 1, 1}}});
}

void __program_reach(void *handle, int32_t *table, double *out, double *x, int32_t nk, int32_t out_edge,
                     int32_t out_level, int32_t x_edge, int32_t x_level, int32_t at, int32_t n, int32_t what)
{
    for (int32_t i = 0; i < n; ++i)
        for (int32_t k = 0; k < nk; ++k)
            out[i * out_edge + k * out_level] = 2 * x[i * x_edge + k * x_level];
    end_map(handle, "map 'double' (model.py:3)", out);
    struct access access = {handle, table, out, x, what, at, 0};
    pthread_t thread;
    if (what < 10)
        reach(&access);
    else if (pthread_create(&thread, NULL, reach, &access) == 0)
        (void)pthread_join(thread, NULL);
    end_map(handle, "map 'reach' (model.py:5)", out);
    end_map(handle, "map 'last' (model.py:7)", out);
    ++((struct handle *)handle)->workspace[0]; /* kept from call to call */
}
"""


def reach_library(folder: Path, *flags: str) -> Path:
    return build_library(SOURCE, folder / "libreach.so", [c_compiler(), f"-I{INCLUDE}", *flags])


def build_reach(
    folder: Path, toolchain: Toolchain, *, says_maps: bool = False, sdfg: SdfgSignature = SDFG
) -> tuple[Path, Path]:
    """Builds the program; returns the arguments of _host.load(). With `says_maps` it says when its maps end."""
    flags = ["-DMAPS"] if says_maps else []
    return build_stub(sdfg, PROGRAM, folder, toolchain), reach_library(folder, *flags)


def lend(loaded: _host.Program) -> NDArray[np.uint8]:
    """Lends the program its workspace. The caller keeps it as long as the program is called."""
    memory = np.zeros(WORKSPACE_BYTES + 256, np.uint8)
    start = -memory.ctypes.data % 256
    workspace = memory[start : start + WORKSPACE_BYTES]
    loaded.set_workspace("CPU_Heap", workspace)
    return workspace
