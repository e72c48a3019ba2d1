"""
Profiles: the numbers of calls of programs, and their times.

    with gtstub.profile() as report:
        ...  # call programs
    report.save("report.json")

The time of a call begins when its program is entered. The *conversion* lasts until the SDFG starts, the *SDFG* until it
ends. The time outside is spent in the model's own Python, the GIL, and waiting for calls of other threads. Steps are
timed for each position.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from gtstub.tools.profiling.model import Profile

if TYPE_CHECKING:
    from rich.table import Table


class Report(Profile):
    """A profile that can be saved, loaded, printed and plotted."""

    @staticmethod
    def load(path: str | PathLike[str]) -> Report:
        """Reads a report that `save` or GTSTUB_PROFILE has written. Raises SignatureError for any other file."""
        from gtstub.stub.signature.documents import parse

        return Report(parse(Path(path).read_bytes(), str(path), "profile"))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the report as JSON, for 'gtstub profile'."""
        from gtstub.util.atomic import write

        write(Path(path), json.dumps(self.document, indent=1) + "\n")

    def __str__(self) -> str:
        """The tables as text, and the shares of the time."""
        from gtstub.util.console import plain

        tables = [self.table(), self.step_table()] if self.steps else [self.table()]
        return "\n\n".join([*map(plain, tables), self.summary()])

    def table(self) -> Table:
        """The table of programs that 'gtstub profile' prints."""
        from gtstub.tools.profiling.table import profile_table

        return profile_table(self)

    def step_table(self) -> Table:
        """The table of steps that 'gtstub profile' prints. It has no rows if no step has run."""
        from gtstub.tools.profiling.table import step_table

        return step_table(self)

    def plot(self, path: str | PathLike[str]) -> None:
        """Draws the shares of the time, as PNG or SVG. This needs matplotlib (the extra 'plot')."""
        from gtstub.tools.profiling.plot import plot

        plot(self, Path(path))


@contextlib.contextmanager
def profile() -> Iterator[Report]:
    """
    Times all calls and all steps of all threads in the block. The report is empty until the block ends.

    Profiles can be nested; the report of the outer one includes the calls of the inner one. Raises RuntimeError if the
    block ends within a call, in the code of an argument. The profile then continues, and the report stays empty.
    """
    from gtstub import _host

    report = Report()
    running = _host.begin_profile()
    try:
        yield report
    finally:
        report.fill(json.loads(_host.end_profile(running)))
