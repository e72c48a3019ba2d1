"""The JSON document of a report (docs/formats.md). Equal reports have equal documents."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from gtstub.report.model import SCHEMA, Comparison, ProgramReport, Unreadable


def to_json(
    reports: Sequence[ProgramReport], unreadable: Sequence[Unreadable] = (), comparison: Comparison | None = None
) -> dict[str, Any]:
    """The document of one entry, of all entries of a cache, or of two entries and their comparison."""
    return {
        "schema": SCHEMA,
        "entries": [_plain(report) for report in reports],
        "unreadable": [_plain(each) for each in unreadable],
        "comparison": None if comparison is None else _plain(comparison),
    }


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value
