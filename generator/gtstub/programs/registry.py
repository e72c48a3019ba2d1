"""The programs that `gtstub.compile()` has made: waiting for all of them, and the end of a run in mode Build."""

from __future__ import annotations

import atexit
import functools
import threading
import time
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn

from gtstub import _host, ranks
from gtstub.building.outcome import Outcome, State, print_summary
from gtstub.building.pending import PendingEntry, is_missing_here, raise_all, wait_for
from gtstub.cache.entry import Entry
from gtstub.errors import reason
from gtstub.settings import Mode, mode
from gtstub.util.console import make_console

if TYPE_CHECKING:
    from gtstub.programs.compiled import CompiledProgram

_begin = time.time()
_alive: weakref.WeakSet[CompiledProgram] = weakref.WeakSet()
_kept: list[CompiledProgram] = []
"""Keeps programs alive in mode Build, because the summary lists all of them."""

_lock = threading.Lock()


def register(program: CompiledProgram) -> None:
    """Adds a program to those for which `wait_for_compilation` waits."""
    with _lock:
        _alive.add(program)
        if mode() == Mode.BUILD:
            _kept.append(program)
            _end_at_exit()


def wait_for_compilation() -> None:
    """
    Waits until all programs of `gtstub.compile()` are built, loads them, and ends the processes that built them. If
    ranks exchange entries, all of them must call this function. In mode Build it ends this process with a summary.

    Raises the error of a program that could not be compiled, or an ExceptionGroup of several.
    """
    if mode() == Mode.BUILD:
        stop()
    errors: list[Exception] = []
    for program in _wait_for_all():
        try:
            program.wait()
        except ExceptionGroup as group:
            errors.extend(group.exceptions)
        except Exception as error:
            errors.append(error)
    raise_all("Programs could not be compiled", errors)


def _wait_for_all() -> Sequence[CompiledProgram]:
    with _lock:
        programs = list(_alive)
    builds = {variant.result: program.__name__ for program in programs for variant in program.variants}
    try:
        wait_for({build: name for build, name in builds.items() if not is_missing_here(build)})
        if (exchange := ranks.current().exchange) is not None:
            exchange([build for build in builds if isinstance(build, PendingEntry)])
    finally:
        for release in {program.release for program in programs}:
            release()
    return programs


# --- Mode Build -------------------------------------------------------------------------------------------------------


def stop(others: Iterable[Entry] = ()) -> NoReturn:
    """
    Ends this process with a summary on stderr when all programs are built. The exit status is 1 if a build failed.
    `others` are entries of programs that gt4py itself compiles.
    """
    outcomes = [*_outcomes(), *(outcome(entry, "") for entry in others)]
    atexit.unregister(_end)
    raise SystemExit(_summarize(outcomes))


@functools.cache
def _end_at_exit() -> None:
    """Prints the summary at exit, for scripts that end without calling a program."""
    atexit.register(_end)


def _end() -> None:
    if _summarize(_outcomes()):
        # An exit handler cannot set the exit status, and os._exit() would skip the exit handlers of gt4py and MPI.
        _host.fail_at_exit()


def _summarize(outcomes: Sequence[Outcome]) -> bool:
    """Prints the summary. Returns True if a build failed."""
    if ranks.current().rank == ranks.current().peers[0]:  # Ranks with the same code path have the same summary.
        print_summary(outcomes, make_console(stderr=True))
    return any(each.state == "failed" for each in outcomes)


def _outcomes() -> Sequence[Outcome]:
    outcomes = []
    for program in _wait_for_all():
        for variant in program.variants:
            try:
                # Results of backends of gt4py itself are no entries.
                if isinstance(entry := variant.result.result(), Entry):
                    outcomes.append(outcome(entry, variant.label))
            except Exception as error:  # from the build, or because the entry was pruned in the meantime
                text = f"Program '{program.__name__}' could not be compiled: {reason(error)}"
                outcomes.append(Outcome(program.__name__, variant.label, "failed", 0.0, error=text))
    return sorted(outcomes, key=lambda each: (each.program, each.variant))


def outcome(entry: Entry, variant: str) -> Outcome:
    """The outcome of an existing entry: "built" if its build ended after the start of this process, else "found"."""
    manifest = entry.manifest()
    state: State = "built" if manifest.built.time >= _begin else "found"
    return Outcome(manifest.name, variant, state, manifest.built.seconds, manifest.key)
