"""
Programs as in NPBench: each is compiled once for all sizes, and does what numpy does, and what DaCe's own call of the
same library does, bit for bit.
"""

from __future__ import annotations

import binascii
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import dace
import numpy as np
import pytest

from gtstub.frameworks.dace import variant
from tests.support import npbench_programs as programs
from tests.support.dace_programs import by_dace, check_same, copied
from tests.support.npbench_programs import AFTER

Arguments = dict[str, Any]

RANDOM = np.random.default_rng(7)


def random(*shape: int) -> Any:
    """Between 1/2 and 3/2, so that no quotient is large."""
    return RANDOM.random(shape) + 0.5


# --- With numpy -------------------------------------------------------------------------------------------------------


def hdiff(field: Any, out: Any, coefficient: Any) -> None:
    def lap(i: int, j: int) -> Any:
        return 4 * field[i, j] - (field[i + 1, j] + field[i - 1, j] + field[i, j + 1] + field[i, j - 1])

    def flux(i: int, j: int, di: int, dj: int) -> Any:
        found = lap(i + di, j + dj) - lap(i, j)
        return found * (found * (field[i + di, j + dj] - field[i, j]) <= 0)

    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            x, y = i + 2, j + 2
            divergence = flux(x, y, 1, 0) - flux(x - 1, y, 1, 0) + flux(x, y, 0, 1) - flux(x, y - 1, 0, 1)
            out[i, j] = field[x, y] - coefficient[i, j] * divergence


def vadv(tendency: Any, u: Any, w: Any, forcing: Any, per_dt: float) -> None:
    """One matrix for each column, in place of Thomas' solver."""
    levels = u.shape[2]
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            speed = (w[i + 1, j] + w[i, j]) / 4  # at the interface above level k - 1
            advection = np.diag(speed[1:], 1) - np.diag(speed[1:], -1)
            advection -= np.diag(advection.sum(axis=1))
            matrix = per_dt * np.eye(levels) + AFTER * advection
            column = u[i, j]
            right = per_dt * column + forcing[i, j] + tendency[i, j] - (1 - AFTER) * advection @ column
            tendency[i, j] = per_dt * (np.linalg.solve(matrix, right) - column)


def cavity_flow(
    u: Any,
    v: Any,
    p: Any,
    steps: int,
    sweeps: int,
    dt: float,
    dx: float,
    dy: float,
    density: float,
    viscosity: float,
) -> None:
    inner = np.s_[1:-1, 1:-1]
    east, west, north, south = np.s_[1:-1, 2:], np.s_[1:-1, :-2], np.s_[2:, 1:-1], np.s_[:-2, 1:-1]

    def d_dx(a: Any) -> Any:
        return (a[east] - a[west]) / (2 * dx)

    def d_dy(a: Any) -> Any:
        return (a[north] - a[south]) / (2 * dy)

    def tendency(a: Any) -> Any:
        advection = u[inner] * (a[inner] - a[west]) / dx + v[inner] * (a[inner] - a[south]) / dy
        second = (a[east] - 2 * a[inner] + a[west]) / dx**2 + (a[north] - 2 * a[inner] + a[south]) / dy**2
        return viscosity * second - advection

    for _ in range(steps):
        divergence = d_dx(u) + d_dy(v)
        b = density * (divergence / dt - d_dx(u) ** 2 - 2 * d_dy(u) * d_dx(v) - d_dy(v) ** 2)
        for _ in range(sweeps):
            sides = (p[east] + p[west]) * dy**2 + (p[north] + p[south]) * dx**2
            p[inner] = (sides - b * dx**2 * dy**2) / (2 * (dx**2 + dy**2))
            p[:, -1], p[0], p[:, 0], p[-1] = p[:, -2], p[1], p[:, 1], 0
            p[0, -1], p[0, 0] = p[1, -1], p[0, 1]
        new_u, new_v = (tendency(a) - gradient(p) / density for a, gradient in ((u, d_dx), (v, d_dy)))
        u[inner] += dt * new_u
        v[inner] += dt * new_v


def fdtd_2d(ex: Any, ey: Any, hz: Any, source: Any) -> None:
    for value in source:
        ey[0] = value
        ey[1:] -= np.diff(hz, axis=0) / 2
        ex[:, 1:] -= np.diff(hz, axis=1) / 2
        hz[:-1, :-1] -= 0.7 * (np.diff(ex[:-1], axis=1) + np.diff(ey[:, :-1], axis=0))


def seidel_2d(sweeps: int, a: Any) -> None:
    for _ in range(sweeps):
        for i in range(1, len(a) - 1):
            for j in range(1, len(a) - 1):
                a[i, j] = a[i - 1 : i + 2, j - 1 : j + 2].mean()


def nbody(mass: Any, where: Any, speed: Any, dt: float, gravity: float, softening: float, T: int) -> Any:  # noqa: N803
    def force() -> Any:
        apart = where[None] - where[:, None]
        per_cube = gravity * mass / ((apart**2).sum(axis=2) + softening**2) ** 1.5
        return np.einsum("ij,ijx->ix", per_cube, apart)

    def energy() -> float:
        return float(mass @ (speed**2).sum(axis=1) / 2)

    speed -= mass @ speed / mass.sum()
    found = [energy()]
    for _ in range(T):
        speed += force() * dt / 2
        where += speed * dt
        speed += force() * dt / 2
        found.append(energy())
    return np.array(found), mass @ where / mass.sum()


def k3mm(a: Any, b: Any, c: Any, d: Any) -> Any:
    return np.einsum("ij,jk,kl,lm->im", a, b, c, d)


def softmax(x: Any) -> Any:
    raised = np.exp(x.astype(np.float64))
    return (raised / raised.sum(axis=3, keepdims=True)).astype(np.float32)


def spmv(start: Any, column: Any, value: Any, x: Any) -> Any:
    matrix = np.zeros((len(start) - 1, len(x)))
    np.add.at(matrix, (np.repeat(np.arange(len(start) - 1), np.diff(start.astype(int))), column), value)
    return matrix @ x


def crc16(data: Any) -> Any:
    """Python's checksum takes the bits of each byte in the other order."""

    def reversed_bits(value: int, count: int) -> int:
        return int(f"{value:0{count}b}"[::-1], 2)

    found = binascii.crc_hqx(bytes(reversed_bits(int(byte), 8) for byte in data), 0xFFFF)
    return np.array([reversed_bits(found, 16) ^ 0xFFFF])


def mandelbrot(
    left: float, right: float, low: float, high: float, sweeps: int, far: float, where: Any, escaped: Any
) -> Any:
    x, y = (np.linspace(*ends, count) for ends, count in zip(((left, right), (low, high)), where.T.shape, strict=True))
    where[:] = x + 1j * y[:, None]
    value = np.zeros_like(where)
    for sweep in range(sweeps):
        near = np.abs(value) < far
        escaped[near] = sweep
        value[near] = value[near] ** 2 + where[near]
    escaped[escaped == sweeps - 1] = 0
    return value


def self_energies(neighbor: Any, gradient: Any, electrons: Any, phonons: Any, energies: Any) -> None:
    for w in range(phonons.shape[1]):
        before = electrons[:, : electrons.shape[1] - w, neighbor]
        right = np.einsum("abjxy,qabij->abixy", gradient, phonons[:, w])
        energies[:, w:] += np.einsum("keabxy,abiyz,abizt->keaxt", before, gradient, right)


def fourier(x: Any) -> Any:
    return np.fft.fft(x.astype(np.complex128)).astype(np.complex64)


# --- Arguments --------------------------------------------------------------------------------------------------------


def of_hdiff(i: int, j: int, k: int) -> Arguments:
    return {"field": random(i + 4, j + 4, k), "out": np.zeros((i, j, k)), "coefficient": random(i, j, k)}


def of_vadv(i: int, j: int, k: int) -> Arguments:
    at_walls = np.s_[:, :, 0]
    w = random(i + 1, j, k)
    w[at_walls] = 0
    return {"tendency": random(i, j, k), "u": random(i, j, k), "w": w, "forcing": random(i, j, k), "per_dt": 20.0}


def of_cavity_flow(n: int, m: int) -> Arguments:
    u, v, p = np.zeros((n, m)), np.zeros((n, m)), np.zeros((n, m))
    u[-1] = 1
    constants = {"dt": 0.01, "dx": 2 / m, "dy": 2 / n, "density": 1.5, "viscosity": 0.1}
    return {"u": u, "v": v, "p": p, "steps": n, "sweeps": 5, **constants}


def of_fdtd_2d(m: int, n: int, t: int) -> Arguments:
    return {"ex": random(m, n), "ey": random(m, n), "hz": random(m, n), "source": np.arange(t) / 4}


def of_seidel_2d(n: int, sweeps: int) -> Arguments:
    return {"sweeps": sweeps, "a": random(n, n).astype(np.float32)}


def of_nbody(n: int, steps: int) -> Arguments:
    arrays = {"mass": random(n), "where": random(n, 3), "speed": random(n, 3)}
    return {**arrays, "dt": 0.05, "gravity": 1.0, "softening": 0.1, "T": steps}


def of_k3mm(i: int, j: int, k: int, l: int, m: int) -> Arguments:
    return {"a": random(i, j), "b": random(j, k), "c": random(k, l), "d": random(l, m)}


def of_softmax(n: int, h: int, m: int) -> Arguments:
    return {"x": random(n, h, m, m).astype(np.float32)}


def of_spmv(m: int, n: int, count: int) -> Arguments:
    start = np.array([0, *sorted(RANDOM.integers(0, count, m - 1)), count], np.uint32)
    return {"start": start, "column": RANDOM.integers(0, n, count, np.uint32), "value": random(count), "x": random(n)}


def of_crc16(n: int) -> Arguments:
    return {"data": RANDOM.integers(0, 256, n, np.uint8)}


def complex_numbers(*shape: int) -> Any:
    return random(*shape) - 1 + 1j * random(*shape)


def of_mandelbrot(n: int, m: int, sweeps: int) -> Arguments:
    window = {"left": -2.25, "right": 0.75, "low": -1.25, "high": 1.25, "far": 2.0, "sweeps": sweeps}
    return {**window, "where": np.zeros((n, m), complex), "escaped": np.zeros((n, m), np.int64)}


def of_self_energies(k: int, e: int, atoms: int, neighbors: int, orbitals: int) -> Arguments:
    return {
        "neighbor": RANDOM.integers(0, atoms, (atoms, neighbors), np.int32),
        "gradient": complex_numbers(atoms, neighbors, 3, orbitals, orbitals),
        "electrons": complex_numbers(k, e, atoms, orbitals, orbitals),
        "phonons": complex_numbers(k, 2, atoms, neighbors, 3, 3),
        "energies": np.zeros((k, e, atoms, orbitals, orbitals), complex),
    }


def of_fourier(n: int) -> Arguments:
    return {"x": complex_numbers(n).astype(np.complex64)}


@dataclasses.dataclass(frozen=True)
class Case:
    """A program with two sizes, and what a call with the first of them says if one array is `wrong`."""

    reference: Callable[..., Any]
    arguments: Callable[..., Arguments]
    sizes: tuple[tuple[int, ...], tuple[int, ...]]
    wrong: Arguments
    message: str
    tolerance: float = 1e-13

    @property
    def name(self) -> str:
        return self.reference.__name__

    @property
    def program(self) -> Any:
        return getattr(programs, self.name)


CASES = [
    Case(
        hdiff,
        of_hdiff,
        sizes=((5, 4, 3), (2, 7, 4)),
        wrong={"field": random(9, 7, 3)},
        message="Argument 'field' of program '{}' must have size J + 4 = 8 on axis 1 ('axis_1'), not 7.",
    ),
    Case(
        vadv,
        of_vadv,
        sizes=((3, 2, 6), (2, 4, 9)),
        wrong={"w": random(3, 2, 6)},
        message="Argument 'w' of program '{}' must have size I + 1 = 4 on axis 0 ('axis_0'), not 3.",
    ),
    Case(
        cavity_flow,
        of_cavity_flow,
        sizes=((7, 6), (5, 11)),
        wrong={"p": random(7, 7)},
        message="Arguments of program '{}' disagree: size of axis 1 of 'u' is 6, but size of axis 1 of 'p' is 7.",
    ),
    Case(
        fdtd_2d,
        of_fdtd_2d,
        sizes=((6, 5, 4), (3, 8, 7)),
        wrong={"hz": random(6, 6)},
        message="Arguments of program '{}' disagree: size of axis 1 of 'ex' is 5, but size of axis 1 of 'hz' is 6.",
    ),
    Case(
        seidel_2d,
        of_seidel_2d,
        sizes=((6, 3), (9, 2)),
        wrong={"a": random(6, 5).astype(np.float32)},
        message="Arguments of program '{}' disagree: size of axis 0 of 'a' is 6, but size of axis 1 of 'a' is 5.",
        tolerance=1e-6,
    ),
    Case(
        nbody,
        of_nbody,
        sizes=((5, 4), (8, 2)),
        wrong={"speed": random(4, 3)},
        message="Arguments of program '{}' disagree:"
        " size of axis 0 of 'mass' is 5, but size of axis 0 of 'speed' is 4.",
        tolerance=1e-12,
    ),
    Case(
        k3mm,
        of_k3mm,
        sizes=((3, 4, 5, 6, 2), (1, 6, 2, 3, 4)),
        wrong={"d": random(5, 2)},
        message="Arguments of program '{}' disagree: size of axis 1 of 'c' is 6, but size of axis 0 of 'd' is 5.",
    ),
    Case(
        softmax,
        of_softmax,
        sizes=((2, 3, 4), (3, 1, 5)),
        wrong={"x": random(2, 3, 4, 5).astype(np.float32)},
        message="Arguments of program '{}' disagree: size of axis 2 of 'x' is 4, but size of axis 3 of 'x' is 5.",
        tolerance=1e-6,
    ),
    Case(
        spmv,
        of_spmv,
        sizes=((4, 5, 9), (6, 3, 8)),
        wrong={"value": random(10)},
        message="Arguments of program '{}' disagree:"
        " size of axis 0 of 'column' is 9, but size of axis 0 of 'value' is 10.",
    ),
    Case(
        crc16,
        of_crc16,
        sizes=((9,), (40,)),
        wrong={"data": np.zeros(9, np.uint8)[::3]},
        message="Argument 'data' of program '{}' must have stride 1 on axis 0 ('axis_0'), not 3.",
        tolerance=0,
    ),
    Case(
        mandelbrot,
        of_mandelbrot,
        sizes=((7, 9, 6), (4, 13, 8)),
        wrong={"escaped": np.zeros((7, 8), np.int64)},
        message="Arguments of program '{}' disagree:"
        " size of axis 1 of 'where' is 9, but size of axis 1 of 'escaped' is 8.",
        tolerance=1e-11,
    ),
    Case(
        self_energies,
        of_self_energies,
        sizes=((2, 3, 4, 2, 3), (1, 4, 3, 3, 2)),
        wrong={"gradient": complex_numbers(4, 2, 3, 3, 2)},
        message="Arguments of program '{}' disagree:"
        " size of axis 3 of 'gradient' is 3, but size of axis 4 of 'gradient' is 2.",
        tolerance=1e-12,
    ),
    Case(
        fourier,
        of_fourier,
        sizes=((6,), (11,)),
        wrong={"x": complex_numbers(12).astype(np.complex64)[::2]},
        message="Argument 'x' of program '{}' must have stride 1 on axis 0 ('axis_0'), not 2.",
        tolerance=2e-5,
    ),
]


# --- Calls ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[dace.SDFG]:
    """The SDFGs that are made during a test."""
    found: list[dace.SDFG] = []
    parse = variant.parse_program

    def parse_program(*args: Any) -> dace.SDFG:
        found.append(parse(*args))
        return found[-1]

    monkeypatch.setattr(variant, "parse_program", parse_program)
    return found


def results(found: Any, arguments: Mapping[str, Any]) -> list[Any]:
    """What a call returns, and all arrays that it was passed."""
    returned = found if isinstance(found, tuple) else () if found is None else (found,)
    return [*returned, *(value for value in arguments.values() if isinstance(value, np.ndarray))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_npbench(case: Case, parsed: list[dace.SDFG]) -> None:
    program = case.program
    program.compile(**case.arguments(*case.sizes[0]))
    call_by_dace = by_dace(program, *parsed)
    for size in case.sizes:
        arguments = case.arguments(*size)
        ours, theirs, numpys = ({name: copied(value) for name, value in arguments.items()} for _ in range(3))
        found = results(program(**ours), ours)
        check_same(found, results(call_by_dace(**theirs), theirs))
        expected = results(case.reference(**numpys), numpys)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=case.tolerance, atol=case.tolerance)
    assert len(parsed) == len(program._variants) == 1
    arguments = case.arguments(*case.sizes[0]) | case.wrong
    untouched = [copied(value) for value in arguments.values()]
    with pytest.raises(ValueError) as caught:
        program(**arguments)
    assert str(caught.value) == case.message.format(program.dace_program.name)
    check_same(list(arguments.values()), untouched)
    assert len(parsed) == len(program._variants) == 1
