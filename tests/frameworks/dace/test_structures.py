"""Structures as arguments of DaCe programs: what is in them is passed as if it were an argument of its own."""

import dataclasses
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import dace
import numpy as np
import pytest
from scipy import sparse

import gtstub
from gtstub.errors import CaptureWarning, SignatureError
from gtstub.frameworks.dace.arguments import check_arguments
from gtstub.programs.granule.verify import read_granule
from gtstub.stub.codegen.hosts import LANGUAGES
from gtstub.stub.codegen.stub import make_stub
from gtstub.stub.signature.documents import sdfg_from_json, sdfg_to_json
from gtstub.stub.signature.model import ScalarArgument, SdfgSignature
from tests.support.c_program import CProgram, load
from tests.support.random_programs import FieldValue

M, N, NNZ = (dace.symbol(name) for name in ("M", "N", "nnz"))

# --- A matrix ---------------------------------------------------------------------------------------------------------

Matrix = dace.data.Structure(
    {"indptr": dace.int32[M + 1], "indices": dace.int32[NNZ], "data": dace.float64[NNZ]}, "Matrix"
)


@gtstub.program
@dace.program
def multiply(matrix: Matrix, x: dace.float64[N]):  # type: ignore[valid-type]
    y = np.zeros([M])
    for i in dace.map[0:M]:
        for k in dace.map[matrix.indptr[i] : matrix.indptr[i + 1]]:
            y[i] += matrix.data[k] * x[matrix.indices[k]]
    return y


def random_matrix(rows: int, columns: int, seed: int = 0) -> Any:
    found = sparse.random(rows, columns, 0.4, "csr", np.float64, random_state=np.random.default_rng(seed))
    found.data[:] = np.arange(found.nnz) % 7 - 3
    return found


def test_sparse_matrices() -> None:
    for matrix in (random_matrix(7, 5), random_matrix(4, 9, 1)):
        x = np.arange(float(matrix.shape[1]))
        assert multiply(matrix, x).tobytes() == (matrix @ x).tobytes()
        plain = matrix.indptr, matrix.indices, matrix.data
        assert multiply(plain, x, nnz=matrix.nnz).tobytes() == (matrix @ x).tobytes()


def test_attributes_are_read_at_each_call() -> None:
    matrix, x = random_matrix(7, 5), np.arange(5.0)
    before = multiply(matrix, x)
    matrix.data = 2 * matrix.data
    assert multiply(matrix, x).tobytes() == (2 * before).tobytes()


# --- Structures in structures, and scalars ----------------------------------------------------------------------------


@dataclasses.dataclass
class Inner:
    a: dace.float32[N]
    b: dace.int32


@dataclasses.dataclass
class Outer:
    """The members of different sizes would not be where they are if the struct had another layout."""

    flag: dace.bool_
    x: Inner
    factor: dace.float64
    small: dace.int8
    y: dace.float64[2, N]
    sum: dace.float64


Whole = dace.data.Structure.from_dataclass(Outer)


@gtstub.program
@dace.program
def combine(one: Whole, other: Whole):  # type: ignore[valid-type]
    other.y[:] = one.y * one.factor + one.small + other.small
    other.x.a[:] = one.x.a + one.x.b
    if one.flag:
        other.sum = other.factor
    for i in range(N):
        other.sum = other.sum + one.y[0, i]


def outer(n: int = 3, **changed: Any) -> Outer:
    y = np.arange(2.0 * n).reshape(2, n)
    return Outer(**{"flag": True, "factor": 2.5, "small": -3, "y": y, "sum": np.array(0.0), "x": inner(n)} | changed)


def inner(n: int = 3, **changed: Any) -> Inner:
    return Inner(**{"a": np.arange(n, dtype=np.float32), "b": 7} | changed)


def as_dace(call: dace.data.Structure, value: Any) -> Any:
    """What DaCe makes of an object for its own call; scalars that a program writes are numbers there."""
    number = {name: each.item() if name == "sum" else each for name, each in vars(value).items()}
    return call.make_argument_from_object(SimpleNamespace(**number))


def test_nested_structures_and_scalars() -> None:
    for one in (outer(), outer(4, flag=False, factor=-1.0), outer(1, small=100, x=inner(1, b=-9))):
        n = one.y.shape[1]
        (ours, theirs) = (outer(n, y=np.zeros((2, n)), sum=np.array(0.5)) for _ in range(2))
        combine(one, ours)
        struct = as_dace(Whole, theirs)
        combine.dace_program(as_dace(Whole, one), struct, N=n)
        assert (ours.y.tobytes(), ours.x.a.tobytes()) == (theirs.y.tobytes(), theirs.x.a.tobytes())
        assert ours.sum == struct.sum == (2.5 if one.flag else 0.5) + one.y[0].sum()


def test_members_in_a_granule(tmp_path: Path) -> None:
    """A scalar that a program writes is memory of one element, the others are scalars or, said, constants."""
    one, other = outer(), outer()
    before = other.sum.item()
    with gtstub.capture() as step:
        combine(one, other)
    other.sum[...] = before
    made = gtstub.Granule("g", steps={"s": step}, arguments={"other": other}, scalars=["one.factor"])
    with pytest.warns(CaptureWarning, match=re.escape("member 'one.small' of program")) as caught:
        description = read_granule(made.export(tmp_path / "g"))
    text = str(caught[0].message)
    assert ("'one.factor'" in text, "'one.flag'" in text) == (False, True)
    assert [(each.name, each.argument) for each in description.scalars] == [("one_factor", "one.factor")]
    assert [(each.name, each.shape) for each in description.arguments] == [
        ("other_x_a", (3,)),
        ("other_y", (2, 3)),
        ("other_sum", (1,)),
    ]


Counted = dace.data.Structure({"values": dace.float64[N], "first": dace.int64, "largest": dace.float64}, "Counted")
Wrapped = dace.data.Structure({"inner": Counted, "time": dace.float64}, "Wrapped")


@gtstub.program
@dace.program
def count(wrapped: Wrapped, seen: dace.float64[N]):  # type: ignore[valid-type]
    for i in dace.map[0:N]:
        if i == wrapped.inner.first:  # in a nested SDFG, which gets the whole structure
            wrapped.inner.largest = wrapped.inner.values[i]
            seen[i] = wrapped.time
    wrapped.time = wrapped.time + 1


def test_what_nested_sdfgs_write() -> None:
    """A scalar that is only read stays a number, and an array that is only read may be read-only."""
    values = read_only(np.arange(4.0))
    inner_ = SimpleNamespace(values=values, first=2, largest=np.array(0.0))
    wrapped, seen = SimpleNamespace(inner=inner_, time=np.array(4.0)), np.zeros(4)
    count(wrapped, seen)
    count(wrapped, seen)
    assert (inner_.largest, wrapped.time, seen.tolist()) == (2, 6, [0, 0, 5, 0])


Waves = dace.data.Structure({"a": dace.complex128[N], "k": dace.complex64, "sum": dace.complex128}, "Waves")


@gtstub.program
@dace.program
def wave(waves: Waves):  # type: ignore[valid-type]
    waves.a[:] = waves.a * waves.k
    waves.sum = waves.sum + waves.k


def test_complex_numbers() -> None:
    for k in (2j, 3, 0.5, np.complex64(1 - 1j), np.array(1j, np.complex64)):
        waves = SimpleNamespace(a=np.arange(3) + 1j, k=k, sum=np.array(1 + 2j))
        wave(waves)
        assert (waves.a.tolist(), waves.sum) == (((np.arange(3) + 1j) * k).tolist(), 1 + 2j + k)


def test_the_struct_is_that_of_dace() -> None:
    plan = combine.compile()._variants[0][1].plan
    (code,) = (each.clean_code for each in combine.dace_program.to_sdfg().generate_code() if each.title == "Frame")
    defined = dict(re.findall(r"^struct (\w+) \{\n(.*?)\n\};", code, re.MULTILINE | re.DOTALL))
    types = {"double": "float64", "float": "float32", "int": "int32", "int8_t": "int8", "bool": "bool"}

    def compare(source: Any, name: str) -> None:
        lines = [line.strip(" ;") for line in defined[name].splitlines()]
        for slot, line in zip(source.slots, lines, strict=True):
            dtype, key = line.split()
            assert slot.name.endswith(f"_{key}")
            if slot.source.kind == "members":
                compare(slot.source, dtype.removesuffix("*"))
            else:
                assert types[dtype.removesuffix("*")] == slot.dtype
                assert dtype.endswith("*") == (slot.is_array and slot not in source.copied)

    for slot in plan.structures:
        if slot.name in ("one", "other"):
            compare(slot.source, "Outer")


# --- Objects ----------------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    factor: float
    values: Any


class Described:
    def __init__(self, values: Any, factor: float) -> None:
        self.values, self.factor = values, factor

    def __descriptor__(self) -> dace.data.Structure:
        return dace.data.Structure({"values": dace.float64[N], "factor": dace.float64}, "Scaled")


class Other(Described):
    pass


Scaled = Described(None, 0).__descriptor__()


@gtstub.program
@dace.program
def scale(scaled: Scaled, y: dace.float64[N]):  # type: ignore[valid-type]
    y[:] = scaled.values * scaled.factor


@gtstub.program
@dace.program
def scale_any(scaled, y: dace.float64[N]):  # type: ignore[no-untyped-def]
    y[:] = scaled.values * scaled.factor


@pytest.mark.parametrize("program", [scale, scale_any])
def test_objects_of_several_classes(program: Any) -> None:
    values = np.arange(4.0)
    things: list[Any] = [Described(values, 2.0), Other(values, 3.0)]
    if program is scale:
        things += [Pair(4.0, values), SimpleNamespace(factor=5.0, values=values, more="unused")]
    for thing in things:
        y = np.zeros(4)
        program(thing, y)
        assert y.tobytes() == (values * thing.factor).tobytes()
    assert len(program._variants) == 1


def test_a_struct_of_ctypes_has_no_sizes() -> None:
    values, y = np.arange(4.0), np.zeros(4)
    struct = Scaled.make_argument(values=values, factor=2.0)
    with pytest.raises(TypeError, match=r"'scaled' of program .* not a struct of ctypes, which has addresses"):
        scale(struct, y)
    fallback = gtstub.program(scale.dace_program, fallback=True)
    fallback(struct, y, N=4)
    fallback(Pair(3.0, values), out := np.zeros(4))
    assert (y.tobytes(), out.tobytes()) == ((values * 2).tobytes(), (values * 3).tobytes())
    assert fallback.fallback_calls == 1


# --- Contracts --------------------------------------------------------------------------------------------------------


def wrong(one: Outer, other: Outer) -> Iterator[tuple[Any, str, Any, str]]:
    """Objects with the name of a member, a wrong value of it, and what is said about that."""
    yield other, "y", np.zeros((2, 4)), "size of axis 0 of 'one.x.a' is 3, but size of axis 1 of 'other.y' is 4."
    yield one.x, "a", np.zeros(2, np.float32), "size of axis 0 of 'one.x.a' is 2, but size of axis 1 of 'one.y' is 3."
    yield one, "y", np.zeros((3, 3)), "'one.y' must have size 2 on axis 0 ('axis_0'), not 3."
    yield one, "y", np.zeros((3, 2)).T, "'one.y' must have stride 1 on axis 1 ('axis_1'), not 2."
    yield one.x, "a", np.zeros(3), "'one.x.a' must have dtype 'float32', not 'float64'."
    yield one, "small", 128, "'one.small' is 128, which does not fit 'int8'."
    yield one, "flag", 2, "'one.flag' is 2, which does not fit 'bool'."
    yield one, "sum", np.zeros(1), "'one.sum' must have 0 dimensions (), not 1."
    yield other, "sum", 1.0, "'other.sum' must be a field, not 'float'."
    yield other, "sum", np.zeros(1), "'other.sum' must have 0 dimensions (), not 1."
    yield other, "sum", np.array(0), "'other.sum' must have dtype 'float64', not 'int64'."
    yield other, "y", read_only(np.zeros((2, 3))), "'other.y' is written by the program and must not be read-only."
    yield (
        one,
        "x",
        Pair(1, 2),
        "'one.x' must be a tuple of length 2 or have the attributes 'a', 'b', but 'Pair' has no 'a'.",
    )


def read_only(array: Any) -> Any:
    array.setflags(write=False)
    return array


def test_members_that_do_not_fit() -> None:
    one, other = outer(y=read_only(np.ones((2, 3)))), outer()  # which is only read
    combine(one, other)
    for thing, name, value, message in wrong(one, other):
        right, before = getattr(thing, name), other.y.tobytes()
        setattr(thing, name, value)
        with pytest.raises((TypeError, ValueError)) as caught:
            combine(one, other)
        said = re.sub(r"Arguments? (?:('.*') )?of program '\S*_combine' (?:disagree: )?", r"\1 ", str(caught.value))
        assert said.strip() == message
        setattr(thing, name, right)
        assert other.y.tobytes() == before
    combine(one, other)


def test_a_struct_that_has_changed_is_refused() -> None:
    parsed = scale.parse()
    check_arguments(parsed.sdfg, parsed.sdfg_signature, {})
    fields = parsed.sdfg.arrays["scaled"].dtype.base_type.fields
    fields.move_to_end("values")
    with pytest.raises(SignatureError, match=r"expected \[\('scaled', '\{float64\*, float64\}\*'\), .* found"):
        check_arguments(parsed.sdfg, parsed.sdfg_signature, {})


# --- What is refused --------------------------------------------------------------------------------------------------


def test_members_that_no_stub_carries() -> None:
    def program(structure: Any) -> None:
        @gtstub.program
        @dace.program
        def refused(s: structure, y: dace.float64[3]):
            y[:] = 1

        refused.compile()

    containers = dace.data.Structure({"each": dace.data.ContainerArray(Scaled, (3,))}, "Containers")
    tensor = dace.data.Tensor(
        dace.float64, (M, N), [(dace.data.TensorIndexDense(), 0), (dace.data.TensorIndexCompressed(), 1)], NNZ, "Tensor"
    )
    for structure, message in (
        (containers, "'s.each' of SDFG '.*' must be an array, a scalar or a structure, but has type 'ContainerArray'"),
        (tensor, "'s' of SDFG '.*' must be an array or a scalar, but has type 'Tensor'"),
        (dace.data.Structure({"h": dace.bfloat16[3]}, "Short"), "'s.h' of .* must have one of the element types"),
        (dace.data.Structure({"h": dace.float16}, "Half"), "'s.h' of .* must have one of the element types"),
        (dace.data.Structure({"v": dace.float64[N % 2]}, "Rest"), "'s.v' .* the size of axis 0 is 'Mod"),
    ):
        with pytest.raises(SignatureError, match=message):
            program(structure)


def test_a_callback_takes_no_structure() -> None:
    def use(structure: Any) -> None:
        raise AssertionError

    opaque = functools.partial(use)

    @gtstub.program
    @dace.program
    def calls(s: Scaled, y: dace.float64[N]):  # type: ignore[valid-type]
        y[:] = s.values
        opaque(s)

    with pytest.raises(SignatureError, match=r"Callback 'opaque' of .* takes or returns a structure or a text"):
        calls.compile()


# --- Documents, steps and other hosts ---------------------------------------------------------------------------------


def test_documents() -> None:
    signature = combine.parse().sdfg_signature
    text = sdfg_to_json(signature)
    assert sdfg_from_json(text, "s.json") == signature
    for change, message in (
        (
            lambda one: one["copied"].append("one_y_"),
            r"'\$\.arguments\[0\]\.copied', expected names of arrays .* 'one_y_'",
        ),
        (lambda one: one["members"][1].update(name="one_y"), r"expected each name once, found 'one_y' several times"),
        (lambda one: one["members"].clear(), r"'\$\.arguments\[0\]\.members', expected"),
        (
            lambda one: one["members"].append(
                {"kind": "callback", "name": "f", "arguments": [], "results": [], "is_parallel": False}
            ),
            "expected arrays, scalars and structures, found a callback",
        ),
        (
            lambda one: one["members"][0].update(roles=[{"array": "one_y", "axis": 2, "property": "size"}]),
            r"'\$\.arguments\[0\]\.members\[0\]\.roles\[0\]\.axis', expected an axis of 'one_y'",
        ),
    ):
        document = json.loads(text)
        change(document["arguments"][0])
        with pytest.raises(SignatureError, match=message):
            sdfg_from_json(json.dumps(document), "s.json")


def test_a_captured_step_keeps_its_arrays() -> None:
    one, other = outer(), outer()
    combine(one, other)
    with gtstub.capture() as step:
        combine(one, other)
    y, sums = other.y, other.sum
    one.y[:] = 1
    other.y, sums[...] = np.zeros((2, 3)), 0
    step()
    assert y.tolist() == [[2.5 - 6] * 3] * 2
    assert (sums, other.y.any()) == (2.5 + 3, False)


def test_c_host() -> None:
    combine.compile()
    variant = combine._variants[0][1]
    names = [leaf.name for leaf in variant.plan.arguments]
    assert names[:6] == ["one_flag", "one_x_a", "one_x_b", "one_factor", "one_small", "one_y"]
    one, other, expected = outer(), outer(), outer()
    combine(one, expected)
    values = {
        f"{name}_{key}": value
        for name, each in (("one", one), ("other", other))
        for key, value in {**vars(each), "x_a": each.x.a, "x_b": each.x.b}.items()
    }
    given = {leaf.name: as_c(values[leaf.name], is_scalar=leaf.kind != "field") for leaf in variant.plan.arguments}
    stub, library = (variant.entry.path / name for name in (f"{variant.plan.name}_stub.so", variant.plan.library))
    dtypes = {leaf.name: leaf.dtype for leaf in variant.plan.scalars}
    arguments = tuple(ScalarArgument(name, dtypes.get(name, "float64")) for name in names)
    program = CProgram(load(stub, library), stub, SdfgSignature(variant.plan.name, "cpu", "", arguments), given)
    assert program(given) is None
    assert (other.y.tobytes(), other.sum.tobytes()) == (expected.y.tobytes(), expected.sum.tobytes())
    assert "of 'one.x.a' is 2" in program({**given, "one_x_a": as_c(one.x.a[:2], is_scalar=False)})


def as_c(value: Any, *, is_scalar: bool) -> Any:
    if is_scalar:
        return np.asarray(value).item()
    return FieldValue(value, (0,) * value.ndim, tuple(f"axis_{axis}" for axis in range(value.ndim)))


def test_fortran_host() -> None:
    parsed = multiply.parse()
    files = make_stub(parsed.sdfg_signature, parsed.signature, languages=LANGUAGES.values()).files
    (text,) = (text for name, text in files.items() if name.endswith(".f90"))
    assert "integer(c_int32_t), intent(in) :: matrix_indptr(:)" in text
