"""The Python host recognises the objects of the call before, and notices each change."""

from __future__ import annotations

import gc
import weakref
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
    Field,
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


def pass_thrice(bound: Bound) -> set[int]:
    """Passes a field; it is dead when this returns its address."""
    vn = edge_field()
    for _ in range(3):
        call(bound, vn=vn)
    return {id(vn)}


def swap(bound: Bound) -> set[int]:
    now, new = edge_field(), edge_field()
    for vn in (now, new, now, new, now):
        call(bound, vn=vn)
    return {id(now), id(new)}


def pass_in_a_cycle(bound: Bound) -> set[int]:
    """The collector finds the field, and not a reference count."""
    vn = edge_field()
    object.__setattr__(vn, "self", vn)
    for _ in range(3):
        call(bound, vn=vn)
    old = id(vn)
    del vn
    gc.collect()
    return {old}


class Last(Field):
    """Passes itself when it dies."""

    def __del__(self) -> None:
        bound = getattr(self, "bound", None)
        for _ in range(3 if bound is not None else 0):
            call(bound, vn=self)  # type: ignore[arg-type]


def pass_at_the_end(bound: Bound) -> set[int]:
    vn = Last(EK, np.zeros((EDGES, LEVELS)))
    object.__setattr__(vn, "bound", bound)
    return {id(vn)}


def pass_at_the_end_of_a_cycle(bound: Bound) -> set[int]:
    gc.collect()  # what this frees would be reused first
    vn = Last(EK, np.zeros((EDGES, LEVELS)))
    object.__setattr__(vn, "bound", bound)
    object.__setattr__(vn, "self", vn)
    old = id(vn)
    del vn
    gc.collect()
    return {old}


class Neighbour:
    """Passes a field when it dies."""

    def __init__(self, bound: Bound, vn: Field) -> None:
        self.bound, self.vn = bound, vn

    def __del__(self) -> None:
        for _ in range(3):
            call(self.bound, vn=self.vn)


def pass_by_another_one_of_a_cycle(bound: Bound) -> set[int]:
    """The field itself has no finalizer, as those of gt4py."""
    gc.collect()
    vn = edge_field()
    object.__setattr__(vn, "neighbour", Neighbour(bound, vn))
    old = id(vn)
    del vn
    gc.collect()
    return {old}


@needs_frees
@pytest.mark.parametrize(
    "die",
    [
        *(pass_thrice, swap, pass_in_a_cycle, pass_at_the_end),
        *(pass_at_the_end_of_a_cycle, pass_by_another_one_of_a_cycle),
    ],
)
def test_a_new_object_at_the_address_of_a_dead_one_is_not_taken_for_it(
    bound: Bound, die: Callable[[Bound], set[int]]
) -> None:
    memory = np.zeros((EDGES, LEVELS))
    kind = Last if die in (pass_at_the_end, pass_at_the_end_of_a_cycle) else Field  # their objects may differ in size
    reused = 0
    neighbours: list[Field] = []
    for _ in range(200):
        # The allocator reuses a free block before it takes new memory, unless the whole pool around it is free, or
        # something else takes the block first. Neighbours of earlier rounds stay, so that few other blocks are free.
        neighbours += [kind(EK, memory) for _ in range(1000)]
        old = die(bound)
        others = [kind(EK, memory) for _ in range(1000)]
        for other in others:
            if id(other) in old:
                assert call(bound, vn=other)["vn"] == address(memory)
                reused += 1
        if reused >= 5:
            break
    assert reused > 0


def test_a_weak_reference_that_somebody_keeps_outlives_the_program(bound: Bound) -> None:
    program = bound.load()
    vn, other = edge_field(), edge_field()
    for _ in range(3):
        call(bound, program, vn=vn, out=other)
    kept = [*weakref.getweakrefs(vn), *weakref.getweakrefs(other)]
    assert len(kept) == 2
    for reference in kept:
        forget: Any = reference.__callback__
        for anything in ((), (vn,), (None, 1), (reference,)):
            forget(*anything)
        assert call(bound, program, vn=vn, out=other)["vn"] == address(vn._ndarray)
    del program, vn
    del other
    assert [reference() for reference in kept] == [None, None]


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


class Next:
    """An integer that is another one each time."""

    def __init__(self) -> None:
        self.value = 0

    def __index__(self) -> int:
        self.value += 1
        return self.value


def test_scalars_in_any_order(bound: Bound) -> None:
    changing = Next()
    expected = 0
    for n in (7, 7, changing, changing, 7, np.int32(8), 7, 1000, 7, int("1000"), changing, np.int32(8), 7):
        expected = changing.value + 1 if n is changing else n
        assert call(bound, n=n)["n"] == expected


def test_a_refused_scalar_leaves_nothing(bound: Bound) -> None:
    for wrong in ("7", 1 << 40, None):
        assert call(bound, n=7)["n"] == 7
        with pytest.raises((TypeError, ValueError)):
            call(bound, n=wrong)
        assert call(bound, n=7)["n"] == 7


@needs_frees
def test_a_new_number_at_the_address_of_a_dead_one_is_not_taken_for_it(bound: Bound) -> None:
    for number in range(1000, 1100):
        n = int(str(number))
        assert call(bound, n=n)["n"] == call(bound, n=n)["n"] == number


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
