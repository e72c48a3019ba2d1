"""
More programs that do what known benchmarks of NPBench do, of kinds that test_npbench.py lacks: dynamic programming,
factorisations, convolutions, networks, histograms, statistics. Python with numpy is the truth.

Annotations are no texts here: DaCe looks at the types.
"""

from collections.abc import Callable
from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from tests.support.call_forms import Call, check_call, given

B, H, I, J, K, M, N, W = (dace.symbol(name) for name in "BHIJKMNW")

RANDOM = np.random.default_rng(11)

ROWS: list[tuple[Callable[..., Any], Callable[..., Any], tuple[Call, ...]]] = []


def random(*shape: int) -> Any:
    return RANDOM.random(shape) + 0.5


def row(truth: Callable[..., Any], *calls: Call) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        ROWS.append((function, truth, calls))
        return function

    return add


def shortest(paths: Any) -> None:
    for k in range(len(paths)):
        paths[:] = np.minimum(paths, paths[:, k : k + 1] + paths[k : k + 1, :])


@row(shortest, *(given(RANDOM.integers(1, 50, (n, n), dtype=np.int32)) for n in (5, 9)))
def floyd_warshall(paths: dace.int32[N, N]):
    for k in range(N):
        for i, j in dace.map[0:N, 0:N]:
            through: dace.int32 = paths[i, k] + paths[k, j]
            if through < paths[i, j]:
                paths[i, j] = through


def lower(a: Any) -> None:
    made = np.linalg.cholesky(a)
    a[:] = np.where(np.tri(len(a), dtype=bool), made, a)


def definite(n: int) -> Any:
    half = random(n, n)
    return half @ half.T + n * np.eye(n)


@row(lower, given(definite(4)), given(definite(7)))
def cholesky(a: dace.float64[N, N]):
    for i in range(N):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = np.sqrt(a[i, i])


def convolved(x: Any, weights: Any, bias: Any) -> Any:
    rows, columns = x.shape[1] - weights.shape[0] + 1, x.shape[2] - weights.shape[1] + 1
    found = np.zeros((x.shape[0], rows, columns, weights.shape[3]))
    for i in range(weights.shape[0]):
        for j in range(weights.shape[1]):
            found += x[:, i : i + rows, j : j + columns] @ weights[i, j]
    return found + bias


@row(
    convolved,
    given(random(2, 6, 5, 3), random(3, 3, 3, 4), random(4)),
    given(random(1, 7, 9, 2), random(2, 2, 2, 3), random(3)),
)
def conv2d(x: dace.float64[B, H, W, I], weights: dace.float64[K, K, I, J], bias: dace.float64[J]):
    found = np.zeros((B, H - K + 1, W - K + 1, J), dtype=dace.float64)
    for p in range(K):
        for q in range(K):
            found[:] = found + x[:, p : p + H - K + 1, q : q + W - K + 1, :] @ weights[p, q, :, :]
    return found + bias


def layer(x, weights, bias):
    return np.maximum(x @ weights + bias, 0.0)


@row(
    lambda x, v, a, w, b: layer(layer(x, v, a), w, b),
    given(random(3, 4) - 1, random(4, 5) - 1, random(5), random(5, 2) - 1, random(2)),
)
def perceptron(
    x: dace.float64[N, I],
    v: dace.float64[I, J],
    a: dace.float64[J],
    w: dace.float64[J, K],
    b: dace.float64[K],
):
    inner = layer(x, v, a)
    return layer(inner, w, b)


def means(radius: Any, values: Any, found: Any) -> None:
    bins = len(found)
    numbers = np.minimum((radius * bins).astype(int), bins - 1)
    for i in range(bins):
        found[i] = values[numbers == i].mean() if (numbers == i).any() else 0


@row(means, given(RANDOM.random(50), random(50), random(4)), given(RANDOM.random(9), random(9), random(20)))
def azimuthal_means(radius: dace.float64[N], values: dace.float64[N], found: dace.float64[M]):
    count = np.zeros((M,), dtype=dace.int64)
    found[:] = 0
    for i in range(N):
        number: dace.int64 = min(int(radius[i] * M), M - 1)
        found[number] += values[i]
        count[number] += 1
    for i in range(M):
        if count[i] > 0:
            found[i] = found[i] / count[i]


@row(lambda a: (np.cov(a.T), a.mean(axis=0)), given(random(6, 3)), given(random(4, 5)))
def covariance(a: dace.float64[M, N]):
    mean = np.mean(a, axis=0)
    deviation = a - mean
    return np.transpose(deviation) @ deviation / (M - 1), mean


@row(
    lambda x, y, low, high, s: np.clip(x, low, high) * s + y,
    given(np.arange(12).reshape(3, 4), np.ones((3, 4), np.int64), 2, 8, 3),
)
def clipped(x: dace.int64[M, N], y: dace.int64[M, N], low: dace.int64, high: dace.int64, s: dace.int64):
    return np.minimum(np.maximum(x, low), high) * s + y


@row(lambda a: a + np.tanh(np.diag(a)).sum(), given(random(4, 4)), given(random(9, 9)))
def go_fast(a: dace.float64[N, N]):
    trace = 0.0
    for i in range(N):
        trace += np.tanh(a[i, i])
    return a + trace


@pytest.mark.parametrize(("function", "truth", "calls"), ROWS, ids=lambda each: getattr(each, "__name__", ""))
def test_kernels(function: Callable[..., Any], truth: Callable[..., Any], calls: tuple[Call, ...]) -> None:
    program = gtstub.program(dace.program(function))
    for call in calls:
        check_call(program, truth, call)
    assert (program.fallback_calls, len(program._variants)) == (0, 1)
