"""
DaCe programs that do what known benchmarks of NPBench do, in other words: stencils, solvers, particles, linear algebra.
Annotations are no texts here: DaCe looks at the types.
"""

import dace
import numpy as np

import gtstub

H, I, J, K, L, M, N, T = (dace.symbol(name) for name in "HIJKLMNT")

# --- Weather ----------------------------------------------------------------------------------------------------------


@gtstub.program
@dace.program
def hdiff(field: dace.float64[I + 4, J + 4, K], out: dace.float64[I, J, K], coefficient: dace.float64[I, J, K]):
    """Horizontal diffusion of fourth order with limited fluxes."""
    laplacian = 4.0 * field[1:-1, 1:-1] - (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2])
    along_x = laplacian[1:, 1:-1] - laplacian[:-1, 1:-1]
    flux_x = np.where(along_x * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0, 0.0, along_x)
    along_y = laplacian[1:-1, 1:] - laplacian[1:-1, :-1]
    flux_y = np.where(along_y * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0, 0.0, along_y)
    out[:] = field[2:-2, 2:-2] - coefficient * (flux_x[1:] - flux_x[:-1] + flux_y[:, 1:] - flux_y[:, :-1])


AFTER = 0.6
"""The weight of the new time level in vadv."""


@gtstub.program
@dace.program
def vadv(
    tendency: dace.float64[I, J, K],
    u: dace.float64[I, J, K],
    w: dace.float64[I + 1, J, K],
    forcing: dace.float64[I, J, K],
    per_dt: dace.float64,
):
    """Implicit vertical advection: Thomas' solver in each column."""
    upper = np.empty((I, J, K), dtype=dace.float64)
    right = np.empty((I, J, K), dtype=dace.float64)
    speed = np.zeros((I, J, K + 1), dtype=dace.float64)
    speed[:, :, 1:K] = 0.25 * (w[1:, :, 1:] + w[:-1, :, 1:])
    right[:] = per_dt * u + forcing + tendency
    right[:, :, 1:] -= (AFTER - 1) * speed[:, :, 1:K] * (u[:, :, :-1] - u[:, :, 1:])
    right[:, :, :-1] -= (1 - AFTER) * speed[:, :, 1:K] * (u[:, :, 1:] - u[:, :, :-1])
    above = np.zeros((I, J), dtype=dace.float64)
    solution = np.zeros((I, J), dtype=dace.float64)
    for k in range(K):
        below = AFTER * speed[:, :, k]
        diagonal = per_dt + below * (1.0 + above) - AFTER * speed[:, :, k + 1]
        above[:] = AFTER * speed[:, :, k + 1] / diagonal
        solution[:] = (right[:, :, k] + below * solution) / diagonal
        upper[:, :, k] = above
        right[:, :, k] = solution
    solution[:] = 0.0
    for k in range(K - 1, -1, -1):
        solution[:] = right[:, :, k] - upper[:, :, k] * solution
        tendency[:, :, k] = per_dt * (solution - u[:, :, k])


# --- Flows and fields -------------------------------------------------------------------------------------------------


@dace.program
def pressure_poisson(
    p: dace.float64[N, M], b: dace.float64[N, M], dx: dace.float64, dy: dace.float64, sweeps: dace.int64
):
    """Sweeps of Jacobi's method. Nothing flows through the walls, and the pressure at the lid is 0."""
    before = np.empty_like(p)
    for _ in range(sweeps):
        before[:] = p
        for j, i in dace.map[1 : N - 1, 1 : M - 1]:
            x_sides = before[j, i + 1] + before[j, i - 1]
            y_sides = before[j + 1, i] + before[j - 1, i]
            p[j, i] = (x_sides * dy * dy + y_sides * dx * dx - b[j, i] * dx * dx * dy * dy) / (2 * (dx * dx + dy * dy))
        p[:, M - 1] = p[:, M - 2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[N - 1, :] = 0.0


@gtstub.program
@dace.program
def cavity_flow(
    u: dace.float64[N, M],
    v: dace.float64[N, M],
    p: dace.float64[N, M],
    steps: dace.int64,
    sweeps: dace.int64,
    dt: dace.float64,
    dx: dace.float64,
    dy: dace.float64,
    density: dace.float64,
    viscosity: dace.float64,
):
    """Incompressible flow in a box whose lid moves: `u` is 1 there, and all velocities are 0 at the walls."""
    b = np.zeros((N, M), dtype=dace.float64)
    old_u = np.empty_like(u)
    old_v = np.empty_like(v)
    for _ in range(steps):
        old_u[:] = u
        old_v[:] = v
        for j, i in dace.map[1 : N - 1, 1 : M - 1]:
            du_dx = (u[j, i + 1] - u[j, i - 1]) / (2 * dx)
            dv_dy = (v[j + 1, i] - v[j - 1, i]) / (2 * dy)
            cross = (u[j + 1, i] - u[j - 1, i]) / (2 * dy) * (v[j, i + 1] - v[j, i - 1]) / (2 * dx)
            b[j, i] = density * ((du_dx + dv_dy) / dt - du_dx * du_dx - 2 * cross - dv_dy * dv_dy)
        pressure_poisson(p, b, dx, dy, sweeps)
        for j, i in dace.map[1 : N - 1, 1 : M - 1]:
            along_x = old_u[j, i] * dt / dx
            along_y = old_v[j, i] * dt / dy
            of_x = viscosity * dt / (dx * dx)
            of_y = viscosity * dt / (dy * dy)
            u[j, i] = (
                old_u[j, i]
                - along_x * (old_u[j, i] - old_u[j, i - 1])
                - along_y * (old_u[j, i] - old_u[j - 1, i])
                - dt / (2 * density * dx) * (p[j, i + 1] - p[j, i - 1])
                + of_x * (old_u[j, i + 1] - 2 * old_u[j, i] + old_u[j, i - 1])
                + of_y * (old_u[j + 1, i] - 2 * old_u[j, i] + old_u[j - 1, i])
            )
            v[j, i] = (
                old_v[j, i]
                - along_x * (old_v[j, i] - old_v[j, i - 1])
                - along_y * (old_v[j, i] - old_v[j - 1, i])
                - dt / (2 * density * dy) * (p[j + 1, i] - p[j - 1, i])
                + of_x * (old_v[j, i + 1] - 2 * old_v[j, i] + old_v[j, i - 1])
                + of_y * (old_v[j + 1, i] - 2 * old_v[j, i] + old_v[j - 1, i])
            )


@gtstub.program
@dace.program
def fdtd_2d(ex: dace.float64[M, N], ey: dace.float64[M, N], hz: dace.float64[M, N], source: dace.float64[T]):
    """Maxwell's equations in a plane; the size of `source` is the number of steps."""
    for t in range(T):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


@gtstub.program
@dace.program
def seidel_2d(sweeps: dace.int32, a: dace.float32[N, N]):
    """Each element uses those that the same sweep has written already."""
    for _ in range(sweeps):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                a[i, j] = (
                    a[i - 1, j - 1]
                    + a[i - 1, j]
                    + a[i - 1, j + 1]
                    + a[i, j - 1]
                    + a[i, j]
                    + a[i, j + 1]
                    + a[i + 1, j - 1]
                    + a[i + 1, j]
                    + a[i + 1, j + 1]
                ) / dace.float32(9)


# --- Particles, tables, and results -----------------------------------------------------------------------------------


@dace.program
def acceleration(
    where: dace.float64[N, 3],
    mass: dace.float64[N],
    gravity: dace.float64,
    softening: dace.float64,
    found: dace.float64[N, 3],
):
    for i in dace.map[0:N]:
        ax = dace.float64(0)
        ay = dace.float64(0)
        az = dace.float64(0)
        for j in range(N):
            dx = where[j, 0] - where[i, 0]
            dy = where[j, 1] - where[i, 1]
            dz = where[j, 2] - where[i, 2]
            per_cube = gravity * mass[j] * (dx * dx + dy * dy + dz * dz + softening * softening) ** (-1.5)
            ax += dx * per_cube
            ay += dy * per_cube
            az += dz * per_cube
        found[i, 0] = ax
        found[i, 1] = ay
        found[i, 2] = az


@gtstub.program
@dace.program
def nbody(
    mass: dace.float64[N],
    where: dace.float64[N, 3],
    speed: dace.float64[N, 3],
    dt: dace.float64,
    gravity: dace.float64,
    softening: dace.float64,
):
    """Leapfrog; returns the kinetic energy before the first step and after each, and the centre of mass."""
    total = np.sum(mass)
    for axis in range(3):
        drift = np.sum(mass * speed[:, axis]) / total
        speed[:, axis] -= drift
    energy = np.empty((T + 1,), dtype=dace.float64)
    force = np.empty((N, 3), dtype=dace.float64)
    for t in range(T + 1):
        acceleration(where, mass, gravity, softening, force)
        if t > 0:
            speed += force * dt / 2.0
        energy[t] = 0.5 * np.sum(mass * np.sum(speed * speed, axis=1))
        if t < T:
            speed += force * dt / 2.0
            where += speed * dt
    centre = mass @ where / total
    return energy, centre


@gtstub.program
@dace.program
def k3mm(a: dace.float64[I, J], b: dace.float64[J, K], c: dace.float64[K, L], d: dace.float64[L, M]):
    return a @ b @ (c @ d)


@gtstub.program
@dace.program
def softmax(x: dace.float32[N, H, M, M]):
    largest = np.maximum.reduce(x, axis=3, keepdims=True)
    raised = np.exp(x - largest)
    return raised / np.add.reduce(raised, axis=3, keepdims=True)


@gtstub.program
@dace.program
def spmv(start: dace.uint32[M + 1], column: dace.uint32[L], value: dace.float64[L], x: dace.float64[N]):
    """A sparse matrix, in rows, times a vector."""
    y = np.zeros((M,), dtype=dace.float64)
    for i in range(M):
        for j in range(start[i], start[i + 1]):
            y[i] += value[j] * x[column[j]]
    return y


@gtstub.program
@dace.program
def crc16(data: dace.uint8[N], polynomial: dace.uint16 = 0x8408):
    crc: dace.uint16 = 0xFFFF
    for i in range(N):
        crc = crc ^ data[i]
        for _ in range(8):
            last = crc & 1
            crc = crc >> 1
            if last:
                crc = crc ^ polynomial
    return crc ^ 0xFFFF


# --- Complex numbers --------------------------------------------------------------------------------------------------


@gtstub.program
@dace.program
def mandelbrot(
    left: dace.float64,
    right: dace.float64,
    low: dace.float64,
    high: dace.float64,
    sweeps: dace.int64,
    far: dace.float64,
    where: dace.complex128[N, M],
    escaped: dace.int64[N, M],
):
    """The last value of each point, and after how many sweeps it was far away, or 0."""
    for i, j in dace.map[0:N, 0:M]:
        where[i, j] = left + j * (right - left) / (M - 1) + (low + i * (high - low) / (N - 1)) * 1j
    value = np.zeros((N, M), dtype=dace.complex128)
    for sweep in range(sweeps):
        is_near = np.less(np.absolute(value), far)
        for i, j in dace.map[0:N, 0:M]:
            if is_near[i, j]:
                escaped[i, j] = sweep
                value[i, j] = value[i, j] ** 2 + where[i, j]
    for i, j in dace.map[0:N, 0:M]:
        if escaped[i, j] == sweeps - 1:
            escaped[i, j] = 0
    return value


@gtstub.program
@dace.program
def self_energies(
    neighbor: dace.int32[I, J],
    gradient: dace.complex128[I, J, K, L, L],
    electrons: dace.complex128[M, N, I, L, L],
    phonons: dace.complex128[T, H, I, J, K, K],
    energies: dace.complex128[M, N, I, L, L],
):
    """Electrons that are scattered by phonons of each frequency."""
    for k in range(M):
        for e in range(N):
            for q in range(T):
                for w in range(H):
                    for i in range(K):
                        for j in range(K):
                            for a in range(I):
                                for b in range(J):
                                    if e - w >= 0:
                                        left = electrons[k, e - w, neighbor[a, b]] @ gradient[a, b, i]
                                        right = gradient[a, b, j] * phonons[q, w, a, b, i, j]
                                        energies[k, e, a] += left @ right


@gtstub.program
@dace.program
def fourier(x: dace.complex64[N]):
    """A discrete Fourier transform, without a fast algorithm."""
    y = np.zeros((N,), dtype=dace.complex64)
    for i in range(N):
        for j in range(N):
            angle = -2.0 * np.pi * ((i * j) % N) / N
            y[i] += x[j] * dace.complex64(np.cos(angle) + 1j * np.sin(angle))
    return y
