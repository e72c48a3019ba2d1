"""Texts of files that are told from those of other files by a unified diff, as 'diff -U0' writes it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

HUNK = re.compile(r"@@ -(\d+),(\d+) \+\d+,\d+ @@\n")


def tell(pairs: Iterable[tuple[Path, Path]], texts: Mapping[Path, str]) -> str:
    """The diff of each pair, of a file that is known and one that is told from it; equal files have a head alone."""
    lines: list[str] = []
    for known, told in pairs:
        hunks = _hunks(texts[known].splitlines(True), texts[told].splitlines(True))
        lines += [f"--- {known.name}\n", f"+++ {told.name}\n", *hunks]
    return "".join(lines)


def _hunks(old: list[str], new: list[str]) -> Iterator[str]:
    """Not those of difflib.unified_diff(), which takes frequent lines for junk: in JSON, most lines are frequent."""
    for kind, i, j, k, n in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield f"@@ -{_range(i, j)} +{_range(k, n)} @@\n"
            yield from (f"-{line}" for line in old[i:j])
            yield from (f"+{line}" for line in new[k:n])


def _range(start: int, stop: int) -> str:
    """A range of no lines names the line before it."""
    return f"{start + 1 if stop > start else start},{stop - start}"


def apply(diff: str, known: Mapping[Path, str]) -> dict[Path, str]:
    """
    The texts of the files that a diff tells, which lie beside the known ones. Raises ValueError for what is no diff of
    these.
    """
    by_name = {file.name: file for file in known}
    told: dict[Path, str] = {}
    for part in re.split(r"^--- ", diff, flags=re.MULTILINE)[1:]:
        head, name, *hunks = part.splitlines(True)
        file = by_name.get(head.rstrip("\n"))
        if file is None or not name.startswith("+++ "):
            raise ValueError(f"'{head}' is no file that is known")
        lines = known[file].splitlines(True)
        told[file.with_name(name[4:].rstrip("\n"))] = "".join(_apply(hunks, lines))
    return told


def _apply(hunks: list[str], lines: list[str]) -> Iterator[str]:
    position = 0
    for hunk in hunks:
        if head := HUNK.match(hunk):
            start = int(head[1]) - (head[2] != "0")
            yield from lines[position:start]
            position = start
        elif hunk[0] == "-" and lines[position : position + 1] == [hunk[1:]]:
            position += 1
        elif hunk[0] == "+":
            yield hunk[1:]
        else:
            raise ValueError(f"'{hunk}' does not fit")
    yield from lines[position:]
