"""
Random signatures with all that a plan can have: every kind of leaf, slot, symbol, callback, structure, bound and fact,
under names that generated text uses itself. They fit each other as far as is easy: most of them make a plan.
"""

from __future__ import annotations

import ast
import dataclasses
import math
import random
from collections.abc import Iterator, Sequence

from gtstub.stub.signature.dtypes import DTYPES, SCALAR_DTYPES, STATIC_DTYPES, DType
from gtstub.stub.signature.expressions import Expression, parse, polynomial
from gtstub.stub.signature.facts import Fact
from gtstub.stub.signature.model import (
    INDEX_TYPES,
    PROPERTIES,
    Argument,
    ArrayArgument,
    Axis,
    Bounds,
    CallbackArgument,
    CallbackType,
    CallbackValue,
    Claim,
    Condition,
    Connectivity,
    Device,
    Dimension,
    Extent,
    FieldType,
    Follow,
    Parameter,
    ProgramSignature,
    Requirement,
    Role,
    ScalarArgument,
    ScalarType,
    SdfgSignature,
    Shapes,
    StaticArgument,
    StaticDomain,
    StructureArgument,
    TupleType,
    Type,
    Unknown,
    Use,
    Workspace,
    values_in,
)
from tests.support.names_in_stubs import NAMES

DIMS = (
    *(Dimension(name, "horizontal") for name in ("Cell", "Edge", "Vertex", "I", "self")),
    Dimension("K", "vertical"),
    Dimension("E2V", "local"),
)
INTEGERS = (0, 0, 1, -1, 2, 3, 40, 2**31 - 1, -(2**31), 2**31, 2**40)
EDGES: dict[DType, tuple[bool | int | float, ...]] = {
    "bool": (True, False),
    "float32": (0.0, -0.0, 1.5, 1e-45, 3.4e38, math.inf, -math.inf, math.nan, 1e30),
    "float64": (0.0, -0.0, 0.1, 5e-324, 1.7e308, math.inf, -math.inf, math.nan, 1e22),
}


CONDITIONS = (
    "-(-{})|-({})|(not {})|(not ({} >= {}))|({} < {})|({} and {})|({} or {})|({} + {})|({} - -{})|({} * {})".split("|")  # noqa: SIM905
)


class Drawing:
    """Signatures while they are drawn from `random`."""

    def __init__(self, drawn: random.Random) -> None:
        self.random = drawn
        self.names = [f"x{i}" for i in range(40)] + drawn.sample(NAMES, len(NAMES))
        self.arguments: list[Argument] = []
        self.statics: list[StaticArgument] = []
        self.domains: list[StaticDomain] = []
        self.connectivities: list[Connectivity] = []
        self.known: set[str] = set()
        self.device: Device = drawn.choice(("cpu", "cpu", "cpu", "cuda"))

    def chance(self, of: int) -> bool:
        return self.random.randrange(of) == 0

    def name(self) -> str:
        return self.names.pop(self.random.choice((0, -1)))

    def some[T](self, values: Sequence[T], most: int = 3) -> list[T]:
        return self.random.sample(values, self.random.randint(0, min(most, len(values))))

    # --- Parameters

    def parameter(self) -> Parameter:
        name = self.name()
        source = f"{name}.{self.random.choice(('w', 'data'))}" if self.chance(10) else None
        return Parameter(name, self.type(name), source)

    def type(self, name: str, depth: int = 0) -> Type:
        kind = self.random.choice(("scalar", "field", "field", "callback", "tuple", "structure"))
        if kind == "tuple" and depth < 2:
            count = self.random.randint(0, 3)
            elements = tuple(self.type(f"{name}_{i}", depth + 1) for i in range(count))
            return TupleType(elements, self.keys(count))
        if kind == "structure" and depth == 0:
            type_, argument = self.structure(name)
            self.arguments.append(argument)
            return type_
        if kind == "callback" and depth == 0:
            if not self.chance(6):
                self.arguments.append(self.callback(name))
            return CallbackType()
        return self.field(name) if kind == "field" else self.scalar(name)

    def keys(self, count: int) -> tuple[str, ...] | None:
        return None if self.chance(2) else tuple(self.random.sample(("u", "v", "auto", "self", "class", "s"), count))

    def scalar(self, name: str) -> ScalarType:
        if self.chance(5):
            dtype = self.random.choice(STATIC_DTYPES)
            self.statics.append(StaticArgument(name, self.static(dtype)))
        else:
            dtype = self.random.choice(("int32", "int32", "int64", *SCALAR_DTYPES))
            if not self.chance(6):
                self.arguments.append(ScalarArgument(name, dtype))
        return ScalarType(dtype)

    def static(self, dtype: DType) -> bool | int | float:
        if dtype in EDGES:
            return self.random.choice(EDGES[dtype])
        bits = int(dtype.lstrip("uint"))
        least, most = (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return self.random.choice((least, most, 0, 1))

    def field(self, name: str) -> FieldType:
        dtype = self.random.choice(("float64", *DTYPES))
        dims = tuple(self.random.sample(DIMS, self.random.choice((0, 1, 1, 2, 2, 3, 6))))
        if not dims and self.chance(2):
            dtype = self.random.choice(SCALAR_DTYPES)
            self.arguments.append(ScalarArgument(name, dtype))
        elif not self.chance(6):
            self.arguments.append(self.array(name, dtype, len(dims)))
        if dims and self.chance(10):
            self.domains.append(
                StaticDomain(name, tuple((first := self.random.randint(-3, 3), first + 4) for _ in dims))
            )
        return FieldType(dtype, dims)

    def array(self, name: str, dtype: DType, rank: int) -> ArrayArgument:
        access = self.random.choice(("read", "write", "readwrite", "none"))
        return ArrayArgument(name, dtype, self.device, access, tuple(self.axis() for _ in range(rank)))

    def axis(self) -> Axis:
        fixed = {each: self.random.choice((0, 1, 7, 2**40)) for each in self.some(PROPERTIES, 2)}
        return Axis(**{"start": 0} | fixed if self.chance(2) else fixed)

    def structure(self, name: str, depth: int = 0) -> tuple[Type, StructureArgument]:
        members: list[Argument] = []
        types: list[Type] = []
        copied = []
        for number in range(self.random.randint(1, 3)):
            member = f"{name}_{number}"
            match self.random.choice(("scalar", "array", "array", "copied", "structure")):
                case "scalar":
                    dtype = self.random.choice(("int32", *SCALAR_DTYPES))
                    members.append(ScalarArgument(member, dtype))
                    types.append(ScalarType(dtype))
                case "copied":
                    dtype = self.random.choice(SCALAR_DTYPES)
                    members.append(ArrayArgument(member, dtype, self.device, "readwrite", ()))
                    types.append(FieldType(dtype, ()))
                    copied.append(member)
                case "structure" if depth == 0:
                    type_, argument = self.structure(member, 1)
                    members.append(argument)
                    types.append(type_)
                case _:
                    dims = tuple(self.random.sample(DIMS, self.random.randint(1, 3)))
                    members.append(self.array(member, "float64", len(dims)))
                    types.append(FieldType("float64", dims))
        keys = tuple(f"m{number}" for number in range(len(members)))
        return TupleType(tuple(types), keys), StructureArgument(name, tuple(members), tuple(copied))

    def callback(self, name: str) -> CallbackArgument:
        arguments = tuple(self.callback_value() for _ in range(self.random.randint(0, 3)))
        results = tuple(self.callback_value() for _ in range(self.random.choice((0, 1, 1, 2))))
        return CallbackArgument(name, arguments, results, self.chance(2))

    def callback_value(self) -> CallbackValue:
        if self.chance(2):
            return CallbackValue(self.random.choice(SCALAR_DTYPES))
        rank = self.random.randint(1, 3)
        one = (Expression(1),) * rank  # the scalars in sizes are not known yet
        return CallbackValue(self.random.choice(DTYPES), one, one)

    def sized(self, argument: Argument, names: Sequence[str]) -> Argument:
        """A callback with sizes and strides for its arrays; another argument as it is."""
        if not isinstance(argument, CallbackArgument):
            return argument

        def values(of: tuple[CallbackValue, ...]) -> tuple[CallbackValue, ...]:
            shapes = [tuple(self.polynomial(names) for _ in (*each.shape, *each.strides)) for each in of]
            pairs = zip(of, shapes, strict=True)
            return tuple(CallbackValue(v.dtype, s[: len(v.shape)], s[len(v.shape) :]) for v, s in pairs)

        return dataclasses.replace(argument, arguments=values(argument.arguments), results=values(argument.results))

    def connectivity(self) -> None:
        name = self.random.choice(("E2V", "C2E", "self", "s"))
        if any(each.name == name for each in self.connectivities):
            return
        dtype: DType = self.random.choice(("int32", "int64"))
        neighbors = self.random.choice((1, 2, 6))
        dims = (*self.random.sample(DIMS[:3], 2), DIMS[-1])
        self.connectivities.append(Connectivity(name, dtype, dims[0], dims[2], dims[1], neighbors, self.chance(2)))
        if not self.chance(4):
            axes = (self.axis(), Axis(size=self.random.choice((None, neighbors))))
            self.arguments.append(ArrayArgument(f"gt_conn_{name}", dtype, self.device, "read", axes))

    # --- Symbols, shapes and bounds

    @property
    def arrays(self) -> list[ArrayArgument]:
        return [each for each in values_in(self.arguments) if isinstance(each, ArrayArgument)]

    @property
    def scalars(self) -> list[ScalarArgument]:
        return [each for each in values_in(self.arguments) if isinstance(each, ScalarArgument)]

    def places(self) -> list[tuple[str, int]]:
        return [(each.name, axis) for each in self.arrays for axis in range(len(each.axes))]

    def symbols(self, count: int) -> Iterator[ScalarArgument]:
        places = self.places()
        for _ in range(count if places else 0):
            roles = [Role(*place, self.random.choice(PROPERTIES)) for place in self.some(places, 3)]
            if roles:
                name = self.name() if self.chance(2) else f"__{roles[0].array}_{roles[0].axis}_{roles[0].property}"
                if name not in self.known:
                    self.known.add(name)
                    yield ScalarArgument(name, self.random.choice(("int32", "int32", "int64")), tuple(roles))

    def polynomial(self, names: Sequence[str]) -> Expression:
        terms = ["*".join(self.some(names, 2) or ["1"]) for _ in range(self.random.choice((0, 1, 1, 2, 3)))]
        if names and self.chance(4):
            a, b = self.random.choice(names), self.random.choice(names)
            terms.append(self.random.choice((f"{a}**{b}", f"int_floor({a}, 2)", f"int_ceil({a} + 1, {b})", f"{a}**2")))
        text = " + ".join(f"{self.random.choice((1, 1, 2, -3))}*{each}" for each in terms)
        found = polynomial(f"{text or 0} + {self.random.choice((0, 0, 1, -1, 2**40))}")
        assert found is not None
        return found

    def shapes(self, names: Sequence[str]) -> Shapes | None:
        symbols = tuple(self.symbols(self.random.randint(0, 2)))
        names = [*names, *(each.name for each in symbols)]
        places = self.some(self.places(), 3)
        requirements = [
            Requirement(*place, self.random.choice(("size", "stride")), self.polynomial(names)) for place in places
        ]
        if places and self.chance(2):  # a symbol that follows from a size alone
            solved = ScalarArgument(self.name(), self.random.choice(("int32", "int64")))
            value = Expression(0, ((solved.name, self.random.choice((1, 2))),)) + self.polynomial(names)
            symbols, requirements = (*symbols, solved), [*requirements, Requirement(*places[0], "size", value)]
        return Shapes(symbols, tuple(requirements)) if symbols or requirements else None

    def expression(self, names: Sequence[str]) -> Expression:
        def text(depth: int) -> str:
            if depth < 2 and self.chance(3):
                which = self.random.choice(("min", "max"))
                return f"{which}({text(depth + 1)}, {text(depth + 1)})"
            if depth < 2 and self.chance(8):
                return f"{self.random.choice(('int8', 'uint8', 'uint32', 'uint64'))}({text(depth + 1)})"
            name = self.random.choice(names) if names and not self.chance(3) else "0"
            return f"{self.random.choice((1, 1, -1, 5))}*{name} + {self.random.choice(INTEGERS)}"

        found = parse(text(0))
        return self.expression(names) if found is None else found  # it may be beyond the limits

    def expressions(self, names: Sequence[str]) -> tuple[Expression, ...]:
        return tuple(self.expression(names) for _ in range(self.random.choice((1, 1, 2))))

    def fact(self, number: int) -> Fact | None:
        names = [each.name for each in self.scalars if not each.dtype.startswith("complex")]

        def text(depth: int) -> str:
            if depth > 2 or self.chance(3):
                return self.random.choice((*names, "0.5", "2", "1e-30", "0", "True", "1e22"))
            a, b = text(depth + 1), text(depth + 1)
            form = self.random.choice(CONDITIONS)
            return form.format(a, b)

        found = ast.unparse(ast.parse(f"{text(0)} {self.random.choice('<>')} {text(0)}", mode="eval"))
        return Fact(f"__fact_{number}", found)

    def bounds(self) -> Bounds | None:
        if self.chance(4):
            return None
        facts = [each for number in range(self.random.randint(0, 2)) if (each := self.fact(number)) is not None]
        names = [each.name for each in self.scalars if each.dtype in INDEX_TYPES]
        claims = tuple(self.claim(names, [each.name for each in facts]) for _ in range(self.random.randint(0, 3)))
        unknown = tuple(Unknown(each.name, "in a branch on data", 2) for each in self.some(self.arrays, 1))
        when = claims[0].when if claims else ()
        extents = tuple(Extent(when, "tmp", axis, self.expression(names)) for axis in self.some((0, 1)))
        return Bounds(3, claims, unknown, tuple(facts), extents or None)

    def claim(self, names: Sequence[str], facts: Sequence[str]) -> Claim:
        when = [
            Condition(self.expression(names), self.random.choice(("<", "==", "!=")), self.expression(names))
            for _ in range(self.random.randint(0, 2))
        ]
        when += [
            Condition(Expression(0, ((each, 1),)), self.random.choice(("!=", "==")), Expression()) for each in facts
        ]
        uses = [Use(*each, self.expressions(names), self.expressions(names)) for each in self.some(self.places(), 4)]
        tables = [each for each in self.arrays if each.name.startswith("gt_conn_")]
        follows = [self.follow(each.name, names) for each in self.some(tables, 2)]
        return Claim(tuple(when), tuple(uses), tuple(follows), is_needed=not self.chance(5))

    def follow(self, table: str, names: Sequence[str]) -> Follow:
        (neighbors,) = (each.max_neighbors for each in self.connectivities if f"gt_conn_{each.name}" == table)
        columns = tuple(sorted(self.random.sample(range(neighbors), self.random.randint(1, neighbors))))
        rows = self.expressions(names), self.expressions(names)
        place: tuple[str | None, int | None] = (None, None) if self.chance(2) else self.random.choice(self.places())
        size = self.expression(names) if place[0] is None else None
        return Follow(table, *rows, columns, self.expression(names), self.chance(2), *place, size)

    # --- Whole signatures

    def signatures(self) -> tuple[SdfgSignature, ProgramSignature]:
        parameters = tuple(self.parameter() for _ in range(self.random.choice((0, 1, 2, 3, 5))))
        for _ in range(self.random.choice((0, 0, 1, 2))):
            self.connectivity()
        self.arguments += list(self.symbols(self.random.randint(0, 4)))
        if self.chance(2):
            axis = Axis(size=1, stride=1)
            self.arguments.append(ArrayArgument("gt_compute_time", "float64", "cpu", "write", (axis,)))
            self.arguments.append(ScalarArgument("gt_metrics_level", "int32"))
        top = [each for each in self.arguments if isinstance(each, ScalarArgument | CallbackArgument)]
        init = tuple(each.name for each in self.some(top, 4))
        if self.chance(2):  # Most SDFGs have them last, so that they are a macro.
            self.arguments.sort(key=lambda each: init.index(each.name) if each.name in init else -1)
        integers = {each.name for each in top if isinstance(each, ScalarArgument) and each.dtype in INDEX_TYPES}
        program, sdfg = self.random.choice((self.name(), "prog")), self.random.choice((self.name(), "prog"))
        names = [each.name for each in self.scalars if each.name != "gt_metrics_level"]
        storages = self.some(("CPU_Heap", "GPU_Global", "s"), 2) if self.chance(3) else []
        return SdfgSignature(
            sdfg,
            self.device,
            f"lib{sdfg}.so",
            tuple(self.sized(each, names) for each in self.arguments),
            init,
            tuple(each for each in init if each in integers)[:2],
            tuple(Workspace(each, self.device) for each in storages),
            self.bounds(),
            self.shapes(names),
        ), ProgramSignature(program, parameters, tuple(self.connectivities), tuple(self.statics), tuple(self.domains))


def random_signatures(drawn: random.Random) -> tuple[SdfgSignature, ProgramSignature]:
    """Two signatures, of which the second is of the program."""
    return Drawing(drawn).signatures()
