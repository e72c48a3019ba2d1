"""
What a callback costs: nanoseconds for each, minima of many calls, while a call keeps the GIL and while it releases it.

    python -m tests.benchmarks.callbacks_cost
"""

from __future__ import annotations

import ctypes
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gtstub.entries.toolchain import compiler
from gtstub.stub.signature.model import Axis, CallbackArgument, CallbackType
from tests.support.calling_programs import CallingProgram
from tests.support.sdfg_libraries import c_compiler
from tests.support.signatures import K, array, callback, field, number, numbers, program, scalar, sdfg, symbol

COUNT = 1000
CALLS = 300


class Model:
    def exchange(self, x: Any) -> None:
        pass


FORMS: dict[str, tuple[CallbackArgument, str, Callable[..., Any], Any, tuple[Any, ...]]] = {
    "no arguments": (callback("f"), "f();", lambda: None, ctypes.CFUNCTYPE(None), ()),
    "two scalars": (
        callback("f", number("float64"), number("int32")),
        "f(i * 0.5, i);",
        lambda a, b: None,
        ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_int32),
        (0.5, 1000),
    ),
    "returns a float": (
        callback("f", returns=(number("float64"),)),
        "x[0] = f();",
        lambda: 1.0,
        ctypes.CFUNCTYPE(ctypes.c_double),
        (),
    ),
    "an array": (
        callback("f", numbers("float64", "N")),
        "f(x);",
        lambda x: None,
        ctypes.CFUNCTYPE(None, ctypes.c_void_p),
        (np.zeros(4),),
    ),
    "a method, an array": (
        callback("f", numbers("float64", "N")),
        "f(x);",
        Model().exchange,
        ctypes.CFUNCTYPE(None, ctypes.c_void_p),
        (np.zeros(4),),
    ),
    "an array of the SDFG": (
        callback("f", numbers("float64", "N")),
        "static double own[4]; f(own);",
        lambda x: None,
        ctypes.CFUNCTYPE(None, ctypes.c_void_p),
        (np.zeros(4),),
    ),
}


def fastest(function: Callable[[], object]) -> float:
    times = []
    for _ in range(CALLS):
        begin = time.perf_counter_ns()
        function()
        times.append(time.perf_counter_ns() - begin)
    return min(times) / COUNT


def released(function: Callable[[], object]) -> float:
    """The same while another thread exists, so that calls release the GIL."""
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    try:
        return fastest(function)
    finally:
        ended.set()
        other.join()


def in_python(function: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    def loop() -> None:
        for _ in range(COUNT):
            function(*arguments)

    return fastest(loop)


def main() -> None:
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        toolchain = compiler.find(folder)
        print(f"{'':20} {'kept':>8} {'released':>8} {'ctypes':>8} {'Python':>8}")
        for number_, (name, (f, statement, function, type_, arguments)) in enumerate(FORMS.items()):
            calling = CallingProgram(
                sdfg(
                    array("x", Axis(start=0, stride=1), access="write"),
                    symbol("N", ("x", 0, "size")),
                    f,
                    symbol("n"),
                    name=f"form{number_}",
                ),
                program(f"form{number_}", x=field(K), n=scalar("int32"), f=CallbackType()),
                f"    for (int i = 0; i < n; ++i)\n    {{\n        {statement}\n    }}\n",
            )
            built = calling.build(folder, toolchain, [c_compiler(), "-O2"])
            x, host = np.zeros(4), built.load()
            call = lambda: host(x, COUNT, function)  # noqa: B023, E731
            raw = getattr(ctypes.CDLL(str(built.library)), f"__program_form{number_}")
            made = type_(function)
            data = ctypes.c_void_p(x.ctypes.data)
            through_ctypes = lambda: raw(None, data, 4, made, COUNT)  # noqa: B023, E731
            print(
                f"{name:20} {fastest(call):8.1f} {released(call):8.1f} {fastest(through_ctypes):8.1f}"
                f" {in_python(function, arguments):8.1f}"
            )


if __name__ == "__main__":
    main()
