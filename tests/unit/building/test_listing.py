"""The file that lists the programs of a run: the reader of such files reads it."""

from __future__ import annotations

from pathlib import Path

from gtstub.building.jobs import read_jobs
from gtstub.building.listing import Listed, write_list


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    static = {"flag": True, "count": -3, "weights": [1.5e-30, [2.0, False]], "large": 1e22, "none": float("inf")}
    first = {"source": 'm"x:p', "grid": "m:grid", "bound_static_args": static, "backend_tag": "CPU"}
    programs = [
        Listed("q", "q-2", {"source": "m:q", "backend_tag": "GPU"}),
        Listed("p", "p-1", first),
        Listed("r", "r-3", why="it has no name"),
    ]
    file = tmp_path / "programs.toml"
    write_list(file, programs)
    jobs = read_jobs(file)
    assert [(job.source, job.grid) for job in jobs] == [('m"x:p', "m:grid"), ("m:q", "")]
    assert jobs[0].arguments == {"bound_static_args": static, "backend_tag": "CPU"}
    assert "# Program 'r' (r-3) is not listed: it has no name." in file.read_text().splitlines()
