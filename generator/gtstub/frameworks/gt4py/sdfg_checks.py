"""
Checks of SDFGs against gt4py's rules (docs/sdfg-rules.md) while gt4py makes them. A broken rule is a warning, and never
an error.

    make_backend(gpu=False, optimization_args={"optimization_hooks": warning_hooks()})
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import dace
from gt4py.next.program_processors.runners.dace.transformations import GT4PyAutoOptHook

from gtstub.stub.sdfg.read import Json, SdfgError, of_document
from gtstub.stub.signature.model import ProgramSignature
from gtstub.tools import rules

type Hooks = Mapping[GT4PyAutoOptHook, Callable[..., Any]]

STAGES = tuple(
    hook
    for hook in GT4PyAutoOptHook
    if not hook.name.endswith("CallBack")  # these decide on single transformations
)
"""The hooks that are called with the whole SDFG after a stage of gt4py's optimisation."""


class SdfgRuleWarning(UserWarning):
    """An SDFG breaks a rule of gt4py."""


def warn_of_broken_rules(document: Json, stage: str, program: ProgramSignature | None = None) -> None:
    """Warns of each finding at level error. `stage` says how far the SDFG was optimised."""
    name = (document.get("attributes") or {}).get("name", "")
    try:
        findings = rules.check(of_document(document), program=program).findings
    except SdfgError as error:
        warnings.warn(f"At stage '{stage}', {error}", SdfgRuleWarning, stacklevel=2)
        return
    for finding in findings:
        if finding.level == "error":
            number = f"{finding.rule} (ADR {finding.adr})" if finding.rule else f"ADR {finding.adr}"
            warnings.warn(
                f"SDFG '{name}' breaks rule {number} at stage '{stage}': '{finding.data}' in state"
                f" '{finding.state}': {finding.message}.",
                SdfgRuleWarning,
                stacklevel=2,
            )


def warning_hooks() -> dict[GT4PyAutoOptHook, Callable[[dace.SDFG], None]]:
    """Hooks for gt4py's optimisation that warn of the rules that the SDFG breaks at each stage."""
    return {hook: functools.partial(_warn, hook.name) for hook in STAGES}


def _warn(stage: str, sdfg: dace.SDFG) -> None:
    warn_of_broken_rules(sdfg.to_json(), stage)


@dataclasses.dataclass
class KeptStages:
    """Hooks that keep the SDFG of each stage, in the order in which gt4py gets there."""

    kept: dict[str, Json] = dataclasses.field(default_factory=dict)

    def hooks(self, others: Hooks) -> Hooks:
        """The hooks, each of which first calls the one of the same stage in `others`."""
        return {**others, **{hook: functools.partial(self._keep, hook.name, others.get(hook)) for hook in STAGES}}

    def keep(self, stage: str, document: Json) -> None:
        self.kept[f"{len(self.kept):02}-{stage}"] = document

    def _keep(self, stage: str, other: Callable[..., Any] | None, sdfg: dace.SDFG) -> None:
        if other is not None:
            other(sdfg)
        self.keep(stage, sdfg.to_json())
