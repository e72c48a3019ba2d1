"""Builds that wait for a call."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from gtstub.entries.building.lazy import LazyBuild, is_left
from gtstub.entries.building.pending import hurry
from gtstub.errors import CacheError
from gtstub.programs import registry


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


def test_an_error_of_the_beginning_is_that_of_the_result() -> None:
    begun: list[int] = []

    def start() -> Future[int]:
        begun.append(1)
        raise ValueError("no")

    build = LazyBuild(start)
    for _ in range(2):
        build.begin()
    assert str(build.exception()) == "no"
    assert len(begun) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), CacheError("Mode 'Run' builds nothing.")])
def test_an_interrupted_build_begins_at_the_next_call(error: BaseException) -> None:
    errors, inner = [error], Future[int]()

    def start() -> Future[int]:
        if errors:
            raise errors.pop()
        return inner

    build = LazyBuild(start)
    with pytest.raises(type(error)):
        build.begin()
    assert is_left(build)
    build.begin()
    inner.set_result(1)
    assert build.result() == 1


def test_other_builds_are_not_left() -> None:
    assert not is_left(Future())


def test_a_variant_that_begins_is_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """So mode Build goes on while calls begin variants that were left."""
    build = LazyBuild(Future)
    program = SimpleNamespace(variants=[SimpleNamespace(result=build)])
    monkeypatch.setattr(registry, "_kept", [program])
    before = registry._set_up()
    build.begin()
    assert registry._set_up() == before + 1
