"""Signatures extracted from live gt4py programs: small ones for each kind of argument, and real ones of icon4py."""

from __future__ import annotations

import functools

import dace
import pytest

from gtstub.errors import SignatureError
from gtstub.frameworks.dace.arguments import check_arguments
from gtstub.frameworks.dace.sdfg_signature import sdfg_signature
from gtstub.frameworks.gt4py.program_signature import program_signature
from gtstub.stub.signature.documents import program_to_json, sdfg_to_json
from gtstub.stub.signature.model import ArrayArgument, Axis, Role, ScalarArgument, SdfgSignature
from tests.support.goldens import Golden
from tests.support.gt4py_programs import CASES, Case, lower

ALL = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


@functools.cache
def sdfg_of(case: Case) -> dace.SDFG:
    return dace.SDFG.from_json(lower(case).source.source_code)


@functools.cache
def signature_of(case: Case) -> SdfgSignature:
    return sdfg_signature(sdfg_of(case), lower(case).source.source_code)


@ALL
def test_signatures_are_the_committed_ones(case: Case, golden: Golden) -> None:
    lowering = lower(case)
    program = program_signature(lowering.compilable, lowering.source, lowering.compilable.parameter_types)
    golden.check(f"signatures/{case.name}.program.json", program_to_json(program))
    golden.check(f"signatures/{case.name}.sdfg.json", sdfg_to_json(signature_of(case)))


@ALL
def test_order_of_the_arguments_is_that_of_dace(case: Case) -> None:
    sdfg, signature = sdfg_of(case), signature_of(case)
    assert [argument.name for argument in signature.arguments] == list(sdfg.arglist())
    declared = sdfg.init_signature()
    assert ", ".join(signature.init) == ", ".join(part.split()[-1] for part in declared.split(", ") if part)


def test_compiled_arguments_that_differ_are_refused() -> None:
    case = CASES["in_place"]
    sdfg = dace.SDFG.from_json(lower(case).source.source_code)
    signature = signature_of(case)
    check_arguments(sdfg, signature, {})
    sdfg.add_array("another", [1], dace.float64)
    with pytest.raises(SignatureError) as caught:
        check_arguments(sdfg, signature, {})
    message = "DaCe changed the arguments of SDFG 'in_place' when it compiled it: expected [('a', 'float64'), "
    assert str(caught.value).startswith(message)


# --- What descriptors say ---------------------------------------------------------------------------------------------


def build_sdfg(shape: list[object], strides: list[object] | None = None, name: str = "x") -> dace.SDFG:
    """An SDFG with one array whose sizes and strides are used."""
    sdfg = dace.SDFG("prog")
    symbols = {str(symbol) for size in (*shape, *(strides or ())) for symbol in getattr(size, "free_symbols", ())}
    for symbol in sorted(symbols):
        sdfg.add_symbol(symbol, dace.int32)
    sdfg.add_array(name, shape, dace.float64, strides=strides)
    state = sdfg.add_state()
    tasklet = state.add_tasklet("use", {}, {"out"}, f"out = {' + '.join(sorted(symbols)) or '1'}")
    state.add_edge(tasklet, "out", state.add_write(name), None, dace.Memlet(f"{name}[{', '.join('0' for _ in shape)}]"))
    return sdfg


def describe(sdfg: dace.SDFG) -> tuple[tuple[Axis, ...], dict[str, tuple[Role, ...]]]:
    signature = sdfg_signature(sdfg, sdfg.to_json())
    array = next(item for item in signature.arguments if isinstance(item, ArrayArgument))
    return array.axes, {item.name: item.roles for item in signature.arguments if isinstance(item, ScalarArgument)}


def symbols(*names: str) -> list[object]:
    return [dace.symbol(name, dace.int32) for name in names]


def test_range_of_two_symbols_is_start_and_stop() -> None:
    start, stop, stride = symbols("a", "b", "s")
    axes, roles = describe(build_sdfg([stop - start], [stride]))
    assert axes == (Axis(),)
    assert roles == {"a": (Role("x", 0, "start"),), "b": (Role("x", 0, "stop"),), "s": (Role("x", 0, "stride"),)}


def test_constants_fix_an_axis() -> None:
    axes, roles = describe(build_sdfg([4, 5], [1, 4]))
    assert axes == (Axis(size=4, stride=1), Axis(size=5, stride=4))
    assert roles == {}


def test_lone_stop_fixes_the_start() -> None:
    (stop,) = symbols("b")
    assert describe(build_sdfg([stop], [1])) == ((Axis(start=0, stride=1),), {"b": (Role("x", 0, "stop"),)})
    assert describe(build_sdfg([stop - 3], [1])) == ((Axis(start=3, stride=1),), {"b": (Role("x", 0, "stop"),)})


def test_lone_start_fixes_the_stop() -> None:
    (start,) = symbols("a")
    assert describe(build_sdfg([10 - start], [1])) == ((Axis(stop=10, stride=1),), {"a": (Role("x", 0, "start"),)})


def test_size_of_a_connectivity_is_its_size() -> None:
    (size,) = symbols("n")
    axes, roles = describe(build_sdfg([size, 3], [3, 1], "gt_conn_C2E"))
    assert axes == (Axis(stride=3), Axis(size=3, stride=1))
    assert roles == {"n": (Role("gt_conn_C2E", 0, "size"),)}


def test_what_cannot_be_read_is_left_open() -> None:
    m, n = symbols("m", "n")
    others = [dace.symbolic.pystr_to_symbolic(text) for text in ("Max(0, m)", "m**2", "int_floor(m, 2)")]
    axes, roles = describe(build_sdfg([m * n, 2 * m, m + n, *others], [m * n, n + 1, 1, *others]))
    assert axes == (Axis(), Axis(), Axis(stride=1), Axis(), Axis(), Axis())
    assert roles == {"m": (), "n": ()}


def test_unknown_element_type_is_refused() -> None:
    sdfg = dace.SDFG("prog")
    sdfg.add_array("x", [1], dace.bfloat16)
    with pytest.raises(SignatureError) as caught:
        sdfg_signature(sdfg, sdfg.to_json())
    assert str(caught.value) == (
        "Argument 'x' of SDFG 'prog' must have one of the element types 'bool', 'int8', 'uint8', 'int16', 'uint16',"
        " 'int32', 'uint32', 'int64', 'uint64', 'float32', 'float64', 'float16', 'complex64', 'complex128', but has"
        " 'bfloat16'."
    )


def test_unknown_storage_is_refused() -> None:
    sdfg = dace.SDFG("prog")
    sdfg.add_array("x", [1], dace.float64, storage=dace.StorageType.GPU_Shared)
    with pytest.raises(SignatureError) as caught:
        sdfg_signature(sdfg, sdfg.to_json())
    assert str(caught.value) == (
        "Argument 'x' of SDFG 'prog' must be stored on the heap or in the global memory of a GPU,"
        " but is stored in 'GPU_Shared'."
    )


def test_streams_are_refused() -> None:
    sdfg = dace.SDFG("prog")
    sdfg.add_stream("x", dace.float64)
    with pytest.raises(SignatureError) as caught:
        sdfg_signature(sdfg, sdfg.to_json())
    assert str(caught.value) == ("Argument 'x' of SDFG 'prog' must be an array or a scalar, but has type 'Stream'.")


# --- Memory that a handle keeps ---------------------------------------------------------------------------------------


def nest(inner: dace.SDFG, mapping: dict[str, str]) -> dace.SDFG:
    outer = dace.SDFG("prog")
    for symbol in mapping.values():
        outer.add_symbol(symbol, dace.int32)
    outer.add_state().add_nested_sdfg(inner, {}, {}, mapping)
    return outer


def keep(lifetime: dace.AllocationLifetime, storage: dace.StorageType = dace.StorageType.CPU_Heap) -> dace.SDFG:
    inner = dace.SDFG("inner")
    for symbol in ("n", "other"):
        inner.add_symbol(symbol, dace.int32)
    size = dace.symbol("n", dace.int32)
    inner.add_transient("t", [size], dace.float64, lifetime=lifetime, storage=storage)
    tasklet = (state := inner.add_state()).add_tasklet("use", {}, {"out"}, "out = other")
    state.add_edge(tasklet, "out", state.add_write("t"), None, dace.Memlet("t[0]"))
    return inner


def test_memory_of_a_nested_sdfg_is_sized_by_symbols_of_the_outermost() -> None:
    sdfg = nest(nest(keep(dace.AllocationLifetime.Persistent), {"n": "m", "other": "k"}), {"m": "rows", "k": "unit"})
    signature = sdfg_signature(sdfg, sdfg.to_json())
    assert signature.init == ("rows", "unit")
    assert signature.memory_symbols == ("rows",)
    assert signature.workspaces == ()


def test_memory_of_a_scope_is_not_kept() -> None:
    sdfg = nest(keep(dace.AllocationLifetime.Scope), {"n": "m", "other": "k"})
    assert sdfg_signature(sdfg, sdfg.to_json()).memory_symbols == ()


@pytest.mark.parametrize("storage", [dace.StorageType.CPU_Heap, dace.StorageType.Default])
def test_external_memory_is_a_workspace(storage: dace.StorageType) -> None:
    sdfg = nest(keep(dace.AllocationLifetime.External, storage), {"n": "m", "other": "k"})
    signature = sdfg_signature(sdfg, sdfg.to_json())
    assert signature.memory_symbols == ("m",)
    assert [(workspace.storage, workspace.device) for workspace in signature.workspaces] == [("CPU_Heap", "cpu")]


def test_symbols_of_initialisation_code_are_kept() -> None:
    sdfg = nest(keep(dace.AllocationLifetime.Scope), {"n": "m", "other": "k"})
    sdfg.append_init_code("prepare(k);")
    assert sdfg_signature(sdfg, sdfg.to_json()).memory_symbols == ("k",)


@pytest.mark.parametrize("in_tasklet", [True, False])
def test_names_in_initialisation_code_of_a_nested_sdfg_are_those_of_the_outermost(in_tasklet: bool) -> None:
    """DaCe writes all initialisation code into one function, as it is."""
    sdfg = nest(inner := keep(dace.AllocationLifetime.Scope), {"n": "m", "other": "n"})
    if in_tasklet:
        inner.start_state.add_tasklet("kept", {}, {}, "", dace.Language.CPP, code_init="prepare(n);")
    else:
        inner.append_init_code("prepare(n);")
    assert sdfg_signature(sdfg, sdfg.to_json()).memory_symbols == ("n",)


# --- Devices and access -----------------------------------------------------------------------------------------------


def test_memory_of_a_gpu_is_on_the_gpu_of_this_machine() -> None:
    sdfg = dace.SDFG("prog")
    sdfg.add_array("x", [1], dace.float64, storage=dace.StorageType.GPU_Global)
    sdfg.add_array("y", [1], dace.float64)
    signature = sdfg_signature(sdfg, sdfg.to_json(), gpu="rocm")
    devices = {item.name: item.device for item in signature.arguments if isinstance(item, ArrayArgument)}
    assert devices == {"x": "rocm", "y": "cpu"}
    assert signature.device == "rocm"


def test_access_is_that_of_the_whole_sdfg() -> None:
    sdfg = dace.SDFG("prog")
    for name in ("read", "written", "both", "neither"):
        sdfg.add_array(name, [1], dace.float64)
    state = sdfg.add_state()
    both = state.add_access("both")
    state.add_nedge(state.add_read("read"), both, dace.Memlet("read[0]"))
    state.add_nedge(both, state.add_write("written"), dace.Memlet("both[0]"))
    signature = sdfg_signature(sdfg, sdfg.to_json())
    access = {item.name: item.access for item in signature.arguments if isinstance(item, ArrayArgument)}
    assert access == {"read": "read", "written": "write", "both": "readwrite", "neither": "none"}


def test_control_flow_is_looked_into() -> None:
    sdfg = dace.SDFG("prog")
    sdfg.add_symbol("m", dace.int32)
    block = dace.sdfg.state.ConditionalBlock("block")
    sdfg.add_node(block)
    region = dace.sdfg.state.ControlFlowRegion("region", sdfg=sdfg)
    block.add_branch(dace.sdfg.state.CodeBlock("m > 0"), region)
    state = region.add_state()
    state.add_nested_sdfg(keep(dace.AllocationLifetime.External), {}, {}, {"n": "m", "other": "m"})
    state.add_mapped_tasklet("use", {"i": "0:1"}, {}, "", {}, schedule=dace.ScheduleType.GPU_Device)
    signature = sdfg_signature(sdfg, sdfg.to_json())
    assert signature.memory_symbols == ("m",)
    assert len(signature.workspaces) == 1
    assert signature.device == "cuda"
