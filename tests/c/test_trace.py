"""The timeline of a C host: what is in it, on which track, and what a full ring drops."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.support.c_hosts import PROG, Build, address, plain, thread
from tests.support.timelines import Timeline


def trace(build: Build, path: Path, times: int = 3, **variables: str) -> Timeline:
    settings = {"GTSTUB_TRACE": str(path), **variables}
    assert build.run("trace.c", *PROG, str(times), stubs=["prog_stub.so"], variables=settings) == ""
    return Timeline.read(path)


@address
def test_calls_and_steps_are_spans(build: Build, tmp_path: Path) -> None:
    timeline = trace(build, tmp_path / "trace.json")
    timeline.check_nesting()
    assert {span.process for span in timeline.spans} == {"trace"}
    found = Counter((span.kind, span.name) for span in timeline.spans)
    assert found == {
        ("load", "prog"): 1,
        ("init", "prog"): 1,
        ("call", "prog"): 3 + 2 + 1,
        ("function", 'a "halo"\n'): 1,
        ("step", "inner"): 1,
        ("step", "outer"): 1,
        ("step", "failing"): 1,
    }
    tracks = Counter(span.track for span in timeline.spans if span.kind == "call")
    assert tracks.pop("main thread") == 4
    assert list(tracks.values()) == [2]
    (outer,), (halo,) = timeline.named("step", "outer"), timeline.named("function", 'a "halo"\n')
    assert outer.contains(halo)
    assert halo.duration >= 2000
    (inner,) = timeline.named("step", "inner")
    assert outer.contains(inner)
    assert [inner.contains(span) for span in timeline.named("call", "prog")].count(True) == 1
    assert timeline.document["otherData"]["dropped"] == 0


@plain
def test_the_newest_events_stay(build: Build, tmp_path: Path) -> None:
    timeline = trace(build, tmp_path / "trace.json", times=1000, GTSTUB_TRACE_EVENTS="20")
    assert len(timeline.spans) == 32  # the next power of 2
    assert timeline.document["otherData"]["dropped"] == 1000 + 9 - 32
    assert timeline.named("step", "outer")
    assert not timeline.named("load", "prog")
    (note,) = [event for event in timeline.document["traceEvents"] if event["ph"] == "i"]
    assert note["name"] == "977 earlier events were dropped"


@plain
def test_a_number_of_events_that_is_none(build: Build, tmp_path: Path) -> None:
    settings = {"GTSTUB_TRACE": str(tmp_path / "trace.json"), "GTSTUB_TRACE_EVENTS": "many"}
    said = build.run("trace.c", *PROG, "3", stubs=["prog_stub.so"], variables=settings)
    assert said == "GTSTUB_TRACE_EVENTS must be a number of events, but is 'many': 262144 are kept.\n"
    assert len(Timeline.read(tmp_path / "trace.json").spans) == 12


@plain
def test_a_file_that_cannot_be_written(build: Build, tmp_path: Path) -> None:
    settings = {"GTSTUB_TRACE": str(tmp_path / "none" / "trace.json")}
    said = build.run("trace.c", *PROG, "3", stubs=["prog_stub.so"], variables=settings)
    assert said == f"The trace cannot be written to '{tmp_path}/none/trace.json': No such file or directory.\n"


@plain
def test_ranks_have_files_and_names_of_their_own(build: Build, tmp_path: Path) -> None:
    ranks = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}
    settings = {"GTSTUB_TRACE": str(tmp_path / "trace.json"), **ranks}
    build.run("trace.c", *PROG, "3", stubs=["prog_stub.so"], variables=settings)
    timeline = Timeline.read(tmp_path / "trace-3.json")
    assert {span.process for span in timeline.spans} == {"rank 3"}
    assert timeline.document["otherData"]["rank"] == 3


@thread
def test_threads_do_not_race(build: Build, tmp_path: Path) -> None:
    assert trace(build, tmp_path / "trace.json", times=300, GTSTUB_TRACE_EVENTS="64").spans
