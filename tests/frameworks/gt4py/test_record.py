"""gt4py programs are recorded as Python calls them, and made again: by their stubs and by gt4py itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from gtstub.cli.app import main
from gtstub.frameworks.backends.choice import EMBEDDED
from gtstub.frameworks.gt4py.replay import GtProgram
from gtstub.tools.recorded.archive import INDEX, Archive, archives
from tests.support.checkout import ROOT
from tests.support.gt4py_programs import CASES, Case

RECORDED = (
    "named_collections",
    "field_dtypes",
    "field_operator",
    "in_place",
    "parameters_left_out",
    "static_arguments",
    "unit_stride",
)


pytestmark = pytest.mark.xdist_group("record")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has the recording of a model that calls each program twice, and the cache entries that it was made with."""
    folder = tmp_path_factory.mktemp("recorded")
    command = [sys.executable, "-c", "from gtstub.cli.app import main; main()", "record", "-o", "recording", "--"]
    done = subprocess.run(
        [*command, sys.executable, "-m", "tests.frameworks.gt4py.recorded_model", *RECORDED],
        cwd=folder,
        env={**os.environ, "GTSTUB_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def entries(folder: Path) -> list[Path]:
    return [manifest.parent for manifest in sorted((folder / "cache").rglob("manifest.json"))]


def archive_of(folder: Path) -> Archive:
    (archive,) = archives(folder / "recording")
    return archive


def replay(folder: Path, *arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["replay", str(folder / "recording"), *map(str, arguments)])


def program_of(case: Case) -> str:
    return f"{case.module}:{case.attribute}"


def name_of(case: Case) -> str:
    """As which it is recorded."""
    return GtProgram(program_of(case), EMBEDDED, None).name


def test_a_recording_has_every_call(folder: Path) -> None:
    archive = archive_of(folder)
    assert len(archive.programs) == len(RECORDED)
    assert [call.number for call in archive.calls] == [1, 2] * len(RECORDED)


def test_values_are_those_that_python_passed(folder: Path) -> None:
    archive = archive_of(folder)
    call = next(call for call in archive.calls if call.program.name == "named_collections")
    found = {value.leaf.path: archive.load(call, value, "before") for value in call.values}
    passed = CASES["named_collections"].make_arguments()
    np.testing.assert_array_equal(found["wind.u"], passed["wind"].u.asnumpy())
    np.testing.assert_array_equal(found["coefficients.wind.v"], passed["coefficients"].wind.v.asnumpy())
    assert found["coefficients.weight"] == passed["coefficients"].weight


def test_stubs_make_the_same_again(folder: Path) -> None:
    result = replay(folder, *entries(folder), "--compare")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{2 * len(RECORDED)} calls replayed. Of ")
    assert " 0 differ by more than the tolerance, 0 by less.\n" in result.stdout


@pytest.mark.parametrize("name", RECORDED)
def test_embedded_execution_makes_the_same(folder: Path, name: str) -> None:
    program = program_of(CASES[name])
    result = replay(folder, program, "--compare", "--ulp", "4")
    assert (result.exit_code, result.stderr.startswith("Not replayed: 2 of ")) == (1, True)
    result = replay(folder, program, "--program", name_of(CASES[name]), "--compare", "--ulp", "4")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("2 calls replayed. Of ")


def test_another_backend_makes_the_same(folder: Path) -> None:
    options = ("--program", "gather", "--backend", "DACE_CPU", "--compare", "--ulp", "4")
    result = replay(folder, program_of(CASES["unit_stride"]), *options)
    assert result.exit_code == 0, result.output


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    """Has the recording, to be spoiled."""
    shutil.copytree(folder / "recording", tmp_path / "recording")
    return tmp_path


def test_what_gt4py_refuses_is_said(copied: Path) -> None:
    index = archive_of(copied).path / INDEX
    index.write_text(index.read_text().replace("\tV2E\tconnectivity", "\tX2E\tconnectivity"))
    result = replay(copied, program_of(CASES["unit_stride"]), "--compare")
    assert result.exit_code == 1
    assert result.stderr.startswith("gt4py cannot run 'gather' on 'EMBEDDED': ")
    result = replay(copied, program_of(CASES["unit_stride"]), "--backend", "GTFN_GPU")  # recorded from host memory
    assert result.exit_code == 2


def spoil(archive: Archive, program: str, argument: str) -> tuple[Sequence[int], float]:
    """Changes one element of what the first call has written; its index, and what it was."""
    call = next(call for call in archive.calls if call.program.name == program)
    value = next(value for value in call.values if value.leaf.path == argument)
    field = archive.load(call, value, "after")
    place = tuple(size // 2 for size in field.shape)
    was = field[place].item()
    field[place] = np.nextafter(np.nextafter(was, np.inf), np.inf)
    assert value.after is not None
    with (archive.path / call.program.id / f"{call.program.id}_{value.field}.dat").open("r+b") as file:
        file.seek(value.after)
        file.write(field.tobytes(order="F"))
    return [start + index for start, index in zip(value.origin, place, strict=True)], was


def test_a_result_that_differs_is_found(folder: Path, copied: Path) -> None:
    index, was = spoil(archive_of(copied), "__field_operator_average", "out")
    for program in ([program_of(CASES["field_operator"])], list(map(str, entries(folder)))):
        result = replay(copied, *program, "--compare", "--json")
        assert result.exit_code == 1, result.output
        (found,) = (one for one in json.loads(result.stdout)["comparisons"] if one["beyond"] > 0)
        assert (found["program"], found["call"], found["argument"]) == ("__field_operator_average", 1, "out")
        assert (found["worst"]["index"], found["worst"]["found"], found["worst"]["ulp"]) == (index, was, 2)
    assert replay(copied, *entries(folder), "--compare", "--ulp", "out=2").exit_code == 0
