"""Builds that wait for a call."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from gtstub.building.lazy import LazyBuild, is_left
from gtstub.building.pending import hurry


def test_it_begins_once_when_it_is_needed() -> None:
    begun: list[Future[int]] = []

    def start() -> Future[int]:
        begun.append(Future())
        return begun[-1]

    build = LazyBuild(start)
    assert is_left(build)
    for _ in range(2):
        hurry(build)
        assert len(begun) == 1
    assert not is_left(build)
    assert not build.done()
    begun[0].set_result(1)
    assert build.result() == 1


def test_the_errors_of_a_build_are_its_own() -> None:
    inner: Future[int] = Future()
    build = LazyBuild(lambda: inner)
    build.begin()
    inner.set_exception(ValueError("no"))
    assert str(build.exception()) == "no"


def test_an_error_of_the_beginning_is_raised_and_kept() -> None:
    def start() -> Future[int]:
        raise ValueError("no")

    build = LazyBuild(start)
    with pytest.raises(ValueError, match="no"):
        build.begin()
    build.begin()
    assert str(build.exception()) == "no"


def test_other_builds_are_not_left() -> None:
    assert not is_left(Future())
