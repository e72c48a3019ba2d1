"""Profiles of steps from Python: what is timed at each position, and that reports with steps are read again."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.tools.profiling.report import Report
from tests.support.hosting import run_script
from tests.support.scale_program import N


@pytest.fixture
def call(parts: tuple[Path, Path]) -> _host.BoundCall:
    return _host.load(*parts).bind(np.ones(N), 2.0, np.zeros(N))


def exchange() -> None:
    time.sleep(2e-3)


def counts(report: Report) -> list[tuple[str, list[tuple[str, str, int]]]]:
    """Name, kind and calls of each position, by step."""
    return [
        (step.name, [(position.name, position.kind, position.calls) for position in step.positions])
        for step in sorted(report.steps, key=lambda step: (step.name, len(step.positions)))
    ]


def test_positions_are_timed(call: _host.BoundCall) -> None:
    step = gtstub.Step([call, exchange, call], "dynamics")
    step()
    with gtstub.profile() as report:
        assert report.steps == ()
        for _ in range(3):
            step()
    step()
    assert counts(report) == [
        ("dynamics", [("scale", "program", 3), ("exchange", "function", 3), ("scale", "program", 3)])
    ]
    (times,) = report.steps
    for position in times.positions:
        assert position.time is not None
        assert position.time.min <= position.time.median <= position.time.max <= position.time.total
    function = times.positions[1].time
    assert function is not None
    assert function.min >= 2e-3  # it sleeps that long
    assert function.total <= times.total <= report.wall
    (program,) = report.programs
    assert program.run is not None
    assert program.run.calls == 6
    assert program.run.whole.total <= times.positions[0].total + times.positions[2].total


def test_a_report_has_steps_only_if_one_has_run(call: _host.BoundCall) -> None:
    with gtstub.profile() as report:
        call()
    assert report.steps == ()
    assert "steps" not in report.document


def test_an_action_that_raises_is_not_counted(call: _host.BoundCall) -> None:
    def fail() -> None:
        raise LookupError

    step = gtstub.Step([call, fail, call], "failing")
    with gtstub.profile() as report, pytest.raises(LookupError):
        step()
    ((_, positions),) = counts(report)
    assert [calls for _, _, calls in positions] == [1, 0, 0]
    assert [position.time is None for position in report.steps[0].positions] == [False, True, True]


def test_profiles_nest(call: _host.BoundCall) -> None:
    step = gtstub.Step([call], "dynamics")
    with gtstub.profile() as outer:
        step()
        with gtstub.profile() as inner:
            step()
            step()
    assert counts(inner) == [("dynamics", [("scale", "program", 2)])]
    assert counts(outer) == [("dynamics", [("scale", "program", 3)])]


def test_steps_may_be_changed_and_made_anew(call: _host.BoundCall) -> None:
    with gtstub.profile() as report:
        for _ in range(10):
            step = gtstub.Step([call], "anew")
            step()
            step.actions = [call, exchange]
            step()
    expected = [[("scale", "program", 10)], [("scale", "program", 10), ("exchange", "function", 10)]]
    assert counts(report) == [("anew", positions) for positions in expected]


def test_a_step_within_a_step_is_timed_too(call: _host.BoundCall) -> None:
    outer = gtstub.Step([gtstub.Step([call, call], "inner"), call], "outer")
    with gtstub.profile() as report:
        outer()
    inner, outer_positions = counts(report)
    assert inner == ("inner", [("scale", "program", 1)] * 2)
    assert outer_positions == ("outer", [("inner", "function", 1), ("scale", "program", 1)])
    assert [step.name for step in report.steps] == ["outer", "inner"]  # by their totals


def test_report_is_read_as_it_was_saved(call: _host.BoundCall, tmp_path: Path) -> None:
    step = gtstub.Step([call, exchange], 'a "ä"\n')
    with gtstub.profile() as report:
        step()
    report.save(tmp_path / "report.json")
    read = Report.load(tmp_path / "report.json")
    assert read.steps == report.steps
    assert read.steps[0].name == 'a "ä"\n'


def test_environment_writes_the_report_of_a_process_with_steps_alone(parts: tuple[Path, Path], tmp_path: Path) -> None:
    code = "import sys, gtstub; from gtstub import _host; _host.load(*sys.argv[1:3]); gtstub.Step([dict], 'alone')()"
    path = tmp_path / "report.json"
    assert run_script(code, *parts, environment={"GTSTUB_PROFILE": str(path)}.items()) == ""
    assert counts(Report.load(path)) == [("alone", [("dict", "function", 1)])]
