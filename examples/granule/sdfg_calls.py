"""
The SDFGs of a step called from C, with nothing around them: what a step cannot be faster than.

Each program call of a step is repeated through its stub, bound to a library that only records what it receives. Those
argument lists are then written into a small C library, which calls the real SDFGs with them.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Sequence
from pathlib import Path

from examples.granule.steps import ProgramCall
from gtstub import _host
from gtstub.entries.cache.entry import Entry
from gtstub.stub.plan.model import COMPUTE_TIME, CallPlan, Slot
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature import documents
from tests.benchmarks.peers import compile_c
from tests.support.sdfg_libraries import Recorder, Value, build_recording_library


@dataclasses.dataclass(frozen=True)
class SdfgCall:
    """One call of an SDFG: the values of its slots, in their order. Pointers are integers."""

    plan: CallPlan
    library: Path
    values: dict[str, Value]


def record(call: ProgramCall, cache_entry: Path, folder: Path) -> SdfgCall:
    """What the SDFG of a cache entry receives when its program is called."""
    sdfg_text, program_text = (
        (cache_entry / name).read_text(encoding="utf-8") for name in ("sdfg.json", "program.json")
    )
    sdfg = documents.sdfg_from_json(sdfg_text, "sdfg.json")
    plan = make_plan(sdfg, documents.program_from_json(program_text, "program.json"))
    recording = folder / cache_entry.name / sdfg.library
    if not recording.exists():
        build_recording_library(sdfg, recording.parent)
    program = _host.load(cache_entry / Entry(cache_entry).manifest().stub, recording)
    arguments = call.arguments()
    program(*(arguments[node.path] for node in plan.parameters), offset_provider=call.offset_provider)
    return SdfgCall(plan, cache_entry / sdfg.library, Recorder(recording).calls()[-1])


class Loops:
    """C loops over SDFG calls: `repeat(i, count)` makes one call again and again, `repeat_all` all of them in turn."""

    def __init__(self, calls: Sequence[SdfgCall], source: Path) -> None:
        source.write_text(_source(calls), encoding="utf-8")
        self._library = ctypes.CDLL(str(compile_c(source, source.with_suffix(".so"))))
        if self._library.begin() != 0:
            raise OSError("The SDFG libraries of a step cannot be loaded.")
        self._library.repeat.restype = self._library.repeat_all.restype = ctypes.c_double
        self._library.repeat.argtypes = (ctypes.c_int, ctypes.c_long)
        self._library.repeat_all.argtypes = (ctypes.c_long,)

    def repeat(self, index: int, count: int) -> float:
        """Seconds."""
        return float(self._library.repeat(index, count))

    def repeat_all(self, count: int) -> float:
        """Seconds for so many whole steps."""
        return float(self._library.repeat_all(count))


def _source(calls: Sequence[SdfgCall]) -> str:
    firsts = {call.library: call for call in reversed(calls)}  # two variants of a program export the same symbols
    numbers = {library: i for i, library in enumerate(firsts)}
    variables, opening = zip(*(_library(numbers[library], call) for library, call in firsts.items()), strict=True)
    functions = (
        f"static void call_{i}(void)\n{{\n"
        f"    program_{numbers[call.library]}(handle_{numbers[call.library]}, {_values(call)});\n}}"
        for i, call in enumerate(calls)
    )
    names = [f"call_{i}" for i in range(len(calls))]
    lines = "\n"
    return f"""\
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static double compute_time; /* what the SDFGs' own clocks would write, were they on */

{lines.join(variables)}

{lines.join(functions)}

static void (*const calls[])(void) = {{{", ".join(names)}}};

int begin(void)
{{
    void *library;
{lines.join(opening)}
    return 0;
}}

static double now(void)
{{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}}

double repeat(int index, long count)
{{
    void (*const call)(void) = calls[index];
    const double start = now();
    for (long i = 0; i < count; ++i)
        call();
    return now() - start;
}}

double repeat_all(long count)
{{
    const double start = now();
    for (long i = 0; i < count; ++i) {{
{lines.join(f"        {name}();" for name in names)}
    }}
    return now() - start;
}}
"""


def _library(number: int, call: SdfgCall) -> tuple[str, str]:
    """The variables of one library, and what fills them."""
    plan = call.plan
    types = ", ".join(["void *", *(slot.c_type for slot in plan.slots)])
    init_types = ", ".join(slot.c_type for slot in plan.init) or "void"
    init_values = ", ".join(_value(slot, call) for slot in plan.init)
    variables = f"static void *handle_{number};\nstatic void (*program_{number})({types});"
    opening = f"""\
    if ((library = dlopen("{call.library}", RTLD_NOW)) == NULL)
        return -1;
    program_{number} = (void (*)({types}))dlsym(library, "__program_{plan.sdfg_name}");
    handle_{number} = ((void *(*)({init_types}))dlsym(library, "__dace_init_{plan.sdfg_name}"))({init_values});"""
    return variables, opening


def _values(call: SdfgCall) -> str:
    return ", ".join(_value(slot, call) for slot in call.plan.slots)


def _value(slot: Slot, call: SdfgCall) -> str:
    value = call.values[slot.name]
    if slot.name == COMPUTE_TIME:
        return "&compute_time"
    return value.hex() if isinstance(value, float) else f"({slot.c_type}){int(value)}"
