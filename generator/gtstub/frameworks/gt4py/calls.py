"""
What gtstub says of a call that gt4py would refuse: for arguments whose types do not fit the program, and for tables
that its offset provider lacks.

gt4py checks the types of a call before it calls the backend. It asks a function that it chooses by the type of the
program. The backend's parsing gives a program a type of its own, for which gt4py finds the function of this module. So
a call whose types fit costs what it did. gt4py's own function decides which types fit.
"""

from __future__ import annotations

import dataclasses
import functools
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import gt4py
from gt4py.eve import SourceLocation, datamodels
from gt4py.next import config, errors
from gt4py.next.ffront import type_info as ffront_type_info
from gt4py.next.ffront import type_specifications as ts_ffront
from gt4py.next.ffront.stages import FOASTOperatorDef, PASTProgramDef
from gt4py.next.iterator import ir as itir
from gt4py.next.iterator.type_system import inference
from gt4py.next.type_system import type_info
from gt4py.next.type_system import type_specifications as ts

from gtstub import settings
from gtstub.errors import ArgumentError
from gtstub.frameworks.gt4py.internals import CompilableProgramDef, ConcreteProgramDef

__tracebackhide__ = True
"""pytest shows no lines of this module."""

INTERNAL = str(Path(gt4py.__file__).parent), str(Path(__file__).parents[2]), functools.__file__
"""Where files are whose lines an error does not show."""

SHOWN = 3
"""The number of arguments that an error names."""


REFUSALS = (ValueError, IndexError)
"""What gt4py raises instead of giving a reason: a scalar for a field without dimensions, a tuple that is too long."""


class CallError(errors.DSLError, ArgumentError):
    """
    A call that gt4py would refuse. As an error of gt4py, it is shown without the lines of gt4py that lead to it, and
    with the line of the call. Its cause is what gt4py raises.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_caller(sys._getframe(1)), message)

    @property
    def _render_traceback_(self) -> Callable[[], list[str]]:
        """What IPython asks for in place of a traceback; gt4py's way to show errors is not that of a notebook."""
        if config.VERBOSE_EXCEPTIONS or settings.shows_frames():
            raise AttributeError("_render_traceback_")
        return lambda: [f"{type(self).__name__}: {self}"]


def _caller(frame: FrameType | None) -> SourceLocation | None:
    """The place of the call: the innermost frame in a file that is neither gt4py's nor gtstub's."""
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(INTERNAL):
            break
        frame = frame.f_back
    if frame is None or not (Path(file).is_file() or file in linecache.cache):  # as a cell of a notebook
        return None
    line, end_line, column, end_column = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    if line is None or column is None or end_column is None:
        return SourceLocation(file, frame.f_lineno, 1)
    return SourceLocation(file, line, column + 1, end_line=end_line, end_column=end_column + 1)


# --- Types ------------------------------------------------------------------------------------------------------------


class CheckedProgramType(ts_ffront.ProgramType):
    """gt4py's type of a program with its name, so that gt4py asks `_incompatibilities` about calls of it."""

    program: str


def checked(stage: PASTProgramDef) -> PASTProgramDef:
    """A program that gt4py has parsed, with a `CheckedProgramType`."""
    node = stage.past_node
    assert isinstance(node.type, ts_ffront.ProgramType)
    type_ = CheckedProgramType(definition=node.type.definition, program=str(node.id))
    return dataclasses.replace(stage, past_node=datamodels.evolve(node, type=type_))


def _incompatibilities(
    program_type: CheckedProgramType, args: Sequence[ts.TypeSpec], kwargs: dict[str, ts.TypeSpec]
) -> Iterator[str]:
    """gt4py's reasons why types do not fit a program. Raises CallError instead if gtstub has words for them."""
    return _check(program_type.program, program_type, args, kwargs)


_reasons_of_gt4py = type_info.function_signature_incompatibilities.dispatch(ts_ffront.ProgramType)
type_info.function_signature_incompatibilities.register(CheckedProgramType, _incompatibilities)


def check_types(inp: ConcreteProgramDef[Any, Any]) -> None:
    """Raises CallError if the arguments of a program or operator that gt4py has parsed do not fit it."""
    match inp.data:
        case PASTProgramDef(past_node=node) | FOASTOperatorDef(foast_node=node):
            type_ = ffront_type_info.type_in_program_context(node.type)
            if not any(isinstance(each, ts.DeferredType) for each in type_.definition.pos_or_kw_args.values()):
                _check(str(node.id), type_, inp.args.args, inp.args.kwargs)


def _check(
    program: str, type_: ts_ffront.ProgramType, args: Sequence[ts.TypeSpec], kwargs: Mapping[str, ts.TypeSpec]
) -> Iterator[str]:
    """gt4py's reasons why types do not fit; raises CallError if gtstub finds the same."""
    try:
        found = list(_reasons_of_gt4py(type_, args, kwargs))
    except REFUSALS:
        _refuse(program, type_, args, kwargs)
        raise
    if found:
        _refuse(program, type_, args, kwargs)
    return iter(found)


def _refuse(
    program: str, type_: ts_ffront.ProgramType, args: Sequence[ts.TypeSpec], kwargs: Mapping[str, ts.TypeSpec]
) -> None:
    """Raises CallError if it finds what does not fit."""
    if problems := _problems(program, type_.definition.pos_or_kw_args, args, kwargs):
        more = f" And {len(problems) - SHOWN} more." if len(problems) > SHOWN else ""
        raise CallError(" ".join(problems[:SHOWN]) + more) from _error_of_gt4py(type_, args, kwargs)


def _error_of_gt4py(
    type_: ts_ffront.ProgramType, args: Sequence[ts.TypeSpec], kwargs: Mapping[str, ts.TypeSpec]
) -> Exception | None:
    """What gt4py raises for such a call, without its lines, which say nothing about the call."""
    plain = ts_ffront.ProgramType(definition=type_.definition)
    try:
        type_info.accepts_args(plain, with_args=args, with_kwargs=dict(kwargs), raise_exception=True)
    except REFUSALS as error:
        return error.with_traceback(None)
    return None


def _problems(
    program: str, wanted: Mapping[str, ts.TypeSpec], args: Sequence[ts.TypeSpec], kwargs: Mapping[str, ts.TypeSpec]
) -> list[str]:
    """Sentences about arguments that do not fit parameters of the `wanted` types."""
    names = list(wanted)
    if len(args) > len(names):
        return [f"Program '{program}' takes {_numbered(names)}, but {len(args)} were passed by position."]
    given = dict(zip(names, args, strict=False))
    problems = []
    for name in kwargs:
        if name in given:
            problems.append(f"Argument '{name}' of program '{program}' was given twice.")
        elif name not in wanted:
            problems.append(f"Program '{program}' has no parameter '{name}'; it has {', '.join(names)}.")
    given.update(kwargs)
    if missing := [name for name in names if name not in given]:
        s, are = ("", "is") if len(missing) == 1 else ("s", "are")
        takes = f"the program takes {', '.join(names)}."
        problems.append(f"Argument{s} {_quoted(missing)} of program '{program}' {are} missing; {takes}")
    if problems:
        return problems
    unfit = [name for name in names if not _fits(wanted[name], given[name])]
    for one in unfit:
        for other in unfit:
            if one != other and _fits(wanted[one], given[other]) and _fits(wanted[other], given[one]):
                problems.append(
                    f"Arguments '{one}' and '{other}' of program '{program}' seem to be swapped: '{one}' must be"
                    f" '{wanted[one]}', and '{other}' must be '{wanted[other]}'."
                )
                return problems
    return [problem for name in unfit for problem in _mismatch(program, name, wanted[name], given[name])]


def _fits(wanted: ts.TypeSpec, given: ts.TypeSpec) -> bool:
    """Whether gt4py takes an argument of a type for a parameter."""
    function = ts.FunctionType(pos_only_args=[], pos_or_kw_args={"x": wanted}, kw_only_args={}, returns=ts.VoidType())
    try:
        return not list(_reasons_of_gt4py(ts_ffront.ProgramType(definition=function), (given,), {}))
    except REFUSALS:
        return False


def _mismatch(program: str, path: str, wanted: ts.TypeSpec, given: ts.TypeSpec) -> Iterator[str]:
    """Sentences about an argument, or about the elements of a tuple, of another type than their parameter."""
    match wanted, given:
        case ts.TupleType(), ts.TupleType() if len(wanted.types) == len(given.types):
            for index, (one, other) in enumerate(zip(wanted.types, given.types, strict=True)):
                if not _fits(one, other):
                    yield from _mismatch(program, f"{path}[{index}]", one, other)
        case ts.TupleType(), ts.TupleType():
            yield (
                f"Argument '{path}' of program '{program}' must be a tuple of length {len(wanted.types)}, not"
                f" {len(given.types)}."
            )
        case ts.FieldType(), ts.FieldType() if wanted.dims == given.dims:
            yield (f"Argument '{path}' of program '{program}' must have dtype '{wanted.dtype}', not '{given.dtype}'.")
        case _:
            yield f"Argument '{path}' of program '{program}' must be '{wanted}', not '{given}'."


def _numbered(names: Sequence[str]) -> str:
    return f"{len(names)} argument{'' if len(names) == 1 else 's'} ({', '.join(names)})"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


# --- Tables -----------------------------------------------------------------------------------------------------------


def check_tables(lowered: CompilableProgramDef, program: str) -> None:
    """
    Raises CallError if a program uses an offset that its offset provider lacks. gt4py would find out while it builds,
    and is asked here whether it needs the offset.
    """
    provider = lowered.args.offset_provider
    literals = lowered.data.pre_walk_values().if_isinstance(itir.OffsetLiteral).to_list()
    missing = [name for name in dict.fromkeys(each.value for each in literals) if _is_missing(name, provider)]
    if not missing:
        return
    try:
        inference.infer(lowered.data, offset_provider_type=lowered.args.offset_provider_type)
    except KeyError as error:
        if name := next((name for name in missing if f"'{name}'" in str(error)), None):
            has = f"has {_quoted(list(provider))}" if provider else "is empty"
            raise CallError(
                f"Program '{program}' needs connectivity '{name}', which the offset provider does not have: pass"
                f" it in 'offset_provider', which {has}."
            ) from error.with_traceback(None)


def _is_missing(offset: Any, provider: Mapping[str, Any]) -> bool:
    return isinstance(offset, str) and offset not in provider
