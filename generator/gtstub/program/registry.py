"""All programs that are being compiled: waiting for them, and the end of a run in mode Build."""

from __future__ import annotations

import atexit
import concurrent.futures
import functools
import threading
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from gtstub import _host, mode, ranks
from gtstub.building.outcome import Outcome, State, print_summary
from gtstub.building.pending import Build
from gtstub.cache import entry
from gtstub.cache.store import StubArtifact
from gtstub.errors import CompilationError
from gtstub.util.console import make_error_console

if TYPE_CHECKING:
    from gtstub.program.compiled import CompiledProgram

PATIENCE = 0.3
"""Seconds of waiting before anybody is told."""

_begin = time.time()
_alive: weakref.WeakSet[CompiledProgram] = weakref.WeakSet()
_kept: list[CompiledProgram] = []
"""In mode Build: the summary has every program, also those whose callers did not keep them."""

_registry = threading.Lock()


def register(program: CompiledProgram) -> None:
    """Makes a program one that is waited for."""
    with _registry:
        _alive.add(program)
        if mode.current() == mode.Mode.BUILD:
            _kept.append(program)
            _end_at_exit()


def wait_for_compilation() -> None:
    """
    Waits until all programs of `gtstub.compile()` are built, loads them, and ends the processes that have built them.
    In mode Build it ends this process, with a summary. Where ranks exchange entries, all of them must call it.

    Raises what went wrong, an ExceptionGroup if it was more than one thing.
    """
    if mode.current() == mode.Mode.BUILD:
        stop()
    programs = _wait_for_all()
    errors: list[Exception] = []
    for program in programs:
        try:
            program.wait()
        except ExceptionGroup as group:
            errors.extend(group.exceptions)
        except Exception as error:
            errors.append(error)
    raise_all("Programs could not be compiled", errors)


def _wait_for_all() -> Sequence[CompiledProgram]:
    with _registry:
        programs = list(_alive)
    builds = {variant.artifact: program.__name__ for program in programs for variant in program.variants}
    try:
        wait_for({build: name for build, name in builds.items() if not _is_elsewhere(build)})
        if (exchange := ranks.current().exchange) is not None:
            exchange([build for build in builds if isinstance(build, Build)])
    finally:
        for release in {program.release for program in programs}:
            release()
    return programs


def raise_all(what: str, errors: Sequence[Exception]) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup(what, errors)


def _is_elsewhere(build: concurrent.futures.Future[Any]) -> bool:
    return isinstance(build, Build) and build.is_elsewhere and not build.done()


def wait_for(builds: Mapping[concurrent.futures.Future[Any], str]) -> None:
    """
    Waits for builds, each under the name of its program; says on stderr what it waits for where this takes long. Raises
    CompilationError for a build of another rank's that `wait_for_compilation` must bring.
    """
    if (name := next((name for build, name in builds.items() if _is_elsewhere(build)), None)) is not None:
        raise CompilationError(
            f"Program '{name}' is built where this rank does not see it: call 'gtstub.wait_for_compilation()' on all"
            " ranks first."
        )
    _, pending = concurrent.futures.wait(builds, timeout=PATIENCE)
    if not pending:
        return
    console = make_error_console()
    begin = time.monotonic()
    with console.status("") as status:
        while pending:
            names = list(dict.fromkeys(builds[build] for build in builds if build in pending))
            text = f"gtstub: compiling {', '.join(names[:3])}{' ...' if len(names) > 3 else ''}"
            if len(builds) > 1:
                text += f" ({len(builds) - len(pending)} of {len(builds)} variants built)"
            if not console.is_terminal:
                console.print(text)
                concurrent.futures.wait(pending)
                return
            status.update(f"{text}, {time.monotonic() - begin:.0f} s")
            _, pending = concurrent.futures.wait(pending, timeout=1, return_when=concurrent.futures.FIRST_COMPLETED)


def done(artifact: Any) -> concurrent.futures.Future[Any]:
    """What need not be built, as a build that is done."""
    build: concurrent.futures.Future[Any] = concurrent.futures.Future()
    build.set_result(artifact)
    return build


# --- Mode Build -------------------------------------------------------------------------------------------------------


def stop(others: Iterable[StubArtifact] = ()) -> NoReturn:
    """
    Ends this process when all is built, with a summary on stderr, and with 1 if something could not be built. `others`
    were built for programs that gt4py itself compiles.
    """
    outcomes = [*_outcomes(), *(outcome(artifact, "") for artifact in others)]
    atexit.unregister(_end)
    raise SystemExit(_summarize(outcomes))


@functools.cache
def _end_at_exit() -> None:
    """A script may end without having called a program."""
    atexit.register(_end)


def _end() -> None:
    if _summarize(_outcomes()):
        # Python takes no exit status from here, and os._exit() would leave out gt4py's and MPI's own ends.
        _host.fail_at_exit()


def _summarize(outcomes: Sequence[Outcome]) -> bool:
    """Prints the summary; returns whether something failed."""
    if ranks.current().rank == ranks.current().peers[0]:  # Of the ranks with one code path, all have the same to say.
        print_summary(outcomes, make_error_console())
    return any(each.state == "failed" for each in outcomes)


def _outcomes() -> Sequence[Outcome]:
    outcomes = []
    for program in _wait_for_all():
        for variant in program.variants:
            try:
                if isinstance(artifact := variant.artifact.result(), StubArtifact):  # else it is of gt4py's own
                    outcomes.append(outcome(artifact, variant.label))
            except Exception as error:  # Of the build; or the entry has been pruned since.
                text = str(error) or type(error).__name__
                outcomes.append(Outcome(program.__name__, variant.label, "failed", 0.0, error=text))
    return sorted(outcomes, key=lambda each: (each.program, each.variant))


def outcome(artifact: StubArtifact, variant: str) -> Outcome:
    """Of an entry that is there: built since this process began, or found."""
    manifest = entry.read_manifest(artifact.path)
    built = manifest["built"]
    state: State = "built" if built["time"] >= _begin else "found"
    return Outcome(manifest["name"], variant, state, built["seconds"], manifest["key"])
