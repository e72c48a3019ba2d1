"""Temporaries of a negative size are refused before the call; C++ would end the process."""

from typing import Any

import dace
import numpy as np
import pytest

import gtstub

N, M, K, L = (dace.symbol(name) for name in "NMKL")


@gtstub.program
@dace.program
def section(a: dace.float64[N], n: dace.int32, m: dace.int32):
    a[n:m] = a[n:m] + 1.0


@gtstub.program
@dace.program
def rectangle(a: dace.float64[N, M], n: dace.int64, k: dace.int32, is_on: dace.bool_):
    if is_on:
        a[n:3, 0:k] = 2 * a[n:3, 0:k] + 1.0


@dace.program
def _of_row(row: dace.float64[M], n: dace.int32):
    row[0:n] = 2 * row[0:n] + 1.0


@gtstub.program
@dace.program
def rows(a: dace.float64[N, M], n: dace.int32):
    for i in dace.map[0:N]:
        _of_row(a[i, :], n - 3)


@gtstub.program
@dace.program
def inner(a: dace.float64[N]):
    change = np.zeros((N - 2,), np.float64)
    change[:] = a[: N - 2] + a[2:]
    a[1 : N - 1] = change


@gtstub.program
@dace.program
def product(a: dace.float64[N]):
    values = np.zeros((K * L,), np.float64)
    values[:] = 2.0
    a[: K * L] = values


@gtstub.program
@dace.program
def unsigned(a: dace.float64[N], n: dace.uint32):
    a[: n - 2] = a[: n - 2] + 1.0


@gtstub.program
@dace.program
def rest(a: dace.float64[N], n: dace.int32):
    for i in range(n):
        a[i + 1 : N - 1] = a[i + 1 : N - 1] * 2.0


@gtstub.program
@dace.program
def rest_in_some_rounds(a: dace.float64[N], n: dace.int32):
    for i in range(N):
        if i < n:
            a[i + 1 : N - 1] = a[i + 1 : N - 1] * 2.0


@gtstub.program
@dace.program
def triangle(a: dace.float64[N], n: dace.int32):
    for i in range(n):
        for j in range(2, i):
            a[j + 1 : i] = a[j + 1 : i] * 2.0


@gtstub.program
@dace.program
def triangle_too_far(a: dace.float64[N], n: dace.int32):
    for i in range(n):
        for j in range(i):
            a[j + 1 : i - 1] = a[j + 1 : i - 1] * 2.0


@gtstub.program
@dace.program
def sections_of_rounds(a: dace.float64[N], n: dace.int32, m: dace.int32, x: dace.float64):
    """DaCe has a symbol for the size, and assigns it before each operation."""
    for i in range(n):
        a[0 : m - i] = a[0 : m - i] * 2.0 + x


@gtstub.program
@dace.program
def sections_in_loops(a: dace.float64[N], n: dace.int32, m: dace.int32, x: dace.float64):
    for i in range(n):
        if i > 0:
            for j in range(i, n):
                a[i : m - j] = a[i : m - j] * 2.0 + x
        a[i + m : n + m] = a[i + m : n + m] * 3.0 + x


@gtstub.program
@dace.program
def by_data(a: dace.float64[N], n: dace.int32):
    for i in range(n):
        if a[i] > 0.5:
            a[i + 1 : N - 1] = a[i + 1 : N - 1] * 2.0


@gtstub.program
@dace.program
def sums(a: dace.float64[N], out: dace.float64[M]):
    for i in dace.map[0:M]:
        out[i] = np.sum(a[i + 1 : N - 1] * 2.0)


@gtstub.program
@dace.program
def blocks(a: dace.float64[N], c: dace.float64[M, N], n: dace.int32):
    """DaCe copies each row with memcpy."""
    for i in dace.map[0:n]:
        c[i, 1:-1] = a[1 : N - 1]


@gtstub.program
@dace.program
def blocks_in_rounds(a: dace.float64[N], c: dace.float64[M, N]):
    for i in dace.map[0:M]:
        c[i, i : N - 1] = a[i : N - 1]


@gtstub.program
@dace.program
def computed(a: dace.float64[N], c: dace.float64[M, N], n: dace.int32, m: dace.int32):
    """DaCe has a symbol for the size, and assigns it from two others of the same value."""
    for i in dace.map[0:M]:
        c[i, : m - n] = a[: m - n]


@gtstub.program
@dace.program
def computed_in_rounds(a: dace.float64[N], c: dace.float64[M, N], n: dace.int32, m: dace.int32):
    for i in dace.map[0:M]:
        for j in range(2):
            c[i, : m - n - j] = a[: m - n - j]


@gtstub.program
@dace.program
def columns(a: dace.float64[M], c: dace.float64[M, N]):
    """DaCe copies each element on its own."""
    for i in dace.map[0:N]:
        c[1:-1, i] = a[1 : M - 1]


def check_refused(program: Any, array: np.ndarray, *scalars: Any, problem: str, **symbols: int) -> None:
    before = array.copy()
    with pytest.raises(ValueError) as caught:
        program(array, *scalars, **symbols)
    start, _, end = str(caught.value).partition(" must not have a negative size on ")
    assert start.startswith("Temporary '")
    assert start.endswith(f"' of program '{__name__.replace('.', '_')}_{program.__name__}'")
    assert end == f"{problem} in this call."
    np.testing.assert_array_equal(array, before)


def test_sections() -> None:
    a = np.arange(5.0)
    section(a, 1, 3)
    assert a.tolist() == [0, 2, 3, 3, 4]
    for begin in (0, 4, 7):
        section(a, begin, begin)
    check_refused(section, a, 4, 2, problem="axis 0, but m - n is -2")
    check_refused(section, a, 2**31 - 1, 0, problem="axis 0, but m - n is -2147483647")
    section(a, 3, 5)
    assert a.tolist() == [0, 2, 3, 4, 5]


def test_what_is_not_computed_may_have_any_size() -> None:
    a = np.zeros((3, 4))
    rectangle(a, 1, 2, True)
    assert a.tolist() == [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]
    check_refused(rectangle, a, 5, 2, True, problem="axis 0, but -n + 3 is -2")
    check_refused(rectangle, a, 1, -1, True, problem="axis 1, but k is -1")
    check_refused(rectangle, a, 2**62, 4, True, problem=f"axis 0, but -n + 3 is -{2**60}")
    for n, k, is_on in ((5, 2, False), (5, 0, True), (3, -1, True), (1, 0, True)):
        rectangle(a, n, k, is_on)
    assert a.sum() == 4


def test_nested_sdfgs() -> None:
    a = np.zeros((2, 4))
    rows(a, 5)
    assert a.tolist() == [[1, 1, 0, 0]] * 2
    rows(a, 3)
    check_refused(rows, a, 2, problem="axis 0, but n - 3 is -1")
    rows(np.zeros((0, 4)), 2)


def test_sizes_of_arrays() -> None:
    a = np.arange(4.0)
    inner(a)
    assert a.tolist() == [0, 2, 4, 3]
    inner(np.zeros(2))
    check_refused(inner, np.zeros(1), problem="axis 0, but N - 2 is -1")


def test_products() -> None:
    a = np.zeros(5)
    product(a, K=2, L=2)
    assert a.tolist() == [2, 2, 2, 2, 0]
    check_refused(product, a, K=-1, L=2, problem="axis 0, but K is -1")
    check_refused(product, a, K=2, L=-3, problem="axis 0, but L is -3")
    product(a, K=-1, L=0)
    product(a, K=-1, L=-5)
    assert a.tolist() == [2, 2, 2, 2, 2]


def test_unsigned_sizes_that_wrap_around() -> None:
    a = np.zeros(3)
    unsigned(a, 4)
    assert a.tolist() == [1, 1, 0]
    with pytest.raises(
        ValueError, match=r"Temporary '.*' must not have a negative size|must have the indices 0 to 42949"
    ):
        unsigned(a, 1)


def test_sizes_in_a_loop() -> None:
    a = np.ones(5)
    rest(a, 4)
    assert a.tolist() == [1, 2, 4, 8, 1]
    rest(a, 0)
    rest(np.zeros(0), -2)
    check_refused(rest, a, 5, problem="axis 0, but N - n - 1 is -1")
    check_refused(rest, a, 9, problem="axis 0, but N - n - 1 is -5")


def test_conditions_on_the_variable_of_a_loop() -> None:
    a = np.ones(5)
    rest_in_some_rounds(a, 4)
    assert a.tolist() == [1, 2, 4, 8, 1]
    for n in (5, 2**31 - 1):
        check_refused(rest_in_some_rounds, a, n, problem="axis 0, but N - min(N - 1, n - 1) - 2 is -1")
    rest_in_some_rounds(np.zeros(1), 0)


def test_loops_up_to_the_variable_of_another_loop() -> None:
    a = np.ones(5)
    triangle(a, 5)
    assert a.tolist() == [1, 1, 1, 2, 1]
    triangle_too_far(a, 1)
    check_refused(triangle_too_far, a, 2, problem="axis 0, but its size is -1")


def test_sizes_of_an_argument_and_the_variable_of_a_loop() -> None:
    a = np.zeros(5)
    sections_of_rounds(a, 3, 3, 1.0)
    assert a.tolist() == [7, 3, 1, 0, 0]
    sections_of_rounds(a, 0, 9, 1.0)
    sections_of_rounds(a, 4, 3, 0.0)  # no element in the last round
    check_refused(sections_of_rounds, a, 6, 3, 1.0, problem="axis 0, but m - n + 1 is -2")
    with pytest.raises(ValueError, match=r"'a' .* must have the indices 0 to 5 on axis 0 .*, not 0 to 4\."):
        sections_of_rounds(a, 1, 6, 1.0)


def test_sizes_of_arguments_and_the_variables_of_several_loops() -> None:
    a = np.zeros(6)
    sections_in_loops(a, 2, 4, 1.0)
    assert a.tolist() == [0, 1, 1, 0, 1, 4]
    check_refused(sections_in_loops, a, 3, 3, 1.0, problem="axis 0, but m - 2*n + 2 is -1")
    with pytest.raises(ValueError, match=r"'a' .* must have the indices 5 to 6 on axis 0 .*, not 0 to 5\."):
        sections_in_loops(a, 2, 5, 1.0)


def test_copies_of_blocks_of_memory() -> None:
    a = np.arange(4.0)
    c = np.zeros((2, 4))
    blocks(a, c, 2)
    assert c.tolist() == [[0, 1, 2, 0]] * 2
    blocks(np.zeros(2), np.zeros((2, 2)), 2)
    blocks(np.zeros(1), np.zeros((2, 1)), 0)
    for size in (0, 1):
        memory = np.arange(100.0)
        before, few = memory.copy(), memory[50 : 50 + 2 * size].reshape(2, size)
        with pytest.raises(ValueError, match=r"A copy of '\w' .* a negative size on axis \d, but N - 2 is -\d in"):
            blocks(np.zeros(size), few, 2)
        np.testing.assert_array_equal(memory, before)


def test_copies_of_blocks_of_memory_in_rounds() -> None:
    a, c = np.arange(3.0), np.zeros((3, 3))
    blocks_in_rounds(a, c)
    assert c.tolist() == [[0, 1, 0], [0, 1, 0], [0, 0, 0]]
    with pytest.raises(ValueError, match=r"A copy of '\w' .* a negative size on axis \d, but -M \+ N is -1 in"):
        blocks_in_rounds(a, np.zeros((4, 3)))


def test_sizes_that_several_symbols_have() -> None:
    a, c = np.ones(4), np.zeros((2, 4))
    computed(a, c, 1, 3)
    assert c.tolist() == [[1, 1, 0, 0]] * 2
    computed(a, c, 3, 3)
    check_refused(computed, a, c, 3, 1, problem="axis 0, but m - n is -2")
    computed_in_rounds(a, c, 1, 4)
    assert c.tolist() == [[1, 1, 1, 0]] * 2
    check_refused(computed_in_rounds, a, c, 3, 3, problem="axis 0, but m - n - 1 is -1")


def test_copies_of_single_elements_may_have_a_negative_size() -> None:
    a, c = np.arange(3.0), np.zeros((3, 2))
    columns(a, c)
    assert c.tolist() == [[0, 0], [1, 1], [0, 0]]
    columns(np.zeros(1), np.zeros((1, 2)))


def test_rounds_that_depend_on_data() -> None:
    a = np.zeros(5)
    by_data(a, 5)
    assert not a.any()


def test_temporaries_in_maps() -> None:
    a, out = np.ones(5), np.zeros(4)
    sums(a, out, i=0)  # for which DaCe asks, because a temporary's size has the name
    assert out.tolist() == [6, 4, 2, 0]
    out = np.zeros(5)
    with pytest.raises(
        ValueError, match=r"must not have a negative size on axis 0, but -M \+ N - 1 is -1 in this call"
    ):
        sums(a, out, i=0)
    assert not out.any()
