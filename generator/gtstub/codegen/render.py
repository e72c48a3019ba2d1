"""
Renders a call plan as the text of a stub. Equal plans give equal bytes.

The plan contains every decision that depends on the program, and the templates in templates/ contain all C and Fortran.
This module adds literals and names; `layout.py` breaks lines.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import jinja2

from gtstub._version import __version__
from gtstub.abi import ABI
from gtstub.codegen import layout
from gtstub.codegen.expressions import bits, c_condition, c_expression, c_fact, c_polynomial
from gtstub.codegen.fortran_interface import make_interface
from gtstub.codegen.output import C_COMMENT, FORTRAN_COMMENT, sign
from gtstub.install import TEMPLATES
from gtstub.plan.indices import indices_used
from gtstub.plan.model import CallPlan, StaticLeaf
from gtstub.signature.dtypes import NAMES


def render(plan: CallPlan, *, program_digest: str, sdfg_digest: str, fortran: bool = False) -> Mapping[str, str]:
    """
    The texts of a stub by the suffixes of their files: '.h', '.c' and, with `fortran`, '.f90'.

    The digests are those of the plan's two signatures. Raises PlanError if a name of the plan is not valid in Fortran.
    """
    context: dict[str, Any] = {
        "plan": plan,
        "abi": ABI,
        "version": __version__,
        "program_digest": program_digest,
        "sdfg_digest": sdfg_digest,
    }
    comments = {".h": C_COMMENT, ".c": C_COMMENT}
    if fortran:
        comments[".f90"] = FORTRAN_COMMENT
        context["interface"] = make_interface(plan)
    return {
        suffix: sign(environment().get_template(f"stub{suffix}.j2").render(context), comment)
        for suffix, comment in comments.items()
    }


@functools.cache
def environment() -> jinja2.Environment:
    """The Jinja environment of all templates. Undefined names are errors."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    made.globals["indices_used"] = indices_used
    made.filters |= {
        "align": layout.align,
        "bits": bits,
        "c_condition": c_condition,
        "c_expression": c_expression,
        "c_fact": c_fact,
        "c_polynomial": c_polynomial,
        "c_name": lambda dtype: NAMES[dtype].c,
        "fortran_comment": layout.fortran_comment,
        "fortran_pack": layout.fortran_pack,
        "fortran_split": layout.fortran_split,
        "literal": literal,
        "pack": layout.pack,
        "repr": repr,
    }
    return made


def literal(leaf: StaticLeaf) -> str:
    """The value of a static argument as a C literal: exact, and accepted by all compilers without warnings."""
    match leaf.value:
        case bool():
            return "true" if leaf.value else "false"
        case float() as number:
            suffix = "f" if leaf.dtype == "float32" else ""
            if math.isnan(number):
                return f'__builtin_nan{suffix}("")'
            if math.isinf(number):
                return f"{'-' if number < 0 else ''}__builtin_inf{suffix}()"
            return f"{number!r}{suffix}"
        case integer:
            if integer == -(2**63):
                return "INT64_MIN"
            return f"{integer}u" if leaf.dtype.startswith("u") else f"{integer}"
