"""The internals of DaCe that gtstub uses. After an upgrade of DaCe, check this module first."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import dace
from dace import config, data
from dace.frontend.python import parser
from dace.frontend.python.parser import DaceProgram
from dace.sdfg import type_inference


def fixed_settings() -> dict[str, Any]:
    """The settings that change generated code and that DaCe reads only on import, with their values at that time."""
    return {
        "compiler.cpu.openmp_sections": dace.SDFG.openmp_sections.default,
        "compiler.default_data_types": {"int32": "C", "int64": "Python"}[
            type_inference._py2c_typeconversion["int"].to_string()
        ],
    }


@dataclasses.dataclass(frozen=True)
class Types:
    """
    What DaCe compiles a program for, with the arguments of one call: the descriptors of the parameters that are data,
    the compile-time values, and the names of the parameters that the call passes.
    """

    descriptors: Mapping[str, data.Data]
    values: Mapping[str, Any]
    given: frozenset[str]


def types_of(program: DaceProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Types:
    """As DaceProgram.__call__ finds them, in DaCe 2.0.0a10."""
    _refresh(program)
    descriptors, _, values, given = program._get_type_annotations(args, dict(kwargs))
    return Types(descriptors, values, frozenset(name for name in given if isinstance(name, str)))


def parse_program(program: DaceProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dace.SDFG:
    """Parses a program for the arguments of a call, and optimises it if it says so, as DaceProgram.compile does."""
    _refresh(program)
    sdfg = program._parse(args, dict(kwargs))
    if config.Config.get_bool("optimizer", "autooptimize") or program.autoopt:
        sdfg = program.auto_optimize(sdfg)
        sdfg.simplify()
    return sdfg


def python_of(program: DaceProgram) -> Callable[..., Any]:
    """The function or bound method that a program was made of."""
    if program.methodobj is None:
        return program.f  # type: ignore[no-any-return]
    return program.f.__get__(program.methodobj)  # type: ignore[no-any-return]


def _refresh(program: DaceProgram) -> None:
    """Reads the globals of a program again, because DaCe keeps a copy of them."""
    program.global_vars = parser._get_locals_and_globals(program.f)
    if program.methodobj is not None:
        program.global_vars[program.objname] = program.methodobj
