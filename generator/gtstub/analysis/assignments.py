"""Symbols that an SDFG assigns itself. One that is read before may also be an argument, with another value."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]


class Assignments:
    """The assignments on the edges of an SDFG."""

    def __init__(self, sdfg: Json) -> None:
        self._sdfg = sdfg
        self._edges = tuple(_assigning(sdfg))
        self._words: dict[int, collections.Counter[str]] = {}

    def are_first(self, name: str) -> bool:
        """
        Whether a symbol is assigned on one edge, and is mentioned nowhere but behind it. The same must be true of all
        arrays whose descriptors mention the symbol.
        """
        edges = [(region, edge) for region, edge in self._edges if name in _attributes(edge)["assignments"]]
        if len(edges) != 1:
            return False
        ((region, edge),) = edges
        arrays = self._sdfg["attributes"]["_arrays"]
        names = [name, *(array for array, descriptor in arrays.items() if self._count([name], [descriptor]))]
        reads = [_attributes(edge).get("condition"), *_attributes(edge)["assignments"].values()]
        everywhere = [*self._sdfg["nodes"], *self._sdfg.get("edges", ())]
        return not self._count(names, reads) and self._count(names, everywhere) == self._count(
            names, [edge, *_behind(region, edge)]
        )

    def _count(self, names: Iterable[str], parts: Iterable[Any]) -> int:
        return sum(self._words_in(part)[name] for part in parts for name in names)

    def _words_in(self, part: Any) -> collections.Counter[str]:
        if isinstance(part, str):
            return _words(part)
        if id(part) not in self._words:
            self._words[id(part)] = _words(json.dumps(part))
        return self._words[id(part)]


def _words(text: str) -> collections.Counter[str]:
    return collections.Counter(re.findall(r"[A-Za-z_]\w*", text))


def _attributes(edge: Json) -> Json:
    attributes: Json = edge["attributes"]["data"]["attributes"]
    return attributes


def _assigning(sdfg: Json) -> Iterator[tuple[Json, Json]]:
    """The edges with assignments, each with its region."""
    pending = [sdfg]
    while pending:
        region = pending.pop()
        yield from ((region, edge) for edge in region.get("edges", ()) if _attributes(edge).get("assignments"))
        for block in region.get("nodes", ()):
            pending += [branch for _, branch in block.get("branches", ())]
            if block["type"] != "SDFGState":
                pending.append(block)


def _behind(region: Json, edge: Json) -> Sequence[Json]:
    """The blocks of a region that run only after an edge was taken, and the edges from them."""
    others = [each for each in region["edges"] if each is not edge]
    later = {str(each["dst"]) for each in region["edges"]}
    pending = [str(block["id"]) for block in region["nodes"] if str(block["id"]) not in later]
    if len(pending) != 1 and region.get("start_block") is not None:
        pending.append(str(region["start_block"]))  # as in DaCe, it counts only if the edges do not tell the first one
    if not pending:
        return ()
    before: set[str] = set()
    while pending:
        block = pending.pop()
        if block not in before:
            before.add(block)
            pending += [str(each["dst"]) for each in others if str(each["src"]) == block]
    blocks = [block for block in region["nodes"] if str(block["id"]) not in before]
    return [*blocks, *(each for each in others if str(each["src"]) not in before)]
