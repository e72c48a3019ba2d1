"""Makes program signatures of DaCe programs, and names the SDFG's arguments so that C and Fortran can write them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import dace

from gtstub.frameworks.dace.readings import Reading
from gtstub.signature.model import (
    Argument,
    Bounds,
    CallbackType,
    Dimension,
    FieldType,
    Parameter,
    ProgramSignature,
    Role,
    ScalarArgument,
    ScalarType,
    SdfgSignature,
    Shapes,
    Type,
    checked_dtype,
)

RESULT = re.compile(r"__return(_\d+)?")
"""The names of the arrays that a program returns."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """
    The parameters of a compiled DaCe program by their names in the SDFG, in the order in which a stub takes them: those
    that the caller passes, those that the host reads, and the results.
    """

    passed: tuple[str, ...]
    read: Mapping[str, Reading]
    results: tuple[str, ...]

    @property
    def names(self) -> dict[str, str]:
        """The names in the signatures by those in the SDFG."""
        names = {name: name for name in self.passed}
        # Callbacks have names of their own in DaCe, since one function may have several signatures.
        new = {
            name: re.sub(r"\W", "_", reading.source) if name.startswith("__") else name
            for name, reading in self.read.items()
        }
        new |= {name: RESULT.sub(r"result\1", name) for name in self.results}
        for name, wanted in new.items():
            while wanted in names.values():
                wanted += "_"
            names[name] = wanted
        return names


def program_signature(sdfg: dace.SDFG, parameters: Parameters) -> ProgramSignature:
    """The signature of the program that DaCe parsed as `sdfg`. Raises SignatureError for unsupported types."""
    names, described = parameters.names, {**sdfg.arrays, **sdfg.arglist()}

    def parameter(name: str, source: str | None = None) -> Parameter:
        return Parameter(names[name], _type(sdfg, name, described), source)

    return ProgramSignature(
        name=sdfg.name,
        parameters=(
            *(parameter(name) for name in parameters.passed),
            *(parameter(name, _path(reading.source)) for name, reading in parameters.read.items()),
            *(parameter(name) for name in parameters.results),
        ),
    )


def results_of(arguments: Iterable[str]) -> tuple[str, ...]:
    """The arguments of an SDFG that are results, in the order in which the program returns them."""
    found = [name for name in arguments if RESULT.fullmatch(name)]
    return tuple(sorted(found, key=lambda name: int(name.removeprefix("__return").removeprefix("_") or 0)))


def _path(source: str) -> str | None:
    return source if re.fullmatch(r"[A-Za-z_][\w.]*", source, re.ASCII) else None


def _type(sdfg: dace.SDFG, name: str, described: Mapping[str, Any]) -> Type:
    descriptor = described.get(name)
    dtype = sdfg.symbols.get(name, dace.int32) if descriptor is None else descriptor.dtype
    if isinstance(dtype, dace.callback):
        return CallbackType()
    checked = checked_dtype(f"SDFG '{sdfg.name}'", name, dtype.to_string())
    if descriptor is None or isinstance(descriptor, dace.data.Scalar):
        return ScalarType(checked)
    return FieldType(checked, tuple(Dimension(f"axis_{axis}", "local") for axis in range(len(descriptor.shape))))


def renamed(signature: SdfgSignature, names: Mapping[str, str]) -> SdfgSignature:
    """The signature of an SDFG with other names of arguments."""

    def name(old: str) -> str:
        return names.get(old, old)

    def roles(symbol: ScalarArgument) -> ScalarArgument:
        return dataclasses.replace(
            symbol, name=name(symbol.name), roles=tuple(Role(name(r.array), r.axis, r.property) for r in symbol.roles)
        )

    def argument(each: Argument) -> Argument:
        return roles(each) if isinstance(each, ScalarArgument) else dataclasses.replace(each, name=name(each.name))

    return dataclasses.replace(
        signature,
        arguments=tuple(map(argument, signature.arguments)),
        shapes=signature.shapes
        and Shapes(
            tuple(map(roles, signature.shapes.symbols)),
            tuple(dataclasses.replace(each, array=name(each.array)) for each in signature.shapes.requirements),
        ),
        bounds=signature.bounds and _bounds(signature.bounds, name),
    )


def _bounds(bounds: Bounds, name: Callable[[str], str]) -> Bounds:
    claims = tuple(
        dataclasses.replace(
            claim,
            uses=tuple(dataclasses.replace(use, array=name(use.array)) for use in claim.uses),
            follows=tuple(
                dataclasses.replace(each, table=name(each.table), array=each.array and name(each.array))
                for each in claim.follows
            ),
        )
        for claim in bounds.claims
    )
    unknown = tuple(dataclasses.replace(each, array=name(each.array)) for each in bounds.unknown)
    return dataclasses.replace(bounds, claims=claims, unknown=unknown)
