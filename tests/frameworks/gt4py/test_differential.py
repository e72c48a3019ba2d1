"""Slot by slot: a stub calls an SDFG with what gt4py's own argument update makes of the same arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import dace
import numpy as np
import pytest
from gt4py._core.definitions import DeviceType
from gt4py.next import common
from gt4py.next.program_processors.runners.dace.workflow.backend import make_dace_backend

from gtstub.entries.toolchain.compiler import Toolchain
from tests.support.gt4py_programs import CASES, Case, Lowering, lower
from tests.support.lowered_stubs import bind_to_recorder

METRICS = {"gt_compute_time", "gt_metrics_level"}
"""What gt4py's update leaves alone: it sets them once, before the first call."""


def make_update(lowering: Lowering) -> Callable[[tuple[Any, ...]], dict[str, Any]]:
    """A function that returns the argument list of the SDFG, as gt4py's generated `update_sdfg_args` fills it in."""
    extension = make_dace_backend(gpu=False).executor.bindings(lowering.source)
    namespace: dict[str, Any] = {}
    exec(extension.binding_source.source_code, namespace)
    arguments = dace.SDFG.from_json(cast(Any, lowering.source.source_code)).arglist()

    def update(args: tuple[Any, ...]) -> dict[str, Any]:
        """Pointers are integers."""
        untouched = [
            ctypes.c_void_p() if isinstance(argument, dace.data.Array) else argument.dtype.as_ctypes()()
            for argument in arguments.values()
        ]
        pointers = {id(slot) for slot in untouched if isinstance(slot, ctypes.c_void_p)}
        slots = list(untouched)
        descriptors = list(arguments.values())
        namespace["update_sdfg_args"](DeviceType.CPU, descriptors, args, slots, lowering.offset_provider)
        values = {}
        for name, slot, before in zip(arguments, slots, untouched, strict=True):
            if name not in METRICS:
                assert slot is not before or (id(slot) in pointers and slot.value), f"gt4py did not fill '{name}'"
                values[name] = slot.value
        return values

    return update


def copy_with_other_layout(value: Any, case: Case) -> Any:
    """The same values in new objects; axes in the opposite order in memory where the program does not fix that."""
    if isinstance(value, tuple):
        return tuple(copy_with_other_layout(element, case) for element in value)
    if not isinstance(value, common.Field):
        return value
    keep = case.has_unit_stride or value.ndarray.flags.f_contiguous
    return common._field(np.array(value.ndarray, order="F" if keep else "C"), domain=value.domain)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_stub_equals_gt4py(case: Case, tmp_path: Path, toolchain: Toolchain) -> None:
    lowering = lower(case)
    program, recorder = bind_to_recorder(lowering, tmp_path, toolchain)
    update = make_update(lowering)
    other = tuple(copy_with_other_layout(value, case) for value in lowering.args)
    for args in (lowering.args, other, lowering.args):
        program(*args, offset_provider=lowering.offset_provider)
        found = dict(recorder.calls()[-1])
        found_metrics = {name: found.pop(name) for name in METRICS & found.keys()}
        assert found == update(args)
        if found_metrics:
            assert found_metrics["gt_metrics_level"] == 0
            assert found_metrics["gt_compute_time"] != 0
    assert len(recorder.calls()) == 3
