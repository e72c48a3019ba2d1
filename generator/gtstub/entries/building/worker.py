"""
A process that runs functions for the process that started it, one after the other.

It does not import the main module of the other process, unlike the processes of `multiprocessing`: what a build needs
is in modules, and the main module of a model may take a minute to import. So a model needs no
`if __name__ == "__main__"` for its builds. For a call that does need the main module, such as one with a function that
is defined there, `Worker.send` sends it along.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from multiprocessing import Pipe, connection, spawn
from pathlib import Path
from typing import Any, Literal

from gtstub import settings
from gtstub.entries.building.byte_code import open_byte_code
from gtstub.entries.building.orphans import end_with_parent
from gtstub.entries.building.own_errors import is_own
from gtstub.entries.building.progress import builds
from gtstub.errors import CacheError

PATIENCE = 5.0
"""Seconds that a worker has to exit before it is killed."""

GRACE = 1.0
"""Seconds that workers have to remove their files after an interrupt, before they are killed."""

_is_worker = False


@contextlib.contextmanager
def _without_sigpipe() -> Iterator[None]:
    """
    Makes writing to a worker that has ended an OSError also in hosts that embed Python: SIGPIPE may end them, because
    such a Python leaves signals as they are.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    try:
        yield
    finally:
        if signal.SIGPIPE not in before:
            signal.sigtimedwait({signal.SIGPIPE}, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class UnfitError(CacheError):
    """The process that is to build something differs from the one that wants it. Another worker may be able to."""


@dataclasses.dataclass(frozen=True)
class Reply:
    """
    What a worker sends: that it has `begun` a call, `news` of a build, and then the result of the call, or its error. A
    call is `unfit` if the worker cannot read it, or has raised UnfitError.
    """

    state: Literal["begun", "news", "done", "failed", "unfit"]
    value: Any = None


@dataclasses.dataclass(frozen=True)
class State:
    """What a worker has of this process since its start."""

    environment: Mapping[str, str]
    directory: Path
    path: tuple[str, ...]

    @classmethod
    def now(cls) -> State:
        # A worker has no timeline, which would replace that of this process.
        environment = {name: value for name, value in os.environ.items() if name != settings.TRACE}
        return cls(environment, Path.cwd(), tuple(map(str, sys.path)))


@dataclasses.dataclass(frozen=True)
class Worker:
    """
    A worker process. It leads a session, which contains its compilers: Ctrl-C in a terminal interrupts only the process
    that started it, which then ends all of them.
    """

    process: subprocess.Popen[bytes]
    pipe: connection.Connection[Any, Any]

    @classmethod
    def start(cls, state: State, *, idle: float | None = None, log: Path | None = None) -> Worker:
        """
        Starts a worker, which exits after `idle` seconds without a call, and writes stdout and stderr into `log` if
        that is given.
        """
        ours, theirs = Pipe()
        with theirs, contextlib.ExitStack() as files:
            prefix, writes = sys.pycache_prefix, not sys.dont_write_bytecode
            passed = [theirs.fileno()]
            if (byte_code := open_byte_code()) is not None:
                files.callback(os.close, byte_code)
                passed.append(byte_code)
                prefix, writes = f"/proc/self/fd/{byte_code}", True
            code = (
                # First the path: '' is on it, and must not be where gtstub is found.
                f"import sys; sys.path[:] = {list(state.path)!r};"
                f"sys.pycache_prefix = {prefix!r}; sys.dont_write_bytecode = {not writes};"
                "from gtstub.entries.building.worker import serve;"
                f"serve({theirs.fileno()}, {os.getpid()}, {idle!r})"
            )
            command = [spawn.get_executable(), *subprocess._args_from_interpreter_flags(), "-c", code]  # type: ignore[attr-defined]
            output = files.enter_context(log.open("wb")) if log is not None else None
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=passed,
                env=state.environment,
                cwd=state.directory,
                start_new_session=True,
            )
        return cls(process, ours)

    def send(self, function: Callable[..., Any], /, *args: Any, main: bool = False, **kwargs: Any) -> None:
        """
        Sends a call; with `main` the worker imports the main module of this process before it reads the call. Raises
        OSError if the worker has ended.
        """
        call = pickle.dumps((_main_module() if main else None, pickle.dumps((function, args, kwargs))))
        with _without_sigpipe():
            self.pipe.send_bytes(call)

    def receive(self) -> Reply:
        """Waits for the next reply. Raises EOFError or OSError if the worker has ended."""
        reply = self.pipe.recv()
        assert isinstance(reply, Reply)
        return reply

    def receive_result(self) -> Reply:
        """Waits for the reply that ends a call, and passes news on. Raises as `receive`."""
        while (reply := self.receive()).state in ("begun", "news"):
            if reply.state == "news":
                builds.note(reply.value)
        return reply

    def end(self) -> None:
        """Ends the worker, which is not to have a call, and waits for its end."""
        with contextlib.suppress(OSError), _without_sigpipe():
            self.pipe.send_bytes(b"")  # and not just closes the pipe, of which a forked process may have this end, too
        self.pipe.close()
        self._wait()

    def cause_of_exit(self, log: Path | None = None) -> str:
        """Why a worker ended by itself, as the end of a sentence."""
        self._wait()
        code = self.process.returncode
        if code < 0:
            name = signal.Signals(-code).name
            hint = ", perhaps because memory ran out" if name == "SIGKILL" else ""
            return f"{name} killed its build process{hint}"
        lines = log.read_text(errors="replace").splitlines() if log is not None and log.exists() else []
        return f"its build process ended with exit status {code}{': ' + lines[-1] if lines else ''}"

    def _wait(self, patience: float = PATIENCE) -> None:
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self._kill(signal.SIGKILL)
            self.process.wait()
        self._kill(signal.SIGKILL)  # compilers that go on

    def _kill(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        self.process.send_signal(number)


def interrupt(workers: Collection[Worker]) -> None:
    """Ends the calls of workers, the workers, and their compilers. Takes at most `GRACE` seconds."""
    for worker in workers:
        worker._kill(signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    for worker in workers:
        worker._wait(max(0.0, deadline - time.monotonic()))


def _main_module() -> dict[str, Any] | None:
    """What `multiprocessing` needs to import the main module again; None if it has none, as in an interactive run."""
    data = spawn.get_preparation_data("gtstub")
    names = ("init_main_from_name", "init_main_from_path", "sys_argv")
    found = {name: data[name] for name in names if name in data}
    return found if len(found) > 1 else None


# --- In the worker ----------------------------------------------------------------------------------------------------


def is_worker() -> bool:
    """Whether this process is a worker."""
    return _is_worker


def serve(pipe: int, parent: int, idle: float | None) -> None:
    """Runs the calls that come through a pipe, until it ends, or no call comes for `idle` seconds."""
    global _is_worker
    _is_worker = True
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    end_with_parent(parent)
    try:
        with connection.Connection(pipe) as calls:
            sending = threading.Lock()

            def send(reply: Reply) -> None:
                with sending:
                    calls.send(reply)

            builds.send_to(lambda news: send(Reply("news", news)))
            while calls.poll(idle) and (call := calls.recv_bytes()):
                send(Reply("begun"))
                send(_run(call))
    except (EOFError, ConnectionError):
        return
    except KeyboardInterrupt:  # from `end_with_parent`
        sys.exit(128 + signal.SIGINT)


def _run(call: bytes) -> Reply:
    main, rest = pickle.loads(call)
    try:
        if main is not None:
            spawn.prepare(main)
        try:
            function, args, kwargs = pickle.loads(rest)
        except Exception as error:
            return Reply("unfit", _portable(error))
        reply = Reply("done", function(*args, **kwargs))
        pickle.dumps(reply)
    except UnfitError as error:
        return Reply("unfit", _portable(error))
    except Exception as error:
        # gt4py reads the executor of a build in the call, which may need a function of the main module.
        is_lacking = main is None and isinstance(error, AttributeError) and repr(sys.modules["__main__"]) in str(error)
        return Reply("unfit" if is_lacking else "failed", _portable(error))
    return reply


def _portable(error: Exception) -> Exception:
    """The error, with its traceback as a note unless it is gtstub's own; or its text if it cannot be sent."""
    if not is_own(error) or settings.shows_frames():
        error.add_note("In a build process:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
