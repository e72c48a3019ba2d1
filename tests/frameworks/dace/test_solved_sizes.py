"""Symbols that follow from several sizes, and sizes that are powers and quotients. What DaCe solves, gtstub passes."""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from gtstub.errors import PlanError
from tests.frameworks.dace.test_random_sizes import array, program_of
from tests.support.dace_calls import Calls, check_refused
from tests.support.dace_programs import check_like_dace
from tests.support.random_dace_programs import Array, evaluated

Sizes = tuple[tuple[str, ...], ...]

SOLVED: dict[str, tuple[Sizes, Mapping[str, int]]] = {
    "a sum": ((("N",), ("N + M",)), {"N": 4, "M": 2}),
    "a product": ((("N*M",), ("N",)), {"N": 4, "M": 3}),
    "one after the other": ((("N + M",), ("M + K",), ("K",)), {"N": 5, "M": 3, "K": 2}),
    "a system": ((("N + M",), ("N - M",)), {"N": 5, "M": -2}),
    "a system of three": ((("N + M",), ("M + K",), ("N + K",)), {"N": 5, "M": 1, "K": 7}),
    "factors": ((("2*N + 3*M + 1",), ("N - M",)), {"N": 5, "M": 2}),
    "a system with a known symbol": ((("K*N + M",), ("N - M",), ("K",)), {"N": 5, "M": 2, "K": 3}),
    "products of sums": ((("N*(M + 1)",), ("N*M",)), {"N": 2, "M": 3}),
    "axes of one array": ((("N + M", "N*M"), ("M", "K + M")), {"N": 4, "M": 3, "K": 2}),
    "what is left": ((("N", "M"), ("N*M*K + L", "L")), {"N": 2, "M": 3, "K": 2, "L": 4}),
    "empty arrays": ((("N",), ("N + M",), ("M*K",), ("K",)), {"N": 0, "M": 0, "K": 3}),
}


def arrays(sizes: Sizes) -> tuple[Array, ...]:
    return tuple(array("abcd"[number], each) for number, each in enumerate(sizes))


def made_in(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize(("sizes", "symbols"), SOLVED.values(), ids=SOLVED)
def test_symbols_that_follow_from_several_sizes(sizes: Sizes, symbols: Mapping[str, int], tmp_path: Path) -> None:
    for order in (sizes, sizes[::-1]):
        calls = Calls(program_of(arrays(order), symbols), made_in(tmp_path / str(order == sizes)))
        calls.call()
        calls.check_slots()
        name, last = calls.example.arrays[-1].name, calls.arrays[calls.example.arrays[-1].name]
        # One more column has another solution, which must be right, or is a refusal of an array with its axis.
        longer = np.zeros((*last.shape[:-1], last.shape[-1] + 1))
        if refusal := refusal_of(calls, name, longer):
            assert re.search(r"^Argument '[abcd]' of program 'prog' .* on axis \d \('axis_\d'\)", refusal)
            continue
        found = calls.program.recorder.calls()[-1]
        for each in calls.example.arrays:
            shape = tuple(evaluated(text, {key: found.get(key, 0) for key in "NMKL"}) for text in each.sizes)
            assert shape == (longer if each.name == name else calls.arrays[each.name]).shape


def refusal_of(calls: Calls, name: str, array: Any) -> str:
    try:
        calls.call(**{name: array})
    except ValueError as error:
        return str(error)
    return ""


def test_what_does_not_divide_is_refused_with_the_axis(tmp_path: Path) -> None:
    calls = Calls(program_of(arrays((("N",), ("N*M",))), {"N": 4, "M": 2}), tmp_path)
    calls.call()
    where = "on axis 0 ('axis_0')"
    check_refused(calls, "'b'", f"has size 7 {where}, but no integer 'M' makes M*N equal to it.", b=np.zeros(7))
    message = f"has size 0 {where}, which M*N is for any 'M': pass 'M=...'."
    check_refused(calls, "'b'", message, a=np.zeros(0), b=np.zeros(0))
    check_refused(calls, "'b'", f"has size 7 {where}, but no integer 'M'", a=np.zeros(0), b=np.zeros(7))
    system = Calls(program_of(arrays((("N + M",), ("N - M",))), {"N": 5, "M": 2}), made_in(tmp_path / "system"))
    system.call()
    check_refused(system, "'b'", f"has size 4 {where}, but no integer", b=np.zeros(4))


def test_symbols_of_32_bits_that_a_solution_exceeds(tmp_path: Path) -> None:
    calls = Calls(program_of((array("a", ("N",), ("0",)), array("b", ("N + K",), ("0",))), {"N": 2, "K": 3}), tmp_path)
    wide = np.lib.stride_tricks.as_strided(np.zeros(1), (2**33,), (0,))
    calls.call(b=wide)
    calls.check_slots(symbols={"N": 2, "K": 2**33 - 2}, b=wide)
    calls = Calls(program_of((array("a", ("K",), ("0",)), array("b", ("N + K",), ("0",))), {"N": 1, "K": 2}), tmp_path)
    check_refused(calls, "'b'", "must have size K + N", b=wide)


def test_a_passed_symbol_that_changes_is_solved_anew(tmp_path: Path) -> None:
    """The arrays are those of the call before."""
    example = program_of(arrays((("N*K",), ("N*M",))), {"N": 2, "M": 3, "K": 6})
    calls = Calls(dataclasses.replace(example, passed=("K",)), tmp_path)
    calls.call()
    calls.check_slots()
    calls.call(K=4)
    calls.check_slots(symbols={"N": 3, "M": 2, "K": 4})
    check_refused(calls, "'a'", "has size 12", "but no integer 'N' makes K*N equal to it.", K=5)
    check_refused(calls, "'a'", "but no integer 'N' makes K*N equal to it.", K=0)
    calls.call()
    calls.check_slots()


def test_results_have_solved_sizes(tmp_path: Path) -> None:
    sizes = arrays((("N + M",), ("N - M",)))
    results = (array("result0", ("N", "M + 1")), array("result1", ("2*M",)))
    calls = Calls(program_of(sizes, {"N": 5, "M": 2}, results=results), tmp_path)
    made = calls.call()
    calls.check_slots(made)
    calls.check_results(made)


def test_arrays_agree_on_sums_of_symbols_that_the_sdfg_does_not_take(tmp_path: Path) -> None:
    """Nothing tells what N and M are, but two arrays have one size, and a third one 1 more."""
    example = program_of(arrays((("N + M",), ("N + M",), ("N + M + 1",))), {"N": 2, "M": 3})
    calls = Calls(dataclasses.replace(example, logged=()), tmp_path)
    calls.call()
    check_refused(calls, "'b'", "must have size M + N = 5 on axis 0 ('axis_0'), not 6.", b=np.zeros(6))
    check_refused(calls, "'c'", "must have size M + N + 1 = 6 on axis 0 ('axis_0'), not 5.", c=np.zeros(5))


M, N, K, R = (dace.symbol(name) for name in "MNKR")


@gtstub.program
@dace.program
def open_sizes(a: dace.float64[N * M], b: dace.float64[N * K], out: dace.float64[1]):
    out[0] = N + M + K


def test_all_missing_symbols_are_named_at_once() -> None:
    with pytest.raises(PlanError, match=r"needs the symbols 'K' and 'M' and 'N', .*: pass 'K=...' and 'M=...' and 'N="):
        open_sizes(np.zeros(4), np.zeros(6), np.zeros(1))
    out = np.zeros(1)
    open_sizes(np.zeros(4), np.zeros(6), out, N=2)
    assert out[0] == 7


Pair = dace.data.Structure({"left": dace.float64[N + M], "right": dace.float64[N - M]}, "Pair")


@dataclasses.dataclass
class TwoArrays:
    left: Any
    right: Any


@gtstub.program
@dace.program
def of_structure(pair: Pair, other: dace.float64[N * K], out: dace.float64[4]):
    out[0] = pair.left[0] + pair.right[0]
    out[1] = N
    out[2] = M
    out[3] = K


def test_sizes_in_structures() -> None:
    out = np.zeros(4)
    of_structure(TwoArrays(np.full(7, 3.0), np.full(3, 4.0)), np.zeros(15), out)
    assert list(out) == [7, 5, 2, 3]
    with pytest.raises(ValueError, match=re.escape("has size 4 on axis 0 ('axis_0'), but no integer")):
        of_structure(TwoArrays(np.zeros(7), np.zeros(4)), np.zeros(15), out)


# --- Powers and quotients ---------------------------------------------------------------------------------------------


@gtstub.program
@dace.program
def powers(a: dace.float64[R**K], b: dace.float64[2 * R ** (K + 1) + N], c: dace.float64[N // 2], out: dace.float64[2]):
    out[0] = N
    for i in range(R**K):
        a[i] = a[i] + K
    c[0] = 5.0


def of_powers(r: int, k: int, n: int, **changed: Any) -> dict[str, Any]:
    made = {"a": np.arange(r**k) * 1.0, "b": np.zeros(2 * r ** (k + 1) + n), "c": np.zeros(n // 2), "out": np.zeros(2)}
    return {**made, "R": r, "K": k, **changed}


def test_powers_and_quotients() -> None:
    check_like_dace(powers, **of_powers(2, 3, 4), N=4)
    for r, k, n in ((3, 2, 7), (1, 9, 2), (5, 0, 3)):
        given = of_powers(r, k, n)
        powers(**given)
        assert given["out"][0] == n
        np.testing.assert_array_equal(given["a"], np.arange(r**k) + k)
    begin = "must have size"
    for changed, message in (
        ({"a": np.zeros(9)}, f"{begin} R**K = 8 on axis 0 ('axis_0'), not 9."),
        ({"c": np.zeros(3)}, f"{begin} int_floor(N, 2) = 2 on axis 0 ('axis_0'), not 3."),
        ({"K": 2}, f"{begin} R**K = 4 on axis 0 ('axis_0'), not 8."),
        ({"K": -1}, f"{begin} R**K = 0 on axis 0 ('axis_0'), not 8."),
        ({"R": 3, "K": 2**30}, f"{begin} R**K = 9223372036854775807 on axis 0"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            powers(**of_powers(2, 3, 4, **changed))


@gtstub.program
@dace.program
def halves(a: dace.float64[(N - 1) // 2 + 1], b: dace.float64[N]):
    for i in range((N - 1) // 2 + 1):
        a[i] = 1


def test_quotients_round_as_the_code_of_dace_does() -> None:
    """C++ rounds (0 - 1) / 2 to 0, so the loop runs once for N = 0."""
    memory = np.zeros(3)
    halves(memory[:2], np.zeros(4))
    assert memory.tolist() == [1, 1, 0]
    with pytest.raises(ValueError, match=r"must have size int_floor\(N - 1, 2\) \+ 1 = 1 on axis 0"):
        halves(memory[2:2], np.zeros(0))
    assert memory.tolist() == [1, 1, 0]
