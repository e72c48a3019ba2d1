"""
A program with every kind of argument, bound to a library that records what it receives; and fields to call it with,
which are not gt4py's own but look like them.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.model import Axis, ProgramSignature, SdfgSignature, Workspace
from tests.support.checkout import ROOT
from tests.support.sdfg_libraries import Recorder, build_recording_library
from tests.support.signatures import EDGE, NEIGHBORS, K, array, field, program, scalar, sdfg, symbol, tuple_of
from tests.support.stubs import build_stub

EDGES, LEVELS = 5, 3

PROGRAM = program(
    "host",
    NEIGHBORS,
    vn=field(EDGE, K),
    out=field(EDGE, K),
    x=tuple_of(field(K, dtype="float32"), tuple_of(scalar("int32"), field(dtype="float64"))),
    n=scalar("int32"),
    flag=scalar("bool"),
)

SDFG = sdfg(
    array("gt_compute_time", Axis(size=1, stride=1), access="write"),
    array("gt_conn_E2V", Axis(), Axis(size=2), dtype="int32"),
    array("out", Axis(), Axis(), access="write"),
    array("vn", Axis(), Axis()),
    array("x_0", Axis(), dtype="float32"),
    symbol("__gt_conn_E2V_source_stride", ("gt_conn_E2V", 0, "stride")),
    symbol("__vn_Edge_range_0", ("vn", 0, "start")),
    symbol("__vn_Edge_range_1", ("vn", 0, "stop")),
    symbol("__vn_Edge_stride", ("vn", 0, "stride")),
    symbol("__vn_K_stride", ("vn", 1, "stride")),
    symbol("__x_0_K_stride", ("x_0", 0, "stride")),
    symbol("flag", dtype="bool"),
    symbol("gt_metrics_level"),
    symbol("n"),
    symbol("x_1_0"),
    symbol("x_1_1", dtype="float64"),
    name="host",
    workspaces=(Workspace("CPU_Heap", "cpu"),),
)


class Bound:
    """A program and what reads back the argument lists that its SDFG was called with."""

    def __init__(
        self,
        folder: Path,
        toolchain: Toolchain,
        sdfg: SdfgSignature = SDFG,
        program: ProgramSignature = PROGRAM,
        compiler: Sequence[str] = (),
    ) -> None:
        self.library = build_recording_library(sdfg, folder, compiler)
        self.stub = build_stub(sdfg, program, folder, toolchain)
        self.recorder = Recorder(self.library)
        self.program = self.load()

    def load(self) -> _host.Program:
        return _host.load(self.stub, self.library)

    def last(self) -> dict[str, bool | int | float]:
        return self.recorder.calls()[-1]


# --- Fields that look like gt4py's ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Dimension:
    value: str


@dataclasses.dataclass(frozen=True)
class Range:
    start: object
    stop: object


@dataclasses.dataclass(frozen=True)
class Domain:
    dims: tuple[Dimension, ...]
    ranges: tuple[Range, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Field:
    _domain: object
    _ndarray: object


def domain(ranges: Mapping[str, tuple[object, object]]) -> Domain:
    return Domain(tuple(map(Dimension, ranges)), tuple(Range(*bounds) for bounds in ranges.values()))


EK = domain({"Edge": (0, EDGES), "K": (0, LEVELS)})


def edge_field(ndarray: object = None, on: object = EK) -> Field:
    return Field(on, np.zeros((EDGES, LEVELS)) if ndarray is None else ndarray)


def good_arguments() -> dict[str, Any]:
    """Arguments by name, new objects each time."""
    return {
        "vn": edge_field(),
        "out": edge_field(),
        "x": (np.zeros(LEVELS, np.float32), (3, np.array(2.5))),
        "n": 7,
        "flag": True,
        "offset_provider": {"E2V": np.zeros((EDGES, 2), np.int32)},
    }


class PublicField:
    """A field that makes its array when it is asked for it."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self.domain = EK

    @property
    def ndarray(self) -> Any:
        return self._memory[:]


class DLPack:
    """An array of another library. Older ones do not know the keyword."""

    def __init__(self, memory: Any, *, versioned: bool) -> None:
        self._memory = memory
        if versioned:
            self.__dlpack__ = memory.__dlpack__
        else:
            self.__dlpack__ = lambda: memory.__dlpack__()


# --- Checks -----------------------------------------------------------------------------------------------------------


def call(bound: Bound, program: _host.Program | None = None, **changed: Any) -> dict[str, Any]:
    """A good call but for `changed`; returns what the SDFG got, and leaves that alone on record."""
    bound.recorder.clear()
    (program or bound.program)(**{**good_arguments(), **changed})
    return bound.last()


def address(ndarray: Any) -> int:
    return int(ndarray.__array_interface__["data"][0])


def says(error: BaseException, message: str) -> bool:
    """Of a message that begins with '...', only the end is compared."""
    end = message.removeprefix("...")
    return str(error).endswith(end) if end != message else str(error) == message


def check_refused(bound: Bound, error: type[Exception], message: str, **changed: Any) -> None:
    """
    A call that differs from a good one in `changed` is refused, nothing is called, and the good one works again. Of a
    message that begins with '...', only the end is compared: another test has the whole.
    """
    good = good_arguments()
    bound.program(**good)
    calls = len(bound.recorder.calls())
    with pytest.raises(error) as caught:
        bound.program(**{**good, **changed})
    assert says(caught.value, message)
    assert type(caught.value) is error
    assert len(bound.recorder.calls()) == calls
    bound.program(**good)
    assert len(bound.recorder.calls()) == calls + 1


def run_script(
    text: str, *arguments: object, environment: Iterable[tuple[str, str]] = (), complains: bool = False
) -> str:
    """What a Python process prints that runs `text`. It must end well and, unless it `complains`, write no error."""
    paths = [str(ROOT), str(Path(gtstub.__file__).parent.parent)]
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", text, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **dict(environment)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert complains or done.stderr == ""
    return done.stdout
