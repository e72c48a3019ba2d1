"""
Catalogue of gt4py programs: small ones for every kind of argument, and real ones of icon4py.

`lower` takes one through gt4py as far as the SDFG, without building it, and keeps the arguments as gt4py hands them to
what a backend compiled.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

import gt4py.next as gtx
import numpy as np
from gt4py.next import backend as gtx_backend
from gt4py.next import common
from gt4py.next.otf import arguments, definitions, stages
from gt4py.next.program_processors.runners.dace.transformations import TransientMemoryMode
from gt4py.next.program_processors.runners.dace.workflow.backend import make_dace_backend
from gt4py.next.type_system import type_specifications as ts
from icon4py.model.common.grid import simple

from gtstub.entries.cache.entry import Entry
from gtstub.frameworks.gt4py.backend import StubBackend, make_backend
from gtstub.frameworks.gt4py.stages import LoweredProgramDef
from gtstub.frameworks.gt4py.workflow import FindingTransforms, SignedSource, SigningTranslation
from tests.support import small_programs as small

DIFFUSION = "icon4py.model.atmosphere.diffusion.stencils"
DYCORE = "icon4py.model.atmosphere.dycore.stencils"

Ranges = Mapping[str, tuple[int, int]]


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """
    A program, and how to lower and to call it.

    options:        what `make_dace_backend` takes besides `gpu`
    ranges:         start and stop of each dimension's domain
    own_ranges:     the same for fields that are larger or smaller, by their flattened names
    values:         values of scalars by their flattened names; those not named are random
    static:         scalar parameters to compile in
    static_domains: whether the fields' domains are compiled in
    """

    name: str
    module: str
    attribute: str
    ranges: Ranges
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    own_ranges: Mapping[str, Ranges] = dataclasses.field(default_factory=dict)
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    static: tuple[str, ...] = ()
    static_domains: bool = False
    offset_provider: Callable[[bool], common.OffsetProvider] = lambda _: {}

    def program(self) -> Any:
        """The gt4py program, or field operator, without a backend."""
        return getattr(importlib.import_module(self.module), self.attribute)

    @property
    def has_unit_stride(self) -> bool:
        return bool(self.options.get("unstructured_horizontal_has_unit_stride"))

    def make_arguments(self, seed: int = 0) -> dict[str, Any]:
        """Random arguments by name; the same seed gives the same values in new objects."""
        random = np.random.default_rng(seed)
        program = self.program()
        types = program.__gt_type__().definition
        parameters = types.pos_or_kw_args | types.kw_only_args
        if "out" not in parameters and hasattr(types, "returns") and not isinstance(types.returns, ts.VoidType):
            parameters = parameters | {"out": types.returns}
        return {name: self._value(random, name, type_) for name, type_ in parameters.items()}

    def make_offset_provider(self) -> common.OffsetProvider:
        return self.offset_provider(self.has_unit_stride)

    def call(self, backend: gtx_backend.Backend | None, seed: int = 0) -> dict[str, Any]:
        """Compiles the program as the case wants it, calls it, and returns the arguments of the call."""
        arguments_ = self.make_arguments(seed)
        offset_provider = self.make_offset_provider()
        program = self.program().with_backend(backend)
        if backend is not None and self.static_domains:
            program = program.with_compilation_options(static_domains=True)
        if backend is not None and self.static:
            program.compile(offset_provider=offset_provider, **{name: [arguments_[name]] for name in self.static})
        program(**arguments_, offset_provider=offset_provider)
        return arguments_

    def _value(self, random: np.random.Generator, name: str, type_: ts.TypeSpec) -> Any:
        match type_:
            case ts.ScalarType():
                value = self.values[name] if name in self.values else _random(random, type_, ())
                return np.dtype(type_.kind.name.lower()).type(value)
            case ts.FieldType():
                ranges = {**self.ranges, **self.own_ranges.get(name, {})}
                domain = common.domain({dim: ranges[dim.value] for dim in type_.dims})
                values = np.asarray(_random(random, type_.dtype, domain.shape))
                return common._field(np.asfortranarray(values) if self.has_unit_stride else values, domain=domain)
            case ts.NamedCollectionType():
                elements = [self._value(random, f"{name}_{i}", element) for i, element in enumerate(type_.types)]
                return pkgutil.resolve_name(type_.original_python_type)(*elements)
            case ts.TupleType():
                return tuple(self._value(random, f"{name}_{i}", element) for i, element in enumerate(type_.types))
        raise TypeError(f"Parameter '{name}' is of type '{type_}'.")


def _random(random: np.random.Generator, type_: ts.ScalarType, shape: tuple[int, ...]) -> Any:
    dtype = np.dtype(type_.kind.name.lower())
    match dtype.kind:
        case "b":
            return random.integers(0, 2, shape).astype(dtype)
        case "f":
            return random.uniform(0.5, 1.5, shape).astype(dtype)
        case _:
            return random.integers(0, 3, shape).astype(dtype)


# --- Lowering ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Lowering:
    """A program as far as its SDFG. As an executable it keeps what gt4py passes to one."""

    concrete: definitions.ConcreteProgramDef[Any, Any]
    compilable: LoweredProgramDef
    source: stages.ProgramSource[Any]
    args: tuple[Any, ...] = ()
    offset_provider: common.OffsetProvider = dataclasses.field(default_factory=dict)

    def __call__(self, *args: Any, offset_provider: common.OffsetProvider) -> None:
        self.args, self.offset_provider = args, offset_provider


@dataclasses.dataclass(frozen=True)
class LoweringBackend(gtx_backend.Backend[Any]):
    lowered: list[Lowering] = dataclasses.field(default_factory=list)

    def compile(self, program: Any, compile_time_args: arguments.CompileTimeArgs) -> stages.ExecutableProgram:
        assert isinstance(self.transforms, FindingTransforms)
        concrete = definitions.ConcreteProgramDef(data=program, args=compile_time_args)
        compilable = self.transforms.lower(concrete)
        self.lowered.append(Lowering(concrete, compilable, self.executor.translation(compilable)))
        return self.lowered[-1]


@functools.cache
def lower(case: Case) -> Lowering:
    """
    Lowers a program by calling it, with gtstub's DaCe configuration; its translation is kept in gt4py's cache.

    DaCe's own configuration has it look for the line of gt4py that made each node: a third of the time.
    """
    backend = make_dace_backend(gpu=False, **case.options)
    ours = make_backend(gpu=False)
    transforms = ours.transforms  # they keep the keys of named collections
    lowering = LoweringBackend(backend.name, backend.executor, backend.allocator, transforms)
    with ours.executor.compilation.build.context():
        case.call(lowering)
    return lowering.lowered[-1]


@dataclasses.dataclass(frozen=True)
class KnownTranslation(SigningTranslation):
    """A translation whose result is known already."""

    source: stages.ProgramSource[Any]

    def __call__(self, inp: LoweredProgramDef) -> SignedSource:
        return SigningTranslation(lambda _: self.source)(inp)


def build_lowered(case: Case, backend: StubBackend) -> Entry:
    """Builds a program, unless it is in the cache, with the SDFG of `lower`: gt4py needs 10 s for one of icon4py."""
    lowering, executor = lower(case), backend.executor
    known = KnownTranslation(executor.translation.step, lowering.source)
    return dataclasses.replace(executor, translation=known)(backend.transforms(lowering.concrete))


# --- Offset providers -------------------------------------------------------------------------------------------------


def _simple_grid(has_unit_stride: bool) -> common.OffsetProvider:
    return {
        name: _with_layout(connectivity, has_unit_stride)
        for name, connectivity in simple.simple_grid().connectivities.items()
    }


def _ring(has_unit_stride: bool) -> common.OffsetProvider:
    """Ten vertices on a ring and an edge from each to the next; the first vertex lacks a neighbor."""
    v2e = np.array([[i, (i - 1) % 10] for i in range(10)], dtype=np.int32)
    v2e[0, 1] = -1
    e2v = np.array([[i, (i + 1) % 10] for i in range(10)], dtype=np.int32)
    tables = {
        "V2E": gtx.as_connectivity([small.Vertex, small.V2EDim], small.Edge, v2e, skip_value=-1),
        "E2V": gtx.as_connectivity([small.Edge, small.E2VDim], small.Vertex, e2v),
    }
    return {name: _with_layout(table, has_unit_stride) for name, table in tables.items()}


def _with_layout(connectivity: Any, has_unit_stride: bool) -> Any:
    if not has_unit_stride:
        return connectivity
    return common._connectivity(
        np.asfortranarray(connectivity.ndarray),
        codomain=connectivity.codomain,
        domain=connectivity.domain,
        skip_value=connectivity.skip_value,
    )


# --- The catalogue ----------------------------------------------------------------------------------------------------


def aligned_workspace(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Memory as a caller lends it for transients: aligned to 256 bytes."""
    memory = np.zeros(size + 256, dtype=np.uint8)
    start = -memory.ctypes.data % 256
    return memory[start : start + size]


_CARTESIAN = {"H": (0, 2), "I": (0, 6), "J": (0, 5), "K": (0, 4)}
_SHIFTED = {"H": (1, 3), "I": (-2, 4), "J": (3, 8), "K": (1, 5)}
_RING = {"Vertex": (0, 10), "Edge": (0, 10), "K": (0, 4), "V2E": (0, 2), "E2V": (0, 2)}
_PLAIN: dict[str, Any] = {"auto_optimize": False}


def _small(name: str, ranges: Ranges, attribute: str = "", **more: Any) -> Case:
    more.setdefault("options", _PLAIN)
    return Case(name, small.__name__, attribute or name, ranges, **more)


def _icon(module: str, values: Mapping[str, Any], **more: Any) -> Case:
    """`module` is that of the program, of the same name where no attribute is given."""
    grid = simple.simple_grid()
    ranges = {"Cell": (0, grid.num_cells), "Edge": (0, grid.num_edges), "Vertex": (0, grid.num_vertices)}
    ranges["K"] = (0, grid.num_levels + 1)
    for connectivity in grid.connectivities.values():
        neighbor = connectivity.domain.dims[1]
        ranges[neighbor.value] = (0, connectivity.domain[neighbor].unit_range.stop)
    limits = {
        "horizontal_start": 0,
        "vertical_start": 0,
        "vertical_end": grid.num_levels,
        "end_index_of_damping_layer": 3,
    }
    attribute = more.pop("attribute", module.rsplit(".", 1)[1])
    name = more.pop("name", attribute)
    more.setdefault("options", _PLAIN)
    return Case(name, module, attribute, ranges, values={**limits, **values}, offset_provider=_simple_grid, **more)


_EDGES = {"horizontal_end": simple.simple_grid().num_edges}
_CELLS = {"horizontal_end": simple.simple_grid().num_cells}

_SIZES = ("horizontal_start", "horizontal_end", "vertical_start", "vertical_end")

SMALL_CASES = (
    _small("nested_tuples", _CARTESIAN),
    _small("named_collections", _CARTESIAN),
    _small("scalars", _CARTESIAN),
    _small("field_dtypes", _CARTESIAN),
    _small("dimensions", _SHIFTED),
    _small("implicit_domain", _SHIFTED),
    _small("field_operator", _SHIFTED, "average"),
    _small(
        "explicit_domain",
        _CARTESIAN,
        values={"i_start": 1, "i_end": 5, "k_start": 0, "k_end": 3},
        own_ranges={"a": {"I": (-1, 7)}, "b": {"K": (0, 9)}},
    ),
    _small("in_place", _SHIFTED),
    _small("scan", _SHIFTED),
    _small("vertical_shift", _CARTESIAN, values={"i_end": 6, "k_end": 3}),
    _small("parameters_left_out", _SHIFTED),
    _small("static_arguments", _SHIFTED, static=("weights", "exponent", "flag")),
    _small("static_domains", _SHIFTED, "average", static_domains=True),
    _small("zero_origin", _CARTESIAN, "implicit_domain", options=_PLAIN | {"use_zero_origin": True}),
    _small("no_metrics", _SHIFTED, "implicit_domain", options=_PLAIN | {"use_metrics": False}),
    _small("gather", _RING, offset_provider=_ring),
    _small(
        "unit_stride",
        _RING,
        "gather",
        offset_provider=_ring,
        options=_PLAIN | {"unstructured_horizontal_has_unit_stride": True},
    ),
    _small("auto_optimized", _RING, "two_stages", offset_provider=_ring, options={"auto_optimize": True}),
    _small(
        "persistent_memory",
        _RING,
        "two_stages",
        offset_provider=_ring,
        options={"optimization_args": {"transient_memory_mode": TransientMemoryMode.PERSISTENT}},
    ),
    _small(
        "external_workspace",
        _RING,
        "two_stages",
        offset_provider=_ring,
        options={"external_workspace": {gtx.DeviceType.CPU: aligned_workspace(1 << 16)}},
    ),
)

# Static are what icon4py itself makes static: all scalars that stay the same, and the flags that select a variant.
# Each takes seconds to lower; tests/frameworks/icon4py/test_fortran_host.py builds the other programs of diffusion.
ICON_CASES = (
    _icon(f"{DIFFUSION}.apply_diffusion_to_vn", _EDGES),
    _icon(
        f"{DIFFUSION}.apply_diffusion_to_vn",
        _EDGES | {"start_2nd_nudge_line_idx_e": 6, "limited_area": True},
        name="apply_diffusion_to_vn_as_in_icon4py",
        options=_PLAIN | {"unstructured_horizontal_has_unit_stride": True},
        static=(
            *("nudgezone_diff", "fac_bdydiff_v", "start_2nd_nudge_line_idx_e", "limited_area"),
            *_SIZES,
        ),
    ),
    _icon(f"{DIFFUSION}.calculate_nabla4", _EDGES),
)

# Its SDFG has a race at one stage of gt4py's optimisation, which the next stage removes.
RACING = _icon(f"{DYCORE}.extrapolate_temporally_exner_pressure", _CELLS, options={"auto_optimize": True})

CASES = {case.name: case for case in (*SMALL_CASES, *ICON_CASES)}
