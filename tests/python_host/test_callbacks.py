"""What functions of Python get from an SDFG, and what the SDFG gets from them."""

from __future__ import annotations

import math
import re
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.dtypes import DType
from tests.support.calling_programs import CALLING, DTYPES, EVERY_DTYPE, PARALLEL, SERIAL, Built, call
from tests.support.hosting import domain

pytestmark = pytest.mark.sanitizer


@pytest.fixture(scope="module")
def calling(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Built:
    return CALLING.build(tmp_path_factory.mktemp("calling"), toolchain)


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> _host.Program:
    return SERIAL.build(tmp_path_factory.mktemp("serial"), toolchain).load()


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> _host.Program:
    return PARALLEL.build(tmp_path_factory.mktemp("parallel"), toolchain).load()


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> _host.Program:
    return EVERY_DTYPE.build(tmp_path_factory.mktemp("every"), toolchain).load()


# --- Scalars ----------------------------------------------------------------------------------------------------------


def limits(dtype: DType) -> list[Any]:
    if dtype == "bool":
        return [False, True, True]
    if dtype.startswith("float"):
        return [np.finfo(dtype).max, -0.1, math.inf]
    if dtype.startswith("complex"):
        return [complex(np.finfo(dtype).max, -0.0), 0.1 - 0.2j, complex(-math.inf, 1)]
    return [np.iinfo(dtype).min, np.iinfo(dtype).max, 1]


def call_every(every: _host.Program, **functions: Callable[..., Any]) -> dict[str, Any]:
    """Calls a function for each dtype, by default one that returns its argument; returns the arrays of results."""
    arrays = {f"in_{dtype}": np.array(limits(dtype), dtype) for dtype in DTYPES}
    out = {f"out_{dtype}": np.zeros(3, dtype) for dtype in DTYPES}
    defaults = {f"f_{dtype}": lambda value: value for dtype in DTYPES}
    every(**arrays, **out, **{**defaults, **functions})
    return out


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars_of_every_dtype(every: _host.Program, dtype: DType) -> None:
    got: list[Any] = []
    found = call_every(every, **{f"f_{dtype}": lambda value: got.append(value) or value})[f"out_{dtype}"]
    expected = np.array(limits(dtype), dtype)
    kind = type(np.dtype(dtype).type(0).item())
    assert [type(value) for value in got] == [kind] * 3
    assert got == expected.tolist()
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_may_be_numpy_scalars(every: _host.Program, dtype: DType) -> None:
    made = np.dtype(dtype).type
    found = call_every(every, **{f"f_{dtype}": lambda value: made(value)})[f"out_{dtype}"]
    assert found.tobytes() == np.array(limits(dtype), dtype).tobytes()


@pytest.mark.parametrize(
    ("dtype", "result", "problem"),
    [
        ("int8", 128, "has returned 128, which does not fit 'int8'"),
        ("uint64", -1, "has returned -1, which does not fit 'uint64'"),
        ("float32", 1e300, "has returned 1e+300, which does not fit 'float32'"),
        ("float64", None, "must return a scalar of 'float64', not 'NoneType'"),
        ("float64", "1", "must return a scalar of 'float64', not 'str'"),
        ("float32", np.zeros(2), "must return a scalar of 'float32', not 'numpy.ndarray'"),
        ("int32", 1.5, "must return a scalar of 'int32', not 'float'"),
        ("complex64", 1e300j, "has returned 1e+300j, which does not fit 'complex64'"),
        ("complex128", "1j", "must return a scalar of 'complex128', not 'str'"),
        ("float64", 1j, "must return a scalar of 'float64', not 'complex'"),
        ("bool", 2, "has returned 2, which does not fit 'bool'"),
        ("int64", (1,), "must return a scalar of 'int64', not 'tuple'"),
    ],
)
def test_results_of_a_wrong_type(every: _host.Program, dtype: DType, result: object, problem: str) -> None:
    error = ValueError if problem.startswith("has") else TypeError
    with pytest.raises(error, match=f"^{re.escape(f"Callback 'f_{dtype}' of program 'every' {problem}.")}$"):
        call_every(every, **{f"f_{dtype}": lambda _: result})
    call_every(every)


# --- Arrays -----------------------------------------------------------------------------------------------------------


class Slotted:
    """A field that has no weak references."""

    __slots__ = ("_domain", "_ndarray")

    def __init__(self, memory: Any) -> None:
        self._domain = domain({"K": (0, len(memory))})
        self._ndarray = memory


class Subclass(np.ndarray):
    pass


def of_kind(kind: str) -> Any:
    match kind:
        case "numpy":
            return np.arange(4.0)
        case "strided":
            return np.arange(8.0)[::2]
        case "reversed":
            return np.arange(4.0)[::-1]
        case "empty":
            return np.zeros(0)
        case "one":
            return np.zeros(1)
        case "read-only":
            array = np.arange(4.0)
            array.flags.writeable = False
            return array
        case "subclass":
            return np.arange(4.0).view(Subclass)
        case "memoryview":
            return memoryview(np.arange(4.0))
        case _:
            return Slotted(np.arange(4.0))


KINDS = ["numpy", "strided", "reversed", "empty", "one", "read-only", "subclass", "memoryview", "slotted"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_arrives_as_the_object_that_was_passed(serial: _host.Program, kind: str) -> None:
    first, second = of_kind(kind), of_kind(kind)
    for x in (first, first, first, second, first, second, second, of_kind(kind)):
        got: list[Any] = []
        call(serial, lambda _, array: got.append(array) or 0.0, 3, x=x)  # noqa: B023
        assert [each is x for each in got] == [True] * 3


def test_an_array_of_the_same_memory_with_other_strides_is_not_taken_for_the_first(serial: _host.Program) -> None:
    memory = np.arange(8.0)
    for x in (memory[:4], memory[::2], memory[:4], memory[:3]):
        got: list[Any] = []
        call(serial, lambda _, array: got.append(array) or 0.0, 3, x=x)  # noqa: B023
        assert got[0] is x


def test_callbacks_keep_no_arguments_alive(serial: _host.Program) -> None:
    class Function:
        def __call__(self, _: int, array: Any) -> float:
            return float(array[0])

    f, x = Function(), np.zeros(4)
    dead = weakref.ref(f), weakref.ref(x)
    for _ in range(3):
        call(serial, f, 3, x=x)
    del f, x
    assert [each() for each in dead] == [None, None]


def arguments(calls: list[tuple[str, tuple[Any, ...]]], **returned: object) -> dict[str, Any]:
    """Arguments of the program `calling`, whose functions note how they were called."""
    results = {"now": 2.0, "see": None, "weigh": True, "smooth": 0.0, "split": (5, 1.0), **returned}

    def make(name: str) -> Callable[..., Any]:
        def function(*args: Any) -> Any:
            calls.append((name, args))
            result = results[name]
            return result(*args) if callable(result) else result

        return function

    return {
        "x": np.zeros(4),
        "y": np.zeros((4, 3), np.float32, order="F"),
        "a": 0.5,
        **{name: make(name) for name in results},
    }


def test_arrays_of_the_sdfg_itself(calling: Built) -> None:
    calls: list[tuple[str, tuple[Any, ...]]] = []
    given = arguments(calls, smooth=lambda memory: memory[:4] * 2)
    program = calling.load()
    for _ in range(2):
        calls.clear()
        program(**given)
        taken = dict(calls)
        assert taken["see"][0] is given["x"]
        assert taken["see"][1] is given["y"]
        (memory,) = taken["smooth"]
        assert type(memory) is np.ndarray
        assert (memory.dtype, memory.shape, memory.strides) == (np.dtype("float64"), (9,), (24,))
        assert memory.flags.writeable
        assert not memory.flags.owndata
        assert memory.tolist() == [3.0 * i for i in range(9)]
        assert given["x"].tolist() == [5.0, 6.0 + 110.0, 12.0, 18.0]


def test_several_results(calling: Built) -> None:
    given = arguments([], split=lambda a: (int(8 * a), np.arange(12).reshape(4, 3)))
    calling.load()(**given)
    assert given["x"].tolist() == [4.0, 110.0, 0.0, 0.0]
    assert given["y"].ravel(order="K").tolist() == [*range(12)]


@pytest.mark.parametrize(
    ("name", "result", "error", "message"),
    [
        (
            "smooth",
            np.zeros(3),
            ValueError,
            "Callback 'smooth' of program 'calling' must return an array of 'float64' that fits the shape (4,):"
            " could not broadcast input array from shape (3,) into shape (4,).",
        ),
        (
            "smooth",
            "text",
            ValueError,
            "Callback 'smooth' of program 'calling' must return an array of 'float64' that fits the shape (4,):"
            " could not convert string to float: 'text'.",
        ),
        (
            "smooth",
            None,
            TypeError,
            "Callback 'smooth' of program 'calling' must return an array of 'float64', not None.",
        ),
        ("split", 1, TypeError, "Callback 'split' of program 'calling' must return a tuple of 2 results."),
        ("split", [1, 2.0], TypeError, "Callback 'split' of program 'calling' must return a tuple of 2 results."),
        ("split", (1, 2, 3), TypeError, "Callback 'split' of program 'calling' must return a tuple of 2 results."),
        (
            "split",
            (1.5, 0.0),
            TypeError,
            "Callback 'split' of program 'calling' must return a scalar of 'int32', not 'float'.",
        ),
        (
            "split",
            (1, np.zeros(5)),
            ValueError,
            "Callback 'split' of program 'calling' must return an array of 'float32' that fits the shape (4, 3):"
            " could not broadcast input array from shape (5,) into shape (4,3).",
        ),
    ],
)
def test_results_that_do_not_fit(
    calling: Built, name: str, result: object, error: type[Exception], message: str
) -> None:
    program = calling.load()
    calls: list[tuple[str, tuple[Any, ...]]] = []
    with pytest.raises(error) as caught:
        program(**arguments(calls, **{name: result}))
    assert str(caught.value) == message
    assert calls[-1][0] == name
    program(**arguments(calls))


@pytest.mark.parametrize("kind", [None, 1, "now", np.zeros(1)])
def test_what_is_not_callable_is_refused(calling: Built, kind: object) -> None:
    program = calling.load()
    calls: list[tuple[str, tuple[Any, ...]]] = []
    with pytest.raises(TypeError) as caught:
        program(**{**arguments(calls), "smooth": kind})
    name = type(kind).__name__ if not isinstance(kind, np.ndarray) else "numpy.ndarray"
    assert str(caught.value) == f"Argument 'smooth' of program 'calling' must be callable, not '{name}'."
    assert calls == []


def test_a_read_only_array_is_no_result(serial: _host.Program) -> None:
    x = of_kind("read-only")

    def write(_: int, array: Any) -> float:
        array[0] = 1.0
        return 0.0

    with pytest.raises(ValueError, match=r"^assignment destination is read-only$"):
        call(serial, write, 3, x=x)
    assert x[0] == 0.0
