"""Branches that an SDFG writes as conditions on edges between blocks, as it may before DaCe's code generation."""

from __future__ import annotations

import functools
import graphlib
from collections.abc import Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]


class _UnstructuredError(Exception):
    """Branches share a block other than that after all of them."""


def structured(region: Json) -> Sequence[Json] | None:
    """
    The blocks of a region in the order in which they run, with a conditional block after each block that has several
    successors; the blocks of its branches are in it. DaCe makes the same of a region (ControlFlowRaising). None if this
    is not possible, as if there are cycles.
    """
    if not region.get("edges"):
        return tuple(region["nodes"])
    blocks = {str(block["id"]): block for block in region["nodes"]}
    edges: dict[str, list[tuple[str, str]]] = {name: [] for name in blocks}
    for edge in region["edges"]:
        edges[edge["src"]].append((edge["dst"], condition(edge["attributes"]["data"]["attributes"].get("condition"))))
    lifting = _Lifting(blocks, edges)
    try:
        found = lifting.sequence(_first(region, edges), None)
    except (_UnstructuredError, graphlib.CycleError):
        return None
    return found if lifting.has_all else None


def condition(code: Json | None) -> str:
    """The text of a condition without the parentheses around it; '' if it is always true."""
    text = ((code or {}).get("string_data") or "").strip()
    inner = text[1:-1]
    if text.startswith("(") and text.endswith(")") and not {*"()"} & {*inner}:
        text = inner
    return "" if text in ("1", "True") else text


def _first(region: Json, edges: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """The first block. As in DaCe, 'start_block' counts only if several blocks have no predecessor."""
    later = {after for out in edges.values() for after, _ in out}
    sources = [name for name in edges if name not in later]
    if len(sources) == 1:
        return sources[0]
    if str(region.get("start_block")) not in edges:
        raise _UnstructuredError
    return str(region["start_block"])


class _Lifting:
    """The blocks of a region by their ids, with the edges that leave each one."""

    def __init__(self, blocks: Mapping[str, Json], edges: Mapping[str, Sequence[tuple[str, str]]]) -> None:
        self._blocks = blocks
        self._edges = edges
        self._seen: set[str] = set()

    @property
    def has_all(self) -> bool:
        return len(self._seen) == len(self._blocks)

    @functools.cached_property
    def _order(self) -> Sequence[str]:
        """A block comes after its successors."""
        successors = {name: [to for to, _ in out] for name, out in self._edges.items()}
        return tuple(graphlib.TopologicalSorter(successors).static_order())

    @functools.cached_property
    def _always(self) -> Mapping[str, set[str]]:
        """The blocks that run after each block, whatever branches are taken, with the block itself."""
        found: dict[str, set[str]] = {}
        for name in self._order:
            after = [found[to] for to, _ in self._edges[name]]
            found[name] = {name} | (set.intersection(*after) if after else set())
        return found

    def sequence(self, first: str | None, end: str | None) -> Sequence[Json]:
        """The blocks from `first` to that before `end`."""
        found: list[Json] = []
        name = first
        while name is not None and name != end:
            if name in self._seen:
                raise _UnstructuredError
            self._seen.add(name)
            found.append(self._blocks[name])
            out = self._edges[name]
            if len(out) < 2:
                name = out[0][0] if out else None
                continue
            after = self._after(name)
            found.append(self._conditional(name, after, end))
            name = after
        return found

    def _after(self, name: str) -> str | None:
        """The first block that runs after all branches behind a block."""
        later = self._always[name] - {name}
        return max(later, key=self._order.index, default=None)

    def _conditional(self, name: str, after: str | None, end: str | None) -> Json:
        out = self._edges[name]
        branches = []
        for number, (to, text) in enumerate(out):
            is_else = number == len(out) - 1 and text in ("", f"not {out[0][1]}", f"not ({out[0][1]})")
            code = None if is_else else {"string_data": text}
            branches.append((code, {"nodes": self.sequence(to, end if after is None else after)}))
        return {"type": "ConditionalBlock", "label": f"conditional_{self._blocks[name]['label']}", "branches": branches}
