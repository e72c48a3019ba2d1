"""The memory of SDFGs as the analysis finds it, and what their libraries really allocate."""

import gzip
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import dace
import numpy as np
import pytest
from dace.codegen import compiler

from gtstub.frameworks.dace import dace_config
from gtstub.frameworks.dace.sdfg_signature import sdfg_signature
from gtstub.frameworks.gt4py.program_signature import program_signature
from gtstub.stub.sdfg.read import of_document
from gtstub.stub.signature.model import ScalarArgument, SdfgSignature
from gtstub.tools.memory import memory as analysis
from gtstub.tools.memory.memory import Memory, Transient
from gtstub.tools.memory.sizes import symbol_sizes
from tests.support import npbench_programs
from tests.support.counted_calls import Counted, count
from tests.support.gt4py_programs import CASES, lower

ALIGNMENT = 64
"""DaCe's alignment of arrays on the heap, to which the C++ library also rounds their sizes."""

POINTER = 8

N = dace.symbol("N")
WIDE = dace.symbol("WIDE", dace.int64)

pytestmark = pytest.mark.filterwarnings(
    "ignore:Variable-length array|Array .* was allocated on the heap|No `gpu_block_size`"
)


def rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def bytes_of(transients: Iterable[Transient]) -> list[int]:
    """What the transients take of the heap, the smallest first."""
    return sorted(rounded(cast(int, each.bytes)) for each in transients)


def total(found: Memory, allocated: str, branch: str = "") -> int | None:
    """The bytes of all storages and lifetimes."""
    return sum(cast(int, each.bytes) for each in found.totals if (each.allocated, each.branch) == (allocated, branch))


def memory(document: Mapping[str, Any], sizes: Mapping[str, int]) -> Memory:
    return analysis.memory(of_document(document), sizes)


class Compiled:
    """An SDFG and its library; `before` and `after` are its documents before and after DaCe's code generation."""

    def __init__(self, sdfg: dace.SDFG, signature: SdfgSignature, folder: Path) -> None:
        self.before = json.loads(json.dumps(sdfg.to_json()))
        self.signature = signature
        self.folder = folder
        sdfg.build_folder = str(folder / "dace")
        with dace_config.frozen("cpu", "Release"):
            sdfg.compile(validate=False, return_program_handle=False)
        self.library = Path(compiler.get_binary_name(object_folder=sdfg.build_folder, sdfg_name=sdfg.name))
        self.after = json.loads(gzip.decompress((folder / "dace" / "program.sdfgz").read_bytes()))

    def memory(self, symbols: Mapping[str, int]) -> Memory:
        """The analysis, which must be the same for both documents."""
        found = memory(self.after, symbols)
        before = memory(self.before, symbols)
        assert (found.transients, found.totals, found.uses) == (before.transients, before.totals, before.uses)
        return found

    def count(self, values: Mapping[str, float], array_bytes: int = 1 << 16) -> Counted:
        """What a call with these values of scalars allocates."""
        sizes = {each.name: array_bytes for each in self.signature.arguments}
        return count(self.library, self.signature, values, sizes, self.folder)


def of_dace(program: Any, folder: Path, **lifetimes: dace.AllocationLifetime) -> Compiled:
    """A program of DaCe, with other lifetimes of transients on the heap."""
    sdfg = program.to_sdfg(simplify=True)
    for name, lifetime in lifetimes.items():
        sdfg.arrays[name].lifetime = lifetime
        sdfg.arrays[name].storage = dace.StorageType.CPU_Heap
    return Compiled(sdfg, sdfg_signature(sdfg, sdfg.to_json(), has_domains=False), folder)


def check(found: Memory, counted: Counted, branch: str = "") -> None:
    """Each allocation of the heap in the initialisation and in a call that takes a branch, and the workspaces."""
    kept = [each for each in found.transients if each.allocated == "init"]
    lent = [each for each in found.transients if each.allocated == "caller"]
    called = [each for each in found.transients if each.allocated == "call" and each.branch in ("", branch)]
    handle = POINTER * (len(kept) + len(lent)) or 1
    assert counted.init.sizes == sorted([*bytes_of(kept), handle])
    assert counted.init.left == sum(counted.init.sizes)
    assert counted.call.sizes == bytes_of(called)
    assert counted.call.left == 0
    uses = {(each.allocated, each.storage): each for each in found.uses}
    assert counted.workspaces == {
        storage: use.bytes for (allocated, storage), use in uses.items() if allocated == "caller"
    }


# --- Programs of DaCe -------------------------------------------------------------------------------------------------


@dace.program
def branches(a: dace.float64[N], flag: dace.int32):
    before = a + 1
    if flag > 0:
        small = before * 2
        smaller = small + before[0]
        a[:] = smaller + small[1]
    else:
        large = np.empty((N, 5), np.float64)
        for i, j in dace.map[0:N, 0:5]:
            large[i, j] = before[i] + j
        for i in dace.map[0:N]:
            a[i] = large[i, 0] + large[i, 4]


def test_branches_exclude_each_other(tmp_path: Path) -> None:
    program = of_dace(branches, tmp_path)
    for size in (1000, 1001):
        found = program.memory({"N": size})
        names = {each.branch: each for each in found.totals}
        assert len(names) == 3
        taken, other = (each for each in names if each)
        assert (names[taken].bytes, names[other].bytes) == (16 * size, 40 * size)
        assert total(found, "call") == 48 * size
        for flag, branch in ((1, taken), (0, other)):
            check(found, program.count({"N": size, "flag": flag}), branch)
    counted = program.count({"N": 1000, "flag": 0})
    assert sum(counted.call.sizes) == total(memory(program.after, {"N": 1000}), "call") == 48_000


@dace.program
def shared_in_a_branch(a: dace.float64[N], flag: dace.int32):
    if flag > 0:
        a[0] = 3.0
    else:
        twice = np.zeros((2 * N,))
        twice[:N] = a
        a[:] = twice[N:] + twice[:N]


def test_what_is_shared_in_a_branch_is_allocated_in_all_calls(tmp_path: Path) -> None:
    program = of_dace(shared_in_a_branch, tmp_path)
    found = program.memory({"N": 1000})
    assert total(found, "call") == 16_000
    assert [each.branch for each in found.totals] == [""]
    for flag in (0, 1):
        check(found, program.count({"N": 1000, "flag": flag}))


@dace.program
def stages(a: dace.float64[N], b: dace.float64[N]):
    first = a + 1
    second = first * b
    third = np.zeros((N, 3))
    for i, j in dace.map[0:N, 0:3]:
        third[i, j] = second[i] * j
    for i in dace.map[0:N]:
        b[i] = third[i, 0] + third[i, 2] + first[i]


@pytest.mark.parametrize("size", [1000, 1003])
def test_persistent_memory_is_allocated_with_the_handle(tmp_path: Path, size: int) -> None:
    persistent = dace.AllocationLifetime.Persistent
    program = of_dace(stages, tmp_path, first=persistent, third=persistent)
    found = program.memory({"N": size})
    assert (total(found, "init"), total(found, "call")) == (32 * size, 8 * size)
    check(found, program.count({"N": size}))


@pytest.mark.parametrize("size", [1000, 1003])
def test_a_workspace_is_that_of_the_caller(tmp_path: Path, size: int) -> None:
    external = dace.AllocationLifetime.External
    program = of_dace(stages, tmp_path, first=external, third=external)
    found = program.memory({"N": size})
    assert (total(found, "caller"), total(found, "call")) == (32 * size, 8 * size)
    counted = program.count({"N": size})
    assert counted.workspaces == {"CPU_Heap": 32 * size}
    check(found, counted)


def test_storages_and_repetitions(tmp_path: Path) -> None:
    """Arrays in maps and loops, of which large and symbolic ones are on the heap, and states one after another."""
    sdfg = dace.SDFG("repeated")
    sdfg.add_array("a", [N], dace.float64)
    registers = dace.StorageType.Register
    for name, size, storage in (
        ("first", N, dace.StorageType.Default),
        ("second", 2 * N, dace.StorageType.CPU_Heap),
        ("little", 100, registers),
        ("much", 10_000, registers),
        ("symbolic", N, registers),
        ("unused", N, dace.StorageType.CPU_Heap),
        ("in_a_map", N + 1, dace.StorageType.Default),
        ("little_in_a_map", 10, dace.StorageType.Default),
    ):
        sdfg.add_transient(name, [size], dace.float64, storage=storage)
    state = sdfg.add_state("start", is_start_block=True)

    def touch(state: dace.SDFGState, name: str) -> None:
        tasklet = state.add_tasklet(f"write_{name}", {}, {"out"}, "out = 1.0")
        node = state.add_access(name)
        state.add_edge(tasklet, "out", node, None, dace.Memlet(f"{name}[0]"))
        again = state.add_tasklet(f"read_{name}", {"value"}, {"out"}, "out = value")
        state.add_edge(node, None, again, "value", dace.Memlet(f"{name}[0]"))
        state.add_edge(again, "out", state.add_access("a"), None, dace.Memlet("a[0]"))

    for name in ("first", "little", "much", "symbolic"):
        touch(state, name)
    state = sdfg.add_state_after(state, "then")
    touch(state, "second")
    state = sdfg.add_state_after(state, "at_last")
    entry, exit_ = state.add_map("repeat", {"i": "0:3"}, schedule=dace.ScheduleType.CPU_Multicore)
    for number, name in enumerate(("in_a_map", "little_in_a_map")):
        write = state.add_tasklet(f"write_{name}", {}, {"out"}, "out = 1.0")
        node = state.add_access(name)
        read = state.add_tasklet(f"read_{name}", {"value"}, {"out"}, "out = value")
        state.add_nedge(entry, write, dace.Memlet())
        state.add_edge(write, "out", node, None, dace.Memlet(f"{name}[0]"))
        state.add_edge(node, None, read, "value", dace.Memlet(f"{name}[0]"))
        exit_.add_in_connector(f"IN_{number}")
        exit_.add_out_connector(f"OUT_{number}")
        state.add_edge(read, "out", exit_, f"IN_{number}", dace.Memlet(f"a[i + {number}]"))
        state.add_edge(exit_, f"OUT_{number}", state.add_access("a"), None, dace.Memlet(f"a[{number}:3 + {number}]"))
    program = Compiled(sdfg, sdfg_signature(sdfg, sdfg.to_json(), has_domains=False), tmp_path)
    found = program.memory({"N": 1000})
    by_name = {each.name: each for each in found.transients}
    assert {name: (each.allocated, each.storage, each.bytes) for name, each in by_name.items()} == {
        "first": ("call", "CPU_Heap", 8000),
        "second": ("call", "CPU_Heap", 16_000),
        "little": ("stack", "Register", 800),
        "much": ("call", "CPU_Heap", 80_000),
        "symbolic": ("call", "CPU_Heap", 8000),
        "unused": ("none", "CPU_Heap", 8000),
        "in_a_map": ("call", "CPU_Heap", 8008),
        "little_in_a_map": ("stack", "Register", 80),
    }
    assert by_name["in_a_map"].repeated == ("map repeat[i]",)
    counted = program.count({"N": 1000})
    once = [by_name[name] for name in ("first", "second", "much", "symbolic")]
    assert counted.call.sizes == sorted([*bytes_of(once), *[rounded(8008)] * 3])
    (peak,) = (each.peak for each in found.uses if each.allocated == "call")
    assert counted.call.peak == peak == 96_000


@dace.program
def of_other_types(a: dace.int32[WIDE], b: dace.float32[WIDE]):
    twice = a + a
    half = np.zeros((WIDE // 2 + 1,), dtype=np.float32)
    half[0] = b[0]
    for i in dace.map[0:WIDE]:
        a[i] = twice[i] + twice[0]
        b[i] = half[0]


def test_other_types_of_elements_and_symbols(tmp_path: Path) -> None:
    program = of_dace(of_other_types, tmp_path)
    found = program.memory({"WIDE": 1000})
    assert total(found, "call") == 4 * 1000 + 4 * 501
    check(found, program.count({"WIDE": 1000}))


def use(state: dace.SDFGState, name: str) -> None:
    """Writes and reads the first element of an array."""
    node = state.add_access(name)
    write = state.add_tasklet(f"write_{name}", {}, {"out"}, "out = 1.0")
    read = state.add_tasklet(f"read_{name}", {"value"}, {"out"}, "out = value")
    state.add_edge(write, "out", node, None, dace.Memlet(f"{name}[0]"))
    state.add_edge(node, None, read, "value", dace.Memlet(f"{name}[0]"))
    state.add_edge(read, "out", state.add_access("a"), None, dace.Memlet("a[0]"))


def with_states(number: int, **sizes: Any) -> tuple[dace.SDFG, list[dace.SDFGState]]:
    """An SDFG of states one after another, and transients."""
    sdfg = dace.SDFG("states")
    sdfg.add_array("a", [N], dace.float64)
    for name, size in sizes.items():
        sdfg.add_transient(name, [size], dace.float64)
    states = [sdfg.add_state("s0", is_start_block=True)]
    while len(states) < number:
        states.append(sdfg.add_state_after(states[-1], f"s{len(states)}"))
    return sdfg, states


def test_sizes_that_an_edge_assigns(tmp_path: Path) -> None:
    """What is allocated when its size is known is freed after the last state that accesses it."""
    known = dace.symbol("known")
    sdfg, states = with_states(7, first=known, second=2 * known, third=5 * known)
    sdfg.edges_between(*states[:2])[0].data.assignments = {"known": "N + 37"}
    for name, state in zip(("first", "first", "second", "second", "third", "third"), states[1:], strict=True):
        use(state, name)
    program = Compiled(sdfg, sdfg_signature(sdfg, sdfg.to_json(), has_domains=False), tmp_path)
    found, counted = program.memory({"N": 91}), program.count({"N": 91})
    check(found, counted)
    assert [(each.bytes, each.peak) for each in found.uses] == [(8 * 8 * 128, 5 * 8 * 128)]
    assert counted.call.peak == 5 * 8 * 128


def test_a_symbol_that_is_an_argument_and_assigned_has_no_one_value(tmp_path: Path) -> None:
    sdfg, states = with_states(3, before=N, after=N + 1)
    sdfg.edges_between(*states[:2])[0].data.assignments = {"N": "2*N"}
    use(states[0], "before")
    use(states[2], "after")
    program = Compiled(sdfg, sdfg_signature(sdfg, sdfg.to_json(), has_domains=False), tmp_path)
    assert program.count({"N": 96}).call.sizes == [8 * 96, rounded(8 * 193)]
    assert [each.bytes for each in program.memory({"N": 96}).transients] == [None, None]


def test_sizes_and_constants_of_nested_sdfgs(tmp_path: Path) -> None:
    """DaCe writes the size of global memory as it is, and leaves registers of a constant size on the stack."""
    sdfg, (state,) = with_states(1, outer=N)
    use(state, "outer")
    sdfg.add_constant("MANY", 9000)
    inner, (inside,) = with_states(1, persistent=N, shared=N, scope=N, fixed=dace.symbol("MANY"))
    inner.arrays["persistent"].lifetime = dace.AllocationLifetime.Persistent
    inner.arrays["shared"].lifetime = dace.AllocationLifetime.Global
    inner.arrays["fixed"].storage = dace.StorageType.Register
    for name in ("persistent", "shared", "scope", "fixed"):
        use(inside, name)
    node = state.add_nested_sdfg(inner, {}, {"a"}, {"N": "N + 100", "MANY": "MANY"})
    state.add_edge(node, "a", state.add_access("a"), None, dace.Memlet("a[0:N]"))
    program = Compiled(sdfg, sdfg_signature(sdfg, sdfg.to_json(), has_domains=False), tmp_path)
    found, counted = program.memory({"N": 50}), program.count({"N": 50})
    assert {each.name: (each.bytes, each.allocated) for each in found.transients} == {
        "outer": (400, "call"),
        "persistent": (1200, "init"),
        "shared": (400, "call"),
        "scope": (1200, "call"),
        "fixed": (72_000, "stack"),
    }
    assert counted.call.sizes == [rounded(400), rounded(400), rounded(1200)]
    # The handle has a pointer for global memory, too.
    assert counted.init.sizes == [2 * POINTER, rounded(1200)]


# --- Generated code ---------------------------------------------------------------------------------------------------

ALLOCATION = {
    "CPU_Heap": r"(\w+) = new *\(std::align_val_t",
    "GPU_Global": r"Malloc(?:Async)?\(\(void\*\*\)&(\w+)",
}
"""What allocates an array in each storage; the name of the array is that of the transient."""


@pytest.mark.parametrize("gpu", [False, True], ids=["cpu", "gpu"])
@pytest.mark.parametrize("name", ["hdiff", "vadv", "nbody"])
def test_the_generated_code_allocates_the_same_arrays(name: str, gpu: bool) -> None:
    sdfg = getattr(npbench_programs, name).dace_program.to_sdfg(simplify=True)
    if gpu:
        sdfg.apply_gpu_transformations()
    before = json.loads(json.dumps(sdfg.to_json()))
    text = "\n".join(code.clean_code for code in sdfg.generate_code())
    after = json.loads(json.dumps(sdfg.to_json()))
    allocated = {storage: sorted(re.findall(pattern, text)) for storage, pattern in ALLOCATION.items()}
    assert allocated["GPU_Global" if gpu else "CPU_Heap"]
    for document in (before, after):
        transients = [each for each in memory(document, {}).transients if each.allocated in ("call", "init")]
        assert allocated == {
            storage: sorted(each.name for each in transients if each.storage == storage) for storage in ALLOCATION
        }


# --- Programs of gt4py ------------------------------------------------------------------------------------------------


def of_gt4py(name: str, folder: Path) -> tuple[Compiled, Any]:
    """A program of gt4py, and its signature."""
    lowering = lower(CASES[name])
    raw = cast(Mapping[str, Any], lowering.source.source_code)
    sdfg = dace.SDFG.from_json(raw)
    program = program_signature(lowering.compilable, lowering.source, lowering.compilable.parameter_types)
    return Compiled(sdfg, sdfg_signature(sdfg, raw), folder), program


@pytest.mark.parametrize("name", ["auto_optimized", "persistent_memory", "external_workspace"])
def test_small_programs_of_gt4py(tmp_path: Path, name: str) -> None:
    compiled, program = of_gt4py(name, tmp_path)
    for levels in (8, 65):
        values = symbol_sizes(program, compiled.signature, {"Vertex": 10, "Edge": 10, "K": levels}, {})
        found = compiled.memory(values)
        allocated = {"auto_optimized": "call", "persistent_memory": "init", "external_workspace": "caller"}[name]
        assert total(found, allocated) == 80 * levels
        check(found, compiled.count(with_scalars(compiled, values)))


def test_a_program_of_icon4py(tmp_path: Path) -> None:
    """124 transients in nested SDFGs, most of them in one of two branches."""
    compiled, program = of_gt4py("apply_diffusion_to_vn", tmp_path)
    sizes = {"Edge": 100, "Vertex": 40, "Cell": 60, "K": 11}
    limits = {"horizontal_start": 3, "horizontal_end": 100, "vertical_start": 0, "vertical_end": 10}
    values = symbol_sizes(program, compiled.signature, sizes, limits | {"start_2nd_nudge_line_idx_e": 20})
    found = compiled.memory(values)
    assert found.unknown == ()
    taken, other = "conditional_lambda_entry_cond: if limited_area", "conditional_lambda_entry_cond: else"
    totals = {each.branch: each.bytes for each in found.totals}
    assert totals == {"": 268_616, taken: 62_456, other: 46_160}
    for limited_area, branch in ((1, taken), (0, other)):
        counted = compiled.count(with_scalars(compiled, values, limited_area=limited_area), 1 << 20)
        check(found, counted, branch)
        assert counted.call.peak == sum(counted.call.sizes)


def with_scalars(compiled: Compiled, values: Mapping[str, int], **scalars: float) -> Mapping[str, float]:
    """Values of all scalars of an SDFG, 0 for those that are not given."""
    names = [each.name for each in compiled.signature.arguments if isinstance(each, ScalarArgument)]
    return dict.fromkeys(names, 0) | dict(values) | scalars
