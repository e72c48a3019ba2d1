"""
SDFG libraries for tests, generated from an SDFG signature and compiled: they export what DaCe exports, and
either record every value that they receive or do nothing at all.

    path = build_recording_library(signature, folder)
    ...  # call the program that is bound to `path`
    assert Recorder(path).calls()[-1]["vn"] == array.ctypes.data
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from gtstub.install import FOLDER, INCLUDE
from gtstub.stub.signature.dtypes import NAMES
from gtstub.stub.signature.model import Argument, ArrayArgument, CallbackArgument, ScalarArgument, SdfgSignature
from tests.support import target
from tests.support.compiled import compile_once

FUNCTIONS = ("program", "init", "exit", "workspace_bytes", "workspace_install")
"""What a record is of; the position is the number in the library."""

_STRUCT_CODES = {"pointer": "Q", **{dtype: names.struct for dtype, names in NAMES.items()}}

Value = bool | int | float


@dataclasses.dataclass(frozen=True)
class Record:
    """One call of one function of the library; `memory` is what a workspace_install was given."""

    function: str
    storage: str
    handle: int
    memory: int
    values: dict[str, Value]


class Behaviour(ctypes.Structure):
    """How the library behaves; zero is a library without troubles."""

    _fields_ = (
        ("init_fails", ctypes.c_bool),
        ("exit_status", ctypes.c_int),
        ("gpu_error", ctypes.c_int),
        ("delay", ctypes.c_uint),  # microseconds that the program takes
        ("workspace_bytes", ctypes.c_size_t),
        ("overlaps", ctypes.c_uint),  # written by the library: calls that began while another one ran
        ("running", ctypes.c_uint),  # written by the library: calls that run now
        ("until_overlap", ctypes.c_bool),  # an overlap ends the delay
        ("waits", ctypes.c_bool),  # a program for a GPU waits for its stream at the end
        ("copies_to", ctypes.c_void_p),  # a program for a GPU copies to this address, unless it is NULL,
        ("copies_from", ctypes.c_void_p),  # from this one
        ("copies_bytes", ctypes.c_size_t),
    )


class _RawRecord(ctypes.Structure):
    _fields_ = (
        ("function", ctypes.c_int),
        ("storage", ctypes.c_int),
        ("handle", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
        ("values", ctypes.POINTER(ctypes.c_uint64)),
    )


class Recorder:
    """Reads back what a recording library received; a library that is loaded already is not loaded again."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))
        self._library.record_count.restype = ctypes.c_size_t
        self._library.record_at.restype = _RawRecord
        self._library.record_at.argtypes = (ctypes.c_size_t,)
        layout = json.loads(ctypes.c_char_p.in_dll(self._library, "record_layout").value or b"")
        self._program: list[list[str]] = layout["program"]
        self._init: list[list[str]] = layout["init"]
        self._storages: list[str] = layout["storages"]
        self.behaviour = Behaviour.in_dll(self._library, "record_behaviour")

    def calls(self) -> list[dict[str, Value]]:
        """The values of all slots, for each call of the program so far; pointers are integers."""
        return [record.values for record in self.records() if record.function == "program"]

    def inits(self) -> list[dict[str, Value]]:
        return [record.values for record in self.records() if record.function == "init"]

    def records(self) -> list[Record]:
        return [self._decode(self._library.record_at(i)) for i in range(self._library.record_count())]

    def clear(self) -> None:
        self._library.record_clear()

    def _decode(self, raw: _RawRecord) -> Record:
        function = FUNCTIONS[raw.function]
        arguments = {"program": self._program, "exit": []}.get(function, self._init)
        values: dict[str, Value] = {}
        for i, (name, kind) in enumerate(arguments):
            code = _STRUCT_CODES[kind]
            bits = int(raw.values[i]).to_bytes(8, "little")
            (values[name],) = struct.unpack(f"<{code}", bits[: struct.calcsize(f"<{code}")])
        storage = self._storages[raw.storage] if function.startswith("workspace") else ""
        return Record(function, storage, raw.handle or 0, raw.memory or 0, values)


def build_recording_library(signature: SdfgSignature, folder: Path, command: Sequence[str] = ()) -> Path:
    """Builds `signature.library` in `folder`, with what `Recorder` needs; `command` is the compiler with flags."""
    return build_library(recording_source(signature), folder / signature.library, command or [c_compiler()])


def build_null_library(signature: SdfgSignature, folder: Path, command: Sequence[str] = ()) -> Path:
    """Builds `signature.library` in `folder`: the same symbols, doing nothing."""
    source = "\n".join(_null_lines(signature))
    return build_library(source, folder / signature.library, command or [c_compiler(), "-O2"])


def c_compiler() -> str:
    if not target.IS_NATIVE:
        return target.tool("gcc")
    compiler = os.environ.get("CC") or shutil.which("cc")
    assert compiler is not None, "a C compiler is needed"
    return compiler


def build_library(source: str, output: Path, command: Sequence[str]) -> Path:
    output.parent.mkdir(parents=True, exist_ok=True)
    text = output.with_suffix(".c")
    text.write_text(source, encoding="utf-8")
    flags = ("-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread", "-I", str(INCLUDE), "-I", str(FOLDER))
    compiler = [*command, *flags, "-o", str(output), str(text)]
    compile_once((*command, source), output, lambda: subprocess.run(compiler, check=True))
    return output


# --- The text of the libraries ----------------------------------------------------------------------------------------


def _parameter(argument: Argument, name: str) -> str:
    if isinstance(argument, CallbackArgument):
        return f"void (*{name})(void)"
    return f"{NAMES[argument.dtype].c} {'*' if isinstance(argument, ArrayArgument) else ''}{name}"


def _parameters(first: Sequence[str], arguments: Sequence[Argument], names: str = "x") -> str:
    rest = [_parameter(argument, f"{names}{i}") for i, argument in enumerate(arguments)]
    return ", ".join((*first, *rest)) or "void"


def _init_arguments(signature: SdfgSignature) -> list[Argument]:
    arguments = {argument.name: argument for argument in signature.arguments}
    return [arguments[name] for name in signature.init]


def _null_lines(signature: SdfgSignature) -> Iterator[str]:
    name, init = signature.name, _init_arguments(signature)
    yield '#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include "gtstub/complex.h"'
    yield '#define EXPORT __attribute__((visibility("default")))'
    yield f"EXPORT void *__dace_init_{name}({_parameters((), init)}) {{ static int handle; return &handle; }}"
    yield f"EXPORT int __dace_exit_{name}(void *handle) {{ return handle == NULL; }}"
    yield f"EXPORT void __program_{name}({_parameters(('void *handle',), signature.arguments)}) {{ (void)handle; }}"
    for workspace in signature.workspaces:
        bytes_ = _parameters(("void *handle",), init)
        install = _parameters(("void *handle", "char *memory"), init)
        yield f"EXPORT size_t __dace_get_external_memory_size_{workspace.storage}({bytes_}) {{ return 0; }}"
        yield f"EXPORT void __dace_set_external_memory_{workspace.storage}({install}) {{ (void)memory; }}"
    yield ""


_RECORDING_HEAD = """\
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gtstub/complex.h"
#include "embedded/memory.h"

#define EXPORT __attribute__((visibility("default")))

struct record {
    int function;
    int storage;
    void *handle;
    void *memory;
    uint64_t *values;
};

EXPORT struct {
    bool init_fails;
    int exit_status;
    int gpu_error;
    unsigned int delay;
    size_t workspace_bytes;
    atomic_uint overlaps;
    atomic_uint running;
    bool until_overlap;
    bool waits;
    void *copies_to;
    const void *copies_from;
    size_t copies_bytes;
} record_behaviour;

static struct record *records;
static size_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT size_t record_count(void)
{
    return count;
}

EXPORT struct record record_at(size_t i)
{
    return records[i];
}

EXPORT void record_clear(void)
{
    for (size_t i = 0; i < count; ++i)
        free(records[i].values);
    free(records);
    records = NULL;
    count = 0;
}

/* Makes room for a record and returns where its values go. */
static uint64_t *begin(int function, int storage, void *handle, void *memory)
{
    pthread_mutex_lock(&lock);
    records = realloc(records, (count + 1) * sizeof *records);
    records[count] = (struct record){function, storage, handle, memory, calloc(VALUES, sizeof(uint64_t))};
    return records[count].values;
}

static void end(void)
{
    ++count;
    pthread_mutex_unlock(&lock);
}

static void run(void)
{
    if (record_behaviour.running++ > 0)
        ++record_behaviour.overlaps;
    if (!record_behaviour.until_overlap)
        usleep(record_behaviour.delay);
    else
        for (unsigned int waited = 0; waited < record_behaviour.delay && record_behaviour.overlaps == 0; waited += 1000)
            usleep(1000);
}

#ifdef GPU_SDFG
#include GPU_SDFG
#else
EXPORT int __dace_gpu_last_error(void *handle)
{
    (void)handle;
    return record_behaviour.gpu_error;
}

static void *start_sdfg(void)
{
    return malloc(1);
}

static void run_sdfg(void *handle)
{
    (void)handle;
}

static int end_sdfg(void *handle)
{
    free(handle);
    return 0;
}
#endif
"""


def _store(count: int) -> str:
    return "\n".join(f"    memcpy(&values[{i}], &x{i}, sizeof x{i});" for i in range(count))


def recording_source(signature: SdfgSignature) -> str:
    """The C text of the recording library."""
    name, init = signature.name, _init_arguments(signature)

    def pairs(arguments: Sequence[Argument]) -> list[tuple[str, str]]:
        return [(a.name, a.dtype if isinstance(a, ScalarArgument) else "pointer") for a in arguments]

    layout = json.dumps(
        {
            "program": pairs(signature.arguments),
            "init": pairs(init),
            "storages": [workspace.storage for workspace in signature.workspaces],
        }
    )
    functions = [
        f"""\
EXPORT const char *const record_layout = {json.dumps(layout)};
EXPORT gts_sdfg_memory *__gtstub_memory_{name};

EXPORT void *__dace_init_{name}({_parameters((), init)})
{{
    void *const handle = record_behaviour.init_fails ? NULL : start_sdfg();
    uint64_t *const values = begin({FUNCTIONS.index("init")}, 0, handle, NULL);
    (void)values;
{_store(len(init))}
    end();
    return handle;
}}

EXPORT int __dace_exit_{name}(void *handle)
{{
    (void)begin({FUNCTIONS.index("exit")}, 0, handle, NULL);
    end();
    const int status = end_sdfg(handle);
    return record_behaviour.exit_status != 0 ? record_behaviour.exit_status : status;
}}

EXPORT void __program_{name}({_parameters(("void *handle",), signature.arguments)})
{{
    run();
    run_sdfg(handle);
    uint64_t *const values = begin({FUNCTIONS.index("program")}, 0, handle, NULL);
    (void)values;
{_store(len(signature.arguments))}
    end();
    --record_behaviour.running;
}}
"""
    ]
    for i, workspace in enumerate(signature.workspaces):
        functions.append(
            f"""\
EXPORT size_t __dace_get_external_memory_size_{workspace.storage}({_parameters(("void *handle",), init)})
{{
    uint64_t *const values = begin({FUNCTIONS.index("workspace_bytes")}, {i}, handle, NULL);
    (void)values;
{_store(len(init))}
    end();
    return record_behaviour.workspace_bytes;
}}

EXPORT void __dace_set_external_memory_{workspace.storage}({_parameters(("void *handle", "char *memory"), init)})
{{
    uint64_t *const values = begin({FUNCTIONS.index("workspace_install")}, {i}, handle, memory);
    (void)values;
{_store(len(init))}
    end();
}}
"""
        )
    width = f"#define VALUES {max(1, len(signature.arguments))}"
    return "\n".join(("/* Records what an SDFG receives; generated by tests. */", width, _RECORDING_HEAD, *functions))
