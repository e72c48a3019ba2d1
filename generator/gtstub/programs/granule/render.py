"""The texts of a granule: its header, its C file and its Fortran module. Equal granules give equal bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from gtstub._version import __version__
from gtstub.abi import ABI
from gtstub.errors import GranuleError
from gtstub.programs.granule.description import Call, Description, GranuleArray
from gtstub.stub.codegen.hosts import LANGUAGES
from gtstub.stub.codegen.hosts.fortran import TYPES
from gtstub.stub.codegen.output import C_COMMENT, sign
from gtstub.stub.codegen.render import environment
from gtstub.stub.signature.dtypes import DType

LONGEST_DECLARATION = 100
"""In characters; a longer one is on two lines."""


@dataclasses.dataclass(frozen=True)
class FortranArgument:
    """A dummy argument of bind()."""

    name: str
    declaration: str
    description: str


@dataclasses.dataclass(frozen=True)
class FortranPointer:
    """A procedure that points to arrays of one type."""

    procedure: str
    type: str


@dataclasses.dataclass(frozen=True)
class FortranGranule:
    """What the Fortran module needs beside the description. `scalars` are the types of the scalars."""

    arguments: tuple[FortranArgument, ...]
    pointers: tuple[FortranPointer, ...]
    scalars: tuple[str, ...]
    kinds: tuple[str, ...]


def render(granule: Description, digest: str, languages: Collection[str] = ("fortran",)) -> Mapping[str, str]:
    """The texts by file name. `digest` is that of granule.json."""

    def name_of(arrays: Collection[int]) -> str:
        return ", ".join(granule.arrays[each].name for each in arrays)

    calls = _distinct_calls(granule)
    numbers = {text: number for number, text in enumerate(calls, 1)}
    context: dict[str, Any] = {
        "granule": granule,
        "calls": list(calls.values()),
        "number_of": lambda call: numbers[repr(call)],
        "abi": ABI,
        "version": __version__,
        "digest": digest,
        "name_of": name_of,
    }

    def text(suffix: str, comment: tuple[str, str], **more: Any) -> str:
        return sign(environment().get_template(f"granule/granule{suffix}.j2").render(context, **more), comment)

    texts = {suffix: text(suffix, C_COMMENT) for suffix in (".h", ".c")}
    if "fortran" in languages:
        texts[".f90"] = text(".f90", LANGUAGES["fortran"].comment, interface=_fortran(granule))
    return {f"{granule.name}_granule{suffix}": each for suffix, each in texts.items()}


def _distinct_calls(granule: Description) -> Mapping[str, Call]:
    """The calls of all steps, each once: by their texts, because 0.0 equals -0.0."""
    return {repr(call): call for step in granule.steps for call in step.calls}


def _fortran(granule: Description) -> FortranGranule:
    arguments = tuple(map(_argument, granule.arguments))
    dtypes = sorted({array.dtype for array in granule.arrays})
    pointers = {_type(dtype): FortranPointer(f"get_{dtype}", _type(dtype)) for dtype in reversed(dtypes)}
    used = {TYPES[dtype][1] for dtype in (*dtypes, *(scalar.dtype for scalar in granule.scalars))}
    kinds = {*used, "c_char", "c_int", "c_int64_t", "c_null_ptr", "c_ptr", *(["c_funptr"] if granule.hooks else [])}
    return FortranGranule(
        arguments, tuple(pointers.values()), tuple(_type(each.dtype) for each in granule.scalars), tuple(sorted(kinds))
    )


def _type(dtype: DType) -> str:
    if dtype not in TYPES:
        raise GranuleError(f"A granule cannot have an array of dtype '{dtype}', which Fortran lacks.")
    type_, kind = TYPES[dtype]
    return f"{type_}({kind})"


def _argument(array: GranuleArray) -> FortranArgument:
    axes = ", ".join(":" * len(array.shape))
    sizes = ", ".join(f"{dim}: {size}" if dim else f"{size}" for dim, size in zip(array.dims, array.shape, strict=True))
    attributes, name = f"{_type(array.dtype)}, pointer, intent(in) ::", f"{array.name}({axes})"
    is_long = len(attributes) + len(name) > LONGEST_DECLARATION
    return FortranArgument(
        array.name,
        f"{attributes}{f' &{chr(10)}{16 * chr(32)}' if is_long else ' '}{name}",
        f"[{sizes}]{', a table' if array.is_table else ''}{', written' if array.written else ''}",
    )
