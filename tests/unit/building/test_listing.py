"""The file that lists the programs of a run: the reader of such files reads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from gtstub.entries.building.jobs import read_jobs
from gtstub.entries.building.listing import Listed, write_list


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    static = {
        "λ": 1,
        "flag": True,
        "count": -3,
        "weights": [1.5e-30, [2.0, False]],
        "large": 1e22,
        "none": float("inf"),
    }
    first = {
        "source": 'm"x\x7fλ\N{SNOWMAN}\N{GRINNING FACE}:p',
        "grid": "m:grid",
        "bound_static_args": static,
        "backend_tag": "CPU",
    }
    programs = [
        Listed("q", "q-2", {"source": "m:q", "backend_tag": "GPU"}),
        Listed("p", "p-1", first),
        Listed("r", "r-3", why="it has\nno name"),
    ]
    file = tmp_path / "programs.toml"
    write_list(file, programs)
    jobs = read_jobs(file)
    assert [(job.source, job.grid) for job in jobs] == [(first["source"], "m:grid"), ("m:q", "")]
    assert jobs[0].arguments == {"bound_static_args": static, "backend_tag": "CPU"}
    assert "# Program 'r' (r-3) is not listed: it has no name." in file.read_text().splitlines()


WRITER = """
import sys
from pathlib import Path
from gtstub.entries.building.listing import Listed, write_list
number = int(sys.argv[2])
own = [Listed(f"p{each}", f"p{each}-1", {"source": f"m:p{each}"}) for each in range(number, number + 3)]
print("ready", flush=True)
sys.stdin.readline()
write_list(Path(sys.argv[1]), own + [Listed("left", "left-1", why="it has no name")])
"""


def test_processes_that_write_at_once_keep_all_programs(tmp_path: Path) -> None:
    file = tmp_path / "programs.toml"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(file), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(8)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        process.communicate("go\n")
    assert sorted(job.source for job in read_jobs(file)) == [f"m:p{number}" for number in range(10)]
    assert file.read_text().count("(left-1) is not listed") == 1
    assert file.read_text().count("written by") == 1
