"""
Profiles: how often programs are called, and how long that takes.

    with gtstub.profile() as report:
        ...  # call programs
    report.save("report.json")

A call is timed from the moment its program is entered to the end of the SDFG: its *conversion* until the SDFG starts,
and the *SDFG*. What is outside is the model's own Python, the GIL, and waiting for another thread's call.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from gtstub.errors import SignatureError
from gtstub.profiling.model import Profile

if TYPE_CHECKING:
    from rich.table import Table


class Report(Profile):
    """What a profile has recorded, as a file, a table and a plot."""

    @staticmethod
    def load(path: str | PathLike[str]) -> Report:
        """Reads a report that `save` or GTSTUB_PROFILE has written; SignatureError where it is none."""
        from gtstub.signature.documents import parse

        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise SignatureError(f"'{path}' is not JSON: it is not UTF-8 text.") from None
        return Report(parse(text, str(path), "profile"))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the report as JSON, for 'gtstub profile'."""
        from gtstub.util.atomic import write

        write(Path(path), json.dumps(self.document, indent=1) + "\n")

    def table(self) -> Table:
        """What 'gtstub profile' prints."""
        from gtstub.profiling.table import profile_table

        return profile_table(self)

    def plot(self, path: str | PathLike[str]) -> None:
        """Draws where the time goes, as PNG or SVG; needs matplotlib (the extra 'plot')."""
        from gtstub.profiling.plot import plot

        plot(self, Path(path))


@contextlib.contextmanager
def profile() -> Iterator[Report]:
    """
    Times all calls of all threads in the block; the report is filled when the block ends.

    Profiles nest: the outer one's report has the calls of the inner one, too. Raises RuntimeError where the block ends
    within a call, in an argument's own code: the profile then goes on, and the report stays empty.
    """
    from gtstub import _host

    report = Report()
    running = _host.begin_profile()
    try:
        yield report
    finally:
        report.fill(json.loads(_host.end_profile(running)))
