"""Symbols that an SDFG assigns itself. One that is read before may also be an argument, with another value."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gtstub.stub.sdfg.flow import only_behind
from gtstub.stub.sdfg.model import Sdfg, regions_in, words_in


class Assignments:
    """The assignments on the edges of an SDFG."""

    def __init__(self, sdfg: Sdfg) -> None:
        self._sdfg = sdfg
        self._edges = [(region, edge) for region in regions_in(sdfg) for edge in region.edges if edge.assignments]
        self._names: dict[int, collections.Counter[str]] = {}

    def are_first(self, name: str) -> bool:
        """
        Whether a symbol is assigned on one edge, and is mentioned nowhere but behind it. The same must be true of all
        arrays whose descriptors mention the symbol.
        """
        edges = [(region, edge) for region, edge in self._edges if name in edge.assignments]
        if len(edges) != 1:
            return False
        ((region, edge),) = edges
        names = [name, *(array for array, each in self._sdfg.containers.items() if self._count([name], [each]))]
        everywhere = (*self._sdfg.blocks.values(), *self._sdfg.edges)
        return not self._count(names, [edge.condition, *edge.assignments.values()]) and self._count(
            names, everywhere
        ) == self._count(names, [edge, *only_behind(region, edge)])

    def _count(self, names: Iterable[str], parts: Iterable[Any]) -> int:
        return sum(self._names_in(part)[name] for part in parts for name in names)

    def _names_in(self, part: Any) -> collections.Counter[str]:
        if isinstance(part, str | None):
            return collections.Counter(words_in(part or ""))
        if id(part) not in self._names:
            self._names[id(part)] = collections.Counter(words_in(*_texts(part)))
        return self._names[id(part)]


def _texts(part: Any) -> Iterator[str]:
    """All texts in a part of an SDFG, labels and names included."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping):
        for name, value in part.items():
            yield from (*_texts(name), *_texts(value))
    elif isinstance(part, tuple | list):
        for each in part:
            yield from _texts(each)
    elif dataclasses.is_dataclass(part):
        for field in dataclasses.fields(part):
            yield from _texts(getattr(part, field.name))
