"""
Random programs for hypothesis: two signatures that fit each other, arguments for both, and what every slot must be.

What a slot must be is written down here while the signatures are drawn; nothing is asked of the planner.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from gtstub.stub.signature.dtypes import STATIC_DTYPES, DType
from gtstub.stub.signature.model import (
    Access,
    Argument,
    ArrayArgument,
    Axis,
    Connectivity,
    Dimension,
    FieldType,
    Parameter,
    ProgramSignature,
    Property,
    Role,
    ScalarArgument,
    ScalarType,
    SdfgSignature,
    StaticArgument,
    TupleType,
    Type,
    Workspace,
)

Number = bool | int | float
DIMS = (
    *(Dimension(name, "horizontal") for name in ("Cell", "Edge", "Vertex")),
    Dimension("K", "vertical"),
    *(Dimension(name, "local") for name in ("E2V", "C2E")),
)
SUFFIXES: dict[Property, str] = {"start": "range_0", "stop": "range_1", "size": "size", "stride": "stride"}

NOWHERE = Dimension("Nowhere", "horizontal")
"""What the tables are indices of: a dimension of no field, so that any index will do."""


@dataclasses.dataclass(frozen=True)
class FieldValue:
    """A field: memory of any layout, and the index of its first element."""

    array: NDArray[np.generic]
    origin: tuple[int, ...]
    dims: tuple[str, ...]

    def get(self, axis: int, property_: Property) -> int:
        size, stride = int(self.array.shape[axis]), int(self.array.strides[axis])
        match property_:
            case "start":
                return self.origin[axis]
            case "stop":
                return self.origin[axis] + size
            case "size":
                return size
            case _:
                return stride // self.array.itemsize

    def is_without_meaning(self, axis: int, property_: Property) -> bool:
        """Whether it is a stride on which no access depends."""
        return property_ == "stride" and (self.array.size == 0 or self.array.shape[axis] < 2)


@dataclasses.dataclass(frozen=True)
class Shown:
    """A symbol, and one place that shows it."""

    symbol: str
    leaf: str
    axis: int
    property: Property


@dataclasses.dataclass(frozen=True)
class RandomProgram:
    """
    `values`: of the leaves that the SDFG takes, in program order; connectivities last, as `gt_conn_<name>`.
    `statics`: of the leaves that are compiled in.
    """

    program: ProgramSignature
    sdfg: SdfgSignature
    values: dict[str, FieldValue | Number]
    statics: dict[str, Number]
    shown: tuple[Shown, ...]

    @property
    def arguments(self) -> dict[str, object]:
        """By parameter; unused leaves are None."""
        values = {**self.values, **self.statics}
        return {p.name: _argument(p.name, p.type, values) for p in self.program.parameters}

    def expected(self) -> dict[str, Number]:
        """What every slot must be, save the metrics."""
        expected: dict[str, Number] = {}
        for argument in self.sdfg.arguments:
            value = self.values.get(argument.name)
            if isinstance(value, FieldValue):
                expected[argument.name] = value.array.ctypes.data
            elif value is not None:
                expected[argument.name] = value
        for shown in sorted(self.shown, key=lambda shown: shown.property == "stride"):
            expected.setdefault(shown.symbol, self.value_of(shown))
        return expected

    def value_of(self, shown: Shown) -> int:
        return self._field_of(shown).get(shown.axis, shown.property)

    def is_without_meaning(self, shown: Shown) -> bool:
        return self._field_of(shown).is_without_meaning(shown.axis, shown.property)

    def _field_of(self, shown: Shown) -> FieldValue:
        field = self.values[shown.leaf]
        assert isinstance(field, FieldValue)
        return field


def leaves_of(parameter: Parameter) -> Iterator[tuple[str, ScalarType | FieldType]]:
    def walk(name: str, type_: Type) -> Iterator[tuple[str, ScalarType | FieldType]]:
        if isinstance(type_, TupleType):
            for i, element in enumerate(type_.elements):
                yield from walk(f"{name}_{i}", element)
        else:
            yield name, type_

    return walk(parameter.name, parameter.type)


# --- Values -----------------------------------------------------------------------------------------------------------


def numbers(dtype: DType) -> st.SearchStrategy[Number]:
    if dtype == "bool":
        return st.booleans()
    if dtype == "float32":
        return st.floats(width=32, allow_nan=False)
    if dtype == "float64":
        return st.floats(allow_nan=False)
    limits = np.iinfo(dtype)
    return st.integers(int(limits.min), int(limits.max))


@st.composite
def field_values(draw: st.DrawFn, dtype: DType, dims: tuple[str, ...]) -> FieldValue:
    rank = len(dims)
    shape = [draw(st.integers(1, 4)) for _ in dims]
    steps = [draw(st.sampled_from((1, 1, 1, 2, -1))) for _ in dims]
    order = draw(st.permutations(range(rank)))
    memory = np.zeros([shape[i] * abs(steps[i]) for i in order], dtype)
    view = memory[tuple(slice(None, None, steps[i]) for i in order)].transpose(np.argsort(order))
    assert view.shape == tuple(shape)
    return FieldValue(view, tuple(draw(st.sampled_from((0, 0, 0, 1, -3))) for _ in dims), dims)


# --- Types ------------------------------------------------------------------------------------------------------------

dtypes = st.sampled_from(STATIC_DTYPES)
field_types = st.builds(
    FieldType, dtypes, st.lists(st.sampled_from(DIMS), min_size=0, max_size=4, unique=True).map(tuple)
)
types: st.SearchStrategy[Type] = st.recursive(
    st.one_of(field_types, field_types, st.builds(ScalarType, dtypes)),
    lambda inner: st.one_of(
        st.builds(TupleType, st.lists(inner, max_size=3).map(tuple)),
        st.dictionaries(st.sampled_from(("u", "v", "w", "data", "domain")), inner, max_size=3).map(
            lambda elements: TupleType(tuple(elements.values()), tuple(elements))
        ),
    ),
    max_leaves=4,
)


# --- Programs ---------------------------------------------------------------------------------------------------------


class _Drawing:
    """Arguments of the SDFG and the symbols of its arrays, while they are drawn."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.arguments: list[Argument] = []
        self.shown: list[Shown] = []
        self.shared: dict[int, str] = {}

    def field(self, name: str, dtype: DType, value: FieldValue, *, written: bool, by_name: bool) -> None:
        axes = [self._axis(name, value, axis, by_name=by_name) for axis in range(value.array.ndim)]
        access: Access = self.draw(st.sampled_from(("write", "readwrite"))) if written else "read"
        self.arguments.append(ArrayArgument(name, dtype, "cpu", access, tuple(axes)))

    def _axis(self, name: str, value: FieldValue, axis: int, *, by_name: bool) -> Axis:
        fixed: dict[str, int] = {}
        for property_ in SUFFIXES:
            match self.draw(st.sampled_from(("nothing", "constant", "own symbol", "own symbol", "shared symbol"))):
                case "constant":
                    fixed[property_] = value.get(axis, property_)
                case "own symbol":
                    self.own_symbol(name, value, axis, property_, with_role=not by_name)
                case "shared symbol":
                    number = value.get(axis, property_)
                    symbol = self.shared.setdefault(number, f"shared_{len(self.shared)}")
                    self.shown.append(Shown(symbol, name, axis, property_))
                case _:
                    pass
        return Axis(**fixed)

    def own_symbol(self, name: str, value: FieldValue, axis: int, property_: Property, *, with_role: bool) -> None:
        symbol = f"__{name}_{value.dims[axis]}_{SUFFIXES[property_]}"
        self.shown.append(Shown(symbol, name, axis, property_))
        if not with_role:  # no descriptor mentions it, so only its name says what it is
            self.arguments.append(ScalarArgument(symbol, "int32"))

    def symbols(self) -> Iterator[ScalarArgument]:
        known = {argument.name for argument in self.arguments}
        for symbol in dict.fromkeys(shown.symbol for shown in self.shown):
            if symbol not in known:
                roles = [Role(s.leaf, s.axis, s.property) for s in self.shown if s.symbol == symbol]
                yield ScalarArgument(symbol, "int32", tuple(roles))


@st.composite
def random_programs(draw: st.DrawFn) -> RandomProgram:
    names = draw(st.lists(st.sampled_from("abcdefgh"), max_size=5, unique=True))
    parameters = tuple(Parameter(name, draw(types)) for name in names)
    drawing = _Drawing(draw)
    values: dict[str, FieldValue | Number] = {}
    statics: dict[str, Number] = {}
    for parameter in parameters:
        for name, type_ in leaves_of(parameter):
            if draw(st.integers(0, 4)) == 0:
                continue  # the SDFG does not take it
            if isinstance(type_, ScalarType) and draw(st.integers(0, 2)) == 0:
                statics[name] = draw(numbers(type_.dtype))
                continue
            if isinstance(type_, ScalarType) or not type_.dims:
                values[name] = draw(numbers(type_.dtype))
                drawing.arguments.append(ScalarArgument(name, type_.dtype))
                continue
            field = draw(field_values(type_.dtype, tuple(dim.name for dim in type_.dims)))
            kind = draw(st.sampled_from(("array", "array", "array", "array, symbols by name", "domain only")))
            values[name] = field
            if kind == "domain only":
                drawing.own_symbol(name, field, 0, draw(st.sampled_from(tuple(SUFFIXES))), with_role=False)
            else:
                drawing.field(name, type_.dtype, field, written=draw(st.booleans()), by_name="by name" in kind)

    connectivities = []
    for name in draw(st.lists(st.sampled_from(("E2V", "C2E", "V2E")), max_size=2, unique=True)):
        table = dataclasses.replace(draw(field_values("int32", ("Edge", name))), origin=(0, 0))
        source = "Edge" if table.get(0, "size") >= shortest(values, "Edge") else "Nobody"
        dims = (Dimension(source, "horizontal"), Dimension(name, "local"))
        table = dataclasses.replace(table, dims=tuple(dim.name for dim in dims))
        connectivities.append(
            Connectivity(name, "int32", *dims, NOWHERE, max_neighbors=table.array.shape[1], has_skip_values=False)
        )
        if draw(st.integers(0, 3)) > 0:
            values[f"gt_conn_{name}"] = table
            drawing.field(f"gt_conn_{name}", "int32", table, written=False, by_name=False)

    drawing.arguments.extend(drawing.symbols())
    if draw(st.booleans()):
        drawing.arguments.append(ArrayArgument("gt_compute_time", "float64", "cpu", "write", (Axis(size=1, stride=1),)))
        drawing.arguments.append(ScalarArgument("gt_metrics_level", "int32"))
    arguments = sorted(drawing.arguments, key=lambda argument: (isinstance(argument, ScalarArgument), argument.name))
    scalars = [argument for argument in arguments if isinstance(argument, ScalarArgument)]
    init = sorted(draw(st.sets(st.sampled_from([s.name for s in scalars]), max_size=4))) if scalars else []
    sizes = [s.name for s in scalars if s.name in init and s.name in {shown.symbol for shown in drawing.shown}]
    order = {argument.name: i for i, argument in enumerate(arguments)}
    connectivity_values = sorted((name for name in values if name.startswith("gt_conn_")), key=order.__getitem__)
    for name in connectivity_values:
        values[name] = values.pop(name)
    return RandomProgram(
        program=ProgramSignature(
            "prog",
            parameters,
            tuple(connectivities),
            static_arguments=tuple(StaticArgument(name, value) for name, value in statics.items()),
        ),
        sdfg=SdfgSignature(
            "prog",
            "cpu",
            "libprog.so",
            tuple(arguments),
            init=tuple(init),
            memory_symbols=tuple(sizes[: draw(st.integers(0, 2))]),
            workspaces=(Workspace("CPU_Heap", "cpu"),) if draw(st.integers(0, 3)) == 0 else (),
        ),
        values=values,
        statics=statics,
        shown=tuple(drawing.shown),
    )


def shortest(values: Mapping[str, FieldValue | Number], dim: str) -> int:
    """Behind the last index of that field along a dimension which ends first; tables of neighbors are none."""
    fields = [v for name, v in values.items() if isinstance(v, FieldValue) and not name.startswith("gt_conn_")]
    return min((field.get(field.dims.index(dim), "stop") for field in fields if dim in field.dims), default=0)


def _argument(name: str, type_: Type, values: Mapping[str, FieldValue | Number]) -> object:
    if isinstance(type_, TupleType):
        return tuple(_argument(f"{name}_{i}", element, values) for i, element in enumerate(type_.elements))
    return values.get(name)
