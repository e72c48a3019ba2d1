"""The output of 'gtstub check': a row for each finding, and what was not checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gtstub.tools.rules import LEVELS, RULES, Finding, Level, Rule
from gtstub.tools.rules.document import LEFT_OUT, Checked, First
from gtstub.util.console import make_table, print_parts

if TYPE_CHECKING:
    from rich.console import RenderableType


def print_checked(checked: Sequence[Checked], least: Level, *, by_adr: bool) -> None:
    """Prints the findings of this level and of worse ones, SDFG by SDFG, and which rules were not checked."""
    parts: list[RenderableType] = []
    for each in checked:
        rows = (
            (number(finding, by_adr), finding.level, finding.state, finding.data, finding.message)
            for finding in each.result.findings
            if _is_shown(finding, least)
        )
        parts += [
            f"{each.file}: {_summary(each, by_adr)}",
            make_table("rule", "level", "state", "data", "finding", rows=rows),
        ]
    print_parts(*parts)


def print_first(stages: Sequence[Checked], first: Sequence[First], least: Level, *, by_adr: bool) -> None:
    """Prints the stages at which the findings of a rule become worse, and what is left in the last stage."""
    table = make_table("rule", "first stage", "level", "state", "data", "finding")
    for each in first:
        finding = each.findings[0]
        if _is_shown(finding, least):
            where = (number(each.rule, by_adr), Path(each.stage.file).name)
            table.add_row(*where, finding.level, finding.state, finding.data, finding.message)
    print_parts(table, f"The last of {len(stages)} stages: {_summary(stages[-1], by_adr)}")


def number(rule: Rule | Finding, by_adr: bool) -> str:
    """The number of a rule, and that in the other document in parentheses."""
    if not rule.rule:
        return f"ADR {rule.adr}"
    return f"ADR {rule.adr} ({rule.rule})" if by_adr else f"{rule.rule} (ADR {rule.adr})"


def _is_shown(finding: Finding, least: Level) -> bool:
    return LEVELS.index(finding.level) <= LEVELS.index(least)


def _summary(checked: Checked, by_adr: bool) -> str:
    counted = Counter(finding.level for finding in checked.result.findings)
    found = ", ".join(f"{counted[level]} {level}" for level in LEVELS if counted[level]) or "nothing"
    held = ", ".join(number(rule, by_adr) for rule in RULES if checked.result.status(rule) == "held")
    reasons: dict[str, list[str]] = {}
    for rule in RULES:
        if rule.key in checked.result.not_checked:
            reasons.setdefault(checked.result.not_checked[rule.key], []).append(number(rule, by_adr))
    not_checked = "; ".join(f"{', '.join(rules)} ({reason})" for reason, rules in reasons.items() if reason != LEFT_OUT)
    left_out = f"; left out: {', '.join(reasons[LEFT_OUT])}" if LEFT_OUT in reasons else ""
    return f"{found}. Held: {held or 'none'}. Not checked: {not_checked or 'none'}{left_out}."
