"""Calls of DaCe programs: each kind of argument and of result, as DaCe itself passes it. Values are whole numbers."""

import re
from typing import Any, Optional

import dace
import numpy as np
import pytest
from ml_dtypes import bfloat16

import gtstub
from gtstub import _host
from gtstub.errors import CaptureError, CaptureWarning, PlanError, SignatureError
from tests.support.dace_programs import check_like_dace, check_same

K, M, N, S = (dace.symbol(name) for name in "KMNS")
L = dace.symbol("L", dtype=dace.int64)


def whole(*shape: int, dtype: Any = np.float64, order: Any = "C") -> Any:
    return (np.arange(np.prod(shape, dtype=int)) % 50).reshape(shape).astype(dtype, order=order)


# --- Sizes, strides, and symbols --------------------------------------------------------------------------------------


@gtstub.program
@dace.program
def sized(
    a: dace.float64[N],
    edges: dace.float64[N + 1],
    twice: dace.float64[2 * N],
    rows: dace.float64[M],
    table: dace.float64[M * N],
    wide: dace.float64[L],
    unused: dace.float64[N],
    one: dace.float64[1],
    factor: dace.float64,
):
    a[:] = a + factor * (edges[1:] - edges[:-1]) + one[0]
    twice[:] = twice + N
    table[:] = table + M + rows[1]
    wide[:] = wide + L
    for i in range(K):
        a[i] = a[i] * 2


def sized_arguments(n: int = 4, m: int = 3, **changed: Any) -> dict[str, Any]:
    arguments = {
        "a": whole(n),
        "edges": whole(n + 1) ** 2,
        "twice": whole(2 * n),
        "rows": whole(m),
        "table": whole(m * n),
        "wide": whole(7),
        "unused": whole(n),
        "one": whole(1) + 3,
        "factor": 2.0,
        "K": 2,
    }
    return arguments | changed


def test_sizes_and_symbols() -> None:
    check_like_dace(sized, **sized_arguments())
    check_like_dace(sized, **sized_arguments(n=9, m=2, K=np.int32(5), factor=np.float64(3)))
    arguments = sized_arguments()
    positional = [arguments.pop(name) for name in list(arguments) if name != "K"]
    check_like_dace(sized, *positional, **arguments)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"edges": whole(6)},
            "'edges' must have size N + 1 = 5 on axis 0 ('axis_0'), not 6.",
        ),
        (
            {"edges": whole(4)},
            "'edges' must have size N + 1 = 5 on axis 0 ('axis_0'), not 4.",
        ),
        (
            {"twice": whole(9)},
            "'twice' must have size 2*N = 8 on axis 0 ('axis_0'), not 9.",
        ),
        (
            {"table": whole(8)},
            "'table' must have size M*N = 12 on axis 0 ('axis_0'), not 8.",
        ),
        (
            {"rows": whole(4)},
            "'table' must have size M*N = 16 on axis 0 ('axis_0'), not 12.",
        ),
        ({"one": whole(2)}, "'one' must have size 1 on axis 0 ('axis_0'), not 2."),
        (
            {"unused": whole(5)},
            "disagree: size of axis 0 of 'a' is 4, but size of axis 0 of 'unused' is 5.",
        ),
        ({"K": 2.5}, "'K' must be an 'int32', not 'float'."),
        (
            {"a": whole(4, dtype=np.float32)},
            "'a' must have dtype 'float64', not 'float32'.",
        ),
        ({"a": "1.0"}, "'a' must be an array, not 'str'."),
        ({"a": None}, "'a' must be an array, not 'NoneType'."),
        ({"factor": "2"}, "'factor' must be a 'float64', not 'str'."),
    ],
)
def test_arguments_that_do_not_fit(changed: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        sized(**sized_arguments(**changed))
    name, said = re.fullmatch("Arguments? (?:('.*') )?of program '.*_sized'[ ](.*)", str(caught.value)).groups()
    assert " ".join(filter(None, (name, said))) == message


@gtstub.program
@dace.program
def filled(a: dace.float64[N]):
    for i in range(K):
        a[i] = i


@gtstub.program
@dace.program
def filled_by_one(a: dace.float64[N + 1]):
    for i in range(K):
        a[i] = i


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (filled, "Arguments of program '.*_filled' disagree: (size of axis 0 of 'a' is 5|'N' is 4), but .*"),
        (filled_by_one, r"Argument 'a' of program '.*' must have size N \+ 1 = 5 on axis 0 \('axis_0'\), not 6\."),
    ],
)
def test_a_symbol_of_one_size_is_compared_if_it_is_passed(program: Any, message: str) -> None:
    a = np.zeros(5 + (program is filled_by_one))
    program(a, K=3)
    assert a[2] == 2
    a[:] = 0
    with pytest.raises(ValueError, match=message):
        program(a, K=3, N=4)
    assert not a.any()
    program(a, K=3, N=5)
    assert a[2] == 2


def test_wrong_names_of_arguments() -> None:
    arguments = sized_arguments()
    name = f"{__name__.replace('.', '_')}_sized"
    for change, message in (
        ({"Z": 3}, f"Program '{name}' has no parameter and no symbol 'Z'."),
        ({"out": whole(3)}, f"Program '{name}' returns nothing, so that it takes no argument 'out'."),
    ):
        with pytest.raises(TypeError) as caught:
            sized(**arguments, **change)
        assert str(caught.value) == message
    with pytest.raises(TypeError, match="Argument 'a' of program 'sized' is passed twice"):
        sized(arguments["a"], **arguments)
    del arguments["twice"]
    with pytest.raises(TypeError, match="A call of program 'sized' lacks the argument 'twice'"):
        sized(**arguments)


def test_a_symbol_of_64_bits() -> None:
    """All elements of an array of this size are the same one."""
    everywhere = np.lib.stride_tricks.as_strided(np.zeros(1), (2**31 + 5,), (0,))
    with pytest.raises(ValueError, match="must have stride 1 on axis 0"):
        sized(**sized_arguments(wide=everywhere))


@gtstub.program
@dace.program
def product(a: dace.float64[N], table: dace.float64[M * N]):
    table[0:M] = a[0]


def test_a_symbol_that_occurs_only_in_products_may_be_passed() -> None:
    """Otherwise it follows from the product and the other symbol."""
    check_like_dace(product, whole(2) + 1, whole(6))
    table = whole(6)
    product(whole(2) + 1, table, M=3)
    check_same(table, np.array([1.0, 1, 1, 3, 4, 5]))
    with pytest.raises(ValueError, match=re.escape("must have size M*N = 4 on axis 0 ('axis_0'), not 6.")):
        product(whole(2), table, M=2)


@gtstub.program
@dace.program
def agree(a: dace.float64[N, 2], b: dace.float64[N, 2]):
    a[0, 0] = b[0, 1]


def test_arrays_agree_on_a_symbol_that_the_sdfg_does_not_take() -> None:
    check_like_dace(agree, whole(3, 2), whole(3, 2))
    with pytest.raises(ValueError, match="size of axis 0 of 'a' is 3, but size of axis 0 of 'b' is 4"):
        agree(whole(3, 2), whole(4, 2))
    agree(whole(3, 2), whole(3, 2), N=3)
    with pytest.raises(ValueError, match="'N' is 4, but size of axis 0 of 'a' is 3"):
        agree(whole(3, 2), whole(3, 2), N=4)


@gtstub.program
@dace.program
def strided(
    a: dace.data.Array(dace.float64, [M, N], strides=[S, 1]),
    f: dace.data.Array(dace.float64, [M, N], strides=[1, M]),
):
    a[:] = a + f * 2


def test_strides() -> None:
    check_like_dace(strided, whole(3, 6)[:, :4], whole(3, 4, order="F"))
    check_like_dace(strided, whole(3, 4), whole(3, 4, order="F"))
    with pytest.raises(ValueError, match=re.escape("must have stride 1 on axis 0 ('axis_0'), not 4.")):
        strided(whole(3, 4), whole(3, 4))
    with pytest.raises(ValueError, match=re.escape("must have stride 1 on axis 1 ('axis_1'), not 2.")):
        strided(whole(3, 8)[:, ::2], whole(3, 4, order="F"))


@gtstub.program
@dace.program
def plain(a: dace.float64[M, N]):
    a[:] = a + 1


@pytest.mark.parametrize(("rows", "stride"), [(slice(None, None, -1), -4), (slice(None, None, 2), 8)])
def test_a_view_with_other_rows(rows: slice, stride: int) -> None:
    plain(whole(4, 4))
    message = f"but stride of axis 0 of 'a' is {stride}; pass a copy in the declared layout."
    with pytest.raises(ValueError, match=re.escape(message)):
        plain(whole(4, 4)[rows])


# --- Parameters -------------------------------------------------------------------------------------------------------


@gtstub.program
@dace.program
def added(a, b):
    return a + b


def test_parameters_without_annotation() -> None:
    """One call site whose arguments change their types, ranks, sizes and strides."""
    cases = [
        (whole(3), whole(3)),
        (whole(2, 3), whole(2, 3)),
        (whole(2, 3, order="F"), whole(2, 3, order="F")),
        (whole(6)[::2], whole(3)),
        (7.0, 2.0),
        (7, 2),
        (2**60, 3),
    ]
    for _ in range(2):
        for case in cases:
            check_same(added(*case), np.atleast_1d(np.add(*case)))
    assert len(added._variants) == len(cases) - 1, "two cases have the same types"
    check_like_dace(added, 7, 2)


@gtstub.program
@dace.program
def defaults(a: dace.float64[N], s: dace.float64 = 2.0, *, t: dace.float64 = 10.0):
    a[:] = a * s + t


def test_defaults_and_keywords() -> None:
    check_like_dace(defaults, whole(3), s=3.0)
    found = []
    for call in (
        lambda a: defaults(a, 3.0),
        lambda a: defaults(a, s=3.0),
        lambda a: defaults(s=3.0, a=a),
        lambda a: defaults(t=1.0, s=3.0, a=a),
        lambda a: defaults(s=3.0, t=1.0, a=a),
        lambda a: defaults(a=a, s=3.0),
    ):
        a = np.ones(2)
        call(a)
        found.append(a[0])
    assert found == [13, 13, 13, 4, 4, 13]
    with pytest.raises(TypeError, match="takes 2 arguments by position, but 3 are given"):
        defaults(whole(3), 1.0, 2.0)


@gtstub.program
@dace.program
def starred(a, *args, **kwargs):
    a[:] = a + args[0] * args[1] + kwargs["z"]


def test_starred_parameters() -> None:
    check_like_dace(starred, whole(3), whole(3), 2.0, z=5.0)
    for args, z in (((whole(3), 2.0), 5), ((2.0, whole(3)), 5.0)):
        a = whole(3)
        starred(a, *args, z=z)
        check_same(a, whole(3) + args[0] * args[1] + z)


@gtstub.program
@dace.program
def optional(a: dace.float64[N], b: Optional[dace.float64[N]] = None, c=None):  # noqa: UP045  of DaCe's types
    if b is None:
        a[:] = a + 1
    else:
        a[:] = a + b
    if c is not None:
        a[:] = a + c


def test_optional_parameters() -> None:
    for args in ((), (None,), (whole(3),), (None, None), (whole(3), 2.0), (None, 2), (whole(3), None)):
        b, c = [*args, None, None][:2]
        expected = whole(3) + (1 if b is None else b) + (0 if c is None else c)
        for _ in range(2):
            a = whole(3)
            optional(a, *args)
            check_same(a, expected)
        a = whole(3)
        optional(a, **dict(zip("bc", args, strict=False)))
        check_same(a, expected)


class Options:
    def __init__(self, factor: float, weights: Any) -> None:
        self.factor, self.weights = factor, weights


@gtstub.program
@dace.program
def configured(a: dace.float64[3], options: dace.compiletime, mode: dace.compiletime):
    if mode == "add":
        a[:] = a + options.factor * options.weights
    else:
        a[:] = a - options.factor * options.weights


def test_compile_time_arguments() -> None:
    two, three = Options(2.0, whole(3)), Options(3.0, whole(3))
    for options, mode, sign in ((two, "add", 1), (three, "add", 1), (two, "subtract", -1), (two, "ad" + "d", 1)):
        a, b = whole(3), whole(3)
        configured(a, options, mode)
        configured(mode=mode, options=options, a=b)
        check_same([a, b], [whole(3) + sign * options.factor * options.weights] * 2)
    check_like_dace(configured, whole(3), two, "add")
    two.weights = whole(3) + 5
    a = whole(3)
    configured(a, two, "add")
    check_same(a, whole(3) + 2 * (whole(3) + 5))
    two.factor = 7.0
    with pytest.raises(ValueError, match=re.escape("was compiled for 'options.factor' = 2.0, but it is 7.0 now")):
        configured(a, two, "add")


@gtstub.program
@dace.program
def scaled(a: dace.float64[N], c: dace.compiletime):
    a[:] = a * c


def test_compile_time_numbers_are_compared_exactly() -> None:
    for c in (0.0, -0.0, 0, float("nan")):
        for _ in range(2):
            a = np.ones(2)
            scaled(a, c)
            check_same(a, np.ones(2) * c)
    scaled(np.ones(2), float("nan"))
    assert len(scaled._variants) == 4, "NaN is one value"


# --- Results ----------------------------------------------------------------------------------------------------------


@gtstub.program
@dace.program
def several(a: dace.float64[N], s: dace.float64):
    return a[1:] * s, a[0], a + 1


@gtstub.program
@dace.program
def single(a: dace.float64[N]):
    return a > 1


@gtstub.program
@dace.program
def reduced(a: dace.float64[N], b: dace.float64[N]):
    return np.sum(a), a @ b


@gtstub.program
@dace.program
def sized_by_symbols(a: dace.float64[N], edges: dace.float64[M + 1], wide: dace.float64[2 * L + 1]):
    found = np.zeros((N + 2 * K, 2, K))
    found[:] = a[0]
    padded = np.zeros((L + 2,))
    padded[1:-1] = wide[1 : L + 1]
    return found, edges[1:] - edges[:-1], padded


def test_sizes_of_results() -> None:
    check_like_dace(sized_by_symbols, whole(3) + 1, whole(5) ** 2, whole(7), K=2)
    found = sized_by_symbols(whole(4), whole(3), whole(9), K=3)
    assert [each.shape for each in found] == [(10, 2, 3), (2,), (6,)]
    with pytest.raises(ValueError, match=r"'wide' of program '.*' must have size 2\*L \+ 1 = 7 .*, not 8"):
        sized_by_symbols(whole(4), whole(3), whole(8), K=3)
    with pytest.raises(TypeError, match=r"A call of program '.*' lacks the symbol 'K': pass 'K=\.\.\.'"):
        sized_by_symbols(whole(3), whole(3), whole(3))


def test_results() -> None:
    first = check_like_dace(several, whole(4), 3.0)
    second = several(whole(4), 3.0)
    assert not any(np.shares_memory(one, other) for one, other in zip(first, second, strict=True))
    check_like_dace(single, whole(4))
    out = (np.zeros(3), np.zeros(1), np.zeros(4))
    returned = several(whole(4), 3.0, out=out)
    assert all(one is other for one, other in zip(returned, out, strict=True))
    check_same(out, first)
    check_like_dace(reduced, whole(4), whole(4) + 1)  # whose sizes only the code of sums uses
    flags = np.zeros(4, bool)
    assert single(whole(4), out=flags) is flags
    check_same(flags, whole(4) > 1)


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        ((np.zeros(3), np.zeros(1)), TypeError, "must be a tuple of 3 arrays."),
        (np.zeros(3), TypeError, "must be a tuple of 3 arrays."),
        ((np.zeros(4), np.zeros(1), np.zeros(4)), ValueError, "'result_0'"),
        ((np.zeros(3), np.zeros(1), np.zeros(4, np.float32)), TypeError, "must have dtype 'float64', not 'float32'."),
    ],
)
def test_memory_for_results_that_does_not_fit(out: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        several(whole(4), 3.0, out=out)


def test_results_of_wrong_arguments() -> None:
    """No memory can be found for the results, and the message names the argument."""
    with pytest.raises(TypeError, match=r"Argument 'a' of program .* must be an array, not 'float'"):
        several(1.0, 3.0)
    with pytest.raises(TypeError, match=r"Argument 'a' of program .* must have 1 dimension"):
        several(whole(2, 2), 3.0)


# --- Refusals ---------------------------------------------------------------------------------------------------------


def test_what_no_stub_carries() -> None:
    @gtstub.program
    @dace.program
    def rest(a: dace.float64[N % 2]):
        a[:] = a + 1

    @gtstub.program(fallback=True)
    @dace.program
    def short_numbers(a: dace.bfloat16[N]):
        a[:] = a + a

    with pytest.raises(SignatureError, match="but the size of axis 0 is 'Mod"):
        rest(whole(1))
    for count in (1, 2):
        a = np.ones(3, bfloat16)
        short_numbers(a)
        check_same(a, np.full(3, 2, bfloat16))
        assert short_numbers.fallback_calls == count
    text = f"{short_numbers.name}', which goes through DaCe."

    def captured() -> gtstub.Step:
        with gtstub.capture() as step:
            short_numbers(a)
            agree(whole(3, 2), whole(3, 2))
        return step

    with pytest.warns(CaptureWarning, match=text) as caught:
        step = captured()
    assert (len(step), short_numbers.fallback_calls, caught[0].filename) == (1, 3, __file__)
    with pytest.raises(CaptureError, match="cannot be bound: this call goes through DaCe"):
        _host.bind(short_numbers, a)
    assert short_numbers.fallback_calls == 3


POINT = dace.struct("point", x=dace.float32, y=dace.float32)
PAIR = dace.vector(dace.float32, 2)


def test_elements_that_are_no_numbers() -> None:
    @gtstub.program
    @dace.program
    def points(a: POINT[1], b: POINT[1]):
        a[:] = b

    @gtstub.program
    @dace.program
    def pairs(a: PAIR[4]):
        a[:] = a + a

    with pytest.raises(SignatureError, match=r"'a' of SDFG '.*points' must have one of the element types .*'point'"):
        points(*np.zeros((2, 1), [("x", np.float32), ("y", np.float32)]))
    with pytest.raises(SignatureError, match=r"'a' of SDFG '.*pairs' must have one of the element types .*'dace::vec"):
        pairs(np.zeros(8, np.float32))


def test_a_result_in_the_storage_of_threads() -> None:
    """DaCe gives a result the storage of what it is computed from."""

    @gtstub.program
    @dace.program
    def ones():
        a = np.ones(N, dtype=np.float32) @ dace.StorageType.CPU_ThreadLocal
        return a + 1

    check_same(ones(N=10), np.full(10, 2, np.float32))


SMALL = dace.symbol("SMALL", dace.int16)
SHORT = np.ones(3, bfloat16)


def test_refusals_are_in_words_of_dace_programs() -> None:
    """Their users have written no signatures, and do not know DaCe's names of arrays."""

    @gtstub.program
    @dace.program
    def small(a: dace.float64[SMALL], b: dace.float64[SMALL]):
        a[:] = b

    @gtstub.program
    @dace.program
    def reads_short(a: dace.float64[3]):
        a[:] = a * SHORT

    for program, error, message in (
        (
            small,
            PlanError,
            "cannot be called through a stub: symbol 'SMALL' has dtype 'int16', not 'int32' or 'int64'.",
        ),
        (reads_short, SignatureError, f"Argument 'SHORT' of SDFG '{reads_short.name}' must have one of the element"),
    ):
        with pytest.raises(error, match=re.escape(message)):
            program.compile()


def test_a_wrong_size_is_named_before_the_stride_that_follows_from_it() -> None:
    with pytest.raises(ValueError, match=re.escape("'b' of program") + ".* must have size 2 on axis 1 .*, not 4"):
        agree(whole(3, 2), whole(3, 4))
    with pytest.raises(ValueError, match="must have stride 2 on axis 0"):
        agree(whole(3, 2), whole(3, 4)[:, :2])


result, result_0, self_w, self_w_ = (dace.symbol(name) for name in ("result", "result_0", "self_w", "self_w_"))


@gtstub.program
@dace.program
def with_symbols_like_results(a: dace.float64[result], b: dace.float64[result_0]):
    return a * result, b + result_0


class WithSymbolsLikeAttributes:
    def __init__(self) -> None:
        self.w = whole(3) + 2

    @gtstub.program
    @dace.method
    def step(self, a: dace.float64[self_w], b: dace.float64[self_w_]):
        a[:] = a + self.w[0] * self_w + self_w_
        b[:] = b + self_w_


def test_symbols_with_the_names_of_results_and_attributes() -> None:
    """Names that gtstub gives to results and to what a program reads are other ones than those of symbols."""
    check_like_dace(with_symbols_like_results, whole(3), whole(4))
    a, b = whole(4), whole(5)
    WithSymbolsLikeAttributes().step(a, b)
    check_same(a, whole(4) + 2 * 4 + 5)
    check_same(b, whole(5) + 5)
