"""Summarizes the outcomes of builds in a table."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.text import Text

from gtstub.util.console import make_table

type State = Literal["built", "found", "missing", "left", "failed"]
"""'left' is a variant that was not called, so that it was neither looked for nor built (GTSTUB_LAZY)."""

STYLES: dict[State, str] = {"built": "green", "found": "dim", "missing": "yellow", "left": "dim", "failed": "bold red"}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of one variant of a program: build time in seconds, key of its entry, or error."""

    program: str
    variant: str
    state: State
    seconds: float
    key: str = ""
    error: str = ""


def print_summary(outcomes: Sequence[Outcome], console: Console) -> None:
    """Prints a table with one row for each variant, then the number of variants in each state, then the errors."""
    table = make_table("program", "variant", "state", "seconds", "key")
    for outcome in outcomes:
        state = Text(outcome.state, STYLES[outcome.state])
        table.add_row(outcome.program, outcome.variant, state, f"{outcome.seconds:.1f}", outcome.key)
    console.print(table)
    counts = Counter(outcome.state for outcome in outcomes)
    console.print(", ".join(f"{counts[state]} {state}" for state in STYLES if counts[state]) or "Nothing to build.")
    for outcome in outcomes:
        if outcome.error:
            console.print(outcome.error, style=STYLES["failed"])
