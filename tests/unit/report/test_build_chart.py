"""The chart of a build: its lines, its bars, and which build it is of."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from gtstub.entries.cache.manifest import BuildStage, Built
from gtstub.tools.report.build_chart import APART, LABEL, LINE, MOST, WIDTH, Build, build_chart, builds_of
from gtstub.tools.report.page import index_page
from tests.support.html_pages import Page
from tests.support.reported import publish

BEGIN = 1_700_000_000.0
LATEST = (
    Build(
        "diffuse",
        "left",
        (
            BuildStage("lowering", BEGIN, 2, 11),
            BuildStage("compilation", BEGIN + 4, 6, 12),
            BuildStage("stub", BEGIN + 4, 1, 12),
        ),
    ),
    Build("advect", "left", (BuildStage("lowering", BEGIN + 2, 1, 11), BuildStage("compilation", BEGIN + 3, 4, 13))),
    Build("advect", "right", (BuildStage("lowering", BEGIN + 1, 1, 11),)),
)
EARLIER = Build("diffuse", "left", (BuildStage("lowering", BEGIN - APART - 2, 1, 11),))


def test_each_process_of_each_host_has_a_line() -> None:
    drawn = build_chart(LATEST)
    assert drawn is not None
    processes = [(each.host, each.pid, each.programs, each.busy, each.seconds) for each in drawn.processes]
    assert drawn.stages == ("lowering", "compilation", "stub")
    assert processes == [
        ("left", 11, 2, "3.00", ("3.00", "", "")),
        ("right", 11, 1, "1.00", ("1.00", "", "")),
        ("left", 13, 1, "4.00", ("", "4.00", "")),
        ("left", 12, 1, "6.00", ("", "6.00", "1.00")),
    ]
    assert (drawn.programs, drawn.begin, drawn.seconds) == (3, "2023-11-14 22:13:20", "10.0")


def test_bars_are_where_and_as_long_as_their_stages() -> None:
    drawn = build_chart(LATEST)
    assert drawn is not None
    places = {bar.title.split(", by")[0]: (bar.x - LABEL, bar.width, bar.y // LINE, bar.color) for bar in drawn.bars}
    assert places == {
        "diffuse: lowering, 2.00 s from 0.00 s on": (0, 0.2 * WIDTH, 0, 0),
        "diffuse: compilation, 6.00 s from 4.00 s on": (0.4 * WIDTH, 0.6 * WIDTH, 3, 1),
        "diffuse: stub, 1.00 s from 4.00 s on": (0.4 * WIDTH, 0.1 * WIDTH, 3, 2),
        "advect: lowering, 1.00 s from 2.00 s on": (0.2 * WIDTH, 0.1 * WIDTH, 0, 0),
        "advect: compilation, 4.00 s from 3.00 s on": (0.3 * WIDTH, 0.4 * WIDTH, 2, 1),
        "advect: lowering, 1.00 s from 1.00 s on": (0.1 * WIDTH, 0.1 * WIDTH, 1, 0),
    }
    assert drawn.bars[0].title.endswith(", by process 11 on 'left'")
    assert [tick.label for tick in drawn.ticks] == [f"{number} s" for number in range(11)]


def test_the_chart_is_that_of_the_latest_build() -> None:
    drawn = build_chart([EARLIER, *LATEST, Build("old", "left", ())])
    assert drawn is not None
    assert (drawn.programs, drawn.older, drawn.unknown) == (3, 1, 1)
    near = dataclasses.replace(EARLIER, stages=(BuildStage("lowering", BEGIN - APART - 1, 1, 11),))
    together = build_chart([near, *LATEST])
    assert together is not None
    assert (together.programs, together.older) == (4, 0)


def test_an_entry_that_waits_for_its_process_is_one_build() -> None:
    waited = Build("slow", "left", (BuildStage("lowering", BEGIN, 1, 11), BuildStage("saving", BEGIN + 5e3, 1, 12)))
    drawn = build_chart([waited])
    assert drawn is not None
    assert len(drawn.bars) == 2


def test_nothing_and_too_much_is_not_drawn() -> None:
    assert build_chart([]) is None
    assert build_chart([Build("old", "left", ())]) is None
    many = [Build("wide", "left", (BuildStage("lowering", BEGIN, 1, pid),)) for pid in range(1, MOST + 2)]
    drawn = build_chart(many)
    assert drawn is not None
    assert not drawn.drawn
    page = index_page([], [], drawn)
    assert f"A chart of {MOST + 1} processes would be too large; the table has all of them." in page
    assert len(Page(page).rows("build")) == MOST + 1


@pytest.mark.parametrize("seconds", [0, 1e-3, 59.0, 1e11])
def test_any_time_has_an_axis(seconds: float) -> None:
    drawn = build_chart([Build("one", "left", (BuildStage("lowering", BEGIN, seconds, 11),))])
    assert drawn is not None
    assert 1 <= len(drawn.ticks) <= 11
    assert all(LABEL <= tick.x <= LABEL + WIDTH for tick in drawn.ticks)


def test_the_page_of_a_cache_has_the_chart(tmp_path: Path) -> None:
    entry = publish(tmp_path, built=Built(stages=LATEST[0].stages))
    host = json.loads(entry.manifest_file.read_bytes())["built"]["host"]
    page = Page(index_page([], [], build_chart(builds_of(tmp_path))))
    titles = [each.text for each in page.all("title") if each.is_in("build")]
    assert titles[1] == f"whole: compilation, 6.00 s from 4.00 s on, by process 12 on '{host}'"
    assert len(titles) == 3
    (chart,) = page.all("svg", "build-chart")
    assert chart.attributes["aria-label"] == "What 2 processes did in 10.0 s; the table has the sums"
    assert page.rows("build") == [
        [f"{host} 11", "1", "2.00", "2.00", "", ""],
        [f"{host} 12", "1", "6.00", "", "6.00", "1.00"],
    ]


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "\u202eevil", "'\"&"])
def test_names_do_no_harm(name: str) -> None:
    drawn = build_chart([Build(name, name, (BuildStage(name, BEGIN, 1, 11),))])
    text = index_page([], [], drawn)
    assert "<script>alert" not in text
    assert "\u202e" not in text
    Page(text)
