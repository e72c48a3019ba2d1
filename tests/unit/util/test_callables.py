"""What messages and tables call a function."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from gtstub.util.callables import title


class Model:
    """A callable with a method and a lambda."""

    double = lambda self: 2  # noqa: E731

    def run(self) -> None: ...

    def __call__(self) -> None: ...


AT_THE_TOP = lambda: None  # noqa: E731


def inner() -> tuple[Callable[[], None], Callable[[], None]]:
    def exchange() -> None: ...

    return exchange, lambda: None


def line_of(function: Callable[..., object]) -> int:
    return function.__code__.co_firstlineno


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (Model().run, "Model.run"),
        (functools.partial(Model.run, Model()), "Model.run"),
        (Model(), "Model"),
        (len, "len"),
        (inner()[0], "exchange"),
        (inner()[1], f"inner at test_callables.py:{line_of(inner) + 3}"),
        (AT_THE_TOP, f"test_callables.py:{line_of(AT_THE_TOP)}"),
        (Model().double, f"Model at test_callables.py:{line_of(Model.double)}"),
    ],
)
def test_a_function_is_called_by_what_its_reader_finds(function: Callable[..., object], name: str) -> None:
    assert title(function) == name
