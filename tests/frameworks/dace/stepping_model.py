"""A model whose step is a DaCe program; its arguments are GTSTUB_... variables, and it prints what it has computed."""

import dace
import numpy as np

import gtstub

N = dace.symbol("N")


class Model:
    def __init__(self) -> None:
        self.w = np.full(4, 2.0)
        self.factor = 3.0

    @gtstub.program
    def step(self, a: dace.float64[N], edges: dace.float64[N + 1], s: dace.float64):
        a[:] = a + s * (edges[1:] - edges[:-1]) + self.w[0] * self.factor


if __name__ == "__main__":
    model = Model()
    a = np.zeros(4)
    for _ in range(3):
        model.step(a, np.arange(5.0), s=2.0)
    print(*a, model.step.fallback_calls)
