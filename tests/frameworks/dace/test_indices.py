"""Indices that are scalar arguments, or expressions of them: what would be outside an array is refused."""

from typing import Any

import dace
import numpy as np
import pytest

import gtstub

N = dace.symbol("N")


@gtstub.program
@dace.program
def put(o: dace.float64[N], k: dace.int32):
    o[k] = 1.0


@gtstub.program
@dace.program
def put_far(o: dace.float64[N], k: dace.int64):
    o[2 * k + 1] = 1.0


@gtstub.program
@dace.program
def either(o: dace.float64[N], k: dace.int32, dt: dace.float64):
    if dt > 0.5:
        o[k] = dt
    else:
        o[k + 1] = dt


@gtstub.program
@dace.program
def both(o: dace.float64[N], data: dace.float64[N], k: dace.int32):
    if data[0] > 0.5:
        o[k] = 1.0
    else:
        o[k] = 2.0


def check_refused(program: Any, indices: str, *arguments: Any, size: int = 4) -> None:
    array = np.zeros(size)
    with pytest.raises(ValueError) as caught:
        program(array, *arguments)
    name = f"{__name__.replace('.', '_')}_{program.__name__}"
    assert str(caught.value) == (
        f"Argument 'o' of program '{name}' must have the indices {indices} on axis 0 ('axis_0'), which this call uses, "
        f"not 0 to {size - 1}. Set GTSTUB_BOUNDS=0 to build the program without this check."
    )
    assert (array == 0.0).all()


@pytest.mark.parametrize("k", [-1, 4, 2**31 - 1, -(2**31)])
def test_an_argument_that_is_an_index(k: int) -> None:
    array = np.zeros(4)
    put(array, 3)
    assert array.tolist() == [0.0, 0.0, 0.0, 1.0]
    check_refused(put, f"{k} to {k}", k)


@pytest.mark.parametrize("k", [-1, 2, 2**31, 2**40])
def test_an_expression_of_an_argument_of_64_bits(k: int) -> None:
    array = np.zeros(4)
    put_far(array, 1)
    assert array.tolist() == [0.0, 0.0, 0.0, 1.0]
    check_refused(put_far, f"{2 * k + 1} to {2 * k + 1}", k)


@pytest.mark.parametrize("k", [2**62, -(2**62), 2**63 - 1])
def test_indices_that_no_array_has_are_refused(k: int) -> None:
    array = np.zeros(4)
    with pytest.raises(ValueError, match=r"Argument 'o' of program '.*put_far' must have the indices"):
        put_far(array, k)
    assert (array == 0.0).all()


def test_a_branch_on_a_floating_point_argument() -> None:
    array = np.zeros(4)
    either(array, 2, 0.25)
    either(array, 3, 0.75)
    assert array.tolist() == [0.0, 0.0, 0.0, 0.75]
    check_refused(either, "4 to 4", 4, 0.75)
    check_refused(either, "4 to 4", 3, 0.25)


def test_what_both_sides_of_a_branch_on_data_access() -> None:
    data = np.zeros(4)
    array = np.zeros(4)
    both(array, data, 3)
    assert array.tolist() == [0.0, 0.0, 0.0, 2.0]
    check_refused(both, "4 to 4", data, 4)
