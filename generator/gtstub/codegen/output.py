"""Generated files: which of them were edited by hand, and which are out of date."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gtstub.codegen.signing import is_unedited
from gtstub.errors import GtstubError


def refuse_edited(files: Iterable[Path]) -> None:
    """Raises GtstubError for the first stub file whose text is not gtstub's own."""
    for file in files:
        if file.exists() and _is_edited(file):
            raise GtstubError(f"'{file}' was edited by hand: move it away, or replace it with '--force'.")


def problem(file: Path, text: str) -> str | None:
    """What is wrong with a stub file that should have this text; None where nothing is."""
    if not file.exists():
        return f"'{file}' is missing: run 'gtstub generate'."
    if file.read_bytes() == text.encode():
        return None
    if _is_edited(file):
        return f"'{file}' was edited by hand."
    return f"'{file}' is out of date: run 'gtstub generate'."


def _is_edited(file: Path) -> bool:
    return not is_unedited(file.read_text(encoding="utf-8", errors="replace"))
