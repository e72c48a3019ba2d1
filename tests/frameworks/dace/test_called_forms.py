"""Forms of calls of DaCe programs, with Python as truth: what programs call and read; see test_call_forms.py."""

import dataclasses
from collections.abc import Callable
from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from tests.support.call_forms import SEEN, Form, Table, check_call, given
from tests.support.dace_programs import check_like_dace
from tests.support.recorded_dace import opaque

M, N = (dace.symbol(name) for name in "MN")

TABLE = Table()
form = TABLE.form


def whole(*shape: int, dtype: Any = np.float64) -> Any:
    return (np.arange(np.prod(shape, dtype=int)) % 7 + 1).reshape(shape).astype(dtype)


# --- Other programs and functions -------------------------------------------------------------------------------------


@dace.program
def scaled(a: dace.float64[N], s: dace.float64):
    a[:] = a * s


def plain(a, s, t=1.0):
    a[:] = a * s + t


@form(given(whole(3), 2.0))
def calls_a_program(a: dace.float64[N], s: dace.float64):
    scaled(a, s)
    scaled(a, 3.0)


@form(given(whole(3), 2.0))
def calls_a_function(a: dace.float64[N], s: dace.float64):
    plain(a, s)
    plain(a, t=5.0, s=2.0)


@form(given(whole(6), whole(2, 3)))
def passes_slices(a: dace.float64[6], b: dace.float64[2, 3]):
    scaled(a[1:4], 2.0)
    plain(b[1, :], 3.0)


@form(given(whole(6)))
def passes_a_view(a: dace.float64[6]):
    inner = a[2:5]
    scaled(inner, 2.0)


def both(a):
    return a + 1, a * 2


@form(given(whole(3)))
def unpacks_results(a: dace.float64[N]):
    one, two = both(a)
    return one * two


def returned(a):
    return np.sum(a)


@form(given(whole(3)))
def uses_a_number_that_is_returned(a: dace.float64[N]):
    a[:] = a + returned(a)


def repeated(a, n: dace.compiletime):
    for _ in dace.unroll(range(n)):
        add_one(a)


@form(given(whole(3)))
def passes_constants_on(a: dace.float64[3]):
    repeated(a, 3)


def add_one(a):
    a += 1


def add_two(a):
    a += 2


STEPS = [add_one, add_two, add_one]


@form(given(whole(3)))
def loops_over_functions(a: dace.float64[N]):
    for i in dace.unroll(range(3)):
        STEPS[i](a)


@gtstub.program
@dace.program
def stubbed(a: dace.float64[N]):
    a[:] = a + 7


@form(given(whole(3)))
def calls_a_stubbed_program(a: dace.float64[N]):
    stubbed(a)


# --- Globals, enclosing functions and objects -------------------------------------------------------------------------

FACTOR = 2.5
COUNT = np.int32(3)
NAMES = ("one", "two")
TABLE_OF = {"one": 1.0, "two": whole(3)}
WEIGHTS = [1.0, 2.0, 4.0]
ARRAY = whole(3)


@form(given(whole(3)))
def global_numbers(a: dace.float64[N]):
    a[:] = a * FACTOR + COUNT


@form(given(whole(3)))
def global_collections(a: dace.float64[3]):
    for name in NAMES:
        a[:] = a + TABLE_OF[name]
    for i in dace.unroll(range(3)):
        a[i] = a[i] * WEIGHTS[i]


@form(given(whole(3)))
def global_array(a: dace.float64[3]):
    a[:] = a + ARRAY


def made() -> Callable[..., Any]:
    factor, array = 3.0, whole(3) * 2

    def inner(a):
        def innermost(b):
            b[:] = b * factor

        innermost(a)

    def enclosed(a: dace.float64[3]):
        inner(a)
        a[:] = a + array

    return enclosed


form(given(whole(3)))(made())


class Callee:
    def __init__(self, s: float) -> None:
        self.s = s
        self.array = whole(3)

    def __call__(self, a):
        a[:] = a * self.s + self.array


CALLEE = Callee(2.0)


@form(given(whole(3)))
def calls_an_object(a: dace.float64[3]):
    CALLEE(a)


@dataclasses.dataclass
class Inner:
    k: Any
    n: int


class Model:
    """Methods, whose truth is another object's plain function."""

    offset = 2

    def __init__(self) -> None:
        self.inner = Inner(whole(3), 2)
        self.s = 3.0

    @gtstub.program
    @dace.method
    def step(self, a: dace.float64[3]):
        self.add(a)
        for _ in range(self.inner.n):
            a[:] = a + self.inner.k * self.s + Model.offset

    @dace.method
    def add(self, a):
        a[:] = a + self.s

    @staticmethod
    @gtstub.program
    @dace.program
    def static(a: dace.float64[3]):
        a[:] = a + Model.offset


def of_step(a: Any) -> None:
    a += 3.0 + 2 * (whole(3) * 3.0 + 2)


def of_static(a: Any) -> None:
    a += 2


# --- Callbacks --------------------------------------------------------------------------------------------------------


@opaque
def note(*values: Any, **named: Any) -> None:
    SEEN.append([each.tolist() if isinstance(each, np.ndarray) else each for each in (*values, *named.values())])


@opaque
def half(s: float) -> float:
    return s / 2


@opaque
def reversed_(a: Any) -> Any:
    return a[::-1].copy()


@opaque
def parts(a: Any, s: float) -> Any:
    return a * s, s + 1


@opaque
def write(a: Any) -> None:
    a[:] = a + 10


class Noting:
    def __init__(self) -> None:
        self.s = 4.0

    @opaque
    def times(self, a: Any) -> Any:
        return a * self.s


NOTING = Noting()


@form(given(whole(3), 2.5, 4))
def callbacks_without_results(a: dace.float64[N], s: dace.float64, i: dace.int32):
    note()
    note(a)
    note(a[1:], i)
    note(s, i, a)
    write(a)


@form(given(whole(3), 2.5))
def callbacks_with_results(a: dace.float64[N], s: dace.float64):
    x: dace.float64 = half(s)
    b: dace.float64[N] = reversed_(a)
    a[:] = b * x


@form(given(whole(3), 2.5))
def a_callback_with_several_results(a: dace.float64[N], s: dace.float64):
    b: dace.float64[N]
    x: dace.float64
    b, x = parts(a, s)
    a[:] = b + x


@form(given(whole(3)))
def a_callback_that_is_a_method(a: dace.float64[N]):
    b: dace.float64[N] = NOTING.times(a)
    return b


@form(given(whole(3, 4), whole(3)))
def a_callback_of_a_library(a: dace.float64[M, N], b: dace.float64[M]):
    middle: dace.float64[M] = np.median(a, axis=1)
    b[:] = middle


@form(given(whole(4)))
def a_callback_in_a_map(a: dace.float64[4]):
    for i in dace.map[0:4]:
        x: dace.float64 = half(a[i])
        a[i] = x


@form(given(whole(3)))
def a_callback_with_texts_and_objects(a: dace.float64[N]):
    note("before", a, kind="first")
    note(NOTING, (1, 2), None)


@form(given(whole(3), whole(2, dtype=np.int32)))
def a_callback_with_two_types(a: dace.float64[3], b: dace.int32[2]):
    note(a)
    note(b)
    note(a[0])


def calls_back(a):
    note(a)
    write(a)


@form(given(whole(3)))
def a_callback_of_a_function(a: dace.float64[N]):
    calls_back(a)
    note(a)


# --- Expressions and blocks -------------------------------------------------------------------------------------------


twice = lambda x: x * 2  # noqa: E731


@form(given(whole(3)))
def a_lambda(a: dace.float64[3]):
    a[:] = twice(a)


@form(given(whole(5), 3))
def loops_and_branches(a: dace.float64[N], n: dace.int64):
    i = 0
    while i < n:
        if i == 1:
            i += 1
            continue
        a[i] = a[i] + i
        i += 1
    for j in range(1, 4, 2):
        a[j] = a[j] * 2


@pytest.mark.parametrize("row", TABLE.rows, ids=lambda row: row.name)
def test_what_is_called_and_read(row: Form) -> None:
    row.check()


def test_methods() -> None:
    model = Model()
    for program, truth in ((model.step, of_step), (Model.static, of_static)):
        check_call(program, truth, given(whole(3)))
        assert program.fallback_calls == 0


ROWS, SHIFT = dace.symbol("ROWS"), dace.symbol("SHIFT")
BY = 1


@dace.program
def above(a: dace.float64[ROWS, ROWS]):
    b = np.zeros_like(a)
    for i in dace.map[0:ROWS]:
        for j in dace.map[i + SHIFT : ROWS]:
            b[i, j] = a[i, j]
    return b


@gtstub.program
@dace.program
def with_symbols_passed(a: dace.float64[ROWS, ROWS], by: dace.int32):
    a[:] = a + above(a, SHIFT=BY) + above(a, SHIFT=2) + above(a, SHIFT=by)


def test_a_program_passes_values_for_symbols_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.arange(16.0).reshape(4, 4)
    check_like_dace(with_symbols_passed, a, 3)
    monkeypatch.setitem(globals(), "BY", 0)
    with pytest.raises(ValueError, match="was compiled for 'BY' = 1, but it is 0 now"):
        with_symbols_passed(a, 3)


def made_by_hand(plus: int) -> dace.SDFG:
    sdfg = dace.SDFG(f"plus_{plus}")
    sdfg.add_array("x", [ROWS], dace.float64)
    state = sdfg.add_state()
    tasklet = state.add_tasklet("add", {"before"}, {"after"}, f"after = before + {plus}")
    state.add_edge(state.add_read("x"), None, tasklet, "before", dace.Memlet("x[0]"))
    state.add_edge(tasklet, "after", state.add_write("x"), None, dace.Memlet("x[0]"))
    return sdfg


BY_HAND = made_by_hand(1)


@gtstub.program
@dace.program
def calls_an_sdfg(a: dace.float64[ROWS]):
    BY_HAND(x=a)


def test_a_program_calls_an_sdfg(monkeypatch: pytest.MonkeyPatch) -> None:
    check_like_dace(calls_an_sdfg, whole(3))
    monkeypatch.setitem(globals(), "BY_HAND", made_by_hand(5))
    with pytest.raises(ValueError, match="was compiled for 'BY_HAND' = "):
        calls_an_sdfg(whole(3))


@gtstub.program
@dace.program
def has_a_tasklet_of_a_language(a: dace.float64[ROWS]):
    for i in dace.map[0:ROWS] @ dace.ScheduleType.Sequential:
        with dace.tasklet(dace.Language.Python):
            x << a[i]  # noqa: F821
            y >> a[i]  # noqa: F821
            y = x + 1  # noqa: F821, F841


def test_a_tasklet_names_its_language() -> None:
    check_like_dace(has_a_tasklet_of_a_language, whole(3))
