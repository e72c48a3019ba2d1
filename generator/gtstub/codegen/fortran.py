"""
What the templates of a program's Fortran side place: of the entry in <name>_stub.c, and of the module <name>_stub.f90,
no line of which is longer than Fortran allows.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from gtstub.codegen.fortran_interface import Argument, make_interface
from gtstub.plan.describe import C_TYPES, c_flags, describe_leaf, describe_statics
from gtstub.plan.model import CallPlan, FieldLeaf

MAX_LINE = 132
"""Characters of a line in free form."""

INDENT = " " * 12
"""Of an argument in the module."""


def entry_context(plan: CallPlan) -> dict[str, Any]:
    """For fortran.c.j2. The name of a parameter ends in an underscore: none of the entry's own names does."""
    parameters, comments, arrays, scalars = [], [], [], []
    word = 0  # of gts_program.descriptors, where each array has its address and two words for each axis
    for leaf in plan.taken:
        parameter = f"{leaf.name}_"
        if isinstance(leaf, FieldLeaf):
            type_ = "const CFI_cdesc_t *"
            what = c_flags(plan.compared(leaf))
            arrays.append({"parameter": parameter, "rank": len(leaf.axes), "what": what, "word": word})
            word += 1 + 2 * len(leaf.axes)
        elif leaf.dtype == "bool":
            type_ = "unsigned char "  # some compilers set all bits of a logical for true: it would be no bool of C
            scalars.append(f"s->{leaf.name} = {parameter} != 0;")
        else:
            type_ = f"{C_TYPES[leaf.dtype]} "
            scalars.append(f"s->{leaf.name} = {parameter};")
        parameters.append(f"{type_}{parameter},")
        comments.append(f"/* {leaf.path}: {describe_leaf(leaf)} */")
    width = max(map(len, parameters), default=0)
    lines = [f"{parameter:{width}} {comment}" for parameter, comment in zip(parameters, comments, strict=True)]
    return {"fortran_parameters": lines, "fortran_arrays": arrays, "fortran_scalars": scalars}


def module_context(plan: CallPlan, origin: Sequence[str]) -> dict[str, Any]:
    """For stub.f90.j2; raises PlanError where a name cannot be one of Fortran."""
    interface = make_interface(plan)
    names = ", ".join(("program", *(argument.name for argument in interface.arguments), "stat", "errmsg"))
    return {
        "module": interface.module,
        "procedure": interface.procedure,
        "origin": [line for text in origin for line in _comment(text, "")],
        "statics": [line for text in describe_statics(plan) for line in _comment(f"   {text}", INDENT)],
        "kinds": interface.kinds,
        "arguments": textwrap.wrap(names, MAX_LINE - len(f"{INDENT} &")),
        "symbol": _split(interface.symbol),
        "declarations": list(_declarations(interface.arguments)),
    }


def _declarations(arguments: Sequence[Argument]) -> Iterator[str]:
    """A line for each argument; its comment behind it, or where the line ends too soon, above it."""
    declarations = [_declaration(argument) for argument in arguments]
    width = max(map(len, declarations), default=0)
    for declaration, argument in zip(declarations, arguments, strict=True):
        line = f"{declaration:{width}} ! {argument.description}"
        if len(INDENT + line) <= MAX_LINE:
            yield line
        else:
            yield from _comment(f" {argument.description}", INDENT)
            yield declaration


def _declaration(argument: Argument) -> str:
    type_ = f"{argument.type}({argument.kind})"
    if argument.rank == 0:
        return f"{type_}, value :: {argument.name}"
    intent = "inout" if argument.written else "in"
    return f"{type_}, intent({intent}) :: {argument.name}({', '.join(':' * argument.rank)})"


def _comment(text: str, indent: str) -> list[str]:
    """A comment as lines for this indentation."""
    return textwrap.wrap(text, MAX_LINE - len(indent), initial_indent="!", subsequent_indent="!     ") or ["!"]


def _split(literal: str) -> str:
    """A character literal, continued on further lines where it is long."""
    width = 100
    return f"&\n{INDENT}&".join(literal[i : i + width] for i in range(0, len(literal), width))
