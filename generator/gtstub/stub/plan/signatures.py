"""Look-up of both signatures of a program by name."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Set

from gtstub.errors import ContradictionError
from gtstub.stub.signature.dtypes import INDEX
from gtstub.stub.signature.model import (
    Bounds,
    PlainArgument,
    ProgramSignature,
    Property,
    Requirement,
    Role,
    ScalarArgument,
    SdfgSignature,
    Shapes,
    StaticDomain,
    StructureArgument,
    structures_in,
)
from gtstub.stub.signature.roles import fields, roles_by_name


class Signatures:
    """The two signatures of one program."""

    def __init__(self, sdfg: SdfgSignature, program: ProgramSignature) -> None:
        self.sdfg = sdfg
        self.program = program
        self.shapes = sdfg.shapes or Shapes((), ())
        self.bounds = sdfg.bounds or Bounds(0, (), ())
        self.arguments: Mapping[str, PlainArgument] = {argument.name: argument for argument in sdfg.values}
        self.structures: Mapping[str, StructureArgument] = {each.name: each for each in structures_in(sdfg.arguments)}
        self.domains: Mapping[str, StaticDomain] = self._by_name(
            "static domain", ((domain.leaf, domain) for domain in program.static_domains)
        )
        self.statics = self._by_name(
            "static argument", ((argument.leaf, argument.value) for argument in program.static_arguments)
        )
        self.connectivities = self._by_name("connectivity", ((each.name, each) for each in program.connectivities))
        self._check_domains()

    def _by_name[T](self, kind: str, pairs: Iterable[tuple[str, T]]) -> Mapping[str, T]:
        found: dict[str, T] = {}
        for name, value in pairs:
            if name in found:
                raise self.refusal(f"{kind} '{name}' is given several times")
            found[name] = value
        return found

    def _check_domains(self) -> None:
        known = {name for name, _ in fields(self.program)}
        for name, domain in self.domains.items():
            if name not in known:
                raise self.refusal(f"static domain '{name}' is not that of a field of the program")
            for start, stop in domain.ranges:
                if start > stop:
                    raise self.refusal(f"static domain '{name}' has the range from {start} to {stop}")

    def refusal(self, what: str, symbols: tuple[str, ...] = ()) -> ContradictionError:
        return ContradictionError(self.program.name, what, symbols)

    def roles(self, symbol: ScalarArgument) -> tuple[Role, ...]:
        """
        The roles of a symbol according to the array descriptors of the SDFG. After optimisation a symbol may occur in
        no descriptor; then the roles follow from gt4py's name for the symbol.
        """
        return symbol.roles or self._roles_by_name.get(symbol.name, ())

    @functools.cached_property
    def _roles_by_name(self) -> Mapping[str, tuple[Role, ...]]:
        return roles_by_name(self.program)

    @functools.cached_property
    def read(self) -> Mapping[tuple[str, int], tuple[Property, ...]]:
        """The properties that are read from each axis, by the flattened name of the field and the axis."""
        found: dict[tuple[str, int], dict[Property, None]] = {}
        for symbol in self._symbols:
            for role in self.roles(symbol):
                found.setdefault((role.array, role.axis), {})[role.property] = None
        for each in self.shapes.requirements:
            found.setdefault((each.array, each.axis), {})[each.property] = None
        return {place: tuple(properties) for place, properties in found.items()}

    @functools.cached_property
    def narrow(self) -> Set[tuple[str, int, Property]]:
        """The properties of axes that symbols of 32 bits are, or may be computed from."""
        symbols = {symbol.name: symbol for symbol in self._symbols if symbol.dtype == INDEX}
        places: list[Role | Requirement] = [role for symbol in symbols.values() for role in self.roles(symbol)]
        places += (each for each in self.shapes.requirements if (linear := each.value.linear) and linear[0] in symbols)
        return {(each.array, each.axis, each.property) for each in places}

    @property
    def _symbols(self) -> Iterator[ScalarArgument]:
        """All scalars of the SDFG, and the symbols that it does not take."""
        yield from (argument for argument in self.sdfg.values if isinstance(argument, ScalarArgument))
        yield from self.shapes.symbols

    @functools.cached_property
    def start_symbols(self) -> Mapping[tuple[str, int], str]:
        """The names of the symbols that are the start of an axis, by the flattened name of the field and the axis."""
        return {
            (role.array, role.axis): argument.name
            for argument in self.sdfg.arguments
            if isinstance(argument, ScalarArgument)
            for role in self.roles(argument)
            if role.property == "start"
        }
