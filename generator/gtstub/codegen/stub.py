"""From two signatures to the files of a stub: the one place where plan, text and file names come together."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from gtstub.codegen.render import render
from gtstub.plan.model import CallPlan
from gtstub.plan.planner import make_plan
from gtstub.signature.documents import digest, program_to_json, sdfg_to_json
from gtstub.signature.model import ProgramSignature, SdfgSignature


@dataclasses.dataclass(frozen=True)
class Stub:
    """`files` are the texts of `<name>_stub.h`, `<name>_stub.c` and, if asked for, `<name>_stub.f90` by file name."""

    plan: CallPlan
    files: Mapping[str, str]

    @property
    def source(self) -> str:
        """The name of the C file."""
        return f"{self.plan.name}_stub.c"

    @property
    def header(self) -> str:
        return f"{self.plan.name}_stub.h"

    @property
    def module(self) -> str:
        """The name of the Fortran file."""
        return f"{self.plan.name}_stub.f90"


def make_stub(sdfg: SdfgSignature, program: ProgramSignature, *, name: str = "", fortran: bool = False) -> Stub:
    """
    The stub of a program in C, and with `fortran` its module.

    `name` replaces the name of the program in what the stub defines and in its file names, because variants of a
    program that are linked into one host need different names. The digests in the stub stay those of the signatures.

    Raises PlanError if the signatures contradict each other, or a name cannot stand in C or Fortran.
    """
    plan = make_plan(sdfg, dataclasses.replace(program, name=name or program.name))
    texts = render(
        plan,
        program_digest=digest(program_to_json(program)),
        sdfg_digest=digest(sdfg_to_json(sdfg)),
        fortran=fortran,
    )
    return Stub(plan, {f"{plan.name}_stub{suffix}": text for suffix, text in texts.items()})
