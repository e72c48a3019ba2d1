"""A console for texts of files. `console.py` makes it; importing rich takes long."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from gtstub.util.visible import visible


class SafeConsole(Console):
    """Takes texts as they are, without markup, and shows their control characters as escape sequences."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, highlight=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)
