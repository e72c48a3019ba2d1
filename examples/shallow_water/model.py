"""
A shallow-water model whose time step is one DaCe program, which exchanges halos by a callback.

    python model.py                   # one process
    mpirun -n 4 python model.py       # four ranks
"""

import argparse

import dace
import matplotlib.pyplot as plt
import numpy as np
from mpi4py import MPI

import gtstub

J, I = dace.symbol("J"), dace.symbol("I")


def in_python(function):
    """DaCe does not parse a function with a decorator that it does not know, but calls it."""
    return function


class Model:
    """Waves of height `h` above a depth at rest, on a periodic square. Each rank has a band of its rows."""

    gravity = 9.81  # m / s2
    depth = 100.0  # m
    spacing = 1000.0  # m

    def __init__(self, size: int, ranks: MPI.Comm) -> None:
        self.ranks = ranks
        self.rows = size // ranks.size
        if self.rows * ranks.size != size:
            raise ValueError(f"A grid of {size} rows cannot be divided among {ranks.size} ranks.")
        y, x = np.meshgrid(np.arange(self.rows) + ranks.rank * self.rows, np.arange(size), indexing="ij")
        self.h, self.u, self.v = (np.zeros((self.rows + 2, size + 2)) for _ in "huv")
        for center in (0.35 * size, 0.35 * size), (0.6 * size, 0.7 * size):
            self.h[1:-1, 1:-1] += np.exp(-((y - center[0]) ** 2 + (x - center[1]) ** 2) / (0.05 * size) ** 2)
        self.exchange(self.h)

    @in_python
    def exchange(self, field):
        """Fills the halo of a field: rows from the neighbors, columns from the other side."""
        above, below = ((self.ranks.rank + step) % self.ranks.size for step in (1, -1))
        self.ranks.Sendrecv(field[1].copy(), below, recvbuf=field[-1], source=above)
        self.ranks.Sendrecv(field[-2].copy(), above, recvbuf=field[0], source=below)
        field[:, 0], field[:, -1] = field[:, -2], field[:, 1]

    @gtstub.program
    def step(
        self,
        h: dace.float64[J + 2, I + 2],
        u: dace.float64[J + 2, I + 2],
        v: dace.float64[J + 2, I + 2],
        dt: dace.float64,
    ):
        u[1:-1, 1:-1] -= dt * self.gravity / self.spacing * (h[1:-1, 2:] - h[1:-1, 1:-1])
        v[1:-1, 1:-1] -= dt * self.gravity / self.spacing * (h[2:, 1:-1] - h[1:-1, 1:-1])
        self.exchange(u)
        self.exchange(v)
        h[1:-1, 1:-1] -= dt * self.depth / self.spacing * (u[1:-1, 1:-1] - u[1:-1, :-2] + v[1:-1, 1:-1] - v[:-2, 1:-1])
        self.exchange(h)

    def run(self, steps: int, dt: float) -> None:
        for _ in range(steps):
            self.step(self.h, self.u, self.v, dt)

    def height(self) -> np.ndarray | None:
        """The height on the whole grid, on rank 0."""
        bands = self.ranks.gather(self.h[1:-1, 1:-1].copy())
        return None if bands is None else np.concatenate(bands)


def plot(height: np.ndarray, file: str) -> None:
    figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
    image = axes.pcolormesh(height, cmap="RdBu_r", vmin=-0.4, vmax=0.4)
    axes.set(xlabel="x in km", ylabel="y in km", aspect="equal")
    figure.colorbar(image, label="height in m")
    figure.savefig(file, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--size", type=int, default=200, help="rows and columns of the grid (200)")
    parser.add_argument("--steps", type=int, default=150, help="time steps (150)")
    parser.add_argument("--output", default="height.png", help="file of the picture (height.png)")
    arguments = parser.parse_args()

    model = Model(arguments.size, MPI.COMM_WORLD)
    before = model.height()
    model.run(arguments.steps, dt=10.0)
    height = model.height()
    if height is not None:
        print(f"{arguments.steps} steps on {model.ranks.size} ranks")
        print(f"heights from {height.min():.3f} to {height.max():.3f} m")
        print(f"volume before and after: {before.sum():.9f} and {height.sum():.9f}")
        plot(height, arguments.output)
        print(f"picture: {arguments.output}")


if __name__ == "__main__":
    main()
