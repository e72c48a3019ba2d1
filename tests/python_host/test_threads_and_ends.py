"""The Python host in threads, after forks, and at the end of the interpreter."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.model import Axis
from tests.support.hosting import (
    Bound,
    address,
    edge_field,
    good_arguments,
    run_script,
)
from tests.support.signatures import K, field, program, scalar, sdfg, symbol
from tests.support.signatures import array as array_argument

pytestmark = pytest.mark.sanitizer


def in_threads(count: int, function: Callable[[int], None]) -> None:
    errors: list[BaseException] = []

    def run(i: int) -> None:
        try:
            function(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.usefixtures("no_deadlock")
def test_one_call_of_a_program_runs_at_a_time(bound: Bound) -> None:
    bound.recorder.behaviour.delay = 500
    bound.recorder.behaviour.overlaps = 0
    fields = [edge_field() for _ in range(4)]

    def run(i: int) -> None:
        for _ in range(25):
            bound.program(**{**good_arguments(), "vn": fields[i], "n": i})

    try:
        in_threads(4, run)
    finally:
        bound.recorder.behaviour.delay = 0
    calls = bound.recorder.calls()
    assert len(calls) == 100
    assert bound.recorder.behaviour.overlaps == 0
    assert all(got["vn"] == address(fields[got["n"]]._ndarray) for got in calls)  # type: ignore[index]


@pytest.mark.usefixtures("no_deadlock")
def test_two_programs_run_at_once_because_the_gil_is_released(bound: Bound) -> None:
    """The first one runs until the other one does, or for longer than that takes on any machine."""
    programs = [bound.load(), bound.load()]
    behaviour = bound.recorder.behaviour
    behaviour.delay, behaviour.until_overlap, behaviour.overlaps = 30_000_000, True, 0
    try:
        in_threads(2, lambda i: programs[i](**good_arguments()))
    finally:
        behaviour.delay, behaviour.until_overlap = 0, False
    assert behaviour.overlaps == 1


SCRIPT = """
import os, sys, threading
from tests.support.hosting import good_arguments
from gtstub import _host
program = _host.load(sys.argv[1], sys.argv[2])
good = good_arguments()
program(**good)
"""


def test_a_forked_child_is_told_to_load_again(bound: Bound) -> None:
    text = f"""{SCRIPT}
child = os.fork()
if child == 0:
    try:
        program(**good)
    except RuntimeError as error:
        print(error, flush=True)
    again = _host.load(sys.argv[1], sys.argv[2])
    print(again(**good), flush=True)
    del program, again
    sys.exit(0)
_, status = os.waitpid(child, 0)
program(**good)
print(status)
"""
    assert run_script(text, bound.stub, bound.library).splitlines() == [
        "Program 'host' was loaded before this process was forked; load it again in the child, in Python"
        " by with_backend() or gtstub.compile().",
        "None",
        "0",
    ]


ENDINGS = {
    "as a global": "",
    "in a cycle": "cycle = [program]; cycle.append(cycle); del program",
    "in an exit function": "import atexit; atexit.register(lambda: program(**good))",
    "called by a finaliser": """
class Last:
    def __del__(self, program=program, good=good):
        program(**good)
import builtins
builtins.last = Last()
""",
    "in a thread that runs on": """
has_called = threading.Event()
def forever():
    while True:
        program(**good)
        has_called.set()
threading.Thread(target=forever, daemon=True).start()
has_called.wait()
""",
    "in a cycle with its metrics": "program.set_metrics(globals(), 'LEVEL', 0, print); LEVEL = -1; program(**good)",
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_the_interpreter_ends_well_with_a_program(bound: Bound, ending: str) -> None:
    assert run_script(f"{SCRIPT}\n{ending}\nprint('done')", bound.stub, bound.library) == "done\n"


BUSY = """
import os, signal, sys, threading, time
from pathlib import Path
from gtstub import _host
from tests.support.hosting import good_arguments
from tests.support.sdfg_libraries import Recorder

program, arguments = _host.load(*sys.argv[1:3]), good_arguments()
call = program.bind(**arguments)
step = _host.Step([call])
behaviour = Recorder(Path(sys.argv[2])).behaviour
behaviour.delay = 300_000_000
threading.Thread(target=lambda: program(**good_arguments()), daemon=True).start()
while behaviour.running == 0:
    time.sleep(0.001)
"""
"""Another thread is in a call that would take five minutes."""


@pytest.mark.parametrize(
    "waiting",
    ["program(**arguments)", "call.set(n=1)", "step.set(n=1)", "step.swap(arguments['vn'], arguments['out'])"],
)
def test_a_thread_that_waits_can_be_interrupted(bound: Bound, waiting: str) -> None:
    """The main thread waits for a call that would take five minutes, and gets Ctrl-C meanwhile."""
    interrupting = f"""
def interrupt():
    while True:
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in the background does not have
threading.Thread(target=interrupt, daemon=True).start()
try:
    {waiting}
except KeyboardInterrupt:
    os.write(1, b"interrupted")
os._exit(0)
"""
    assert run_script(BUSY + interrupting, bound.stub, bound.library) == "interrupted"


FINALIZER = """
class Finalizer:
    def __del__(self, program=program, call=call, arguments=arguments, write=os.write, error=RuntimeError):
        try:
            {waiting}
        except error as caught:
            write(1, str(caught).encode())

import builtins
builtins.last = Finalizer()
"""


@pytest.mark.parametrize("waiting", ["program(**arguments)", "call.set(n=1)"])
def test_a_finalizer_does_not_wait_for_a_thread_that_will_never_leave(bound: Bound, waiting: str) -> None:
    assert run_script(BUSY + FINALIZER.format(waiting=waiting), bound.stub, bound.library) == (
        "Program 'host' was called at the end of the interpreter, while another thread was in a call."
    )


def test_numpy_need_not_be_imported(tmp_path: Path, toolchain: Toolchain) -> None:
    """Neither by the host nor for a program of scalars and buffers."""
    small = Bound(
        tmp_path,
        toolchain,
        sdfg(array_argument("x", Axis()), symbol("n"), name="small"),
        program("small", x=field(K), n=scalar("int32")),
    )
    text = """
import array, sys
from gtstub import _host
program = _host.load(sys.argv[1], sys.argv[2])
program(array.array("d", [1.0]), 3)
print("numpy" in sys.modules)
import numpy
program(numpy.zeros(2), numpy.int32(3))
"""
    assert run_script(text, small.stub, small.library) == "False\n"
