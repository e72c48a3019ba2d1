"""
Template filters that break and align lines of C and Fortran. They parse nothing but comments.

Lines have at most 120 characters; Fortran allows 132 in free form.
"""

from __future__ import annotations

import textwrap

WIDTH = 120


def pack(text: str) -> str:
    """Fills lines with items, which come one a line. The first item of a line keeps its indentation."""
    packed: list[str] = []
    for line in text.splitlines():
        glue = "" if packed and packed[-1].endswith(("(", "{")) else " "
        if packed and len(packed[-1]) + len(glue) + len(line.strip()) <= WIDTH:
            packed[-1] += glue + line.strip()
        else:
            packed.append(line)
    return _lines(packed)


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
    return _lines(aligned)


def fortran_pack(text: str) -> str:
    """Fills continued lines with the items of a list, which come one a line."""
    items = text.splitlines()
    indent = items[0][: len(items[0]) - len(items[0].lstrip())]
    joined = " ".join(item.strip() for item in items)
    lines = textwrap.wrap(joined, WIDTH - len(f"{indent} &"), break_long_words=False)
    return _lines([f"{indent}{line} &" for line in lines])


def fortran_comment(text: str) -> str:
    """Breaks comments that are too long, and keeps their indentation."""
    lines = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        later = f"{indent}!     "
        lines += textwrap.wrap(line.strip(), WIDTH, initial_indent=indent, subsequent_indent=later) or [line]
    return _lines(lines)


def fortran_split(literal: str, indent: int) -> str:
    """The content of a character literal, continued on further lines if it is long."""
    length = 80
    return f"&\n{' ' * indent}&".join(literal[i : i + length] for i in range(0, len(literal), length))


def _above(code: str, begin: str, comment: str, end: str) -> list[str]:
    """The comment on lines of its own; '/**<', which documents the code before it, becomes '/**'."""
    indent = code[: len(code) - len(code.lstrip())]
    mark = begin.strip().removesuffix("<")
    rest = f"{indent}{mark} " if not end else indent + " " * (len(mark) + 1)
    text = f"{mark} {comment}"
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=rest)


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
