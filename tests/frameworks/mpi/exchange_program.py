"""
What each rank of test_captured_exchange.py runs: captures a method with a halo exchange, whole and in parts.

    python exchange_program.py LIBRARIES RESULTS
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import gtstub
from gtstub import _host
from gtstub.errors import CaptureError

SIZE = 6


class Ring:
    """Two programs, and an exchange with both neighbors between them."""

    def __init__(self, scale: Any, comm: MPI.Intracomm) -> None:
        self.scale, self.comm = scale, comm
        self.a, self.b, self.c = np.arange(SIZE) + 10.0 * comm.rank, np.zeros(SIZE), np.zeros(SIZE)
        self.inner = self.a[1:-1], 2.0, self.b[1:-1]
        self.calls = itertools.count()  # A number would be put back.

    def first(self) -> None:
        self.scale(*self.inner)

    def exchange(self, x: Any) -> None:
        left, right = (self.comm.rank - 1) % self.comm.size, (self.comm.rank + 1) % self.comm.size
        self.comm.Sendrecv(x[1:2], left, 0, x[-1:], right, 0)
        self.comm.Sendrecv(x[-2:-1], right, 1, x[:1], left, 1)

    def second(self) -> None:
        self.scale(self.b, 3.0, self.c)

    def run(self) -> None:
        self.first()
        self.exchange(self.b)
        self.second()

    def refused_on_one_rank(self) -> None:
        """At its second call, and then communicates."""
        self.scale(self.a, float(next(self.calls)) if self.comm.rank == 0 else 2.0, self.b)
        self.exchange(self.b)

    def different_on_one_rank(self) -> None:
        self.first()
        if self.comm.rank == 0:
            self.b[2] = 7.0
        self.received = self.comm.sendrecv(0, 1 - self.comm.rank, source=1 - self.comm.rank)


def refusal(method: Callable[[], None]) -> str:
    try:
        gtstub.capture(method, name="run")
    except CaptureError as error:
        return str(error)
    return ""


def main(libraries: Path, results: Path) -> None:
    scale = _host.load(libraries / "libscale_stub.so", libraries / "libscale.so")
    ring = Ring(scale, MPI.COMM_WORLD)
    on_one = [refusal(ring.refused_on_one_rank), refusal(ring.different_on_one_rank)]
    refused = refusal(ring.run)
    step = gtstub.Step([gtstub.capture(ring.first), gtstub.action(ring.exchange, ring.b), gtstub.capture(ring.second)])
    ring.a += 1.0
    step()
    said = {"refused": refused, "on one rank": on_one, "c": ring.c.tolist()}
    (results / f"{ring.comm.rank}.json").write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
