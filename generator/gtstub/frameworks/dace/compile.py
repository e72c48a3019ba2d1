"""DaCe as a `Framework`: programs whose parameters are all annotated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dace.frontend.python.parser import DaceProgram

from gtstub.entries.cache.lookup import Request
from gtstub.errors import GtstubError
from gtstub.frameworks.dace.program import StubbedProgram
from gtstub.frameworks.dace.program import program as stubbed
from gtstub.frameworks.framework import CompileOptions
from gtstub.stub.signature.model import ProgramSignature, SdfgSignature

NAME = "DaCe"


def is_program(found: Any) -> bool:
    return isinstance(found, DaceProgram | StubbedProgram)


def compile(program: Any, options: CompileOptions) -> StubbedProgram:  # noqa: A001  as in gt4py
    return _stubbed(program, options).compile()


def lower(program: Any, options: CompileOptions) -> int:
    sdfg = _stubbed(program, options).parse().sdfg
    return sum(1 for _ in sdfg.all_nodes_recursive())


def build(program: Any, options: CompileOptions) -> None:
    compile(program, options)


def requests(program: Any, options: CompileOptions) -> list[Request]:
    return [_stubbed(program, options).parse().request]


def signatures(
    program: Any, static: Mapping[str, Any], offset_provider: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[ProgramSignature, SdfgSignature]:
    """Both signatures of a program, which takes none of the rest: its options are those of `gtstub.program()`."""
    if static or offset_provider or options:
        raise GtstubError("A DaCe program has no grid, no static arguments and no options of a backend.")
    parsed = _stubbed(program, CompileOptions()).parse()
    return parsed.signature, parsed.sdfg_signature


def _stubbed(program: DaceProgram | StubbedProgram, options: CompileOptions) -> StubbedProgram:
    if options != CompileOptions():
        raise TypeError("A DaCe program takes no options of 'gtstub.compile()': pass them to 'gtstub.program()'.")
    return program if isinstance(program, StubbedProgram) else stubbed(program)
