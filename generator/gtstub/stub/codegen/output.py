"""Generated texts end in their own SHA-256, so that gtstub recognises files that were edited by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from gtstub.errors import GtstubError
from gtstub.stub.codegen.hosts import LANGUAGES

DIGEST_LINE = "gtstub: sha256 of the text above: "

C_COMMENT = ("/* ", " */")


def sign(text: str, comment: tuple[str, str]) -> str:
    """The text with its digest in a last line; `comment` is the beginning and the end of a comment."""
    begin, end = comment
    return f"{text}{begin}{DIGEST_LINE}{hashlib.sha256(text.encode()).hexdigest()}{end}\n"


def is_unedited(text: str) -> bool:
    """Whether a generated text is still as gtstub wrote it."""
    comments = (C_COMMENT, *(language.comment for language in LANGUAGES.values()))
    return any(text == sign(text.rpartition(comment[0] + DIGEST_LINE)[0], comment) for comment in comments)


def refuse_edited(files: Iterable[Path]) -> None:
    """Raises GtstubError for the first existing stub file that was edited by hand."""
    for file in files:
        if file.is_file() and _is_edited(file):
            raise GtstubError(f"'{file}' was edited by hand: move it away, or replace it with '--force'.")


def problem(file: Path, text: str) -> str | None:
    """Why a stub file does not have this text; None if it has."""
    if not file.is_file():
        return f"'{file}' is missing: run 'gtstub generate'."
    if file.read_bytes() == text.encode():
        return None
    if _is_edited(file):
        return f"'{file}' was edited by hand."
    return f"'{file}' is out of date: run 'gtstub generate'."


def _is_edited(file: Path) -> bool:
    return not is_unedited(file.read_text(encoding="utf-8", errors="replace"))
