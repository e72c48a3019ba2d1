"""
The committed programs of icon4py access what their signatures say. Two of them here; all with `make bounds`,
which takes half an hour, because each is lowered.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from examples.icon4py.committed import HERE, Stub, stubs
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.frameworks.build_worker import compile_options
from gtstub.frameworks.gt4py import compile as compiling
from gtstub.frameworks.resolve import resolve
from tests.bounds.cases import ALL
from tests.support.bounds_judge import Setting, judge
from tests.support.bounds_programs import OPTIMIZED, BoundProgram, build

FEW = {"calculate_diagnostic_quantities_for_turbulence", "calculate_nabla4"}
RANGES = {"Cell": (0, 18), "Edge": (0, 27), "Vertex": (0, 9), "K": (0, 12)}

_IN_VERTICAL_ADVECTION = {
    "vertical_wind_advective_tendency": "level 0 is copied to itself, which compilers leave out",
    "ddqz_z_half": "read where 'cfl_clipping' holds, which the program itself makes false on the outermost levels",
}
_CLIPPED = "read where 'cfl_clipping' holds, which the judge's numbers make false for the first cell"
LOOSE: Mapping[str, Mapping[str, str]] = {
    "compute_advection_in_corrector": {**_IN_VERTICAL_ADVECTION, "area": _CLIPPED, "geofac_n2s": _CLIPPED},
    "compute_advection_in_predictor_f": _IN_VERTICAL_ADVECTION,
}
"""Arrays that a library does not access although its SDFG does, by stub, with the reason."""

NOTHING_TO_JUDGE = {"setup_fields_for_initial_step"}
"""Programs that only write arrays from end to end."""

OWN_RANGES = {"init_diffusion_local_fields": {"vect_a": {"K": (0, 13)}}}
"""Fields that have one level more."""

FOUND = [stub for stub in stubs(HERE / "programs.toml", HERE) if ALL or stub.name in FEW]


def build_stub(stub: Stub, folder: Path, toolchain: Toolchain) -> BoundProgram:
    ((backend, concrete),) = compiling._concrete(resolve(stub.job.source), compile_options(stub.job))
    with backend.executor.compilation.build.context():
        source = cast(Any, backend.executor.translation)(backend.lowering.lower(backend.lowering.parsed(concrete)))
    return build(source.source_code, source.signature, folder, toolchain, OPTIMIZED)


def settings(stub: Stub, program: BoundProgram) -> list[Setting]:
    """One call if the sizes are compiled in; else several, also with empty ranges."""
    neighbors = {each.neighbor.name: (0, each.max_neighbors) for each in program.signature.connectivities}
    ranges = RANGES | neighbors
    sizes = ("horizontal_start", "horizontal_end", "vertical_start", "vertical_end")
    names = {each.name for each in program.signature.parameters}
    compiled_in = {each.leaf for each in program.signature.static_arguments}
    if not set(sizes) <= names - compiled_in:
        return [Setting(ranges, OWN_RANGES.get(stub.name, {}))]
    horizontal, vertical = ((0, 9), (3, 8), (4, 4), (5, 2)), ((0, 10), (2, 3), (6, 6), (7, 1))
    return [
        Setting(ranges, scalars=dict(zip(sizes, (*h, *v), strict=True)))
        for h, v in itertools.product(horizontal, vertical)
    ]


@pytest.mark.parametrize("case", FOUND, ids=lambda stub: stub.name)
def test_programs_of_icon4py_access_what_their_signatures_say(case: Stub, tmp_path: Path, toolchain: Toolchain) -> None:
    program = build_stub(case, tmp_path, toolchain)
    verdicts = [judge(program, setting) for setting in settings(case, program)]
    loose = LOOSE.get(case.name, {})
    problems = [problem for verdict in verdicts for problem in verdict.problems]
    assert [each for each in problems if not _is_loose(each, loose)] == []
    assert {name for name in loose if any(_is_loose(each, (name,)) for each in problems)} == set(loose)
    assert (sum(verdict.ends for verdict in verdicts) > 0) == (case.name not in NOTHING_TO_JUDGE)


def _is_loose(problem: str, names: Any) -> bool:
    return any(problem.startswith(f"'{name}' is not accessed at ") for name in names)
