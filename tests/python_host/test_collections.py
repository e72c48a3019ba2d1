"""Named collections: a stub takes them apart by position where they are plain tuples, else by their attributes."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.model import Axis
from tests.support.hosting import Bound
from tests.support.signatures import (
    EDGE,
    NEIGHBORS,
    K,
    array,
    collection_of,
    field,
    program,
    scalar,
    sdfg,
    symbol,
    tuple_of,
    with_static,
)

pytestmark = pytest.mark.sanitizer

PROGRAM = with_static(
    program(
        "collect",
        state=collection_of(
            rho=field(K), wind=collection_of(u=field(K), v=field(K)), n=scalar("int32"), step=scalar("int32")
        ),
        pair=tuple_of(collection_of(x=scalar("float64"), y=field(dtype="float64")), scalar("int32")),
    ),
    state_3=2,
)
SDFG = sdfg(
    array("state_0", Axis()),
    array("state_1_0", Axis()),
    array("state_1_1", Axis()),
    symbol("pair_0_0", dtype="float64"),
    symbol("pair_0_1", dtype="float64"),
    symbol("pair_1"),
    symbol("state_2"),
    name="collect",
)


class Wind(NamedTuple):
    u: Any
    v: Any


class Reversed(NamedTuple):
    v: Any
    u: Any


@dataclasses.dataclass
class State:
    rho: Any
    wind: Any
    n: int = 5
    step: int = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: Any


RHO, U, V = np.zeros(3), np.zeros(3), np.zeros(3)


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Bound:
    return Bound(tmp_path_factory.mktemp("collect"), toolchain, SDFG, PROGRAM)


@pytest.fixture(autouse=True)
def clean(bound: Bound) -> Iterator[None]:
    yield
    bound.recorder.clear()


def good() -> dict[str, Any]:
    return {"state": State(RHO, Wind(U, V)), "pair": (Point(0.5, 1.5), 7)}


EXPECTED = {
    "state_0": RHO.ctypes.data,
    "state_1_0": U.ctypes.data,
    "state_1_1": V.ctypes.data,
    "pair_0_0": 0.5,
    "pair_0_1": 1.5,
    "pair_1": 7,
    "state_2": 5,
}


class Computed:
    """A collection that makes its elements when it is asked for them."""

    @property
    def x(self) -> float:
        return float("0.5")

    @property
    def y(self) -> Any:
        return np.array(1.5)


@pytest.mark.parametrize(
    "state",
    [
        State(RHO, Wind(U, V)),
        State(RHO, Reversed(V, U)),
        State(RHO, (U, V)),
        (RHO, Wind(U, V), 5, 2),
        (RHO, types.SimpleNamespace(u=U, v=V, w=None), 5, 2),
        (RHO, (U, V), 5, 2),
    ],
)
@pytest.mark.parametrize("point", [Point(0.5, 1.5), (0.5, 1.5), Computed(), type("P", (), {"x": 0.5, "y": 1.5})])
def test_each_way_to_pass_a_collection_means_the_same(bound: Bound, state: Any, point: Any) -> None:
    for _ in range(3):
        bound.program(state, (point, 7))
    assert bound.recorder.calls() == [EXPECTED] * 3


MUST = "Argument '{}' of program 'collect' must be "
STATE = MUST.format("state") + "a tuple of length 4 or have the attributes 'rho', 'wind', 'n', 'step', but "
WIND = MUST.format("state.wind") + "a tuple of length 2 or have the attributes 'u', 'v', but "


@pytest.mark.parametrize(
    ("error", "message", "changed"),
    [
        (TypeError, STATE + "'NoneType' has no 'rho'.", {"state": None}),
        (TypeError, STATE + "'list' has no 'rho'.", {"state": [RHO, (U, V), 5, 2]}),
        (TypeError, STATE + "'Wind' has no 'rho'.", {"state": Wind(U, V)}),
        (TypeError, WIND + "'types.SimpleNamespace' has no 'v'.", {"state": State(RHO, types.SimpleNamespace(u=U))}),
        (TypeError, MUST.format("state") + "a tuple of length 4, not of length 2.", {"state": (U, V)}),
        (TypeError, MUST.format("state.wind") + "a tuple of length 2, not of length 1.", {"state": State(RHO, (U,))}),
        (TypeError, MUST.format("pair") + "a tuple of length 2, not 'Point'.", {"pair": Point((0.5, 1.5), 7)}),
        (TypeError, MUST.format("state.rho") + "a field, not 'float'.", {"state": State(1.0, (U, V))}),
        (TypeError, MUST.format("state.wind.v") + "a field, not 'NoneType'.", {"state": State(RHO, Wind(U, None))}),
        (TypeError, MUST.format("state.n") + "an 'int32', not 'float'.", {"state": (RHO, (U, V), 5.5, 2)}),
        (TypeError, MUST.format("pair[0].x") + "a 'float64', not 'str'.", {"pair": (Point("", 1.5), 7)}),
        (
            ValueError,
            "Argument 'state.step' of program 'collect' is 3, but was compiled in as 2;"
            " compile the program for this value, too.",
            {"state": State(RHO, (U, V), step=3)},
        ),
    ],
)
def test_wrong_collections_are_refused(
    bound: Bound, error: type[Exception], message: str, changed: dict[str, Any]
) -> None:
    bound.program(**good())
    with pytest.raises(error) as caught:
        bound.program(**{**good(), **changed})
    assert str(caught.value) == message
    assert type(caught.value) is error
    assert len(bound.recorder.calls()) == 1
    bound.program(**good())
    assert bound.recorder.calls() == [EXPECTED] * 2


def test_an_error_in_a_collections_own_code_is_raised_as_it_is(bound: Bound) -> None:
    class Broken(Computed):
        @property
        def y(self) -> Any:
            raise ZeroDivisionError("mine")

    bound.program(**good())
    with pytest.raises(ZeroDivisionError, match=r"^mine$"):
        bound.program(**{**good(), "pair": (Broken(), 7)})
    bound.program(**good())
    assert bound.recorder.calls() == [EXPECTED] * 2


def test_an_attribute_error_of_a_property_keeps_its_text(bound: Bound) -> None:
    class Broken(Computed):
        @property
        def y(self) -> Any:
            raise AttributeError("mine")

    with pytest.raises(AttributeError, match=r"^mine$"):
        bound.program(**{**good(), "pair": (Broken(), 7)})
    bound.program(**good())


def test_a_collection_that_calls_its_own_program_is_refused(bound: Bound) -> None:
    class Calling(Computed):
        @property
        def y(self) -> Any:
            bound.program(**good())

    with pytest.raises(RuntimeError, match="was called while it was reading the arguments of another call"):
        bound.program(**{**good(), "pair": (Calling(), 7)})
    bound.program(**good())
    assert bound.recorder.calls() == [EXPECTED]


def test_what_an_attribute_makes_lives_until_the_sdfg_has_run(bound: Bound) -> None:
    """Else its memory would be that of the next one, and both would have one address."""

    class Made:
        @property
        def u(self) -> Any:
            return np.zeros(1000)

        v = u

    for _ in range(10):
        bound.program(State(RHO, Made()), good()["pair"])
        last = bound.last()
        assert last["state_1_0"] != last["state_1_1"]


def test_reference_counts_do_not_change(bound: Bound) -> None:
    state, pair = good().values()
    wind = state.wind
    fields = [np.zeros(3), np.zeros(3)]
    watched = [state, wind, *fields, pair[0], pair[0].y, pair]
    others = [State(fields[0], Wind(*fields)), State(fields[0], types.SimpleNamespace(u=fields[0]))]
    bound.program(state, pair)
    bound.program(others[0], pair)
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(1000):
        bound.program(state, pair)
        bound.program(others[0], pair)
        with pytest.raises(TypeError):
            bound.program(others[1], pair)
        bound.recorder.clear()
    assert [sys.getrefcount(item) for item in watched] == before


def test_an_attribute_that_changes_the_offset_provider(tmp_path: Path, toolchain: Toolchain) -> None:
    signature = program("inter", NEIGHBORS, state=collection_of(one=field(EDGE), two=field(EDGE)))
    table = array("gt_conn_E2V", Axis(), Axis(size=2), dtype="int32")
    slots = sdfg(table, array("state_0", Axis()), array("state_1", Axis()), name="inter")
    bound = Bound(tmp_path, toolchain, slots, signature)
    provider = {"E2V": np.zeros((3, 2), np.int32)}

    class Changing:
        one = np.zeros(3)
        fixed = np.zeros(3)
        changes = False

        @property
        def two(self) -> Any:
            if self.changes:
                provider["E2V"] = np.zeros((3, 2), np.int32)
            return self.fixed

    state = Changing()
    for changes in (False, False, False, True):
        state.changes = changes
        bound.program(state=state, offset_provider=provider)
        got = bound.last()
        expected = (state.one.ctypes.data, state.fixed.ctypes.data, provider["E2V"].ctypes.data)
        assert (got["state_0"], got["state_1"], got["gt_conn_E2V"]) == expected
