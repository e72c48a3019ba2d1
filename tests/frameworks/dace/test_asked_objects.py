"""What DaCe asks of objects while it parses: their items and number, whether they are true, what calling them does."""

import collections
import math
import re
import types
from collections.abc import Callable, Iterator
from math import sqrt
from typing import Any

import dace
import numpy as np
import pytest

import gtstub

Change = Callable[[pytest.MonkeyPatch], None]


def three(value: float) -> Any:
    return np.full(3, float(value))


def result(program: Any, *more: Any) -> list[float]:
    """What a program makes of an array of ones."""
    a = three(1)
    program(a, *more)
    return list(a)


def check_refused(program: Any, text: str, *more: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        result(program, *more)


class Box:
    """An object with attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


# --- The object of a method -------------------------------------------------------------------------------------------


class Model:
    """An object that is asked itself, not for an attribute."""

    def __init__(self) -> None:
        self.nudging = 1.0
        self.is_on = True
        self.items = [1.0, 2.0]

    def __bool__(self) -> bool:
        return self.is_on

    def __iter__(self) -> Iterator[float]:
        return iter(self.items)

    @gtstub.program
    @dace.method
    def ask(self, a: dace.float64[3]):
        if hasattr(self, "nudging"):
            a[:] = a + 10
        if self:
            a[:] = a + 20
        for k in self:
            a[:] = a + k
        if getattr(self, "nudging", 0) == 1.0:
            a[:] = a + 40


MODEL = Model()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.delattr(MODEL, "nudging"), "'hasattr(self, 'nudging')' = True, but it is False now"),
        (lambda m: m.setattr(MODEL, "is_on", False), "'bool(self)' = True, but it is False now"),
        (lambda m: m.setattr(MODEL, "items", [1.0, 2.0, 3.0]), "'self' = [1.0, 2.0], but it is [1.0, 2.0, 3.0] now"),
        (
            lambda m: m.setattr(MODEL, "nudging", 2.0),
            "'getattr(self, 'nudging', 0) == 1.0' = True, but it is False now",
        ),
    ],
)
def test_the_object_of_a_method(change: Change, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert result(MODEL.ask) == [1 + 10 + 20 + 3 + 40] * 3
    a = three(1)
    with gtstub.capture() as step:
        MODEL.ask(a)
    with monkeypatch.context() as context:
        change(context)
        check_refused(MODEL.ask, message)
        with pytest.raises(ValueError, match=re.escape(message)):
            step()
    step()
    assert result(MODEL.ask) == [74] * 3


# --- Objects around a program -----------------------------------------------------------------------------------------


class Index:
    """An object that stands for an integer."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class Operator:
    """An object that is called."""

    def __call__(self, x):
        return x + 100


class Other:
    """Another one."""

    def __call__(self, x):
        return x + 200


def add_nothing(self, x):
    return x


OBJECTS = [Box(), Box()]
QUEUE = collections.deque([1.0, 2.0])
ORDERED = collections.OrderedDict(x=1.0)
KEYS = types.MappingProxyType({"x": 1.0})
ZERO: Any = np.float32(0.0)
OPERATOR = Operator()
LEVELS = [1.0, 2.0, 3.0]
LEVEL = Index(0)
xp: Any = np


@gtstub.program
@dace.program
def asks(a: dace.float64[3]):
    a[:] = a + len(OBJECTS) + LEVELS[LEVEL] + xp.e + sqrt(4.0)
    for k in QUEUE:
        a[:] = a + k
    for key in ORDERED:
        a[:] = a + ORDERED[key]
    for key in KEYS:
        a[:] = a + KEYS[key]
    a[:] = OPERATOR(a)
    a[:] = a + np.copysign(8.0, ZERO)


ASKED = [1 + 2 + 1 + math.e + 2 + 3 + 1 + 1 + 100 + 8] * 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.setitem(globals(), "OBJECTS", [*OBJECTS, Box()]), "'len(OBJECTS)' = 2, but it is 3 now"),
        (
            lambda m: m.setitem(globals(), "QUEUE", collections.deque([1.0])),
            "'QUEUE' = [1.0, 2.0], but it is [1.0] now",
        ),
        (lambda m: m.setitem(ORDERED, "y", 1.0), "'ORDERED' = ['x'], but it is ['x', 'y'] now"),
        (
            lambda m: m.setitem(globals(), "KEYS", types.MappingProxyType({"x": 1.0, "y": 2.0})),
            "'KEYS' = ['x'], but it is ['x', 'y'] now",
        ),
        (lambda m: m.setattr(LEVEL, "value", 1), "'operator.index(LEVEL)' = 0, but it is 1 now"),
        (lambda m: m.setitem(globals(), "xp", types.SimpleNamespace(e=1.0)), "'xp' = <module 'numpy'"),
        (lambda m: m.setattr(Operator, "__call__", add_nothing), "'type(OPERATOR).__call__' = <function Operator"),
        (lambda m: m.setattr(OPERATOR, "__class__", Other), "'type(OPERATOR).__call__' = <function Operator"),
        (
            lambda m: m.setitem(globals(), "ZERO", np.float32(-0.0)),
            "'ZERO' = np.float32(0.0), but it is np.float32(-0.0)",
        ),
    ],
)
def test_objects_around_a_program(change: Change, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert np.allclose(result(asks), ASKED)
    with monkeypatch.context() as context:
        change(context)
        check_refused(asks, message)
    assert np.allclose(result(asks), ASKED)


def test_other_objects_that_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert np.allclose(result(asks), ASKED)
    monkeypatch.setitem(globals(), "OBJECTS", [Box(), Box()])
    monkeypatch.setitem(globals(), "QUEUE", collections.deque([1.0, 2.0]))
    monkeypatch.setitem(globals(), "ZERO", np.float32(0.0))
    assert np.allclose(result(asks), ASKED)


# --- What a callback keeps --------------------------------------------------------------------------------------------

W, PARAMETERS = three(2), Box(k=3.0)
LOG: list[Any] = []
PAIR = (three(5), 7.0)
FACTORS = three(1)


def unknown(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator, of which DaCe makes a callback."""
    return function


@unknown
def scale(x, how):
    x[:] = x * how[0]


@unknown
def add(x, how):
    x[:] = x + how[0].k


@unknown
def multiply(x, by):
    x[:] = x * by


@unknown
def write(x, log):
    log.append(float(x[0]))


@gtstub.program
@dace.program
def calls(a: dace.float64[3]):
    scale(a, (W, 1.0))
    add(a, [PARAMETERS])
    scale(a, PAIR)
    multiply(a, FACTORS)
    write(a, LOG)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.setitem(globals(), "W", three(4)), "'(W, 1.0)' = (array([2., 2., 2.]), 1.0), but it is"),
        (lambda m: m.setitem(globals(), "PARAMETERS", Box(k=4.0)), "'[PARAMETERS]' = [<"),
        (lambda m: m.setitem(globals(), "PAIR", (three(6), 7.0)), "'PAIR' = (array([5., 5., 5.]), 7.0), but it is"),
        (lambda m: m.setitem(globals(), "LOG", []), "'LOG' = ["),
        (lambda m: m.setitem(globals(), "FACTORS", three(1)), "'FACTORS' = array([1., 1., 1.]), but it is"),
    ],
)
def test_what_a_callback_keeps(change: Change, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert result(calls) == [(1 * 2 + 3) * 5] * 3
    with monkeypatch.context() as context:
        change(context)
        check_refused(calls, message)
    count = len(LOG)
    monkeypatch.setattr(PARAMETERS, "k", 4.0)  # the callback sees what is in its objects
    W[:] = 3.0
    try:
        assert result(calls) == [(1 * 3 + 4) * 5] * 3
    finally:
        W[:] = 2.0
    assert LOG[count:] == [35.0]


# --- Arrays -----------------------------------------------------------------------------------------------------------

TIMES = Box(old=three(1), new=three(2))


@gtstub.program
@dace.program
def advance(a: dace.float64[3]):
    TIMES.new[:] = TIMES.old + a
    a[:] = TIMES.new + TIMES.old


def test_two_arrays_that_become_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert result(advance) == [3] * 3
    monkeypatch.setattr(TIMES, "new", three(4))
    assert result(advance) == [3] * 3
    with monkeypatch.context() as context:
        context.setattr(TIMES, "new", TIMES.old)
        check_refused(
            advance, "was compiled for two arrays as 'TIMES.new' and 'TIMES.old', but these are one now; call its"
        )
        advance.clear()
        assert result(advance) == [4] * 3
        TIMES.old[:] = 1.0
    check_refused(advance, "was compiled for one array as ")
    advance.clear()
    assert result(advance) == [3] * 3


# --- Arguments that are compiled in -----------------------------------------------------------------------------------


@gtstub.program
@dace.program
def of_list(a: dace.float64[3], sizes: dace.compiletime):
    for size in sizes:
        a[:] = a + size / 2


def test_each_list_has_its_variant() -> None:
    sizes = [1, 2]
    assert result(of_list, sizes) == [2.5] * 3
    assert result(of_list, [1.0, 2.0]) == [2.5] * 3
    sizes.append(3)
    assert result(of_list, sizes) == [4] * 3
    assert result(of_list, [1, 2]) == [2.5] * 3
    assert len(of_list._variants) == 3
