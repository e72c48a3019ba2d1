"""Threads use the runtime as weak memory allows: nothing goes wrong, and a weaker order in the code is found."""

from __future__ import annotations

import pytest

from tests.support.programs import need
from tests.support.weak_memory import Atomic, Model, atomics, protocols

pytestmark = pytest.mark.xdist_group("weak_memory")  # one worker compiles the runtime, once


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    need("gcc")
    return Model(tmp_path_factory.mktemp("weak_memory"))


@pytest.mark.parametrize("name", protocols())
def test_threads_keep_their_order(model: Model, name: str) -> None:
    done = model.run(name, 200)
    assert done.returncode == 0, done.stderr


WEAKER = [(atomic, name, text) for atomic in atomics() for name, text in atomic.weaker()]


@pytest.mark.parametrize(
    ("atomic", "text"),
    [pytest.param(atomic, text, id=f"{atomic} -> {name}") for atomic, name, text in WEAKER],
)
def test_a_weaker_order_is_found(model: Model, atomic: Atomic, text: str) -> None:
    assert model.finds(atomic, text, 1000)
