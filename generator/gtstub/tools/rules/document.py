"""The document of `gtstub check`, in which a rule that was not checked differs from one that holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gtstub.tools.rules import LEVELS, RULES, Finding, Level, Result, Rule

SCHEMA = "gtstub/check/1"

LEFT_OUT = "left out"
"""The reason for rules that the caller has not selected."""


@dataclasses.dataclass(frozen=True)
class Checked:
    """An SDFG that was checked: its file, its name, and what was found."""

    file: str
    name: str
    result: Result

    @property
    def level(self) -> Level | None:
        """The worst level of its findings."""
        return self.result.findings[0].level if self.result.findings else None


@dataclasses.dataclass(frozen=True)
class First:
    """The first of several stages with findings of a rule that are worse than those of all stages before."""

    rule: Rule
    stage: Checked
    findings: tuple[Finding, ...]


def selected(result: Result, rules: Sequence[Rule]) -> Result:
    """The findings of these rules. The others become rules that were not checked."""
    keys = {rule.key for rule in rules}
    findings = tuple(each for each in result.findings if f"{each.rule}/{each.adr}" in keys)
    left_out = {rule.key: LEFT_OUT for rule in RULES if rule.key not in keys}
    return Result(findings, {**result.not_checked, **left_out})


def between_stages(result: Result) -> Result:
    """
    The same, where the SDFG before is that of an earlier stage: states may be merged and maps removed between two
    optimisations within states, so that rules 2 and 11 are not decidable.
    """
    findings = tuple(
        dataclasses.replace(each, level="unknown") if each.rule in ("2", "11") else each for each in result.findings
    )
    return Result(findings, result.not_checked)


def first_findings(stages: Sequence[Checked]) -> Iterator[First]:
    """
    For each rule the stages with a worse finding than all stages before, in the order of rules. The last one is the
    first that breaks the rule worst. What is only info counts, too.
    """
    for rule in RULES:
        worst = len(LEVELS)
        for stage in stages:
            findings = stage.result.of(rule)
            if findings and LEVELS.index(findings[0].level) < worst:
                worst = LEVELS.index(findings[0].level)
                yield First(rule, stage, findings)


def fails(checked: Sequence[Checked], *, strict: bool) -> bool:
    """Whether anything is at level error, or at level advice where that counts, too."""
    levels = {"error", "advice"} if strict else {"error"}
    return any(finding.level in levels for each in checked for finding in each.result.findings)


def document(
    checked: Sequence[Checked], unreadable: Mapping[str, str], first: Sequence[First] | None = None
) -> dict[str, Any]:
    """The JSON document. `unreadable` has the reason for each file; `first` is for stages."""
    return {
        "schema": SCHEMA,
        "sdfgs": [_one(each) for each in checked],
        "unreadable": [{"file": file, "reason": reason} for file, reason in unreadable.items()],
        **({} if first is None else {"first": [_first(each) for each in first]}),
    }


def _one(checked: Checked) -> dict[str, Any]:
    return {
        "file": checked.file,
        "name": checked.name,
        "rules": [_rule(rule, checked.result) for rule in RULES],
        "findings": [dataclasses.asdict(finding) for finding in checked.result.findings],
    }


def _rule(rule: Rule, result: Result) -> dict[str, Any]:
    reason = {"reason": result.not_checked[rule.key]} if rule.key in result.not_checked else {}
    names = {"rule": rule.rule, "adr": rule.adr, "demand": rule.demand}
    return {**names, "status": result.status(rule), **reason}


def _first(first: First) -> dict[str, Any]:
    finding = first.findings[0]
    return {"rule": first.rule.rule, "adr": first.rule.adr, "stage": first.stage.file, "level": finding.level}
