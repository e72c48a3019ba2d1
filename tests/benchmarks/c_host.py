"""
A host in C that calls an SDFG bare and through its stub, with the same arrays or with two sets of them in turn.

As a library it has `time_bare`, `time_stub` and `time_turns`; as a program it prints the milliseconds of
gts_open(), then makes calls that callgrind counts.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from gtstub.install import INCLUDE, RUNTIME
from gtstub.plan.model import CallPlan, FieldLeaf, ScalarLeaf
from tests.benchmarks.peers import compile_c, link

CALLS = 1000


def build(plan: CallPlan, entry: Path, folder: Path) -> tuple[Path, Path]:
    """The library and the program; the entry's stub is linked, its header included."""
    source = folder / "c_host.c"
    source.write_text(_source(plan), encoding="utf-8")
    runtime = [f"-L{RUNTIME.parent}", f"-l:{RUNTIME.name}", f"-Wl,-rpath,{RUNTIME.parent}", "-ldl"]
    flags = [f"-I{INCLUDE}", f"-I{entry}", *link(entry / f"{plan.name}_stub.so"), *runtime]
    library = compile_c(source, folder / "c_host.so", *flags)
    command = ["cc", "-std=gnu11", "-O2", str(source), *flags, "-o", str(folder / "c_host")]
    subprocess.run(command, check=True)
    return library, folder / "c_host"


def open_milliseconds(program: Path, entry: Path, library: Path) -> float:
    """Of gts_open() in a new process."""
    command = [str(program), str(entry), str(library), "1"]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def instructions(program: Path, entry: Path, library: Path) -> float:
    """Of a call through the stub, above a bare one, both in a loop."""
    command = [program, entry, library, str(CALLS)]
    return count_instructions("time_stub", command) - count_instructions("time_bare", command)


def count_instructions(function: str, command: list[str | Path]) -> float:
    """Of one of the CALLS calls that this function of a program makes."""
    with tempfile.TemporaryDirectory() as folder:
        valgrind = ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--toggle-collect={function}"]
        valgrind += [f"--callgrind-out-file={folder}/out", *map(str, command)]
        done = subprocess.run(valgrind, check=True, capture_output=True, text=True)
    (count,) = re.findall(r"Collected : (\d+)", done.stderr)
    return int(count) / CALLS


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


def _source(plan: CallPlan) -> str:
    values = "\n".join(map(_value, plan.arguments))
    zeros = ", ".join("NULL" if slot.is_array else "0" for slot in plan.slots)
    return f"""\
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "{plan.name}_stub.h"

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
    return time_stub(program, count) < 0;
}}
"""
