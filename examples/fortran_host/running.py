"""Runs of the hosts: what they print, the fields they write, and what they have loaded."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from examples.fortran_host.building import ROOT
from examples.fortran_host.prepare import Array


@dataclasses.dataclass(frozen=True)
class Timer:
    """A row of the table: microseconds of a call, and seconds in total."""

    calls: int
    least: float
    average: float
    most: float
    total: float


@dataclasses.dataclass(frozen=True)
class Run:
    """What a host printed, its table as numbers, the fields it wrote, and the files that it had mapped at the end."""

    output: str
    timers: Mapping[str, Timer]
    results: Path

    @property
    def libraries(self) -> set[str]:
        lines = (self.results / "maps.txt").read_text(encoding="utf-8").splitlines()
        return {Path(line.split()[5]).name for line in lines if len(line.split()) > 5}

    def problems(self, expected: Mapping[str, Array]) -> Iterator[str]:
        """Which fields are not, bit for bit, what is expected."""
        for path in sorted(self.results.glob("*.bin")):
            wanted = expected[path.stem]
            found = np.fromfile(path, wanted.dtype).reshape(wanted.shape, order="F")
            if found.tobytes() != np.ascontiguousarray(wanted).tobytes():
                yield f"'{path.stem}' differs by at most {np.max(np.abs(found - wanted)):.1e}"


def run_host(build: Path, state: Path, granule: Path, results: Path) -> Run:
    """The host without Python: it gets an environment without a word of it."""
    return _host([build / "fortran_host", state, granule, results], {"PATH": os.environ["PATH"]}, results)


def run_embedded(build: Path, state: Path, results: Path, gtstub: bool, way: str = "") -> Run:
    """
    The host with Python in it, whose programs run through gtstub, or through gt4py's own backend. If `way` is 'handed',
    Python hands over a step, and is not entered for the others.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
        "PYTHONOPTIMIZE": "1",
        "PY2FGEN_EXTRA_CALLABLES": "examples.fortran_host.embedded:use_gtstub" if gtstub else "",
        "ICON4PY_WAIT_FOR_COMPILATION": "1",
        "GT4PY_BUILD_JOBS_MODE": "serial",  # this process is no Python that could be started again as a worker
    }
    return _host([build / "embedded_host", state, results, Path(way)], environment, results)


def _host(command: list[Path], environment: Mapping[str, str], results: Path) -> Run:
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    environment = {**environment, "OMP_NUM_THREADS": "1"}  # a tiny grid gains nothing by more
    done = subprocess.run(list(map(str, command)), env=environment, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{done.stdout}{done.stderr}\n{command[0].name} failed with status {done.returncode}.")
    return Run(done.stdout, dict(_timers(done.stdout)), results)


def _timers(output: str) -> Iterator[tuple[str, Timer]]:
    for line in output.splitlines():
        if found := re.fullmatch(r"(.*?)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)", line):
            name, calls, *times = found.groups()
            yield name, Timer(int(calls), *map(float, times))
