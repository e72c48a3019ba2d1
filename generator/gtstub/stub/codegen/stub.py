"""
`make_stub` turns the two signatures of a program (signature/model.py) into the texts of its stub.

First `make_plan` (plan/planner.py) joins the signatures into a call plan. Then `render` (render.py) fills the templates
in templates/ with the plan: stub.h.j2 and stub.c.j2, which includes the templates in parts/, and on request the files
of other languages than C (hosts/). `layout.py` breaks the lines, and `output.py` appends the digest of each text. The
result is a `Stub`: the plan, and each text with its file name. Writing the files is left to the caller.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

import jinja2

from gtstub.stub.codegen.hosts.language import HostLanguage
from gtstub.stub.codegen.render import render
from gtstub.stub.plan.model import CallPlan
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature.documents import digest, interface_digest, program_to_json, sdfg_to_json
from gtstub.stub.signature.model import ProgramSignature, SdfgSignature


@dataclasses.dataclass(frozen=True)
class Stub:
    """
    A plan and its texts by file name: `<name>_stub.h`, `<name>_stub.c` and, on request, those of other languages.
    `interface` is the digest by which the stub knows its library.
    """

    plan: CallPlan
    interface: str
    files: Mapping[str, str]

    @property
    def source(self) -> str:
        """The name of the C file."""
        return f"{self.plan.name}_stub.c"

    @property
    def header(self) -> str:
        return f"{self.plan.name}_stub.h"


def make_stub(
    sdfg: SdfgSignature,
    program: ProgramSignature,
    *,
    name: str = "",
    languages: Collection[HostLanguage] = (),
    compiled: jinja2.BytecodeCache | None = None,
) -> Stub:
    """
    The stub of a program in C, with the files for hosts in other languages.

    `name` replaces the program's name in symbols and file names, because variants of a program that are linked into one
    host need different names. The digests in the stub remain those of the signatures. `compiled` keeps compiled
    templates for other processes.

    Raises PlanError if the signatures contradict each other, or a name is not valid in C or in one of the languages.
    """
    plan = make_plan(sdfg, dataclasses.replace(program, name=name or program.name))
    interface = interface_digest(sdfg, program)
    texts = render(
        plan,
        interface=interface,
        program_digest=digest(program_to_json(program)),
        sdfg_digest=digest(sdfg_to_json(sdfg)),
        languages=languages,
        compiled=compiled,
    )
    return Stub(plan, interface, {f"{plan.name}_stub{suffix}": text for suffix, text in texts.items()})
