"""The Python host reads the objects that it is given: fields, arrays, their layouts and refusals."""

from __future__ import annotations

import array
import gc
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.model import Axis, Device, Workspace
from tests.support.hosting import (
    EDGES,
    EK,
    LEVELS,
    Bound,
    DLPack,
    Domain,
    PublicField,
    address,
    call,
    check_refused,
    domain,
    edge_field,
    says,
)
from tests.support.signatures import EDGE, K, field, program, sdfg, symbol
from tests.support.signatures import array as array_argument

pytestmark = pytest.mark.sanitizer


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


class PandasLike:
    """It has an `_ndarray`, but no domain: it is an array itself."""

    _ndarray = "not for us"

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def __dlpack__(self) -> object:
        return self._memory.__dlpack__()


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
        "...'float32', not 'float64'.",
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


MASKED = " is a masked array, but a program would use its masked elements too."


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
        (
            ValueError,
            np.zeros((EDGES, LEVELS)),
            "Argument 'vn' of program 'gpu' must be on device 'cuda', not on 'cpu'.",
        ),
        (TypeError, Cuda(typestr="<f4"), "...'float64', not 'float32'."),
        (TypeError, Cuda(typestr=">f8"), "...'float64', not '>f8'."),
        (TypeError, Cuda(typestr="<c16"), "...'float64', not 'complex128'."),
        (TypeError, Cuda(typestr="<c32"), "...'float64', not '<c32'."),
        (TypeError, Cuda(shape=(1,) * 9), "...2 dimensions ('Edge', 'K'), not 9."),
        (
            TypeError,
            Cuda(shape=[1, 1]),
            "Argument 'vn' of program 'gpu' has a '__cuda_array_interface__' that gtstub cannot read.",
        ),
        (TypeError, Cuda(strides=(1,)), "...that gtstub cannot read."),
        (ValueError, Cuda(data=(4097, False)), "...aligned to its element size 8."),
        (TypeError, Cuda(mask=Cuda()), f"...{MASKED}"),
        (TypeError, Cuda(data=4096), "...that gtstub cannot read."),
        (TypeError, Cuda(data=(2**70, False)), "...that gtstub cannot read."),
        (ValueError, Cuda(strides=(24, 4)), "...4 bytes on axis 1, which is not a multiple of its element size 8."),
    ],
)
def test_device_arrays_that_do_not_fit_are_refused(
    on_gpu: Bound, error: type[Exception], argument: Any, message: str
) -> None:
    on_gpu.program(Cuda(), Cuda())
    calls = len(on_gpu.recorder.calls())
    with pytest.raises(error) as caught:
        on_gpu.program(argument, Cuda())
    assert says(caught.value, message)
    with pytest.raises(ValueError, match=r"must not be read-only\.$"):
        on_gpu.program(Cuda(), Cuda(data=(4096, True)))
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
        (TypeError, {"vn": np.zeros((EDGES, LEVELS), ">f8")}, "...'float64', not '>f8'."),
        (TypeError, {"vn": np.zeros((EDGES, LEVELS), complex)}, "...'float64', not 'complex128'."),
        (TypeError, {"vn": np.zeros((EDGES, LEVELS), object)}, "...'float64', not 'object'."),
        (TypeError, {"vn": memoryview(bytes(8))}, "...'float64', not 'uint8'."),
        (TypeError, {"vn": NotDLPack()}, "'vn' has a '__dlpack__' that gtstub cannot read."),
        (TypeError, {"vn": np.zeros(EDGES)}, "'vn' must have 2 dimensions ('Edge', 'K'), not 1."),
        (TypeError, {"vn": np.zeros((1,) * 9)}, "...2 dimensions ('Edge', 'K'), not 9."),
        (
            TypeError,
            {"vn": edge_field(on=domain({"K": (0, EDGES), "Edge": (0, LEVELS)}))},
            "'vn' must have dimension 'Edge' on axis 0, not 'K'.",
        ),
        (TypeError, {"vn": edge_field(on=domain({"Edge": (0, EDGES), "Koff": (0, LEVELS)}))}, "...axis 1, not 'Koff'."),
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
            "...must not be read-only.",
        ),
        (
            ValueError,
            {"out": DLPack(read_only(np.zeros((EDGES, LEVELS))), versioned=True)},
            "...must not be read-only.",
        ),
        (ValueError, {"vn": Cuda()}, "...device 'cpu', not on 'cuda'."),
        (ValueError, {"vn": UNALIGNED}, "'vn' must be aligned to its element size 8."),
        (ValueError, {"vn": DLPack(UNALIGNED, versioned=True)}, "...aligned to its element size 8."),
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
    whole = message if message.startswith("...") else f"Argument {name}' of program 'host' {rest}"
    check_refused(bound, error, whole, **changed)


def test_an_error_in_a_fields_own_code_is_raised_as_it_is(bound: Bound) -> None:
    class Broken:
        @property
        def _domain(self) -> object:
            raise ZeroDivisionError("mine")

    call(bound)
    with pytest.raises(ZeroDivisionError, match=r"^mine$"):
        call(bound, vn=Broken())
    call(bound)


@pytest.mark.parametrize("name", ["_domain", "_ndarray", "domain", "ndarray", "__dlpack__"])
def test_an_attribute_error_of_a_property_keeps_its_text(bound: Bound, name: str) -> None:
    def broken(_: object) -> object:
        raise AttributeError("mine")

    with pytest.raises(AttributeError, match=r"^mine$"):
        call(bound, vn=type("Broken", (), {name: property(broken)})())
    call(bound)


def test_a_dimension_may_make_its_name_anew(bound: Bound) -> None:
    """The name in the message, and that of a domain which is passed again, must not be freed."""

    class Making:
        @property
        def value(self) -> str:
            return "".join(["Vertex", str(id(self))])

    dims = (Making(), Making())
    on = Domain(dims, EK.ranges)  # type: ignore[arg-type]
    message = f"Argument 'vn' of program 'host' must have dimension 'Edge' on axis 0, not '{dims[0].value}'."
    for _ in range(3):
        check_refused(bound, TypeError, message, vn=edge_field(on=on))
    with pytest.raises(TypeError) as caught:
        call(bound, vn=edge_field(np.zeros((EDGES, LEVELS, 1)), on))
    others = [f"name {number} of another text" for number in range(100)]
    with pytest.raises(TypeError) as caught:
        call(bound, vn=edge_field(on=on))
    assert (str(caught.value), len(others)) == (message, 100)


def test_masked_arrays_are_refused(bound: Bound) -> None:
    masked = np.ma.masked_less(np.zeros((EDGES, LEVELS)), 1)
    for vn in (masked, masked.filled().view(np.ma.MaskedArray), edge_field(masked)):
        check_refused(bound, TypeError, f"Argument 'vn' of program 'host'{MASKED}", vn=vn)
    check_refused(
        bound,
        TypeError,
        f"Argument 'x[1][1]' of program 'host'{MASKED}",
        x=(np.zeros(LEVELS, np.float32), (3, np.ma.masked)),
    )
    table = np.ma.zeros((EDGES, 2), np.int32)
    check_refused(bound, TypeError, f"Argument 'E2V' of program 'host'{MASKED}", offset_provider={"E2V": table})
    call(bound, vn=np.zeros((EDGES, LEVELS)).view(np.matrix))
    assert bound.last()["__vn_K_stride"] == 1, "Other classes derived from numpy's lose nothing."


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
