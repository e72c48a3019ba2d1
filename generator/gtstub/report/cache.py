"""The reports of all entries of a cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gtstub.cache.entry import entries_in
from gtstub.errors import GtstubError
from gtstub.report.model import ProgramReport, ReportError, Unreadable


def reports_of(
    directory: Path, report_of: Callable[[Path], ProgramReport]
) -> tuple[tuple[ProgramReport, ...], tuple[Unreadable, ...]]:
    """
    The reports of a cache's entries, sorted by their keys, and the entries that have none. Raises ReportError if the
    directory cannot be read or has no entry.
    """
    try:
        paths = entries_in(directory)
    except OSError as error:
        raise ReportError(f"The cache '{directory}' cannot be read: {error.strerror}.") from None
    if not paths:
        raise ReportError(f"'{directory}' has no cache entry: 'gtstub cache path' prints the directory of the cache.")
    reports, unreadable = [], []
    for path in paths:
        try:
            reports.append(report_of(path))
        except (GtstubError, OSError) as error:
            unreadable.append(Unreadable(path.name, str(error)))
    return tuple(reports), tuple(unreadable)
