"""What became of builds: a table, for people who built ahead."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.text import Text

from gtstub.util.console import make_table

type State = Literal["built", "found", "missing", "failed"]

STYLES: dict[State, str] = {"built": "green", "found": "dim", "missing": "yellow", "failed": "bold red"}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Of one variant of a program. `seconds` are those of its build; `key` is its entry's, or `error` says why none."""

    program: str
    variant: str
    state: State
    seconds: float
    key: str = ""
    error: str = ""


def print_summary(outcomes: Sequence[Outcome], console: Console) -> None:
    """A line a variant; then how many there are of each state, and the errors."""
    table = make_table("program", "variant", "state", "seconds", "key")
    for outcome in outcomes:
        state = Text(outcome.state, STYLES[outcome.state])
        table.add_row(outcome.program, outcome.variant, state, f"{outcome.seconds:.1f}", outcome.key)
    console.print(table)
    counts = Counter(outcome.state for outcome in outcomes)
    console.print(", ".join(f"{counts[state]} {state}" for state in STYLES if counts[state]) or "Nothing to build.")
    for outcome in outcomes:
        if outcome.error:
            console.print(Text(outcome.error, STYLES["failed"]))
