"""
What functions can reach by variables, attributes and elements: its arrays, and how the rest is put back. A captured
method is called several times, and a time step that it counts shall count one call.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gtstub import _host
from gtstub.errors import CaptureWarning, reason
from gtstub.programs import reachable
from gtstub.programs.reachable import array_of, elements, first_kind, has_state, is_a, layout, members

MOST_OBJECTS = 100_000
"""Objects that are looked at. Numbers and texts do not count."""

LONGEST_NAME = 200
"""Characters; in a list of linked objects, names would take more memory than the objects."""

type Items = list[tuple[Any, Any]]
"""What `elements` gives."""

_WITHOUT_SELF = (types.FunctionType, types.MethodType, functools.partial)


class State:
    """
    What functions and steps can reach, as it is now. `restore` puts back attributes, elements, variables, and the
    arrays and scalars of steps. Elements of arrays are left as they are.
    """

    def __init__(self, functions: Iterable[Callable[..., object]]) -> None:
        self.arrays: dict[str, Any] = {}
        """Arrays of numpy and CuPy by names, such as 'self.vn'."""
        self._parts: list[tuple[str, Callable[[], object]]] = []
        self._names: dict[str, None] = {}  # in functions
        self._modules: list[tuple[str, dict[str, Any], set[str]]] = []  # with the names that were looked up
        self._seen: dict[int, Any] = {}  # Kept, so that no other object gets its number and no weak reference ends.
        for function in functions:
            self._look("" if is_a(function, _WITHOUT_SELF) else "self", function)

    def _look(self, first: str, function: object) -> None:
        waiting = deque[reachable.Member]([(first, function, None)])
        while waiting := waiting or deque(self._named()):  # the nearest first
            name, value, put_back = waiting.popleft()
            if put_back is not None:
                self._parts.append((name, put_back))
            if type(value) in reachable.SIMPLE or id(value) in self._seen:
                continue
            name = name if len(name) < LONGEST_NAME else f"...{name[-LONGEST_NAME // 2 :]}"
            if len(self._seen) == MOST_OBJECTS:
                _warn(f"beyond the nearest {MOST_OBJECTS} objects is neither compared nor put back")
                break
            self._seen[id(value)] = value
            array = array_of(value)
            if array is not None:
                self.arrays[f"{name} (array {len(self.arrays) + 1})" if name in self.arrays else name] = array
            is_entered = has_state(value)
            if is_entered and (kind := first_kind(value, _PUT_BACK)) is not None:
                self._parts.append((name, functools.partial(_PUT_BACK[kind], value, elements(value))))
            if is_entered and is_a(value, types.FunctionType):
                self._names |= dict.fromkeys(reachable.names(value.__code__))
            if is_entered and is_a(value, types.ModuleType):
                self._modules.append((f"{name}.", reachable.attributes(value), set()))
            if is_entered or (array is not None and array.dtype.hasobject):
                waiting.extend(members(name, value))

    def _named(self) -> Iterator[reachable.Member]:
        """The variables of modules that functions name, each once."""
        for prefix, space, known in self._modules:
            yield from reachable.variables(prefix, space, [each for each in self._names if each not in known])
            known.update(self._names)

    def restore(self) -> None:
        for part in list(self._parts):
            name, put_back = part
            try:
                put_back()
            except Exception as error:  # of a step that refuses it, or of keys
                self._parts.remove(part)
                _warn(f"of '{name.removesuffix('.')}' cannot be put back: {type(error).__name__}: {reason(error)}")


def _warn(what: str) -> None:
    text = f"What the captured method changes {what}"
    warnings.warn(text, CaptureWarning, skip_file_prefixes=(str(Path(__file__).parents[1]),))


def _are_same(elements: Iterable[Any], before: Iterable[Any]) -> bool:
    """Whether these are the same objects in the same order."""
    return list(map(id, elements)) == list(map(id, before))


def _put_back_actions(step: _host.Step, before: Items) -> None:
    actions = [action for _, action in before]
    if not _are_same(step, actions):
        step.actions = actions


def _put_back_arguments(action: _host.BoundCall | _host.Action, before: Items) -> None:
    for name, value in before:
        now = dict(elements(action))[name]
        if now is value:
            continue
        if isinstance(now, bool | int | float | complex):
            if repr(now) != repr(value) and isinstance(action, _host.BoundCall):
                action.set(**{name: value})
        elif _place(now) != _place(value):
            has_value = _host.Action(print, value)  # which a swap needs, and does not call
            _host.Step([action, has_value]).swap(value, now)


def _place(value: Any) -> object:
    """Of an array, which a swap knows by its memory."""
    array = array_of(value)
    return id(value) if array is None else layout(array)


def _put_back_class(owner: type, before: Items) -> None:
    for name, value in before:
        if vars(owner).get(name) is not value:
            type.__setattr__(owner, name, value)


def _put_back_items(kind: type[dict[Any, Any]], mapping: dict[Any, Any], before: Items) -> None:
    if not _are_same(kind.__iter__(mapping), (key for key, _ in before)):
        kind.clear(mapping)
    for key, value in before:
        kind.__setitem__(mapping, key, value)


def _put_back_elements(kind: Any, fill: Callable[..., object], collection: Any, before: Items) -> None:
    values = [value for _, value in before]
    if not _are_same(kind.__iter__(collection), values):
        kind.clear(collection)
        fill(collection, values)


_PUT_BACK: Mapping[type, Callable[[Any, Items], object]] = {
    dict: functools.partial(_put_back_items, dict),
    OrderedDict: functools.partial(_put_back_items, OrderedDict),
    list: functools.partial(_put_back_elements, list, list.extend),
    deque: functools.partial(_put_back_elements, deque, deque.extend),
    set: functools.partial(_put_back_elements, set, set.update),
    type: _put_back_class,
    _host.Step: _put_back_actions,
    _host.BoundCall: _put_back_arguments,
    _host.Action: _put_back_arguments,
}
"""What puts back the elements of a container."""
