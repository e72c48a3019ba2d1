"""
The Fortran host of examples/fortran_host: icon4py's diffusion as an exported granule, without Python, and through
embedded Python. One worker builds the programs and the hosts once, and runs all of these.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from examples.fortran_host import building, prepare, run, running
from examples.fortran_host.measure import measure
from gtstub.programs.granule.verify import read_granule
from tests.support.programs import need

pytestmark = pytest.mark.xdist_group("fortran host")

STEPS = 20
WRITTEN = 21
"""The fields that the host writes: of the state, and those that the granule keeps and changes."""

POSITIONS = {"run_initial": 12, "run": 11}


@dataclasses.dataclass(frozen=True)
class Demo:
    granule: Path
    expected: Mapping[str, prepare.Array]
    state: Path
    build: Path
    folder: Path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    need("gfortran")
    folder = tmp_path_factory.mktemp("fortran-host")
    diffusion = prepare.set_up()
    prepare.write_state(diffusion, STEPS, folder / "state")
    granule = prepare.export(diffusion, folder / "granule")
    expected = prepare.run(diffusion, STEPS)
    bindings = None if building.missing_for_embedding() else building.make_bindings(folder / "bindings")
    build = building.build(folder, bindings)
    return Demo(granule, expected, folder / "state", build, folder)


@pytest.fixture(scope="module")
def host(demo: Demo) -> running.Run:
    return running.run_host(demo.build, demo.state, demo.granule, demo.folder / "results")


def test_the_committed_code_is_what_the_export_writes(demo: Demo, tmp_path: Path) -> None:
    building.check_committed(demo.granule)
    other = tmp_path / "granule"
    shutil.copytree(demo.granule, other)
    (other / "diffusion_granule.h").write_text("/* another one */\n", encoding="utf-8")
    with pytest.raises(SystemExit) as refusal:
        building.check_committed(other)
    assert str(refusal.value) == (
        "The committed file 'examples/fortran_host/diffusion/diffusion_granule.h' is not what the export writes: 'make "
        "fortran-demo ARGS=--commit' writes it anew."
    )


def test_the_granule_has_both_steps_and_the_arrays_of_the_model(demo: Demo) -> None:
    granule = read_granule(demo.granule)
    assert {step.name: len(step.positions) for step in granule.steps} == POSITIONS
    of_diagnostic = ["diag_hdef_ic", "diag_div_ic", "diag_dwdx", "diag_dwdy"]
    of_prognostic = ["prog_w", "prog_vn", "prog_exner", "prog_theta_v"]
    assert sorted(array.name for array in granule.arguments) == sorted([*of_prognostic, *of_diagnostic])


def test_the_results_are_pythons_to_the_last_bit(demo: Demo, host: running.Run) -> None:
    written = sorted(path.stem for path in host.results.glob("*.bin"))
    assert len(written) == WRITTEN
    assert list(host.problems(demo.expected)) == []
    initial = {path.stem: path.read_bytes() for path in demo.state.glob("*.bin")}
    changed = {name for name in written if initial.get(name) != (host.results / f"{name}.bin").read_bytes()}
    assert set(written) - changed == {"rho"}


def test_the_comparison_notices_a_last_bit(demo: Demo, host: running.Run, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(host.results, results)
    exner = np.fromfile(results / "exner.bin")
    exner[-1] = np.nextafter(exner[-1], np.inf)
    exner.tofile(results / "exner.bin")
    (problem,) = dataclasses.replace(host, results=results).problems(demo.expected)
    assert problem.startswith("'exner' differs by at most ")


def test_there_is_no_python_in_the_process(host: running.Run) -> None:
    assert "apply_diffusion_to_vn_stub.so" in host.libraries
    assert "libapply_diffusion_to_vn.so" in host.libraries
    assert [name for name in host.libraries if "python" in name] == []


def test_the_table_has_opening_and_binding_and_the_steps(host: running.Run) -> None:
    calls = {name: timer.calls for name, timer in host.timers.items()}
    assert calls == {"nh_hdiff_init": 1, "nh_hdiff_bind": 1, "nh_hdiff_run_initial": 1, "nh_hdiff_run": STEPS}
    for timer in host.timers.values():
        assert timer.least <= timer.average <= timer.most
        assert timer.total > 0


@pytest.mark.skipif(bool(building.missing_for_embedding()), reason=building.missing_for_embedding())
def test_embedded_python_gives_the_same_and_is_in_its_process(demo: Demo) -> None:
    embedded = running.run_embedded(demo.build, demo.state, demo.folder / "results-embedded", gtstub=True)
    assert len(list(embedded.results.glob("*.bin"))) == 9
    assert list(embedded.problems(demo.expected)) == []
    assert any(name.startswith("libpython") for name in embedded.libraries)
    assert "apply_diffusion_to_vn_stub.so" in embedded.libraries
    assert embedded.timers["nh_hdiff_run"].calls == STEPS


@pytest.mark.skipif(bool(building.missing_for_embedding()), reason=building.missing_for_embedding())
def test_a_step_that_python_hands_over_gives_the_same(demo: Demo) -> None:
    embedded = running.run_embedded(demo.build, demo.state, demo.folder / "results-handed", gtstub=True, way="handed")
    assert len(list(embedded.results.glob("*.bin"))) == 9
    assert list(embedded.problems(demo.expected)) == []
    assert embedded.timers["nh_hdiff_run"].calls == STEPS - 1
    assert embedded.timers["nh_hdiff_hand_over"].calls == 1


def test_a_step_from_c_is_that_of_the_granule(demo: Demo) -> None:
    """What the step of the granule is measured by; measure() itself compares the fields."""
    measured = measure(demo.build, demo.state, demo.granule, demo.folder, rounds=2)
    assert min(getattr(measured, field.name).least for field in dataclasses.fields(measured)) > 0


def test_without_gfortran_the_demo_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run.main() == 1
    assert "gfortran is not installed; get it with: apt-get install gfortran" in capsys.readouterr().out
