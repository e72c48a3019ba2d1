"""Checks that an SDFG signature has all that its members name."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator

from gtstub.errors import SignatureError
from gtstub.stub.signature.model import (
    INDEX_TYPES,
    Argument,
    ArrayArgument,
    Bounds,
    CallbackArgument,
    Claim,
    ScalarArgument,
    SdfgSignature,
    Shapes,
    StructureArgument,
    structures_in,
)


def check_references(signature: SdfgSignature, refuse: Callable[[str, str], SignatureError]) -> None:
    """
    Checks what the schema cannot express: each name that the document uses is defined in the document. Raises what
    `refuse` makes of a place and a problem.
    """
    ranks = {item.name: len(item.axes) for item in signature.values if isinstance(item, ArrayArgument)}
    scalars = {item.name: item.dtype for item in signature.values if isinstance(item, ScalarArgument)}
    callbacks = {item.name: item for item in signature.arguments if isinstance(item, CallbackArgument)}
    names = [item.name for item in (*signature.values, *structures_in(signature.arguments))]
    twice, times = collections.Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise refuse("$.arguments", f"expected each name once, found '{twice}' several times")
    shapes = signature.shapes or Shapes((), ())
    symbols = {symbol.name for symbol in shapes.symbols}
    if len(symbols) < len(shapes.symbols) or symbols & (scalars.keys() | ranks.keys()):
        raise refuse("$.shapes.symbols", "expected each name once, and not that of an argument")

    def check_axis(array: str, axis: int, at_array: str, at_axis: str) -> None:
        if array not in ranks:
            raise refuse(at_array, f"expected the name of an array argument, found '{array}'")
        if axis >= ranks[array]:
            raise refuse(at_axis, f"expected an axis of '{array}', which has {ranks[array]}, found '{axis}'")

    def check_roles(where: str, group: Iterable[Argument]) -> None:
        for index, argument in enumerate(group):
            if isinstance(argument, StructureArgument):
                check_roles(f"{where}[{index}].members", argument.members)
            for number, role in enumerate(argument.roles if isinstance(argument, ScalarArgument) else ()):
                place = f"{where}[{index}].roles[{number}]"
                check_axis(role.array, role.axis, f"{place}.array", f"{place}.axis")

    check_roles("$.arguments", signature.arguments)
    check_roles("$.shapes.symbols", shapes.symbols)
    for index, each in enumerate(shapes.requirements):
        place = f"$.shapes.requirements[{index}]"
        check_axis(each.array, each.axis, f"{place}.array", f"{place}.axis")
        if unknown := sorted(each.value.symbols - scalars.keys() - symbols):
            raise refuse(f"{place}.value", f"expected names of scalars, found '{unknown[0]}'")
    for name, callback in callbacks.items():
        sizes = [size for each in (*callback.arguments, *callback.results) for size in (*each.shape, *each.strides)]
        if unknown := sorted(frozenset().union(*(size.symbols for size in sizes)) - scalars.keys() - symbols):
            raise refuse("$.arguments", f"expected names of scalars in the sizes of '{name}', found '{unknown[0]}'")
    for index, name in enumerate(signature.init):
        if name not in scalars and name not in callbacks:
            raise refuse(f"$.init[{index}]", f"expected the name of a scalar argument, found '{name}'")
    for index, name in enumerate(signature.memory_symbols):
        if name not in signature.init:
            raise refuse(f"$.memory_symbols[{index}]", f"expected a name in 'init', found '{name}'")

    bounds = signature.bounds or Bounds(0, (), ())
    facts: set[str] = set()
    for index, fact in enumerate(bounds.facts):
        for name in sorted(fact.symbols - scalars.keys()):
            raise refuse(f"$.bounds.facts[{index}]", f"expected names of scalar arguments, found '{name}'")
        if fact.name in scalars or fact.name in ranks or fact.name in facts:
            raise refuse(f"$.bounds.facts[{index}]", f"expected a new name, found '{fact.name}'")
        facts.add(fact.name)
    for index, claim in enumerate(bounds.claims):
        place = f"$.bounds.claims[{index}]"
        for name in sorted(claim.symbols - facts):
            if scalars.get(name) not in INDEX_TYPES:
                raise refuse(place, f"expected names of integer arguments, found '{name}'")
        for array, axis in _places(claim):
            check_axis(array, axis, place, place)
    for index, extent in enumerate(bounds.temporaries or ()):
        for name in sorted(extent.symbols - facts):
            if scalars.get(name) not in INDEX_TYPES:
                place = f"$.bounds.temporaries[{index}]"
                raise refuse(place, f"expected names of integer arguments, found '{name}'")


def _places(claim: Claim) -> Iterator[tuple[str, int]]:
    """The arrays that a claim is about, each with an axis that it must have."""
    yield from ((use.array, use.axis) for use in claim.uses)
    for follow in claim.follows:
        yield follow.table, 1
        if follow.array is not None and follow.axis is not None:
            yield follow.array, follow.axis
