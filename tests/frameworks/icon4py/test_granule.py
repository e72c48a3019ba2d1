"""
icon4py's diffusion granule, its own class, runs on the torus of examples/granule; some of its programs through gtstub.

`make granule` runs all programs through gtstub and through gt4py: building them takes minutes. Here the rest runs in
gt4py's embedded execution, but for those that it cannot run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from icon4py.model.common import model_backends

from examples.granule.granules import Diffusion, fields
from examples.granule.run import compare
from examples.granule.steps import Observer
from examples.granule.torus import Torus
from gtstub import CompiledProgram
from gtstub.frameworks.icon4py import make_backend, setup_program

BUILT = ("scale_k", "copy_field", "mo_intp_rbf_rbf_vec_interpol_vertex")
"""Programs that are quick to build; with sizes and fields bound, and without."""

LEFT_OUT = (
    "apply_diffusion_to_w_and_compute_horizontal_gradients_for_turbulence",
    "init_nabla2_factor_in_upper_damping_zone",
)
"""They do nothing here: in embedded execution their `concat_where` fails on open ranges."""


def test_a_constant_wind_has_neither_divergence_nor_vorticity() -> None:
    torus = Torus()
    wind = np.array([3.0, 4.0])
    across = torus.normals @ wind
    for coefficients, offset in (
        (torus.geofac_div, "C2E"),
        (torus.geofac_rot, "V2E"),
        (torus.geofac_grdiv, "E2C2EO"),
    ):
        sums = np.sum(coefficients * across[torus.table(offset)], axis=1)
        np.testing.assert_allclose(sums, 0.0, atol=1e-15)
    for component, coefficients in zip(wind, torus.rbf_vertex, strict=True):
        np.testing.assert_allclose(np.sum(coefficients * across[torus.table("V2E")], axis=1), component)
    along = np.sum(torus.rbf_edge * across[torus.table("E2C2E")], axis=1)
    np.testing.assert_allclose(along, torus.tangents @ wind, atol=1e-14)


def do_nothing(*args: Any, **kwargs: Any) -> None:
    pass


def embedded(*, program: Any, **options: Any) -> Callable[..., None]:
    if program.__name__ in LEFT_OUT:
        return do_nothing
    return setup_program(program=program, **{**options, "backend": None})


def partly_built(*, program: Any, **options: Any) -> Callable[..., None]:
    if program.__name__ not in BUILT:
        return embedded(program=program, **options)
    backend = {"backend_factory": make_backend, "device": model_backends.CPU}
    return setup_program(program=program, **{**options, "backend": backend})


def test_diffusion_gives_the_same_through_gtstub() -> None:
    observer = Observer(partly_built)
    expected, found = Diffusion(Torus(), None, embedded), Diffusion(Torus(), None, observer.setup_program)
    calls = observer.observe(lambda: found.step(0))
    expected.step(0)
    assert {call.name for call in calls if isinstance(call.callable, CompiledProgram)} == set(BUILT)
    assert {call.name for call in calls if not call.has_effect} == {LEFT_OUT[0]}
    for name, array in fields(found).items():
        assert np.isfinite(array).all(), name
        np.testing.assert_allclose(array, fields(expected)[name], rtol=1e-9, atol=1e-15, err_msg=name)


def test_the_comparison_notices_a_last_bit_and_a_program_that_does_nothing() -> None:
    observer = Observer(embedded)
    expected, found = Diffusion(Torus(), None, embedded), Diffusion(Torus(), None, observer.setup_program)
    assert compare(expected, found, observer, steps=1) == [f"'{LEFT_OUT[0]}' changed nothing"]
    exner = found.prognostic.exner.ndarray
    exner[0, 0] = np.nextafter(exner[0, 0], np.inf)
    assert any("'prognostic.exner' differs" in problem for problem in compare(expected, found, observer, steps=1))
