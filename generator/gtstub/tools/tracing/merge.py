"""
Makes one timeline of those of several processes.

The runtime writes one event a line (runtime/observers/times/timeline.c), so that files of any number and size are
merged line by line.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gtstub.errors import SignatureError
from gtstub.util.atomic import replacing

SCHEMA = "gtstub/trace/1"

_FIRST, _LAST = '"traceEvents": [', "]}"
"""The lines before and behind the events."""


@dataclass(frozen=True)
class _File:
    """A timeline. `epoch` is the time of its earliest event, in ns since 1970; `rank` is -1 unless it has one."""

    path: Path
    epoch: int
    dropped: int
    rank: int
    host: str

    @classmethod
    def read(cls, path: Path) -> _File:
        """Raises SignatureError for any other file, or OSError."""
        with path.open(encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in itertools.islice(file, 3)]
        try:
            head = json.loads(lines[1].removeprefix('"otherData": ').removesuffix(","))
            if lines[2] == _FIRST and head["schema"] == SCHEMA:
                return cls(path, int(head["epoch"]), int(head["dropped"]), int(head["rank"]), str(head["host"]))
        except (IndexError, KeyError, TypeError, ValueError, RecursionError):
            pass
        raise _refusal(path)

    def events(self) -> Iterator[dict[str, Any]]:
        with self.path.open(encoding="utf-8") as file:
            for line in itertools.islice(file, 3, None):
                if line.strip() == _LAST:
                    return
                event = json.loads(line.strip().removesuffix(","))
                yield {**event, "pid": int(event["pid"])} | ({"ts": float(event["ts"])} if "ts" in event else {})
        raise ValueError(self.path)


def merge(paths: Sequence[Path], output: Path) -> None:
    """
    Writes the events of several files to one, with times from the earliest event on. The number of a process becomes
    that of its rank. Raises SignatureError for a file that GTSTUB_TRACE has not written, or OSError.
    """
    files = [_File.read(path) for path in paths]
    epoch = min(file.epoch for file in files)
    head = {
        "schema": SCHEMA,
        "epoch": epoch,
        "dropped": sum(file.dropped for file in files),
        "rank": -1,
        "host": ", ".join(sorted({file.host for file in files})),
    }
    with replacing(output) as aside, aside.open("w", encoding="utf-8") as out:
        out.write(f'{{"displayTimeUnit": "ns",\n"otherData": {json.dumps(head)},\n{_FIRST}\n')
        separator = ""
        for event in _merged(files, epoch):
            out.write(separator + json.dumps(event))
            separator = ",\n"
        out.write(f"\n{_LAST}\n")


def _merged(files: Sequence[_File], epoch: int) -> Iterator[Mapping[str, Any]]:
    used: set[int] = set()
    for file in files:
        numbers: dict[int, int] = {}
        later = (file.epoch - epoch) / 1000  # in µs
        try:
            for event in file.events():
                pid = event["pid"]
                if pid not in numbers:
                    number = numbers[pid] = _free(pid if file.rank < 0 else file.rank, used)
                    yield _metadata("process_sort_index", number, {"sort_index": number})
                yield {**event, "pid": numbers[pid]} | ({"ts": round(event["ts"] + later, 3)} if "ts" in event else {})
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise _refusal(file.path) from error


def _free(wanted: int, used: set[int]) -> int:
    """The first number from `wanted` on that no process has."""
    number = next(number for number in itertools.count(wanted) if number not in used)
    used.add(number)
    return number


def _metadata(name: str, process: int, args: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"ph": "M", "name": name, "pid": process, "tid": 0, "args": args}


def _refusal(path: Path) -> SignatureError:
    return SignatureError(f"'{path}' is no whole timeline that GTSTUB_TRACE has written.")
