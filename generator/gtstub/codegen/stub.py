"""From two signatures to the files of a stub."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from gtstub.codegen.c import render
from gtstub.plan.model import CallPlan
from gtstub.plan.planner import make_plan
from gtstub.signature.documents import digest, program_to_json, sdfg_to_json
from gtstub.signature.model import ProgramSignature, SdfgSignature


@dataclasses.dataclass(frozen=True)
class Stub:
    """`files` are the texts of `<name>_stub.h` and the like, by the names of the files."""

    plan: CallPlan
    files: Mapping[str, str]


def make_stub(sdfg: SdfgSignature, program: ProgramSignature, *, name: str = "", fortran: bool = False) -> Stub:
    """
    A stub in C, and with `fortran` its module.

    `name` takes the place of the program's, in what the stub defines and in its files: variants of a program that are
    linked into one host need names of their own. The digests stay those of the signatures, by which stubs are told.
    """
    named = dataclasses.replace(program, name=name or program.name)
    plan = make_plan(sdfg, named)
    sources = render(
        plan,
        program_digest=digest(program_to_json(program)),
        sdfg_digest=digest(sdfg_to_json(sdfg)),
        fortran=fortran,
    )
    texts = {"h": sources.header, "c": sources.source, "f90": sources.module}
    return Stub(plan, {f"{plan.name}_stub.{suffix}": text for suffix, text in texts.items() if text is not None})
