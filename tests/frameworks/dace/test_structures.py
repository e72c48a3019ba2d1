"""Structures as arguments of DaCe programs: what is in them is passed as if it were an argument of its own."""

from typing import Any

import dace
import numpy as np
from scipy import sparse

import gtstub

M, N, NNZ = (dace.symbol(name) for name in ("M", "N", "nnz"))

Matrix = dace.data.Structure(
    {"indptr": dace.int32[M + 1], "indices": dace.int32[NNZ], "data": dace.float64[NNZ]}, "Matrix"
)


@gtstub.program
@dace.program
def multiply(matrix: Matrix, x: dace.float64[N], y: dace.float64[M]):  # type: ignore[valid-type]
    for i in dace.map[0:M]:
        y[i] = 0.0
        for k in dace.map[matrix.indptr[i] : matrix.indptr[i + 1]]:
            y[i] += matrix.data[k] * x[matrix.indices[k]]


def random_matrix(rows: int, columns: int, seed: int = 0) -> Any:
    found = sparse.random(rows, columns, 0.3, "csr", np.float64, random_state=np.random.default_rng(seed))
    found.data[:] = np.arange(found.nnz) % 7 - 3
    return found


def test_members_are_read_anew_at_each_call() -> None:
    matrix, x = random_matrix(7, 5), np.arange(5.0)
    y = np.zeros(7)
    multiply(matrix, x, y)
    assert y.tobytes() == (matrix @ x).tobytes()
