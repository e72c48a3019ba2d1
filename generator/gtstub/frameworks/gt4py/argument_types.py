"""The types of a gt4py program's parameters: checks of bound arguments, and the scalars that can be static."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
from gt4py.next import common
from gt4py.next.ffront import type_info as ffront_type_info
from gt4py.next.type_system import type_specifications as ts
from gt4py.next.type_system import type_translation

from gtstub.programs.compiled import StaticScalar
from gtstub.stub.signature.dtypes import DTYPES, DType


def parameter_types(program: Any) -> dict[str, Any]:
    """The parameters of a program or field operator in order, including `out`, with gt4py's types."""
    definition = ffront_type_info.type_in_program_context(program.__gt_type__()).definition
    types = dict(definition.pos_or_kw_args)
    if any(isinstance(type_, ts.DeferredType) for type_ in types.values()):
        raise TypeError(f"Program '{program.__name__}' is generic, as scan operators are; wrap it in a field operator.")
    return types


@dataclasses.dataclass(frozen=True)
class ArgumentTypes:
    """gt4py's types of the parameters of `program`."""

    program: str
    types: Mapping[str, Any]

    def check(self, name: str, value: Any) -> None:
        """Raises TypeError or ValueError for values that calls would refuse because of their types."""
        self._check(name, self.types[name], value)

    def static_value(self, name: str, value: Any) -> Any:
        """A static argument converted to the exact types of the program, as gt4py requires. Raises like `check`."""
        return self._static(name, self.types[name], value)

    def static_scalars(self, name: str) -> Iterator[StaticScalar]:
        yield from self._static_scalars(name, name, self.types[name], ())

    def _check(self, path: str, type_: Any, value: Any) -> None:
        match type_:
            case ts.TupleType() if isinstance(value, tuple):
                self._length(path, type_, value)
                for index, (element, item) in enumerate(zip(type_.types, value, strict=True)):
                    self._check(f"{path}[{index}]", element, item)
            case ts.NamedCollectionType(keys=keys, types=types):
                for key, element, item in zip(keys, types, self._items(path, keys, value), strict=True):
                    self._check(f"{path}.{key}", element, item)
            case ts.ScalarType():
                self._scalar(path, type_, value)
            case ts.FieldType(dims=[]) if not isinstance(value, common.Field):
                self._scalar(path, type_.dtype, value)
            case ts.FieldType() if not isinstance(value, common.Field) and getattr(value, "shape", None):
                return  # The stub checks arrays.
            case _:
                found = type_translation.from_value(value) if isinstance(value, common.Field) else type(value).__name__
                if found != type_:
                    raise TypeError(f"Argument '{path}' of program '{self.program}' must be '{type_}', not '{found}'.")

    def _length(self, path: str, type_: ts.TupleType, value: tuple[Any, ...]) -> None:
        if (found := len(value)) != (length := len(type_.types)):
            raise TypeError(
                f"Argument '{path}' of program '{self.program}' must be a tuple of length {length}, not {found}."
            )

    def _items(self, path: str, keys: list[str], value: Any) -> tuple[Any, ...]:
        """The elements of a named collection, which may be passed as a plain tuple."""
        if type(value) is tuple and len(value) == len(keys):
            return value
        try:
            return tuple(getattr(value, key) for key in keys)
        except AttributeError as error:
            raise TypeError(
                f"Argument '{path}' of program '{self.program}' must be a tuple of length {len(keys)} or have the"
                f" attributes {', '.join(map(repr, keys))}, but is '{type(value).__name__}'."
            ) from error

    def _static(self, path: str, type_: Any, value: Any) -> Any:
        if isinstance(type_, ts.ScalarType):
            return self._scalar(path, type_, value)
        if isinstance(type_, ts.TupleType) and isinstance(value, tuple):
            self._length(path, type_, value)
            return tuple(
                self._static(f"{path}[{index}]", element, item)
                for index, (element, item) in enumerate(zip(type_.types, value, strict=True))
            )
        raise TypeError(
            f"Argument '{path}' of program '{self.program}' must be a scalar or a tuple of scalars to be static;"
            f" it is '{type_}', and '{type(value).__name__}' was passed."
        )

    def _scalar(self, path: str, type_: Any, value: Any) -> Any:
        """A scalar as numpy's scalar of exactly this type."""
        dtype = type_.kind.name.lower()
        value = value.value if isinstance(value, enum.Enum) else value
        number = np.dtype(dtype).type
        is_number = isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating)
        is_whole = not isinstance(value, float | np.floating) or (np.isfinite(value) and value == np.floor(value))
        # A timedelta64 is an integer of numpy's, but has a unit.
        if not is_number or isinstance(value, np.timedelta64) or not (is_whole or dtype.startswith("float")):
            article = "an" if dtype.startswith("i") else "a"
            raise TypeError(
                f"Argument '{path}' of program '{self.program}' must be {article} '{dtype}',"
                f" not '{type(value).__name__}'."
            )
        converted = _kept(number, value)
        if converted is None:
            is_short = isinstance(value, float | np.floating) or abs(value) < 10**100
            shown = str(value) if is_short else "an integer of too many digits"
            raise ValueError(f"Argument '{path}' of program '{self.program}' is {shown}, which does not fit '{dtype}'.")
        return converted

    def _static_scalars(
        self, name: str, path: str, type_: Any, steps: tuple[tuple[int, int], ...]
    ) -> Iterator[StaticScalar]:
        if isinstance(type_, ts.TupleType):
            for index, element in enumerate(type_.types):
                yield from self._static_scalars(name, f"{path}[{index}]", element, (*steps, (index, len(type_.types))))
            return
        dtype = type_.kind.name.lower()
        assert dtype in DTYPES
        yield StaticScalar(name, path, cast(DType, dtype), steps)


def _kept(number: Any, value: Any) -> Any:
    """A number as one of another type; None if that does not hold it. A float may be rounded, but not to infinity."""
    if issubclass(number, np.floating):
        try:
            with np.errstate(over="ignore"):
                converted = number(value)
        except OverflowError:
            return None
        was_finite = not isinstance(value, float | np.floating) or np.isfinite(value)
        return None if was_finite and not np.isfinite(converted) else converted
    integer = int(value)
    lowest, highest = (0, 1) if number is np.bool_ else (np.iinfo(number).min, np.iinfo(number).max)
    return number(integer) if lowest <= integer <= highest else None
