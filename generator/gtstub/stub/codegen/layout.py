"""Template filters that break and align lines. They parse nothing but comments. Lines have at most 120 characters."""

from __future__ import annotations

import re
import textwrap

WIDTH = 120


def pack(text: str, width: int = WIDTH) -> str:
    """Fills lines with items, which come one a line. The first item of a line keeps its indentation."""
    packed: list[str] = []
    for line in text.splitlines():
        glue = "" if packed and packed[-1].endswith(("(", "{")) else " "
        if packed and len(packed[-1]) + len(glue) + len(line.strip()) <= width:
            packed[-1] += glue + line.strip()
        else:
            packed.append(line)
    return joined(packed)


def fit(text: str) -> str:
    """One line, if all lines fit on one."""
    lines = text.splitlines()
    line = " ".join((lines[0], *map(str.strip, lines[1:])))
    return f"{line}\n" if len(line) <= WIDTH else text


def pack_macro(text: str) -> str:
    """The same for the lines of a macro of C: each but the last ends with a backslash."""
    return continued(pack(text, WIDTH - 2))


def continued(text: str) -> str:
    """Ends each line but the last with a backslash."""
    return " \\\n".join(text.splitlines()) + "\n"


def align(text: str, begin: str, end: str) -> str:
    """
    Puts the comments of lines into one column. A comment that does not fit after its line goes above it.

    `begin` and `end` delimit a comment; without `end` it ends with its line.
    """
    rows = [line.partition(begin) for line in text.splitlines()]
    column = max((len(code) for code, mark, _ in rows if mark), default=0)
    aligned = []
    for code, mark, comment in rows:
        if not mark:
            aligned.append(code)
        elif column + len(begin + comment) <= WIDTH:
            aligned.append(f"{code:{column}}{begin}{comment}")
        elif len(code + begin + comment) <= WIDTH:
            aligned.append(f"{code}{begin}{comment}")
        else:
            aligned += [*_above(code, begin, comment, end), code]
    return joined(aligned)


def _above(code: str, begin: str, comment: str, end: str) -> list[str]:
    """The comment on lines of its own; '/**<', which documents the code before it, becomes '/**'."""
    indent = code[: len(code) - len(code.lstrip())]
    mark = begin.strip().removesuffix("<")
    rest = f"{indent}{mark} " if not end else indent + " " * (len(mark) + 1)
    text = f"{mark} {comment}"
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=rest)


def with_slots(text: str, of: str) -> str:
    """The statements of a function of the program `self`, after the declaration of its slots if they occur."""
    return f"    {of} *const s = self->slots;\n{text}" if _SLOT.search(text) else text


_SLOT = re.compile(r"\bs->")


def joined(lines: list[str]) -> str:
    """Lines as a text."""
    return "".join(f"{line}\n" for line in lines)
