"""
The Fortran host of examples/fortran_host: icon4py's diffusion over committed stubs, without Python, and through
embedded Python. One worker builds the programs and the hosts once, and runs all of these.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from examples.fortran_host import building, prepare, run, running
from examples.fortran_host.measure import measure
from examples.granule.steps import Observer
from tests.support.programs import need

pytestmark = pytest.mark.xdist_group("fortran host")

STEPS = 20
WRITTEN = 21
"""The fields that the host writes: of the state, and the granule's own."""

BY_STEP = {
    "setup_fields_for_initial_step": 0,
    "scale_k": 1,
    "mo_intp_rbf_rbf_vec_interpol_vertex": 2,
    "calculate_nabla2_and_smag_coefficients_for_vn": 1,
    "calculate_diagnostic_quantities_for_turbulence": 1,
    "apply_diffusion_to_vn": 1,
    "copy_field": 2,
    "apply_diffusion_to_w_and_compute_horizontal_gradients_for_turbulence": 1,
    "calculate_enhanced_diffusion_coefficients_for_grid_point_cold_pools": 1,
    "apply_diffusion_to_theta_and_exner": 1,
}
"""How often each program is called in a step that is not the initial one."""


@dataclasses.dataclass(frozen=True)
class Demo:
    entries: Mapping[str, Path]
    step: Sequence[str]
    expected: Mapping[str, prepare.Array]
    state: Path
    build: Path
    folder: Path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    need("gfortran")
    folder = tmp_path_factory.mktemp("fortran-host")
    observer = Observer(prepare.Gtstub.setup_program)
    granule = prepare.set_up(observer.setup_program)
    prepare.write_state(granule, STEPS, folder / "state")
    expected = prepare.run(granule, STEPS)
    step = [call.name for call in observer.observe(lambda: granule.step(1))]
    entries = prepare.entries()
    bindings = None if building.missing_for_embedding() else building.make_bindings(folder / "bindings")
    build = building.build(entries, folder, bindings)
    return Demo(entries, step, expected, folder / "state", build, folder)


@pytest.fixture(scope="module")
def host(demo: Demo) -> running.Run:
    return running.run_host(demo.build, demo.state, demo.folder / "results", "calls")


@pytest.fixture(scope="module")
def bound_host(demo: Demo) -> running.Run:
    """The same, with the calls of a step bound."""
    return running.run_host(demo.build, demo.state, demo.folder / "results-step", "step")


def test_the_results_are_pythons_to_the_last_bit(demo: Demo, host: running.Run) -> None:
    written = sorted(path.stem for path in host.results.glob("*.bin"))
    assert len(written) == WRITTEN
    assert list(host.problems(demo.expected)) == []
    initial = {path.stem: path.read_bytes() for path in demo.state.glob("*.bin")}
    changed = {name for name in written if initial.get(name) != (host.results / f"{name}.bin").read_bytes()}
    assert set(written) - changed == {"rho"}


def test_bound_calls_give_the_same(demo: Demo, host: running.Run, bound_host: running.Run) -> None:
    assert list(bound_host.problems(demo.expected)) == []
    assert {path.name for path in bound_host.results.glob("*.bin")} == {
        path.name for path in host.results.glob("*.bin")
    }
    calls = {name: timer.calls for name, timer in bound_host.timers.items()}
    assert calls == {
        "nh_hdiff_init": 1,
        "nh_hdiff_run_initial": 1,
        "nh_hdiff_bind": 1,
        "nh_hdiff_run": STEPS,
        "gts_open": 14,
    }


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


def test_the_table_has_init_and_run_and_every_program(host: running.Run) -> None:
    calls = {name: timer.calls for name, timer in host.timers.items()}
    assert calls == {
        "nh_hdiff_init": 1,
        "nh_hdiff_run_initial": 1,
        "nh_hdiff_run": STEPS,
        "gts_open": 14,
        "init_diffusion_local_fields_for_regular_timestep": 1,
        "init_nabla2_factor_in_upper_damping_zone": 1,
        **{name: count * (STEPS + 1) or 1 for name, count in BY_STEP.items()},
    }
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
    """What the Fortran step is measured by; measure() itself compares the fields."""
    measured = measure(demo.build, demo.state, demo.entries, demo.step, demo.folder, rounds=2)
    assert min(getattr(measured, field.name).least for field in dataclasses.fields(measured)) > 0


def test_an_entry_of_another_signature_is_refused(demo: Demo, tmp_path: Path) -> None:
    program = "copy_field"
    building.check_signatures(program, demo.entries[program])
    other = tmp_path / "entry"
    shutil.copytree(demo.entries[program], other)
    text = (other / "sdfg.json").read_text(encoding="utf-8")
    (other / "sdfg.json").write_text(text.replace("__new_f_", "__newer_f_"), encoding="utf-8")
    with pytest.raises(SystemExit) as refusal:
        building.check_signatures(program, other)
    assert str(refusal.value) == (
        "Program 'copy_field' was built with another sdfg signature than that of its committed stub:"
        " 'make check-generated' says what has changed."
    )


def test_without_gfortran_the_demo_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run.main() == 1
    assert "gfortran is not installed; get it with: apt-get install gfortran" in capsys.readouterr().out
