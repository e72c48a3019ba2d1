"""
Runs icon4py's driver once, in one of several ways, and writes what was measured:

    python -m examples.model.model SETTINGS.json

`run.py` calls this in a process of its own for each way, so that memory and imports are those of one way.
"""

from __future__ import annotations

import dataclasses
import json
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console

from examples.model.grid import parse_name
from examples.model.stages import Announcements, Stages

if TYPE_CHECKING:
    import numpy as np

    from examples.model.granule import Export

PROGNOSTIC = ("rho", "w", "vn", "exner", "theta_v")

type Way = Literal["gtstub", "gtstub, captured", "gt4py, DaCe", "gt4py, GTFN"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """
    `grid` is the name of the grid in the file `grid_file`; `folder` gets the results and the driver's output. `steps`
    are time steps, of so many `substeps` each. With `export`, the steps of the time loop are exported as a granule.
    """

    grid: str
    grid_file: str
    folder: str
    levels: int
    steps: int
    substeps: int
    only_diffusion: bool
    way: Way
    export: bool = False

    @property
    def name(self) -> str:
        """A name for files."""
        return self.way.replace(", ", "-")


@dataclasses.dataclass(frozen=True)
class Result:
    """
    Seconds of each stage and of each time step. `outside` is the share of the last time step that is not in SDFGs; the
    calls of this step are timed, so it is no part of other figures. `built` counts the cache entries that the run has
    built, None for gt4py's backends. `peak` is the largest resident memory of the process in bytes, `children` that of
    the largest process that it has started, such as those that build programs.
    """

    way: Way
    stages: dict[str, float]
    steps: list[float]
    outside: float | None
    built: int | None
    peak: int
    children: int
    captured: list[str]

    @property
    def later(self) -> list[float]:
        """The seconds of the steps but the first one, which loads programs, and the last one, whose calls are timed."""
        return self.steps[1:-1]


def main(file: Path) -> None:
    settings = Settings(**json.loads(file.read_text()))
    console = Console(highlight=False, stderr=False)
    result, fields = run(settings, Stages(console))
    import numpy as np

    folder = Path(settings.folder)
    np.savez(folder / f"{settings.name}.npz", **fields)
    (folder / f"{settings.name}.json").write_text(json.dumps(dataclasses.asdict(result), indent=1))


def run(settings: Settings, stages: Stages) -> tuple[Result, dict[str, np.ndarray[Any, Any]]]:
    """Runs the driver, and returns also the prognostic fields at the end."""
    begin = time.time()
    is_gtstub = settings.way.startswith("gtstub")
    with stages.stage("imports of icon4py"):
        if is_gtstub:
            from gtstub.frameworks import icon4py

            icon4py.use()
        from gt4py.next.otf import runners
        from icon4py.model.common import initial_condition, model_backends, model_options
        from icon4py.model.common.decomposition.definitions import get_process_properties, get_runtype
        from icon4py.model.common.states import (
            diagnostic_state,
            nonhydro_states,
            prognostic_state,
            tracer_states,
        )
        from icon4py.model.driver import driver, driver_states, driver_utils

        from examples.model.experiment import make_config
    warnings.filterwarnings("ignore", category=RuntimeWarning, module="icon4py")  # 0/0 at what pentagons lack
    driver.log.addHandler(Announcements(stages))
    driver_utils.log.addHandler(driver.log.handlers[-1])
    for log in (driver.log, driver_utils.log):
        log.setLevel("INFO")

    root, level = parse_name(settings.grid)
    config = make_config(
        root=root,
        level=level,
        levels=settings.levels,
        steps=settings.steps,
        substeps=settings.substeps,
        only_diffusion=settings.only_diffusion,
        output=Path(settings.folder) / "output" / settings.name,
    )
    factory = model_backends.make_custom_gtfn_backend if "GTFN" in settings.way else None
    descriptor = {
        "backend_factory": factory or model_backends.make_custom_dace_backend,
        "device": model_backends.CPU,
        "auto_optimize": False,
    }
    backend = model_options.customize_backend(program=None, backend=descriptor)
    allocator = model_backends.get_allocator(backend)
    with stages.stage("grid"):
        properties = get_process_properties(get_runtype(with_mpi=False))
        manager = driver_utils.create_grid_manager(
            grid_file_path=Path(settings.grid_file),
            vertical_grid_config=config.vertical_grid,
            allocator=allocator,
            process_props=properties,
        )
    # What follows is `run_driver`, in two stages and with a watch on its time steps.
    with stages.stage("static fields and granules"):
        model = driver.initialize_driver(config=config, grid_manager=manager, process_props=properties, backend=backend)
    with stages.stage("initial state"):
        now = prognostic_state.initialize_prognostic_state(grid=model.grid, allocator=allocator)
        tracers = tracer_states.initialize_tracer_state(
            grid=model.grid, allocator=allocator, tracer_config=config.tracer_config
        )
        nonhydrostatic = None
        if config.nonhydrostatic is not None:
            nonhydrostatic = nonhydro_states.initialize_solve_nonhydro_diagnostic_state(
                grid=model.grid, allocator=allocator
            )
        initial_condition.create(
            config=config.initial_condition,
            vertical_config=config.vertical_grid,
            grid=model.grid,
            static_fields=model.static_field_factories,
            prognostic_state_now=now,
            tracer_state_now=tracers,
            solve_nonhydro_diagnostic_state=nonhydrostatic,
            backend=backend,
            exchange=model.exchange,
            global_reductions=model.global_reductions,
        )
        states = driver_states.assemble_driver_states(
            grid=model.grid,
            allocator=allocator,
            backend=backend,
            exchange=model.exchange,
            static_fields=model.static_field_factories,
            prognostic_state_now=now,
            tracer_state_now=tracers,
            diagnostic_state=diagnostic_state.initialize_diagnostic_state(grid=model.grid, allocator=allocator),
            experiment_config=config,
            solve_nonhydro_diagnostic_state=nonhydrostatic,
        )
    captured = _capture(model.granules) if "captured" in settings.way else []
    export = _export(captured, states, Path(settings.folder) / "dycore") if settings.export else None
    watch = _Watch(stages, settings.steps, profiles=is_gtstub, export=export)
    model._integrate_one_time_step = watch.watched(model._integrate_one_time_step)
    with stages.stage("time steps"):
        model.time_integration(states)
    if export is not None:
        export.write("after")

    runners.reset_default_runner()  # Ends the processes that build, so that they count as children.
    kib = {who: resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)}
    result = Result(
        way=settings.way,
        stages=stages.seconds,
        steps=watch.seconds,
        outside=watch.outside,
        built=_built_since(begin) if is_gtstub else None,
        peak=1024 * kib[resource.RUSAGE_SELF],
        children=1024 * kib[resource.RUSAGE_CHILDREN],
        captured=[line for one in captured for line in _describe(one)],
    )
    return result, {name: getattr(states.prognostics.current, name).asnumpy() for name in PROGNOSTIC}


class _Watch:
    """Times each time step; in the last one gtstub times each call, too."""

    def __init__(self, stages: Stages, count: int, profiles: bool, export: Export | None) -> None:
        self._stages, self._count, self._profiles, self._export = stages, count, profiles, export
        self.seconds: list[float] = []
        self.outside: float | None = None

    def watched(self, integrate: Any) -> Any:
        def step(**arguments: Any) -> None:
            number = len(self.seconds) + 1
            if self._export is not None:
                self._export.before(number)
            begin = time.perf_counter()
            if self._profiles and number == self._count > 1:
                self._profile(lambda: integrate(**arguments))
            else:
                integrate(**arguments)
            self.seconds.append(time.perf_counter() - begin)
            self._stages.say(f"time step {number} of {self._count}: {self.seconds[-1]:.3f} s")

        return step

    def _profile(self, integrate: Any) -> None:
        import gtstub

        with gtstub.profile() as report:
            integrate()
        self.outside = 1 - report.shares()["SDFG"] / report.wall


def _capture(granules: Any) -> list[Any]:
    from examples.captured_diffusion.captured import Captured
    from examples.model.substeps import CapturedSubsteps

    granules.diffusion.run = diffusion = Captured(granules.diffusion.run)
    if granules.solve_nonhydro is None:
        return [diffusion]
    granules.solve_nonhydro.time_step = substeps = CapturedSubsteps(granules.solve_nonhydro)
    return [diffusion, substeps]


def _export(captured: list[Any], states: Any, folder: Path) -> Export:
    from examples.model.granule import Export

    return Export(captured, states, folder)


def _describe(captured: Any) -> list[str]:
    steps = captured.steps
    lines = [f"{len(steps)} steps of {len(steps[-1])} actions: '{steps[-1].__name__}'"] if steps else []
    return [*lines, *captured.refusals]


def _built_since(begin: float) -> int:
    """How many entries of the cache were built since a time, in seconds since 1970."""
    from gtstub.entries.cache.store import open_cache

    return sum(entry.manifest().built.time >= begin for entry in open_cache().entries())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
