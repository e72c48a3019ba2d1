"""Indices that are scalar arguments, or expressions of them: what would be outside an array is refused."""

from typing import Any

import dace
import numpy as np
import pytest

import gtstub

N, M = dace.symbol("N"), dace.symbol("M")


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


@gtstub.program
@dace.program
def backwards(o: dace.float64[N], values: dace.float64[M], k: dace.int32):
    for i in range(M):
        o[k - i] = values[i]


@gtstub.program
@dace.program
def triangle(o: dace.float64[N], k: dace.int32, m: dace.int32):
    for i in range(k):
        for j in range(m):
            if j < i:
                o[i + j] = 1.0
            else:
                o[j] = 2.0


@gtstub.program
@dace.program
def every_other(o: dace.float64[N], a: dace.float64[M], k: dace.int32):
    o[0:k:2] = 2.0 * a[0:k:2]


@gtstub.program
@dace.program
def every_third(o: dace.float64[N], k: dace.int32, m: dace.int32):
    for i in range(k, 0, -3):
        if i < m:
            o[i] = 1.0
        else:
            o[i - 1] = 2.0


@gtstub.program
@dace.program
def half(o: dace.float64[N], k: dace.int32):
    o[k // 2] = 1.0


@gtstub.program
@dace.program
def halves(o: dace.float64[N], k: dace.int32):
    for i in dace.map[0:2]:
        o[(k + i) // 2] = 1.0


@gtstub.program
@dace.program
def square(o: dace.float64[N], k: dace.int32):
    o[k * k] = 1.0


@gtstub.program
@dace.program
def rows(o: dace.float64[N], k: dace.int64, m: dace.int64):
    for i in range(k):
        for j in range(m):
            o[i * m + j] = i


@gtstub.program
@dace.program
def as_many_as(o: dace.float64[N], k: dace.int32, m: dace.int32):
    if k * m > 6:
        o[0] = 1.0
    else:
        for i in range(k * m):
            o[i] = 2.0


@gtstub.program
@dace.program
def sides(o: dace.float64[N], n: dace.int32, m: dace.int32, x: dace.float64):
    """DaCe assigns the parts of a condition in a map to symbols before the branch."""
    for i in dace.map[0:n]:
        if not (i < m):
            o[i] = 1.0
        elif n > 1 and x > 0.5:
            o[i + 2] = 2.0


@gtstub.program
@dace.program
def joined(o: dace.float64[N], n: dace.int32, m: dace.int32, x: dace.float64):
    if x > 0.5 or min(n, m) > 2:
        o[n] = 1.0
    for i in range(m):
        if i < n and x > 0.5:
            o[i + 2] = 2.0


@gtstub.program
@dace.program
def cursor(o: dace.float64[N], k: dace.int32):
    place = 0
    for i in range(k):
        if i > 1:
            place = i - 2
        o[place] = i + 1.0


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


def test_an_argument_minus_the_variable_of_a_loop() -> None:
    array = np.zeros(4)
    backwards(array, np.arange(1.0, 4.0), 3)
    assert array.tolist() == [0.0, 3.0, 2.0, 1.0]
    check_refused(backwards, "2 to 4", np.zeros(3), 4)
    check_refused(backwards, "-1 to 1", np.zeros(3), 1)
    backwards(array, np.zeros(0), 9)


def test_conditions_on_the_variables_of_two_loops() -> None:
    array = np.zeros(4)
    triangle(array, 2, 4)
    assert array.tolist() == [2.0, 2.0, 2.0, 2.0]
    triangle(array, 3, 2)
    check_refused(triangle, "0 to 4", 1, 5)
    check_refused(triangle, "1 to 4", 4, 2)
    triangle(array, -1, 9)


def test_branches_in_a_map() -> None:
    array = np.zeros(4)
    sides(array, 4, 2, 0.0)
    assert array.tolist() == [0.0, 0.0, 1.0, 1.0]
    sides(array, 2, 2, 1.0)
    assert array.tolist() == [0.0, 0.0, 2.0, 2.0]
    sides(array, 9, 9, 0.0)
    check_refused(sides, "2 to 4", 5, 2, 0.0)
    check_refused(sides, "2 to 4", 3, 4, 1.0)


def test_relations_of_integers_joined_with_other_conditions() -> None:
    array = np.zeros(4)
    joined(array, 3, 9, 0.0)
    joined(array, 9, 2, 0.0)
    assert array.tolist() == [0.0, 0.0, 0.0, 1.0]
    joined(array, 2, 9, 1.0)
    assert array.tolist() == [0.0, 0.0, 2.0, 2.0]
    check_refused(joined, "4 to 4", 4, 9, 0.0)
    check_refused(joined, "4 to 4", 4, 0, 1.0)
    check_refused(joined, "2 to 4", 3, 9, 1.0)


def test_an_index_that_several_edges_assign_is_not_known() -> None:
    array = np.zeros(2)
    cursor(array, 4)
    assert array.tolist() == [3.0, 4.0]


def test_sections_with_steps() -> None:
    array = np.zeros(4)
    every_other(array, np.arange(4.0), 4)
    assert array.tolist() == [0.0, 0.0, 4.0, 0.0]
    every_other(array, np.zeros(5), -1)
    check_refused(every_other, "0 to 4", np.zeros(6), 6)
    with pytest.raises(ValueError, match=r"Temporary .* but int_floor\(k \+ 1, 2\) is -1 in this call"):
        every_other(array, np.zeros(5), -3)
    with pytest.raises(ValueError, match=r"'a' of .* must have the indices 0 to 2 on axis 0 .* not 0 to 1"):
        every_other(array, np.zeros(2), 4)


def test_loops_with_steps() -> None:
    array = np.zeros(7)
    every_third(array, 7, 2)
    assert array.tolist() == [0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 2.0]
    every_third(array, 0, 0)
    check_refused(every_third, "3 to 6", 7, 2)
    check_refused(every_third, "2 to 5", 5, 6)


def test_quotients() -> None:
    array = np.zeros(4)
    half(array, 7)
    half(array, -1)  # DaCe rounds towards 0
    assert array.tolist() == [1.0, 0.0, 0.0, 1.0]
    check_refused(half, "4 to 4", 8)
    check_refused(half, "-1 to -1", -2)
    halves(array, 3)
    assert array.tolist() == [1.0, 1.0, 1.0, 1.0]
    check_refused(halves, "3 to 4", 7)
    check_refused(halves, "-1 to 0", -2)


def test_products() -> None:
    array = np.zeros(6)
    square(array, -2)
    assert array.tolist() == [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    check_refused(square, "9 to 9", 3)
    rows(array, 2, 3)
    assert array.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    check_refused(rows, "0 to 5", 3, 2)
    for k, m in ((0, 2**40), (-(2**40), 2**40), (2**62, 0), (2**62, -(2**62))):
        rows(array, k, m)
    check_refused(rows, f"0 to {2**60}", 2**40, 2**40)


def test_products_in_conditions() -> None:
    array = np.zeros(6)
    as_many_as(array, 3, 2)
    as_many_as(array, 2**15, 2**15)
    assert array.tolist() == [1.0, *[2.0] * 5]
    check_refused(as_many_as, "0 to 4", 1, 5)
    as_many_as(array, -3, 2)


@gtstub.program
@dace.program
def from_half(a: dace.float64[10], n: dace.int64, m: dace.int64, k: dace.int64):
    for i in range(n, m):
        if 2 * i >= k:
            a[i] = 1.0


@gtstub.program
@dace.program
def up_to_half(a: dace.float64[10], n: dace.int64, m: dace.int64, k: dace.int64):
    for i in range(n, m, -1):
        if k - i > i - 1:
            a[i + 3] = 1.0


@pytest.mark.parametrize("program", [from_half, up_to_half])
def test_a_number_of_times_the_variable_in_a_loop_from_an_argument(program: Any) -> None:
    for n, m, k in np.random.default_rng(5).integers(-5, 14, (300, 3)).tolist():
        if program is from_half:
            expected = [i for i in range(n, m) if 2 * i >= k]
        else:
            expected = [i + 3 for i in range(n, m, -1) if k - i > i - 1]
        memory = np.zeros(60)
        if all(0 <= i < 10 for i in expected):
            program(memory[20:30], n, m, k)
            assert (np.flatnonzero(memory) - 20).tolist() == sorted(expected)
        else:
            with pytest.raises(ValueError, match="must have the indices"):
                program(memory[20:30], n, m, k)
            assert not memory.any()
