"""
Random programs that read from around them: after a random change, a call does what Python does, or it is refused.

Most programs are only preprocessed by DaCe, and their readings are compared here as the host compares them; some are
compiled and called. GTSTUB_EXAMPLES=N draws N new programs; without it a run draws the same ones every time.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
from dace.frontend.python.common import DaceSyntaxError

import gtstub
from gtstub.errors import SignatureError
from gtstub.frameworks.dace.closures import Closure, Identical
from gtstub.frameworks.dace.values import same
from tests.support.closures import closure_without_build
from tests.support.random_closures import RandomClosure

EXAMPLES = os.environ.get("GTSTUB_EXAMPLES")
CHANGES = 20


def seeds(count: int) -> range | list[int]:
    if EXAMPLES is None:
        return range(count)
    return random.SystemRandom().sample(range(1 << 62), int(EXAMPLES) * count // 40)


def is_refused(closure: Closure) -> bool:
    """Whether a call would be refused."""
    try:
        for reading, value in closure.constants:
            found = reading.read({})
            if not (found is value.value if isinstance(value, Identical) else same(found, value)):
                return True
        arrays = {name: reading.read({}) for name, reading in closure.arrays.items()}
        distinct = [id(arrays[name]) for name in closure.distinct]
        if len(set(distinct)) < len(distinct):
            return True
        return any(reading.read({}) is not arrays[name] for reading, name in closure.shared)
    except Exception:  # of any object's attributes
        return True


def sum_of_arrays(closure: Closure, counts: dict[str, int]) -> Any:
    return sum((counts[name] * reading.read({}) for name, reading in closure.arrays.items()), np.zeros(3))


@pytest.mark.parametrize("seed", seeds(40))
def test_readings(seed: int) -> None:
    case = RandomClosure(random.Random(seed))
    before = case.run()
    if isinstance(before, Exception):
        return
    try:
        closure = closure_without_build(case.function)
    except SignatureError:
        return
    added = [eval(each, case.names) for each in case.arrays]
    counts = {name: sum(each is reading.read({}) for each in added) for name, reading in closure.arrays.items()}
    compiled = before - sum_of_arrays(closure, counts)
    assert not is_refused(closure)
    for _ in range(CHANGES):
        changed, undo = case.change()
        after = case.run()
        try:
            if not is_refused(closure):
                text = f"{case.source}\n    # adds {case.arrays}\nafter {changed}"
                assert not isinstance(after, Exception), f"{after!r}: {text}"
                found = compiled + sum_of_arrays(closure, counts)
                assert np.allclose(found, after), f"{found} instead of {after}: {text}"
        finally:
            undo()
        assert not is_refused(closure)


@pytest.mark.parametrize("seed", seeds(4))
def test_calls(seed: int) -> None:
    case = RandomClosure(random.Random(seed))
    program = gtstub.program(case.function)

    def call() -> Any:
        a = np.ones(3)
        program(a)
        return a

    before = case.run()
    if isinstance(before, Exception):
        return
    try:
        program.compile()
    except (NameError, DaceSyntaxError):  # DaCe cannot parse it
        return
    assert np.allclose(call(), before)
    for _ in range(CHANGES):
        changed, undo = case.change()
        after = case.run()
        try:
            found = call()
            assert np.allclose(found, after), f"{found} instead of {after}: {case.source}\nafter {changed}"
        except (TypeError, ValueError):
            pass
        finally:
            undo()
        assert np.allclose(call(), before)
