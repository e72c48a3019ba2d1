"""
Filters of templates that break and align lines. They know the comments of C and Fortran, and nothing else of them.

`pack` and `align` are for C, with lines of at most 120 characters; those that begin with `fortran` keep to the 132 that
Fortran allows in free form.
"""

from __future__ import annotations

import textwrap

C_WIDTH = 120
FORTRAN_WIDTH = 120


def pack(text: str) -> str:
    """
    Joins items, one a line, to lines that are as long as they may be.

    A line that begins a new one keeps its own indentation. No blank comes behind an opening bracket.
    """
    packed: list[str] = []
    for line in text.splitlines():
        glue = "" if packed and packed[-1].endswith(("(", "{")) else " "
        if packed and len(packed[-1]) + len(glue) + len(line.strip()) <= C_WIDTH:
            packed[-1] += glue + line.strip()
        else:
            packed.append(line)
    return _lines(packed)


def align(text: str, begin: str, end: str) -> str:
    """Puts the comments of lines into one column; a comment that does not fit behind its line comes above it."""
    return _align(text, begin, end, C_WIDTH)


def fortran_align(text: str) -> str:
    return _align(text, " ! ", "", FORTRAN_WIDTH)


def fortran_pack(text: str) -> str:
    """Joins the items of a list, one a line, to lines that are continued."""
    items = text.splitlines()
    indent = items[0][: len(items[0]) - len(items[0].lstrip())]
    joined = " ".join(item.strip() for item in items)
    lines = textwrap.wrap(joined, FORTRAN_WIDTH - len(f"{indent} &"), break_long_words=False)
    return _lines([f"{indent}{line} &" for line in lines])


def fortran_comment(text: str) -> str:
    """Breaks comments that are longer than a line; their indentation stays."""
    return _lines([part for line in text.splitlines() for part in _comment(line)])


def fortran_split(literal: str, indent: int) -> str:
    """The inside of a character literal, continued on further lines if it is long."""
    length = 80
    return f"&\n{' ' * indent}&".join(literal[i : i + length] for i in range(0, len(literal), length))


def _comment(line: str) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    text = line.strip()
    return textwrap.wrap(text, FORTRAN_WIDTH, initial_indent=indent, subsequent_indent=f"{indent}!     ") or [line]


def _align(text: str, begin: str, end: str, width: int) -> str:
    rows = [line.partition(begin) for line in text.splitlines()]
    column = max((len(code) for code, mark, _ in rows if mark), default=0)
    aligned = []
    for code, mark, comment in rows:
        if not mark:
            aligned.append(code)
        elif column + len(begin + comment) <= width:
            aligned.append(f"{code:{column}}{begin}{comment}")
        elif len(code + begin + comment) <= width:
            aligned.append(f"{code}{begin}{comment}")
        else:
            aligned += [*_above(code, begin, comment, end, width), code]
    return _lines(aligned)


def _above(code: str, begin: str, comment: str, end: str, width: int) -> list[str]:
    """A comment of its own; '/**<', which belongs behind what it describes, becomes '/**'."""
    indent = code[: len(code) - len(code.lstrip())]
    mark = begin.strip().removesuffix("<")
    rest = f"{indent}{mark} " if not end else indent + " " * (len(mark) + 1)
    text = f"{mark} {comment}"
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=rest)


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
