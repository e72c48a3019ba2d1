"""
The rules for SDFGs of gt4py: those that its developers wrote down before ADR-18, and those of ADR-18, which replaced
them under other numbers. Each is a function; the head of its file says what it decides.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from gtstub.stub.sdfg.model import Sdfg
from gtstub.stub.signature.model import ProgramSignature
from gtstub.tools.rules.global_memory import rule_1
from gtstub.tools.rules.maps import rule_9, rule_9_dimensions, rule_10, rule_11_gone, rule_11_new, rule_adr_10
from gtstub.tools.rules.model import LEVELS, Found, Level, places
from gtstub.tools.rules.single_assignment import rule_5, rule_6, rule_7, rule_8
from gtstub.tools.rules.states import rule_2, rule_3, rule_4

__all__ = ["LEVELS", "RULES", "Finding", "Level", "Result", "Rule", "Status", "check"]

Status = Literal["broken", "undecided", "held", "not checked"]


@dataclasses.dataclass(frozen=True)
class Rule:
    """
    What a rule demands in one line. Without a number in one of the two documents, that number is empty. `find` gets an
    SDFG at any depth, and what else the rule needs, as the reason says for which it may not be checked.
    """

    rule: str
    adr: str
    demand: str
    find: Callable[..., Iterable[Found]]
    needs: str = ""

    @property
    def key(self) -> str:
        return f"{self.rule}/{self.adr}"


_PROGRAM, _BEFORE = "needs the signature of the program", "needs the SDFG before"
_HISTORY = "an SDFG does not tell who simplified it"

RULES = (
    Rule("1", "3", "global memory is input or output, or its output depends on it elementwise", rule_1),
    Rule("2", "1", "optimisation within states keeps the number of states", rule_2, _BEFORE),
    Rule("", "2", "DaCe's simplification runs through gt4py's only", lambda: (), _HISTORY),
    Rule("3", "4", "interstate edges and conditions use scalars, and no arrays", rule_3),
    Rule("4", "5", "states form no cycle", rule_4),
    Rule("5", "6", "no state after the write of a transient writes it again", rule_5),
    Rule("6", "9", "a transient that a state reads and does not write is a source node there", rule_6),
    Rule("7", "7", "an access node is written by one edge (recommended)", rule_7),
    Rule("8", "8", "a state has one access node of a transient", rule_8),
    Rule("", "10", "memory in a map lives in its scope, in default storage or registers", rule_adr_10),
    Rule("9", "11", "variables of maps are spelled i_<dimension>_gtx_<kind>", rule_9),
    Rule("9", "11.1", "variables of maps iterate over the dimensions that they name", rule_9_dimensions, _PROGRAM),
    Rule("10", "12", "maps with equal variables and ranges may be merged", rule_10),
    Rule("11", "11.5", "no variable of a map is renamed", rule_11_new, _BEFORE),
    Rule("11", "12", "maps with other variables are never merged", rule_11_gone, _BEFORE),
)
"""In the order of background 5; what only ADR-18 has stands where it belongs."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """
    What breaks a rule, or nearly does. `rule` and `adr` are its numbers, or empty. `state` is the label of the state,
    after the labels of what it is nested in, or empty; `data` is an array, a map or a variable of maps, or empty.
    """

    rule: str
    adr: str
    level: Level
    state: str
    data: str
    message: str


@dataclasses.dataclass(frozen=True)
class Result:
    """`not_checked` has the reason for each rule that was not checked, by its `Rule.key`."""

    findings: tuple[Finding, ...]
    not_checked: Mapping[str, str]

    def of(self, rule: Rule) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if (each.rule, each.adr) == (rule.rule, rule.adr))

    def status(self, rule: Rule) -> Status:
        if rule.key in self.not_checked:
            return "not checked"
        levels = {finding.level for finding in self.of(rule)}
        if levels & {"error", "advice"}:
            return "broken"
        return "undecided" if "unknown" in levels else "held"


def check(sdfg: Sdfg, *, program: ProgramSignature | None = None, before: Sdfg | None = None) -> Result:
    """
    Checks an SDFG. `program` is the signature of its program, and `before` the SDFG before what was done to it; without
    one of them, the rules that need it are not checked.
    """
    given: Mapping[str, tuple[Any, ...]] = {"": (), _PROGRAM: (program,), _BEFORE: (before,), _HISTORY: (None,)}
    not_checked = {rule.key: rule.needs for rule in RULES if None in given[rule.needs]}
    every = list(places(sdfg))
    findings: list[Finding] = []
    for rule in (each for each in RULES if each.key not in not_checked):
        found = (
            Finding(rule.rule, rule.adr, level, f"{place.path}{label}", data, message)
            for place in every
            for level, label, data, message in rule.find(place, *given[rule.needs])
        )
        findings += sorted(found, key=lambda each: (each.state, each.data))
    return Result(tuple(sorted(findings, key=lambda each: LEVELS.index(each.level))), not_checked)
