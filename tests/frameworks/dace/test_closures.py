"""What DaCe programs read from around them: arrays are read at each call, and other values must not change."""

import contextlib
import enum
import re
from collections.abc import Iterator
from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from tests.support.dace_programs import check_like_dace, check_same

N = dace.symbol("N")


def three(value: float) -> Any:
    return np.full(3, float(value))


class Box:
    """An object with attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def result(program: Any) -> list[float]:
    """What a program makes of an array of ones."""
    a = three(1)
    assert program(a) is None
    return list(a)


def check_changed(program: Any, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        result(program)


new, unix = three(4), three(5)
"""Words of C++, and macros of compilers."""


class Manager:
    entered = ""

    @contextlib.contextmanager
    def named(self, name: str) -> Iterator[None]:
        self.entered = name
        yield
        self.entered += "!"


MANAGER = Manager()


@gtstub.program
@dace.program
def reads_words_of_c(linux: dace.float64[3]):
    with MANAGER.named("inner"):
        linux[:] = new + unix


def test_names_that_c_reserves() -> None:
    assert result(reads_words_of_c) == [9, 9, 9]
    assert MANAGER.entered == "inner!"


# --- Globals ----------------------------------------------------------------------------------------------------------

FIELD, FACTOR = three(2), 3.0
BOX = Box(k=2, inner=Box(w=three(1)), listed=[three(1), three(5)], named={"x": three(7)})
WEIGHTS = [1.0, 2.0]


@gtstub.program
@dace.program
def reads_globals(a: dace.float64[3]):
    a[:] = a * BOX.k + FIELD * FACTOR + BOX.inner.w + BOX.listed[1] + BOX.named["x"]
    for i in dace.unroll(range(len(WEIGHTS))):
        a[:] = a + WEIGHTS[i]


def test_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    check_like_dace(reads_globals, three(1))
    assert result(reads_globals) == [24] * 3
    for replace, expected in (
        (lambda: monkeypatch.setitem(globals(), "FIELD", three(3)), 27),
        (lambda: monkeypatch.setattr(BOX.inner, "w", three(2)), 28),
        (lambda: monkeypatch.setattr(BOX, "inner", Box(w=three(3))), 29),
        (lambda: BOX.listed.__setitem__(1, three(6)), 30),
        (lambda: monkeypatch.setitem(BOX.named, "x", three(8)), 31),
        (lambda: FIELD.fill(4), 34),
    ):
        replace()
        assert result(reads_globals) == [expected] * 3
    monkeypatch.undo()
    FIELD.fill(2)
    BOX.listed[1] = three(5)


@pytest.mark.parametrize(
    ("place", "name", "value", "message"),
    [
        (None, "FACTOR", 4.0, "was compiled for 'FACTOR' = 3.0, but it is 4.0 now; call its method clear()"),
        (None, "FACTOR", 3, "was compiled for 'FACTOR' = 3.0, but it is 3 now"),
        (BOX, "k", None, "was compiled for 'BOX.k' = 2, but it is None now"),
        (BOX, "inner", None, "reads 'BOX.inner.w', which does not exist any more."),
        (None, "BOX", Box(), "which does not exist any more."),
        (None, "WEIGHTS", [1.0, 2.0, 3.0], "was compiled for 'WEIGHTS' = [1.0, 2.0], but it is [1.0, 2.0, 3.0] now"),
        (None, "WEIGHTS", [1.0, 9.0], "was compiled for 'WEIGHTS' = [1.0, 2.0], but it is [1.0, 9.0] now"),
        (None, "FIELD", None, "Argument 'FIELD' of program"),
        (None, "FIELD", np.zeros(4), "must have size 3 on axis 0 ('axis_0'), not 4."),
        (BOX, "listed", [three(1), np.zeros((3, 3))], "must have 1 dimension ('axis_0'), not 2."),
    ],
)
def test_globals_that_changed(
    place: Any, name: Any, value: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert result(reads_globals) == [24] * 3
    if place is None:
        monkeypatch.setitem(globals(), name, value)
    else:
        monkeypatch.setattr(place, name, value)
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        result(reads_globals)
    monkeypatch.undo()
    assert result(reads_globals) == [24] * 3


def test_what_was_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert result(reads_globals) == [24] * 3
    monkeypatch.delitem(globals(), "FIELD")
    check_changed(reads_globals, "reads 'FIELD', which does not exist any more.")


# --- Values that DaCe uses while it parses ---------------------------------------------------------------------------


class Scheme(enum.Enum):
    CENTRAL = 1
    UPWIND = 2


SCHEME, DTYPE, LENGTH = Scheme.UPWIND, np.float64, N - 1
ORDER, NAME, FIELDS, KNOWN = 1, "x", [three(1), three(2)], {"u", "v"}
COEFFICIENTS, NAMED, UNUSED = [2.0, 3.0], {"x": 5.0, "y": 7.0}, 1
OTHERS, HISTORY = {"used": three(3)}, [three(0), three(4)]


class Shift:
    def __init__(self) -> None:
        self.amounts, self.order = [10.0, 20.0], 0

    def of(self, x):
        return x + self.amounts[self.order]


SHIFT_OF_ORDER = Shift()


@gtstub.program
@dace.program
def decides(a: dace.float64[N]):
    a[0:3] = a[0:3] * COEFFICIENTS[ORDER] + NAMED[NAME] + OTHERS["used"]
    if SCHEME == Scheme.UPWIND and "u" in KNOWN:
        a[0:3] = a[0:3] + np.full([3], 0.5, dtype=DTYPE)
    for field in FIELDS:
        a[0:3] = a[0:3] + field

    a[0:3] = SHIFT_OF_ORDER.of(a[0:3]) + HISTORY[-1]

    @dace.map
    def add(UNUSED: _[0:LENGTH]):  # noqa: F821, N803  an index that has the name of a global
        value << a[UNUSED]  # noqa: F821
        out >> a[UNUSED]  # noqa: F821
        out = value + 1  # noqa: F821, F841


def test_values_that_dace_uses_while_it_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [1 * 3 + 5 + 3 + 0.5 + 1 + 2 + 10 + 4 + (i < 2) for i in range(3)]
    assert result(decides) == expected
    for name, value, message in (
        ("ORDER", 0, "was compiled for 'ORDER' = 1, but it is 0 now"),
        ("NAME", "y", "was compiled for 'NAME' = 'x', but it is 'y' now"),
        ("SCHEME", Scheme.CENTRAL, "was compiled for 'SCHEME' = "),
        ("KNOWN", {"v"}, "was compiled for 'KNOWN' = "),
        (
            "DTYPE",
            np.float32,
            "was compiled for 'DTYPE' = <class 'numpy.float64'>, but it is <class 'numpy.float32'> now",
        ),
        ("LENGTH", N, "was compiled for 'LENGTH' = N - 1, but it is N now"),
        ("FIELDS", [*FIELDS, three(3)], "was compiled for 'len(FIELDS)' = 2, but it is 3 now"),
    ):
        with monkeypatch.context() as context:
            context.setitem(globals(), name, value)
            check_changed(decides, message)
    with monkeypatch.context() as context:
        context.setattr(SHIFT_OF_ORDER, "order", 1)
        check_changed(decides, "was compiled for 'self.order' = 0, but it is 1 now")
    HISTORY.append(three(5))
    check_changed(decides, "was compiled for 'len(HISTORY)' = 2, but it is 3 now")
    HISTORY.pop()
    monkeypatch.setitem(globals(), "UNUSED", 2)
    monkeypatch.setitem(OTHERS, "unused", three(9))
    assert result(decides) == expected


# --- Two paths to one array -------------------------------------------------------------------------------------------

OLD_AND_NEW = Box(old=three(1))
OLD_AND_NEW.new = OLD_AND_NEW.old


@gtstub.program
@dace.program
def reads_twice(a: dace.float64[3]):
    a[:] = OLD_AND_NEW.old + 10 * OLD_AND_NEW.new


def test_two_paths_to_one_array() -> None:
    """DaCe compiles one argument for both, and would go on with the first array for both."""
    assert result(reads_twice) == [11] * 3
    OLD_AND_NEW.old = three(2)
    message = "for one array as 'OLD_AND_NEW.old' and 'OLD_AND_NEW.new', but these are two now; call its method clear()"
    check_changed(reads_twice, message)
    OLD_AND_NEW.new = OLD_AND_NEW.old
    assert result(reads_twice) == [22] * 3
    OLD_AND_NEW.new = three(3)
    reads_twice.clear()
    assert result(reads_twice) == [32] * 3
    OLD_AND_NEW.old, OLD_AND_NEW.new = OLD_AND_NEW.new, OLD_AND_NEW.old
    assert result(reads_twice) == [23] * 3


# --- Variables of an enclosing function -------------------------------------------------------------------------------


def test_variables_of_an_enclosing_function() -> None:
    w, factor = three(2), 3.0

    @gtstub.program
    @dace.program
    def reads_cells(a: dace.float64[3]):
        a[:] = a + w * factor  # noqa: F821  deleted below

    assert result(reads_cells) == [7] * 3
    w = three(5)
    assert result(reads_cells) == [16] * 3
    factor = 4.0
    check_changed(reads_cells, "was compiled for 'factor' = 3.0, but it is 4.0 now")
    reads_cells.clear()
    assert result(reads_cells) == [21] * 3
    del w
    check_changed(reads_cells, "reads 'w', which does not exist any more.")


# --- Programs that call others ----------------------------------------------------------------------------------------

SCALE, SHIFT = 2.0, three(1)


@dace.program
def scale(x: dace.float64[3]):
    x[:] = x * SCALE + SHIFT


def double(x):
    return x * 2


@gtstub.program
@dace.program
def stubbed_scale(x: dace.float64[3]):
    x[:] = x * SCALE + FIELD


class Inner:
    def __init__(self) -> None:
        self.w = three(4)

    @dace.method
    def add(self, x: dace.float64[3]):
        x[:] = x + self.w


INNER = Inner()


@gtstub.program
@dace.program
def calls(a: dace.float64[3]):
    scale(a)
    stubbed_scale(a)
    a[:] = double(a)
    INNER.add(a)


def test_calls_of_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Globals of the inner programs changed since they were defined."""
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert result(calls) == [(((1 * 3 + 1) * 3 + 2) * 2) + 4] * 3
    monkeypatch.setitem(globals(), "SHIFT", three(2))
    monkeypatch.setattr(INNER, "w", three(0))
    assert result(calls) == [(((1 * 3 + 2) * 3 + 2) * 2)] * 3
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    check_changed(calls, "was compiled for 'SCALE' = 3.0, but it is 2.0 now")
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    for name, value in (
        ("double", lambda x: x * 3),
        ("scale", dace.program(scale.f)),
        ("stubbed_scale", gtstub.program(scale)),
        ("INNER", Inner()),
    ):
        with monkeypatch.context() as context:
            context.setitem(globals(), name, value)
            check_changed(calls, f"was compiled for '{'INNER.add' if name == 'INNER' else name}' = ")
    assert result(calls) == [34] * 3


# --- Methods ----------------------------------------------------------------------------------------------------------


class Model:
    def __init__(self, n: int) -> None:
        self.w, self.k, self.state = three(n), n, Box(inner=Box(u=three(10 * n)))

    @gtstub.program
    def plain(self, a: dace.float64[3]):
        a[:] = a * self.k + self.w + self.state.inner.u

    @gtstub.program
    @dace.method
    def method(self, a: dace.float64[3], s: dace.float64 = 1.0):
        a[:] = a * self.k - self.w * s

    @gtstub.program
    @dace.method
    def both(self, a: dace.float64[3]):
        self.plain(a)
        self.method(a)


def test_methods() -> None:
    one, two = Model(1), Model(2)
    assert (result(one.plain), result(two.plain)) == ([12] * 3, [24] * 3)
    assert result(two.both) == [46] * 3
    assert two.plain is two.plain
    a = three(1)
    two.method(a, s=4.0)
    check_same(a, three(-6))
    one.w = three(5)
    two.state.inner = Box(u=three(0))
    assert (result(one.plain), result(two.plain)) == ([16] * 3, [4] * 3)
    assert result(two.both) == [6] * 3
    two.k = 3
    check_changed(two.plain, "was compiled for 'self.k' = 2, but it is 3 now")
    assert result(one.plain) == [16] * 3
    two.plain.clear()
    assert result(two.plain) == [5] * 3
