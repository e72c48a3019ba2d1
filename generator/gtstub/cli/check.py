"""The command 'gtstub check'."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gtstub.cli.entries import path_or_entry
from gtstub.cli.options import FILE, example, json_options
from gtstub.cli.output import Answer
from gtstub.util.visible import visible

if TYPE_CHECKING:
    from gtstub.tools.rules import Level, Rule


def _numbers(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
    numbers = tuple(filter(None, (part.strip() for part in (text or "").split(","))))
    if text is not None and not numbers:
        raise click.BadParameter("It names no rule.")
    return numbers


@click.command(
    epilog=example(
        "gtstub check ENTRY",
        "gtstub check --cache ~/.cache/gtstub --strict",
        "gtstub check after.sdfg --before before.sdfg --only 2,11",
        "gtstub check --stages ENTRY",
        "gtstub check ENTRY --jq '.sdfgs[].findings[] | select(.level == \"error\").message'",
    )
)
@click.argument("paths", metavar="SDFG | ENTRY ...", nargs=-1, type=FILE)
@click.option("--cache", "cache_dir", metavar="DIR", type=FILE, help="Check all its entries, or ENTRY in it.")
@click.option("--program", "program_file", metavar="FILE", type=FILE, help="The signature of the program.")
@click.option("--before", "before_file", metavar="SDFG", type=FILE, help="The SDFG before: adds rules 2 and 11.")
@click.option("--stages", "stages_dir", metavar="DIR", type=FILE, help="SDFGs of consecutive stages, in name order.")
@click.option("--only", metavar="N,...", callback=_numbers, help="Check only these rules.")
@click.option("--skip", metavar="N,...", callback=_numbers, help="Do not check these rules.")
@click.option("--adr", "by_adr", is_flag=True, help="Use the numbers of ADR-18, also in --only and --skip.")
@click.option(
    "--level",
    type=click.Choice(["error", "advice", "unknown", "info"]),
    default="unknown",
    show_default=True,
    help="The lowest level in tables; JSON has all.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 for advice, too.")
@json_options
def check(
    paths: tuple[Path, ...],
    cache_dir: Path | None,
    program_file: Path | None,
    before_file: Path | None,
    stages_dir: Path | None,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    by_adr: bool,
    level: Level,
    strict: bool,
) -> Answer:
    """
    Check SDFGs against the rules of gt4py (docs/sdfg-rules.md).

    An SDFG is a file of DaCe (.sdfg, .sdfgz) or its JSON, also compressed. ENTRY is a cache entry: its name (see
    'gtstub cache -h'), or its directory. It keeps its SDFG, and the signature of its program. With --stages, the first
    stage that breaks each rule is named; an ENTRY keeps its stages if it was built with GTSTUB_KEEP_STAGES=1.

    Exit codes: 0 no error was found, 1 an error was found, 2 an SDFG is missing or cannot be read.
    """
    from gtstub.cli import sdfgs
    from gtstub.cli.tables.check import print_checked, print_first
    from gtstub.stub.sdfg.read import SdfgError
    from gtstub.stub.signature.documents import program_in
    from gtstub.tools import rules
    from gtstub.tools.rules import document as checks

    if (paths and stages_dir) or not (paths or stages_dir or cache_dir):
        raise click.UsageError("Name SDFGs or entries, or else --cache or --stages.")
    if before_file is not None and len(paths) != 1:
        raise click.UsageError("--before is for one SDFG.")
    selected = _selected(rules.RULES, only, skip, by_adr)
    files: Sequence[Path]
    program, before = None, None
    with sdfgs.exit_code_2():
        files = [path_or_entry(path, cache_dir) for path in paths]
        if stages_dir is not None:
            files, program = sdfgs.stages(path_or_entry(stages_dir, cache_dir))
        elif not paths and cache_dir is not None:
            files = sdfgs.entries(cache_dir)
        if program_file is not None:
            program = program_in(program_file)
        if before_file is not None:
            in_cache = None if before_file.exists() else cache_dir
            before, _ = sdfgs.sdfg_or_entry(path_or_entry(before_file, in_cache))

    found: list[checks.Checked] = []
    unreadable: dict[str, str] = {}
    for file in files:
        try:
            with sdfgs.exit_code_2():
                sdfg, own_program = sdfgs.sdfg_or_entry(file)
                result = rules.check(sdfg, program=program or own_program, before=before)
        except SdfgError as error:
            if paths or cache_dir is None:
                raise
            unreadable[str(file)] = str(error)
            continue
        if stages_dir is not None:
            result, before = checks.between_stages(result), sdfg
        found.append(checks.Checked(str(file), sdfg.name, checks.selected(result, selected)))

    first = None if stages_dir is None else tuple(checks.first_findings(found))
    if first is None:
        show = functools.partial(print_checked, found, level, by_adr=by_adr)
    else:
        show = functools.partial(print_first, found, first, level, by_adr=by_adr)
    for reason in unreadable.values():
        click.echo(visible(reason), err=True)
    exit_code = 1 if checks.fails(found, strict=strict) else 2 if unreadable else 0
    return Answer(checks.document(found, unreadable, first), show, exit_code)


def _selected(rules: Iterable[Rule], only: Sequence[str], skip: Sequence[str], by_adr: bool) -> tuple[Rule, ...]:
    """The rules to check. A number stands for its parts, too: 11 of ADR-18 for 11.1."""
    numbers = {rule: rule.adr if by_adr else rule.rule for rule in rules}

    def is_in(rule: Rule, given: Sequence[str]) -> bool:
        return any(numbers[rule] == number or numbers[rule].startswith(f"{number}.") for number in given)

    for number in (*only, *skip):
        if not any(is_in(rule, [number]) for rule in numbers):
            known = ", ".join(sorted(filter(None, set(numbers.values())), key=float))
            raise click.BadParameter(f"There is no rule {number}. Known: {known}.", param_hint="--only, --skip")
    found = tuple(rule for rule in numbers if (not only or is_in(rule, only)) and not is_in(rule, skip))
    if not found:
        raise click.BadParameter("No rule is left to check.", param_hint="--only, --skip")
    return found
