"""gt4py's rules on SDFGs that DaCe makes: mutants, and what gt4py lowers. A second version of the rules must agree."""

from __future__ import annotations

import dace
import pytest

from gtstub.stub.sdfg.model import Sdfg
from gtstub.stub.sdfg.read import of_document
from gtstub.tools.rules import LEVELS, RULES, Result, check
from tests.support import global_memory_mutants  # noqa: F401  lists its mutants
from tests.support.gt4py_programs import CASES, RACING, Case, lower
from tests.support.sdfg_mutants import MUTANTS, Mutant
from tests.support.sdfg_rules import Found, broken_rules

LOWERED = (
    *(CASES[name] for name in ("nested_tuples", "scalars", "in_place", "scan", "gather")),
    *(CASES[name] for name in ("auto_optimized", "persistent_memory")),
    RACING,
)


def read(sdfg: dace.SDFG) -> Sdfg:
    return of_document(sdfg.to_json())


def made(mutant: Mutant) -> tuple[dace.SDFG, dace.SDFG | None]:
    sdfg = mutant.make()
    return sdfg if isinstance(sdfg, tuple) else (sdfg, None)


def ours(result: Result) -> set[Found]:
    """The findings in the form of the second version, which names neither the maps of rule 10 nor all of rule 9."""
    found = set()
    for each in result.findings:
        one = Found(each.rule, each.adr, each.level, each.state.rpartition("/")[2], each.data)
        if each.rule == "10":
            one = one._replace(data="*")
        if each.rule == "9" and "is also iterated over" in each.message:
            one = one._replace(state="*", data="")
        found.add(one)
    return found


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_rule_is_found_and_a_legal_sdfg_passes(mutant: Mutant) -> None:
    sdfg, before = made(mutant)
    result = check(read(sdfg), before=None if before is None else read(before))
    levels = {each.level for each in result.findings if (each.rule, each.adr) == (mutant.rule, mutant.adr)}
    assert min(levels, key=LEVELS.index, default="") == mutant.level
    assert ours(result) == broken_rules(sdfg, before)


def test_each_rule_has_a_mutant_and_a_legal_neighbour() -> None:
    assert len(MUTANTS) >= 40
    needs_program = {("9", "11.1")}
    undecidable = {("", "2")}
    for rule in RULES:
        if (rule.rule, rule.adr) in needs_program | undecidable:
            continue
        levels = {each.level for each in MUTANTS if (each.rule, each.adr) == (rule.rule, rule.adr)}
        assert levels - {"", "info"} or rule.rule == "10", f"Nothing breaks rule {rule.key}."
        assert levels & {"", "info"}, f"Nothing is a legal neighbour of rule {rule.key}."


@pytest.mark.parametrize("case", LOWERED, ids=lambda case: case.name)
def test_the_second_version_agrees_on_what_gt4py_lowers(case: Case) -> None:
    document = lower(case).source.source_code
    sdfg = dace.SDFG.from_json(document)
    assert ours(check(of_document(document))) == broken_rules(sdfg)
