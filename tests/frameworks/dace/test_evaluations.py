"""What DaCe evaluates while it parses: each evaluation is read again, evaluated again, or refused."""

import dataclasses
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import dace
import numpy as np
import pytest
from click.testing import CliRunner
from dace.frontend.python import astutils, newast, preprocessing

import gtstub
from gtstub import _host
from gtstub.cli.app import main
from gtstub.errors import SignatureError
from gtstub.frameworks.dace.closures import End
from gtstub.frameworks.dace.recording import recording
from tests.support.closures import closure_without_build


def three(value: float) -> Any:
    return np.full(3, float(value))


class Box:
    """An object with attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


@dataclasses.dataclass
class Pair:
    """An object that may equal another one."""

    k: float


def result(program: Any) -> list[float]:
    """What a program makes of an array of ones."""
    a = three(1)
    program(a)
    return list(a)


def check_refused(program: Any, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        result(program)


# --- Evaluated again --------------------------------------------------------------------------------------------------

NOW = 0
LEVELS = [Box(k=2.0), Box(k=5.0)]
STATES = [Box(w=three(1)), Box(w=three(2))]
WEIGHTS = {(0, 1): 3.0, "x": Box()}
P = Q = Box()
X, Y = Pair(1.0), Pair(1.0)
OBJ: Any = Box()
LIST = [OBJ, Box()]
ARRAYS = {"u": three(1)}
STATE = Box(nudging=1.0)


def add_one(x):
    return x + 1


def add_two(x):
    return x + 2


def scaled(x, k=2.0):
    return x * k


CONFIG = Box(factor=3.0)
FUNCTIONS = [add_one, add_two]


@gtstub.program
@dace.program
def evaluates(a: dace.float64[3], cfg: dace.compiletime = CONFIG):
    a[:] = a * LEVELS[NOW].k + STATES[NOW].w + WEIGHTS[(0, 1)]
    if P is Q:
        a[:] = a + 10
    if X == Y:
        a[:] = a + 20
    if OBJ:
        a[:] = a + 40
    if OBJ in LIST:
        a[:] = a + 80
    if "u" in ARRAYS:
        a[:] = a + 100
    if hasattr(STATE, "nudging"):
        a[:] = a + 200
    if isinstance(OBJ, Box):
        a[:] = a + 400
    for f in FUNCTIONS:
        a[:] = f(a)
    a[:] = scaled(a) * cfg.factor


EXPECTED = [(2 + 1 + 3 + 850 + 3) * 6.0] * 3


class Empty(Box):
    def __bool__(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.setattr(LEVELS[0], "k", 3.0), "was compiled for 'LEVELS[NOW].k' = 2.0, but it is 3.0 now"),
        (lambda m: m.setitem(globals(), "NOW", 1), "was compiled for 'LEVELS[NOW].k' = 2.0, but it is 5.0 now"),
        (
            lambda m: m.setitem(globals(), "LEVELS", [Box(k=7.0)]),
            "was compiled for 'LEVELS[NOW].k' = 2.0, but it is 7.0 now",
        ),
        (lambda m: m.setitem(WEIGHTS, (0, 1), 4.0), "was compiled for 'WEIGHTS[0, 1]' = 3.0, but it is 4.0 now"),
        (lambda m: m.setitem(globals(), "Q", Box()), "was compiled for 'P is Q' = True, but it is False now"),
        (lambda m: m.setattr(X, "k", 2.0), "was compiled for 'X == Y' = True, but it is False now"),
        (lambda m: m.setattr(Box, "__bool__", lambda _: False, raising=False), "for 'bool(OBJ)' = True"),
        (lambda m: m.setitem(globals(), "LIST", [Box()]), "was compiled for 'OBJ in LIST' = True, but it is False now"),
        (lambda m: m.delitem(ARRAYS, "u"), "was compiled for ''u' in ARRAYS' = True, but it is False now"),
        (lambda m: m.delattr(STATE, "nudging"), "was compiled for 'hasattr(STATE, 'nudging')' = True"),
        (lambda m: m.setitem(globals(), "OBJ", Pair(1.0)), "was compiled for "),
        (
            lambda m: m.setitem(globals(), "FUNCTIONS", [add_one, add_one]),
            "was compiled for 'FUNCTIONS[1]' = <function add_two",
        ),
        (lambda m: m.setitem(globals(), "FUNCTIONS", [add_one]), "for 'len(FUNCTIONS)' = 2, but it is 1 now"),
        (
            lambda m: m.setitem(globals(), "FUNCTIONS", [*FUNCTIONS, add_one]),
            "for 'len(FUNCTIONS)' = 2, but it is 3 now",
        ),
        (lambda m: m.setattr(scaled, "__defaults__", (4.0,)), "was compiled for 'k' = 2.0, but it is 4.0 now"),
        (lambda m: m.setattr(scaled, "__code__", add_one.__code__), "was compiled for 'scaled.__code__' = "),
        (lambda m: m.setattr(CONFIG, "factor", 1.0), "was compiled for 'cfg.factor' = 3.0, but it is 1.0 now"),
    ],
)
def test_what_changed_is_refused(
    change: Callable[[pytest.MonkeyPatch], None], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert result(evaluates) == EXPECTED
    with monkeypatch.context() as context:
        change(context)
        check_refused(evaluates, message)
    assert result(evaluates) == EXPECTED


def test_an_array_is_read_by_its_own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    assert result(evaluates) == EXPECTED
    monkeypatch.setattr(STATES[0], "w", three(2))
    assert result(evaluates) == [(2 + 2 + 3 + 850 + 3) * 6.0] * 3
    monkeypatch.setitem(globals(), "STATES", [Box(w=three(3))])
    assert result(evaluates) == [(2 + 3 + 3 + 850 + 3) * 6.0] * 3


# --- Captured steps ---------------------------------------------------------------------------------------------------


def test_a_captured_step_refuses_as_a_call_does(monkeypatch: pytest.MonkeyPatch) -> None:
    a = three(1)
    evaluates(a)
    with gtstub.capture() as step:
        evaluates(a)
    bound = _host.bind(evaluates, a)
    a[:] = 1
    step()
    assert list(a) == EXPECTED
    for change in (
        lambda m: m.setitem(globals(), "Q", Box()),
        lambda m: m.setattr(CONFIG, "factor", 1.0),
        lambda m: m.setitem(WEIGHTS, (0, 1), 4.0),
    ):
        with monkeypatch.context() as context:
            change(context)
            with pytest.raises(ValueError, match="was compiled for ") as of_call:
                evaluates(a)
            for each in (step, bound):
                with pytest.raises(ValueError, match=re.escape(str(of_call.value))):
                    each()
            assert list(a) == EXPECTED
    a[:] = 1
    bound()
    assert list(a) == EXPECTED


# --- Every evaluation has an end --------------------------------------------------------------------------------------


class Holder:
    """Objects whose attributes programs read through each other."""

    def __init__(self) -> None:
        self.sizes, self.on, self.inner = [1, 2], True, Box(k=4.0, w=three(2))


HOLDER = Holder()


@dace.program
def inner_program(x: dace.float64[3], box: dace.compiletime):
    x[:] = x * box.k + box.w


def helper(x, box):
    return x + box.k


@gtstub.program
@dace.program
def passes(a: dace.float64[3]):
    inner_program(a, HOLDER.inner)
    a[:] = helper(a, HOLDER.inner)
    for i, size in enumerate(HOLDER.sizes):
        a[:] = a + i * size
    if len(HOLDER.sizes) == 2 and HOLDER.on:
        a[:] = a + 1


def test_what_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert result(passes) == [4 + 2 + 4 + 2 + 1] * 3
    for change in (
        lambda m: m.setattr(HOLDER.inner, "k", 5.0),
        lambda m: m.setattr(HOLDER, "inner", Box(k=4.0, w=three(2))),
        lambda m: m.setattr(HOLDER, "sizes", [1, 3]),
        lambda m: m.setattr(HOLDER, "sizes", [1, 2, 3]),
        lambda m: m.setattr(HOLDER, "on", False),
    ):
        with monkeypatch.context() as context:
            change(context)
            check_refused(passes, "was compiled for ")
    monkeypatch.setattr(HOLDER.inner, "w", three(3))
    assert result(passes) == [4 + 3 + 4 + 2 + 1] * 3


def test_each_evaluation_has_one_end() -> None:
    closure = closure_without_build(evaluates.dace_program.f)  # which compares the sum
    assert set(closure.ends) == set(End)
    assert {"P is Q", "X == Y", "bool(OBJ)", "OBJ in LIST", "'u' in ARRAYS"} <= set(closure.again)
    assert {"hasattr(STATE, 'nudging')", "LEVELS[NOW].k", "STATES[NOW].w"} <= set(closure.again)
    assert not {"FUNCTIONS", "WEIGHTS[0, 1]", "NOW"} & set(closure.again)


USED_UP: Iterator[float] = iter([2.0, 3.0])


@gtstub.program
@dace.program
def uses_up(a: dace.float64[3]):
    for number in USED_UP:
        a[:] = a + number


def test_what_cannot_be_evaluated_again_is_refused() -> None:
    message = "was parsed with the value of 'USED_UP', which a call cannot find again."
    before = astutils.evalnode, newast.parse_dace_program, preprocessing.GlobalResolver
    with pytest.raises(SignatureError, match=re.escape(message)):
        result(uses_up)
    assert before == (astutils.evalnode, newast.parse_dace_program, preprocessing.GlobalResolver)


def test_show_lists_what_is_evaluated_again() -> None:
    result(evaluates)
    ((_, variant),) = evaluates._variants
    text = CliRunner().invoke(main, ["show", str(variant.entry.path)], catch_exceptions=False).output
    assert "Each call from Python evaluates again what DaCe has compiled in:" in text
    assert "\n  P is Q\n" in text


def test_numbers_of_another_type_are_refused_in_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    assert result(passes) == [4 + 2 + 4 + 2 + 1] * 3
    for sizes in ([1.0, 2], [True, 2], (1, 2)):
        with monkeypatch.context() as context:
            context.setattr(HOLDER, "sizes", sizes)
            check_refused(passes, "was compiled for 'HOLDER.sizes' = [1, 2], but it is ")


def test_another_thread_may_parse_meanwhile() -> None:
    other = dace.program(evaluates.dace_program.f)
    with recording(lambda _: None) as recorder:
        thread = threading.Thread(target=lambda: other.closure_resolver({}, set()))
        thread.start()
        thread.join()
        assert not recorder.evaluations
        assert not recorder.functions
        other.closure_resolver({}, set())
    assert recorder.evaluations
    assert recorder.functions
