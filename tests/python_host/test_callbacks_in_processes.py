"""Processes whose programs call functions of Python: their forks and ends, and what watches their calls."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gtstub
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.tools.profiling.report import Report
from tests.support.calling_programs import PARALLEL, SERIAL, Built
from tests.support.checkout import ROOT
from tests.support.hosting import run_script

pytestmark = pytest.mark.sanitizer


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Built:
    return SERIAL.build(tmp_path_factory.mktemp("serial"), toolchain)


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Built:
    return PARALLEL.build(tmp_path_factory.mktemp("parallel"), toolchain)


# --- Forks, and the end of the interpreter ----------------------------------------------------------------------------

SCRIPT = """
import os, sys, threading, time
import numpy as np
from gtstub import _host
program = _host.load(sys.argv[1], sys.argv[2])
x, out = np.zeros(4), np.zeros(4)
"""


def test_the_interpreter_ends_while_a_thread_is_in_a_callback(parallel: Built) -> None:
    text = """
began = threading.Event()
def f(i, x):
    began.set()
    while True:
        time.sleep(1e-4)
threading.Thread(target=program, args=(x, out, 2, f), daemon=True).start()
began.wait()
print("ends")
"""
    for _ in range(3):
        assert run_script(SCRIPT + text, parallel.stub, parallel.library) == "ends\n"


def test_the_interpreter_ends_while_a_thread_calls_quick_callbacks(parallel: Built) -> None:
    text = """
began = threading.Event()
out = np.zeros(100_000_000)
def f(i, x):
    began.set()
    return 0.0
threading.Thread(target=program, args=(x, out, 2, f), daemon=True).start()
began.wait()
print("ends")
"""
    for _ in range(3):
        assert run_script(SCRIPT + text, parallel.stub, parallel.library) == "ends\n"


def test_a_callback_forks(serial: Built) -> None:
    """The child is in a call of its parent: it may end that call, and loads the program for calls of its own."""
    text = """
children = []
def f(i, x):
    if i == 1:
        children.append(os.fork())
    return float(i)
program(x, out, 1, f)
if children == [0]:
    other = _host.load(sys.argv[1], sys.argv[2])
    other(x, out, 1, lambda i, x: 2.0 * i)
    os._exit(0 if out.tolist() == [0.0, 2.0, 4.0, 6.0] else 1)
print(out.tolist(), os.waitpid(children[0], 0)[1])
"""
    assert run_script(SCRIPT + text, serial.stub, serial.library) == "[0.0, 1.0, 2.0, 3.0] 0\n"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("context", "problem"),
    [
        ("profile()", "A profile cannot end within a call of program 'parallel'."),
        ("checks('nan')", "Checks cannot end within a call of program 'parallel'."),
    ],
)
def test_what_waits_for_calls_cannot_end_in_a_callback(
    parallel: Built, context: str, problem: str, threads: int
) -> None:
    """It goes on then, and so has a process of its own."""
    text = f"""
import gtstub
def f(i, x):
    try:
        with gtstub.{context}:
            pass
    except RuntimeError as error:
        sys.stdout.write(f"{{error}}\\n")
    return 1.0
program(x, out, {threads}, f)
"""
    assert run_script(SCRIPT + text, parallel.stub, parallel.library) == f"{problem}\n" * 4


# --- What watches calls -----------------------------------------------------------------------------------------------


def run_watched(built: Built, text: str, **environment: str) -> tuple[str, str]:
    """The two outputs of a process that ends well."""
    paths = os.pathsep.join((str(ROOT), str(Path(gtstub.__file__).parent.parent)))
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", SCRIPT + text, built.stub, built.library],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout, done.stderr


FAILS_ONCE = """
def f(i, given):
    assert given is x
    if fails and i == 2:
        raise KeyError(i)
    return float(i)
for fails in (True, False, True, False):
    try:
        program(x, out, 1, f)
    except KeyError as error:
        print(error)
    print(out.tolist())
"""
PRINTED = "2\n[0.0, 1.0, 0.0, 0.0]\n[0.0, 1.0, 2.0, 3.0]\n" * 2


def test_debugging(parallel: Built) -> None:
    out, err = run_watched(parallel, FAILS_ONCE, GTSTUB_DEBUG="1")
    assert (out, err) == (PRINTED, "")


def test_a_recording_leaves_the_program_out(parallel: Built, tmp_path: Path) -> None:
    out, err = run_watched(parallel, FAILS_ONCE, GTSTUB_RECORD=str(tmp_path / "calls"))
    assert out == PRINTED
    assert err == "Program 'parallel' is not recorded: it calls functions of its host.\n"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_profile_of_the_process(parallel: Built, tmp_path: Path) -> None:
    out, err = run_watched(parallel, FAILS_ONCE, GTSTUB_PROFILE=str(tmp_path / "profile.json"))
    assert (out, err) == (PRINTED, "")
    (found,) = Report.load(tmp_path / "profile.json").programs
    assert found.calls == 2  # those that have not failed


def test_checks_of_values(parallel: Built) -> None:
    text = "x[1] = np.nan\n" + FAILS_ONCE
    out, err = run_watched(parallel, text, GTSTUB_CHECK="nan; warn")
    assert out == PRINTED
    found = "Argument 'x' of program 'parallel' is nan at K 1 before the call; check 'nan' refuses 1 of 4 elements.\n"
    assert err == found
