"""Arguments of DaCe programs that are no arrays of the parameters' forms: None, lists, objects, axes of size 1."""

import gc
import re
import sys
import warnings
from typing import Any, Optional

import dace
import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.errors import SignatureError
from tests.support.dace_programs import check_same

M, N = dace.symbol("M"), dace.symbol("N")


def whole(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=float).reshape(shape)


# --- None -------------------------------------------------------------------------------------------------------------


@gtstub.program
@dace.program
def optional(a: Optional[dace.float64[N]], b: dace.float64[N], *, c: Optional[dace.float64]):  # noqa: UP045
    if a is not None:
        b[:] = b + a
    if c is not None:
        b[:] = b * c


@pytest.mark.parametrize("c", [None, 3.0])
@pytest.mark.parametrize("a", [None, whole(2)])
def test_optional_parameters_without_a_default(a: Any, c: Any) -> None:
    expected = (5 + (0 if a is None else a)) * (1 if c is None else c) * np.ones(2)
    b = np.full(2, 5.0)
    optional(a, b, c=c)
    check_same(b, expected)
    b[:] = 5
    optional(b=b, c=c, a=a)
    check_same(b, expected)


def test_a_call_site_passes_none_and_arrays() -> None:
    found = []
    for a, c in ((None, None), (whole(2), None), (None, None), (whole(2), 2.0)):
        b = np.zeros(2)
        optional(a, b, c=c)
        found.append(b[1])
    assert found == [0, 1, 0, 2]
    with pytest.raises(TypeError, match="lacks the argument 'c'"):
        optional(None, np.zeros(2))
    with pytest.raises(TypeError, match=r"'b' of program '.*' must be an array, not 'NoneType'") as caught:
        optional(whole(2), None, c=None)
    assert "Operator Add is not defined" in str(caught.value.__cause__)


REQUIRED = dace.float64[2]
REQUIRED.optional = False


def test_none_for_what_is_required() -> None:
    @gtstub.program
    @dace.program
    def required(a: REQUIRED, s: dace.int32):
        a[:] = s

    for args, message in (
        ((None, 1), r"'a' of program '.*' must be an array, not 'NoneType'"),
        ((np.zeros(2), None), r"'s' of program '.*' must be an 'int32', not 'NoneType'"),
    ):
        for _ in range(2):  # before and after the program is compiled
            with pytest.raises(TypeError, match=message):
                required(*args)
            a = np.zeros(2)
            required(a, 3)
            assert a.tolist() == [3, 3]
        required.clear()


class Stepping:
    def __init__(self) -> None:
        self.w = np.ones(2)

    @gtstub.program
    @dace.method
    def step(self, a: dace.float64[2], b: Optional[dace.float64[2]]):  # noqa: UP045
        if b is None:
            a[:] = a + self.w
        else:
            a[:] = a + b


def test_an_optional_parameter_of_a_method() -> None:
    stepping = Stepping()
    for b, expected in ((None, 1.0), (np.full(2, 7.0), 7.0), (None, 1.0)):
        a = np.zeros(2)
        stepping.step(a, b)
        check_same(a, np.full(2, expected))


# --- Lists and objects ------------------------------------------------------------------------------------------------


class Shown:
    """An object that shows an array by its `__array_interface__`."""

    def __init__(self, array: Any, **changed: Any) -> None:
        self.array, self.changed = array, changed

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.array.__array_interface__ | self.changed


class Shapeless:
    __array_interface__ = 5


@gtstub.program
@dace.program
def converted(
    a: dace.float64[N],
    i: dace.int32[N],
    u: dace.uint64[N],
    f: dace.float32[N],
    flags: dace.bool[N],
    written: dace.float64[N],
):
    written[:] = a + i + u + f + flags
    return a * 2


def arguments(**changed: Any) -> dict[str, Any]:
    made = {
        "a": np.zeros(2),
        "i": np.zeros(2, np.int32),
        "u": np.zeros(2, np.uint64),
        "f": np.zeros(2, np.float32),
        "flags": np.zeros(2, bool),
        "written": np.zeros(2),
    }
    return made | changed


@pytest.mark.parametrize(
    "changed",
    [
        {"a": [1.5, 2.5]},
        {"a": (1, 2)},
        {"a": [True, False]},
        {"a": [np.float32(1.5), 2]},
        {"i": [1, -2]},
        {"i": [1.0, np.int64(2)]},
        {"u": [2**40, 1]},
        {"f": [0.1, 3]},
        {"flags": [True, False]},
        {"flags": [1, 0]},
        {"a": Shown(np.array([1.5, 2.5]))},
        {"a": Shown(whole(4)[::2].copy()), "i": [3, 4], "flags": [False, True]},
        {"a": [[1.0], [2.0]]},
    ],
)
def test_what_becomes_an_array(changed: dict[str, Any]) -> None:
    """DaCe takes lists, too, but frees the memory before the program reads it."""
    given = arguments(**changed)
    for _ in range(2):
        returned = converted(**given)
        arrays = {name: np.asarray(value).ravel().astype(arguments()[name].dtype) for name, value in given.items()}
        check_same(returned, arrays["a"] * 2)
        check_same(given["written"], sum(arrays[name] for name in ("a", "i", "u", "f", "flags")) + 0.0)


def test_a_copy_is_not_remembered() -> None:
    values, given = [1.0, 2.0], arguments()
    for number in range(3):
        values[0] = float(number)
        check_same(converted(**given | {"a": values}), np.array(values) * 2)
        check_same(converted(**given), np.zeros(2))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"i": [1.5, 2]}, "'i' of ... is a 'list' of 'float64', not all of whose elements fit 'int32'."),
        ({"i": [2**31, 2]}, "'i' of ... is a 'list' of 'int64', not all of whose elements fit 'int32'."),
        ({"u": [2**53 + 1, 1.0]}, "'u' of ... is a 'list' of 'float64', not all of whose elements fit 'uint64'."),
        ({"u": (-1, 2)}, "'u' of ... is a 'tuple' of 'int64', not all of whose elements fit 'uint64'."),
        ({"a": [2**53 + 1, 2]}, "'a' of ... is a 'list' of 'int64', not all of whose elements fit 'float64'."),
        ({"a": [0.5, 2**53 + 1]}, "'a' of ... is a 'list' of 'float64', not all of whose elements fit 'float64'."),
        ({"f": [2**24 + 1, np.nan]}, "'f' of ... is a 'list' of 'float64', not all of whose elements fit 'float32'."),
        (
            {"f": (np.int64(2**24 + 1), 1)},
            "'f' of ... is a 'tuple' of 'int64', not all of whose elements fit 'float32'.",
        ),
        ({"f": [1e300, 2]}, "'f' of ... is a 'list' of 'float64', not all of whose elements fit 'float32'."),
        ({"flags": [2, 0]}, "'flags' of ... is a 'list' of 'int64', not all of whose elements fit 'bool'."),
        ({"a": ["1.0", 2]}, "'a' of ... is a 'list' of '<U21', not all of whose elements fit 'float64'."),
        ({"a": [None, 2]}, "'a' of ... is a 'list' of 'object', not all of whose elements fit 'float64'."),
        ({"a": [1.0, 2.0, 3.0]}, "size of axis 0 of 'a' is 3, but size of axis 0 of 'i' is 2"),
        ({"a": [[1.0, 2.0], [3.0, 4.0]]}, "'a' of ... must have 1 dimension ('axis_0'), not 2."),
        ({"a": [[1.0, 2.0], [3.0]]}, "'a' of ... is a 'list' that is no array: setting an array element"),
        (
            {"written": [1.0, 2.0]},
            "'written' of ... is written by the program, but what it writes into a copy of a 'list' would be lost; pass"
            " an array.",
        ),
        (
            {"written": Shown(np.zeros(2), data=bytearray(16))},
            "'written' of ... is written by the program, but the '__array_interface__' of the 'Shown' may have a copy;"
            " pass an array.",
        ),
        ({"a": Shown(np.zeros(2), typestr="?!")}, "'a' of ... has an '__array_interface__' that numpy cannot read: "),
        ({"written": Shapeless()}, "'written' of ... is written by the program, but the '__array_interface__' of the"),
        ({"a": Shown(np.zeros(2, np.float32))}, "'a' of ... must have dtype 'float64', not 'float32'."),
        ({"i": [np.ma.masked_array([1, 2], [True, False])]}, "'i' of ... is a 'list' with a masked array, but"),
        ({"a": np.ma.masked_array([[1.0], [2.0]])}, "'a' of ... is a masked array"),
        ({"a": 1.0}, "'a' of ... must be an array, not 'float'."),
        ({"a": np.float64(1.0)}, "'a' of ... must have 1 dimension ('axis_0'), not 0."),
    ],
)
def test_what_becomes_no_array(changed: dict[str, Any], message: str) -> None:
    given = arguments(**changed)
    start, _, end = message.partition("...")
    text = re.escape(start) + (f"program '{__name__.replace('.', '_')}_converted'" if end else "") + re.escape(end)
    for _ in range(2):
        with pytest.raises((TypeError, ValueError), match=text):
            converted(**given)


def test_no_imaginary_part_is_dropped() -> None:
    """Nor does numpy warn of it."""
    converted(**arguments())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("a", "i"):
            with pytest.raises(
                TypeError, match=f"'{name}' .* is a 'list' of 'complex128', not all of whose elements fit"
            ):
                converted(**arguments(**{name: [1.0, 2j]}))


def test_writes_reach_an_object() -> None:
    array = np.zeros(2)
    converted(**arguments(a=[1, 2], written=Shown(array)))
    check_same(array, np.array([1.0, 2.0]))
    array.flags.writeable = False
    with pytest.raises(ValueError, match=r"'written' .* must not be read-only"):
        converted(**arguments(written=Shown(array)))


@gtstub.program
@dace.program
def untyped(a, b):
    return a + b


def test_lists_without_annotation() -> None:
    """One call site, whose arguments choose the variant."""
    for a, b in (([1, 2], [3, 4]), ([1.5, 2], whole(2)), ([1, 2], [3, 4]), (Shown(whole(2)), [5, 6]), (whole(2), 3.0)):
        expected = (a.array if isinstance(a, Shown) else np.asarray(a)) + np.asarray(b)
        check_same(untyped(a, b), expected)


@pytest.mark.parametrize("a", [np.array(2.0), [[1, 2], [3]], object()])
def test_what_is_no_data_is_named(a: Any) -> None:
    with pytest.raises(TypeError, match=r"^Argument 'a' of program 'untyped' is no data: "):
        untyped(a, 3.0)


class Count(int):
    pass


@pytest.mark.parametrize(
    "a", [np.zeros(2, np.longdouble), np.zeros(2, "M8[s]"), np.array([None]), np.array(["1"]), ["1", "2"], Count(2)]
)
def test_types_that_dace_does_not_know_are_named(a: Any) -> None:
    with pytest.raises(TypeError, match=r"^Argument 'a' of program 'untyped' is no data: DaCe has no type for <class "):
        untyped(a, 3.0)


def test_an_annotation_as_an_object() -> None:
    @gtstub.program
    @dace.program
    def with_object(a: dace.float64[N], found: dace.pyobject):
        a[:] = a + 1

    with pytest.raises(SignatureError, match=r"^Argument 'found' of program '.*_with_object' is a Python object"):
        with_object(np.zeros(2), {})


# --- Axes of size 1 ---------------------------------------------------------------------------------------------------


@gtstub.program
@dace.program
def axes(
    a: dace.float64[N],
    column: dace.float64[N, 1],
    row: dace.float64[1, N],
    one: dace.float64[1],
    table: dace.float64[M, N],
    cell: dace.float64[1, N, 1],
):
    a[:] = a + one[0]
    column[:, 0] = column[:, 0] * 2
    row[0, :] = row[0, :] - 1
    table[:] = table + 1
    cell[0, :, 0] = cell[0, :, 0] + 2


def axes_arguments(**changed: Any) -> dict[str, Any]:
    n = 3
    made = {
        "a": whole(n),
        "column": whole(n, 1),
        "row": whole(1, n),
        "one": whole(1) + 1,
        "table": whole(2, n),
        "cell": whole(1, n, 1),
    }
    return made | changed


@pytest.mark.parametrize(
    "changed",
    [
        {"a": (3, 1)},
        {"a": (1, 3)},
        {"a": (1, 3, 1, 1)},
        {"column": (3,)},
        {"row": (3,)},
        {"one": ()},
        {"one": (1, 1)},
        {"table": (2, 1, 3)},
        {"table": (2, 3, 1)},
        {"cell": (3,)},
        {"cell": (1, 3)},
        {"cell": (3, 1)},
        {"a": (3, 1), "column": (3,), "row": (3,), "table": (1, 2, 3), "cell": (3,), "one": ()},
    ],
)
def test_other_axes_of_size_1(changed: dict[str, Any]) -> None:
    """The program writes into the caller's memory."""
    expected = axes_arguments()
    axes(**expected)
    given = axes_arguments()
    given |= {name: given[name].reshape(shape) for name, shape in changed.items()}
    axes(**given)
    for name, array in given.items():
        check_same(array.reshape(expected[name].shape), expected[name])


def test_a_matrix_keeps_its_axes() -> None:
    given = axes_arguments(a=np.asmatrix(whole(3)), table=np.asmatrix(whole(2, 3)))
    axes(**given)
    check_same([np.asarray(given["a"]), np.asarray(given["table"])], [whole(1, 3) + 1, whole(2, 3) + 1])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"a": whole(3, 4)[:, :1]}, "'a' of program '...' must have stride 1 on axis 0 ('axis_0'), not 4."),
        ({"a": whole(3, 2)}, "'a' of program '...' must have 1 dimension ('axis_0'), not 2."),
        ({"one": whole(2, 1)}, "'one' of program '...' must have 1 dimension ('axis_0'), not 2."),
        (
            {"table": whole(1, 3, 1)},
            "'table' of program '...' must have 2 dimensions, but its shape (1, 3, 1) may stand for (1, 3) or (3, 1);"
            " reshape it.",
        ),
        ({"table": whole(3)}, "'table' of program '...' must have 2 dimensions ('axis_0', 'axis_1'), not 1."),
        ({"row": whole(3, 1)}, "'row' of program '...' must have size 1 on axis 0 ('axis_0'), not 3."),
        ({"a": whole(4, 1)}, "size of axis 0 of 'a' is 4, but size of axis 0 of 'column' is 3."),
    ],
)
def test_axes_that_do_not_fit(changed: dict[str, Any], message: str) -> None:
    text = message.replace("...", f"{__name__.replace('.', '_')}_axes")
    with pytest.raises((TypeError, ValueError), match=re.escape(text)):
        axes(**axes_arguments(**changed))


def test_as_many_axes_as_numpy_has() -> None:
    given = axes_arguments(a=whole(3).reshape(3, *[1] * 63))
    axes(**given)
    check_same(given["a"].ravel(), whole(3) + 1)
    with pytest.raises(ValueError, match=r"may stand for \(1, 3\) or \(3, 1\); reshape it"):
        axes(**axes_arguments(table=whole(3).reshape(*[1] * 31, 3, *[1] * 32)))


# --- Bound calls, and references --------------------------------------------------------------------------------------


def test_a_bound_call_has_views_but_no_copies() -> None:
    given = axes_arguments(column=whole(3), one=np.array(1.0))
    call = _host.bind(axes, **given)
    for count in (1, 2):
        call()
        check_same([given["a"], given["column"]], [whole(3) + count, whole(3) * 2**count])
    with pytest.raises(TypeError) as caught:
        _host.bind(axes, **axes_arguments(one=[1.0]))
    assert str(caught.value) == (
        f"Argument 'one' of program '{__name__.replace('.', '_')}_axes' must be an array in a bound call, because the"
        " call would keep a copy of the 'list'."
    )


def test_a_captured_method_has_the_same_views_in_each_call() -> None:
    given = axes_arguments(a=whole(3, 1), column=whole(3))

    def method() -> None:
        axes(**given)

    step = gtstub.capture(method)
    step()
    check_same([given["a"], given["column"]], [whole(3, 1) + 2, whole(3) * 4])


def test_converted_arguments_leave_no_references() -> None:
    values, column, wrong = [1.0], whole(3), ["text"]
    given = axes_arguments(one=values, column=column)
    axes(**given)
    gc.collect()
    before = [sys.getrefcount(each) for each in (values, column, wrong)]
    for _ in range(10):
        axes(**given)
        with pytest.raises(TypeError):
            axes(**given | {"one": wrong})
    gc.collect()
    assert [sys.getrefcount(each) for each in (values, column, wrong)] == before
