"""
The call plan: where the value of each C argument of a compiled SDFG comes from. Pure data; `planner.py` makes it,
`render.py` writes it as C.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from gtstub.signature.model import (
    PROPERTIES,
    Axis,
    Device,
    DType,
    Property,
    Workspace,
)

METRICS_LEVEL = "gt_metrics_level"
COMPUTE_TIME = "gt_compute_time"


@dataclasses.dataclass(frozen=True)
class AxisContract:
    """What one axis must satisfy: values fixed at compile time (in elements), and the properties that slots take."""

    dim: str
    fixed: Axis
    taken: tuple[Property, ...]


@dataclasses.dataclass(frozen=True)
class FieldLeaf:
    """
    A field of at least one dimension, or a connectivity, whose elements are indices of the dimension `codomain`, or -1
    where it has `has_skip_values`.
    """

    name: str
    path: str
    dtype: DType
    device: Device
    written: bool
    axes: tuple[AxisContract, ...]
    codomain: str | None = None
    has_skip_values: bool = False

    @property
    def is_connectivity(self) -> bool:
        return self.codomain is not None


@dataclasses.dataclass(frozen=True)
class ScalarLeaf:
    """A scalar, or a zero-dimensional field: its one element."""

    name: str
    path: str
    dtype: DType
    is_field: bool


@dataclasses.dataclass(frozen=True)
class StaticLeaf:
    """A scalar that was compiled in: the SDFG does not take it, and a call must pass this very value."""

    name: str
    path: str
    dtype: DType
    value: bool | int | float


Leaf = FieldLeaf | ScalarLeaf | StaticLeaf


@dataclasses.dataclass(frozen=True)
class Unused:
    """A part of a parameter that the SDFG does not take, and that was not compiled in either."""

    path: str


@dataclasses.dataclass(frozen=True)
class Tuple:
    """A tuple with at least one leaf in it; with `keys`, it may also be an object with these attributes."""

    name: str
    path: str
    elements: tuple[Node, ...]
    keys: tuple[str, ...] | None = None


Node = Leaf | Tuple | Unused
"""How a parameter is taken apart."""


# --- Sources: where the value of a slot comes from --------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Data:
    """The address of a field's first element."""

    leaf: str


@dataclasses.dataclass(frozen=True)
class AxisValue:
    leaf: str
    axis: int
    property: Property


@dataclasses.dataclass(frozen=True)
class Value:
    """The value of a scalar leaf."""

    leaf: str


@dataclasses.dataclass(frozen=True)
class Metric:
    """`gt_metrics_level` or `gt_compute_time`, which gt4py adds to the SDFG and which are no program arguments."""

    name: str


Source = Data | AxisValue | Value | Metric


@dataclasses.dataclass(frozen=True)
class Slot:
    """One argument of `__program_<name>` behind the handle."""

    index: int
    name: str
    dtype: DType
    is_array: bool
    source: Source


@dataclasses.dataclass(frozen=True)
class Assertion:
    """`first` defined the symbol, `later` shows it again and must agree."""

    symbol: str
    first: Source
    later: Source


@dataclasses.dataclass(frozen=True)
class CallPlan:
    """
    `library` is the file of the SDFG library; `init` and `memory_symbols` are indices into `slots`; `connectivities`
    are leaves of the offset provider.
    """

    name: str
    sdfg_name: str
    library: str
    parameters: tuple[str, ...]
    nodes: tuple[Node, ...]
    connectivities: tuple[FieldLeaf, ...]
    slots: tuple[Slot, ...]
    assertions: tuple[Assertion, ...]
    init: tuple[int, ...]
    memory_symbols: tuple[int, ...]
    workspaces: tuple[Workspace, ...]

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """All leaves that a call must pass rightly, in program order, connectivities last."""
        nodes = (node for parameter in self.nodes for node in _walk(parameter))
        return (*(node for node in nodes if not isinstance(node, (Tuple, Unused))), *self.connectivities)

    @property
    def taken(self) -> tuple[FieldLeaf | ScalarLeaf, ...]:
        """Those leaves that the SDFG takes: all but the static ones."""
        return tuple(leaf for leaf in self.leaves if not isinstance(leaf, StaticLeaf))

    def compared(self, leaf: FieldLeaf) -> tuple[Property, ...]:
        """
        What of a leaf's axes tells two arrays at one address apart: what slots take or the contract has fixed. Of a
        dimension whose indices stand in tables, these were checked as far as the arrays reached.
        """
        compared: set[Property] = {name for axis in leaf.axes for name in axis.taken}
        compared |= {name for axis in leaf.axes for name in axis.fixed.given}
        if leaf.is_connectivity:
            compared = compared - {"start"} | {"size"}  # it always starts at 0
        elif {axis.dim for axis in leaf.axes} & {table.codomain for table in self.connectivities}:
            compared |= {"start", "size"}
        return tuple(name for name in PROPERTIES if name in compared)

    @property
    def tuples(self) -> tuple[Tuple, ...]:
        """All tuples, in program order."""
        nodes = (node for parameter in self.nodes for node in _walk(parameter))
        return tuple(node for node in nodes if isinstance(node, Tuple))

    @property
    def collections(self) -> tuple[Tuple, ...]:
        """All tuples with keys, in program order."""
        return tuple(tuple_ for tuple_ in self.tuples if tuple_.keys is not None)


def _walk(node: Node) -> Iterator[Node]:
    """A node and all that is in it, in program order."""
    yield node
    if isinstance(node, Tuple):
        for element in node.elements:
            yield from _walk(element)
