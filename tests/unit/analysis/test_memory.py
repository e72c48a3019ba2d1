"""Where transients are allocated, and how much that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gtstub.stub.sdfg.read import SdfgError, of_document
from gtstub.tools.memory import memory as analysis
from gtstub.tools.memory.memory import Memory, StorageUse, Total, Transient
from tests.support.sdfg_documents import (
    Json,
    access,
    branches,
    edge,
    loop,
    map_entry,
    nested,
    region,
    sdfg,
    state,
    transient,
)

BRANCH = "choice: if flag"


def memory(document: Json, sizes: Mapping[str, int]) -> Memory:
    return analysis.memory(of_document(document), sizes)


def only(found: Memory) -> Transient:
    (transient,) = found.transients
    return transient


def total(found: Memory, branch: str = "", **members: str) -> Total:
    """The only total of a branch with these members."""
    (result,) = (
        each
        for each in found.totals
        if each.branch == branch and all(getattr(each, name) == value for name, value in members.items())
    )
    return result


def test_a_transient_of_a_state_is_allocated_in_each_call() -> None:
    found = memory(sdfg(state("a", "x"), arrays={"a": transient("N*M")}, symbols=["N", "M"]), {"N": 3, "M": 5})
    assert only(found) == Transient(
        name="a",
        nested_in="",
        storage="CPU_Heap",
        lifetime="Scope",
        branch="",
        size="8 * N * M",
        bytes=120,
        allocated="call",
        repeated=(),
    )
    assert found.totals == (Total("call", "CPU_Heap", "Scope", "", 120, 120),)
    assert found.uses == (StorageUse("call", "CPU_Heap", 120, 120, 120, 120),)
    assert found.unknown == ()


def test_an_unknown_size_is_not_zero() -> None:
    arrays = {"a": transient("N"), "b": transient("4"), "c": transient("sqrt(M)")}
    found = memory(sdfg(state("a", "b", "c"), arrays=arrays), {})
    assert [each.bytes for each in found.transients] == [None, 32, None]
    assert found.totals == (Total("call", "CPU_Heap", "Scope", "", None, 32),)
    assert found.uses == (StorageUse("call", "CPU_Heap", None, 32, None, 32),)
    assert found.unknown == ("M", "N")


def test_negative_sizes_are_unknown() -> None:
    assert only(memory(sdfg(state("a"), arrays={"a": transient("N")}), {"N": -1})).bytes is None


@pytest.mark.parametrize(
    ("lifetime", "allocated"),
    [
        ("Scope", "call"),
        ("State", "call"),
        ("SDFG", "call"),
        ("Global", "call"),
        ("Persistent", "init"),
        ("External", "caller"),
    ],
)
def test_lifetimes(lifetime: str, allocated: str) -> None:
    found = memory(sdfg(state("a"), arrays={"a": transient("N", lifetime=lifetime)}), {"N": 2})
    assert (only(found).allocated, only(found).lifetime, only(found).bytes) == (allocated, lifetime, 16)
    assert total(found).allocated == allocated


def test_what_is_not_accessed_is_not_allocated() -> None:
    arrays = {name: transient("2", lifetime=name) for name in ("Scope", "Persistent", "External", "SDFG")}
    found = memory(sdfg(state(), arrays=arrays), {})
    # The size that the caller is asked for counts all External transients.
    assert [each.allocated for each in found.transients] == ["none", "none", "caller", "none"]
    assert found.totals == (Total("caller", "Register", "External", "", 16, 16),)


@pytest.mark.parametrize(
    ("scope", "attributes", "storage", "allocated"),
    [
        (None, {}, "CPU_Heap", "call"),
        (None, {"storage": "Default"}, "CPU_Heap", "call"),
        (None, {"storage": "Register"}, "Register", "stack"),
        (None, {"storage": "Register", "total_size": "8192"}, "Register", "stack"),
        (None, {"storage": "Register", "total_size": "8193"}, "CPU_Heap", "call"),
        (None, {"storage": "Register", "total_size": "N"}, "CPU_Heap", "call"),
        (0, {}, "Register", "stack"),
        (0, {"storage": "CPU_Heap"}, "CPU_Heap", "call"),
        (0, {"total_size": "N"}, "CPU_Heap", "call"),
        (1, {"total_size": "8"}, "CPU_Heap", "call"),
        (2, {"total_size": "8"}, "Register", "stack"),
        (3, {"total_size": "8"}, "Register", "stack"),
        (3, {"storage": "GPU_Shared"}, "GPU_Shared", "stack"),
        (3, {"storage": {"name": "GPU_Shared"}}, "GPU_Shared", "stack"),
        (3, {"storage": "GPU_Global"}, "GPU_Global", "call"),
    ],
)
def test_storages(scope: int | None, attributes: dict[str, Any], storage: str, allocated: str) -> None:
    maps = (
        map_entry("i"),
        map_entry("i", schedule="Sequential"),
        map_entry("j", scope=0),
        map_entry("i", schedule="GPU_Device"),
    )
    arrays = {"a": transient(**{"total_size": "2", **attributes})}
    found = memory(sdfg(state(*maps, access("a", scope)), arrays=arrays), {"N": 4})
    assert (only(found).storage, only(found).allocated) == (storage, allocated)


def test_a_map_on_a_gpu_does_not_allocate_global_memory_again_and_again() -> None:
    maps = map_entry("i"), map_entry("j", schedule="GPU_Device")
    arrays = {"a": transient("N", storage="GPU_Global"), "b": transient("N", storage="CPU_Heap")}
    a, b = memory(sdfg(state(*maps, access("a", 1), access("b", 0)), arrays=arrays), {}).transients
    assert (a.repeated, b.repeated) == ((), ("map m[i]",))


def test_scalars_and_views_are_variables() -> None:
    arrays = {
        "scalar": transient("1", kind="Scalar"),
        "view": transient("N", kind="ArrayView"),
        "reference": transient("N", kind="ArrayReference"),
        "kept": transient("1", kind="Scalar", lifetime="External"),
        "far": transient("1", kind="Scalar", storage="GPU_Global"),
    }
    found = memory(sdfg(state(*arrays), arrays=arrays), {})
    assert [(each.name, each.bytes, each.allocated) for each in found.transients] == [
        ("kept", 8, "caller"),
        ("far", 8, "call"),
    ]


@pytest.mark.parametrize("kind", ["Stream", "Structure"])
def test_streams_and_structures_are_of_unknown_size(kind: str) -> None:
    found = memory(sdfg(state("a"), arrays={"a": transient("1", kind=kind)}), {})
    assert (only(found).size, only(found).bytes) == ("?", None)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("bool", 4),
        ("int32", 16),
        ("float16", 8),
        ("complex128", 64),
        ({"type": "vector", "dtype": "float32", "elements": "8"}, 128),
        ({"type": "vector", "dtype": "float32", "elements": "V"}, None),
        ({"type": "pointer", "dtype": "float32"}, 32),
        ({"type": "struct", "bytes": 12}, None),
        ({"type": "opaque", "ctype": "MPI_Comm"}, None),
        ("mine", None),
    ],
)
def test_types_of_elements(dtype: Any, expected: int | None) -> None:
    assert only(memory(sdfg(state("a"), arrays={"a": transient("4", dtype=dtype)}), {})).bytes == expected


# --- Branches ---------------------------------------------------------------------------------------------------------


def test_of_branches_the_largest_counts() -> None:
    arrays = {"a": transient("10"), "b": transient("N"), "c": transient("1"), "d": transient("2")}
    blocks = state("c"), branches({"flag": state("a"), "else": state("b")}), state("d")
    found = memory(sdfg(*blocks, arrays=arrays), {"N": 20})
    assert [each.branch for each in found.transients] == [BRANCH, "choice: else", "", ""]
    assert (total(found).bytes, total(found, BRANCH).bytes, total(found, "choice: else").bytes) == (184, 80, 160)
    assert found.uses == (StorageUse("call", "CPU_Heap", 184, 184, 160, 160),)


def test_an_unknown_branch_makes_the_total_unknown() -> None:
    arrays = {"a": transient("10"), "b": transient("N")}
    found = memory(sdfg(branches({"flag": state("a"), "else": state("b")}), arrays=arrays), {})
    assert total(found) == Total("call", "CPU_Heap", "Scope", "", None, 80)
    assert total(found, BRANCH).bytes == 80
    assert total(found, "choice: else") == Total("call", "CPU_Heap", "Scope", "choice: else", None, 0)


def test_branches_in_branches() -> None:
    inner = branches({"(x > 1)": state("a"), "y": state("b")}, label="deep")
    arrays = {"a": transient("1"), "b": transient("2"), "c": transient("4"), "d": transient("5")}
    found = memory(sdfg(branches({"flag": region(inner, state("c")), "else": state("d")}), arrays=arrays), {})
    assert [each.branch for each in found.transients] == [
        f"{BRANCH} / deep: if x > 1",
        f"{BRANCH} / deep: elif y",
        BRANCH,
        "choice: else",
    ]
    assert total(found).bytes == 48
    assert total(found, BRANCH).bytes == 48
    assert total(found, f"{BRANCH} / deep: elif y").bytes == 16


def test_what_several_states_of_a_branch_access_is_allocated_outside_it() -> None:
    arrays = {"a": transient("10"), "b": transient("20")}
    blocks = {"flag": region(state("a"), state("a")), "else": region(state("b"), state("b"))}
    found = memory(sdfg(branches(blocks), arrays=arrays), {})
    assert [each.branch for each in found.transients] == ["", ""]
    assert found.totals == (Total("call", "CPU_Heap", "Scope", "", 240, 240),)


def test_what_has_a_late_size_is_allocated_in_its_branch() -> None:
    arrays = {"a": transient("n"), "b": transient("N")}
    branch = region(region(state("a", "b"), state("a", "b")))
    document = sdfg(state(), branches({"flag": branch}), arrays=arrays, edges=[edge(0, 1, n="N + 1")])
    found = memory(document, {"N": 2})
    assert [(each.branch, each.bytes) for each in found.transients] == [(BRANCH, 24), ("", 16)]


def test_what_a_condition_reads_is_allocated_with_the_sdfg() -> None:
    arrays = {"flag": transient("1"), "a": transient("2")}
    condition = branches({"flag": state("a")})
    assert memory(sdfg(state("flag"), condition, arrays=arrays), {}).transients[0].branch == ""
    inside = branches({"x": state("flag"), "else": condition})
    assert memory(sdfg(inside, arrays=arrays), {}).transients[0].branch == ""


def test_a_peak_is_that_of_the_largest_state() -> None:
    arrays = {"a": transient("10"), "b": transient("20"), "c": transient("1"), "d": transient("7", lifetime="SDFG")}
    found = memory(sdfg(state("a"), region(state("b", "c")), state("d"), arrays=arrays), {})
    assert found.uses == (StorageUse("call", "CPU_Heap", 304, 304, 224, 224),)


# --- Repetition and nesting -------------------------------------------------------------------------------------------


def test_loops_and_maps_repeat_allocations() -> None:
    inner = sdfg(state("a"), arrays={"a": transient("n")})
    body = state(map_entry("i", "j", label="outer"), nested(inner, scope=0, n="N"))
    found = memory(sdfg(loop(body)), {"N": 2})
    assert only(found).repeated == ("loop loop", "map outer[i, j]")
    assert (only(found).bytes, only(found).allocated) == (16, "call")


def test_a_transient_is_allocated_around_all_maps_that_access_it() -> None:
    maps = map_entry("i"), map_entry("j", scope=0, label="one"), map_entry("k", scope=0, label="two")
    arrays = {"a": transient("N"), "b": transient("N"), "c": transient("N")}
    accesses = access("a", 1), access("a", 2), access("b", 1), access("b", 0), access("c", 1), access("c")
    document = sdfg(state(*maps, *accesses), arrays=arrays)
    assert [each.repeated for each in memory(document, {}).transients] == [("map m[i]",), ("map m[i]",), ()]


def test_thread_local_memory_is_that_of_one_thread() -> None:
    found = memory(sdfg(state("a"), arrays={"a": transient("4", storage="CPU_ThreadLocal")}), {})
    assert (only(found).bytes, only(found).repeated) == (32, ("threads",))


def test_sizes_in_nested_sdfgs_are_those_of_the_outermost() -> None:
    deepest = sdfg(state("a"), arrays={"a": transient("n*m")})
    middle = sdfg(state(nested(deepest, "deepest", n="$k + 1", m="5")))
    found = memory(sdfg(state(nested(middle, "middle", k="2*$N"))), {"N": 3, "k": 1000, "n": 1000})
    assert (only(found).nested_in, only(found).size, only(found).bytes) == (
        "middle/deepest",
        "8 * (2 * N + 1) * 5",
        280,
    )


def test_symbols_without_one_value_are_unknown() -> None:
    inner = sdfg(state("a"), arrays={"a": transient("n")})
    document = sdfg(
        loop(state(nested(inner, n="k"))),
        state(map_entry("i"), nested(inner, scope=0, n="i")),
        state(nested(inner)),
    )
    found = memory(document, {"k": 1, "i": 1, "n": 1})
    assert [(each.size, each.bytes) for each in found.transients] == [
        ("8 * k?", None),
        ("8 * i?", None),
        ("8 * n?", None),
    ]
    assert found.unknown == ()


def test_symbols_that_edges_assign_once_are_known() -> None:
    arrays = {f"of_{name}": transient(name) for name in ("once", "twice", "data", "again")} | {"x": transient("1")}
    edges = edge(0, 1, once="N + 1", twice="1", data="x"), edge(1, 2, twice="2", again="once")
    found = memory(
        sdfg(state(), state(), state(*arrays), arrays=arrays, edges=edges), {"N": 2, "twice": 1, "data": 1, "again": 1}
    )
    assert [(each.size, each.bytes) for each in found.transients[:4]] == [
        ("8 * (N + 1)", 24),
        ("8 * twice?", None),
        ("8 * data?", None),
        ("8 * again?", None),
    ]


def test_constants_are_compiled_in() -> None:
    constants = {"C": [{"type": "Scalar"}, 6], "table": [{"type": "Array"}, [1, 2]]}
    arrays = {"a": transient("C"), "b": transient("C", storage="Register"), "table": transient("2")}
    found = memory(sdfg(state("a", "b", "table"), arrays=arrays, constants_prop=constants), {})
    assert [(each.name, each.bytes, each.allocated) for each in found.transients] == [
        ("a", 48, "call"),
        ("b", 48, "stack"),
    ]


def test_a_register_of_a_nested_sdfg_with_a_symbol_is_on_the_heap() -> None:
    inner = sdfg(state("a"), arrays={"a": transient("n", storage="Register")})
    assert only(memory(sdfg(state(nested(inner, n="4"))), {})).storage == "CPU_Heap"


def test_expressions_that_contain_themselves_too_often_are_unknown() -> None:
    document = sdfg(state("a"), arrays={"a": transient("n")})
    for _ in range(60):
        document = sdfg(state(nested(document, n="n + n")))
    found = only(memory(document, {"n": 1}))
    assert found.bytes is None
    assert len(found.size) < 10_000


@pytest.mark.parametrize(
    "document",
    [
        {**sdfg(), "attributes": {"name": "prog", "_arrays": []}},
        {**sdfg(), "nodes": [3]},
        {**sdfg(), "nodes": [{**branches({}), "branches": [3]}]},
        sdfg(state("a"), arrays={"a": {"type": "Array"}}),
    ],
)
def test_documents_of_another_form(document: dict[str, Any]) -> None:
    with pytest.raises(SdfgError, match=r"^SDFG 'prog' is not in the form that this gtstub reads: "):
        memory(document, {})
