"""The command 'gtstub profile'."""

from __future__ import annotations

from pathlib import Path

import click

from gtstub.cli.options import example, json_options
from gtstub.cli.output import Json


@click.command(
    epilog=example(
        "GTSTUB_PROFILE=report.json python model.py && gtstub profile report.json",
        "gtstub profile report.json --plot report.svg",
        "gtstub profile report.json --jq '.programs[] | \"\\(.name) \\(.run.whole.median)\"'",
    )
)
@click.argument("report_file", metavar="REPORT.json", type=click.Path(path_type=Path))
@click.option(
    "--plot",
    "plot_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Draw where the time goes, as .svg or .png; needs matplotlib.",
)
@json_options
def profile(report_file: Path, plot_file: Path | None, as_json: Json | None) -> None:
    """
    Print how often programs were called and how long that took.

    REPORT.json was written by GTSTUB_PROFILE=REPORT.json, or by the report of gtstub.profile(). A row
    '<name>_initial' has the calls that initialised the SDFG of the row above. Times are those of whole calls: of the
    conversion of the arguments, and of the SDFG, whose medians follow.
    """
    from gtstub.profiling.report import Report
    from gtstub.profiling.table import print_profile

    report = Report.load(report_file)
    if plot_file is not None:
        report.plot(plot_file)
        click.echo(f"'{plot_file}' was written.", err=True)
    if as_json is not None:
        as_json.print(dict(report.document))
    else:
        print_profile(report)
