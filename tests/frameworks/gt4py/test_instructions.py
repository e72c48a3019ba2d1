"""
The gates on the cost of a call: instructions and cache lines, because they do not depend on the noise of a machine as
times do. Instructions are what a call costs in a loop of calls; between the kernels of a model, which have evicted what
it reads, the lines are.
"""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Mapping
from typing import Any

import pytest

from gtstub.frameworks.gt4py.backend import make_backend
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature.documents import program_from_json, sdfg_from_json
from gtstub.stub.signature.model import Axis, ProgramSignature
from tests.benchmarks import c_host, fortran_host, instructions
from tests.benchmarks.callables import build_variants
from tests.benchmarks.entry import build_entry
from tests.benchmarks.instructions import Job
from tests.benchmarks.peers import build_caller
from tests.support.goldens import signatures_of
from tests.support.gt4py_programs import CASES, Lowering, build_lowered, lower
from tests.support.programs import need, needs
from tests.support.signatures import K, array, field, program, sdfg, symbol

pytestmark = [
    pytest.mark.valgrind,
    pytest.mark.xdist_group("apply_diffusion_to_vn_as_in_icon4py"),  # with the tests that lower and build it
    needs("valgrind"),
]

SDFG, PROGRAM = signatures_of("apply_diffusion_to_vn")
PLAN = make_plan(SDFG, PROGRAM)
STATIC: Mapping[str, bool | int | float] = {
    "nudgezone_diff": 0.5,
    "start_2nd_nudge_line_idx_e": 5,
    "limited_area": True,
}


TABLES = 2 * 25
"""For C and Fortran: a call compares elements of both tables of the program. Python's tables are objects."""

DACE = (
    sdfg(
        *(array(name, Axis(start=0, stride=1)) for name in "abc"), symbol("n", *((name, 0, "size") for name in "abc"))
    ),
    program("program", **{name: field(K) for name in "abc"}),
)
"""As DaCe takes them: three arrays of one size, and no offset provider."""

SIZES: Mapping[str, bool | int] = {
    "start_2nd_nudge_line_idx_e": 1,
    "limited_area": True,
    "horizontal_start": 0,
    "horizontal_end": instructions.LEVELS,
    "vertical_start": 0,
    "vertical_end": instructions.LEVELS,
}
"""With these, a call accesses all elements of its arguments."""

REAL = CASES["apply_diffusion_to_vn_as_in_icon4py"]
"""As icon4py compiles it, eight scalars static, on its smallest grid."""


STARTED = ("bound", "step", "long")
"""How the names of starts begin, which copy no slots."""


def described(value: Any) -> Any:
    return {"shape": value.ndarray.shape, "dtype": str(value.ndarray.dtype)} if hasattr(value, "ndarray") else value


def arguments_of(lowering: Lowering, program: ProgramSignature) -> instructions.Arguments:
    names = [parameter.name for parameter in program.parameters]
    values = [value.item() if hasattr(value, "item") else value for value in lowering.args]
    tables = {name: table for name, table in lowering.offset_provider.items() if hasattr(table, "ndarray")}
    return {
        "parameters": {name: described(value) for name, value in zip(names, values, strict=True)},
        "offset_provider": {name: described(table) for name, table in tables.items()},
    }


FLAGS = "-fPIC -O3 -march=native" + (" -mno-avx512f" if platform.machine() == "x86_64" else "")
"""Of an SDFG for this machine, but without AVX-512, whose instructions valgrind does not know."""


@dataclasses.dataclass(frozen=True)
class Counts:
    instructions: Mapping[str, float]
    lines: Mapping[str, int]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Counts:
    """All jobs in one process: callgrind takes longest for what Python does before the first call."""
    folder = tmp_path_factory.mktemp("instructions")
    arguments = instructions.example_arguments(PLAN)
    null = build_entry(SDFG, PROGRAM, folder).path
    unbounded = build_entry(dataclasses.replace(SDFG, bounds=None), PROGRAM, folder, "unbounded").path
    sized = {**arguments, "parameters": {**arguments["parameters"], **SIZES}}
    variants = [entry.path for entry in build_variants(SDFG, PROGRAM, STATIC, folder)]
    assert len(variants) == 8

    dace = build_entry(*DACE, folder, "dace").path

    lowering = lower(REAL)
    backend = make_backend(gpu=False, dace_config={"compiler.cpu.args": FLAGS}, **REAL.options)
    real = build_lowered(REAL, backend).path
    sdfg = sdfg_from_json((real / "sdfg.json").read_text(), "sdfg.json")
    program = program_from_json((real / "program.json").read_text(), "program.json")
    idle = build_entry(sdfg, program, folder, "idle").path
    real_arguments = arguments_of(lowering, program)

    costs = instructions.count_per_call(
        build_caller(folder),
        {
            "program": Job("program", arguments, (null,)),
            "sizes": Job("program", sized, (null,)),
            "sizes, no bounds": Job("program", sized, (unbounded,)),
            "another size": Job("program", sized, (null,), "horizontal_end"),
            "another size, no bounds": Job("program", sized, (unbounded,), "horizontal_end"),
            "bound": Job("bound", arguments, (null,)),
            "keywords": Job("keywords", arguments, (null,)),
            "one variant": Job("variants", arguments, tuple(variants[:1])),
            "eight variants": Job("variants", arguments, tuple(variants)),
            "start from Python": Job("start", arguments, (null,)),
            "step from Python": Job("step", arguments, (null,)),
            "real": Job("bound", real_arguments, (real,)),
            "idle": Job("bound", real_arguments, (idle,)),
            "program of DaCe": Job("overload", instructions.example_arguments(make_plan(*DACE)), (dace,)),
        },
    )
    counted = {name: cost.instructions for name, cost in costs.items()}
    lines = {name: cost.lines for name, cost in costs.items()}
    _, host = c_host.build(PLAN, null, folder)
    lines["C"] = c_host.count_lines(host, null, null / SDFG.library)
    counted |= c_host.instructions(host, null, null / SDFG.library)
    if not fortran_host.is_missing():
        _, program = fortran_host.build(SDFG, PROGRAM, folder)
        counted |= fortran_host.instructions(program, null, host, null / SDFG.library)
    for name, count in counted.items():
        print(f"{count:.0f} instructions, {name}")
        # Less than one for a slot: nothing was called. A start copies none, but calls two functions.
        assert count > (20 if name.split()[0] in STARTED else len(PLAN.slots))
    for name, cost in costs.items():
        print(f"{cost.lines} cache lines of data, {cost.code_lines} of code, {name}")
    print(f"{lines['C']} cache lines of data, C")
    return Counts(counted, lines)


@pytest.fixture
def counts(counted: Counts) -> Mapping[str, float]:
    return counted.instructions


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("program", 400),
        ("bound", 350),
        ("keywords", 480),
        ("one variant", 350),
        ("idle", 300),
        ("program of DaCe", 430),
        ("start from Python", 250),
        ("step from Python", 100 + instructions.STEP * 190),
        ("C", 300 + TABLES),
        ("gtstub from Fortran", 750),
        ("gtstub from Fortran, sections", 850),
        ("bound from C", 100 + TABLES),
        ("step from C", 80 + TABLES),
        ("bound from Fortran", 100 + TABLES),
        ("step from Fortran", 80 + TABLES),
    ],
)
def test_a_call_with_the_same_fields(counts: Mapping[str, float], name: str, limit: float) -> None:
    if "Fortran" in name:
        need("gfortran")
    assert counts[name] <= limit


def test_a_step_costs_the_same_for_each_of_its_programs(counts: Mapping[str, float]) -> None:
    """A step of a thousand beside a step of ten, whose own cost is spread over fewer."""
    assert counts["long step from C"] <= counts["step from C"]


def test_eight_variants_cost_no_more_than_one(counts: Mapping[str, float]) -> None:
    assert counts["eight variants"] <= counts["one variant"] + 20


def test_bounds_cost_little(counts: Mapping[str, float]) -> None:
    """Six scalars are compared in each call; 21 ends of axes and 2 tables are checked if one of them has changed."""
    assert counts["sizes"] <= counts["sizes, no bounds"] + 15
    assert counts["another size"] <= counts["another size, no bounds"] + 215


def test_a_call_costs_little_more_than_its_sdfg(counts: Mapping[str, float]) -> None:
    """What the SDFG itself costs is the difference to a library that does nothing."""
    assert counts["real"] / (counts["real"] - counts["idle"]) <= 1.05


@pytest.mark.parametrize(
    ("name", "limit"), [("program", 20), ("bound", 20), ("one variant", 20), ("idle", 16), ("C", 56)]
)
def test_the_cache_lines_of_a_call_with_the_same_fields(counted: Counts, name: str, limit: int) -> None:
    assert counted.lines[name] <= limit
