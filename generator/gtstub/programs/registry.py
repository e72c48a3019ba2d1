"""
The programs that `gtstub.compile()` has made: waiting for all of them. And what mode Build does with a model: its calls
while it is set up, its end, and the summary.
"""

from __future__ import annotations

import atexit
import functools
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from gtstub import _host, ranks, settings
from gtstub.entries.building.lazy import LazyBuild, is_left
from gtstub.entries.building.listing import Listed, write_list
from gtstub.entries.building.outcome import Outcome, State, print_summary
from gtstub.entries.building.own_errors import OwnErrors
from gtstub.entries.building.pending import raise_all, wait_for
from gtstub.entries.cache.entry import Entry
from gtstub.errors import reason
from gtstub.settings import Mode, mode
from gtstub.util.console import make_console

if TYPE_CHECKING:
    from gtstub.programs.compiled import CompiledProgram

_begin = time.time()
_alive: weakref.WeakSet[CompiledProgram] = weakref.WeakSet()
_kept: list[CompiledProgram] = []
"""Keeps programs alive in mode Build, because the summary lists all of them."""

_others: dict[str, Entry] = {}
"""The entries that calls of gt4py's or DaCe's own have loaded in mode Build, by key."""

_listed: dict[str, Listed] = {}
"""What `settings.list_file()` is to say, by key."""

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
    Waits until all programs of `gtstub.compile()` are built, loads them, and ends the processes that built them. In
    mode Build it ends this process with a summary.

    Raises the error of a program that could not be compiled, or an ExceptionGroup of several.
    """
    if mode() == Mode.BUILD:
        stop()
    with OwnErrors():
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
    builds = {
        variant.result: program.__name__
        for program in programs
        for variant in program.variants
        if not is_left(variant.result)
    }
    try:
        wait_for(builds)
    finally:
        for release in {program.release for program in programs}:
            release()
    return programs


# --- Variants that are left for a call --------------------------------------------------------------------------------

_lazy: list[tuple[str, str, LazyBuild]] = []
"""All of them, with their programs and static arguments."""


def add_lazy(program: str, variant: str, build: LazyBuild) -> None:
    """Adds a variant to the table of those that were left, which is printed on stderr when the process ends."""
    with _lock:
        _lazy.append((program, variant, build))
    if mode() != Mode.BUILD:  # which prints them in its summary
        _print_left_at_exit()


@functools.cache
def _print_left_at_exit() -> None:
    atexit.register(_print_left)


def _print_left() -> None:
    left = [_left(program, variant) for program, variant, build in _lazy if build.is_left]
    if left and _has_summary():
        print_summary(left, make_console(stderr=True))


# --- Mode Build -------------------------------------------------------------------------------------------------------


def add_entry(entry: Entry) -> None:
    """Adds an entry that a call of gt4py's or DaCe's own has found or built to the summary."""
    _others[entry.key] = entry
    _end_at_exit()


def add_listed(program: Listed) -> None:
    """Adds a variant to the list of programs that mode Build writes when it ends."""
    if program.key not in _listed or _listed[program.key].why:  # Another backend may have a tag.
        _listed[program.key] = program
    _end_at_exit()


def load_for_set_up[**P](name: str, load: Callable[[], Callable[P, None]]) -> Callable[P, None]:
    """
    Loads a program that is called, or ends this process with a summary if it was not built, or cannot run here: entries
    may be built for another machine.
    """
    try:
        return load()
    except Exception as error:
        stop(why=f"program '{name}' is called, which cannot be loaded here: {reason(error)}")


ROUNDS = 10
"""How often mode Build runs a program since anything was set up."""


class SettingUp:
    """
    A program that runs while the model is set up: if nothing was set up in its last `ROUNDS` calls, the next call ends
    this process with a summary. So the time loop of a model ends after a few steps.
    """

    def __init__(self, name: str, program: Callable[..., None]) -> None:
        self._name, self.program = name, program
        self._known, self._count = -1, 0

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        before, self._known = self._known, _set_up()
        self._count = self._count + 1 if before == self._known else 1
        if self._count > ROUNDS:
            stop(why=f"program '{self._name}' was called {ROUNDS} times, and nothing was set up in between")
        self.program(*args, **kwargs)


def _set_up() -> int:
    """How many variants and entries the model has set up so far."""
    with _lock:
        builds = [variant.result for program in _kept for variant in program.variants if not is_left(variant.result)]
    done = [build.result() for build in builds if build.done() and not build.exception()]
    return len(builds) + len(_others.keys() - {entry.key for entry in done if isinstance(entry, Entry)})


def stop(others: Iterable[Entry] = (), why: str = "") -> NoReturn:
    """
    Ends this process with a summary on stderr when all programs are built. The exit status is 1 if a build failed.
    `others` are entries of calls of gt4py's or DaCe's own; `why` is printed before the summary.
    """
    for entry in others:
        add_entry(entry)
    atexit.unregister(_end)
    if why and _has_summary():
        text = f"gtstub: mode Build ends the run here: {why.removesuffix('.')}."
        make_console(stderr=True).print(text, soft_wrap=True)
    raise SystemExit(_summarize(_outcomes()))


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
    if _has_summary():
        print_summary(outcomes, make_console(stderr=True))
        if (file := settings.list_file()) is not None and _listed:
            _write_list(file)
    return any(each.state == "failed" for each in outcomes)


def _write_list(file: Path) -> None:
    write_list(file, list(_listed.values()))
    left_out = [program for program in _listed.values() if program.why]
    console = make_console(stderr=True)
    console.print(f"{len(_listed) - len(left_out)} listed in '{file}', {len(left_out)} left out", soft_wrap=True)
    for program in left_out:
        console.print(f"Program '{program.name}' is not listed: {program.why}.", soft_wrap=True)


def _has_summary() -> bool:
    """Whether this rank prints the summary: ranks with the same code path have the same."""
    return ranks.current().rank == ranks.current().peers[0]


def _outcomes() -> Sequence[Outcome]:
    outcomes = []
    for program in _wait_for_all():
        for variant in program.variants:
            if is_left(variant.result):
                outcomes.append(_left(program.__name__, variant.label))
                continue
            try:
                # Results of backends of gt4py itself are no entries.
                if isinstance(entry := variant.result.result(), Entry):
                    outcomes.append(outcome(entry, variant.label))
            except Exception as error:  # from the build, or because the entry was pruned in the meantime
                text = f"Program '{program.__name__}' could not be compiled: {reason(error)}"
                outcomes.append(Outcome(program.__name__, variant.label, "failed", 0.0, error=text))
    known = {each.key for each in outcomes}
    outcomes.extend(outcome(entry, "") for key, entry in _others.items() if key not in known)
    return sorted(outcomes, key=lambda each: (each.program, each.variant))


def _left(program: str, variant: str) -> Outcome:
    return Outcome(program, variant, "left", 0.0)


def outcome(entry: Entry, variant: str) -> Outcome:
    """The outcome of an existing entry: "built" if its build ended after the start of this process, else "found"."""
    manifest = entry.manifest()
    state: State = "built" if manifest.built.time >= _begin else "found"
    return Outcome(manifest.name, variant, state, manifest.built.seconds, manifest.key)
