"""
Making a call plan: the one place where the two signatures of a program meet.

`make_plan` is a total function of them: every plan that it returns can be rendered, and everything it refuses is a
`PlanError` that names the program and the argument.

The first leaf that shows a symbol defines it, every later one asserts it (the binder of TVM does the same).
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator, Mapping
from typing import cast

from gtstub.errors import PlanError
from gtstub.plan.model import (
    COMPUTE_TIME,
    METRICS_LEVEL,
    Assertion,
    AxisContract,
    AxisValue,
    CallPlan,
    Data,
    FieldLeaf,
    Leaf,
    Metric,
    Node,
    ScalarLeaf,
    Slot,
    Source,
    StaticLeaf,
    Tuple,
    Unused,
    Value,
)
from gtstub.plan.names import check_names
from gtstub.signature.model import (
    ArrayArgument,
    Axis,
    Connectivity,
    DType,
    FieldType,
    Parameter,
    ProgramSignature,
    Property,
    ScalarArgument,
    ScalarType,
    SdfgSignature,
    StaticDomain,
    Type,
)

MAX_RANK = 6
"""GTS_MAX_RANK of the runtime."""

CONNECTIVITY_PREFIX = "gt_conn_"

INDEX_DTYPE: DType = "int32"
"""What gt4py gives the symbols of sizes, strides and domains."""

STRUCT_CODES: dict[DType, str] = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
}
"""What `struct` calls them."""


def make_plan(sdfg: SdfgSignature, program: ProgramSignature) -> CallPlan:
    """Joins the signatures of one program; raises PlanError where they contradict each other."""
    return _Planner(sdfg, program).plan()


class _Planner:
    """Holds the two signatures by name while the plan is made."""

    def __init__(self, sdfg: SdfgSignature, program: ProgramSignature) -> None:
        self.sdfg = sdfg
        self.program = program
        self.arguments = {argument.name: argument for argument in sdfg.arguments}
        self.domains: Mapping[str, StaticDomain] = {domain.leaf: domain for domain in program.static_domains}
        self.statics = {argument.leaf: argument.value for argument in program.static_arguments}
        self.taken = self._taken_properties()

    def plan(self) -> CallPlan:
        nodes = tuple(self._node(p.name, p.name, p.type) for p in self.program.parameters)
        connectivities = tuple(self._connectivities())
        plan = CallPlan(
            name=self.program.name,
            sdfg_name=self.sdfg.name,
            library=self.sdfg.library,
            parameters=tuple(p.name for p in self.program.parameters),
            nodes=nodes,
            connectivities=connectivities,
            slots=(),
            assertions=(),
            init=(),
            memory_symbols=(),
            workspaces=self.sdfg.workspaces,
        )
        check_names(
            self.program.name,
            self.sdfg.name,
            library=self.sdfg.library,
            parameters=plan.parameters,
            leaves=[leaf.name for leaf in plan.leaves],
            tuples=[tuple_.name for tuple_ in plan.tuples],
            dims=[axis.dim for leaf in plan.leaves if isinstance(leaf, FieldLeaf) for axis in leaf.axes]
            + [leaf.codomain for leaf in connectivities if leaf.codomain is not None],
            keys=[key for collection in plan.collections for key in collection.keys or ()],
        )
        for name in self.statics.keys() - {leaf.name for leaf in plan.leaves if isinstance(leaf, StaticLeaf)}:
            raise self._error(f"static argument '{name}' is no scalar of the program")
        candidates = self._candidates(plan.leaves)
        slots = tuple(self._slot(i, a, candidates) for i, a in enumerate(self.sdfg.arguments))
        index = {slot.name: slot.index for slot in slots}
        for symbol in (*self.sdfg.init, *self.sdfg.memory_symbols):
            if symbol not in index:
                raise self._error(f"__dace_init takes '{symbol}', which is no argument of the SDFG")
        return dataclasses.replace(
            plan,
            slots=slots,
            assertions=tuple(self._assertions(slots, candidates)),
            init=tuple(index[symbol] for symbol in self.sdfg.init),
            memory_symbols=tuple(index[symbol] for symbol in self.sdfg.memory_symbols),
        )

    def _error(self, what: str) -> PlanError:
        return PlanError(f"The signatures of program '{self.program.name}' contradict each other: {what}.")

    # --- Leaves -------------------------------------------------------------------------------------------------------

    def _node(self, name: str, path: str, type_: Type) -> Node:
        match type_:
            case ScalarType(dtype) if name in self.statics:
                return self._static_leaf(name, path, dtype)
            case ScalarType(dtype):
                return self._scalar_leaf(name, path, dtype, is_field=False)
            case FieldType(dtype, ()):
                return self._scalar_leaf(name, path, dtype, is_field=True)
            case FieldType():
                return self._field_leaf(name, path, type_)
            case _:
                keys, count = type_.keys, len(type_.elements)
                if keys is not None and len(keys) != count:
                    raise self._error(f"'{path}' has {count} elements, but {len(keys)} keys")
                elements = tuple(
                    self._node(f"{name}_{i}", f"{path}[{i}]" if keys is None else f"{path}.{keys[i]}", element)
                    for i, element in enumerate(type_.elements)
                )
                if all(isinstance(element, Unused) for element in elements):
                    return Unused(path)
                return Tuple(name, path, elements, keys)

    def _static_leaf(self, name: str, path: str, dtype: DType) -> StaticLeaf:
        if name in self.arguments:
            raise self._error(f"'{path}' is static in the program, but an argument of the SDFG")
        value = _fitted(dtype, self.statics[name])
        if value is None:
            raise self._error(f"static argument '{path}' is {self.statics[name]!r}, which does not fit '{dtype}'")
        return StaticLeaf(name, path, dtype, value)

    def _scalar_leaf(self, name: str, path: str, dtype: DType, *, is_field: bool) -> Node:
        argument = self.arguments.get(name)
        if argument is None:
            return Unused(path)
        if isinstance(argument, ArrayArgument):
            raise self._error(f"'{path}' is a scalar in the program, but an array in the SDFG")
        self._check_dtype(path, dtype, argument.dtype)
        return ScalarLeaf(name, path, dtype, is_field)

    def _field_leaf(self, name: str, path: str, type_: FieldType) -> Node:
        argument = self.arguments.get(name)
        if argument is None and not any(leaf == name for leaf, _ in self.taken):
            return Unused(path)
        domain = self.domains.get(name)
        if argument is None:
            # Only its domain is used. There is no descriptor to say more.
            device, written, fixed = self.sdfg.device, False, (Axis(),) * len(type_.dims)
        elif isinstance(argument, ScalarArgument):
            raise self._error(f"'{path}' is a field in the program, but a scalar in the SDFG")
        else:
            self._check_dtype(path, type_.dtype, argument.dtype)
            self._check_rank(path, len(type_.dims), len(argument.axes))
            device, written, fixed = argument.device, argument.access in ("write", "readwrite"), argument.axes
        if domain is not None:
            self._check_rank(path, len(type_.dims), len(domain.ranges))
            fixed = tuple(
                dataclasses.replace(axis, start=start, stop=stop)
                for axis, (start, stop) in zip(fixed, domain.ranges, strict=True)
            )
        return FieldLeaf(
            name, path, type_.dtype, device, written, self._axes(name, [dim.name for dim in type_.dims], fixed)
        )

    def _connectivities(self) -> Iterator[FieldLeaf]:
        known = {CONNECTIVITY_PREFIX + connectivity.name: connectivity for connectivity in self.program.connectivities}
        parameters = {parameter.name for parameter in self.program.parameters}
        for argument in self.sdfg.arguments:
            if not argument.name.startswith(CONNECTIVITY_PREFIX) or argument.name in parameters:
                continue
            connectivity = known.get(argument.name)
            if connectivity is None:
                raise self._error(f"the SDFG takes connectivity '{argument.name}', which the program does not have")
            if isinstance(argument, ScalarArgument):
                raise self._error(f"connectivity '{connectivity.name}' is a scalar in the SDFG")
            yield self._connectivity_leaf(connectivity, argument)

    def _connectivity_leaf(self, connectivity: Connectivity, argument: ArrayArgument) -> FieldLeaf:
        path = connectivity.name
        self._check_dtype(path, connectivity.dtype, argument.dtype)
        self._check_rank(path, 2, len(argument.axes))
        source, neighbor = (dataclasses.replace(axis, start=0) for axis in argument.axes)
        if neighbor.size is None:
            neighbor = dataclasses.replace(neighbor, size=connectivity.max_neighbors)
        elif neighbor.size != connectivity.max_neighbors:
            raise self._error(
                f"connectivity '{path}' has {connectivity.max_neighbors} neighbors in the program,"
                f" but {neighbor.size} in the SDFG"
            )
        dims = [connectivity.source.name, connectivity.neighbor.name]
        axes = self._axes(argument.name, dims, (source, neighbor))
        return FieldLeaf(
            argument.name,
            path,
            argument.dtype,
            argument.device,
            False,
            axes,
            connectivity.codomain.name,
            connectivity.has_skip_values,
        )

    def _axes(self, leaf: str, dims: list[str], fixed: tuple[Axis, ...]) -> tuple[AxisContract, ...]:
        return tuple(
            AxisContract(dim, axis, tuple(dict.fromkeys(self.taken.get((leaf, i), ()))))
            for i, (dim, axis) in enumerate(zip(dims, fixed, strict=True))
        )

    def _check_dtype(self, path: str, program: DType, sdfg: DType) -> None:
        if program != sdfg:
            raise self._error(f"'{path}' has dtype '{program}' in the program, but '{sdfg}' in the SDFG")

    def _check_rank(self, path: str, program: int, sdfg: int) -> None:
        if program != sdfg:
            raise self._error(f"'{path}' has {program} dimensions in the program, but {sdfg} in the SDFG")
        if program > MAX_RANK:
            raise self._error(f"'{path}' has {program} dimensions, more than the {MAX_RANK} that are supported")

    # --- Symbols ------------------------------------------------------------------------------------------------------

    def _taken_properties(self) -> dict[tuple[str, int], list[Property]]:
        """(leaf, axis) -> the properties that slots take from it."""
        taken: dict[tuple[str, int], list[Property]] = {}
        for argument in self.sdfg.arguments:
            if isinstance(argument, ScalarArgument):
                for source in self._axis_values(argument):
                    taken.setdefault((source.leaf, source.axis), []).append(source.property)
        return taken

    def _axis_values(self, symbol: ScalarArgument) -> list[AxisValue]:
        values = [AxisValue(role.array, role.axis, role.property) for role in symbol.roles]
        return values or self._axis_values_by_name(symbol.name)

    def _axis_values_by_name(self, symbol: str) -> list[AxisValue]:
        """The fallback for symbols that no descriptor mentions any more: gt4py's own names for them."""
        for parameter in self.program.parameters:
            for name, type_ in _fields_of(parameter):
                for i, dim in enumerate(type_.dims):
                    axis = f"__{name}_{dim.name}"
                    names: dict[str, Property] = {
                        f"{axis}_range_0": "start",
                        f"{axis}_range_1": "stop",
                        f"{axis}_size": "size",
                        f"{axis}_stride": "stride",
                    }
                    if symbol in names:
                        return [AxisValue(name, i, names[symbol])]
        return []

    def _candidates(self, leaves: tuple[Leaf, ...]) -> dict[str, list[Source]]:
        """For each argument all that shows its value, in program order: scalars of its name first."""
        order = {leaf.name: i for i, leaf in enumerate(leaves)}
        fields = {leaf.name for leaf in leaves if isinstance(leaf, FieldLeaf)}
        scalars = {leaf.name for leaf in leaves if isinstance(leaf, ScalarLeaf)}
        candidates: dict[str, list[Source]] = {}
        for argument in self.sdfg.arguments:
            found: list[Source] = []
            if argument.name in (METRICS_LEVEL, COMPUTE_TIME):
                found.append(Metric(argument.name))
            elif isinstance(argument, ArrayArgument):
                if argument.name in fields:
                    found.append(Data(argument.name))
            else:
                if argument.name in scalars:
                    found.append(Value(argument.name))
                values = [value for value in self._axis_values(argument) if value.leaf in fields]
                values.sort(key=lambda value: (order[value.leaf], value.axis))
                found.extend(values)
            candidates[argument.name] = found
        return candidates

    def _slot(self, index: int, argument: ArrayArgument | ScalarArgument, candidates: dict[str, list[Source]]) -> Slot:
        found = candidates[argument.name]
        is_array = isinstance(argument, ArrayArgument)
        if not found:
            kind = "array" if is_array else "symbol"
            raise self._error(f"no argument of the program determines {kind} '{argument.name}' of the SDFG")
        expected: dict[str, tuple[DType, bool]] = {METRICS_LEVEL: ("int32", False), COMPUTE_TIME: ("float64", True)}
        if isinstance(found[0], Metric) and expected[argument.name] != (argument.dtype, is_array):
            raise self._error(f"'{argument.name}' is not of the type that gt4py gives its metrics")
        if any(isinstance(source, AxisValue) for source in found) and argument.dtype != INDEX_DTYPE:
            raise self._error(f"symbol '{argument.name}' has dtype '{argument.dtype}', not '{INDEX_DTYPE}'")
        return Slot(index, argument.name, argument.dtype, is_array, found[0])

    @staticmethod
    def _assertions(slots: tuple[Slot, ...], candidates: dict[str, list[Source]]) -> Iterator[Assertion]:
        for slot in slots:
            first, *later = candidates[slot.name]
            for source in later:
                yield Assertion(slot.name, first, source)


def _fitted(dtype: DType, value: bool | int | float) -> bool | int | float | None:
    """The value as an element of `dtype` holds it; None if none can."""
    if isinstance(value, bool) != (dtype == "bool"):
        return None
    code = f"={STRUCT_CODES[dtype]}"
    try:
        (fitted,) = struct.unpack(code, struct.pack(code, value))
    except (struct.error, OverflowError):
        return None
    return cast("bool | int | float", fitted)


def _fields_of(parameter: Parameter) -> Iterator[tuple[str, FieldType]]:
    """The fields in a parameter with their flattened names."""

    def walk(name: str, type_: Type) -> Iterator[tuple[str, FieldType]]:
        if isinstance(type_, FieldType):
            yield name, type_
        elif not isinstance(type_, ScalarType):
            for i, element in enumerate(type_.elements):
                yield from walk(f"{name}_{i}", element)

    return walk(parameter.name, parameter.type)
