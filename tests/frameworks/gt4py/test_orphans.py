"""Build processes and their compilers end with the process that started them."""

from __future__ import annotations

import itertools
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

PATIENCE = 60
"""Seconds. A test that fails waits as long."""

COMPILES = '''
import socket, subprocess, sys, time

COMPILER = [sys.executable, "-c", "import time; time.sleep(1000)"]

def compile_for_long(place):
    """Tells that it has begun through a socket, which its compiler keeps open."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        connection.sendall(b"begun")
        subprocess.run(COMPILER, pass_fds=[connection.fileno()])

def start_compiler(place):
    """Does not end its compiler when it is interrupted, as at the start of one."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        subprocess.Popen(COMPILER, pass_fds=[connection.fileno()])
        connection.sendall(b"begun")
        time.sleep(1000)
'''

OWN_POOL = """
import sys
from builds import compile_for_long
from gtstub.entries.building.pool import Pool

if __name__ == "__main__":
    with Pool(2) as pool:
        list(pool.run([sys.argv[1]], compile_for_long))
"""

WORKERS = """
import sys, time
from builds import compile_for_long
from gtstub.entries.building.workers import workers

workers.submit((time.sleep, (0,)), compile_for_long, sys.argv[1]).result()
"""

POOL_OF_GT4PY = """
import functools, os, sys, tempfile
from builds import compile_for_long
from gt4py.next.otf import runners
from gtstub.entries.building.orphans import end_with_parent
from gtstub.frameworks.gt4py.internals import prepare_workers

if __name__ == "__main__":
    runner = runners.ProcessRunner(2, tempfile.gettempdir())
    prepare_workers(runner, functools.partial(end_with_parent, os.getpid()))
    runner._pool.submit(compile_for_long, sys.argv[1]).result()
"""


START = "own at the start of a compiler"
SCRIPTS = {
    "own": OWN_POOL,
    START: OWN_POOL.replace("compile_for_long", "start_compiler"),
    "workers": WORKERS,
    "gt4py": POOL_OF_GT4PY,
}
SHELLS: dict[str, list[str]] = {"foreground": [], "background": ["env", "--ignore-signal=INT"]}
WAYS = [
    *itertools.product(("own", START), (signal.SIGTERM, signal.SIGKILL), SHELLS),
    # One function ends the workers of all pools; those that import gt4py take 6 s to start.
    ("workers", signal.SIGTERM, "foreground"),
    ("workers", signal.SIGKILL, "background"),
    ("gt4py", signal.SIGTERM, "foreground"),
    ("gt4py", signal.SIGKILL, "background"),
]


@pytest.mark.parametrize(("script", "number", "shell"), WAYS)
def test_workers_end_with_their_parent(tmp_path: Path, script: str, number: signal.Signals, shell: str) -> None:
    (tmp_path / "builds.py").write_text(COMPILES)
    (tmp_path / "script.py").write_text(SCRIPTS[script])
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{short}/socket")  # A path of pytest may be too long.
        listener.listen()
        listener.settimeout(PATIENCE)
        parent = subprocess.Popen([*SHELLS[shell], sys.executable, tmp_path / "script.py", f"{short}/socket"])
        try:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(PATIENCE)
                assert connection.recv(100) == b"begun"
                parent.send_signal(number)
                parent.wait(PATIENCE)
                assert connection.recv(100) == b"", "The worker and its compiler have closed the socket."
        finally:
            parent.kill()
            parent.wait()
