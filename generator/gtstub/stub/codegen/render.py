"""
Renders a call plan as the text of a stub. Equal plans give equal bytes.

The plan contains every decision that depends on the program, and the templates in templates/ contain all C and all text
in the languages of hosts. This module adds literals and names; `layout.py` breaks lines.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping
from typing import Any

import jinja2

from gtstub._version import __version__
from gtstub.abi import ABI
from gtstub.install import TEMPLATES
from gtstub.stub.codegen import layout
from gtstub.stub.codegen.expressions import bits, c_conditions, c_expression, c_fact, c_polynomial
from gtstub.stub.codegen.hosts import LANGUAGES
from gtstub.stub.codegen.hosts.language import HostLanguage
from gtstub.stub.codegen.output import C_COMMENT, sign
from gtstub.stub.plan.model import CallPlan, StaticLeaf
from gtstub.stub.plan.wording import indices_used
from gtstub.stub.signature.dtypes import NAMES, DType


def render(
    plan: CallPlan,
    *,
    interface: str,
    program_digest: str,
    sdfg_digest: str,
    languages: Collection[HostLanguage] = (),
    compiled: jinja2.BytecodeCache | None = None,
) -> Mapping[str, str]:
    """
    The texts of a stub by the suffixes of their files: '.h', '.c', and that of each language.

    The digests are those of the plan's two signatures, and `compiled` keeps compiled templates. Raises PlanError if a
    name of the plan is not valid in one of the languages.
    """
    context: dict[str, Any] = {
        "plan": plan,
        "abi": ABI,
        "version": __version__,
        "interface_digest": interface,
        "program_digest": program_digest,
        "sdfg_digest": sdfg_digest,
        "parts": [language.part for language in LANGUAGES.values() if language.part],
    }

    def text(suffix: str, comment: tuple[str, str], **more: Any) -> str:
        return sign(environment(compiled).get_template(f"stub{suffix}.j2").render(context, **more), comment)

    interfaces = [(language, language.make_interface(plan)) for language in languages]
    return {
        **{suffix: text(suffix, C_COMMENT) for suffix in (".h", ".c")},
        **{each.suffix: text(each.suffix, each.comment, interface=interface) for each, interface in interfaces},
    }


@functools.cache
def environment(compiled: jinja2.BytecodeCache | None = None) -> jinja2.Environment:
    """The Jinja environment of all templates, which `compiled` keeps. Undefined names are errors."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        optimized=False,  # no filter runs while a template is compiled, so that this depends on its text alone
        bytecode_cache=compiled,
    )
    made.globals["indices_used"] = indices_used
    made.filters |= {
        "align": layout.align,
        "bits": bits,
        "c_conditions": c_conditions,
        "c_expression": c_expression,
        "c_fact": c_fact,
        "c_polynomial": c_polynomial,
        "continued": layout.continued,
        "c_name": lambda dtype: NAMES[dtype].c,
        "fit": layout.fit,
        "literal": literal,
        "pack": layout.pack,
        "pack_macro": layout.pack_macro,
        "repr": repr,
        "with_slots": layout.with_slots,
    }
    for language in LANGUAGES.values():
        made.filters |= language.filters
    return made


def literal(leaf: StaticLeaf) -> str:
    """The value of a static argument as a C literal: exact, and accepted by all compilers without warnings."""
    return _literal(leaf.dtype, leaf.value)


def _literal(dtype: DType, value: bool | int | float | complex) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float() as number:
            suffix = "f" if dtype == "float32" else ""
            if math.isnan(number):
                return f'__builtin_nan{suffix}("")'
            if math.isinf(number):
                return f"{'-' if number < 0 else ''}__builtin_inf{suffix}()"
            return f"{number!r}{suffix}"
        case complex() as number:
            part: DType = "float32" if dtype == "complex64" else "float64"
            return f"__builtin_complex({_literal(part, number.real)}, {_literal(part, number.imag)})"
        case integer:
            if integer == -(2**63):
                return "INT64_MIN"
            return f"{integer}u" if dtype.startswith("u") else f"{integer}"
