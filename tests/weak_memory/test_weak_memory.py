"""Threads use the runtime as weak memory allows: nothing goes wrong, and a weaker order in the code is found."""

from __future__ import annotations

import pytest

from tests.support.programs import need
from tests.support.weak_memory import Model, atomics, protocols

pytestmark = pytest.mark.xdist_group("weak_memory")  # one worker compiles the runtime, once


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    need("gcc")
    return Model(tmp_path_factory.mktemp("weak_memory"))


@pytest.mark.parametrize("name", protocols())
def test_threads_keep_their_order(model: Model, name: str) -> None:
    done = model.run(name, 200)
    assert done.returncode == 0, done.stderr


# Some that need little to compile; `make weaken` does this with all of them.
@pytest.mark.parametrize(
    ("word", "operation"), [("is_busy", "store"), ("link", "store"), ("is_complete", "load"), ("owners", "sub")]
)
def test_a_weaker_order_is_found(model: Model, word: str, operation: str) -> None:
    (atomic,) = (each for each in atomics() if each.word == word and each.operation == operation and [*each.weaker()])
    assert [name for name, text in atomic.weaker() if not model.finds(atomic, text, 400)] == []
