"""
Every plan that `make_plan` accepts is C, C++ and Fortran that compilers accept without a warning.

GTSTUB_EXAMPLES=N draws N new plans; without it a run draws the same ones every time. `random_signatures()` of a seed
that a failure names draws its plan again.
"""

from __future__ import annotations

import collections
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gtstub.errors import PlanError, SignatureError
from gtstub.install import FORTRAN as FOLDER
from gtstub.install import INCLUDE
from gtstub.stub.codegen.hosts.fortran import FORTRAN
from gtstub.stub.codegen.stub import Stub, make_stub
from gtstub.stub.plan.model import CallPlan
from gtstub.stub.signature.documents import program_from_json, program_to_json, sdfg_from_json, sdfg_to_json
from tests.support.fortran_hosts import MODULES
from tests.support.programs import need
from tests.support.random_plans import random_signatures

EXAMPLES = os.environ.get("GTSTUB_EXAMPLES")
COUNT = int(EXAMPLES or 200)
FIRST = 0 if EXAMPLES is None else random.SystemRandom().randrange(10**9)
AT_ONCE = 500
"""The most files of one call of a compiler."""

pytestmark = pytest.mark.xdist_group("random plans")

WARNINGS = ("-Wall", "-Wextra", "-Werror", "-fsyntax-only")
C = ("-std=c11", *WARNINGS, "-Wconversion", "-I", str(INCLUDE))
COMPILERS = {
    "gcc": (".c", ("gcc", *C)),
    "gcc for Fortran hosts": (".c", ("gcc", *C, "-DGTS_FORTRAN")),
    "clang": (".c", ("clang", *C)),
    "g++": (".h", ("g++", "-std=c++17", "-x", "c++", *WARNINGS, "-Wconversion", "-I", str(INCLUDE))),
    "gfortran": (".f90", ("gfortran", "-std=f2018", *WARNINGS, "-J", "modules")),
}


LEAVES = {"field", "zero_dim_field", "scalar", "static", "connectivity", "callback"}
SOURCES = {"data", "axis", "value", "solution", "metric", "function", "members"}
PARTS = [
    "structures",
    "workspaces",
    "bounds",
    "followed_tables",
    "used_axes",
    "facts",
    "required_shapes",
    "assertions",
    "memory_symbols",
    "checked_scalars",
    "collections",
    "symbols",
    "has_metrics",
    "has_complex",
    "unneeded",
]


def features(plan: CallPlan) -> Iterator[str]:
    """What a plan has, so that no kind is missing from all of them."""
    yield from {leaf.kind for leaf in plan.leaves} | {slot.source.kind for slot in (*plan.slots, *plan.values)}
    yield from (part for part in PARTS if getattr(plan, part))


def stub_of(seed: int) -> Stub | None:
    """A random stub, with a Fortran module if Fortran has its names; None if its signatures contradict each other."""
    sdfg, program = random_signatures(random.Random(seed))
    try:
        sdfg = sdfg_from_json(sdfg_to_json(sdfg), f"{seed}.sdfg.json")
    except SignatureError:  # an element of a tuple has the name of another argument
        return None
    program = program_from_json(program_to_json(program), f"{seed}.program.json")
    for languages in ([FORTRAN], []):
        try:
            return make_stub(sdfg, program, languages=languages)
        except PlanError:
            continue
    return None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes all stubs, each into a folder that is named after its seed."""
    folder, found, modules = tmp_path_factory.mktemp("plans"), collections.Counter[str](), 0
    (folder / "modules").mkdir()
    for seed in range(FIRST, FIRST + COUNT):
        if (stub := stub_of(seed)) is None:
            continue
        (folder / str(seed)).mkdir()
        for name, text in stub.files.items():
            (folder / str(seed) / name).write_text(text, encoding="utf-8")
        found.update({"plan", *features(stub.plan)})
        modules += len(stub.files) > 2
    assert found["plan"] > 0.8 * COUNT
    assert modules > 0.6 * COUNT
    assert {kind for kind in (*LEAVES, *SOURCES, *PARTS) if found[kind] < COUNT / 50} == set()
    return folder


@pytest.mark.parametrize("name", COMPILERS)
def test_every_plan_compiles(name: str, folder: Path) -> None:
    suffix, command = COMPILERS[name]
    need(command[0])
    if suffix == ".f90":
        for module in MODULES:
            subprocess.run([*command, FOLDER / f"{module}.f90"], cwd=folder, check=True, capture_output=True)
    files = sorted(str(file.relative_to(folder)) for file in folder.glob(f"*/*{suffix}"))
    for first in range(0, len(files), AT_ONCE):
        done = subprocess.run(
            [*command, *files[first : first + AT_ONCE]], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[:4000]
