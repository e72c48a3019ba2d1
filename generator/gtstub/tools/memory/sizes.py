"""The values of an SDFG's symbols, from the sizes of dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gtstub.errors import GtstubError
from gtstub.stub.signature.model import (
    ArrayArgument,
    Axis,
    Dimension,
    ProgramSignature,
    Property,
    ScalarArgument,
    SdfgSignature,
)
from gtstub.stub.signature.roles import dims_of_arrays, fields, roles_by_name
from gtstub.util.suggest import did_you_mean


class SizeError(GtstubError):
    """A size is that of no dimension, or a value that of no symbol."""

    exit_code = 2


def symbol_sizes(
    program: ProgramSignature, sdfg: SdfgSignature, dimensions: Mapping[str, int], symbols: Mapping[str, int]
) -> Mapping[str, int]:
    """
    The values of those symbols of an SDFG that follow from sizes of horizontal and vertical dimensions, in elements,
    and from `symbols`, which are values of symbols by name.

    A value in `symbols` comes first, then what is compiled in: static arguments and domains, sizes, starts and stops
    in the descriptors of arrays, and the neighbors of each connectivity. Otherwise all fields on a dimension have its
    size, and start at 0. Strides are those of arrays without gaps, if the signature has no other stride for an axis of
    the array: an axis of stride 1 is the innermost one, and the others lie as gt4py allocates them, local dimensions
    inside vertical ones and these inside horizontal ones. gt4py itself may leave gaps to align rows.

    Raises SizeError for the name of another dimension or symbol.
    """
    known = {each.name: each for each in _scalars(sdfg)}
    _check(program, known, dimensions, symbols)
    arrays = _arrays(program, sdfg, dimensions)
    names = roles_by_name(program)
    found = {each.leaf: int(each.value) for each in program.static_arguments if isinstance(each.value, int)}
    for name, symbol in known.items():
        for role in symbol.roles or names.get(name, ()):
            if role.array in arrays and (value := arrays[role.array][role.axis][role.property]) is not None:
                found.setdefault(name, value)
    return {**found, **symbols}


class SharedSizes:
    """Sizes of dimensions and values of symbols for several programs, not each of which has all of them."""

    def __init__(self, dimensions: Mapping[str, int], symbols: Mapping[str, int]) -> None:
        self._given = dimensions, symbols
        self._known: set[str] = set()

    def fitting(self, program: ProgramSignature, sdfg: SdfgSignature) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """The dimensions and the symbols that a program has."""
        names = known_dimensions(program), known_symbols(sdfg)
        dimensions, symbols = (
            {name: value for name, value in given.items() if name in known}
            for given, known in zip(self._given, names, strict=True)
        )
        self._known |= dimensions.keys() | symbols.keys()
        return dimensions, symbols

    def check(self) -> None:
        """Raises SizeError for a name that fitted none of the programs."""
        for name in (name for given in self._given for name in given):
            if name not in self._known:
                raise SizeError(f"No entry has a dimension or symbol '{name}'.")


def known_dimensions(program: ProgramSignature) -> Sequence[str]:
    """The names of the horizontal and vertical dimensions of a program."""
    dims = [dim for _, type_ in fields(program) for dim in type_.dims]
    for each in program.connectivities:
        dims += [each.source, each.codomain]
    return sorted({dim.name for dim in dims if dim.kind != "local"})


def known_symbols(sdfg: SdfgSignature) -> Sequence[str]:
    """The names of the symbols of an SDFG that can have values."""
    return sorted(each.name for each in _scalars(sdfg))


def _scalars(sdfg: SdfgSignature) -> Sequence[ScalarArgument]:
    more = sdfg.shapes.symbols if sdfg.shapes else ()
    return [each for each in (*sdfg.values, *more) if isinstance(each, ScalarArgument)]


def _check(
    program: ProgramSignature, known: Mapping[str, object], dimensions: Mapping[str, int], symbols: Mapping[str, int]
) -> None:
    dims = known_dimensions(program)
    for name in dimensions:
        if name not in dims:
            hint = did_you_mean(name, dims) if dims else " It has none: give values of its symbols."
            raise SizeError(f"Program '{program.name}' has no dimension '{name}'.{hint}")
    for name in symbols:
        if name not in known:
            raise SizeError(f"SDFG '{program.name}' has no symbol '{name}'.{did_you_mean(name, sorted(known))}")


# --- Arrays -----------------------------------------------------------------------------------------------------------

_Values = Mapping[Property, int | None]
"""What is known of one axis."""

_ORDER = ("horizontal", "vertical", "local")
"""The kinds of dimensions as gt4py allocates them, outermost first."""


def _arrays(
    program: ProgramSignature, sdfg: SdfgSignature, dimensions: Mapping[str, int]
) -> Mapping[str, Sequence[_Values]]:
    """The values of each axis of each array."""
    axes = {each.name: each.axes for each in sdfg.values if isinstance(each, ArrayArgument)}
    domains = {each.leaf: each.ranges for each in program.static_domains}
    sizes = {each.neighbor.name: each.max_neighbors for each in program.connectivities} | dict(dimensions)
    found: dict[str, Sequence[_Values]] = {}
    for name, dims in dims_of_arrays(program):
        given = axes.get(name) or (Axis(),) * len(dims)
        ranges: Sequence[tuple[int, int] | None] = domains.get(name) or (None,) * len(dims)
        if len(given) == len(dims) == len(ranges):
            values = [
                _values(*each) for each in zip(given, ranges, map(sizes.get, (dim.name for dim in dims)), strict=True)
            ]
            strides = _strides(dims, [axis.stride for axis in given], [each["size"] for each in values])
            found[name] = [{**each, "stride": stride} for each, stride in zip(values, strides, strict=True)]
    return found


def _values(axis: Axis, domain: tuple[int, int] | None, size: int | None) -> dict[Property, int | None]:
    """Start, stop and size of an axis, whose dimension has this size."""
    start, stop = domain or (axis.start, axis.stop)
    if start is not None and stop is not None:
        size = stop - start
    elif axis.size is not None:
        size = axis.size
    if size is not None and start is None:
        start = 0 if stop is None else stop - size
    if size is not None and stop is None and start is not None:
        stop = start + size
    return {"start": start, "stop": stop, "size": size}


def _strides(
    dims: Sequence[Dimension], given: Sequence[int | None], sizes: Sequence[int | None]
) -> Sequence[int | None]:
    """The strides of an array without gaps, if they are those given, which are all that is known otherwise."""
    order = sorted(range(len(dims)), key=lambda axis: (given[axis] == 1, _ORDER.index(dims[axis].kind)))
    strides: list[int | None] = [None] * len(dims)
    stride: int | None = 1
    for axis in reversed(order):
        strides[axis] = stride
        size = sizes[axis]
        stride = None if stride is None or size is None else stride * size
    fits = all(expected in (None, stride) for expected, stride in zip(given, strides, strict=True))
    return strides if fits else given
