"""Calls of a random DaCe program: its arguments, and what its library must have got from them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.random_dace_programs import LOG, SYMBOLS, RandomDaceProgram, evaluated
from tests.support.recorded_dace import opaque, recorded

# What callbacks were called with, and what they return. DaCe would take variables of a function for data.
SEEN: list[tuple[str, tuple[Any, ...]]] = []
RETURNED: dict[str, Any] = {}


@opaque
def call_0(*values: Any) -> Any:
    SEEN.append(("call_0", values))
    return RETURNED.get("call_0")


@opaque
def call_1(*values: Any) -> Any:
    SEEN.append(("call_1", values))
    return RETURNED.get("call_1")


class Calls:
    """Calls of one program."""

    def __init__(self, example: RandomDaceProgram, folder: Path) -> None:
        self.example = example
        SEEN.clear()
        RETURNED.clear()
        tables = {each.name: each.make({}) for each in example.globals_}
        self.program = recorded(example, folder, {**tables, "call_0": call_0, "call_1": call_1})
        self.tables = tables
        self.arrays = {each.name: each.make(example.symbols) for each in example.present}
        self.log = np.zeros(LOG)
        self.scalars = {
            name: np.dtype(dtype).type(value) for name, dtype, value in example.scalars if name not in example.left_out
        }
        self.symbols = {name: example.symbols[name] for name in example.passed}
        for callback in example.callbacks:
            if callback.result is not None:
                dtype, shape = callback.result
                sizes = [evaluated(text, example.symbols) for text in shape]
                RETURNED[callback.name] = (
                    np.arange(np.prod(sizes), dtype=dtype).reshape(sizes) if shape else np.dtype(dtype).type(3)
                )

    @property
    def arguments(self) -> dict[str, Any]:
        return {"log": self.log, **self.arrays, **self.scalars, **self.symbols}

    def call(self, **changed: Any) -> Any:
        """Calls the program; those that are changed to `LEFT_OUT` are not passed."""
        given_ = {name: value for name, value in {**self.arguments, **changed}.items() if value is not LEFT_OUT}
        args: list[Any] = []
        for name in self.example.positional:
            if name not in given_:
                break
            args.append(given_.pop(name))
        return self.program(*args, **given_)

    def check_slots(self, results: Any = None, symbols: Mapping[str, int] | None = None, **changed: Any) -> None:
        """The last call has passed what it must."""
        expected = {name: address(array) for name, array in {**self.arrays, "log": self.log, **changed}.items()}
        expected |= {f"__g_{name}": address(array) for name, array in self.tables.items()}
        made = [] if results is None else list(results) if isinstance(results, tuple) else [results]
        expected |= {
            f"__return_{number}" if len(made) > 1 else "__return": address(array) for number, array in enumerate(made)
        }
        expected |= {name: value.item() for name, value in self.scalars.items()}
        expected |= self.example.symbols if symbols is None else symbols
        names = {each.name for each in self.example.callbacks}
        found = {name: value for name, value in self.program.recorder.calls()[-1].items() if name not in names}
        assert found == {name: expected[name] for name in found}
        arrays = {name for name, value in expected.items() if name not in self.scalars and name not in SYMBOLS}
        assert found.keys() >= arrays | self.scalars.keys() | set(self.example.logged)

    def check_results(self, results: Any) -> None:
        made = results if isinstance(results, tuple) else () if results is None else (results,)
        assert len(made) == len(self.example.results)
        for array, each in zip(made, self.example.results, strict=True):
            assert array.shape == tuple(evaluated(text, self.example.symbols) for text in each.sizes)
            assert (array.dtype, array.flags.c_contiguous) == (each.dtype, True)

    def check_callbacks(self) -> None:
        """Each callback got the arguments of the call, and the SDFG its result."""
        assert [name for name, _ in SEEN] == [each.name for each in self.example.callbacks]
        for number, ((_, values), callback) in enumerate(zip(SEEN, self.example.callbacks, strict=True)):
            for value, name in zip(values, callback.arguments, strict=True):
                if name in self.arrays:
                    assert value is self.arrays[name]
                else:
                    assert value == self.scalars[name].item()
            if callback.result is not None:
                result = np.asarray(RETURNED[callback.name])
                assert self.program.memory(number)[: result.nbytes] == result.tobytes()
        SEEN.clear()


LEFT_OUT = object()


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def check_refused(
    calls: Calls, *texts: str, kinds: tuple[type[Exception], ...] = (TypeError, ValueError), **changed: Any
) -> str:
    """A call that differs from the right one in `changed` is refused, calls nothing, and leaves no references."""
    before = calls.program.calls
    message = None
    with leaves_no_references(*calls.arrays.values(), calls.log, *changed.values()):
        try:
            calls.call(**changed)
        except kinds as error:
            message = str(error)
    assert message is not None, list(changed)
    for text in ("'prog'", *texts):
        assert text in message, message
    assert calls.program.calls == before
    assert not SEEN
    return message


@contextmanager
def leaves_no_references(*objects: Any) -> Iterator[None]:
    """
    Nothing inside keeps or drops a reference to an array or a list of `objects`.

    The collector is off inside: it could free another test's objects, which also refer to these arrays.
    """
    counted = [each for each in objects if isinstance(each, np.ndarray | list)]
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        before = [sys.getrefcount(each) for each in counted]
        yield
        assert [sys.getrefcount(each) for each in counted] == before
    finally:
        if is_enabled:
            gc.enable()
