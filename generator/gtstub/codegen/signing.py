"""Generated texts end in their own SHA-256, so that an edit by hand shows."""

from __future__ import annotations

import hashlib

DIGEST_LINE = "gtstub: sha256 of the text above: "

COMMENTS = (("/* ", " */"), ("! ", ""))
"""How a comment begins and ends in C and in Fortran."""


def sign_c(text: str) -> str:
    return _sign(text, *COMMENTS[0])


def sign_fortran(text: str) -> str:
    return _sign(text, *COMMENTS[1])


def is_unedited(text: str) -> bool:
    """Whether a generated text is still what gtstub wrote."""
    return any(text == _sign(text.rpartition(begin + DIGEST_LINE)[0], begin, end) for begin, end in COMMENTS)


def _sign(text: str, begin: str, end: str) -> str:
    return f"{text}{begin}{DIGEST_LINE}{hashlib.sha256(text.encode()).hexdigest()}{end}\n"
