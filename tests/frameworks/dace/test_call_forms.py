"""
Seventy forms of calls of DaCe programs, with Python as truth: here, what calls pass and return. What programs call and
read is in test_called_forms.py.

Annotations are no texts here: DaCe looks at the types.
"""

import dataclasses
import enum
from typing import Any, Optional

import dace
import numpy as np
import pytest

from tests.support.call_forms import Call, Form, Table, given

K, M, N, S = (dace.symbol(name) for name in "KMNS")

TABLE = Table()
form = TABLE.form


def whole(*shape: int, dtype: Any = np.float64, order: Any = "C") -> Any:
    return (np.arange(np.prod(shape, dtype=int)) % 7 + 1).reshape(shape).astype(dtype, order=order)


# --- How arguments are passed -----------------------------------------------------------------------------------------


@form(given(whole(3), 2.0), given(whole(5), np.float64(3)), given(whole(0), 3))
def by_position(a: dace.float64[N], s: dace.float64):
    a[:] = a * s


@form(given(a=whole(3), b=whole(3)), given(b=whole(4) * 3, a=whole(4)), given(whole(2), b=whole(2)))
def by_keyword(a: dace.float64[N], b: dace.float64[N]):
    a[:] = a - 2 * b


@form(given(whole(3)), given(whole(3), 3.0), given(whole(3), t=4.0), given(t=1.0, s=2.0, a=whole(3)), variants=4)
def with_defaults(a: dace.float64[N], s: dace.float64 = 2.0, t: float = 10.0):
    a[:] = a * s + t


FOURS = np.full(3, 4.0)


@form(given(whole(3)), given(whole(3), whole(3) + 1), variants=2)
def with_a_default_array(a: dace.float64[3], b: dace.float64[3] = FOURS):
    a[:] = a + b


@form(given(whole(3), s=2.0), given(whole(3), t=1.0, s=3.0), variants=2)
def by_keyword_only(a: dace.float64[N], *, s: dace.float64, t: dace.float64 = 5.0):
    a[:] = a * s + t


@form(given(whole(3), whole(3), 2.0), given(whole(4), whole(4) * 2, 3.0), variants=2)
def starred(*arrays):
    return arrays[0] + arrays[1] * arrays[2]


@form(given(whole(3), y=whole(3) + 1, z=4.0))
def starred_keywords(a, **others):
    a[:] = others["y"] * others["z"]


@form(given(whole(3), whole(3), s=2.0))
def starred_and_keyword_only(a, *others, s):
    a[:] = others[0] + s


# --- Types ------------------------------------------------------------------------------------------------------------


@form(
    given(whole(3), whole(3)),
    given(whole(3, dtype=np.float32), whole(3, dtype=np.float32)),
    given(whole(2, 3, dtype=np.int32), whole(2, 3, dtype=np.int32)),
    given(whole(3, dtype=np.int64), whole(3)),
    variants=4,
)
def without_annotations(a, b):
    return a + b


@form(
    given(7, whole(3)), given(7.5, whole(3)), given(np.float32(2), whole(3)), given(np.int16(2), whole(3)), variants=4
)
def numbers_without_annotations(s, a):
    a[:] = a * s


@form(given(whole(11), True, *range(1, 9), np.float32(1.5), 2.5))
def each_type_of_numbers(
    a: dace.float64[11],
    b: dace.bool_,
    i8: dace.int8,
    i16: dace.int16,
    i32: dace.int32,
    i64: dace.int64,
    u8: dace.uint8,
    u16: dace.uint16,
    u32: dace.uint32,
    u64: dace.uint64,
    f32: dace.float32,
    f64: dace.float64,
):
    if b:
        a[0] = 100
    a[1] = i8
    a[2] = i16
    a[3] = i32
    a[4] = i64
    a[5] = u8
    a[6] = u16
    a[7] = u32
    a[8] = u64
    a[9] = f32
    a[10] = f64


@form(given(*(whole(3, dtype=each) for each in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"))))
def each_type_of_arrays(
    b: dace.bool_[N],
    i8: dace.int8[N],
    i16: dace.int16[N],
    i32: dace.int32[N],
    i64: dace.int64[N],
    u8: dace.uint8[N],
    u16: dace.uint16[N],
    u32: dace.uint32[N],
    u64: dace.uint64[N],
    f32: dace.float32[N],
    f64: dace.float64[N],
):
    b[:] = f64 > 2
    i8[:] = i8 + 1
    i16[:] = i16 + 1
    i32[:] = i32 + 1
    i64[:] = i64 + 1
    u8[:] = u8 + 1
    u16[:] = u16 + 1
    u32[:] = u32 + 1
    u64[:] = u64 + 1
    f32[:] = f32 + 1


@form(given(whole(1), whole(1, dtype=np.int32), whole(3)))
def one_element(a: dace.float64[1], i: dace.int32[1], b: dace.float64[N]):
    b[:] = b * a[0] + i[0]
    a[0] = 7


# --- Sizes, strides and symbols ---------------------------------------------------------------------------------------


@form(given(whole(3), whole(4), whole(6)), given(whole(7), whole(8), whole(14)))
def sums_and_products(a: dace.float64[N], edges: dace.float64[N + 1], twice: dace.float64[2 * N]):
    a[:] = edges[1:] - edges[:-1]
    twice[::2] = a


@form(
    Call((whole(5),), {}, truth=lambda a: a.__setitem__(slice(0, 3), a[:3] + 1), symbols={"K": 3}),
    Call((whole(9),), {}, truth=lambda a: a.__setitem__(slice(0, 8), a[:8] + 1), symbols={"K": 8}),
)
def free_symbol(a: dace.float64[N]):
    for i in range(K):
        a[i] = a[i] + 1


@form(given(whole(3, 4), whole(4)), given(whole(12)[1:4].reshape(3, 1), whole(1)))
def a_size_as_a_number(a: dace.float64[N, M], b: dace.float64[M]):
    for i in range(a.shape[0]):
        b[:] = b + a[i, :] * i


@form(given(whole(6, 4)[2:5]), given(whole(3, 4)), given(whole(8, 9)[1:, 2:5]))
def rows_with_a_stride(a: dace.data.Array(dace.float64, [N, M], strides=[S, 1])):
    a[:] = a * 2


@form(given(whole(3, 4, order="F")), given(whole(5, 2, order="F")))
def fortran_order(a: dace.data.Array(dace.float64, [M, N], strides=[1, M])):
    a[1:, :] = a[:-1, :] + 1


@form(given(whole(3, 4)), given(whole(4, 3).T), given(whole(6, 8)[::2, 1::2]), variants=3)
def views_without_annotations(a):
    a[:, 0] = a[:, 1] + 1


# --- What is compiled in ----------------------------------------------------------------------------------------------


class Way(enum.Enum):
    UP = 1
    DOWN = 2


@dataclasses.dataclass(frozen=True)
class Options:
    factor: float
    way: Way
    table: tuple[int, ...] = (1, 2)


@form(given(whole(3), 2), given(whole(3), 3), given(n=2, a=whole(4)), variants=2)
def compile_time_number(a: dace.float64[N], n: dace.compiletime):
    for i in range(n):
        a[i] = a[i] + n


@form(given(whole(3), "add"), given(whole(3), "sub" + "tract"), variants=2)
def compile_time_text(a: dace.float64[N], mode: dace.compiletime):
    if mode == "add":
        a[:] = a + 1
    else:
        a[:] = a - 1


@form(
    given(whole(3), Options(2.0, Way.UP)),
    given(whole(3), Options(2.0, Way.DOWN)),
    given(whole(3), Options(3.0, Way.UP, (5, 6))),
    variants=3,
)
def compile_time_dataclass(a: dace.float64[3], options: dace.compiletime):
    if options.way == Way.UP:
        a[:] = a + options.factor * options.table[1]
    else:
        a[:] = a - options.factor


def increased(a: Any) -> None:
    a[:] = a + 1


def squared(a: Any) -> None:
    a[:] = a * a


@form(given(whole(3), increased), given(whole(3), squared), variants=2)
def function_as_an_argument(a: dace.float64[N], change: dace.compiletime):
    change(a)


@form(given(whole(3), None), given(whole(3), 2.0), given(whole(3)), variants=2)
def compile_time_none(a: dace.float64[N], s: dace.compiletime = None):
    if s is None:
        a[:] = a + 1
    else:
        a[:] = a * s


@form(given(whole(3)), given(whole(3), whole(3)), given(whole(3), None), given(whole(3), b=whole(3)), variants=2)
def optional_array(a: dace.float64[N], b: Optional[dace.float64[N]] = None):  # noqa: UP045  of DaCe's types
    if b is not None:
        a[:] = a + b
    else:
        a[:] = a - 1


# --- Results ----------------------------------------------------------------------------------------------------------


@form(given(whole(3)), given(whole(5)))
def one_array(a: dace.float64[N]):
    return a * 2


@form(given(whole(3), whole(2, 3)))
def several_arrays(a: dace.float64[N], b: dace.float64[M, N]):
    return a + 1, b * a, a > 2


@form(given(whole(4)))
def a_number(a: dace.float64[N]):
    return np.sum(a)


@form(given())
def a_constant():
    return 5


@form(given(whole(4), 2))
def numbers_and_an_array(a: dace.float64[N], i: dace.int64):
    return i + 1, a * i, np.max(a)


@form(given(whole(6)))
def a_slice(a: dace.float64[6]):
    return a[1:4]


@form(given(whole(6)))
def the_argument_itself(a: dace.float64[N]):
    a[:] = a + 1
    return a


@form(given(whole(2, 3), whole(3, 4)))
def a_product(a: dace.float64[N, K], b: dace.float64[K, M]):
    return a @ b


@form(given(whole(3), True), given(whole(3), False), variants=2)
def in_branches(a: dace.float64[N], is_up: dace.compiletime):
    if is_up:
        return a + 1
    return a[:-1] - 1


@form(given(whole(3)), given(-whole(3)))
def nothing_early(a: dace.float64[N]):
    if a[0] < 0:
        return
    a[:] = a + 1


@form(given(whole(3, dtype=np.float32)), given(whole(4, dtype=np.float32)))
def another_type(a: dace.float32[N]):
    return a.astype(np.int64), a * np.float32(0.5)


@form(given(whole(3)))
def a_tuple_of_one(a: dace.float64[N]):
    return (a + 1,)


@form(given(whole(2, 3)))
def a_transposed_result(a: dace.float64[2, 3]):
    return a.T


# --- Arguments of other forms than the parameters' --------------------------------------------------------------------


def of_flat(a: Any, b: Any, c: Any) -> None:
    a[:] = b[:, 0] * 2
    c[:] = c + 1


@form(Call((whole(3), whole(3, 1), whole(1, 3)), {}, truth=of_flat))
def other_axes_of_size_one(a: dace.float64[N], b: dace.float64[N], c: dace.float64[N]):
    a[:] = b * 2
    c[:] = c + 1


@form(given(whole(3), [1.0, 2.0, 3.0]), given(whole(3), (4, 5, 6)))
def lists(a: dace.float64[N], b: dace.float64[N]):
    a[:] = a + b


@form(
    given(whole(2), None, None),
    given(whole(3), whole(3), None),
    given(whole(3), None, whole(3)),
    given(whole(3), whole(3), c=whole(3) * 2),
    variants=4,
)
def none_for_arrays(a: dace.float64[N], b: dace.float64[N], c: dace.float64[N]):
    if c is not None:
        a[:] = a + c
    elif b is not None:
        a[:] = a - b
    else:
        a[:] = 7


SIX, TWO, FOUR = np.int32(6), np.int64(2), np.uint8(4)


@form(given(whole(6), whole(5, 2), whole(4)), given(whole(6), whole(7, 2), whole(4)))
def sizes_of_numpy(a: dace.float64[SIX], b: dace.float64[N + TWO, TWO], c: dace.float64[FOUR]):
    for i in range(TWO):
        b[:, i] = b[:, i] + c[i]
    a[:] = a + SIX


@form(given(whole(3), None), given(whole(3), whole(3)), variants=2)
def optional_without_a_default(a: dace.float64[N], b: Optional[dace.float64[N]]):  # noqa: UP045  of DaCe's types
    if b is None:
        a[:] = a + 1
    else:
        a[:] = a + b


# --- Other kinds of numbers, and structures ---------------------------------------------------------------------------


@form(given(whole(3, dtype=np.complex128) * (1 - 2j), 2 + 1j), given(whole(3, dtype=np.complex128), 2.0))
def complex_numbers(a: dace.complex128[N], s: dace.complex128):
    a[:] = a * s


@form(given(whole(3, dtype=np.complex64) * np.complex64(3 + 4j)))
def complex_results(a: dace.complex64[N]):
    return a * np.complex64(2), np.abs(a)


@form(given(whole(3, dtype=np.float16)))
def half(a: dace.float16[N]):
    a[:] = a + a


Grid = dace.data.Structure({"height": dace.float64[N], "width": dace.float64[N]}, name="Grid")


@dataclasses.dataclass
class Rectangles:
    height: Any
    width: Any


@form(given(Rectangles(whole(3), whole(3) * 2), whole(3)))
def a_structure(grid: Grid, found: dace.float64[N]):
    found[:] = grid.height * grid.width


@pytest.mark.parametrize("row", TABLE.rows, ids=lambda row: row.name)
def test_what_is_passed_and_returned(row: Form) -> None:
    row.check()
