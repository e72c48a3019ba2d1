"""A callback that changes what was compiled in: the call has gone on with the old value, and says so."""

import re
from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from gtstub import _host
from tests.support.random_closures import Box
from tests.support.recorded_dace import opaque

FACTOR, BOX, WEIGHTS = 2.0, Box(k=3.0), [1.0, 2.0]
CHANGES: list[Any] = []


@opaque
def change() -> None:
    for each in CHANGES:
        each()


@gtstub.program
@dace.program
def changes(a: dace.float64[3]):
    change()
    a[:] = a * FACTOR + BOX.k
    for k in WEIGHTS:
        a[:] = a + k


@gtstub.program(recompile=True)
@dace.program
def recompiles(a: dace.float64[3]):
    change()
    a[:] = a * FACTOR


@pytest.fixture(autouse=True)
def unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    monkeypatch.setattr(BOX, "k", 3.0)
    WEIGHTS[:] = [1.0, 2.0]
    CHANGES.clear()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda: globals().update(FACTOR=5.0), "Program '{}' was compiled for 'FACTOR' = 2.0, but it is 5.0 now; call"),
        (lambda: setattr(BOX, "k", 5.0), "Program '{}' was compiled for 'BOX.k' = 3.0, but it is 5.0 now; call"),
        (lambda: delattr(BOX, "k"), "Program '{}' reads 'BOX.k', which does not exist any more."),
        (lambda: WEIGHTS.append(3.0), "Program '{}' was compiled for 'WEIGHTS' = [1.0, 2.0], but it is ["),
    ],
)
def test_a_callback_that_changes_what_was_compiled_in(change: Any, text: str) -> None:
    a = np.ones(3)
    changes(a)
    assert list(a) == [8.0] * 3
    with gtstub.capture() as step:
        changes(a)
    bound = _host.bind(changes, a)
    name = changes.name
    text = f"the call has gone on with the old value. {text.format(name)}"
    message = f"A callback of program '{name}' has changed what was compiled in; {text}"
    for call in (lambda: changes(a), bound, step):
        a[:] = 1.0
        call()
        assert list(a) == [8.0] * 3
        CHANGES.append(change)
        with pytest.raises(RuntimeError, match=re.escape(message)) as caught:
            call()
        assert call is step or isinstance(caught.value.__cause__, ValueError)
        CHANGES.clear()
        globals()["FACTOR"], BOX.k, WEIGHTS[:] = 2.0, 3.0, [1.0, 2.0]


def test_a_program_that_recompiles_raises_too() -> None:
    a = np.ones(3)
    recompiles(a)
    CHANGES.append(lambda: globals().update(FACTOR=5.0))
    with pytest.raises(RuntimeError, match=r"has changed what was compiled in; .* 'FACTOR' = 2\.0, but it is 5\.0 now"):
        recompiles(a)
    CHANGES.clear()
    a[:] = 1.0
    recompiles(a)
    assert list(a) == [5.0] * 3


def test_a_callback_that_changes_something_else() -> None:
    a = np.ones(3)
    CHANGES.append(lambda: globals().update(OTHER=len(CHANGES)))
    CHANGES.append(lambda: setattr(BOX, "other", 1.0))
    changes(a)
    assert list(a) == [8.0] * 3
