"""A program recognises its offset provider, and notices each change of it."""

from __future__ import annotations

import collections
import threading
import time
import types
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tests.support.allocations import needs_frees
from tests.support.hosting import EDGES, Bound, address, call, check_refused, domain, good_arguments

pytestmark = pytest.mark.sanitizer


def table() -> Any:
    return np.zeros((EDGES, 2), np.int32)


class Table:
    """A table that counts how often it is read."""

    _domain = domain({"Edge": (0, EDGES), "E2V": (0, 2)})

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.reads = 0

    @property
    def _ndarray(self) -> Any:
        self.reads += 1
        return self.memory


class Slotted:
    """Without a place for weak references."""

    __slots__ = ("_ndarray",)
    _ndarray: Any
    _domain = Table._domain


def assigned(provider: dict[str, Any], new: Any) -> None:
    provider["E2V"] = new


def updated(provider: dict[str, Any], new: Any) -> None:
    provider.update(E2V=new)


def cleared(provider: dict[str, Any], new: Any) -> None:
    provider.clear()
    provider.update({"E2V": new})


def deleted(provider: dict[str, Any], new: Any) -> None:
    provider.pop("E2V")
    provider.setdefault("E2V", new)


def merged(provider: dict[str, Any], new: Any) -> None:
    provider |= {"E2V": new}


@pytest.mark.parametrize("change", [assigned, updated, cleared, deleted, merged])
def test_a_changed_connectivity_is_noticed(bound: Bound, change: Callable[[dict[str, Any], Any], None]) -> None:
    provider = {"E2V": table()}
    for _ in range(3):
        for _ in range(4):
            assert call(bound, offset_provider=provider)["gt_conn_E2V"] == address(provider["E2V"])
        change(provider, table())


def test_a_connectivity_that_was_deleted_is_missing(bound: Bound) -> None:
    provider = {"E2V": table()}
    for _ in range(4):
        call(bound, offset_provider=provider)
    del provider["E2V"]
    message = "Program 'host' needs connectivity 'E2V', which the offset provider does not have."
    check_refused(bound, TypeError, message, offset_provider=provider)


@pytest.mark.parametrize("make", [dict, collections.OrderedDict, collections.UserDict, types.MappingProxyType])
def test_mappings_in_turn(bound: Bound, make: Callable[[Mapping[str, Any]], Any]) -> None:
    one, other = {"E2V": table()}, make({"E2V": table()})
    for provider in (one, one, one, other, other, other, other, one, other, one, one, one, other):
        assert call(bound, offset_provider=provider)["gt_conn_E2V"] == address(provider["E2V"])


def test_two_dicts_with_the_same_table(bound: Bound) -> None:
    shared = table()
    one, other = {"E2V": shared}, {"E2V": shared}
    for _ in range(4):
        call(bound, offset_provider=one)
    call(bound, offset_provider=other)
    one["E2V"] = table()
    for provider in (other, one, other):
        assert call(bound, offset_provider=provider)["gt_conn_E2V"] == address(provider["E2V"])


def test_several_programs_know_one_offset_provider(bound: Bound) -> None:
    provider = {"E2V": table()}
    programs = [bound.load() for _ in range(2)]
    for _ in range(2):
        for program in programs * 4:
            assert call(bound, program, offset_provider=provider)["gt_conn_E2V"] == address(provider["E2V"])
        provider["E2V"] = table()
    del program, programs
    provider["E2V"] = table()


@needs_frees
def test_a_new_dict_at_the_address_of_a_dead_one_is_not_taken_for_it(bound: Bound) -> None:
    tables = [table(), table()]
    addresses = set()
    for i in range(20):
        provider = {"E2V": tables[i % 2]}
        addresses.add(id(provider))
        for _ in range(4):
            assert call(bound, offset_provider=provider)["gt_conn_E2V"] == address(tables[i % 2])
        del provider
    assert len(addresses) < 20


def test_what_was_known_of_a_table_is_forgotten_with_it(bound: Bound) -> None:
    found = weakref.ref(first := table())
    provider = {"E2V": first}
    for _ in range(4):
        call(bound, offset_provider=provider)
    del first
    provider["E2V"] = table()
    assert found() is None
    assert call(bound, offset_provider=provider)["gt_conn_E2V"] == address(provider["E2V"])


def test_a_known_offset_provider_is_not_read(bound: Bound) -> None:
    found = Table(table())
    provider = {"E2V": found}
    for _ in range(10):
        assert call(bound, offset_provider=provider)["gt_conn_E2V"] == address(found.memory)
    assert found.reads <= 2


def test_a_dict_that_changes_while_it_is_read_is_read_again(bound: Bound) -> None:
    class Replacing(Table):
        """Puts another table into the dict when it is read for the second time, as it is passed for the second time."""

        @property
        def _ndarray(self) -> Any:
            self.reads += 1
            if self.reads == 2:
                provider["E2V"] = new
            return self.memory

    found, new = Replacing(table()), table()
    provider: dict[str, Any] = {"E2V": found}
    program = bound.load()  # which no object was passed to that had the address of this one
    for expected in (found.memory, found.memory, new, new, new):
        assert call(bound, program, offset_provider=provider)["gt_conn_E2V"] == address(expected)


def test_a_table_that_takes_itself_out_is_missing(bound: Bound) -> None:
    class Leaving(Slotted):
        """It has no weak references, so it is read in each call."""

        __slots__ = ("reads",)
        reads: int

        @property
        def _ndarray(self) -> Any:
            self.reads += 1
            if self.reads == 2:
                provider.clear()
            return memory

    memory = table()
    found = Leaving()
    found.reads = 0
    provider = {"E2V": found}
    for _ in range(2):
        call(bound, offset_provider=provider)
    with pytest.raises(TypeError, match="needs connectivity 'E2V'"):
        call(bound, offset_provider=provider)


def test_a_table_without_weak_references_is_read_at_each_call(bound: Bound) -> None:
    found = Slotted()
    provider = {"E2V": found}
    for _ in range(4):
        found._ndarray = table()
        assert call(bound, offset_provider=provider)["gt_conn_E2V"] == address(found._ndarray)


@pytest.mark.usefixtures("no_deadlock")
def test_a_running_call_keeps_a_table_that_was_taken_out(bound: Bound) -> None:
    good = good_arguments()
    provider = good["offset_provider"]
    for _ in range(4):
        bound.program(**good)
    watched = weakref.ref(provider["E2V"])
    behaviour = bound.recorder.behaviour
    behaviour.delay = 300_000
    thread = threading.Thread(target=lambda: bound.program(**good))
    thread.start()
    try:
        while behaviour.running == 0:
            time.sleep(0.001)
        provider.clear()
        assert watched() is not None
        assert behaviour.running == 1
    finally:
        behaviour.delay = 0
        thread.join()
    assert watched() is None
