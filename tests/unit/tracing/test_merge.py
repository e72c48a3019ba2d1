"""`gtstub.tools.tracing.merge`: one timeline of those of several processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gtstub.errors import SignatureError
from gtstub.tools.tracing.merge import merge
from tests.support.timelines import Timeline


def write(
    path: Path, process: str, *, epoch: int, rank: int, pid: int = 7, name: str = "prog", host: str = "a"
) -> Path:
    """A file as the runtime writes it, with one call, 5 us after its epoch."""
    head = {"schema": "gtstub/trace/1", "epoch": epoch, "dropped": rank + 2, "rank": rank, "host": host}
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": pid, "args": {"name": process}},
        {"ph": "M", "name": "thread_name", "pid": pid, "tid": pid, "args": {"name": "main thread"}},
        {"ph": "X", "name": name, "cat": "call", "ts": 5.25, "dur": 1.5, "pid": pid, "tid": pid},
    ]
    lines = ",\n".join(map(json.dumps, events))
    text = f'{{"displayTimeUnit": "ns",\n"otherData": {json.dumps(head)},\n"traceEvents": [\n{lines}\n]}}\n'
    path.write_text(text, encoding="utf-8")
    return path


def test_ranks_are_processes_with_aligned_clocks(tmp_path: Path) -> None:
    second = write(tmp_path / "b", "rank 1", epoch=1_000_000_000_000_002_000, rank=1, name='a "name"\u2028', host="b")
    first = write(tmp_path / "a", "rank 0", epoch=1_000_000_000_000_000_500, rank=0)
    merge([second, first], tmp_path / "merged.json")
    timeline = Timeline.read(tmp_path / "merged.json")
    spans = {span.process: span for span in timeline.spans}
    assert spans["rank 0"].begin == 5.25
    assert spans["rank 1"].begin == 5.25 + 1.5
    assert spans["rank 1"].name == 'a "name"\u2028'
    events = timeline.document["traceEvents"]
    assert {event["pid"] for event in events} == {0, 1}
    order = {event["pid"]: event["args"]["sort_index"] for event in events if event["name"] == "process_sort_index"}
    assert order == {0: 0, 1: 1}
    head = timeline.document["otherData"]
    assert head == {
        "schema": "gtstub/trace/1",
        "epoch": 1_000_000_000_000_000_500,
        "dropped": 5,
        "rank": -1,
        "host": "a, b",
    }


def test_processes_that_are_no_ranks_keep_their_numbers_unless_two_have_the_same(tmp_path: Path) -> None:
    files = [write(tmp_path / str(pid), f"p{i}", epoch=10, rank=-1, pid=pid) for i, pid in enumerate((7, 8))]
    merge([*files, files[0]], tmp_path / "three.json")
    assert {event["pid"] for event in Timeline.read(tmp_path / "three.json").document["traceEvents"]} == {7, 8, 9}
    merge([tmp_path / "three.json", files[1]], tmp_path / "four.json")
    timeline = Timeline.read(tmp_path / "four.json")
    assert {event["pid"] for event in timeline.document["traceEvents"]} == {7, 8, 9, 10}
    assert sorted(span.process for span in timeline.spans) == ["p0", "p0", "p1", "p1"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: '{"traceEvents": []}',
        lambda text: text.replace("gtstub/trace/1", "gtstub/trace/9"),
        lambda text: text.replace('"epoch": 1', '"epoch": "one"'),
        lambda text: text.removesuffix("]}\n"),
        lambda text: text.replace('"ts": 5.25', '"ts": "later"'),
        lambda text: text.replace('"pid": 7, "tid": 7, "args"', '"tid": 7, "args"'),
        lambda text: text.replace('{"ph": "X"', '["ph": "X"'),
    ],
)
def test_other_files_are_refused(spoil: Any, tmp_path: Path) -> None:
    file = write(tmp_path / "trace.json", "rank 0", epoch=1, rank=0)
    text = file.read_text(encoding="utf-8")
    assert spoil(text) != text
    file.write_text(spoil(text), encoding="utf-8")
    with pytest.raises(SignatureError) as error:
        merge([file], tmp_path / "merged.json")
    assert str(error.value) == f"'{file}' is no whole timeline that GTSTUB_TRACE has written."
    assert not (tmp_path / "merged.json").exists()
