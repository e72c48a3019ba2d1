"""
Rendering: a call plan becomes the text of a stub.

The templates get the plan itself and write it down. Whatever depends on the program is decided in the plan, and all C
and Fortran stands in templates/: this module only writes literals and names, and `layout.py` breaks lines. The same
plan gives the same bytes.
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
from gtstub.codegen.fortran_interface import make_interface
from gtstub.codegen.signing import sign_c, sign_fortran
from gtstub.install import TEMPLATES
from gtstub.plan.describe import describe_leaf, describe_source, describe_statics
from gtstub.plan.model import CallPlan, StaticLeaf
from gtstub.signature.dtypes import NAMES, DType


def render(plan: CallPlan, *, program_digest: str, sdfg_digest: str, fortran: bool = False) -> Mapping[str, str]:
    """
    The texts of a stub by the ends of their file names: '.h', '.c' and, with `fortran`, '.f90'.

    The digests are those of the two signatures that the plan was made from. Raises PlanError if a name of the plan
    cannot stand in Fortran.
    """
    context: dict[str, Any] = {
        "plan": plan,
        "abi": ABI,
        "version": __version__,
        "program_digest": program_digest,
        "sdfg_digest": sdfg_digest,
    }
    texts = {".h": sign_c(_fill("stub.h.j2", context)), ".c": sign_c(_fill("stub.c.j2", context))}
    if fortran:
        texts[".f90"] = sign_fortran(_fill("stub.f90.j2", {**context, "interface": make_interface(plan)}))
    return texts


def _fill(template: str, context: Mapping[str, Any]) -> str:
    return environment().get_template(template).render(context)


@functools.cache
def environment() -> jinja2.Environment:
    """What all templates share: undefined names are errors, and these are the filters."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    made.filters |= {
        "align": layout.align,
        "c_name": c_name,
        "fortran_align": layout.fortran_align,
        "fortran_comment": layout.fortran_comment,
        "fortran_pack": layout.fortran_pack,
        "fortran_split": layout.fortran_split,
        "leaf_text": describe_leaf,
        "literal": literal,
        "pack": layout.pack,
        "source_text": describe_source,
        "static_texts": describe_statics,
    }
    return made


def c_name(dtype: DType) -> str:
    """The name of an element type in C."""
    return NAMES[dtype].c


def literal(leaf: StaticLeaf) -> str:
    """The value of a static argument in C: the very value, without a warning of any compiler."""
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
