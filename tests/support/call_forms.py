"""
A table of forms of calls: each row is a function, and calls of it. DaCe compiles the function, gtstub calls it through
a stub, and the truth is what Python does with copies of the same arguments.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import dace
import numpy as np

import gtstub
from tests.support.dace_programs import copied


@dataclasses.dataclass(frozen=True)
class Call:
    """
    The arguments of a call. `truth` takes the place of the function where that is no Python, and `symbols` are keyword
    arguments that it does not take.
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    truth: Callable[..., Any] | None = None
    symbols: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Form:
    """A row: the program is compiled in `variants` variants for all calls."""

    function: Callable[..., Any]
    calls: tuple[Call, ...]
    variants: int

    @property
    def name(self) -> str:
        return self.function.__name__

    def check(self) -> None:
        """Each call goes through a stub, twice, and does what Python does."""
        program = gtstub.program(dace.program(self.function))
        for call in self.calls:
            for _ in range(2):
                check_call(program, call.truth or self.function, call)
        assert (program.fallback_calls, len(program._variants)) == (0, self.variants)


class Table:
    """The rows of a module."""

    def __init__(self) -> None:
        self.rows: list[Form] = []

    def form(self, *calls: Call, variants: int = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Makes a row of a function."""

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self.rows.append(Form(function, calls, variants))
            return function

        return add


def given(*args: Any, **kwargs: Any) -> Call:
    return Call(args, kwargs)


SEEN: list[Any] = []
"""What callbacks have got; arrays as lists."""


def check_call(program: Callable[..., Any], truth: Callable[..., Any], call: Call) -> None:
    made = []
    for function, symbols in ((program, call.symbols), (truth, {})):
        SEEN.clear()
        args, kwargs = [*map(copied, call.args)], {name: copied(each) for name, each in call.kwargs.items()}
        result = function(*args, **kwargs, **symbols)
        made.append((result, [each for each in (*args, *kwargs.values()) if isinstance(each, np.ndarray)], [*SEEN]))
    (found, ours, seen), (expected, pythons, noted) = made
    check_result(found, expected)
    check_result(tuple(ours), tuple(pythons))
    assert seen == noted


def check_result(found: Any, expected: Any) -> None:
    """DaCe returns a number as an array of one element."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            check_result(one, other)
    elif expected is None:
        assert found is None
    else:
        expected = np.atleast_1d(expected)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
