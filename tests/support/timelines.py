"""Reads the timelines that GTSTUB_TRACE writes, for tests."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class Span:
    """A span of a track, which is that of a thread or has a name. Times are in microseconds."""

    process: str
    track: str
    kind: str
    name: str
    begin: float
    duration: float

    @property
    def end(self) -> float:
        return self.begin + self.duration

    def contains(self, other: Span) -> bool:
        slack = 1e-3  # as times are written
        is_same_track = (self.process, self.track) == (other.process, other.track)
        return is_same_track and self.begin <= other.begin + slack and other.end <= self.end + slack


@dataclasses.dataclass(frozen=True)
class Timeline:
    document: Mapping[str, Any]
    spans: Sequence[Span]

    @classmethod
    def read(cls, path: Path) -> Timeline:
        document = json.loads(path.read_text(encoding="utf-8"))
        return cls(document, list(_spans(document["traceEvents"])))

    def named(self, kind: str, name: str) -> list[Span]:
        return [span for span in self.spans if (span.kind, span.name) == (kind, name)]

    def check_nesting(self) -> None:
        """Spans of a track contain each other or do not overlap: a viewer drops others."""
        open_spans: dict[tuple[str, str], list[Span]] = {}
        for span in self.spans:
            outer = open_spans.setdefault((span.process, span.track), [])
            while outer and outer[-1].end <= span.begin + 1e-3:
                outer.pop()
            assert not outer or outer[-1].contains(span), (outer[-1], span)
            outer.append(span)


def _spans(events: Sequence[Mapping[str, Any]]) -> Iterator[Span]:
    names = {
        (event["name"], event["pid"], event["tid"] if event["name"] == "thread_name" else None): event["args"]["name"]
        for event in events
        if event["ph"] == "M" and event["name"].endswith("_name")
    }
    for event in events:
        if event["ph"] == "X":
            process = names["process_name", event["pid"], None]
            track = names["thread_name", event["pid"], event["tid"]]
            yield Span(process, track, event["cat"], event["name"], event["ts"], event["dur"])
