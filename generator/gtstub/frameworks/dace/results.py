"""Makes the arrays that a call of a DaCe program returns."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import operator
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import dace
import numpy as np

from gtstub.stub.plan.model import CallPlan
from gtstub.stub.plan.solving import Quotient, solve, value_name
from gtstub.stub.signature.expressions import Expression, polynomial


def allocator(
    plan: CallPlan, order: Sequence[str], arrays: Mapping[str, dace.data.Array], results: Sequence[str]
) -> Callable[..., tuple[Any, ...]]:
    """
    A function of the arguments before the results, which have this `order`, that makes new arrays. `arrays` are the
    descriptors, those of members of structures by their paths. Raises TypeError if the call lacks a symbol on which a
    size or stride depends.
    """
    steps = {f"{each.path}.{key}": (key, i) for each in plan.collections for i, key in enumerate(each.keys)}

    def path(name: str) -> tuple[Any, ...]:
        parent = name.rpartition(".")[0]
        return (*path(parent), steps[name]) if parent else (order.index(name),)

    found = {path(name): each for name, each in arrays.items() if name.partition(".")[0] in order}
    passed = {name: _Number((place,)) for place, name in enumerate(order) if name not in arrays}
    symbols, quotients = _symbols_of({each: found[each] for each in sorted(found)}, passed)
    made = [_Result.of(arrays[name]) for name in results]
    needed = {name for each in made for size in (*each.shape, *each.strides) for name in size.symbols}
    used = _used(needed, quotients)
    needed |= {name for each in used for name in each.numerator.symbols | each.divisor.symbols}
    if missing := needed - symbols.keys() - {each.symbol for each in used}:
        raise TypeError(
            f"A call of program '{plan.name}' lacks the symbol '{min(missing)}': pass '{min(missing)}=...'."
        )

    def allocate(*arguments: Any) -> tuple[Any, ...]:
        # Here, because only a GPU's program that makes its results needs cupy.
        module = np if plan.device == "cpu" else importlib.import_module("cupy")
        values = {name: symbols[name].read(arguments) for name in needed if name in symbols}
        for each in used:
            # The stub refuses arguments from which no integer follows.
            values[each.symbol] = each.numerator.evaluate(values) // (each.divisor.evaluate(values) or 1)
        return tuple(each.make(module, values) for each in made)

    return allocate


@dataclasses.dataclass(frozen=True)
class _Result:
    """An array that a program returns. It has no `strides` if it is contiguous in C order."""

    dtype: type
    shape: tuple[Expression, ...]
    strides: tuple[Expression, ...]

    @classmethod
    def of(cls, array: dace.data.Array) -> _Result:
        shape, strides = (tuple(map(_size, each)) for each in (array.shape, array.strides))
        inner = (shape[axis + 1 :] for axis in range(len(shape)))
        contiguous = tuple(functools.reduce(operator.mul, sizes, Expression(1)) for sizes in inner)
        return cls(array.dtype.type, shape, () if strides == contiguous else strides)

    def make(self, module: Any, values: Mapping[str, int]) -> Any:
        # The stub refuses arguments from which a negative size follows.
        shape = tuple(max(0, size.evaluate(values)) for size in self.shape)
        if not self.strides or 0 in shape:
            return module.empty(shape, self.dtype)
        strides = [stride.evaluate(values) for stride in self.strides]
        extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        memory = module.empty(max(1, extent), self.dtype)
        tricks = importlib.import_module(f"{module.__name__}.lib.stride_tricks")
        return tricks.as_strided(memory, shape, [stride * memory.itemsize for stride in strides])


@dataclasses.dataclass(frozen=True)
class _Number:
    """
    Where the value of a symbol is among arguments: an argument, or what follows from a size or stride of one. `path`
    is the number of the argument, and of each member on the way to an array in it the name and the number.
    """

    path: tuple[Any, ...]
    member: str = ""
    axis: int = 0
    factor: int = 1
    plus: int = 0

    def read(self, arguments: Sequence[Any]) -> int:
        argument = functools.reduce(_member, self.path[1:], arguments[self.path[0]])
        found = int(getattr(argument, self.member)[self.axis] if self.member else argument)
        return (found - self.plus) // self.factor


def _member(structure: Any, member: tuple[str, int]) -> Any:
    name, number = member
    return structure[number] if type(structure) is tuple else getattr(structure, name)


def _size(described: Any) -> Expression:
    found = polynomial(str(described))
    assert found is not None  # others are refused
    return found


def _symbols_of(
    arrays: Mapping[tuple[Any, ...], dace.data.Array], passed: Mapping[str, _Number]
) -> tuple[Mapping[str, _Number], Sequence[Quotient]]:
    """
    The symbols that are passed or follow from one size or stride, with the values of sizes and strides, and those that
    follow from several: sizes before strides.
    """
    found: dict[str, _Number] = {}
    equations: list[Expression] = []
    for member in ("shape", "strides"):
        for path, array in arrays.items():
            for axis, text in enumerate(getattr(array, member)):
                size = _size(text)
                unit = array.dtype.bytes if member == "strides" else 1
                if size.linear is not None:
                    name, factor, constant = size.linear
                    found.setdefault(name, _Number(path, member, axis, unit * factor, unit * constant))
                elif size.terms:
                    found[value_name(len(equations))] = _Number(path, member, axis, unit)
                    equations.append(size)
    found |= passed
    unknown = {name for each in equations for name in each.symbols} - found.keys()
    return found, list(solve(equations, unknown))


def _used(needed: Set[str], quotients: Sequence[Quotient]) -> Sequence[Quotient]:
    """Those quotients that are needed, directly or for others, which come after them."""
    used: list[Quotient] = []
    wanted = set(needed)
    for each in reversed(quotients):
        if each.symbol in wanted:
            wanted |= each.numerator.symbols | each.divisor.symbols
            used.insert(0, each)
    return used
