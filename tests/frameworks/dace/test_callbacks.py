"""Programs of DaCe that call Python: each form of a callback, against DaCe's own call of the same program."""

import threading
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from gtstub.errors import SignatureError
from gtstub.frameworks.dace.callbacks import calls_in_parallel
from gtstub.frameworks.dace.sdfg_signature import sdfg_signature
from tests.support.recorded_dace import opaque

N = dace.symbol("N")

CALLS: list[tuple[Any, ...]] = []


def noted(*values: Any) -> None:
    """Arrays are noted as copies: what is in them later does not matter."""
    CALLS.append(tuple(value.copy() if isinstance(value, np.ndarray) else value for value in values))


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DaCe compiles in the current folder."""
    monkeypatch.chdir(tmp_path)
    CALLS.clear()


def both(program: Any, *arguments: Any) -> tuple[list[Any], list[Any]]:
    """What two calls of a program do through gtstub, and through DaCe: the calls of its callbacks, and the arrays."""
    found = []
    for function in (program, program.dace_program):
        CALLS.clear()
        copies = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
        for _ in range(2):
            function(*copies)
        arrays = [each.tobytes() for each in copies if isinstance(each, np.ndarray)]
        found.append([repr(CALLS), *arrays])
    assert CALLS
    return found[0], found[1]


# --- Arguments and results --------------------------------------------------------------------------------------------


@opaque
def numbers(a: float, b: int, c: bool) -> None:
    noted(a, b, c)


@opaque
def array(x: Any) -> None:
    noted(x.shape, x.strides, x)


@opaque
def third(a: float) -> float:
    return a / 3


@opaque
def sevenfold(a: int) -> int:
    return 7 * a


@opaque
def doubled(x: Any) -> Any:
    noted(x)
    return 2 * x


@opaque
def write(x: Any) -> None:
    x[...] += 1


@gtstub.program
@dace.program
def forms(x: dace.float64[N], y: dace.float64[N, 3], a: dace.float64, i: dace.int32, flag: dace.bool_):
    numbers(a, i, flag)
    array(x)
    array(y)
    array(x[1:3])
    array(y[:, 1])
    write(x)
    r: dace.float64 = third(a)
    w: dace.int64 = sevenfold(i)
    x[0] = r + w
    z: dace.float64[N] = doubled(x)
    y[:, 2] = z


def test_arguments_and_results() -> None:
    found, expected = both(forms, np.arange(5.0), np.ones((5, 3)), 2.5, 4, True)
    assert found == expected


# --- What DaCe binds --------------------------------------------------------------------------------------------------


@opaque
def two(a: Any, name: str = "", *, scale: float = 1.0, options: Any = None) -> float:
    noted(a, name, scale, options)
    return float(np.sum(a)) * scale


@opaque
def inner_callback(a: float) -> float:
    noted("inner", a)
    return a + 1


@dace.program
def inner(x: dace.float64[N]):
    r: dace.float64 = inner_callback(x[1])
    x[1] = r


SETTINGS = {"depth": 3}


@gtstub.program
@dace.program
def bound(x: dace.float64[N], a: dace.float64):
    first: dace.float64 = two(a, "named", scale=2.0)
    second: dace.float64 = two(x, options=SETTINGS)
    x[0] = first + second
    inner(x)
    print("x[0] is", a)


def test_what_dace_binds(capsys: pytest.CaptureFixture[str]) -> None:
    """Constants, keywords and objects; one function with two signatures; functions of nested programs; builtins."""
    found, expected = both(bound, np.arange(5.0), 2.5)
    assert found == expected
    printed = capsys.readouterr().out.splitlines()
    assert printed.count("x[0] is 2.5") == 4


class Model:
    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.steps = 0

    @opaque
    def exchange(self, x: Any) -> None:
        x[0] = x[-1]
        self.steps += 1

    @opaque
    def limit(self, a: float) -> float:
        return min(a, self.rate)

    @gtstub.program
    @dace.method
    def step(self, x: dace.float64[N], a: dace.float64):
        self.exchange(x)
        r: dace.float64 = self.limit(a)
        x[1] = r


def test_methods_carry_their_object() -> None:
    models = Model(1.5), Model(10.0)
    for _ in range(3):
        for model in models:
            x = np.arange(4.0)
            model.step(x, 3.0)
            assert x.tolist() == [3.0, min(3.0, model.rate), 2.0, 3.0]
    assert [model.steps for model in models] == [3, 3]
    models[0].rate = 2.0  # what only the function reads is not compiled in
    models[0].step(x, 3.0)
    assert x[1] == 2.0


# --- Maps -------------------------------------------------------------------------------------------------------------


@opaque
def squared(a: float) -> float:
    CALLS.append((threading.get_ident(),))
    if a < 0:
        raise ValueError("below 0")
    return a * a


@gtstub.program
@dace.program
def mapped(x: dace.float64[N], y: dace.float64[N]):
    for i in dace.map[0:N]:
        r: dace.float64 = squared(x[i])
        y[i] = r


def test_a_map_calls_in_threads() -> None:
    x, y = np.arange(200.0), np.zeros(200)
    for _ in range(3):
        mapped(x, y)
        assert y.tolist() == (x * x).tolist()
    x[100] = -1
    with pytest.raises(ValueError, match=r"^below 0$"):
        mapped(x, y)
    x[100] = 1
    mapped(x, y)
    assert y.tolist() == (x * x).tolist()


def test_sections_of_openmp_call_in_threads() -> None:
    sdfg = inner.to_sdfg()
    assert not calls_in_parallel(sdfg, ())
    sdfg.openmp_sections = True
    assert calls_in_parallel(sdfg, ())


# --- What cannot be carried -------------------------------------------------------------------------------------------


@opaque
def text(a: float) -> str:
    noted(a)
    return "text"


@opaque
def use(value: Any) -> None:
    noted(value)


@dace.program
def objects(x: dace.float64[N]):
    found = text(x[0])
    use(found)
    x[1] = 2


def test_objects_are_refused_by_name_or_left_to_dace() -> None:
    with pytest.raises(SignatureError) as caught:
        gtstub.program(objects)(np.zeros(3))
    name = "tests_frameworks_dace_test_callbacks_objects"
    assert str(caught.value) == f"Callback 'text' of SDFG '{name}' takes or returns a Python object."
    x = np.zeros(3)
    program = gtstub.program(objects, fallback=True)
    program(x)
    assert (x[1], program.fallback_calls) == (2.0, 1)


@opaque
def see(values: Any) -> None:
    noted(values)


@dace.program
def seen_on_the_gpu(x: dace.float64[N] @ dace.StorageType.GPU_Global):
    see(x)


def test_callbacks_of_a_gpu_are_refused_by_name() -> None:
    kernel = mapped.dace_program.to_sdfg()
    for node, _ in kernel.all_nodes_recursive():
        if isinstance(node, dace.nodes.MapEntry):
            node.map.schedule = dace.ScheduleType.GPU_Device
    for sdfg, name, reason in (
        (kernel, "squared", "is called by a kernel, which cannot call functions of the host"),
        (seen_on_the_gpu.to_sdfg(), "see", "takes an array on the GPU; copy it to the host first"),
    ):
        with pytest.raises(SignatureError, match=rf"^Callback '{name}' of SDFG '{sdfg.name}' {reason}\.$"):
            sdfg_signature(sdfg, sdfg.to_json(), has_domains=False)
