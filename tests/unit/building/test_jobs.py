"""The file that lists programs to build: what it says, and what is refused with its line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from gtstub.cli.app import main
from gtstub.entries.building.jobs import Job, failed, longest_first, read_jobs, select
from gtstub.entries.cache.manifest import BuildStage, Built
from gtstub.entries.cache.store import Cache
from gtstub.errors import ConfigError
from tests.support.entries import publish


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "programs.toml"


def test_each_combination_of_static_arguments_is_a_job(file: Path) -> None:
    file.write_text(
        """
[default]
grid = "m:grid"
vertical_sizes.vertical_end = 60

[[program]]
source = "m:one"
static_args = {a = [1, 2], b = [true]}

[[program]]
source = "m:two"
grid = "m:other"
vertical_sizes = {}
"""
    )
    sizes = {"vertical_sizes": {"vertical_end": 60}}
    jobs = read_jobs(file)
    assert jobs == [
        Job("m:one", "m:grid", {**sizes, "static_args": {"a": [1], "b": [True]}}, file),
        Job("m:one", "m:grid", {**sizes, "static_args": {"a": [2], "b": [True]}}, file),
        Job("m:two", "m:other", {"vertical_sizes": {}}, file),
    ]
    assert [job.label for job in jobs] == ["one (a=1, b=True)", "one (a=2, b=True)", "two"]


def test_failure_of_a_job_has_the_line_of_its_cause(file: Path) -> None:
    file.write_text(
        """
[default]
grid = "my.grid:make"

[[program]]
source = "my.model:one"
bound_static_args.weight = 0.5
bound_static_args.scheme = "my.schemes:UPWIND"
"""
    )
    (job,) = read_jobs(file)
    for error, line in (
        ("Module 'my.grid' has no 'make'", 3),
        ("Module 'my.model' has no 'one'", 6),
        ("Program 'one' has no parameter 'weight'", 7),
        ("Module 'my.schemes' has no 'UPWIND'", 8),
        ("Offset 'V2E' not found", 6),
    ):
        assert failed(job, error).error == f"'{file}', line {line}: Program 'one' could not be built: {error}."


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[programs]", 1, "There is no table 'programs'. Did you mean: 'program'?"),
        ("[program]\nsource = 'm:p'", 1, "Programs are tables of an array: write [[program]], not [program]."),
        ("[[program]]\ngrid = 'm:g'", 1, "A program needs its 'source', as \"module:name\"."),
        (
            "[[program]]\nsource = 'm:p'\n[[program]]\nsource = 'm:p'\nstatic_arg = {}",
            5,
            "There is no setting 'static_arg'. Did you mean: 'static_args'?",
        ),
        ("[[program]]\nsource = 'p'", 2, '\'source\' must be "module:name", but is "p".'),
        (
            "[[program]]\nsource = 'm:p'\nstatic_args.limited = true",
            3,
            "Static argument 'limited' needs a list of values, but is True.",
        ),
        (
            "[default]\nstatic_args.limited = []\n[[program]]\nsource = 'm:p'",
            2,
            "Static argument 'limited' needs a list of values, but is [].",
        ),
        (
            "[[program]]\nsource = 'm:p'\nvertical_sizes = 60",
            3,
            "'vertical_sizes' must be a table, but is 60.",
        ),
        ("[default]\nsource = 'm:p'", 2, "'source' belongs to a program: write it below [[program]]."),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(file: Path, text: str, line: int, message: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_jobs(file)
    assert str(refused.value) == f"'{file}', line {line}: {message}"


SET = """
[[program]]
source = "m:one"
static_args.a = [1, 2]

[[program]]
source = "m:two"
"""


def test_programs_of_a_set_are_chosen_by_name(file: Path) -> None:
    file.write_text(SET)
    jobs = read_jobs(file)
    assert select(jobs, ()) == jobs
    assert [job.label for job in select(jobs, ("one",))] == ["one (a=1)", "one (a=2)"]
    assert select(jobs, ("two", "one")) == jobs


def test_program_that_the_set_has_not(file: Path) -> None:
    file.write_text(SET)
    refused = CliRunner().invoke(main, ["build", str(file), "--program", "tow", "--cache", str(file.parent / "cache")])
    assert refused.exit_code == 2
    assert "Invalid value for '--program': There is no program 'tow'. Did you mean: 'two'?" in refused.stderr


def test_program_is_chosen_in_sets_only() -> None:
    refused = CliRunner().invoke(main, ["build", "sdfg.json", "program.json", "--library", "lib.so", "--program", "p"])
    assert refused.exit_code == 2
    assert "'--program' is for a set of programs; two signatures belong to one program." in refused.stderr


# --- The order of builds ----------------------------------------------------------------------------------------------


def sized(**sizes: int) -> list[tuple[Job, int]]:
    return [(Job(f"model:{name}", "", {}), size) for name, size in sizes.items()]


def order(cache: Cache, **sizes: int) -> list[str]:
    return [job.program for job in longest_first(cache, sized(**sizes))]


def test_without_an_earlier_build_the_largest_program_is_first(tmp_path: Path) -> None:
    assert order(Cache(tmp_path), small=10, large=1000, middle=100) == ["large", "middle", "small"]


def test_sizes_count_as_the_seconds_that_they_took_before(tmp_path: Path) -> None:
    """200 nodes took 20 s, so those of `new` will take 10 s, and those of `larger` 25 s."""
    cache = Cache(tmp_path)
    for name, seconds in (("slow", 15.0), ("quick", 5.0), ("quick", 1.0)):
        publish(cache, f"{name}-{seconds}", name=name, built=Built(seconds=seconds))
    assert order(cache, new=100, slow=50, larger=250, quick=150) == ["larger", "slow", "new", "quick"]


def test_the_time_of_an_earlier_build_contains_its_translation(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    stages = (BuildStage("translation", 100, 60, 11), BuildStage("compilation", 160, 2, 11))
    publish(cache, "translated-0", name="translated", built=Built(seconds=2.0, stages=stages))
    publish(cache, "compiled-0", name="compiled", built=Built(seconds=30.0))
    assert order(cache, compiled=1, translated=1) == ["translated", "compiled"]


def test_two_workers_end_sooner_in_this_order(tmp_path: Path) -> None:
    """Seconds as sizes, smallest first, as a file may list them."""
    jobs = sized(a=3, b=5, c=8, d=20, e=62, f=100)
    seconds = {job.program: size for job, size in jobs}

    def length(wanted: Sequence[Job]) -> int:
        workers = [0, 0]
        for job in wanted:
            workers = sorted(workers)
            workers[0] += seconds[job.program]
        return max(workers)

    assert length([job for job, _ in jobs]) == 125
    assert length(longest_first(Cache(tmp_path), jobs)) == 100
