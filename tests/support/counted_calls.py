"""
Calls of SDFG libraries in a process that logs what they allocate.

The process itself is this file, run with the preloaded library: it makes one call with arrays of zeros.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gtstub.stub.signature.model import ArrayArgument, ScalarArgument, SdfgSignature

SOURCE = Path(__file__).parent.parent / "frameworks" / "dace" / "allocations.c"

Event = tuple[int, int, str]
"""The address, the bytes (0 if it was freed), and the name of the library that has asked."""


@dataclasses.dataclass(frozen=True)
class Log:
    """What the C++ of an SDFG has allocated and freed; not what Python and OpenMP have."""

    events: tuple[Event, ...]

    @property
    def sizes(self) -> list[int]:
        """In bytes, the smallest first."""
        return sorted(size for _, size, _ in self.events if size)

    @property
    def peak(self) -> int:
        """The most bytes at one time."""
        live: dict[int, int] = {}
        peak = 0
        for address, size, _ in self.events:
            live[address] = size
            peak = max(peak, sum(live.values()))
        return peak

    @property
    def left(self) -> int:
        """The bytes that were not freed."""
        live: dict[int, int] = {}
        for address, size, _ in self.events:
            live[address] = size
        return sum(live.values())


@dataclasses.dataclass(frozen=True)
class Counted:
    """The logs of the initialisation and of a call, and the bytes of each workspace that the library asks for."""

    init: Log
    call: Log
    workspaces: Mapping[str, int]


def count(
    library: Path, signature: SdfgSignature, values: Mapping[str, float], sizes: Mapping[str, int], folder: Path
) -> Counted:
    """
    One call in a process with one OpenMP thread. `values` are those of scalars, `sizes` the bytes of arrays; arrays
    that are not named have a page.
    """
    arguments = [_argument(each, values, sizes) for each in signature.arguments]
    names = [each.name for each in signature.arguments]
    task = {
        "library": str(library),
        "name": signature.name,
        "init": [arguments[names.index(name)] for name in signature.init],
        "arguments": arguments,
        "workspaces": [each.storage for each in signature.workspaces],
    }
    preloaded = folder / "allocations.so"
    subprocess.run(["gcc", "-std=c11", "-O1", "-shared", "-fPIC", "-o", preloaded, SOURCE, "-ldl"], check=True)
    environment = os.environ | {"LD_PRELOAD": str(preloaded), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-P", __file__, json.dumps(task)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return Counted(_log(found["init"]), _log(found["call"]), found["workspaces"])


def _argument(argument: Any, values: Mapping[str, float], sizes: Mapping[str, int]) -> tuple[str, float]:
    if isinstance(argument, ArrayArgument):
        return "array", sizes.get(argument.name, 4096)
    assert isinstance(argument, ScalarArgument)
    return _TYPES[argument.dtype], values[argument.name]


_TYPES = {
    "bool": "c_bool",
    "int32": "c_int32",
    "int64": "c_int64",
    "float32": "c_float",
    "float64": "c_double",
}

_OF_CPLUSPLUS = ("libstdc++", "libc++")


def _log(events: Sequence[Event]) -> Log:
    """The events of an SDFG: it allocates with 'new', which is in the C++ library, and frees what it has allocated."""
    live: set[int] = set()
    found: list[Event] = []
    for event in events:
        address, size, library = event
        if size and library.startswith(_OF_CPLUSPLUS):
            live.add(address)
        elif size or address not in live:
            continue
        else:
            live.remove(address)
        found.append(event)
    return Log(tuple(found))


# --- The process ------------------------------------------------------------------------------------------------------


class _Event(ctypes.Structure):
    _fields_ = (("memory", ctypes.c_void_p), ("size", ctypes.c_size_t), ("caller", ctypes.c_void_p))


def _logged(function: Any, *arguments: Any) -> tuple[Any, list[Event]]:
    counter = ctypes.CDLL(None)
    counter.allocation_library.restype = ctypes.c_char_p
    counter.allocation_library.argtypes = [ctypes.c_void_p]
    counter.allocation_log_begin()
    result = function(*arguments)
    counter.allocation_log_end()
    number = ctypes.c_size_t.in_dll(counter, "allocation_count").value
    events = (_Event * number).in_dll(counter, "allocation_events")
    return result, [
        (each.memory, each.size, Path(os.fsdecode(counter.allocation_library(each.caller))).name) for each in events
    ]


def _main(task: Mapping[str, Any]) -> None:
    library, name = ctypes.CDLL(task["library"]), task["name"]
    buffers: list[Any] = []

    def value(kind: str, given: float) -> Any:
        if kind != "array":
            return getattr(ctypes, kind)(given)
        buffers.append(ctypes.create_string_buffer(given + 64))
        return ctypes.c_void_p(_aligned(buffers[-1]))

    init_arguments = [value(*each) for each in task["init"]]
    init = library[f"__dace_init_{name}"]
    init.restype = ctypes.c_void_p
    handle, in_init = _logged(init, *init_arguments)
    workspaces = {}
    for storage in task["workspaces"]:
        size = library[f"__dace_get_external_memory_size_{storage}"]
        size.restype = ctypes.c_size_t
        workspaces[storage] = size(ctypes.c_void_p(handle), *init_arguments)
        memory = value("array", workspaces[storage])
        library[f"__dace_set_external_memory_{storage}"](ctypes.c_void_p(handle), memory, *init_arguments)
    arguments = [value(*each) for each in task["arguments"]]
    _, in_call = _logged(library[f"__program_{name}"], ctypes.c_void_p(handle), *arguments)
    print(json.dumps({"init": in_init, "call": in_call, "workspaces": workspaces}))


def _aligned(buffer: Any) -> int:
    address = ctypes.addressof(buffer)
    return address + -address % 64


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
