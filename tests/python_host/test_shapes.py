"""Sizes and strides that are polynomials of symbols: what the SDFG gets, and what is refused, in Python and C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gtstub.entries.toolchain.compiler import Toolchain
from tests.support.c_program import CProgram, load
from tests.support.hosting import Bound, address
from tests.support.random_programs import FieldValue
from tests.support.signatures import SHAPES_PROGRAM, SHAPES_SDFG

N, T, H, M = 4, 3, 2, 5
DIMS = {"f": ("K", "Cell"), "g": ("K", "Cell")}


def arrays(n: int = N, t: int = T, h: int = H, m: int = M, wide: int = 2**33) -> dict[str, Any]:
    """Arrays that fit these symbols."""
    rows = np.zeros(t * (2 * m + n + t) + 2)
    return {
        "a": np.zeros(n),
        "edges": np.zeros(n + 1),
        "twice": np.zeros(2 * n),
        "table": np.zeros(m * n),
        "odd": np.zeros(2 * h + 1),
        "wide": np.lib.stride_tricks.as_strided(np.zeros(1), (wide,), (0,)),
        "f": np.lib.stride_tricks.as_strided(rows, (t, 2), (8 * (n + t), 8)),
        "g": np.lib.stride_tricks.as_strided(rows, (t, 2), (16 * m, 8)),
    }


class Both:
    """The program as Python calls it, and as C does."""

    def __init__(self, folder: Path, toolchain: Toolchain) -> None:
        self.bound = Bound(folder, toolchain, SHAPES_SDFG, SHAPES_PROGRAM)
        self._c = CProgram(load(self.bound.stub, self.bound.library), self.bound.stub, SHAPES_SDFG, self.values(M))

    @staticmethod
    def values(m: int, **changed: Any) -> dict[str, Any]:
        return {
            **{
                name: FieldValue(array, (0,) * array.ndim, DIMS.get(name, ("K",)))
                for name, array in {**arrays(), **changed}.items()
            },
            "M": m,
        }

    def call(self, m: int = M, **changed: Any) -> str | None:
        """None, or the message, which is the same from both."""
        message = None
        try:
            self.bound.program(**{**arrays(), **changed}, M=m)
        except ValueError as error:
            message = str(error)
        assert self._c(self.values(m, **changed)) == message
        return message


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Both:
    return Both(tmp_path_factory.mktemp("shapes"), toolchain)


def strided(strides: tuple[int, int], shape: tuple[int, int] = (T, 2)) -> Any:
    return np.lib.stride_tricks.as_strided(np.zeros(100), shape, tuple(8 * each for each in strides))


def test_what_the_sdfg_gets(both: Both) -> None:
    given_ = arrays()
    assert both.call(**given_) is None
    expected = {"H": H, "L": 2**33, "M": M, "N": N, **{name: address(array) for name, array in given_.items()}}
    assert both.bound.recorder.calls() == [expected] * 2
    both.bound.recorder.clear()


BEGIN, END = "Argument '", "' of program 'shapes' must have "


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"edges": np.zeros(4)}, f"{BEGIN}edges{END}size N + 1 = 5 on axis 0 ('K'), not 4."),
        ({"edges": np.zeros(6)}, f"{BEGIN}edges{END}size N + 1 = 5 on axis 0 ('K'), not 6."),
        ({"twice": np.zeros(7)}, f"{BEGIN}twice{END}size 2*N = 8 on axis 0 ('K'), not 7."),
        ({"table": np.zeros(21)}, f"{BEGIN}table{END}size M*N = 20 on axis 0 ('K'), not 21."),
        ({"m": 4}, f"{BEGIN}table{END}size M*N = 16 on axis 0 ('K'), not 20."),
        ({"m": -5}, "Argument 'table' of program 'shapes' would have the negative size M*N = -20 on axis 0 ('K')."),
        ({"odd": np.zeros(4)}, f"{BEGIN}odd{END}size 2*H + 1 = 3 on axis 0 ('K'), not 4."),
        ({"f": strided((8, 1))}, f"{BEGIN}f{END}stride N + T = 7 on axis 0 ('K'), not 8."),
        ({"g": strided((8, 1))}, f"{BEGIN}g{END}stride 2*M = 10 on axis 0 ('K'), not 8."),
        (
            {"g": strided((10, 1), (4, 2))},
            "Arguments of program 'shapes' disagree: size of axis 0 of 'f' is 3, but size of axis 0 of 'g' is 4.",
        ),
        ({"f": strided((8, 1), (1, 2)), "g": strided((9, 1), (1, 2))}, None),  # no access depends on these strides
        ({"f": strided((0, 0), (0, 2)), "g": strided((0, 0), (0, 2))}, None),  # as numpy makes them without elements
    ],
)
def test_what_is_refused(both: Both, changed: dict[str, Any], message: str | None) -> None:
    both.bound.recorder.clear()
    assert both.call(**changed) == message
    assert len(both.bound.recorder.calls()) == (0 if message else 2)
    assert both.call() is None, "a refused array is not taken for a known one"


def test_a_size_that_does_not_fit_its_symbol(both: Both) -> None:
    wide = np.lib.stride_tricks.as_strided(np.zeros(1), (2**31,), (0,))
    message = both.call(a=np.lib.stride_tricks.as_strided(np.zeros(1), (2**31,), (8,)))
    assert (
        message
        == f"{BEGIN[:-1]}'a' of program 'shapes' has size 2147483648 on axis 0 ('K'), which does not fit 'int32'."
    )
    assert both.call(wide=wide) is None


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    symbols=st.fixed_dictionaries({name: st.integers(1, 6) for name in ("n", "t", "h", "m")}),
    wrong=st.sampled_from(("", "edges", "twice", "table", "odd", "f", "g")),
    by=st.sampled_from((-1, 1)),
)
def test_any_symbols(both: Both, symbols: dict[str, int], wrong: str, by: int) -> None:
    """Arrays that fit are taken, and the values of the symbols arrive; another size of one is refused."""
    arguments = arrays(**symbols)
    both.bound.recorder.clear()
    assert both.call(symbols["m"], **arguments) is None
    found = both.bound.recorder.calls()[-1]
    assert {name: found[name.upper()] for name in ("n", "m", "h")} == {name: symbols[name] for name in ("n", "m", "h")}
    if wrong and arguments[wrong].shape[0] + by > 0:
        shape = (arguments[wrong].shape[0] + by, *arguments[wrong].shape[1:])
        changed = np.lib.stride_tricks.as_strided(np.zeros(200), shape, arguments[wrong].strides)
        message = both.call(symbols["m"], **{**arguments, wrong: changed})
        assert message is not None
        assert f"'{wrong}'" in message
