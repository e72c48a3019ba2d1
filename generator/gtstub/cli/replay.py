"""The command 'gtstub replay'."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gtstub import settings
from gtstub.cli.entries import path_or_entry
from gtstub.cli.options import FILE, example, json_options, plot_option
from gtstub.cli.output import Answer
from gtstub.cli.tables.replay import not_replayed, print_replay
from gtstub.errors import GtstubError
from gtstub.frameworks.backends.choice import EMBEDDED, Tag
from gtstub.tools.recorded.archive import Archive, Call, archives
from gtstub.util.console import make_bar
from gtstub.util.figure import refuse_undrawable
from gtstub.util.suggest import did_you_mean

if TYPE_CHECKING:
    from gtstub.tools.recorded.replay import Worst

MOST_ULP = 2**64 - 1

TAGS = (EMBEDDED, *(tag for tag in Tag if tag.device == "cpu"))
"""The backends for gt4py programs. None is for GPUs, because recorded arguments are in host memory."""


@dataclasses.dataclass(frozen=True)
class Ways:
    """How calls are replayed. If a replay `is_checked`, an error names its call."""

    is_checked: bool
    as_step: bool


def _tolerance(text: str) -> tuple[str | None, int]:
    argument, _, ulp = text.rpartition("=")
    if not ulp.isdecimal():
        raise click.BadParameter(f"'{text}' is neither N nor ARGUMENT=N.")
    if len(ulp.lstrip("0")) > len(str(MOST_ULP)) or int(ulp) > MOST_ULP:
        raise click.BadParameter(f"'{text}' is more than {MOST_ULP}, the greatest tolerance.")
    return argument or None, int(ulp)


@click.command(
    epilog=example(
        "gtstub replay recording ENTRY --compare",
        "gtstub replay recording ENTRY --compare --ulp 4 --ulp 'x[0]=16'",
        "gtstub replay recording my.model:program --program program --backend GTFN_CPU --compare",
        "gtstub replay recording ENTRY --compare --jq '.comparisons[] | select(.beyond > 0)'",
        'gtstub replay recording ENTRY --build-checks --check "finite; min q*=0"',
    )
)
@click.argument("recording", type=FILE)
@click.argument("programs", metavar="ENTRY | STUB.so | MODULE:PROGRAM ...", nargs=-1, required=True)
@click.option("--compare", is_flag=True, help="Exit with 1 if a result differs, or a call was not replayed.")
@click.option("--step", "as_step", is_flag=True, help="Bind all calls of a process, and make them as one step.")
@click.option("--program", "names", metavar="NAME", multiple=True, help="Replay only this program; repeatable.")
@click.option(
    "--ulp",
    "tolerances",
    metavar="N | ARGUMENT=N",
    multiple=True,
    type=_tolerance,
    help="Units in the last place by which results may differ.  [default: 0]",
)
@click.option("--backend", type=click.Choice(TAGS), default=EMBEDDED, show_default=True, help="For MODULE:PROGRAM.")
@plot_option(help="Draw the differences of the worst field, as .svg or .png; needs matplotlib.")
@click.option("--check", "checks", metavar="TEXT", help="Check the values in all calls (docs/debugging.md).")
@click.option(
    "--build-checks",
    is_flag=True,
    help="Build ENTRY again and check what each map writes; 'finite' unless GTSTUB_CHECK is set.",
)
@click.option("--grid", metavar="MODULE:NAME", help="A function: makes connectivities that are not recorded.")
@json_options
def replay(
    recording: Path,
    programs: tuple[str, ...],
    compare: bool,
    as_step: bool,
    names: tuple[str, ...],
    tolerances: tuple[tuple[str | None, int], ...],
    backend: str,
    plot_file: Path | None,
    checks: str | None,
    build_checks: bool,
    grid: str | None,
) -> Answer:
    """
    Repeat recorded calls, and show which results differ.

    RECORDING is a directory that 'gtstub record' made, for all processes or for one. Each call is repeated with the
    program of the same name: a cache entry (its name or its directory), a stub library with the SDFG library beside it,
    or a gt4py program, which runs embedded or on a backend.

    Numbers are equal if 'a == b', and NaN equals NaN. Differences of floating-point numbers are measured in units in
    the last place. Everything else is compared exactly.
    """
    if tolerances and not compare:
        raise click.UsageError("'--ulp' is for '--compare'.")
    if as_step and (checks is not None or build_checks):
        raise click.UsageError("'--step' is not for '--check' and '--build-checks', which name a call.")
    if plot_file is not None:
        refuse_undrawable(plot_file)
    found = archives(recording)
    if not found:
        raise GtstubError(f"There is no recording in '{recording}'.")
    with contextlib.ExitStack() as stack:
        checked = settings.checks()  # Those count as well.
        if checks is None and checked is None and build_checks:
            checks = settings.DEFAULT_CHECKS
        if checks is not None:
            from gtstub.programs.checks import checks as checking

            try:
                stack.enter_context(checking(checks))
            except ValueError as error:
                raise GtstubError(str(error)) from error
        opened = [_open(stack, name, backend, grid, build_checks) for name in programs]
        if as_step:
            _refuse_gt4py(opened)
        ways = Ways(is_checked=bool(checks or checked), as_step=as_step)
        replayed, worst = _replay(found, opened, names, dict(tolerances), ways)
    if worst and plot_file is not None:
        from gtstub.tools.recorded.plot import plot_worst

        plot_worst(worst, plot_file)
    if plot_file is not None:
        click.echo(f"'{plot_file}' was {'written' if worst else 'not written: nothing differs'}.", err=True)
    left_out = replayed["left_out"]
    if compare and left_out:
        click.echo(f"{not_replayed(left_out)}: give one, or select programs with '--program'.", err=True)
    is_equal = not left_out and all(one["beyond"] == 0 for one in replayed["comparisons"])
    show = functools.partial(print_replay, replayed, compare)
    return Answer(replayed, show, 0 if is_equal or not compare else 1)


def _refuse_gt4py(programs: Sequence[Any]) -> None:
    from gtstub.tools.recorded.replay import StubProgram

    for program in programs:
        if not isinstance(program, StubProgram):
            raise GtstubError(f"'--step' is for entries and stubs, but '{program.name}' is a gt4py program.")


def _open(stack: contextlib.ExitStack, name: str, backend: str, grid: str | None, build_checks: bool) -> Any:
    from gtstub.frameworks.resolve import frameworks

    if ":" in name.partition("@")[0] and not Path(name).exists():
        if build_checks:
            raise GtstubError(f"'--build-checks' is for entries of a cache, but '{name}' is a program.")
        with frameworks("replay"):
            from gtstub.frameworks.gt4py.replay import GtProgram

        return GtProgram(name, backend, grid)
    from gtstub.tools.recorded.replay import open_program

    path = path_or_entry(Path(name))
    if build_checks:
        with frameworks("replay --build-checks"):
            from gtstub.frameworks.dace.rebuild import rebuild_with_checks

        path = rebuild_with_checks(path, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gtstub-"))))
    return stack.enter_context(open_program(path))


@contextlib.contextmanager
def _naming(call: Call, archive: Archive) -> Iterator[None]:
    try:
        yield
    except GtstubError as error:
        raise GtstubError(f"Call {call.number} of '{archive.path.name}': {error}") from error


def _replay(
    found: Sequence[Archive],
    programs: Sequence[Any],
    names: Sequence[str],
    tolerances: dict[str | None, int],
    ways: Ways,
) -> tuple[dict[str, Any], list[Worst]]:
    """
    Replays the calls of the programs `names`, or of all programs if it is empty. Returns the report of the command
    (docs/formats.md), and the field of each process that differs most.
    """
    from gtstub.tools.recorded.replay import Replay, replay_step

    programs_found = [program for archive in found for program in archive.programs]
    recorded = sorted({program.name for program in programs_found})
    for name in names:
        if name not in recorded:
            raise GtstubError(f"No program '{name}' was recorded.{did_you_mean(name, recorded)}")
    wanted = set(names or recorded)
    known = {leaf.path for program in programs_found for leaf in program.leaves}
    for argument in tolerances:
        if argument is not None and argument not in known:
            raise GtstubError(f"No recorded program has an argument '{argument}'.")
    worst: list[Worst] = []
    calls, left_out, comparisons = 0, dict[str, int](), list[dict[str, Any]]()
    with make_bar() as bar:
        task = bar.add_task("", total=sum(call.program.name in wanted for one in found for call in one.calls))
        for archive in found:
            replay = Replay(archive, tolerances)
            chosen = _choose(archive, programs, wanted)
            step: list[tuple[Call, Any]] = []
            for call in archive.calls:
                program, name = chosen.get(call.program.id), call.program.name
                if name not in wanted:
                    continue
                bar.update(task, description=name)
                if program is None:
                    left_out[name] = left_out.get(name, 0) + 1
                elif ways.as_step:
                    step.append((call, program))
                else:
                    with _naming(call, archive) if ways.is_checked else contextlib.nullcontext():
                        program.replay(replay, call)
                    calls += 1
                bar.advance(task)
            if step:
                replay_step(replay, step)
                calls += len(step)
            if replay.worst is not None:
                worst.append(replay.worst)
            comparisons += [{"process": archive.path.name, **one} for one in replay.comparisons]
    if calls == 0:
        others = ", ".join(f"'{name}'" for name in left_out) or "none"
        raise GtstubError(f"No call of {', '.join(repr(one.name) for one in programs)} was recorded, but of {others}.")
    schema = "gtstub/replay/1"
    return {"schema": schema, "calls": calls, "left_out": left_out, "comparisons": comparisons}, worst


def _choose(archive: Archive, programs: Sequence[Any], wanted: Collection[str]) -> dict[str, Any]:
    """
    The program that replays each wanted recorded program, by the latter's name in the archive. A program with the
    signatures of the recorded one, which another build has as well, comes first. Otherwise it is a program with the
    same name that is not another recorded variant.
    """
    recorded = {call.program.id: call.program for call in archive.calls if call.program.name in wanted}
    same = {id_: [program for program in programs if program.is_of(one)] for id_, one in recorded.items()}
    variants = [program for found in same.values() for program in found]
    chosen = {}
    for id_, found in same.items():
        candidates = found or [one for one in programs if one.name == recorded[id_].name and one not in variants]
        if len(candidates) > 1:
            raise GtstubError(f"Several programs can replay the calls of '{id_}': name only one of them.")
        if candidates:
            chosen[id_] = candidates[0]
    return chosen
