"""The command 'gtstub profile'."""

from __future__ import annotations

from pathlib import Path

import click

from gtstub.cli.options import FILE, example, json_options, plot_option
from gtstub.cli.output import Answer
from gtstub.util.console import print_parts


@click.command(
    epilog=example(
        "GTSTUB_PROFILE=report.json python model.py && gtstub profile report.json",
        "gtstub profile report.json --plot report.svg",
        "gtstub profile report.json --jq '.programs[] | \"\\(.name) \\(.run.whole.median)\"'",
    )
)
@click.argument("report_file", metavar="REPORT.json", type=FILE)
@plot_option(help="Draw the shares of the time, as .svg or .png; needs matplotlib.")
@json_options
def profile(report_file: Path, plot_file: Path | None) -> Answer:
    """
    Print the numbers and times of calls.

    REPORT.json was written by a run with GTSTUB_PROFILE=REPORT.json, or by the report of gtstub.profile(). A row
    '<name>_initial' has the calls that initialised the SDFG of the row above. The first times are those of whole calls.
    The medians of their two parts, the conversion of the arguments and the SDFG, follow. If steps have run, a second
    table has their positions.
    """
    from gtstub.tools.profiling.report import Report

    report = Report.load(report_file)
    if plot_file is not None:
        report.plot(plot_file)
        click.echo(f"'{plot_file}' was written.", err=True)
    return Answer(report.document, lambda: print_parts(report.table(), report.step_table(), report.summary()))
