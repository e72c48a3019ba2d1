"""Sums of memory that parts of the code hold: all together, and the most at one time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from gtstub.tools.memory.scopes import Path, Step


@dataclasses.dataclass(frozen=True)
class Held:
    """
    Memory that a part of the code allocates at its beginning and frees at its end.

    path:  where the part is
    bytes: None if unknown
    span:  the first and the last one of its blocks that need the memory, if it is allocated and freed with them
    """

    path: Path
    bytes: int | None
    span: tuple[int, int] | None = None


@dataclasses.dataclass(frozen=True)
class Amount:
    """Bytes that are known, and whether these are all."""

    at_least: int = 0
    is_known: bool = True

    @property
    def bytes(self) -> int | None:
        """None if unknown."""
        return self.at_least if self.is_known else None

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.at_least + other.at_least, self.is_known and other.is_known)

    def __or__(self, other: Amount) -> Amount:
        """The larger one."""
        return Amount(max(self.at_least, other.at_least), self.is_known and other.is_known)


def total(held: Iterable[Held], depth: int = 0) -> Amount:
    """What parts with paths of at least this length allocate. Of parts that exclude each other the largest counts."""
    own, parts = _split(held, depth)
    amount = sum((_amount(each) for each in own), Amount())
    inner = Amount()
    for (kind, _), part in parts.items():
        found = total(part, depth + 1)
        inner = inner | found if kind == "or" else inner + found
    return amount + inner


def peak(held: Iterable[Held], depth: int = 0) -> Amount:
    """The most that is held at one time: of parts that run one after the other the largest counts, too."""
    own, parts = _split(held, depth)
    amount = sum((_amount(each) for each in own if each.span is None), Amount())
    spans = [(*each.span, _amount(each)) for each in own if each.span is not None]
    most = Amount()
    for step in {*parts, *(("then", first) for first, _, _ in spans)}:
        here = (found for first, last, found in spans if first <= step[1] <= last)
        most = most | sum(here, peak(parts.get(step, ()), depth + 1))
    return amount + most


def _split(held: Iterable[Held], depth: int) -> tuple[list[Held], dict[Step, list[Held]]]:
    """What has a path of this length, and the other memory by the next step to it."""
    own: list[Held] = []
    parts: dict[Step, list[Held]] = {}
    for each in held:
        if len(each.path) == depth:
            own.append(each)
        else:
            parts.setdefault(each.path[depth], []).append(each)
    return own, parts


def _amount(held: Held) -> Amount:
    return Amount(held.bytes or 0, held.bytes is not None)
