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

from gtstub.analysis import expressions
from gtstub.analysis.document import Document, in_the_form_of_dace
from gtstub.analysis.expressions import Names
from gtstub.analysis.scopes import Flow, Path, Place, State, Step, common, flow
from gtstub.signature.dtypes import NAMES

Json = Mapping[str, Any]

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
class Use:
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
    uses: tuple[Use, ...]
    unknown: tuple[str, ...]


def memory(document: Document, sizes: Mapping[str, int]) -> Memory:
    """The memory of an SDFG with these values of its symbols. Raises SdfgError for a document of another form."""
    with in_the_form_of_dace(document):
        found = list(_transients(document, sizes))
    unknown = {name for each in found for name in each.symbols} - sizes.keys()
    return Memory(
        tuple(each.transient for each in found), tuple(_totals(found)), tuple(_uses(found)), tuple(sorted(unknown))
    )


def name_and_symbols(document: Document) -> tuple[str, Sequence[str]]:
    """The name of an SDFG and those of its symbols. Raises SdfgError for a document of another form."""
    with in_the_form_of_dace(document):
        attributes = document["attributes"]
        return str(attributes["name"]), sorted(attributes.get("symbols") or {})


def memory_to_json(name: str, sizes: Mapping[str, int], found: Memory) -> dict[str, Any]:
    """The document 'gtstub/memory/1' about the SDFG with a name."""
    return {"schema": "gtstub/memory/1", "sdfg": name, "sizes": dict(sizes), **dataclasses.asdict(found)}


# --- Transients -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Found:
    """A transient, where it is allocated, and the symbols in its size."""

    transient: Transient
    path: Path
    symbols: frozenset[str]


@dataclasses.dataclass(frozen=True)
class _Sdfg:
    """
    An SDFG in a document.

    label:    those of the nested SDFGs around it and its own
    names:    what stands for its symbols in the outermost SDFG
    changing: those of its symbols that have several values
    """

    json: Json
    label: str = ""
    place: Place = dataclasses.field(default_factory=Place)
    names: Names = dataclasses.field(default_factory=dict)
    is_outermost: bool = False

    @property
    def constants(self) -> Json:
        return self.json["attributes"].get("constants_prop") or {}

    def translate(self, text: str) -> ast.expr | None:
        """An expression in symbols of the outermost SDFG; None if it cannot be read."""
        tree = expressions.read(text)
        return tree and self.outer(tree)

    def outer(self, tree: ast.expr) -> ast.expr | None:
        """The same for an expression in its own symbols; None if it becomes too long."""
        found = expressions.translate(tree, self.names, others_are_known=self.is_outermost)
        return found if expressions.is_short(found) else None


def _transients(document: Document, sizes: Mapping[str, int]) -> Iterator[_Found]:
    pending = [_Sdfg(document, is_outermost=True)]
    while pending:
        sdfg = pending.pop()
        control = flow(sdfg.json, sdfg.place)
        sdfg = dataclasses.replace(sdfg, names=_names(sdfg, control))
        for name, descriptor in sdfg.json["attributes"]["_arrays"].items():
            if descriptor["attributes"].get("transient") and name not in sdfg.constants:
                yield from _transient(sdfg, control, name, descriptor, sizes)
        nested = [_nested(sdfg, *each) for state in control.states for each in state.nested]
        pending.extend(reversed(nested))


def _nested(sdfg: _Sdfg, node: Json, place: Place) -> _Sdfg:
    mapping = node["attributes"].get("symbol_mapping") or {}
    names = {name: sdfg.translate(str(value)) for name, value in mapping.items()}
    return _Sdfg(node["attributes"]["sdfg"], f"{sdfg.label}/{node['label']}".removeprefix("/"), place, names)


def _names(sdfg: _Sdfg, control: Flow) -> Names:
    """
    What stands for the symbols of an SDFG: for those that it got, for its constants, and for symbols that the edges
    between states assign only once. Variables of loops and maps have no single value.
    """
    names = dict(sdfg.names)
    for name, (_, value) in sdfg.constants.items():
        names[name] = ast.Constant(value) if isinstance(value, int) else None
    several = {*control.variables, *(param for state in control.states for param in state.params)}
    unsettled = {*control.assignments, *several, *sdfg.json["attributes"]["_arrays"]}
    for name, values in control.assignments.items():
        tree = expressions.read(values[0])
        is_settled = tree is not None and expressions.symbols(tree).isdisjoint(unsettled)
        names[name] = sdfg.translate(values[0]) if is_settled and len(values) == 1 and name not in sdfg.names else None
    return names | dict.fromkeys(several)


def _transient(sdfg: _Sdfg, control: Flow, name: str, descriptor: Json, sizes: Mapping[str, int]) -> Iterator[_Found]:
    """The transient with a name, unless it is a variable in the code and no memory."""
    kind, attributes = descriptor["type"], descriptor["attributes"]
    lifetime = attributes.get("lifetime") or "Scope"
    accesses = [(state, place) for state in control.states for data, place in state.accesses if data == name]
    first = [place for state, place in accesses if state is accesses[0][0]]
    storage = _storage(attributes.get("storage"), first)
    is_variable = kind == "Scalar" and lifetime != "External" and storage not in _ON_GPU
    if is_variable or kind.endswith(("View", "Reference")):
        return
    size = _size(kind, attributes)
    if storage == "Register" and lifetime != "External" and (size is None or not _fits_registers(size, sdfg.constants)):
        storage = "CPU_Heap"
    late = size is not None and not expressions.symbols(size).isdisjoint({*control.assignments, *control.variables})
    place, allocated = _place(sdfg, control, name, lifetime, accesses, late), _ALLOCATED.get(lifetime, "call")
    if storage in _ON_HOST:
        place = place.on_the_host
    if storage in ("Register", "GPU_Shared") and allocated == "call":
        allocated = "stack"
    if not accesses and name not in control.names and allocated != "caller":
        allocated = "none"
    tree = size and sdfg.outer(size)
    symbols = expressions.symbols(tree) if tree else frozenset()
    repeated = place.repeats if storage != "CPU_ThreadLocal" else (*place.repeats, "threads")
    value = expressions.evaluate(tree, sizes) if tree else None
    transient = Transient(
        name=name,
        nested_in=sdfg.label,
        storage=storage,
        lifetime=lifetime,
        branch=place.branch,
        size=ast.unparse(tree) if tree else "?",
        bytes=None if value is None or value < 0 else value,
        allocated=allocated,
        repeated=repeated,
    )
    yield _Found(transient, place.path, frozenset(each for each in symbols if not each.endswith("?")))


_ALLOCATED: Mapping[str, Allocation] = {"Persistent": "init", "External": "caller"}

_ON_GPU = ("GPU_Global",)

_ON_HOST = ("CPU_Heap", "CPU_Pinned", "CPU_ThreadLocal", "GPU_Global")
"""Storages that are allocated by the host."""


def _storage(storage: str | Json | None, places: Sequence[Place]) -> str:
    """The name of a storage; for 'Default', what DaCe chooses for data whose first state has access nodes there."""
    if storage is not None and not isinstance(storage, str):
        return "GPU_Shared"
    if storage is not None and storage != "Default":
        return storage
    if not places:
        return "Register"
    schedules = min((place.schedules for place in places), key=len)
    if "GPU_Device" in schedules:
        return "Register"
    return next((_STORAGES[each] for each in reversed(schedules) if each in _STORAGES), "CPU_Heap")


_STORAGES = {"CPU_Multicore": "Register", "GPU_Persistent": "GPU_Global", "GPU_ThreadBlock": "Register"}
"""DaCe's storage of data inside schedules, where it is not CPU_Heap; 'Sequential' has the storage around it."""


def _size(kind: str, attributes: Json) -> ast.expr | None:
    """The bytes of a transient in symbols of its own SDFG; None if unknown, as for streams and structures."""
    element = _element(attributes["dtype"])
    if kind not in ("Array", "Scalar") or element is None:
        return None
    text = attributes.get("total_size") or "*".join(f"({size})" for size in attributes.get("shape", [])) or "1"
    tree = expressions.read(str(text))
    return tree and expressions.times(element, tree)


def _element(dtype: str | Json) -> int | None:
    """The bytes of an element, None if unknown."""
    if isinstance(dtype, str):
        return NAMES[dtype].size if dtype in NAMES else _OTHER_TYPES.get(dtype)
    match dtype:
        case {"type": "vector", "dtype": inner, "elements": elements} if str(elements).isdecimal():
            element = _element(inner)
            return None if element is None else element * int(elements)
        case {"type": "struct", "bytes": int() as size}:
            return size
        case {"type": "pointer"}:
            return 8
    return None


_OTHER_TYPES = {"bool_": 1, "float16": 2, "complex64": 8, "complex128": 16}


def _fits_registers(size: ast.expr, constants: Json) -> bool:
    """Whether DaCe leaves an array of storage Register on the stack: its size is a constant, and is not too large."""
    values = {name: value for name, (_, value) in constants.items() if isinstance(value, int)}
    found = expressions.evaluate(size, values)
    return found is not None and found <= LARGEST_ON_STACK


def _place(
    sdfg: _Sdfg, control: Flow, name: str, lifetime: str, accesses: Sequence[tuple[State, Place]], late: bool
) -> Place:
    """
    The part of the code that allocates a transient at its beginning, and frees it at its end. The size of a `late` one
    is known only after the SDFG has begun: DaCe allocates it in the first state that accesses it.
    """
    if lifetime in ("Persistent", "External", "Global"):
        return Place()
    states = [state.place for state, _ in accesses]
    is_shared = len({state.path for state in states}) != 1 or name in control.names
    if lifetime == "SDFG" or is_shared:
        return common(states) if late and states else sdfg.place
    return states[0] if lifetime == "State" else common([place for _, place in accesses])


# --- Sums -------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Amount:
    """Bytes, None if unknown, and those that are known."""

    bytes: int | None
    at_least: int

    def __add__(self, other: _Amount) -> _Amount:
        is_known = self.bytes is not None and other.bytes is not None
        at_least = self.at_least + other.at_least
        return _Amount(at_least if is_known else None, at_least)

    def __or__(self, other: _Amount) -> _Amount:
        """The larger one."""
        is_known = self.bytes is not None and other.bytes is not None
        at_least = max(self.at_least, other.at_least)
        return _Amount(at_least if is_known else None, at_least)


def _sum(found: Iterable[_Found], depth: int = 0, *, is_peak: bool = False) -> _Amount:
    """
    The sum over a part of the code, at whose beginning those with a path of this length are allocated. Parts that
    exclude each other count as the largest; for a peak, so do parts that run one after the other.
    """
    total = _Amount(0, 0)
    parts: dict[Step, list[_Found]] = {}
    for each in found:
        if len(each.path) == depth:
            size = each.transient.bytes
            total += _Amount(size, max(size or 0, 0))
        else:
            parts.setdefault(each.path[depth], []).append(each)
    inner = _Amount(0, 0)
    for (kind, _), part in parts.items():
        amount = _sum(part, depth + 1, is_peak=is_peak)
        inner = inner | amount if is_peak or kind == "or" else inner + amount
    return total + inner


def _totals(found: Sequence[_Found]) -> Iterator[Total]:
    for (allocated, storage, lifetime), group in _groups(
        found, lambda each: (each.allocated, each.storage, each.lifetime)
    ).items():
        branches = {_branch(each.path): each.transient.branch for each in group}
        for path, branch in {(): "", **branches}.items():
            amount = _sum([each for each in group if each.path[: len(path)] == path], len(path))
            yield Total(allocated, storage, lifetime, branch, amount.bytes, amount.at_least)


def _uses(found: Sequence[_Found]) -> Iterator[Use]:
    for (allocated, storage), group in _groups(found, lambda each: (each.allocated, each.storage)).items():
        total, peak = _sum(group), _sum(group, is_peak=True)
        yield Use(allocated, storage, total.bytes, total.at_least, peak.bytes, peak.at_least)


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
