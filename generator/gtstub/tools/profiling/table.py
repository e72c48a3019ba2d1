"""Tables of profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtstub.tools.profiling.model import Calls, PositionTimes, Profile, duration, labels, percentage
from gtstub.util.console import make_table
from gtstub.util.quantity import as_size

if TYPE_CHECKING:
    from rich.table import Table


def profile_table(profile: Profile) -> Table:
    """
    A table with a row for each program and one for its initial calls, in the order of the report, and the totals. The
    arrays from the pool have a column if there were any.
    """
    all_calls = [calls for program in profile.programs for calls in (program.run, program.initial)]
    has_memory = any(calls is not None and calls.memory is not None for calls in all_calls)
    names = ("t_min", "t_avg", "t_med", "t_max", "total", "conversion t_med", "SDFG t_med")
    more = ("arrays a call",) if has_memory else ()
    table = make_table("name", "# calls", *names, "conversion share", *more)
    for column in table.columns[1:]:
        column.justify = "right"

    def add(name: str, calls: Calls) -> None:
        whole = calls.whole
        mean = whole.total / calls.calls
        times = (whole.min, mean, whole.median, whole.max, whole.total, calls.conversion.median, calls.sdfg.median)
        share = percentage(calls.conversion.total, whole.total)
        table.add_row(name, str(calls.calls), *map(duration, times), share, *_memory(calls))

    initial_labels = labels(profile.programs, "_initial")
    for label, initial_label, program in zip(labels(profile.programs), initial_labels, profile.programs, strict=True):
        if program.run is not None:
            add(label, program.run)
        if program.initial is not None:
            add(initial_label, program.initial)
    table.add_section()
    for name, parts in (
        ("total", [program.run for program in profile.programs]),
        ("total_initial", [program.initial for program in profile.programs]),
    ):
        calls = [part for part in parts if part is not None]
        whole = sum(part.whole.total for part in calls)
        share = percentage(sum(part.conversion.total for part in calls), whole)
        table.add_row(name, str(sum(part.calls for part in calls)), "", "", "", "", duration(whole), "", "", share)
    return table


def _memory(calls: Calls) -> tuple[str, ...]:
    """What the SDFG takes from the pool in a call: "12.5 MiB in 4.10 µs"."""
    if (memory := calls.memory) is None:
        return ()
    return (f"{as_size(memory.bytes / calls.calls)} in {duration(memory.time / calls.calls)}",)


def step_table(profile: Profile) -> Table:
    """
    A table with a row for each position of each step, in the order of the report, and the total of each step. The share
    of a position is that of its step.
    """
    table = make_table("step", "", "action", "# calls", "t_min", "t_avg", "t_med", "t_max", "total", "share")
    for column in (table.columns[1], *table.columns[3:]):
        column.justify = "right"
    for step in profile.steps:
        for number, position in enumerate(step.positions):
            share = percentage(position.total, step.total)
            table.add_row(step.name if number == 0 else "", str(number + 1), action(position), *_times(position), share)
        table.add_row("", "", "total", "", "", "", "", "", duration(step.total), "")
        table.add_section()
    return table


def action(position: PositionTimes) -> str:
    """What a step does at a position: `name` of a program, or `name()` of a function."""
    return position.name + ("()" if position.kind == "function" else "")


def _times(position: PositionTimes) -> tuple[str, ...]:
    time = position.time
    if time is None:
        return (str(position.calls), "", "", "", "", "")
    mean = time.total / position.calls
    return (str(position.calls), *map(duration, (time.min, mean, time.median, time.max, time.total)))
