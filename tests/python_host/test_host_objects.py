"""The Python host and the objects that it is given: how it reads them, recognises them, and lets them go."""

from __future__ import annotations

import array
import faulthandler
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gtstub import _host
from gtstub.signature.model import Axis, Device, Workspace
from gtstub.toolchain.compiler import Toolchain
from tests.support.allocations import growth, held, needs_counts, needs_frees
from tests.support.hosting import (
    EDGES,
    EK,
    LEVELS,
    PROGRAM,
    SDFG,
    Bound,
    check_refused,
    domain,
    edge_field,
    good_arguments,
    run_script,
)
from tests.support.sdfg_libraries import build_null_library
from tests.support.signatures import EDGE, K, field, program, scalar, sdfg, symbol
from tests.support.signatures import array as array_argument
from tests.support.stubs import build_stub

pytestmark = pytest.mark.sanitizer


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Bound:
    return Bound(tmp_path_factory.mktemp("objects"), toolchain)


@pytest.fixture(autouse=True)
def clean(bound: Bound) -> Iterator[None]:
    yield
    bound.recorder.clear()


def call(bound: Bound, program: _host.Program | None = None, **changed: Any) -> dict[str, Any]:
    """A good call but for `changed`; returns what the SDFG got, and leaves that alone on record."""
    bound.recorder.clear()
    (program or bound.program)(**{**good_arguments(), **changed})
    return bound.last()


def address(ndarray: Any) -> int:
    return int(ndarray.__array_interface__["data"][0])


# --- Reading ----------------------------------------------------------------------------------------------------------


class Gt4pyFields:
    """Makes fields of gt4py; a domain may be shared."""

    def __init__(self) -> None:
        common = pytest.importorskip("gt4py.next.common")
        self._common = common
        self._dims = (common.Dimension("Edge"), common.Dimension("K", kind=common.DimensionKind.VERTICAL))
        self._type = pytest.importorskip("gt4py.next.embedded.nd_array_field").NumPyArrayField

    def domain(self, *ranges: tuple[Any, Any]) -> Any:
        return self._common.domain(dict(zip(self._dims, ranges, strict=True)))

    def field(self, ndarray: Any, on: Any = None) -> Any:
        return self._type(self.domain((0, EDGES), (0, LEVELS)) if on is None else on, ndarray)


@pytest.fixture(scope="module")
def gt4py() -> Gt4pyFields:
    return Gt4pyFields()


def test_a_field_of_gt4py_is_read_with_its_origin(bound: Bound, gt4py: Gt4pyFields) -> None:
    memory = np.zeros((EDGES, LEVELS), order="F")
    got = call(bound, vn=gt4py.field(memory, gt4py.domain((-2, EDGES - 2), (0, LEVELS))))
    assert got["vn"] == address(memory)
    assert (got["__vn_Edge_range_0"], got["__vn_Edge_range_1"]) == (-2, EDGES - 2)
    assert (got["__vn_Edge_stride"], got["__vn_K_stride"]) == (1, EDGES)


def test_a_field_of_gt4py_must_be_finite(bound: Bound, gt4py: Gt4pyFields) -> None:
    memory = np.zeros((EDGES, LEVELS))
    call(bound, vn=gt4py.field(memory))
    with pytest.raises(ValueError) as caught:
        call(bound, vn=gt4py.field(memory, gt4py.domain((0, EDGES), (None, None))))
    message = "Argument 'vn' of program 'host' must have a finite domain, but it is unbounded on axis 1 ('K')."
    assert str(caught.value) == message


def test_new_fields_on_one_domain_and_on_new_domains(bound: Bound, gt4py: Gt4pyFields) -> None:
    shared = gt4py.domain((4, 4 + EDGES), (0, LEVELS))
    for start, on in ((0, None), (0, None), (4, shared), (4, shared), (0, None), (4, shared)):
        memory = np.zeros((EDGES, LEVELS))
        got = call(bound, vn=gt4py.field(memory, on))
        assert (got["vn"], got["__vn_Edge_range_0"], got["__vn_Edge_range_1"]) == (
            address(memory),
            start,
            start + EDGES,
        )


def test_negative_strides_lead_to_the_right_element(bound: Bound, gt4py: Gt4pyFields) -> None:
    memory = np.arange(float(EDGES * LEVELS)).reshape(EDGES, LEVELS)
    for view in (memory[::-1], memory[:, ::-1], memory[::-1, ::-1]):
        for argument in (view, edge_field(view), gt4py.field(view)):
            got = call(bound, vn=argument)
            assert got["vn"] == address(view)
            assert (got["__vn_Edge_stride"], got["__vn_K_stride"]) == tuple(stride // 8 for stride in view.strides)
    assert address(memory[::-1]) != address(memory)


def test_an_array_without_a_domain_starts_at_zero(bound: Bound) -> None:
    memory = np.zeros((EDGES, LEVELS))
    for argument in (memory, memory.view(np.matrix)):
        got = call(bound, vn=argument)
        assert (got["vn"], got["__vn_Edge_range_0"], got["__vn_Edge_range_1"]) == (address(memory), 0, EDGES)


class PublicField:
    """A field that makes its array when it is asked for it."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self.domain = EK

    @property
    def ndarray(self) -> Any:
        return self._memory[:]


class PandasLike:
    """It has an `_ndarray`, but no domain: it is an array itself."""

    _ndarray = "not for us"

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def __dlpack__(self) -> object:
        return self._memory.__dlpack__()


class DLPack:
    """An array of another library. Older ones do not know the keyword."""

    def __init__(self, memory: Any, *, versioned: bool) -> None:
        self._memory = memory
        if versioned:
            self.__dlpack__ = memory.__dlpack__
        else:
            self.__dlpack__ = lambda: memory.__dlpack__()


@pytest.mark.parametrize(
    "wrap",
    [
        PublicField,
        PandasLike,
        lambda memory: DLPack(memory, versioned=True),
        lambda memory: DLPack(memory, versioned=False),
        memoryview,
    ],
    ids=["public", "pandas", "dlpack 1", "dlpack 0", "buffer"],
)
@pytest.mark.parametrize("index", [np.s_[:], np.s_[::-1, ::-1], np.s_[:, ::-1]], ids=["plain", "reversed", "one axis"])
def test_arrays_of_other_libraries_are_read(bound: Bound, wrap: Callable[[Any], Any], index: Any) -> None:
    memory = np.zeros((EDGES, LEVELS))[index]
    before = sys.getrefcount(memory)
    argument = wrap(memory)
    got = call(bound, vn=argument, out=wrap(np.zeros((EDGES, LEVELS))))
    assert got["vn"] == address(memory)
    assert (got["__vn_Edge_stride"], got["__vn_K_stride"]) == tuple(stride // 8 for stride in memory.strides)
    for _ in range(10):
        call(bound, vn=argument)
    del argument
    gc.collect()
    assert sys.getrefcount(memory) == before


def test_the_buffer_protocol_knows_every_format_that_is_a_dtype(bound: Bound) -> None:
    floats = array.array("f", [0.0] * LEVELS)
    got = call(bound, x=(floats, (3, 1.0)))
    assert (got["x_0"], got["__x_0_K_stride"]) == (floats.buffer_info()[0], 1)
    floats.append(1.0)  # not exported any more
    check_refused(
        bound,
        TypeError,
        "Argument 'x[0]' of program 'host' must have dtype 'float32', not 'float64'.",
        x=(array.array("d", [0.0] * LEVELS), (3, 1.0)),
    )


class Temporary:
    """Makes a new array each time, and notes how many calls the SDFG had got when each of them died."""

    def __init__(self, bound: Bound, memory: Any) -> None:
        self._bound = bound
        self._memory = memory
        self.domain = EK
        self.deaths: list[int] = []

    def _make(self) -> Any:
        ndarray = self._memory[:]
        weakref.finalize(ndarray, lambda: self.deaths.append(len(self._bound.recorder.calls())))
        return ndarray

    ndarray = property(_make)

    def keys(self) -> None: ...

    def __getitem__(self, name: str) -> Any:
        return self._make()


def test_an_array_that_was_made_for_the_call_lives_until_the_sdfg_has_run(bound: Bound) -> None:
    vn = Temporary(bound, np.zeros((EDGES, LEVELS)))
    provider = Temporary(bound, np.zeros((EDGES, 2), np.int32))
    call(bound, vn=vn, offset_provider=provider)
    assert vn.deaths == [1]
    assert provider.deaths == [1]


class Cuda:
    """An array of device memory; nothing ever looks at the memory."""

    def __init__(self, **interface: Any) -> None:
        good = {"shape": (EDGES, LEVELS), "typestr": "<f8", "data": (4096, False), "strides": None, "version": 3}
        self.__cuda_array_interface__ = {**good, **interface}


def bind_gpu_program(folder: Path, toolchain: Toolchain, device: Device) -> Bound:
    return Bound(
        folder,
        toolchain,
        sdfg(
            array_argument("out", Axis(), Axis(), device=device, access="write"),
            array_argument("vn", Axis(), Axis(), device=device),
            symbol("__vn_Edge_stride", ("vn", 0, "stride")),
            symbol("__vn_K_stride", ("vn", 1, "stride")),
            name="gpu",
            device=device,
            workspaces=(Workspace("GPU_Global", device),),
        ),
        program("gpu", vn=field(EDGE, K), out=field(EDGE, K)),
    )


@pytest.fixture(scope="module")
def on_gpu(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Bound:
    return bind_gpu_program(tmp_path_factory.mktemp("gpu"), toolchain, "cuda")


def test_rocm_has_the_same_interface(tmp_path: Path, toolchain: Toolchain) -> None:
    on_rocm = bind_gpu_program(tmp_path, toolchain, "rocm")
    on_rocm.program(Cuda(), Cuda())
    assert on_rocm.last() == {"out": 4096, "vn": 4096, "__vn_Edge_stride": LEVELS, "__vn_K_stride": 1}
    with pytest.raises(ValueError) as caught:
        on_rocm.program(np.zeros((EDGES, LEVELS)), Cuda())
    assert str(caught.value) == "Argument 'vn' of program 'gpu' must be on device 'rocm', not on 'cpu'."


def test_device_memory_is_read_by_its_interface(on_gpu: Bound) -> None:
    call = on_gpu.program
    call(Cuda(), Cuda())
    assert on_gpu.last() == {"out": 4096, "vn": 4096, "__vn_Edge_stride": LEVELS, "__vn_K_stride": 1}
    call(Cuda(strides=(8, EDGES * 8), data=(8192, True)), Cuda())
    assert on_gpu.last() == {"out": 4096, "vn": 8192, "__vn_Edge_stride": 1, "__vn_K_stride": EDGES}
    call(edge_field(Cuda(strides=(-24, -8))), Cuda())
    assert on_gpu.last() == {"out": 4096, "vn": 4096, "__vn_Edge_stride": -3, "__vn_K_stride": -1}


@pytest.mark.parametrize(
    ("error", "argument", "message"),
    [
        (ValueError, np.zeros((EDGES, LEVELS)), "must be on device 'cuda', not on 'cpu'."),
        (TypeError, Cuda(typestr="<f4"), "must have dtype 'float64', not 'float32'."),
        (TypeError, Cuda(typestr=">f8"), "must have dtype 'float64', not '>f8'."),
        (TypeError, Cuda(typestr="<c16"), "must have dtype 'float64', not '<c16'."),
        (TypeError, Cuda(shape=(1,) * 9), "must have 2 dimensions ('Edge', 'K'), not 9."),
        (TypeError, Cuda(shape=[1, 1]), "has a '__cuda_array_interface__' that gtstub cannot read."),
        (TypeError, Cuda(strides=(1,)), "has a '__cuda_array_interface__' that gtstub cannot read."),
        (TypeError, Cuda(data=4096), "has a '__cuda_array_interface__' that gtstub cannot read."),
        (
            ValueError,
            Cuda(strides=(24, 4)),
            "has a stride of 4 bytes on axis 1, which is not a multiple of its element size 8.",
        ),
    ],
)
def test_device_arrays_that_do_not_fit_are_refused(
    on_gpu: Bound, error: type[Exception], argument: Any, message: str
) -> None:
    on_gpu.program(Cuda(), Cuda())
    calls = len(on_gpu.recorder.calls())
    with pytest.raises(error) as caught:
        on_gpu.program(argument, Cuda())
    assert str(caught.value) == f"Argument 'vn' of program 'gpu' {message}"
    with pytest.raises(ValueError) as caught:
        on_gpu.program(Cuda(), Cuda(data=(4096, True)))
    assert str(caught.value) == "Argument 'out' of program 'gpu' is written by the program and must not be read-only."
    assert len(on_gpu.recorder.calls()) == calls


def read_only(memory: Any) -> Any:
    memory.flags.writeable = False
    return memory


class NotDLPack:
    def __dlpack__(self) -> object:
        return 1


UNALIGNED = np.zeros(EDGES * LEVELS * 8 + 1, np.uint8)[1:].view(np.float64).reshape(EDGES, LEVELS)
RECORDS = np.zeros((EDGES, LEVELS), [("a", np.float64), ("b", np.float32)])
SQUARE = domain({"Edge": (0, EDGES), "K": (0, EDGES)})


@pytest.mark.parametrize(
    ("error", "changed", "message"),
    [
        (TypeError, {"vn": np.zeros((EDGES, LEVELS), np.float32)}, "'vn' must have dtype 'float64', not 'float32'."),
        (TypeError, {"vn": np.zeros((EDGES, LEVELS), ">f8")}, "'vn' must have dtype 'float64', not '>f8'."),
        (TypeError, {"vn": np.zeros((EDGES, LEVELS), complex)}, "'vn' must have dtype 'float64', not 'complex128'."),
        (TypeError, {"vn": np.zeros((EDGES, LEVELS), object)}, "'vn' must have dtype 'float64', not 'object'."),
        (TypeError, {"vn": memoryview(bytes(8))}, "'vn' must have dtype 'float64', not 'uint8'."),
        (TypeError, {"vn": NotDLPack()}, "'vn' has a '__dlpack__' that gtstub cannot read."),
        (TypeError, {"vn": np.zeros(EDGES)}, "'vn' must have 2 dimensions ('Edge', 'K'), not 1."),
        (TypeError, {"vn": np.zeros((1,) * 9)}, "'vn' must have 2 dimensions ('Edge', 'K'), not 9."),
        (
            TypeError,
            {"vn": edge_field(on=domain({"K": (0, EDGES), "Edge": (0, LEVELS)}))},
            "'vn' must have dimension 'Edge' on axis 0, not 'K'.",
        ),
        (
            TypeError,
            {"vn": edge_field(on=domain({"Edge": (0, EDGES), "Koff": (0, LEVELS)}))},
            "'vn' must have dimension 'K' on axis 1, not 'Koff'.",
        ),
        (
            TypeError,
            {"vn": edge_field(np.zeros(EDGES))},
            "'vn' has a domain of 2 dimensions, but an array of 1.",
        ),
        (
            ValueError,
            {"vn": edge_field(np.zeros((EDGES, 1)))},
            f"'vn' has a domain of size {LEVELS} on axis 1 ('K'), but an array of size 1.",
        ),
        (
            ValueError,
            {"vn": edge_field(on=domain({"Edge": (0, EDGES), "K": (0, "infinity")}))},
            "'vn' must have a finite domain, but it is unbounded on axis 1 ('K').",
        ),
        (
            TypeError,
            {"vn": edge_field(on=type(EK)([*EK.dims], EK.ranges))},  # type: ignore[arg-type]
            "'vn' has a domain that is not a tuple of at most 6 dimensions and their ranges.",
        ),
        (
            ValueError,
            {"out": read_only(np.zeros((EDGES, LEVELS)))},
            "'out' is written by the program and must not be read-only.",
        ),
        (
            ValueError,
            {"out": memoryview(bytes(EDGES * LEVELS * 8)).cast("d", (EDGES, LEVELS))},
            "'out' is written by the program and must not be read-only.",
        ),
        (
            ValueError,
            {"out": DLPack(read_only(np.zeros((EDGES, LEVELS))), versioned=True)},
            "'out' is written by the program and must not be read-only.",
        ),
        (ValueError, {"vn": Cuda()}, "'vn' must be on device 'cpu', not on 'cuda'."),
        (ValueError, {"vn": UNALIGNED}, "'vn' must be aligned to its element size 8."),
        (
            ValueError,
            {"vn": RECORDS["a"]},
            f"'vn' has a stride of {LEVELS * 12} bytes on axis 0, which is not a multiple of its element size 8.",
        ),
        (
            ValueError,
            {"vn": edge_field(on=domain({"Edge": (2**40, 2**40 + EDGES), "K": (0, LEVELS)}))},
            f"'vn' has start {2**40} on axis 0 ('Edge'), which does not fit 'int32'.",
        ),
        (
            ValueError,
            {"offset_provider": {"E2V": np.zeros((EDGES, 3), np.int32)}},
            "'E2V' must have size 2 on axis 1 ('E2V'), not 3.",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    bound: Bound, error: type[Exception], changed: dict[str, Any], message: str
) -> None:
    name, _, rest = message.partition("' ")
    check_refused(bound, error, f"Argument {name}' of program 'host' {rest}", **changed)


def test_an_error_in_a_fields_own_code_is_raised_as_it_is(bound: Bound) -> None:
    class Broken:
        @property
        def _domain(self) -> object:
            raise ZeroDivisionError("mine")

    call(bound)
    with pytest.raises(ZeroDivisionError, match=r"^mine$"):
        call(bound, vn=Broken())
    call(bound)


def test_a_field_that_calls_its_own_program_is_refused(bound: Bound) -> None:
    class Calling:
        _ndarray = np.zeros((EDGES, LEVELS))

        @property
        def _domain(self) -> object:
            call(bound)
            return EK

    with pytest.raises(RuntimeError) as caught:
        call(bound, vn=Calling())
    assert str(caught.value) == "Program 'host' was called while it was reading the arguments of another call."
    call(bound)


# --- Recognising ------------------------------------------------------------------------------------------------------


class Counting:
    """A field that counts how often it is read."""

    def __init__(self, memory: Any = None) -> None:
        self.memory = np.zeros((EDGES, LEVELS)) if memory is None else memory
        self.reads = 0

    _domain = EK

    @property
    def _ndarray(self) -> Any:
        self.reads += 1
        return self.memory


class Slotted:
    """Without a place for weak references."""

    __slots__ = ("memory", "reads")
    _domain = EK

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.reads = 0

    @property
    def _ndarray(self) -> Any:
        self.reads += 1
        return self.memory


def test_a_field_is_read_once(bound: Bound) -> None:
    vn = Counting()
    for _ in range(5):
        assert call(bound, vn=vn)["vn"] == address(vn.memory)
    assert vn.reads <= 2


def test_two_fields_that_swap_are_read_once_each(bound: Bound) -> None:
    now, new = Counting(), Counting()
    for _ in range(5):
        assert call(bound, vn=now)["vn"] == address(now.memory)
        now, new = new, now
    assert now.reads <= 2
    assert new.reads <= 2


def test_a_third_field_takes_the_place_of_the_older_one(bound: Bound) -> None:
    fields = [Counting() for _ in range(3)]
    for _ in range(4):
        for vn in fields:
            assert call(bound, vn=vn)["vn"] == address(vn.memory)


def test_one_object_may_be_several_arguments(bound: Bound) -> None:
    both = edge_field()
    got = call(bound, vn=both, out=both)
    assert got["vn"] == got["out"] == address(both._ndarray)


def test_an_object_that_has_no_weak_references_is_read_at_each_call(bound: Bound) -> None:
    vn = Slotted(np.zeros((EDGES, LEVELS)))
    for _ in range(3):
        assert call(bound, vn=vn)["vn"] == address(vn.memory)
        vn.memory = np.zeros((EDGES, LEVELS))
    assert vn.reads == 3


@needs_frees
def test_a_new_object_at_the_address_of_a_dead_one_is_not_taken_for_it(bound: Bound) -> None:
    memory = np.zeros((EDGES, LEVELS))
    reused = 0
    for _ in range(20):
        vn = edge_field()
        old = id(vn)
        for _ in range(3):
            call(bound, vn=vn)
        del vn
        others = [edge_field(memory) for _ in range(1000)]
        for again in (other for other in others if id(other) == old):
            assert call(bound, vn=again)["vn"] == address(memory)
            reused += 1
    assert reused > 0


def test_none_is_not_taken_for_a_field_that_has_died(bound: Bound) -> None:
    table = np.zeros((EDGES, 2), np.int32)
    floats = np.zeros(LEVELS, np.float32)
    vn = edge_field()
    for _ in range(3):
        call(bound, vn=vn, x=(floats, (1, 1.0)), offset_provider={"E2V": table})
    del vn, floats, table
    for changed, name in (
        ({"vn": None}, "vn"),
        ({"x": (None, (1, 1.0))}, "x[0]"),
        ({"offset_provider": {"E2V": None}}, "E2V"),
    ):
        with pytest.raises(TypeError) as caught:
            call(bound, **changed)
        assert str(caught.value) == f"Argument '{name}' of program 'host' must be a field, not 'NoneType'."


def test_a_field_that_was_refused_is_refused_again(bound: Bound) -> None:
    good, bad = edge_field(), edge_field(np.zeros((EDGES, LEVELS), np.float32))
    for _ in range(3):
        call(bound, vn=good)
        with pytest.raises(TypeError):
            call(bound, vn=bad)


def set_strides(ndarray: Any) -> None:
    ndarray.strides = (ndarray.strides[0], 0)


def replace_ndarray(field: Any) -> None:
    object.__setattr__(field, "_ndarray", np.zeros((EDGES, LEVELS)))


@pytest.mark.filterwarnings("ignore:Setting the strides:DeprecationWarning")
@pytest.mark.parametrize(
    ("make", "change"), [(lambda: np.zeros((EDGES, LEVELS)), set_strides), (edge_field, replace_ndarray)]
)
def test_debugging_notices_an_array_that_was_changed_in_place(
    bound: Bound, monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any], change: Callable[[Any], None]
) -> None:
    monkeypatch.setenv("GTSTUB_DEBUG", "1")
    program = bound.load()
    vn, other = make(), edge_field()
    for _ in range(3):
        call(bound, program, vn=vn)
        call(bound, program, vn=other)
    change(vn)
    with pytest.raises(ValueError) as caught:
        call(bound, program, vn=vn)
    assert str(caught.value) == (
        "Argument 'vn' of program 'host' was changed in place (shape, strides or memory) since an earlier call."
    )
    assert bound.recorder.calls() == []
    call(bound, program, vn=other)


# --- Letting go -------------------------------------------------------------------------------------------------------


def test_a_program_keeps_no_field_alive(bound: Bound) -> None:
    vn, table = edge_field(), np.zeros((EDGES, 2), np.int32)
    floats = np.zeros(LEVELS, np.float32)
    watched = [weakref.ref(vn), weakref.ref(vn._ndarray), weakref.ref(table), weakref.ref(floats)]
    for _ in range(3):
        call(bound, vn=vn, x=(floats, (1, 1.0)), offset_provider={"E2V": table})
    del vn, table, floats
    assert [reference() for reference in watched] == [None] * 4


def test_reference_counts_do_not_change(bound: Bound) -> None:
    good = good_arguments()
    watched = [*good.values(), *good["x"], good["x"][1][1], good["vn"]._ndarray, good["offset_provider"]["E2V"]]
    watched = [item for item in watched if not isinstance(item, (bool, int))]
    bound.program(**good)
    bound.program(**good)
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(1000):
        bound.program(**good)
        with pytest.raises(TypeError):
            bound.program(**{**good, "n": 1.0})
        with pytest.raises(TypeError):
            bound.program(**good, y=1)
        bound.recorder.clear()
    assert [sys.getrefcount(item) for item in watched] == before


@needs_frees
@needs_counts
def test_memory_is_flat_over_a_million_calls(tmp_path: Path, toolchain: Toolchain) -> None:
    """The same fields, new fields, and objects that are read in every other way."""
    program = _host.load(build_stub(SDFG, PROGRAM, tmp_path, toolchain), build_null_library(SDFG, tmp_path))
    good = good_arguments()
    memory = np.zeros((EDGES, LEVELS))
    makers: list[Callable[[], Any]] = [
        lambda: edge_field(memory),
        lambda: edge_field(memory, domain({"Edge": (0, EDGES), "K": (0, LEVELS)})),
        lambda: memory[:],
        lambda: memoryview(memory),
        lambda: DLPack(memory, versioned=True),
        lambda: PublicField(memory),
    ]

    def run(rounds: int) -> None:
        for _ in range(rounds):
            for make in makers:
                vn = make()
                program(**{**good, "vn": vn})
                program(**{**good, "vn": vn})
            for _ in range(88):
                program(**good)

    run(300)
    before = held()
    run(10_000)
    assert growth(before) < 10_000  # a hundredth of the calls


def test_unloading_ends_the_handle(bound: Bound) -> None:
    def handles_of(function: str) -> list[int]:
        return [record.handle for record in bound.recorder.records() if record.function == function]

    program = bound.load()
    call(bound, program)
    (handle,) = handles_of("program")
    before = handles_of("exit")  # of programs of other tests, which may be collected at any time
    del program
    assert handles_of("exit").count(handle) == before.count(handle) + 1


UNLOADING = """
import gc, sys
import numpy as np
from gtstub import _host
from tests.support.hosting import EK, good_arguments

gc.disable()
memory = np.zeros(1024, np.uint8)
memory = memory[-memory.ctypes.data % 256 :][:256]
namespace = {"LEVEL": 1}
arguments = good_arguments()
watched = [memory, namespace, print, EK, *map(sys.intern, ("E2V", "LEVEL", "vn"))]
before = [sys.getrefcount(item) for item in watched]
for _ in range(20):
    program = _host.load(*sys.argv[1:3])
    program.set_workspace("CPU_Heap", memory)
    program.set_metrics(namespace, "LEVEL", 10, print)
    program(**arguments)
    del program
after = [sys.getrefcount(item) for item in watched]
print(after == before)
"""


def test_unloading_lets_go_of_everything(bound: Bound) -> None:
    """In a process where nobody else has what is counted: functions, and names that the interpreter shares."""
    assert run_script(UNLOADING, bound.stub, bound.library) == "True\n"


# --- Threads, forks, the end ------------------------------------------------------------------------------------------


@pytest.fixture
def no_deadlock() -> Iterator[None]:
    """A deadlock that holds the GIL can be ended by C code only."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def in_threads(count: int, function: Callable[[int], None]) -> None:
    errors: list[BaseException] = []

    def run(i: int) -> None:
        try:
            function(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.usefixtures("no_deadlock")
def test_one_call_of_a_program_runs_at_a_time(bound: Bound) -> None:
    bound.recorder.behaviour.delay = 500
    bound.recorder.behaviour.overlaps = 0
    fields = [edge_field() for _ in range(4)]

    def run(i: int) -> None:
        for _ in range(25):
            bound.program(**{**good_arguments(), "vn": fields[i], "n": i})

    try:
        in_threads(4, run)
    finally:
        bound.recorder.behaviour.delay = 0
    calls = bound.recorder.calls()
    assert len(calls) == 100
    assert bound.recorder.behaviour.overlaps == 0
    assert all(got["vn"] == address(fields[got["n"]]._ndarray) for got in calls)  # type: ignore[index]


@pytest.mark.usefixtures("no_deadlock")
def test_two_programs_run_at_once_because_the_gil_is_released(bound: Bound) -> None:
    """The first one runs until the other one does, or for longer than that takes on any machine."""
    programs = [bound.load(), bound.load()]
    behaviour = bound.recorder.behaviour
    behaviour.delay, behaviour.until_overlap, behaviour.overlaps = 30_000_000, True, 0
    try:
        in_threads(2, lambda i: programs[i](**good_arguments()))
    finally:
        behaviour.delay, behaviour.until_overlap = 0, False
    assert behaviour.overlaps == 1


SCRIPT = """
import os, sys, threading
from tests.support.hosting import good_arguments
from gtstub import _host
program = _host.load(sys.argv[1], sys.argv[2])
good = good_arguments()
program(**good)
"""


def test_a_forked_child_is_told_to_load_again(bound: Bound) -> None:
    text = f"""{SCRIPT}
child = os.fork()
if child == 0:
    try:
        program(**good)
    except RuntimeError as error:
        print(error, flush=True)
    again = _host.load(sys.argv[1], sys.argv[2])
    print(again(**good), flush=True)
    del program, again
    sys.exit(0)
_, status = os.waitpid(child, 0)
program(**good)
print(status)
"""
    assert run_script(text, bound.stub, bound.library).splitlines() == [
        "Program 'host' was loaded before this process was forked; load it again in the child.",
        "None",
        "0",
    ]


ENDINGS = {
    "as a global": "",
    "in a cycle": "cycle = [program]; cycle.append(cycle); del program",
    "in an exit function": "import atexit; atexit.register(lambda: program(**good))",
    "called by a finaliser": """
class Last:
    def __del__(self, program=program, good=good):
        program(**good)
import builtins
builtins.last = Last()
""",
    "in a thread that runs on": """
has_called = threading.Event()
def forever():
    while True:
        program(**good)
        has_called.set()
threading.Thread(target=forever, daemon=True).start()
has_called.wait()
""",
    "in a cycle with its metrics": "program.set_metrics(globals(), 'LEVEL', 0, print); LEVEL = -1; program(**good)",
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_the_interpreter_ends_well_with_a_program(bound: Bound, ending: str) -> None:
    assert run_script(f"{SCRIPT}\n{ending}\nprint('done')", bound.stub, bound.library) == "done\n"


FINALIZER = """
import os, sys, threading, time
from pathlib import Path
from gtstub import _host
from tests.support.hosting import good_arguments
from tests.support.sdfg_libraries import Recorder

program, arguments = _host.load(*sys.argv[1:3]), good_arguments()
behaviour = Recorder(Path(sys.argv[2])).behaviour
behaviour.delay = 300_000_000
threading.Thread(target=lambda: program(**good_arguments()), daemon=True).start()
while behaviour.running == 0:
    time.sleep(0.001)

class Finalizer:
    def __del__(self, program=program, arguments=arguments, write=os.write, error=RuntimeError):
        try:
            program(**arguments)
        except error as caught:
            write(1, f"{caught}\\n".encode())

import builtins
builtins.last = Finalizer()
"""


def test_a_finalizer_does_not_wait_for_a_thread_that_will_never_leave(bound: Bound) -> None:
    assert run_script(FINALIZER, bound.stub, bound.library) == (
        "Program 'host' was called at the end of the interpreter, while another thread was in a call.\n"
    )


def test_numpy_need_not_be_imported(tmp_path: Path, toolchain: Toolchain) -> None:
    """Neither by the host nor for a program of scalars and buffers."""
    small = Bound(
        tmp_path,
        toolchain,
        sdfg(array_argument("x", Axis()), symbol("n"), name="small"),
        program("small", x=field(K), n=scalar("int32")),
    )
    text = """
import array, sys
from gtstub import _host
program = _host.load(sys.argv[1], sys.argv[2])
program(array.array("d", [1.0]), 3)
print("numpy" in sys.modules)
import numpy
program(numpy.zeros(2), numpy.int32(3))
"""
    assert run_script(text, small.stub, small.library) == "False\n"
