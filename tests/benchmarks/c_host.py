"""
A host in C that calls an SDFG bare and through its stub, with the same arrays or with two sets of them in turn, and
that starts bound calls alone and in steps.

As a library it has `time_bare`, `time_memory`, `time_stub` and `time_turns`, and after `make_steps` also `time_bound`,
`time_step` and `time_long_step`. As a program it prints the milliseconds of gts_open(), then makes calls that callgrind
counts: many for their instructions, and one for its cache lines, which begins with empty caches.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from gtstub.install import INCLUDE, RUNTIME
from gtstub.stub.plan.model import CallPlan, FieldLeaf, ScalarLeaf
from tests.benchmarks.instructions import CACHES, lines, total
from tests.benchmarks.peers import HERE, compile_c, link

CALLS = 1000
"""Also the number of programs in the long step."""

STEP = 10
"""Programs in the short step."""


def build(plan: CallPlan, entry: Path, folder: Path) -> tuple[Path, Path]:
    """The library and the program; the entry's stub is linked, its header included."""
    source = folder / "c_host.c"
    source.write_text(source_of(plan), encoding="utf-8")
    runtime = [f"-L{RUNTIME.parent}", f"-l:{RUNTIME.name}", f"-Wl,-rpath,{RUNTIME.parent}", "-ldl"]
    flags = [f"-I{HERE}", f"-I{INCLUDE}", f"-I{entry}", *link(entry / f"{plan.name}_stub.so"), *runtime]
    library = compile_c(source, folder / "c_host.so", *flags)
    command = ["cc", "-std=gnu11", "-O2", str(source), *flags, "-o", str(folder / "c_host")]
    subprocess.run(command, check=True)
    return library, folder / "c_host"


def open_milliseconds(program: Path, entry: Path, library: Path) -> float:
    """Of gts_open() in a new process."""
    command = [str(program), str(entry), str(library), "1"]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def instructions(program: Path, entry: Path, library: Path) -> dict[str, float]:
    """
    Of a call through the stub above a bare one with constants; of a start and of a program in a step above a bare one
    with values from memory. All are made in a loop.
    """
    command = [program, entry, library, str(CALLS)]
    ways = {"bound from C": "bound", "step from C": "step", "long step from C": "long_step"}
    memory = count_instructions("time_memory", command)
    counted = {name: count_instructions(f"time_{way}", command) - memory for name, way in ways.items()}
    return {"C": count_instructions("time_stub", command) - count_instructions("time_bare", command), **counted}


def count_lines(program: Path, entry: Path, library: Path) -> int:
    """The cache lines of a call through the stub, above those of a bare one, without the caller's arguments."""
    command = [program, entry, library, "1"]
    stub, bare = (_count(function, command, *CACHES) for function in ("cold_stub", "cold_bare"))
    return lines(stub) - lines(bare)


def count_instructions(function: str, command: list[str | Path]) -> float:
    """Of one of the CALLS calls that this function of a program makes."""
    return _count(function, command)["Ir"] / CALLS


def _count(function: str, command: list[str | Path], *options: str) -> dict[str, int]:
    """The events in a function of a program, by callgrind's names."""
    with tempfile.TemporaryDirectory() as folder:
        valgrind = ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--toggle-collect={function}", *options]
        valgrind += [f"--callgrind-out-file={folder}/out", *map(str, command)]
        done = subprocess.run(valgrind, check=True, capture_output=True, text=True)
    return total(done.stderr, r"Events +: (.*)$", r"Collected : (.*)$")


def _array(leaf: FieldLeaf) -> str:
    sizes = _braces([axis.fixed.size or 8 for axis in leaf.axes])
    strides = _braces([axis.fixed.stride or 8 for axis in leaf.axes])
    return (
        f"{{.data = memory, .dtype = GTS_{leaf.dtype.upper()}, .device = GTS_CPU, .rank = {len(leaf.axes)},"
        f" .shape = {sizes}, .strides = {strides}}}"
    )


def _value(leaf: FieldLeaf | ScalarLeaf) -> str:
    return f"    .{leaf.name} = {_array(leaf) if isinstance(leaf, FieldLeaf) else '1'},"


def _braces(values: list[int]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"


def source_of(plan: CallPlan) -> str:
    values = "\n".join(map(_value, plan.arguments))
    members = "\n".join(f"    {slot.c_type} slot_{i};" for i, slot in enumerate(plan.slots))
    loaded = ", ".join(f"values.slot_{i}" for i in range(len(plan.slots)))
    zeros = ", ".join("NULL" if slot.is_array else "0" for slot in plan.slots)
    return f"""\
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "{plan.name}_stub.h"
#include "cold.h"
#include "gtstub/step.h"

enum {{ SHORT = {STEP}, LONG = {CALLS} }};

typedef void (*sdfg_program)({", ".join(["void *", *(slot.c_type for slot in plan.slots)])});

static double memory[65];

static const struct {plan.name}_args ARGS = {{
{values}
}};

static const struct {plan.name}_args OTHER_ARGS = {{
{values.replace("= memory", "= memory + 1")}
}};

static double now(void)
{{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}}

/* Seconds for `count` calls of the SDFG itself, with zeros: it cannot be called in less. */
double time_bare(sdfg_program program, void *handle, long count);

double time_bare(sdfg_program program, void *handle, long count)
{{
    const double begin = now();
    for (long i = 0; i < count; ++i)
        program(handle, {zeros});
    return now() - begin;
}}

/* Values that the compiler does not know. */
extern struct values {{
{members}
}} values;
struct values values;

/* Seconds for `count` calls of the SDFG itself, with values from memory, as any caller has them. */
double time_memory(sdfg_program program, void *handle, long count);

double time_memory(sdfg_program program, void *handle, long count)
{{
    const double begin = now();
    for (long i = 0; i < count; ++i)
        program(handle, {loaded});
    return now() - begin;
}}

gts_program *open_program(const char *entry);

gts_program *open_program(const char *entry)
{{
    gts_program *program;
    if (gts_open(entry, &program) != 0)
        fprintf(stderr, "%s\\n", gts_last_error(NULL)->message);
    return program;
}}

/* Seconds for `count` calls through the stub; -1 after a refusal. */
double time_stub(gts_program *program, long count);

double time_stub(gts_program *program, long count)
{{
    const double begin = now();
    for (long i = 0; i < count; ++i) {{
        if ({plan.name}_call(program, &ARGS) != 0) {{
            fprintf(stderr, "%s\\n", gts_last_error(program)->message);
            return -1;
        }}
    }}
    return now() - begin;
}}

/* The same with two sets of arrays in turn, as time levels swap. */
double time_turns(gts_program *program, long count);

double time_turns(gts_program *program, long count)
{{
    const double begin = now();
    for (long i = 0; i < count; ++i) {{
        if ({plan.name}_call(program, i % 2 == 0 ? &ARGS : &OTHER_ARGS) != 0)
            return -1;
    }}
    return now() - begin;
}}

/* One call of the SDFG itself, whose cache lines are counted. */
void cold_bare(sdfg_program program, void *handle);

__attribute__((noinline)) void cold_bare(sdfg_program program, void *handle)
{{
    program(handle, {zeros});
    __asm__ volatile("");
}}

/* The same through the stub. */
int cold_stub(gts_program *program);

__attribute__((noinline)) int cold_stub(gts_program *program)
{{
    const int status = {plan.name}_call(program, &ARGS);
    __asm__ volatile("");
    return status;
}}

static int call_cold(gts_program *program, sdfg_program bare)
{{
    evict();
    warm_stack();
    cold_bare(bare, memory);
    evict();
    warm(&ARGS, sizeof ARGS);
    warm_stack();
    return cold_stub(program);
}}

/* ---- Bound calls and steps ---- */

static gts_bound_call *call;
static gts_step *short_step, *long_step;

/* Binds the call, and makes two steps of it. */
int make_steps(gts_program *program);

int make_steps(gts_program *program)
{{
    if (gts_bind(program, &ARGS, &call) != 0)
        return -1;
    static gts_action actions[LONG];
    for (int i = 0; i < LONG; ++i)
        actions[i].call = call;
    if (gts_step_new("short", actions, SHORT, &short_step) != 0 || gts_step_new("long", actions, LONG, &long_step) != 0)
        return -1;
    return gts_start(call);
}}

double time_bound(long count);

double time_bound(long count)
{{
    const double begin = now();
    for (long i = 0; i < count; ++i) {{
        if (gts_start(call) != 0)
            return -1;
    }}
    return now() - begin;
}}

/* Runs a step of so many programs until `count` have run, a multiple. Inlined, so that callgrind finds its caller. */
__attribute__((always_inline)) static inline double time_runs(gts_step *step, long programs, long count)
{{
    const double begin = now();
    for (long i = 0; i < count; i += programs) {{
        if (gts_step_run(step) != 0)
            return -1;
    }}
    return now() - begin;
}}

double time_step(long count);

double time_step(long count)
{{
    return time_runs(short_step, SHORT, count);
}}

double time_long_step(long count);

double time_long_step(long count)
{{
    return time_runs(long_step, LONG, count);
}}

/* ENTRY LIBRARY COUNT */
int main(int argc, char **argv)
{{
    if (argc != 4)
        return 2;
    const long count = atol(argv[3]);
    const double begin = now();
    gts_program *program = open_program(argv[1]);
    printf("%.6f\\n", 1e3 * (now() - begin));
    if (program == NULL || {plan.name}_call(program, &ARGS) != 0 || {plan.name}_call(program, &ARGS) != 0)
        return 1;
    sdfg_program bare;
    *(void **)&bare = dlsym(dlopen(argv[2], RTLD_NOW), "__program_{plan.sdfg_name}");
    (void)time_bare(bare, memory, count);
    (void)time_memory(bare, memory, count);
    if (time_stub(program, count) < 0 || call_cold(program, bare) != 0 || make_steps(program) != 0)
        return 1;
    return time_bound(count) < 0 || time_step(count) < 0 || time_long_step(count) < 0;
}}
"""
