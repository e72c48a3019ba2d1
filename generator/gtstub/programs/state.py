"""
What a function has reached in attributes, variables, lists and mappings, to be put back: a captured method is called
several times, and a time step that it counts shall count one call.
"""

from __future__ import annotations

import functools
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gtstub import _host
from gtstub.programs.reachable import NO_STATE, attributes, has_state, reachable_objects, slots

type _PutBack = Callable[[], None]

_UNSET = object()


class State:
    """
    The attributes of objects, the elements of lists and mappings, and the variables that functions can reach, as they
    are now, and the arrays and scalars of steps. `restore` puts back those that are another object, and leaves
    attributes and keys that are new. Elements of arrays are left as they are.
    """

    def __init__(self, functions: Iterable[Callable[..., object]]) -> None:
        self._parts = [part for function in functions for each in reachable_objects(function) for part in _parts(each)]

    def restore(self) -> None:
        for put_back in self._parts:
            put_back()


def _parts(value: Any) -> Iterator[_PutBack]:
    if isinstance(value, _host.Step):
        actions = list(value)
        yield functools.partial(_put_back_actions, value, actions)
        for action in actions:
            yield from _parts(action)
    elif isinstance(value, _host.BoundCall | _host.Action):
        yield functools.partial(_put_back_arguments, value, _arguments(value))
    elif isinstance(value, dict):
        yield functools.partial(_put_back_items, value, dict.copy(value))
    elif isinstance(value, list):
        yield functools.partial(_put_back_elements, value, list.copy(value))
    elif isinstance(value, deque):
        yield functools.partial(_put_back_deque, value, tuple(deque.__iter__(value)))
    elif isinstance(value, set):
        yield functools.partial(_put_back_set, value, set.copy(value))
    elif isinstance(value, types.MethodType | functools.partial):
        yield from _parts(value.__func__ if isinstance(value, types.MethodType) else value.func)
        return
    if not has_state(value):
        return
    if isinstance(value, types.FunctionType):
        yield from _parts_of_function(value)
    if found := attributes(value):
        yield functools.partial(_put_back_items, found, found.copy())
    for slot, each in slots(value):
        if "__slots__" in vars(slot.__objclass__):  # not one of C
            yield functools.partial(_put_back_slot, slot, value, each)


def _parts_of_function(function: types.FunctionType) -> Iterator[_PutBack]:
    """Of its variables: those of functions around it, and those of modules that it names."""
    for cell in function.__closure__ or ():
        try:
            yield functools.partial(_put_back_cell, cell, cell.cell_contents)
        except ValueError:  # is not set
            continue
    names, outside = function.__code__.co_names, function.__globals__
    yield functools.partial(_put_back_items, outside, {name: outside[name] for name in names if name in outside})
    for module in (outside[name] for name in names if isinstance(outside.get(name), types.ModuleType)):
        if module.__name__.partition(".")[0] in NO_STATE:
            continue
        inside = vars(module)
        yield functools.partial(_put_back_items, inside, {name: inside[name] for name in names if name in inside})


def _arguments(action: _host.BoundCall | _host.Action) -> dict[Any, Any]:
    return action.arguments if isinstance(action, _host.BoundCall) else dict(enumerate(action.arrays))


def _are_same(elements: Iterable[Any], before: Iterable[Any]) -> bool:
    """Whether these are the same objects in the same order."""
    return list(map(id, elements)) == list(map(id, before))


def _put_back_actions(step: _host.Step, before: list[Any]) -> None:
    if not _are_same(step, before):
        step.actions = before


def _put_back_arguments(action: _host.BoundCall | _host.Action, before: Mapping[Any, Any]) -> None:
    for name, value in before.items():
        now = _arguments(action)[name]
        if now is value:
            continue
        if isinstance(now, bool | int | float | complex):
            if repr(now) != repr(value) and isinstance(action, _host.BoundCall):
                action.set(**{name: value})
        else:
            has_value = _host.Action(print, value)  # which a swap needs, and does not call
            _host.Step([action, has_value]).swap(value, now)


def _put_back_items(mapping: dict[Any, Any], before: Mapping[Any, Any]) -> None:
    put = OrderedDict.__setitem__ if isinstance(mapping, OrderedDict) else dict.__setitem__
    for key, value in before.items():
        if dict.get(mapping, key, _UNSET) is not value:
            put(mapping, key, value)


def _put_back_elements(elements: list[Any], before: list[Any]) -> None:
    if not _are_same(list.__iter__(elements), before):
        list.__setitem__(elements, slice(None), before)


def _put_back_deque(elements: deque[Any], before: tuple[Any, ...]) -> None:
    if not _are_same(deque.__iter__(elements), before):
        deque.clear(elements)
        deque.extend(elements, before)


def _put_back_set(elements: set[Any], before: set[Any]) -> None:
    if set(map(id, elements)) != set(map(id, before)):
        set.clear(elements)
        set.update(elements, before)


def _put_back_cell(cell: types.CellType, value: Any) -> None:
    try:
        is_same = cell.cell_contents is value
    except ValueError:  # is not set any more
        is_same = False
    if not is_same:
        cell.cell_contents = value


def _put_back_slot(slot: types.MemberDescriptorType, owner: Any, value: Any) -> None:
    try:
        is_same = slot.__get__(owner) is value
    except AttributeError:  # is not set any more
        is_same = False
    if not is_same:
        slot.__set__(owner, value)
