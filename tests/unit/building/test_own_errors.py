"""gtstub's own errors without the lines that lead to them, and all others with them."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

from gtstub.entries.building.own_errors import OwnErrors, is_own, trim
from gtstub.entries.cache.process import Process
from gtstub.errors import CompilationError
from gtstub.stub.signature.expressions import polynomial


def call(function: Callable[[], Any]) -> BaseException:
    """The error of a function that a user calls."""
    with pytest.raises(BaseException) as caught, OwnErrors():
        function()
    return caught.value


def lines(error: BaseException) -> int:
    """How many lines of sources the traceback of an error shows."""
    return sum("File " in line for line in traceback.format_exception(error))


def raise_own() -> None:
    try:
        raise KeyError("inner")
    except KeyError:
        raise CompilationError("It is wrong.")  # noqa: B904


def refuse() -> Process:
    return Process("host", "boot", -1, 0)  # a ValueError of a statement of gtstub


def test_own_errors_begin_where_they_are_caught() -> None:
    for function in (raise_own, refuse):
        error = call(function)
        assert is_own(error) or isinstance(error, ValueError)
        assert lines(error) <= 1
        assert error.__suppress_context__


def test_other_errors_are_shown_whole() -> None:
    def other() -> None:
        polynomial(None)  # type: ignore[arg-type]  # Python's own error, in a file of gtstub

    def users() -> None:
        raise ValueError("of the user")

    for function in (other, users):
        error = call(function)
        assert not is_own(error)
        assert lines(error) > 1


def test_a_cause_of_another_package_is_shown_whole() -> None:
    def fail() -> None:
        try:
            int("x")
        except ValueError as error:
            raise CompilationError("It is wrong.") from error

    error = call(fail)
    assert error.__cause__ is not None
    assert error.__cause__.__traceback__ is not None


def test_a_setting_shows_all_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_TRACEBACK", "full")
    assert lines(call(raise_own)) > 2


def test_nothing_is_trimmed_without_an_error() -> None:
    trim(None)
    with OwnErrors():
        pass
