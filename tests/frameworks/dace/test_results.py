"""Results of DaCe programs: their number, strides and memory, and those that no stub returns."""

from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from gtstub.errors import PlanError, SignatureError
from gtstub.frameworks.dace import program as front_end
from tests.support.dace_programs import check_like_dace, check_same
from tests.support.recorded_dace import opaque

M, N, S = (dace.symbol(name) for name in "MNS")


def whole(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=float).reshape(shape)


# --- One result, and tuples -------------------------------------------------------------------------------------------


@gtstub.program
@dace.program
def tuple_of_one(a: dace.float64[N]):
    return (a + 1,)


@gtstub.program
@dace.program
def alone(a: dace.float64[N]):
    return a + 1


def test_a_tuple_of_one_result_is_a_tuple() -> None:
    check_like_dace(tuple_of_one, whole(3))
    out = np.zeros(3)
    (returned,) = tuple_of_one(whole(3), out=(out,))
    assert returned is out
    check_same(out, whole(3) + 1)
    with pytest.raises(TypeError, match=r"Argument 'out' of program '.*' must be a tuple of 1 array\.$"):
        tuple_of_one(whole(3), out=out)


@pytest.mark.parametrize("name", ["out", "__return"])
def test_memory_for_a_result(name: str) -> None:
    out = np.zeros(3)
    assert alone(whole(3), **{name: out}) is out
    check_same(out, whole(3) + 1)
    assert alone(**{name: out, "a": whole(3) + 5}) is out
    check_same(out, whole(3) + 6)


def test_memory_for_results_by_other_names() -> None:
    with pytest.raises(TypeError, match=r"no symbol '__return_0'; pass memory for results as 'out'\.$"):
        tuple_of_one(whole(3), __return_0=np.zeros(3))
    with pytest.raises(TypeError, match=r"^Results of program 'alone' are passed both as 'out' and '__return'\.$"):
        alone(whole(3), out=np.zeros(3), __return=np.zeros(3))


@gtstub.program
@dace.program
def with_own_out(a: dace.float64[N], out: dace.float64[N]):
    out[:] = a * 2
    return a + 1


def test_a_parameter_called_out_has_no_results() -> None:
    out, result = np.zeros(3), np.zeros(3)
    check_like_dace(with_own_out, whole(3), out=out)
    assert with_own_out(whole(3), out, __return=result) is result
    check_same([out, result], [whole(3) * 2, whole(3) + 1])


# --- Strides ----------------------------------------------------------------------------------------------------------


@gtstub.program
@dace.program
def strided(
    a: dace.data.Array(dace.float64, [M, N], strides=[S, 1]),
    f: dace.data.Array(dace.float64, [M, N], strides=[1, M]),
):
    return a, f, f.T, a + f


def steps(results: Any) -> list[tuple[int, ...]]:
    return [tuple(stride // each.itemsize for stride in each.strides) for each in results]


def test_results_with_strides_of_their_own() -> None:
    a, f = whole(3, 6)[:, :4], np.asfortranarray(whole(3, 4) * 10)
    found = check_like_dace(strided, a, f)
    assert steps(found) == steps(strided.dace_program(a, f)) == [(6, 1), (1, 3), (3, 1), (4, 1)]
    check_same(list(found), [a, f, f.T, a + f])
    again = strided(a, f)
    assert not any(np.shares_memory(one, other) for one, other in zip(found, again, strict=True))
    found[1][:] = 7
    check_same(list(again), [a, f, f.T, a + f])


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 1), (0, 4), (3, 0)])
def test_short_results_with_strides_of_their_own(shape: tuple[int, int]) -> None:
    a, f = whole(*shape), np.asfortranarray(whole(*shape))
    check_same(list(strided(a, f)), [a, f, f.T, a + f])


def test_memory_for_results_has_their_strides() -> None:
    a, f = whole(3, 4), np.asfortranarray(whole(3, 4))
    out = (np.zeros((3, 6))[:, :4], np.asfortranarray(f), np.zeros((4, 3)), np.zeros((3, 4)))
    with pytest.raises(ValueError, match="stride of axis 0 of 'a' is 4, but stride of axis 0 of 'result_0' is 6"):
        strided(a, f, out=out)
    with pytest.raises(ValueError, match=r"'result_1' .* must have stride 1 on axis 0 .*, not 4"):
        strided(a, f, out=(np.zeros((3, 4)), np.zeros((3, 4)), *out[2:]))


@gtstub.program
@dace.program
def annotated(a: dace.float64[M, N]) -> dace.data.Array(dace.float64, [M, N], strides=[1, M]):
    return a + 1


def test_an_annotation_gives_a_result_its_strides() -> None:
    found = annotated(whole(3, 4))
    assert steps([found]) == [(1, 3)]
    check_same(found, whole(3, 4) + 1)


# --- Results that no stub returns -------------------------------------------------------------------------------------


FOUND = {"an": "object"}


@opaque
def find(x: Any) -> Any:
    return FOUND


@dace.program
def returns_an_object(a: dace.float64[N]):
    return find(a)


@dace.program
def returns_an_object_and_an_array(a: dace.float64[N]):
    found = find(a)
    return found, a + 1


def no_build(*args: Any) -> Any:
    raise AssertionError


@pytest.mark.parametrize(
    ("program", "result"), [(returns_an_object, "The result"), (returns_an_object_and_an_array, "Result 0")]
)
def test_an_object_as_a_result_is_refused(program: Any, result: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_end, "build_variant", no_build)
    with pytest.raises(SignatureError) as caught:
        gtstub.program(program)(np.zeros(3))
    assert str(caught.value) == (
        f"{result} of SDFG '{program.name}' is a Python object, which no stub passes. If a callback returns it,"
        " annotate the variable that it is assigned to: 'x: dace.float64 = callback()'."
    )


def test_dace_returns_an_object() -> None:
    program = gtstub.program(returns_an_object, fallback=True)
    for count in (1, 2):
        assert program(np.zeros(3)) is FOUND
        assert program.fallback_calls == count


def test_more_dimensions_than_a_stub_passes() -> None:
    @dace.program
    def deep(a: dace.float64[1, 2, 1, 2, 1, 2, 1]):
        a[:] = a + 1

    a = np.zeros((1, 2, 1, 2, 1, 2, 1))
    with pytest.raises(PlanError, match=r"^'a' of program '.*_deep' has 7 dimensions, .* arrays of at most 6\.$"):
        gtstub.program(deep)(a)
    gtstub.program(deep, fallback=True)(a)
    check_same(a, np.ones_like(a))
