"""
The rules for SDFGs of gt4py: those that its developers wrote down before ADR-18, and those of ADR-18, which replaced
them under other numbers. Each rule is a jq program in this folder, whose head says what it decides.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from gtstub.signature.documents import program_to_json
from gtstub.signature.model import ProgramSignature

Level = Literal["error", "advice", "unknown", "info"]
LEVELS: tuple[Level, ...] = ("error", "advice", "unknown", "info")
"""
error: a rule that must hold for an array is broken, or there is a race. advice: a recommendation, or a scalar.
unknown: the SDFG does not tell whether the rule is broken. info: allowed, and worth knowing.
"""

Status = Literal["broken", "undecided", "held", "not checked"]


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
class Rule:
    """What a rule demands in one line. Without a number in one of the two documents, that number is empty."""

    rule: str
    adr: str
    demand: str

    @property
    def key(self) -> str:
        return f"{self.rule}/{self.adr}"


RULES = (
    Rule("1", "3", "global memory is input or output, or its output depends on it elementwise"),
    Rule("2", "1", "optimisation within states keeps the number of states"),
    Rule("", "2", "DaCe's simplification runs through gt4py's only"),
    Rule("3", "4", "interstate edges and conditions use scalars, and no arrays"),
    Rule("4", "5", "states form no cycle"),
    Rule("5", "6", "no state after the write of a transient writes it again"),
    Rule("6", "9", "a transient that a state reads and does not write is a source node there"),
    Rule("7", "7", "an access node is written by one edge (recommended)"),
    Rule("8", "8", "a state has one access node of a transient"),
    Rule("", "10", "memory in a map lives in its scope, in default storage or registers"),
    Rule("9", "11", "variables of maps are spelled i_<dimension>_gtx_<kind>"),
    Rule("9", "11.1", "variables of maps iterate over the dimensions that they name"),
    Rule("10", "12", "maps with equal variables and ranges may be merged"),
    Rule("11", "11.5", "no variable of a map is renamed"),
    Rule("11", "12", "maps with other variables are never merged"),
)
"""In the order of background 5; what only ADR-18 has stands where it belongs."""

_FILES = ("model", "global_memory", "state_machine", "single_assignment", "map_memory", "maps")

_ALWAYS = (*(f"rule_{number}" for number in (1, 3, 4, 5, 6, 7, 8, 9, 10)), "rule_adr_10")
_PROGRAM, _BEFORE = "rule_9_dimensions($program)", ("rule_2($before)", "rule_11($before)")


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


def check(document: Document, *, program: ProgramSignature | None = None, before: Document | None = None) -> Result:
    """
    Checks an SDFG. `program` is the signature of its program, and `before` the SDFG before what was done to it; without
    one of them, the rules that need it are not checked. Raises SdfgError if a document has another form than DaCe's.
    """
    return check_text(
        json.dumps(document),
        program=None if program is None else program_to_json(program),
        before=None if before is None else json.dumps(before),
    )


def check_text(text: str, *, program: str | None = None, before: str | None = None) -> Result:
    """The same for texts of JSON: jq has values of its own, so those of Python are not needed beside them."""
    not_checked = {"/2": "an SDFG does not tell who simplified it"}
    if program is None:
        not_checked["9/11.1"] = "needs the signature of the program"
    if before is None:
        not_checked |= dict.fromkeys(("2/1", "11/11.5", "11/12"), "needs the SDFG before")
    wanted = (*_ALWAYS, *((_PROGRAM,) if program is not None else ()), *(_BEFORE if before is not None else ()))
    given = f'{{"sdfg": {text}, "before": {before or "null"}, "program": {program or "null"}}}'
    try:
        [found] = _rules(wanted).input_text(given).all()  # Not first(), after which jq would keep its values.
    except ValueError:
        with in_the_form_of_dace(json.loads(text)):
            raise
    findings = [Finding(**each) for each in found]
    order = {rule.key: number for number, rule in enumerate(RULES)}
    findings.sort(key=lambda each: (LEVELS.index(each.level), order[f"{each.rule}/{each.adr}"], each.state, each.data))
    return Result(tuple(findings), not_checked)


@functools.cache
def _rules(wanted: tuple[str, ...]) -> Any:
    import jq  # Here, because only some commands need it.

    texts = [(Path(__file__).parent / f"{name}.jq").read_text(encoding="utf-8") for name in _FILES]
    main = (
        f"(.before | values | sdfgs) // null as $before | .program as $program | .sdfg | sdfgs | [{', '.join(wanted)}]"
    )
    return jq.compile("\n".join((*texts, main)))
