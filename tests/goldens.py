"""Golden files: committed texts that generated ones must equal, byte for byte."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


class Golden:
    """Compares a text with a committed file under tests/golden, or writes the file."""

    def __init__(self, *, regenerate: bool) -> None:
        self._regenerate = regenerate

    def check(self, name: str, text: str) -> None:
        path = FOLDER / name
        if self._regenerate:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"There is no '{name}'; write it with 'pytest --regenerate-goldens'."
        assert text == path.read_text(encoding="utf-8"), f"'{name}' differs; see 'git diff' after --regenerate-goldens."
