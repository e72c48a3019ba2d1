"""The Python host: binding of arguments, scalars, attributes of a program, and the text of each refusal."""

from __future__ import annotations

import fractions
import gc
import subprocess
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.dtypes import STATIC_DTYPES as DTYPES
from tests.support.hosting import EK, LEVELS, Bound, check_refused, domain, edge_field, good_arguments
from tests.support.signatures import program, scalar, sdfg, symbol

pytestmark = pytest.mark.sanitizer

INTEGERS = DTYPES[1:9]


@pytest.fixture(scope="module")
def scalars_program(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Bound:
    """One parameter of each dtype, called a_<dtype>."""
    names = {f"a_{dtype}": dtype for dtype in DTYPES}
    symbols = sorted((symbol(name, dtype=dtype) for name, dtype in names.items()), key=lambda symbol: symbol.name)
    return Bound(
        tmp_path_factory.mktemp("scalars"),
        toolchain,
        sdfg(*symbols, name="scalars"),
        program("scalars", **{name: scalar(dtype) for name, dtype in names.items()}),
    )


@pytest.fixture
def scalars(scalars_program: Bound) -> Iterator[Bound]:
    yield scalars_program
    scalars_program.recorder.clear()


# --- Binding ----------------------------------------------------------------------------------------------------------


def test_positional_and_keyword_arguments_mean_the_same(bound: Bound) -> None:
    good = good_arguments()
    provider = good.pop("offset_provider")
    values = tuple(good.values())
    bound.program(*values, offset_provider=provider)
    bound.program(**good, offset_provider=provider)
    bound.program(*values[:2], offset_provider=provider, flag=good["flag"], n=good["n"], x=good["x"])
    first, *others = bound.recorder.calls()
    assert others == [first, first]
    assert first["n"] == 7
    assert first["x_1_0"] == 3
    assert first["x_1_1"] == 2.5
    assert first["flag"] is True


def test_a_keyword_need_not_be_interned(bound: Bound) -> None:
    good = {"".join(list(name)): value for name, value in good_arguments().items()}
    bound.program(**good)
    assert bound.last()["n"] == 7


def test_a_call_returns_none(bound: Bound) -> None:
    call: Callable[..., object] = bound.program
    assert call(**good_arguments()) is None


def host(vn: Any, out: Any, x: Any, n: Any, flag: Any, *, offset_provider: Any) -> None:
    """What Python itself would make of the parameters of the program."""


@pytest.mark.parametrize(
    ("positional", "keywords"),
    [
        ((), {}),
        ((1,), {"offset_provider": {}}),
        ((1, 2, 3, 4), {"offset_provider": {}}),
        ((1, 2, 3), {"offset_provider": {}}),
        ((1, 2, 3, 4, 5), {}),
        ((1, 2, 3, 4, 5, 6), {}),
        ((1, 2, 3, 4, 5, 6), {"offset_provider": {}}),
        ((1, 2), {"vn": 1, "offset_provider": {}}),
        ((1, 2, 3, 4, 5), {"y": 1, "offset_provider": {}}),
        ((1, 2, 3, 4, 5), {"flag": 1, "offset_provider": {}}),
        ((), {"vn": 1, "flag": 2}),
    ],
)
def test_arguments_that_do_not_bind_are_refused_in_pythons_own_words(
    bound: Bound, positional: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    bound.program(**good_arguments())
    with pytest.raises(TypeError) as expected:
        host(*positional, **keywords)
    with pytest.raises(TypeError) as caught:
        bound.program(*positional, **keywords)
    assert str(caught.value) == str(expected.value)
    assert len(bound.recorder.calls()) == 1


def test_without_connectivities_the_offset_provider_may_be_left_out(scalars: Bound) -> None:
    values = [dtype == "bool" for dtype in DTYPES[:1]] + [1] * 10
    scalars.program(*values)
    scalars.program(*values, offset_provider={})
    first, second = scalars.recorder.calls()
    assert first == second


# --- Scalars ----------------------------------------------------------------------------------------------------------


def call_with(scalars: Bound, dtype: str, value: Any) -> Any:
    """Calls with `value` for the parameter of `dtype`; returns what the SDFG got."""
    good = {f"a_{name}": True if name == "bool" else 1 for name in DTYPES}
    scalars.program(**{**good, f"a_{dtype}": value})
    return scalars.last()[f"a_{dtype}"]


class Index:
    def __index__(self) -> int:
        return 41


class IntSubclass(int): ...


class FloatSubclass(float): ...


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_reach_the_sdfg_up_to_the_limits_of_their_dtype(scalars: Bound, dtype: str) -> None:
    limits = np.iinfo(dtype)
    for value in (limits.min, 0, 1, limits.max):
        assert call_with(scalars, dtype, int(value)) == value
        assert call_with(scalars, dtype, np.dtype(dtype).type(value)) == value
        assert call_with(scalars, dtype, IntSubclass(value)) == value
    for other in (np.int8, np.uint16, np.longlong, np.uint64):
        assert call_with(scalars, dtype, other(5)) == 5
    assert call_with(scalars, dtype, Index()) == 41


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_beyond_the_limits_are_refused(scalars: Bound, dtype: str) -> None:
    limits = np.iinfo(dtype)
    call_with(scalars, dtype, 1)
    for value in (int(limits.min) - 1, int(limits.max) + 1, -(2**64), 2**64):
        with pytest.raises(ValueError) as caught:
            call_with(scalars, dtype, value)
        assert (
            str(caught.value) == f"Argument 'a_{dtype}' of program 'scalars' is {value}, which does not fit '{dtype}'."
        )
    with pytest.raises(ValueError) as caught:
        call_with(scalars, dtype, 10**5000)
    assert "is an integer of too many digits, which does not fit" in str(caught.value)
    assert len(scalars.recorder.calls()) == 1


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    ("value", "type_name"),
    [
        (1.5, "float"),
        (np.float32(0.5), "numpy.float32"),
        (float("inf"), "float"),
        (np.float64("nan"), "numpy.float64"),
        (np.longdouble(1) + np.finfo(np.longdouble).eps, "numpy.longdouble"),
        (1 + 0j, "complex"),
        (None, "NoneType"),
        ("1", "str"),
        (np.array(1), "numpy.ndarray"),
        (np.array(1.0), "numpy.ndarray"),
        (np.array([1]), "numpy.ndarray"),
        ((1,), "tuple"),
    ],
)
def test_what_is_no_integer_is_refused(scalars: Bound, dtype: str, value: Any, type_name: str) -> None:
    call_with(scalars, dtype, 1)
    with pytest.raises(TypeError) as caught:
        call_with(scalars, dtype, value)
    article = "a" if dtype.startswith("u") else "an"
    assert (
        str(caught.value)
        == f"Argument 'a_{dtype}' of program 'scalars' must be {article} '{dtype}', not '{type_name}'."
    )
    assert len(scalars.recorder.calls()) == 1


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
def test_numbers_of_other_types_that_an_integer_holds(scalars: Bound, dtype: str) -> None:
    for value in (
        True,
        np.bool_(True),
        False,
        1.0,
        -0.0,
        np.float64(1),
        np.float32(0),
        np.float16(1),
        FloatSubclass(1),
    ):
        found = call_with(scalars, dtype, value)
        assert found == value
        assert isinstance(found, bool) == (dtype == "bool")
    highest = 1 if dtype == "bool" else int(np.iinfo(dtype).max)
    assert call_with(scalars, dtype, np.longdouble(highest)) == highest
    for value in (float(highest + 1), np.float64(highest + 1), -1e30):
        with pytest.raises(ValueError, match=rf"^Argument 'a_{dtype}' of .* is {int(value)}, which does not fit"):
            call_with(scalars, dtype, value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_reach_the_sdfg_as_floats(scalars: Bound, dtype: str) -> None:
    exact = (0.5, -2, np.float32(0.5), np.float64(0.25), np.int32(3), np.uint64(9), np.float16(1.5), FloatSubclass(4.5))
    assert [call_with(scalars, dtype, value) for value in (True, np.bool_(True), False)] == [1, 1, 0]
    for value in (*exact, float("inf"), -float("inf"), np.longdouble("inf"), IntSubclass(2)):
        assert call_with(scalars, dtype, value) == value
    assert call_with(scalars, dtype, 0.1) == np.dtype(dtype).type(0.1)
    assert np.isnan(call_with(scalars, dtype, float("nan")))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("value", "type_name"),
    [
        (None, "NoneType"),
        ("1", "str"),
        (1j, "complex"),
        (fractions.Fraction(1, 2), "Fraction"),
        (np.array(1.0), "numpy.ndarray"),
        (np.timedelta64(1, "s"), "numpy.timedelta64"),
        (np.datetime64(1, "s"), "numpy.datetime64"),
    ],
)
def test_what_is_no_number_is_refused(scalars: Bound, dtype: str, value: Any, type_name: str) -> None:
    call_with(scalars, dtype, 1)
    with pytest.raises(TypeError) as caught:
        call_with(scalars, dtype, value)
    assert str(caught.value) == f"Argument 'a_{dtype}' of program 'scalars' must be a '{dtype}', not '{type_name}'."


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        ("float32", 1e300, "1e+300"),
        ("float32", -1e300, "-1e+300"),
        ("float32", 10**50, "1e+50"),
        ("float64", 10**400, str(10**400)[:100]),
        ("float64", np.longdouble("1e400"), "a number above 1.8e308"),
    ],
)
def test_numbers_that_would_become_infinite_are_refused(scalars: Bound, dtype: str, value: Any, text: str) -> None:
    call_with(scalars, dtype, 1)
    with pytest.raises(ValueError) as caught:
        call_with(scalars, dtype, value)
    assert str(caught.value) == f"Argument 'a_{dtype}' of program 'scalars' is {text}, which does not fit '{dtype}'."
    assert len(scalars.recorder.calls()) == 1


@pytest.mark.parametrize("value", [True, False, np.bool_(True), np.bool_(False)])
def test_bools_reach_the_sdfg(scalars: Bound, value: Any) -> None:
    assert call_with(scalars, "bool", value) == value


@pytest.mark.parametrize(("value", "type_name"), [(0.5, "float"), (None, "NoneType"), ("", "str"), ([], "list")])
def test_what_is_no_bool_is_refused(scalars: Bound, value: Any, type_name: str) -> None:
    call_with(scalars, "bool", True)
    with pytest.raises(TypeError) as caught:
        call_with(scalars, "bool", value)
    assert str(caught.value) == f"Argument 'a_bool' of program 'scalars' must be a 'bool', not '{type_name}'."


def test_an_error_in_an_arguments_own_code_is_raised_as_it_is(scalars: Bound) -> None:
    class Broken:
        def __index__(self) -> int:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match=r"^mine$"):
        call_with(scalars, "int32", Broken())
    assert call_with(scalars, "int32", 5) == 5


# --- Zero-dimensional fields ------------------------------------------------------------------------------------------


class Item:
    """A zero-dimensional array of device memory, which only its own library can read."""

    __cuda_array_interface__ = types.MappingProxyType({})

    def __init__(self, value: object) -> None:
        self.value = value
        self.__cuda_array_interface__ = {"shape": (), "typestr": "<f8", "data": (64, False), "version": 3}  # type: ignore[assignment]

    def item(self) -> object:
        return self.value


@pytest.mark.parametrize("value", [np.array(4.5), np.float64(4.5), 4.5, edge_field(np.array(4.5), EK), Item(4.5)])
def test_the_element_of_a_zero_dimensional_field_is_read(bound: Bound, value: Any) -> None:
    if hasattr(value, "_domain"):
        value = type(value)(type(EK)((), ()), value._ndarray)
    bound.program(**{**good_arguments(), "x": (np.zeros(LEVELS, np.float32), (3, value))})
    assert bound.last()["x_1_1"] == 4.5


def test_a_zero_dimensional_field_is_read_at_every_call(bound: Bound) -> None:
    good = good_arguments()
    element = good["x"][1][1]
    for value in (1.5, 2.5):
        element[()] = value
        bound.program(**good)
        assert bound.last()["x_1_1"] == value


# --- Tuples, connectivities, kinds of objects -------------------------------------------------------------------------


class Pair(NamedTuple):
    first: Any
    second: Any


def test_a_named_tuple_is_a_tuple(bound: Bound) -> None:
    x = good_arguments()["x"]
    bound.program(**{**good_arguments(), "x": Pair(x[0], Pair(*x[1]))})
    assert bound.last()["x_1_0"] == 3


class OtherMapping:
    def __init__(self, table: object) -> None:
        self._items = {"E2V": table}

    def keys(self) -> list[str]:
        return ["E2V"]

    def __getitem__(self, name: str) -> object:
        return self._items[name]


class DictSubclass(dict[str, Any]): ...


def test_any_mapping_is_an_offset_provider(bound: Bound) -> None:
    table = np.zeros((5, 2), np.int32)
    for provider in (DictSubclass(E2V=table), types.MappingProxyType({"E2V": table}), OtherMapping(table)):
        bound.program(**{**good_arguments(), "offset_provider": provider})
        assert bound.last()["gt_conn_E2V"] == table.ctypes.data


K_ARRAY = np.zeros(LEVELS, np.float32)
ZERO = np.array(2.5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"vn": None}, "Argument 'vn' of program 'host' must be a field, not 'NoneType'."),
        ({"vn": (1, 2)}, "...not 'tuple'."),
        ({"vn": "vn"}, "...not 'str'."),
        ({"vn": 1.0}, "...not 'float'."),
        ({"x": None}, "Argument 'x' of program 'host' must be a tuple of length 2, not 'NoneType'."),
        ({"x": [K_ARRAY, (3, ZERO)]}, "...not 'list'."),
        ({"x": (K_ARRAY,)}, "Argument 'x' of program 'host' must be a tuple of length 2, not of length 1."),
        ({"x": (K_ARRAY, (3, ZERO, 1))}, "...2, not of length 3."),
        ({"x": (None, (3, ZERO))}, "Argument 'x[0]' of program 'host' must be a field, not 'NoneType'."),
        ({"x": (K_ARRAY, (3.5, ZERO))}, "Argument 'x[1][0]' of program 'host' must be an 'int32', not 'float'."),
        ({"x": (K_ARRAY, (3, None))}, "...not 'NoneType'."),
        ({"x": (K_ARRAY, (3, np.zeros(2)))}, "...0 dimensions (), not 1."),
        ({"x": (K_ARRAY, (3, np.array(1, np.float32)))}, "...'float64', not 'float32'."),
        ({"offset_provider": None}, "The offset provider of program 'host' must be a mapping, not 'NoneType'."),
        ({"offset_provider": [1]}, "...mapping, not 'list'."),
        (
            {"offset_provider": {}},
            "Program 'host' needs connectivity 'E2V', which the offset provider does not have.",
        ),
        ({"offset_provider": types.MappingProxyType({"V2E": 1})}, "...which the offset provider does not have."),
        ({"offset_provider": {"E2V": None}}, "...a field, not 'NoneType'."),
    ],
)
def test_wrong_objects_are_refused(bound: Bound, changed: dict[str, Any], message: str) -> None:
    check_refused(bound, TypeError, message, **changed)


# --- Attributes -------------------------------------------------------------------------------------------------------


def test_a_program_says_what_it_is(bound: Bound, scalars: Bound) -> None:
    assert bound.program.name == bound.program.__name__ == "host"
    assert bound.program.parameters == ("vn", "out", "x", "n", "flag")
    assert repr(bound.program) == "<gtstub program 'host' (5 parameters)>"
    assert repr(scalars.program) == "<gtstub program 'scalars' (11 parameters)>"
    assert bound.program.stub_version == gtstub.__version__
    assert len(bound.program.program_digest) == len(bound.program.sdfg_digest) == 64
    assert "offset_provider" in (type(bound.program).__doc__ or "")
    assert callable(bound.program)
    assert weakref.ref(bound.program)() is bound.program


def test_a_program_can_only_be_loaded() -> None:
    with pytest.raises(TypeError, match=r"^cannot create 'gtstub\._host\.Program' instances$"):
        _host.Program()


def test_a_library_that_cannot_be_loaded_is_an_error(bound: Bound, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"^Cannot load library '.*/none\.so': "):
        _host.load(tmp_path / "none.so", bound.library)
    with pytest.raises(RuntimeError) as caught:
        _host.load(bound.library, bound.library)
    assert str(caught.value) == f"Library '{bound.library}' is not a gtstub call stub."


# --- Metrics ----------------------------------------------------------------------------------------------------------


def test_the_metrics_level_is_read_at_every_call(bound: Bound) -> None:
    namespace: dict[str, Any] = {"LEVEL": 0}
    samples: list[float] = []
    program = bound.load()
    program.set_metrics(namespace, "LEVEL", 10, samples.append)
    for level in (0, 10, 9, 30):
        namespace["LEVEL"] = level
        program(**good_arguments())
        assert bound.last()["gt_metrics_level"] == program.metrics_level == level
    assert samples == [program.compute_time] * 2


def test_the_metrics_level_can_be_set_by_hand(bound: Bound) -> None:
    program = bound.load()
    program.metrics_level = 20
    program(**good_arguments())
    assert bound.last()["gt_metrics_level"] == 20
    with pytest.raises(ValueError) as caught:
        program.metrics_level = -1
    assert str(caught.value) == "Attribute 'metrics_level' must be from 0 to 2147483647, not -1."
    with pytest.raises(AttributeError, match=r"^Attribute 'metrics_level' cannot be deleted\.$"):
        del program.metrics_level


def test_a_metrics_level_that_is_no_integer_is_refused(bound: Bound) -> None:
    namespace: dict[str, Any] = {"LEVEL": 1}
    program = bound.load()
    program.set_metrics(namespace, "LEVEL", 10, print)
    program(**good_arguments())
    namespace["LEVEL"] = "high"
    with pytest.raises(TypeError) as caught:
        program(**good_arguments())
    assert str(caught.value) == "The metrics level 'LEVEL' of program 'host' must be an 'int', not 'str'."
    with pytest.raises(TypeError) as caught:
        program.set_metrics(namespace, "LEVEL", 10, None)  # type: ignore[arg-type]
    assert str(caught.value) == "Argument 'sample' of 'set_metrics' must be callable, not 'NoneType'."


def test_an_error_in_sample_is_raised_after_the_run(bound: Bound) -> None:
    def sample(seconds: float) -> None:
        raise KeyError(seconds)

    program = bound.load()
    program.set_metrics({"LEVEL": 1}, "LEVEL", 1, sample)
    with pytest.raises(KeyError):
        program(**good_arguments())
    assert len(bound.recorder.calls()) == 1


def test_metrics_may_refer_back_to_the_program(bound: Bound) -> None:
    """A cycle through the namespace is found by the collector."""
    program = bound.load()
    program.set_metrics({"LEVEL": 1, "program": program}, "LEVEL", 1, lambda seconds: None)
    program(**good_arguments())
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None
    assert bound.recorder.records()[-1].function == "exit"


def test_a_domain_of_more_indices_than_an_integer_has_is_refused(bound: Bound) -> None:
    on = domain({"Edge": (-(2**63), 2**63 - 1), "K": (0, LEVELS)})
    with pytest.raises(ValueError, match=r"Argument 'vn' of program 'host' "):
        bound.load()(**{**good_arguments(), "vn": edge_field(on=on)})


# --- Workspaces -------------------------------------------------------------------------------------------------------


def aligned(size: int) -> np.ndarray[Any, Any]:
    memory = np.zeros(size + 256, np.uint8)
    start = -memory.ctypes.data % 256
    return memory[start : start + size]


def test_a_workspace_is_kept_for_as_long_as_it_is_lent(bound: Bound) -> None:
    bound.recorder.behaviour.workspace_bytes = 1024
    try:
        program = bound.load()
        with pytest.raises(RuntimeError) as caught:
            program(**good_arguments())
        message = "Program 'host' needs a workspace of 1024 bytes in 'CPU_Heap', but none has been set."
        assert str(caught.value) == message
        memory = aligned(1024)
        before = sys.getrefcount(memory)
        program.set_workspace("CPU_Heap", memory)
        assert sys.getrefcount(memory) == before + 1
        program(**good_arguments())
        installed = [record for record in bound.recorder.records() if record.function == "workspace_install"]
        assert installed[-1].memory == memory.ctypes.data
        program.set_workspace("CPU_Heap", aligned(2048))
        assert sys.getrefcount(memory) == before
        program(**good_arguments())
    finally:
        bound.recorder.behaviour.workspace_bytes = 0


@pytest.mark.parametrize(
    ("storage", "make", "message"),
    [
        ("GPU_Global", lambda: aligned(64), "Program 'host' has no workspace in 'GPU_Global'."),
        (
            "CPU_Heap",
            lambda: aligned(1024)[1:],
            "The workspace of program 'host' in 'CPU_Heap' must be aligned to 256 bytes.",
        ),
        (
            "CPU_Heap",
            lambda: aligned(1024)[::2],
            "The workspace of program 'host' in 'CPU_Heap' must be contiguous.",
        ),
        (
            "CPU_Heap",
            lambda: np.frombuffer(bytes(64), np.uint8),
            "The workspace of program 'host' in 'CPU_Heap' must not be read-only.",
        ),
        (
            "CPU_Heap",
            lambda: aligned(64).reshape((1,) * 7 + (64,)),
            "The workspace of program 'host' in 'CPU_Heap' must have at most 6 dimensions.",
        ),
        (
            "CPU_Heap",
            lambda: Item(1.0),
            "The workspace of program 'host' in 'CPU_Heap' must be on device 'cpu', not on 'cuda'.",
        ),
    ],
)
def test_memory_that_cannot_be_a_workspace_is_refused(
    bound: Bound, storage: str, make: Callable[[], Any], message: str
) -> None:
    program = bound.load()
    good = aligned(1024)
    program.set_workspace("CPU_Heap", good)
    with pytest.raises(ValueError) as caught:
        program.set_workspace(storage, make())
    assert str(caught.value) == message
    program(**good_arguments())


def test_a_second_import_has_the_types_of_the_first() -> None:
    """Objects of both are of one type, as a step asks."""
    code = (
        "import sys; from gtstub import _host as first\n"
        "del sys.modules['gtstub._host'], sys.modules['gtstub'].__dict__['_host']\n"
        "from gtstub import _host as second\n"
        "assert first is not second\n"
        "print([name for name in vars(first) if isinstance(vars(first)[name], type)\n"
        "       and vars(first)[name] is not vars(second)[name]])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_second_interpreter_is_refused() -> None:
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    create = 'create("legacy")' if sys.version_info >= (3, 13) else "create(isolated=False)"
    code = f"""if True:
        import {name} as interpreters
        from gtstub import _host
        program = "try: from gtstub import _host\\nexcept ImportError as error: print(error)"
        interpreters.run_string(interpreters.{create}, program)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    message = "This is a second interpreter of the process. gtstub can be used in the main one alone."
    assert (done.stdout, done.stderr) == (f"{message}\n", "")
