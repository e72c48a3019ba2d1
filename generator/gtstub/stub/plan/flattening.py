"""The first step of a plan splits the parameters into leaves, each with its contract."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterable, Mapping
from typing import cast

from gtstub.abi import MAX_RANK
from gtstub.errors import PlanError
from gtstub.stub.plan.model import (
    AxisContract,
    CallbackLeaf,
    Collection,
    FieldLeaf,
    Leaf,
    Node,
    ScalarLeaf,
    StaticLeaf,
    Tuple,
    Unused,
    walk,
)
from gtstub.stub.plan.signatures import Signatures
from gtstub.stub.signature.dtypes import NAMES, SCALAR_DTYPES, STATIC_DTYPES, DType
from gtstub.stub.signature.model import (
    CONNECTIVITY_PREFIX,
    ArrayArgument,
    Axis,
    CallbackArgument,
    CallbackType,
    Connectivity,
    FieldType,
    ScalarArgument,
    ScalarType,
    TupleType,
    Type,
)


class Flattening:
    """
    The parameters as nodes, with all their tuples and leaves in program order; connectivities come last. `used` has the
    lowest and the highest index that each call accesses, by array and axis.
    """

    def __init__(self, signatures: Signatures, used: Mapping[tuple[str, int], tuple[int, int]]) -> None:
        self._signatures = signatures
        self._used = used
        self._leaves: list[Leaf] = []
        self._collections: list[Collection] = []
        self.parameters = tuple(self._node(p.name, p.source or p.name, p.type) for p in signatures.program.parameters)
        self._add_connectivities()
        self.leaves = tuple(self._leaves)
        self.collections = tuple(self._collections)
        self.tuples = tuple(node for each in self.parameters for node in walk(each) if isinstance(node, Tuple))
        for name in signatures.statics.keys() - {leaf.name for leaf in self.leaves if isinstance(leaf, StaticLeaf)}:
            raise signatures.refusal(f"static argument '{name}' is not a scalar of the program")

    def _node(self, name: str, path: str, type_: Type) -> Node:
        match type_:
            case TupleType():
                return self._tuple(name, path, type_)
            case CallbackType():
                leaf: Leaf | Unused = self._callback(name, path)
            case FieldType() if type_.dims or self._is_element(name):
                leaf = self._field(name, path, type_)
            case ScalarType() if name in self._signatures.statics:
                leaf = self._static(name, path, type_.dtype)
            case _:
                leaf = self._scalar(name, path, type_.dtype, is_field=isinstance(type_, FieldType))
        if not isinstance(leaf, Unused):
            self._leaves.append(leaf)
        return leaf

    def _is_element(self, name: str) -> bool:
        """Whether the SDFG takes an array without axes."""
        argument = self._signatures.arguments.get(name)
        return isinstance(argument, ArrayArgument) and not argument.axes

    def _tuple(self, name: str, path: str, type_: TupleType) -> Tuple | Unused:
        keys = type_.keys
        if keys is not None and len(keys) != len(type_.elements):
            raise self._signatures.refusal(f"'{path}' has {len(type_.elements)} elements, but {len(keys)} keys")
        structure = self._signatures.structures.get(name)
        if structure is not None and len(structure.members) != len(type_.elements):
            raise self._signatures.refusal(
                f"'{path}' has {len(type_.elements)} elements, but {len(structure.members)} in the SDFG"
            )
        paths = [f"{path}[{i}]" if keys is None else f"{path}.{keys[i]}" for i in range(len(type_.elements))]
        names = [f"{name}_{i}" if structure is None else structure.members[i].name for i in range(len(paths))]
        elements = tuple(map(self._node, names, paths, type_.elements))
        if all(isinstance(element, Unused) for element in elements):
            return Unused(path)
        if keys is None:
            return Tuple(name, path, elements)
        collection = Collection(name, path, elements, len(self._collections), keys)
        self._collections.append(collection)
        return collection

    def _static(self, name: str, path: str, dtype: DType) -> StaticLeaf:
        if name in self._signatures.arguments:
            raise self._signatures.refusal(f"'{path}' is static in the program, but an argument of the SDFG")
        if dtype not in STATIC_DTYPES:
            raise self._signatures.refusal(f"static argument '{path}' has dtype '{dtype}', which cannot be compiled in")
        value = self._signatures.statics[name]
        fitted = fit(dtype, value)
        if fitted is None:
            raise self._signatures.refusal(f"static argument '{path}' is {value!r}, which does not fit '{dtype}'")
        return StaticLeaf(len(self._leaves), name, path, dtype, fitted)

    def _scalar(self, name: str, path: str, dtype: DType, *, is_field: bool) -> ScalarLeaf | Unused:
        symbols = {symbol.name: symbol for symbol in self._signatures.shapes.symbols}
        argument = self._signatures.arguments.get(name, symbols.get(name))
        if argument is None:
            return Unused(path)
        if not isinstance(argument, ScalarArgument):
            kind = "an array" if isinstance(argument, ArrayArgument) else "a callback"
            raise self._signatures.refusal(f"'{path}' is a scalar in the program, but {kind} in the SDFG")
        self._check_dtype(path, dtype, argument.dtype)
        self._check_scalar(path, dtype)
        return ScalarLeaf(len(self._leaves), name, path, dtype, is_field)

    def _callback(self, name: str, path: str) -> CallbackLeaf | Unused:
        argument = self._signatures.arguments.get(name)
        if argument is None:
            return Unused(path)
        if not isinstance(argument, CallbackArgument):
            raise self._signatures.refusal(f"'{path}' is a callback in the program, but not in the SDFG")
        for value in (*argument.arguments, *argument.results):
            if not value.shape:
                self._check_scalar(path, value.dtype)
        return CallbackLeaf(len(self._leaves), name, path, argument.arguments, argument.results, argument.is_parallel)

    def _field(self, name: str, path: str, type_: FieldType) -> FieldLeaf | Unused:
        signatures = self._signatures
        argument = signatures.arguments.get(name)
        if argument is None and not any(leaf == name for leaf, _ in signatures.read):
            return Unused(path)
        if argument is None:  # The SDFG takes only symbols of the field's domain and has no descriptor of the field.
            axes = (Axis(),) * len(type_.dims)
            argument = ArrayArgument(name, type_.dtype, signatures.sdfg.device, "none", axes)
        if not isinstance(argument, ArrayArgument):
            kind = "a scalar" if isinstance(argument, ScalarArgument) else "a callback"
            raise signatures.refusal(f"'{path}' is a field in the program, but {kind} in the SDFG")
        self._check_dtype(path, type_.dtype, argument.dtype)
        self._check_rank(path, len(type_.dims), len(argument.axes))
        fixed = argument.axes
        if (domain := signatures.domains.get(name)) is not None:
            self._check_rank(path, len(type_.dims), len(domain.ranges))
            fixed = tuple(
                dataclasses.replace(axis, start=start, stop=stop)
                for axis, (start, stop) in zip(fixed, domain.ranges, strict=True)
            )
        contracts = self._axes(name, (dim.name for dim in type_.dims), fixed)
        return FieldLeaf(len(self._leaves), name, path, type_.dtype, argument, contracts)

    def _add_connectivities(self) -> None:
        signatures = self._signatures
        known = {CONNECTIVITY_PREFIX + name: each for name, each in signatures.connectivities.items()}
        parameters = {parameter.name for parameter in signatures.program.parameters}
        for argument in signatures.sdfg.arguments:
            if not argument.name.startswith(CONNECTIVITY_PREFIX) or argument.name in parameters:
                continue
            connectivity = known.get(argument.name)
            if connectivity is None:
                raise signatures.refusal(
                    f"the SDFG takes connectivity '{argument.name}', which the program does not have"
                )
            if not isinstance(argument, ArrayArgument):
                raise signatures.refusal(f"connectivity '{connectivity.name}' is a scalar in the SDFG")
            self._leaves.append(self._connectivity(connectivity, argument))

    def _connectivity(self, connectivity: Connectivity, argument: ArrayArgument) -> FieldLeaf:
        path = connectivity.name
        self._check_dtype(path, connectivity.dtype, argument.dtype)
        self._check_rank(path, 2, len(argument.axes))
        source, neighbor = (dataclasses.replace(axis, start=0) for axis in argument.axes)
        if neighbor.size is None:
            neighbor = dataclasses.replace(neighbor, size=connectivity.max_neighbors)
        elif neighbor.size != connectivity.max_neighbors:
            raise self._signatures.refusal(
                f"connectivity '{path}' has {connectivity.max_neighbors} neighbors in the program,"
                f" but {neighbor.size} in the SDFG"
            )
        return FieldLeaf(
            len(self._leaves),
            argument.name,
            path,
            argument.dtype,
            argument,
            axes=self._axes(argument.name, (connectivity.source.name, connectivity.neighbor.name), (source, neighbor)),
            codomain=connectivity.codomain.name,
            has_skip_values=connectivity.has_skip_values,
        )

    def _axes(self, leaf: str, dims: Iterable[str], fixed: tuple[Axis, ...]) -> tuple[AxisContract, ...]:
        return tuple(self._axis(leaf, number, *each) for number, each in enumerate(zip(dims, fixed, strict=True)))

    def _axis(self, leaf: str, number: int, dim: str, fixed: Axis) -> AxisContract:
        read = self._signatures.read.get((leaf, number), ())
        wide = tuple(each for each in read if (leaf, number, each) not in self._signatures.narrow)
        contract = AxisContract(dim, fixed, read, self._used.get((leaf, number)), wide)
        self._check_used(leaf, number, contract)
        return contract

    def _check_used(self, leaf: str, number: int, contract: AxisContract) -> None:
        """An axis whose start and stop are fixed must have all indices that the SDFG accesses."""
        start, size, stop = contract.fixed.start, contract.fixed.size, contract.fixed.stop
        if stop is None and start is not None and size is not None:
            stop = start + size
        if contract.used is None:
            return
        lowest, highest = contract.used
        if (start is not None and lowest < start) or (stop is not None and highest >= stop):
            has = f"{'...' if start is None else start} to {'...' if stop is None else stop - 1}"
            raise self._signatures.refusal(
                f"the SDFG accesses the indices {lowest} to {highest} on axis {number} ('{contract.dim}') of '{leaf}',"
                f" which was compiled for the indices {has}"
            )

    def _check_dtype(self, path: str, program: DType, sdfg: DType) -> None:
        if program != sdfg:
            raise self._signatures.refusal(f"'{path}' has dtype '{program}' in the program, but '{sdfg}' in the SDFG")

    def _check_scalar(self, path: str, dtype: DType) -> None:
        if dtype not in SCALAR_DTYPES:
            raise self._signatures.refusal(f"'{path}' has a scalar of dtype '{dtype}', which only arrays may have")

    def _check_rank(self, path: str, program: int, sdfg: int) -> None:
        if program != sdfg:
            raise self._signatures.refusal(f"'{path}' has {program} dimensions in the program, but {sdfg} in the SDFG")
        if program > MAX_RANK:
            raise PlanError(
                f"'{path}' of program '{self._signatures.program.name}' has {program} dimensions, but a stub passes"
                f" arrays of at most {MAX_RANK}."
            )


def fit(dtype: DType, value: bool | int | float) -> bool | int | float | None:
    """`value` converted to `dtype`, so a float32 is rounded; None if it is of another kind or out of range."""
    if isinstance(value, bool) != (dtype == "bool"):
        return None
    code = f"={NAMES[dtype].struct}"
    try:
        (fitted,) = struct.unpack(code, struct.pack(code, value))
    except (struct.error, OverflowError):
        return None
    return cast("bool | int | float", fitted)
