"""The sizes and strides of the arrays of DaCe programs: constants, symbols, and polynomials of symbols."""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, get_args

from gtstub.errors import SignatureError
from gtstub.stub.signature.dtypes import DType
from gtstub.stub.signature.expressions import polynomial
from gtstub.stub.signature.model import Axis, CallbackArgument, Requirement, Role, ScalarArgument, Shapes, checked_dtype

_Property = Literal["size", "stride"]


class ShapeReader:
    """Reads the axes of all arrays of an SDFG. Adds the roles of symbols to `roles`."""

    def __init__(self, sdfg: str, roles: dict[str, list[Role]]) -> None:
        self._sdfg = sdfg
        self._roles = roles
        self._requirements: list[Requirement] = []

    def axis(self, array: str, number: int, size: Any, stride: Any) -> Axis:
        """
        The fixed values of an axis, from DaCe's texts of its size and stride.

        Raises SignatureError for a size or stride that is not a polynomial.
        """
        fixed = {}
        for property_, text in zip(get_args(_Property), (str(size), str(stride)), strict=True):
            value = polynomial(text)
            if value is None:
                raise SignatureError(
                    f"Argument '{array}' of SDFG '{self._sdfg}' must have constants, symbols, and their sums and"
                    f" products as sizes and strides, but the {property_} of axis {number} is '{text}'."
                )
            if value.is_constant:
                fixed[property_] = value.constant
            elif value.linear is not None and value.linear[1:] == (1, 0):
                self._roles.setdefault(value.linear[0], []).append(Role(array, number, property_))
            else:
                self._requirements.append(Requirement(array, number, property_, value))
        return Axis(start=0, **fixed)

    def found(
        self,
        arguments: Iterable[str],
        callbacks: Iterable[CallbackArgument],
        types: Mapping[str, Any],
        passed: Collection[str],
    ) -> Shapes | None:
        """
        The requirements, and the symbols that are not among the scalar `arguments` of the SDFG, but on which several
        sizes or strides depend, or those of callbacks, or that a call passes: one of the names `passed`. `types` are
        DaCe's types of all symbols.
        """
        values = [value for each in callbacks for value in (*each.arguments, *each.results)]
        sizes = [size for value in values for size in (*value.shape, *value.strides)]
        of_callbacks = frozenset().union(*(size.symbols for size in sizes))
        times = collections.Counter(name for name, roles in self._roles.items() for _ in roles)
        times.update(name for each in self._requirements for name in each.value.symbols)
        free = {name for name, count in times.items() if count == 1}.difference(arguments, of_callbacks, passed)
        # A symbol that occurs once and is not passed may have any value, so that its size says nothing.
        requirements = tuple(each for each in self._requirements if each.value.symbols.isdisjoint(free))
        symbols = tuple(
            ScalarArgument(name, self._dtype(name, types), tuple(self._roles.get(name, ())))
            for name in sorted(times.keys() - free - set(arguments))
        )
        return Shapes(symbols, requirements) if symbols or requirements else None

    def _dtype(self, symbol: str, types: Mapping[str, Any]) -> DType:
        return checked_dtype(
            f"SDFG '{self._sdfg}'", symbol, types[symbol].to_string() if symbol in types else "int32", is_scalar=True
        )
