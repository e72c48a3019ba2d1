"""What is said of the elements that small programs access is exactly what they access, in guarded memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.frameworks.gt4py.program_signature import program_signature
from gtstub.stub.signature.expressions import Expression
from gtstub.stub.signature.model import Claim
from tests.bounds.cases import ALL, CHOSEN, ENDS, REACHING, Judged
from tests.support.bounds_judge import judge
from tests.support.bounds_programs import BoundProgram, build
from tests.support.gt4py_programs import lower
from tests.support.random_domains import unlike_embedded

DRAWS = 150 if ALL else 10
"""The random domains of a program for each value of its scalars."""

ON_OTHER_DOMAINS = {
    "nested_tuples": "gt4py computes all fields of a tuple on the domain of the first one",
    "static_domains": "the domains are compiled in",
    "zero_origin": "the domains are compiled in",
}
"""The programs whose fields cannot have the domains that they may have in embedded execution."""


def build_case(case: Judged, folder: Path, toolchain: Toolchain) -> BoundProgram:
    lowered = lower(case.case)
    signature = program_signature(lowered.compilable, lowered.source, lowered.compilable.parameter_types)
    return build(cast(Mapping[str, Any], lowered.source.source_code), signature, folder, toolchain)


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.name)
def test_programs_access_what_their_signatures_say(case: Judged, tmp_path: Path, toolchain: Toolchain) -> None:
    program = build_case(case, tmp_path, toolchain)
    verdicts = [judge(program, setting) for setting in case.settings()]
    assert [problem for verdict in verdicts for problem in verdict.problems] == []
    assert sum(verdict.ends for verdict in verdicts) == ENDS[case.name]
    if case.name in ON_OTHER_DOMAINS:
        return
    unlike = (unlike_embedded(program, case.case, each, DRAWS) for each in case.settings())
    assert [each for found in unlike for each in found] == []


# --- The judge notices ------------------------------------------------------------------------------------------------


def _uses(add_low: int, add_high: int) -> Callable[[Claim], Claim]:
    def change(claim: Claim) -> Claim:
        uses = [
            dataclasses.replace(
                use,
                lowest=tuple(each + add_low for each in use.lowest),
                highest=tuple(each + add_high for each in use.highest),
            )
            for use in claim.uses
            if use.array == "b"
        ]
        return dataclasses.replace(claim, uses=(*(use for use in claim.uses if use.array != "b"), *uses))

    return change


def _follows(**changed: Any) -> Callable[[Claim], Claim]:
    def change(claim: Claim) -> Claim:
        return dataclasses.replace(claim, follows=tuple(dataclasses.replace(each, **changed) for each in claim.follows))

    return change


CHANGES = {
    "one more at the end": (_uses(0, 1), "'b' is not accessed at 4 on axis 1"),
    "one more at the start": (_uses(-1, 0), "'b' is not accessed at 0 on axis 1"),
    "one less at the end": (_uses(0, -1), "'b' with"),
    "one less at the start": (_uses(1, 0), "'b' with"),
    "one column less": (_follows(columns=()), "'b' with"),
    "one column more": (_follows(columns=(0, 1)), "'b' is not accessed at 9 on axis 0 without the check"),
    "one row less": (_follows(first=(Expression(3),)), "'b' with"),
    "one row more": (_follows(first=(Expression(1),)), "'b' is not accessed at 9 on axis 0 without the check"),
}


@pytest.fixture(scope="module")
def second_only(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> tuple[Judged, BoundProgram]:
    (case,) = (each for each in REACHING if each.name == "second_only")
    return case, build_case(case, tmp_path_factory.mktemp("second_only"), toolchain)


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
def test_wrong_bounds_are_noticed(
    second_only: tuple[Judged, BoundProgram], change: Callable[[Claim], Claim], expected: str
) -> None:
    case, program = second_only
    assert program.sdfg.bounds is not None
    bounds = dataclasses.replace(program.sdfg.bounds, claims=tuple(map(change, program.sdfg.bounds.claims)))
    sdfg = dataclasses.replace(program.sdfg, bounds=bounds)
    verdict = judge(dataclasses.replace(program, sdfg=sdfg, checked=program.unchecked), next(case.settings()))
    assert any(problem.startswith(expected) for problem in verdict.problems), verdict.problems


def test_missing_checks_are_noticed(second_only: tuple[Judged, BoundProgram]) -> None:
    case, program = second_only
    verdict = judge(dataclasses.replace(program, checked=program.unchecked), next(case.settings()))
    refusals = [problem for problem in verdict.problems if problem.endswith(": ''")]
    assert len(refusals) == len(verdict.problems) > 10
    assert any("'Argument 'b'" in refusal for refusal in refusals)
    assert any("'Connectivity 'E2V'" in refusal for refusal in refusals)


def test_checks_that_refuse_too_much_are_noticed(second_only: tuple[Judged, BoundProgram]) -> None:
    case, program = second_only
    setting = next(case.settings())
    other = dataclasses.replace(setting, scalars={**setting.scalars, "k_end": 5})
    verdict = judge(dataclasses.replace(program, checked=_WithScalars(program.checked, other.scalars)), setting)
    assert verdict.problems[0].startswith("refused with all elements: Argument 'a' of program 'second_only' must have")


class _WithScalars:
    """A program that is always called with the same scalars."""

    def __init__(self, program: Any, scalars: Mapping[str, Any]) -> None:
        self._program, self._scalars = program, scalars

    def __call__(self, **arguments: Any) -> None:
        self._program(**{**arguments, **self._scalars})
