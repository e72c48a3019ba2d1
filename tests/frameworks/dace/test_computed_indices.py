"""Indices that are computed from scalars of all integer types: calls are refused exactly where C++ leaves an array."""

from typing import Any

import dace
import numpy as np
import pytest

import gtstub

N = dace.symbol("N")
NOW = 1_700_000_000_000_000_000


@gtstub.program
@dace.program
def unless(o: dace.float64[N], t: dace.int64, t0: dace.int64):
    if t != t0:
        o[3] = 1.0


@gtstub.program
@dace.program
def early(o: dace.float64[N], t: dace.int64, k: dace.uint64):
    if t < 10000000000000:
        o[3] = 1.0
    if k == 18446744073709551615:
        o[4] = 1.0


@gtstub.program
@dace.program
def elapsed(o: dace.float64[N], t: dace.int64, t0: dace.int64):
    o[t - t0] = 1.0


@gtstub.program
@dace.program
def down(o: dace.float64[N], m: dace.int32):
    for i in range(m - 1, -1, -1):
        o[i] = o[i] + 1.0


@gtstub.program
@dace.program
def down_by_two(o: dace.float64[N], m: dace.int32):
    for i in range(m - 1, -1, -2):
        o[i] = o[i] + 1.0


@gtstub.program
@dace.program
def up_to(o: dace.float64[N], n: dace.uint32):
    for i in range(n - 2):
        o[i] = o[i] + 1.0


@gtstub.program
@dace.program
def short_type(o: dace.float64[N], n: dace.uint8, m: dace.int8):
    for i in range(n - 2):
        o[i] = o[i] + 1.0
    for j in range(m + m):
        o[j] = o[j] + 1.0


@gtstub.program
@dace.program
def short_sum(o: dace.float64[N], n: dace.int8, m: dace.int8):
    o[n + m] = 5.0


@gtstub.program
@dace.program
def short_difference(o: dace.float64[N], n: dace.uint8, m: dace.uint8):
    o[n - m] = 5.0


@gtstub.program
@dace.program
def mixed(o: dace.float64[N], n: dace.uint32, m: dace.int32):
    if m < n:
        o[3] = 1.0
    o[: n - 3] = 2.0


@gtstub.program
@dace.program
def doubled(o: dace.float64[N], n: dace.uint32):
    """DaCe computes `2 * n` in a scalar of another type, and writes the types."""
    o[2 * n - 3] = 5.0


@gtstub.program
@dace.program
def sum_of_short(o: dace.float64[N], n: dace.int32, m: dace.uint16):
    o[n + m - 1] = 5.0


@gtstub.program
@dace.program
def sum_of_signs(o: dace.float64[N], n: dace.uint32, m: dace.int32):
    o[n + m - 1] = 5.0


@gtstub.program
@dace.program
def sum_is_compared(o: dace.float64[N], n: dace.uint32, m: dace.uint32):
    if m + n < 2:
        o[3] = 5.0


@gtstub.program
@dace.program
def difference_is_compared(o: dace.float64[N], n: dace.uint8, m: dace.uint64):
    if n - m > 4 and n - 7 < 0:
        o[3] = 5.0


@gtstub.program
@dace.program
def from_signed_to_unsigned(o: dace.float64[N], n: dace.uint32, m: dace.int32):
    for i in range(m, n):
        o[i] = 1.0


@gtstub.program
@dace.program
def down_from_unsigned(o: dace.float64[N], n: dace.uint32):
    for i in range(n - 1, -1, -1):
        o[i] = o[i] + 1.0


@gtstub.program
@dace.program
def down_to_unsigned(o: dace.float64[N], n: dace.uint32):
    for i in range(n + n, n - n, -1):
        o[i] = 1.0


@gtstub.program
@dace.program
def from_unsigned_to_signed(o: dace.float64[N], n: dace.uint64, m: dace.int32):
    o[n:m] = 2.0


@gtstub.program
@dace.program
def from_beyond_32_bits(o: dace.float64[N], n: dace.int64, m: dace.int64):
    for i in range(n, m):
        o[i] = 1.0


@gtstub.program
@dace.program
def map_to_unsigned(o: dace.float64[N], n: dace.uint32, m: dace.int32):
    for i in dace.map[m:n]:
        o[i + 1] = 1.0


@gtstub.program
@dace.program
def copied(o: dace.float64[N], a: dace.float64[N], n: dace.uint32):
    o[2:n] = a[2:n]


def check_refused(program: Any, size: int, *scalars: Any, needs: str) -> None:
    o = np.zeros(size)
    with pytest.raises(ValueError, match=f"must have the indices {needs} on axis 0"):
        program(o, *scalars)
    assert (o == 0).all()


def written(program: Any, size: int, *scalars: Any) -> list[float]:
    o = np.zeros(size)
    program(o, *scalars)
    return o.tolist()


def test_64_bit_scalars_are_compared_exactly() -> None:
    assert written(unless, 4, NOW, NOW + 1) == [0, 0, 0, 1]
    check_refused(unless, 3, NOW, NOW + 1, needs="3 to 3")
    assert written(unless, 3, NOW, NOW) == [0, 0, 0]
    least, most = -(2**63), 2**63 - 1
    check_refused(unless, 3, least, most, needs="3 to 3")
    assert written(unless, 3, least, least) == [0, 0, 0]


def test_64_bit_scalars_are_compared_with_numbers() -> None:
    assert written(early, 3, 10**13, 0) == [0, 0, 0]
    check_refused(early, 3, 10**13 - 1, 0, needs="3 to 3")
    check_refused(early, 4, 10**13, 2**64 - 1, needs="4 to 4")
    assert written(early, 4, 10**13, 2**64 - 2) == [0, 0, 0, 0]


def test_differences_of_64_bit_scalars_are_exact() -> None:
    assert written(elapsed, 3, NOW + 2, NOW) == [0, 0, 1]
    check_refused(elapsed, 3, NOW + 3, NOW, needs="3 to 3")
    check_refused(elapsed, 3, NOW, NOW + 1, needs="-1 to -1")
    check_refused(elapsed, 3, 2**63 - 1, 0, needs=f"{2**60} to {2**60}")
    assert written(elapsed, 3, 2**63 - 1, 2**63 - 2) == [0, 1, 0]


def test_loops_that_count_down() -> None:
    assert written(down, 3, 3) == [1, 1, 1]
    check_refused(down, 2, 3, needs="0 to 2")
    assert written(down, 2, -5) == [0, 0]
    assert written(down_by_two, 3, 3) == [1, 0, 1]
    check_refused(down_by_two, 2, 3, needs="0 to 2")
    assert written(down_by_two, 2, 0) == [0, 0]


def test_unsigned_scalars_wrap_around() -> None:
    assert written(up_to, 5, 5) == [1, 1, 1, 0, 0]
    assert written(up_to, 2, 2) == [0, 0]
    check_refused(up_to, 2, 5, needs="0 to 2")
    check_refused(up_to, 5, 1, needs="0 to 4294967294")


def test_short_types_do_not() -> None:
    assert written(short_type, 4, 1, -100) == [0, 0, 0, 0]
    assert written(short_type, 4, 4, 2) == [2, 2, 1, 1]
    check_refused(short_type, 4, 1, 127, needs="0 to 253")


def test_an_index_in_a_symbol_of_a_short_type_does() -> None:
    """DaCe assigns the index to a symbol, whose type is that of the scalars."""
    check_refused(short_sum, 201, 100, 100, needs="-56 to -56")
    assert written(short_sum, 4, 1, 2) == [0, 0, 0, 5]
    assert np.flatnonzero(written(short_difference, 256, 1, 2)) == [255]
    check_refused(short_difference, 10, 1, 2, needs="255 to 255")


def test_unsigned_scalars_beside_signed_ones() -> None:
    assert written(mixed, 4, 4, 3) == [2, 0, 0, 1]
    assert written(mixed, 2, 4, -1) == [2, 0], "-1 is above all numbers"
    check_refused(mixed, 3, 5, 4, needs="3 to 3")
    check_refused(mixed, 4, 2, 9, needs="0 to 4294967294")


def test_types_that_dace_writes_are_read() -> None:
    assert written(doubled, 4, 3) == [0, 0, 0, 5]
    check_refused(doubled, 3, 3, needs="3 to 3")
    check_refused(doubled, 4, 1, needs="-1 to -1")
    assert written(sum_of_signs, 4, 5, -1) == [0, 0, 0, 5]
    check_refused(sum_of_signs, 4, 2**32 - 1, -1, needs=f"{2**32 - 3} to {2**32 - 3}")
    check_refused(sum_of_signs, 4, 0, 0, needs="-1 to -1")
    assert written(sum_of_short, 4, -1, 5) == [0, 0, 0, 5]
    check_refused(sum_of_short, 4, 0, 0, needs="-1 to -1")


def test_unsigned_numbers_in_conditions_wrap_around() -> None:
    assert written(sum_is_compared, 3, 1, 1) == [0, 0, 0]
    check_refused(sum_is_compared, 3, 2**32 - 100, 100, needs="3 to 3")
    assert written(sum_is_compared, 3, 2**32 - 100, 102) == [0, 0, 0]
    check_refused(difference_is_compared, 3, 5, 6, needs="3 to 3")
    assert written(difference_is_compared, 3, 6, 2) == [0, 0, 0]
    assert written(difference_is_compared, 3, 7, 8) == [0, 0, 0], "a uint8 becomes an int32"


def test_loops_between_signed_and_unsigned_numbers() -> None:
    assert written(from_signed_to_unsigned, 2, 2, -3) == [0, 0], "-3 is above all numbers"
    assert written(from_signed_to_unsigned, 2, 2, 1) == [0, 1]
    check_refused(from_signed_to_unsigned, 2, 3, 1, needs="1 to 2")
    assert written(down_from_unsigned, 2, 0) == [0, 0], "the first number is -1"
    check_refused(down_from_unsigned, 2, 3, needs="0 to 2")
    assert written(down_to_unsigned, 3, 1) == [0, 1, 1]
    check_refused(down_to_unsigned, 3, 2**32 - 3, needs=f"1 to {2**32 - 6}")
    assert written(from_unsigned_to_signed, 3, 1, 3) == [0, 2, 2]
    check_refused(from_unsigned_to_signed, 3, 1, -1, needs=f"1 to {2**60}")


def test_loops_that_begin_beyond_32_bits() -> None:
    """DaCe's variable is an int."""
    check_refused(from_beyond_32_bits, 3, 2**31, 2, needs=f"-{2**31} to 1")
    assert written(from_beyond_32_bits, 3, 2**32 + 1, 3) == [0, 1, 1]


def test_copies_of_an_unsigned_number_of_elements() -> None:
    """C++ computes how many elements there are, `n - 2`, in the type of `n`."""
    a = np.ones(4)
    assert written(copied, 4, a, 4) == [0, 0, 1, 1]
    assert written(copied, 4, a, 2) == [0, 0, 0, 0]
    text = r"Argument 'a' .* must have the indices 2 to {} on axis 0"
    for n, last in ((5, 4), (1, 2**32)):
        with pytest.raises(ValueError, match=text.format(last)):
            copied(np.zeros(4), a, n)


def test_a_map_between_signed_and_unsigned_numbers_is_not_read() -> None:
    """DaCe counts in `uint32` here, and in `int64` in other maps."""
    assert written(map_to_unsigned, 2, 5, -1) == [0, 0], "-1 is above all numbers"
    assert written(map_to_unsigned, 3, 2, 0) == [0, 1, 1]
