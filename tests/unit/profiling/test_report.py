"""Reports of profiles: read, printed as a table, drawn."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import gtstub
from gtstub.cli.app import main
from gtstub.errors import GtstubError, SignatureError
from gtstub.tools.profiling.model import Calls, PositionTimes, Times, duration, labels
from gtstub.tools.profiling.report import Report


def calls(count: int, conversion: float, sdfg: float) -> dict[str, Any]:
    """As if each call had taken the same time."""

    def times(seconds: float) -> dict[str, float]:
        return {"min": seconds, "median": seconds, "max": seconds, "total": count * seconds}

    return {
        "calls": count,
        "conversion": times(conversion),
        "sdfg": times(sdfg),
        "whole": times(conversion + sdfg),
    }


def item(name: str, run: Any, initial: Any = None, digest: str = "00", **static: Any) -> dict[str, Any]:
    return {"name": name, "sdfg_digest": digest * 32, "static": static, "initial": initial, "run": run}


DOCUMENT = {
    "schema": "gtstub/profile/1",
    "wall": 4.0,
    "programs": [
        item("vn", calls(6, 0.0625, 0.125), calls(1, 0.25, 0.5), limited_area=True, n=3),
        item("vn", calls(2, 0.0625, 0.125), limited_area=False, n=3),
        item("theta", calls(4, 0.0, 0.375)),
    ],
}


def position(name: str, kind: str, count: int, seconds: float) -> dict[str, Any]:
    time = {"min": seconds, "median": seconds, "max": seconds, "total": count * seconds}
    return {"name": name, "kind": kind, "calls": count, "time": time if count > 0 else None}


STEPS = [
    {"name": "physics", "positions": [position("theta", "program", 2, 0.125)]},
    {
        "name": "dynamics",
        "positions": [
            position("vn", "program", 4, 0.375),
            position("exchange", "function", 4, 0.125),
            position("theta", "program", 0, 0.0),
        ],
    },
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(DOCUMENT))
    return path


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["profile", *map(str, arguments)])
    return done.exit_code, done.output


def test_programs_are_sorted_by_their_total() -> None:
    report = Report(DOCUMENT)
    assert [program.name for program in report.programs] == ["theta", "vn", "vn"]
    seconds = Times(0.0, 0.0, 0.0, 0.0)
    assert report.programs[0].run == Calls(4, seconds, Times(0.375, 0.375, 0.375, 1.5), Times(0.375, 0.375, 0.375, 1.5))


def test_variants_are_named_by_what_differs() -> None:
    report = Report(DOCUMENT)
    assert labels(report.programs) == ["theta", "vn (limited_area=True)", "vn (limited_area=False)"]
    assert labels(report.programs[:2]) == ["theta", "vn"]
    same = Report({**DOCUMENT, "programs": [item("vn", calls(1, 1, 1)), item("vn", calls(1, 1, 1), digest="ab")]})
    assert labels(same.programs) == ["vn [00000000]", "vn [abababab]"]


def test_table_of_the_command(file: Path) -> None:
    code, output = run(file)
    assert code == 0
    rows = [" ".join(line.split()) for line in output.splitlines()]
    assert rows[0] == "name # calls t_min t_avg t_med t_max total conversion t_med SDFG t_med conversion share"
    assert rows[1] == "theta 4 375 ms 375 ms 375 ms 375 ms 1.50 s 0 ns 375 ms 0.0%"
    assert rows[2] == "vn (limited_area=True) 6 188 ms 188 ms 188 ms 188 ms 1.12 s 62.5 ms 125 ms 33.3%"
    assert rows[3] == "vn_initial (limited_area=True) 1 750 ms 750 ms 750 ms 750 ms 750 ms 250 ms 500 ms 33.3%"
    assert rows[4] == "vn (limited_area=False) 2 188 ms 188 ms 188 ms 188 ms 375 ms 62.5 ms 125 ms 33.3%"
    assert rows[5] == "total 12 3.00 s 16.7%"
    assert rows[6] == "total_initial 1 750 ms 33.3%"
    assert output.endswith(
        "\nOf 4.00 s: conversion 12.5%, SDFG 62.5%, initial calls 18.8%, outside gtstub 6.2%.\n",
    )
    assert f"{Report.load(file)}\n" == output


def test_table_of_steps(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps({**DOCUMENT, "steps": STEPS}))
    code, output = run(path)
    assert code == 0
    _, table, summary = output.split("\n\n")
    assert [" ".join(line.split()) for line in table.splitlines()] == [
        "step action # calls t_min t_avg t_med t_max total share",
        "dynamics 1 vn 4 375 ms 375 ms 375 ms 375 ms 1.50 s 75.0%",
        "2 exchange() 4 125 ms 125 ms 125 ms 125 ms 500 ms 25.0%",
        "3 theta 0 0.0%",
        "total 2.00 s",
        "physics 1 theta 2 125 ms 125 ms 125 ms 125 ms 250 ms 100.0%",
        "total 250 ms",
    ]
    assert summary.startswith("Of 4.00 s: ")
    report = Report.load(path)
    assert f"{report}\n" == output
    assert [step.name for step in report.steps] == ["dynamics", "physics"]
    assert report.steps[0].positions[:2] == (
        PositionTimes("vn", "program", 4, Times(0.375, 0.375, 0.375, 1.5)),
        PositionTimes("exchange", "function", 4, Times(0.125, 0.125, 0.125, 0.5)),
    )
    assert run(path, "--jq", '.steps[].positions[] | select(.kind == "function").time.total') == (0, "0.5\n")


def test_a_report_without_steps_is_as_before(file: Path) -> None:
    report = Report.load(file)
    assert report.steps == ()
    assert report.step_table().row_count == 0
    assert str(report).count("\n\n") == 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ns"),
        (4.4e-8, "44 ns"),
        (9.994e-7, "999 ns"),
        (9.996e-7, "1.00 µs"),
        (2.154e-3, "2.15 ms"),
        (0.1, "100 ms"),
        (59.9, "59.9 s"),
        (59.99, "01m00s"),
        (188.158, "03m08s"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_command_prints_json(file: Path) -> None:
    assert json.loads(run(file, "--json")[1]) == DOCUMENT
    assert run(file, "--jq", ".programs[].run.calls") == (0, "6\n2\n4\n")


def test_empty_report_is_a_table(tmp_path: Path) -> None:
    with gtstub.profile() as report:
        pass
    report.save(tmp_path / "empty.json")
    report.plot(tmp_path / "empty.svg")
    code, output = run(tmp_path / "empty.json")
    assert code == 0
    assert "total" in output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "'{}' is not JSON: Expecting property name enclosed in double quotes at line 1, column 2."),
        (
            '{"schema": "gtstub/profile/1", "wall": 1}',
            "'{}' is not a profile: at '$', expected a member 'programs', found none.",
        ),
        (
            '{"schema": "gtstub/profile/2", "wall": 1, "programs": []}',
            "'{}' is not a profile: at '$.schema', expected 'gtstub/profile/1', found '\"gtstub/profile/2\"'.",
        ),
        (
            '{"schema": "gtstub/profile/1", "wall": 1, "programs": [], "steps": [{"name": "s"}]}',
            "'{}' is not a profile: at '$.steps[0]', expected a member 'positions', found none.",
        ),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    assert run(path) == (3, message.replace("{}", str(path)) + "\n")
    with pytest.raises(SignatureError):
        Report.load(path)


def test_missing_report_is_said(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    assert run(path) == (7, f"Cannot read or write '{path}': No such file or directory.\n")


# --- Plots ------------------------------------------------------------------------------------------------------------


def test_plot_names_programs_and_is_the_same_twice(file: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    code, output = run(file, "--plot", first)
    assert code == 0
    assert f"'{first}' was written." in output
    run(file, "--plot", second)
    text = first.read_text()
    for word in ("theta", "vn (limited_area=True)", "vn (limited_area=False)", "initial calls", "conversion", "SDFG"):
        assert f">{word}</text>" in text
    assert ">outside gtstub</text>" not in text
    assert "outside gtstub 6.2%" in text
    assert first.read_bytes() == second.read_bytes()


def test_plot_is_a_png(file: Path, tmp_path: Path) -> None:
    Report.load(file).plot(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_plot_draws_one_bar_for_many_small_programs(tmp_path: Path) -> None:
    programs = [item(f"p{number}", calls(1, 1e-6 * (100 - number), 1e-6)) for number in range(40)]
    Report({**DOCUMENT, "programs": programs}).plot(tmp_path / "plot.svg")
    text = (tmp_path / "plot.svg").read_text()
    assert ">p29</text>" in text
    assert ">p30</text>" not in text
    assert ">10 others</text>" in text


def test_plot_has_a_bar_for_each_position_of_a_step(tmp_path: Path) -> None:
    Report({**DOCUMENT, "steps": STEPS}).plot(tmp_path / "plot.svg")
    text = (tmp_path / "plot.svg").read_text()
    for label in ("dynamics 1: vn", "dynamics 2: exchange()", "physics 1: theta", "theta", "function of a step"):
        assert f">{label}</text>" in text
    Report(DOCUMENT).plot(tmp_path / "plot.svg")
    assert "of a step" not in (tmp_path / "plot.svg").read_text()


def test_plot_leaves_out_the_shortest_of_many_positions(tmp_path: Path) -> None:
    positions = [position(f"p{number}", "program", 1, 1e-6 * (1 + number)) for number in range(110)]
    Report({**DOCUMENT, "steps": [{"name": "s", "positions": positions}]}).plot(tmp_path / "plot.svg")
    text = (tmp_path / "plot.svg").read_text()
    assert ">s 10: p9</text>" not in text
    assert ">s 11: p10</text>" in text
    assert ">10 others</text>" in text


def test_plot_of_another_kind_is_refused(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "plot.pdf"
    assert run(file, "--plot", path) == (1, f"A plot file must end in '.svg' or '.png', but is '{path}'.\n")


def test_plot_without_matplotlib_says_what_to_install(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(GtstubError) as caught:
        Report.load(file).plot(file.with_suffix(".svg"))
    assert str(caught.value) == "Plots need matplotlib: 'pip install matplotlib'."
