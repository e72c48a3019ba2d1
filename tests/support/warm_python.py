"""
Python processes that have imported gt4py and icon4py already, which takes seconds.

A server imports them once. For each script it forks a child, which gets the arguments, the environment and the working
directory of the request, reads the settings of gt4py from that environment, and imports gtstub itself.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.support.checkout import ROOT


class WarmPython:
    """A server, and what runs scripts in it, one at a time."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-c", "from tests.support.warm_python import serve; serve()"],
            cwd=ROOT,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a process with threads should not fork
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, script: Path, *arguments: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run([sys.executable, script, ...], capture_output=True, text=True)` in a new process."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        command = [sys.executable, str(script), *arguments]
        with tempfile.TemporaryDirectory() as folder:
            outputs = [Path(folder) / name for name in ("stdout", "stderr")]
            request = {"command": command, "env": dict(env), "cwd": str(Path.cwd()), "outputs": list(map(str, outputs))}
            self._server.stdin.write(json.dumps(request) + "\n")
            self._server.stdin.flush()
            status = int(self._server.stdout.readline())
            return subprocess.CompletedProcess(command, status, *(path.read_text() for path in outputs))

    def close(self) -> None:
        self._server.communicate(timeout=60)


def serve() -> None:
    """Runs the scripts that standard input names; the interpreter of a child ends as any other one does."""
    importlib.import_module("icon4py.model.common.model_backends")
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(**json.loads(line))
            return
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(command: list[str], env: dict[str, str], cwd: str, outputs: list[str]) -> None:
    for number, path in enumerate((os.devnull, *outputs)):
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    for name in ("gt4py.next.config", "gt4py.next.otf.compilation.cache"):
        importlib.reload(sys.modules[name])
    script = Path(command[1])
    sys.orig_argv, sys.argv, sys.path[0] = command, command[1:], str(script.parent)
    main = sys.modules["__main__"]
    main.__file__ = str(script)
    exec(compile(script.read_bytes(), script, "exec", dont_inherit=True), main.__dict__)  # postpones no annotations
