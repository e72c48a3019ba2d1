"""The Python host recognises the objects of the call before, and notices each change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support.allocations import needs_frees
from tests.support.hosting import (
    EDGES,
    EK,
    LEVELS,
    Bound,
    address,
    call,
    edge_field,
)

pytestmark = pytest.mark.sanitizer


class Counting:
    """A field that counts how often it is read."""

    def __init__(self, memory: Any = None) -> None:
        self.memory = np.zeros((EDGES, LEVELS)) if memory is None else memory
        self.reads = 0

    _domain = EK

    @property
    def _ndarray(self) -> Any:
        self.reads += 1
        return self.memory


class Slotted:
    """Without a place for weak references."""

    __slots__ = ("memory", "reads")
    _domain = EK

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.reads = 0

    @property
    def _ndarray(self) -> Any:
        self.reads += 1
        return self.memory


def test_a_field_is_read_once(bound: Bound) -> None:
    vn = Counting()
    for _ in range(5):
        assert call(bound, vn=vn)["vn"] == address(vn.memory)
    assert vn.reads <= 2


def test_two_fields_that_swap_are_read_once_each(bound: Bound) -> None:
    now, new = Counting(), Counting()
    for _ in range(5):
        assert call(bound, vn=now)["vn"] == address(now.memory)
        now, new = new, now
    assert now.reads <= 2
    assert new.reads <= 2


def test_a_third_field_takes_the_place_of_the_older_one(bound: Bound) -> None:
    fields = [Counting() for _ in range(3)]
    for _ in range(4):
        for vn in fields:
            assert call(bound, vn=vn)["vn"] == address(vn.memory)


def test_one_object_may_be_several_arguments(bound: Bound) -> None:
    both = edge_field()
    got = call(bound, vn=both, out=both)
    assert got["vn"] == got["out"] == address(both._ndarray)


def test_an_object_that_has_no_weak_references_is_read_at_each_call(bound: Bound) -> None:
    vn = Slotted(np.zeros((EDGES, LEVELS)))
    for _ in range(3):
        assert call(bound, vn=vn)["vn"] == address(vn.memory)
        vn.memory = np.zeros((EDGES, LEVELS))
    assert vn.reads == 3


@needs_frees
def test_a_new_object_at_the_address_of_a_dead_one_is_not_taken_for_it(bound: Bound) -> None:
    memory = np.zeros((EDGES, LEVELS))
    reused = 0
    for _ in range(20):
        vn = edge_field()
        old = id(vn)
        for _ in range(3):
            call(bound, vn=vn)
        del vn
        others = [edge_field(memory) for _ in range(1000)]
        for again in (other for other in others if id(other) == old):
            assert call(bound, vn=again)["vn"] == address(memory)
            reused += 1
    assert reused > 0


def test_none_is_not_taken_for_a_field_that_has_died(bound: Bound) -> None:
    table = np.zeros((EDGES, 2), np.int32)
    floats = np.zeros(LEVELS, np.float32)
    vn = edge_field()
    for _ in range(3):
        call(bound, vn=vn, x=(floats, (1, 1.0)), offset_provider={"E2V": table})
    del vn, floats, table
    for changed, name in (
        ({"vn": None}, "vn"),
        ({"x": (None, (1, 1.0))}, "x[0]"),
        ({"offset_provider": {"E2V": None}}, "E2V"),
    ):
        with pytest.raises(TypeError) as caught:
            call(bound, **changed)
        assert str(caught.value) == f"Argument '{name}' of program 'host' must be a field, not 'NoneType'."


def test_a_field_that_was_refused_is_refused_again(bound: Bound) -> None:
    good, bad = edge_field(), edge_field(np.zeros((EDGES, LEVELS), np.float32))
    for _ in range(3):
        call(bound, vn=good)
        with pytest.raises(TypeError):
            call(bound, vn=bad)


def set_strides(ndarray: Any) -> None:
    ndarray.strides = (ndarray.strides[0], 0)


def replace_ndarray(field: Any) -> None:
    object.__setattr__(field, "_ndarray", np.zeros((EDGES, LEVELS)))


@pytest.mark.filterwarnings("ignore:Setting the strides:DeprecationWarning")
@pytest.mark.parametrize(
    ("make", "change"), [(lambda: np.zeros((EDGES, LEVELS)), set_strides), (edge_field, replace_ndarray)]
)
def test_debugging_notices_an_array_that_was_changed_in_place(
    bound: Bound, monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any], change: Callable[[Any], None]
) -> None:
    monkeypatch.setenv("GTSTUB_DEBUG", "1")
    program = bound.load()
    vn, other = make(), edge_field()
    for _ in range(3):
        call(bound, program, vn=vn)
        call(bound, program, vn=other)
    change(vn)
    with pytest.raises(ValueError) as caught:
        call(bound, program, vn=vn)
    assert str(caught.value) == (
        "Argument 'vn' of program 'host' was changed in place (shape, strides or memory) since an earlier call."
    )
    assert bound.recorder.calls() == []
    call(bound, program, vn=other)
