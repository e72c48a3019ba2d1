"""
Diffusion on a ring of cells, which each rank exports as a granule: README.md.

    python model.py build/one 51                   # one rank
    mpirun -n 2 python model.py build/two 30 21    # two ranks, with 30 and 21 cells

Each rank has its own cells, and behind them two cells of the halo: its left and its right neighbor.
"""

import argparse
from pathlib import Path

import gt4py.next as gtx
import numpy as np
from gt4py.next import neighbor_sum
from mpi4py import MPI

import gtstub
from gtstub.frameworks.mpi import use_communicator

Cell, K = gtx.Dimension("Cell"), gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
C2CDim = gtx.Dimension("C2C", kind=gtx.DimensionKind.LOCAL)
C2C = gtx.FieldOffset("C2C", source=Cell, target=(Cell, C2CDim))
Plane = gtx.Field[[Cell, K], gtx.float64]
LEVELS = 4


@gtx.field_operator
def _laplacian(x: Plane) -> Plane:
    return neighbor_sum(x(C2C), axis=C2CDim) - 2.0 * x


@gtx.program
def laplacian(x: Plane, out: Plane, cells: gtx.int32, levels: gtx.int32):
    _laplacian(x, out=out, domain={Cell: (0, cells), K: (0, levels)})


@gtx.field_operator
def _diffuse(now: Plane, laplacian_now: Plane, factor: gtx.float64) -> Plane:
    return now - factor * (neighbor_sum(laplacian_now(C2C), axis=C2CDim) - 2.0 * laplacian_now)


@gtx.program
def diffuse(now: Plane, laplacian_now: Plane, factor: gtx.float64, later: Plane, cells: gtx.int32, levels: gtx.int32):
    _diffuse(now, laplacian_now, factor, out=later, domain={Cell: (0, cells), K: (0, levels)})


class Ring:
    """The part of the ring that a rank has."""

    def __init__(self, cells: int, ranks: MPI.Comm) -> None:
        self.cells, self.ranks = cells, ranks
        self.left, self.right = ((ranks.rank + step) % ranks.size for step in (-1, 1))
        own = np.arange(cells)
        left, right = own - 1, own + 1
        left[0], right[-1] = cells, cells + 1
        halo = np.arange(cells, cells + 2)  # has no neighbors that are used
        table = np.stack([np.append(left, halo), np.append(right, halo)], axis=1).astype(np.int32)
        self.connectivities = {"C2C": gtx.as_connectivity([Cell, C2CDim], codomain=Cell, data=table)}

    def field(self) -> gtx.Field:
        """A field with the halo."""
        return gtx.as_field([Cell, K], np.zeros((self.cells + 2, LEVELS)))

    def exchange(self, field: gtx.Field) -> None:
        """Fills the halo of a field."""
        x, n = field.ndarray, self.cells
        received = np.empty((2, LEVELS))
        self.ranks.Sendrecv(x[n - 1].copy(), self.right, recvbuf=received[0], source=self.left)
        self.ranks.Sendrecv(x[0].copy(), self.left, recvbuf=received[1], source=self.right)
        x[n:] = received


def export(ring: Ring, folder: Path) -> Path:
    """A time step as a granule: the host passes the fields and exchanges halos; the granule keeps the table."""
    now, laplacian_now, later = (ring.field() for _ in range(3))
    options = {
        "horizontal_sizes": {"cells": ring.cells},
        "vertical_sizes": {"levels": LEVELS},
        "backend_tag": "CPU",
        "offset_provider": ring.connectivities,
    }
    compute_laplacian = gtstub.compile(laplacian, **options)
    compute_later = gtstub.compile(diffuse, **options)
    gtstub.wait_for_compilation()
    step = gtstub.Step(
        [
            compute_laplacian.bind(now, laplacian_now),
            gtstub.action(ring.exchange, laplacian_now),
            compute_later.bind(now, laplacian_now, 0.1, later),
            gtstub.action(ring.exchange, later),
        ]
    )
    granule = gtstub.Granule(
        "ring",
        steps={"run": step},
        arguments={"now": now, "later": later, "laplacian_now": laplacian_now},
        scalars=["factor"],
        hooks={"exchange": ring.exchange},
    )
    return granule.export(folder, force=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("folder", type=Path, help="gets a granule for each rank: rank_0, rank_1 and so on")
    parser.add_argument("cells", type=int, nargs="+", help="the number of cells of each rank")
    arguments = parser.parse_args()

    ranks = MPI.COMM_WORLD
    if len(arguments.cells) != ranks.size:
        parser.error(f"{len(arguments.cells)} numbers of cells were given for {ranks.size} ranks")
    use_communicator(ranks)
    folder = export(Ring(arguments.cells[ranks.rank], ranks), arguments.folder / f"rank_{ranks.rank}")
    print(f"rank {ranks.rank}: {arguments.cells[ranks.rank]} cells, {folder}", flush=True)


if __name__ == "__main__":  # gt4py compiles in processes of its own, which import this file
    main()
