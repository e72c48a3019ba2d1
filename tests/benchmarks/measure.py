"""
Measures all callables of one interpreter side by side, in rounds: what else the machine does hits them alike.

    python [-O] -m tests.benchmarks.measure FOLDER    FOLDER is what prepare.py and run.py filled; prints JSON:
        calls    name -> nanoseconds per call, one number for each round
        loads    name -> milliseconds
        skipped  name -> why
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import gc
import importlib.util
import itertools
import json
import pickle
import sys
import threading
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from icon4py.model.atmosphere.diffusion.stencils.apply_diffusion_to_vn import apply_diffusion_to_vn

from gtstub._host import Step
from gtstub.entries.cache.entry import Entry
from gtstub.frameworks.gt4py.backend import make_backend
from gtstub.frameworks.gt4py.internals import make_dace_backend
from tests.benchmarks import callables, fields
from tests.benchmarks.c_host import STEP
from tests.benchmarks.callables import STATIC, UNBOUND

ROUNDS = 75
ROUND_SECONDS = 0.002
WARMING_CALLS, NEW_CALLS = 4, 8
"""Calls in a round where every call has fields that nobody has seen before: untimed, then timed."""

KEYWORDS = ("offset_provider",)

Timer = Callable[[], float]
"""Runs one round; returns nanoseconds per call."""


def load_module(name: str, path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.timers: dict[str, Timer] = {}
        self.loads: dict[str, float] = {}
        self.skipped: dict[str, str] = {}
        self.caller = load_module("caller", folder / "caller.so")
        self.fields = fields.Fields()
        self.provider = fields.offset_provider()
        self.scalars = tuple(fields.SCALARS.values())

    def call(self, *, own_domains: bool = False) -> tuple[Any, ...]:
        """The arguments of a call, all fields being new objects."""
        return (*self.fields.make(own_domains=own_domains), *self.scalars, self.provider)

    def add(self, name: str, callable_: Any, calls: Sequence[tuple[Any, ...]], keywords: tuple[str, ...] = ()) -> None:
        """Calls with the same objects, or with those of several calls in turn."""
        self.add_counted(name, lambda count: self.caller.repeat(callable_, list(calls), keywords, count))

    def add_counted(self, name: str, run: Callable[[int], float]) -> None:
        """`run` makes so many calls and returns the seconds they took."""
        run(20)
        count = max(20, int(ROUND_SECONDS * 200 / run(200)))
        self.timers[name] = lambda: run(count) / count * 1e9

    def add_new(self, name: str, callable_: Any, *, own_domains: bool = False) -> None:
        """Calls whose fields were all made before the round, and have never been seen."""

        def run() -> float:
            calls = [self.call(own_domains=own_domains) for _ in range(WARMING_CALLS + NEW_CALLS)]
            self.caller.repeat(callable_, calls[:WARMING_CALLS], KEYWORDS, WARMING_CALLS)
            return float(self.caller.repeat(callable_, calls[WARMING_CALLS:], KEYWORDS, NEW_CALLS)) / NEW_CALLS * 1e9

        run()
        self.timers[name] = run

    def repeat_beside_thread(self, callable_: Any, call: tuple[Any, ...], count: int) -> float:
        """Calls while another Python thread exists, which waits for something else than the GIL."""
        end = threading.Event()
        thread = threading.Thread(target=end.wait)
        thread.start()
        seconds = float(self.caller.repeat(callable_, [call], KEYWORDS, count))
        end.set()
        thread.join()
        return seconds

    def load(self, name: str, load: Callable[[], Any]) -> Any:
        begin = time.perf_counter()
        loaded = load()
        self.loads[name] = (time.perf_counter() - begin) * 1e3
        return loaded

    # --- The peers ----------------------------------------------------------------------------------------------------

    def add_gtstub(self) -> None:
        program = make_backend(gpu=False).load_artifact(Entry(self.folder / "entry"))
        same = self.call()
        self.add("empty", self.caller.empty, [same], KEYWORDS)
        self.add("gtstub same", program, [same], KEYWORDS)
        self.add("gtstub two levels", program, [self.call(), self.call()], KEYWORDS)
        numpy_scalars = (*self.fields.make(), *fields.numpy_scalars(), self.provider)
        self.add("gtstub numpy scalars", program, [numpy_scalars], KEYWORDS)
        self.add_counted("gtstub one more thread", lambda count: self.repeat_beside_thread(program, same, count))
        bound = program.bind(*same[:-1], offset_provider=self.provider)
        step = Step([bound] * STEP)
        self.add("bound empty call", self.caller.empty, [()])
        self.add("bound from Python", bound, [()])
        self.add_counted("step from Python", lambda count: self.caller.repeat(step, [()], (), -(-count // STEP)))
        self.add_new("gtstub new", program)
        self.add_new("gtstub new, own domains", program, own_domains=True)

    def add_compiled(self) -> None:
        """What compile() returns; and what icon4py makes of gt4py's program, which is a functools.partial."""
        arguments = dict(zip((*fields.FIELDS, *fields.SCALARS), self.call(), strict=False))
        entry = Entry(self.folder / "entry")

        def bound_but(names: Sequence[str]) -> dict[str, Any]:
            return {name: value for name, value in arguments.items() if name not in names}

        def add(name: str, program: Any, keywords: tuple[str, ...]) -> None:
            values = tuple(
                self.provider if keyword == "offset_provider" else arguments[keyword] for keyword in keywords
            )
            self.add(name, program, [values], keywords)
            self.add(f"{name} empty", self.caller.empty, [values], keywords)

        add("bound", callables.compiled([entry], bound_but(UNBOUND), self.provider), UNBOUND)
        nothing_bound = callables.compiled([entry], {}, self.provider)
        add("keywords", nothing_bound, tuple(arguments))
        add("keywords and provider", nothing_bound, (*arguments, "offset_provider"))
        variants = [Entry(self.folder / f"variant-{i}") for i in range(8)]
        unbound = (*UNBOUND, *STATIC)
        add("one variant", callables.compiled(variants[:1], bound_but(unbound), self.provider), unbound)
        add("eight variants", callables.compiled(variants, bound_but(unbound), self.provider), unbound)

        artifact = pickle.loads((self.folder / "dace.pickle").read_bytes())
        backend = dataclasses.replace(make_dace_backend(gpu=False), executor=lambda _: artifact)
        program = apply_diffusion_to_vn.with_backend(backend).with_compilation_options(enable_jit=False)
        program.compile(offset_provider=self.provider)
        partial = functools.partial(program, **bound_but(UNBOUND), offset_provider=self.provider)
        self.add("gt4py bound", partial, [tuple(arguments[name] for name in UNBOUND)], UNBOUND)

    def add_c(self) -> None:
        entry = self.folder / "entry"
        manifest = Entry(entry).manifest()
        library = ctypes.CDLL(str(entry / manifest.library))
        program = getattr(library, f"__program_{manifest.name}")
        handle = ctypes.create_string_buffer(1)
        host = ctypes.CDLL(str(self.folder / "c_host.so"))
        host.time_bare.restype = host.time_stub.restype = host.time_turns.restype = ctypes.c_double
        host.time_bare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long)
        host.time_stub.argtypes = host.time_turns.argtypes = (ctypes.c_void_p, ctypes.c_long)
        host.open_program.restype = ctypes.c_void_p
        address = ctypes.cast(program, ctypes.c_void_p)
        opened = host.open_program(bytes(entry))
        assert host.time_stub(opened, 1) >= 0
        assert host.time_turns(opened, 2) >= 0
        self.add_counted("bare C", lambda count: host.time_bare(address, handle, count))
        self.add_counted("gtstub from C", lambda count: host.time_stub(opened, count))
        self.add_counted("gtstub from C, in turn", lambda count: host.time_turns(opened, count))
        host.make_steps.argtypes = (ctypes.c_void_p,)
        if host.make_steps(opened) != 0:
            raise RuntimeError("The steps of the C host cannot be made.")
        for name, function in (("bound from C", host.time_bound), ("step from C", host.time_step)):
            function.restype = ctypes.c_double
            function.argtypes = (ctypes.c_long,)
            self.add_counted(name, function)

    def add_fortran(self) -> None:
        path = self.folder / "fortran" / "fortran_host.so"
        if not path.exists():
            self.skipped["gtstub from Fortran"] = "gfortran is not installed"
            return
        host = ctypes.CDLL(str(path))
        entry = bytes(self.folder / "entry")
        host.open_program(entry, len(entry))
        for name, function in (
            ("gtstub from Fortran", host.time_whole),
            ("gtstub from Fortran, sections", host.time_sections),
            ("gtstub from Fortran, in turn", host.time_turns),
            ("bound from Fortran", host.time_bound),
            ("step from Fortran", host.time_step),
        ):
            function.restype = ctypes.c_double
            function.argtypes = (ctypes.c_long,)
            assert function(1) >= 0
            self.add_counted(name, function)

    def add_gt4py_dace(self) -> None:
        artifact = pickle.loads((self.folder / "dace.pickle").read_bytes())
        program = self.load("gt4py dace", artifact.load)
        same = self.call()
        self.caller.repeat(program, [same], KEYWORDS, 1)  # The first call makes the argument vectors.
        self.add("dace same", program, [same], KEYWORDS)
        self.add_new("dace new", program)
        fun = program._fun
        self.add("dace update", program._update_sdfg_call_args, [(same[:-1], fun.csdfg_argv, self.provider)])
        self.add("dace fast_call", fun.fast_call, [()])

    def add_gt4py_gtfn(self) -> None:
        if not (self.folder / "gtfn.pickle").exists():
            self.skipped["gtfn same"] = "gt4py could not build it in time"
            return
        program = self.load("gt4py gtfn", pickle.loads((self.folder / "gtfn.pickle").read_bytes()).load)
        self.add("gtfn same", program, [self.call()], KEYWORDS)

    def add_bindings(self) -> None:
        arrays = [field.ndarray for field in self.fields.make()]
        table = self.provider["E2C2V"].ndarray
        if (self.folder / "peer_nanobind.so").exists():
            nanobind = load_module("peer_nanobind", self.folder / "peer_nanobind.so")
            self.add("nanobind", nanobind.call, [(*arrays, *self.scalars, table)])
        else:
            self.skipped["nanobind"] = "it could not be built"
        if (self.folder / "peer_tvm_ffi.so").exists():
            import tvm_ffi

            function = tvm_ffi.load_module(str(self.folder / "peer_tvm_ffi.so")).call
            tensors = [tvm_ffi.from_dlpack(array) for array in (*arrays, table)]
            self.add("tvm-ffi numpy", function, [(*arrays, *self.scalars, table)])
            self.add("tvm-ffi tensors", function, [(*tensors[:-1], *self.scalars, tensors[-1])])
        else:
            self.skipped["tvm-ffi numpy"] = "it could not be built"

    def measure(self) -> dict[str, list[float]]:
        calls: dict[str, list[float]] = {name: [] for name in self.timers}
        gc.collect()
        gc.freeze()
        gc.disable()
        for _, (name, timer) in itertools.product(range(ROUNDS), self.timers.items()):
            calls[name].append(timer())
        return calls


def main(folder: Path) -> None:
    bench = Bench(folder)
    bench.add_gtstub()
    bench.add_compiled()
    bench.add_c()
    bench.add_fortran()
    bench.add_gt4py_dace()
    bench.add_gt4py_gtfn()
    bench.add_bindings()
    json.dump({"calls": bench.measure(), "loads": bench.loads, "skipped": bench.skipped}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
