"""The command 'gtstub report'."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gtstub.cli.entries import path_or_entry
from gtstub.cli.options import FILE, example, json_options, size_options
from gtstub.cli.output import Answer, progress

if TYPE_CHECKING:
    from gtstub.tools.report.model import ProgramReport


@click.command(
    epilog=example(
        "gtstub report ENTRY -o page.html --size Edge=30720 --size K=65",
        "gtstub report --cache DIR -o cache.html",
        "gtstub report --compare OLD NEW -o difference.html --open",
        "gtstub report ENTRY --jq '.entries[].kernels[] | .label'",
    )
)
@click.argument("entry", metavar="[ENTRY]", required=False, type=FILE)
@click.option("--cache", "cache_dir", metavar="DIR", type=FILE, help="Report on all its entries, or ENTRY in it.")
@click.option("--compare", "compared", metavar="OLD NEW", nargs=2, type=FILE, help="Report what differs between two.")
@click.option("-o", "--output", metavar="FILE.html", type=FILE, help="Where to write the page.")
@click.option("--pages", "wants_pages", is_flag=True, help="Write also the page of each entry of a cache.")
@size_options
@click.option("--profile", "profile_file", metavar="REPORT.json", type=FILE, help="Add times of a profile.")
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
@json_options
def report(
    entry: Path | None,
    cache_dir: Path | None,
    compared: tuple[Path, Path] | None,
    output: Path | None,
    wants_pages: bool,
    dimensions: Mapping[str, int],
    symbols: Mapping[str, int],
    profile_file: Path | None,
    opens: bool,
) -> Answer:
    """
    Write a page about a program: one HTML file.

    ENTRY is a cache entry: its name (see 'gtstub cache -h'), or its directory. The page shows how its
    arguments fill the slots of the SDFG, their contracts, what was compiled in, the kernels, the memory that the SDFG
    allocates, the rules that it breaks, and what it was built from. It needs no network and no other file. '--size' and
    '--set' give the sizes that the memory depends on.

    The page is written completely or not at all. The same entry and options always give the same bytes. The command
    exits with 2 if it cannot read an entry or write the page.
    """
    given = click.get_current_context().params
    if (entry and compared) or not (entry or compared or cache_dir):
        raise click.UsageError("Give one of ENTRY, '--compare' and '--cache'.")
    if output is None and not (given["as_json"] or given["filter_"] is not None):
        raise click.UsageError("Give '-o' with the name of the page, or '--json' or '--jq'.")
    if opens and output is None:
        raise click.UsageError("'--open' needs '-o' with the name of the page.")
    if wants_pages and (entry or compared or output is None):
        raise click.UsageError("'--pages' is for the entries of '--cache', and needs '-o' with the name of the page.")
    from gtstub.cli.sdfgs import exit_code_2

    with exit_code_2():
        if entry is not None:
            entry, cache_dir = path_or_entry(entry, cache_dir), None
        if compared is not None:
            old, new = compared
            compared, cache_dir = (path_or_entry(old, cache_dir), path_or_entry(new, cache_dir)), None
        folder = f"{output.stem}-pages" if output is not None and wants_pages else ""
        document, page, pages = _make(entry, cache_dir, compared, dimensions, symbols, profile_file, folder)
        if output is not None:
            for name, text in {**pages, output.name: page}.items():
                _write(output.parent / name, text)
    if opens and output is not None:
        click.launch(output.absolute().as_uri())
    return Answer(document, lambda: click.echo(f"'{output}' was written."))


def _make(
    entry: Path | None,
    cache_dir: Path | None,
    compared: tuple[Path, Path] | None,
    dimensions: Mapping[str, int],
    symbols: Mapping[str, int],
    profile_file: Path | None,
    folder: str,
) -> tuple[dict[str, Any], str, dict[str, str]]:
    """The document, the page, and the pages of a cache's entries by their paths in `folder`, unless it is empty."""
    from gtstub.entries.cache.inventory import inventory
    from gtstub.entries.cache.key import is_key
    from gtstub.entries.cache.store import Cache
    from gtstub.tools.memory.sizes import SharedSizes
    from gtstub.tools.profiling.report import Report
    from gtstub.tools.report import entry as entries
    from gtstub.tools.report.build_chart import build_chart, builds_of
    from gtstub.tools.report.compare import compare
    from gtstub.tools.report.model import to_json
    from gtstub.tools.report.page import comparison_page, index_page, program_page

    profile = None if profile_file is None else Report.load(profile_file)

    if entry is not None:
        one = entries.report(entry, dimensions=dimensions, symbols=symbols, profile=profile)
        return to_json([one]), program_page(one), {}
    sizes = SharedSizes(dimensions, symbols)

    def report_of(path: Path) -> ProgramReport:
        """The report of one of several entries. Not each of them has all dimensions and symbols that are given."""
        fitting = entries.fitting(path, sizes) if dimensions or symbols else ({}, {})
        return entries.report(path, dimensions=fitting[0], symbols=fitting[1], profile=profile)

    if cache_dir is not None:
        with progress(f"Reading the entries of '{cache_dir}'"):
            reports, unreadable = entries.reports_of(cache_dir, report_of)
        sizes.check()
        # A manifest may name any text as its key.
        paths = {each.key: f"{folder}/{each.key}.html" for each in reports if folder and is_key(each.key)}
        page = index_page(
            reports,
            unreadable,
            build_chart(builds_of(cache_dir)),
            built={item.key: item.built for item in inventory(Cache(cache_dir)) if item.state == "ok"},
            pages=paths,
        )
        pages = {paths[each.key]: program_page(each) for each in reports if each.key in paths}
        return to_json(reports, unreadable), page, pages
    assert compared is not None
    old, new = map(report_of, compared)
    sizes.check()
    comparison = compare(old, new)
    return to_json([old, new], comparison=comparison), comparison_page(old, new, comparison), {}


def _write(file: Path, page: str) -> None:
    from gtstub.entries.cache.entry import is_in_entry
    from gtstub.tools.report.model import ReportError
    from gtstub.util.atomic import write

    if is_in_entry(file):
        raise ReportError(f"The page cannot be written to '{file}': a cache entry holds only what was built.")
    try:
        write(file, page)
    except OSError as error:
        raise ReportError(f"The page cannot be written to '{file}': {error.strerror}.") from None
