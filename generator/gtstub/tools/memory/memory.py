"""
The memory of an SDFG's transients: where the code that DaCe generates allocates each one, and how much.

This follows DaCe's code generation (`determine_allocation_lifetime` of its framecode.py, `allocate_array` of its cpu.py
and cuda.py, `set_default_schedule_and_storage_types` of its infer_types.py). An SDFG that DaCe has compiled already has
all storages; in another one, 'Default' becomes what DaCe would choose.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from gtstub.abi import POOLED_BYTES
from gtstub.stub.sdfg.model import Container, Node, Sdfg
from gtstub.stub.signature.dtypes import NAMES
from gtstub.stub.signature.expressions import names_in
from gtstub.tools.memory import expressions
from gtstub.tools.memory.amounts import Held, peak, total
from gtstub.tools.memory.assignments import Assignments
from gtstub.tools.memory.expressions import Names
from gtstub.tools.memory.scopes import Code, Path, Place, PlacedState, code_of, common

Allocation = Literal["init", "call", "caller", "stack", "none"]
"""
When memory is allocated: with the handle (lifetime Persistent), in each call, or by the caller (External). "stack" are
arrays in registers and in the shared memory of a GPU. Nothing is allocated for what is not accessed.
"""

LARGEST_ON_STACK = 65536
"""Bytes. DaCe allocates larger arrays of storage Register on the heap (compiler.max_stack_array_size)."""


@dataclasses.dataclass(frozen=True)
class Transient:
    """
    A transient array.

    nested_in:  the labels of the nested SDFGs around it, outermost first, with '/' between them
    storage:    where it is: DaCe's name, CPU_Heap for registers that DaCe allocates on the heap
    branch:     the conditions under which it is allocated, outermost first
    size:       its bytes as an expression over symbols of the outermost SDFG; a name with '?' is none of these
    bytes:      None if unknown
    repeated:   maps and loops that allocate it again in each iteration; not multiplied into `bytes`
    """

    name: str
    nested_in: str
    storage: str
    lifetime: str
    branch: str
    size: str
    bytes: int | None
    allocated: Allocation
    repeated: tuple[str, ...]

    @property
    def is_pooled(self) -> bool:
        """Whether its memory comes from the pool of the process (docs/memory.md), as far as its size is known."""
        return self.allocated == "call" and self.storage == "CPU_Heap" and (self.bytes or 0) >= POOLED_BYTES


@dataclasses.dataclass(frozen=True)
class Total:
    """
    The bytes of all transients that are allocated alike, in `branch` and the branches in it; '' is the whole SDFG. Of
    branches that exclude each other the largest counts. `bytes` is None if one of the sizes is unknown, `at_least`
    counts those that are known.
    """

    allocated: Allocation
    storage: str
    lifetime: str
    branch: str
    bytes: int | None
    at_least: int


@dataclasses.dataclass(frozen=True)
class StorageUse:
    """
    The bytes in one storage that are allocated with the handle, in each call or by the caller, or are on the stack.
    `peak` is the most that is held at one time: what a state or a map allocates is freed at its end.
    """

    allocated: Allocation
    storage: str
    bytes: int | None
    at_least: int
    peak: int | None
    peak_at_least: int


@dataclasses.dataclass(frozen=True)
class Memory:
    """`unknown` are the symbols of the outermost SDFG that have no size but occur in the size of a transient."""

    transients: tuple[Transient, ...]
    totals: tuple[Total, ...]
    uses: tuple[StorageUse, ...]
    unknown: tuple[str, ...]


def memory(sdfg: Sdfg, sizes: Mapping[str, int]) -> Memory:
    """The memory of an SDFG with these values of its symbols."""
    found = list(_transients(sdfg, sizes))
    unknown = {name for each in found for name in each.symbols} - sizes.keys()
    return Memory(
        tuple(each.transient for each in found), tuple(_totals(found)), tuple(_uses(found)), tuple(sorted(unknown))
    )


def memory_to_json(name: str, sizes: Mapping[str, int], found: Memory) -> dict[str, Any]:
    """The document 'gtstub/memory/1' about the SDFG with a name."""
    return {"schema": "gtstub/memory/1", "sdfg": name, "sizes": dict(sizes), **dataclasses.asdict(found)}


# --- Transients -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Found:
    """A transient, its memory, and the symbols in its size."""

    transient: Transient
    held: Held
    symbols: frozenset[str]


@dataclasses.dataclass(frozen=True)
class _Placed:
    """
    An SDFG, which may be nested in another one.

    label:     those of the nested SDFGs around it and its own
    names:     what stands for its symbols in the outermost SDFG
    constants: its own, and those of the SDFGs around it
    outermost: the outermost SDFG, None for that itself
    """

    sdfg: Sdfg
    constants: Mapping[str, Any]
    label: str = ""
    place: Place = dataclasses.field(default_factory=Place)
    names: Names = dataclasses.field(default_factory=dict)
    outermost: _Placed | None = None

    def translate(self, text: str) -> ast.expr | None:
        """An expression in symbols of the outermost SDFG; None if it cannot be read."""
        tree = expressions.read(text)
        return tree and self.outer(tree)

    def outer(self, tree: ast.expr) -> ast.expr | None:
        """The same for an expression in its own symbols; None if it becomes too long."""
        found = expressions.translate(tree, self.names, others_are_known=self.outermost is None)
        return found if expressions.is_short(found) else None


def _transients(outermost: Sdfg, sizes: Mapping[str, int]) -> Iterator[_Found]:
    pending = [_Placed(outermost, outermost.constants)]
    while pending:
        placed = pending.pop()
        code = code_of(placed.sdfg, placed.place)
        placed = dataclasses.replace(placed, names=_names(placed, code))
        for name, container in placed.sdfg.containers.items():
            if container.is_transient and name not in placed.sdfg.constants:
                yield from _transient(placed, code, name, container, sizes)
        nested = [_nested(placed, *each) for state in code.states for each in state.nested]
        pending.extend(reversed(nested))


def _nested(outer: _Placed, node: Node, place: Place) -> _Placed:
    assert node.sdfg is not None
    return _Placed(
        node.sdfg,
        constants={**outer.constants, **node.sdfg.constants},
        label=f"{outer.label}/{node.label}".removeprefix("/"),
        place=place,
        names={name: outer.translate(text) for name, text in node.mapping.items()},
        outermost=outer.outermost or outer,
    )


def _names(placed: _Placed, code: Code) -> Names:
    """
    What stands for the symbols of an SDFG: for those that it got, for constants, and for symbols that the edges between
    states assign only once, before anything reads them. Variables of loops and maps have no single value.
    """
    names: dict[str, ast.expr | None] = {
        name: ast.Constant(value) if isinstance(value, int) else None for name, value in placed.constants.items()
    }
    names |= placed.names
    assigned = Assignments(placed.sdfg)
    several = {*code.variables, *(name for state in code.states for name in state.variables)}
    unsettled = {*code.assignments, *several, *placed.sdfg.containers}
    for name, values in code.assignments.items():
        text, *others = values
        tree = expressions.read(text)
        is_settled = tree is not None and names_in(tree).isdisjoint(unsettled)
        is_own = name not in placed.names and (placed.outermost is not None or assigned.are_first(name))
        names[name] = placed.translate(text) if is_settled and not others and is_own else None
    return names | dict.fromkeys(several)


def _transient(
    placed: _Placed, code: Code, name: str, container: Container, sizes: Mapping[str, int]
) -> Iterator[_Found]:
    """The transient with a name, unless it is a variable in the code and no memory."""
    lifetime = container.lifetime
    accesses = [(state, place) for state in code.states for data, place in state.accesses if data == name]
    first = [place for state, place in accesses if state is accesses[0][0]]
    storage = _storage(container.storage, first)
    is_variable = container.kind == "Scalar" and lifetime != "External" and storage not in _ON_GPU
    if is_variable or container.is_view:
        return
    size = _size(container)
    if storage == "Register" and lifetime != "External" and not _fits_registers(size, placed.constants):
        storage = "CPU_Heap"
    late = size is not None and not names_in(size).isdisjoint({*code.assignments, *code.variables})
    extent, allocated = _extent(placed, code, name, lifetime, accesses, late), _ALLOCATED.get(lifetime, "call")
    place = extent.place.on_the_host if storage in _ON_HOST else extent.place
    if storage in ("Register", "GPU_Shared") and allocated == "call":
        allocated = "stack"
    if not accesses and name not in code.names and allocated != "caller":
        allocated = "none"
    # DaCe writes these sizes as they are into code of the outermost SDFG, whose symbols may have the same names.
    scope = placed.outermost or placed if lifetime in ("Global", "External") else placed
    tree = scope.outer(size) if size and extent.is_known else None
    symbols = names_in(tree) if tree else frozenset()
    repeated = place.repeats if storage != "CPU_ThreadLocal" else (*place.repeats, "threads")
    value = expressions.evaluate(tree, sizes) if tree else None
    transient = Transient(
        name=name,
        nested_in=placed.label,
        storage=storage,
        lifetime=lifetime,
        branch=place.branch,
        size=ast.unparse(tree) if tree else "?",
        bytes=None if value is None or value < 0 else value,
        allocated=allocated,
        repeated=repeated,
    )
    held = Held(place.path, transient.bytes, extent.span)
    yield _Found(transient, held, frozenset(each for each in symbols if not each.endswith("?")))


_ALLOCATED: Mapping[str, Allocation] = {"Persistent": "init", "External": "caller"}

_ON_GPU = ("GPU_Global",)

_ON_HOST = ("CPU_Heap", "CPU_Pinned", "CPU_ThreadLocal", "GPU_Global")
"""Storages that are allocated by the host."""


def _storage(storage: str, places: Sequence[Place]) -> str:
    """The name of a storage; for 'Default', what DaCe chooses for data whose first state has access nodes there."""
    if storage != "Default":
        return storage
    if not places:
        return "Register"
    schedules = min((place.schedules for place in places), key=len)
    if "GPU_Device" in schedules:
        return "Register"
    return next((_STORAGES[each] for each in reversed(schedules) if each in _STORAGES), "CPU_Heap")


_STORAGES = {"CPU_Multicore": "Register", "GPU_Persistent": "GPU_Global", "GPU_ThreadBlock": "Register"}
"""DaCe's storage of data inside schedules, where it is not CPU_Heap; 'Sequential' has the storage around it."""


def _size(container: Container) -> ast.expr | None:
    """The bytes of a transient in symbols of its own SDFG; None if unknown, as for streams and structures."""
    element = _element(container.dtype)
    if container.kind not in ("Array", "Scalar") or element is None:
        return None
    tree = expressions.read(container.total_size or "*".join(f"({size})" for size in container.shape) or "1")
    return tree and expressions.times(element, tree)


def _element(dtype: str | Mapping[str, Any]) -> int | None:
    """The bytes of an element, None if unknown."""
    if isinstance(dtype, str):
        return NAMES[dtype].size if dtype in NAMES else _OTHER_TYPES.get(dtype)
    match dtype:
        case {"type": "vector", "dtype": inner, "elements": elements} if str(elements).isdecimal():
            element = _element(inner)
            return None if element is None else element * int(elements)
        case {"type": "pointer"}:
            return 8
    return None


_OTHER_TYPES = {"bool_": 1}


def _fits_registers(size: ast.expr | None, constants: Mapping[str, Any]) -> bool:
    """
    Whether DaCe leaves an array of storage Register on the stack: its size is a number and not too large, or contains
    constants of the SDFG only.
    """
    if size is None:
        return False
    symbols = names_in(size)
    found = expressions.evaluate(size, {})
    return symbols <= constants.keys() if symbols else found is not None and found <= LARGEST_ON_STACK


@dataclasses.dataclass(frozen=True)
class _Extent:
    """
    The part of the code that allocates a transient at its beginning, and frees it at its end, and its blocks that need
    the transient, if it is allocated and freed with them. Its size may be unknown at the beginning.
    """

    place: Place
    span: tuple[int, int] | None = None
    is_known: bool = True


def _extent(
    placed: _Placed, code: Code, name: str, lifetime: str, accesses: Sequence[tuple[PlacedState, Place]], late: bool
) -> _Extent:
    """The size of a `late` transient is known only after the SDFG has begun."""
    if lifetime in ("Persistent", "External", "Global"):
        return _Extent(Place())
    states = [state.place for state, _ in accesses]
    is_read = name in code.names
    if lifetime == "SDFG" or is_read or len({state.path for state in states}) != 1:
        return _late(states, is_read) if late and states else _Extent(placed.place)
    return _Extent(states[0] if lifetime == "State" else common([place for _, place in accesses]))


def _late(states: Sequence[Place], is_read: bool) -> _Extent:
    """
    DaCe allocates a late transient in the state before all others that access it, and frees it in the one after them.
    If there are none, or if it is read between states, others allocate it, where its size may have no value yet.
    """
    place = common(states)
    blocks = {state.path[len(place.path) :] for state in states}
    if blocks == {()}:
        return _Extent(place, is_known=not is_read)
    numbers = [block[0][1] for block in blocks]
    first, last = min(numbers), max(numbers)
    is_known = {(("then", first),), (("then", last),)} <= blocks and not is_read
    return _Extent(place, (first, last), is_known)


# --- Sums -------------------------------------------------------------------------------------------------------------


def _totals(found: Sequence[_Found]) -> Iterator[Total]:
    for (allocated, storage, lifetime), group in _groups(
        found, lambda each: (each.allocated, each.storage, each.lifetime)
    ).items():
        branches = {_branch(each.held.path): each.transient.branch for each in group}
        for path, branch in {(): "", **branches}.items():
            amount = total((each.held for each in group if each.held.path[: len(path)] == path), len(path))
            yield Total(allocated, storage, lifetime, branch, amount.bytes, amount.at_least)


def _uses(found: Sequence[_Found]) -> Iterator[StorageUse]:
    for (allocated, storage), group in _groups(found, lambda each: (each.allocated, each.storage)).items():
        held = [each.held for each in group]
        all_, most = total(held), peak(held)
        yield StorageUse(allocated, storage, all_.bytes, all_.at_least, most.bytes, most.at_least)


def _groups[T](found: Iterable[_Found], key: Callable[[Transient], T]) -> Mapping[T, list[_Found]]:
    groups: dict[T, list[_Found]] = {}
    for each in found:
        if each.transient.allocated != "none":
            groups.setdefault(key(each.transient), []).append(each)
    return groups


def _branch(path: Path) -> Path:
    """The innermost branch on the way to a part of the code."""
    last = max((number for number, (kind, _) in enumerate(path, 1) if kind == "or"), default=0)
    return path[:last]
