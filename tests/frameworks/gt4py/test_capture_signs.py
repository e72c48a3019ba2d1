"""Elements that programs of a captured step read, and that none of them writes: a warning names those it knows."""

# No postponed annotations here: gt4py evaluates the annotations of its programs.

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gt4py.next as gtx
import numpy as np
import pytest

import gtstub
from gtstub.errors import CaptureWarning
from gtstub.frameworks.gt4py.backend import make_backend
from gtstub.programs.unwritten import unwritten
from tests.support.small_programs import Edge, EdgeK, I, K, V2EDim, Vertex, gather

pytestmark = pytest.mark.xdist_group("compile")

EDGES, VERTICES, LEVELS = 6, 4, 3


@gtx.field_operator
def _scaled(a: EdgeK, factor: gtx.float64) -> EdgeK:
    return a * factor


@gtx.program
def scaled(a: EdgeK, factor: gtx.float64, out: EdgeK, end: gtx.int32, levels: gtx.int32):
    _scaled(a, factor, out=out, domain={Edge: (0, end), K: (0, levels)})


@gtx.field_operator
def _difference(q: gtx.Field[gtx.Dims[I], gtx.int32]) -> gtx.Field[gtx.Dims[I], gtx.int32]:
    return q(I + 1) - q(I - 1)


@gtx.program
def difference(q: gtx.Field[gtx.Dims[I], gtx.int32], out: gtx.Field[gtx.Dims[I], gtx.int32], n: gtx.int32):
    _difference(q, out=out, domain={I: (1, n - 1)})


@functools.cache
def built() -> tuple[Any, Any]:
    backend = make_backend(gpu=False)
    return scaled.with_backend(backend), gather.with_backend(backend)


def own(caught: list[warnings.WarningMessage]) -> list[str]:
    found = [each for each in caught if each.category is CaptureWarning]
    assert all(each.filename == __file__ for each in found)
    return [str(each.message) for each in found]


type Programs = tuple[Callable[[int, int], None], Callable[[], None], gtx.Field, gtx.Field]


def programs(table: list[list[int]]) -> Programs:
    """A call that scales edges into another array up to an end and a level, one that gathers these, and both arrays."""
    scaled_, gather_ = built()
    given, edges = (gtx.as_field([Edge, K], np.ones((EDGES, LEVELS))) for _ in range(2))
    weights = gtx.as_field([Vertex, V2EDim], np.ones((VERTICES, 2)))
    vertices = gtx.as_field([Vertex, K], np.zeros((VERTICES, LEVELS)))
    data = np.array(table, np.int32)
    provider = {"V2E": gtx.as_connectivity([Vertex, V2EDim], codomain=Edge, data=data)}

    def scale(end: int, levels: int) -> None:
        scaled_(given, 2.0, edges, np.int32(end), np.int32(levels), offset_provider={})

    def gather() -> None:
        gather_(edges, weights, vertices, offset_provider=provider)

    return scale, gather, given, edges


def signs(table: list[list[int]], *calls: tuple[int, int], gathers: int = 1) -> list[str]:
    """The warnings for a capture that scales edges into another array, and gathers these at vertices."""
    scale, gather, *_ = programs(table)

    def run() -> None:
        for end, levels in calls:
            scale(end, levels)
        for _ in range(gathers):
            gather()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gtstub.capture(run, name="run")
    return own(caught)


INNER = [[0, 1], [1, 2], [2, 3], [3, 0]]
WITH_HALO = [[0, 1], [1, 2], [2, 3], [3, 5]]


def test_elements_that_a_table_names() -> None:
    assert signs(WITH_HALO, (4, LEVELS)) == [
        "Step 'run' may lack something: position 2 ('gather') reads 3 of 18 elements of argument 'a' that no position "
        "writes, those at index 5 of axis 0, and position 1 ('scaled') writes others of them. If a halo exchange fills "
        "them, it belongs between the two: gtstub.action(function, array)."
    ]
    assert signs(INNER, (4, LEVELS)) == []


def test_levels() -> None:
    (sign,) = signs(INNER, (EDGES, LEVELS - 1))
    assert "reads 4 of 18 elements of argument 'a' that no position writes, those at index 2 of axis 1, and" in sign


def test_what_another_position_writes() -> None:
    assert signs(WITH_HALO, (4, LEVELS), (EDGES, LEVELS)) == []
    assert signs(WITH_HALO, (4, LEVELS), (EDGES, LEVELS - 1)) != []


def test_an_array_that_is_named_once() -> None:
    """Only the first position that reads its elements."""
    (sign,) = signs(WITH_HALO, (4, LEVELS), gathers=3)
    assert "position 2 ('gather') reads" in sign


def test_an_array_that_no_program_writes() -> None:
    assert signs(WITH_HALO) == []


def test_an_exchange_of_integers() -> None:
    """They keep their values while a capture is verified, so that only the sign tells."""
    program = difference.with_backend(make_backend(gpu=False))
    a, b, c = (gtx.as_field([I], np.arange(10, dtype=np.int32)) for _ in range(3))

    def run() -> None:
        program(a, b, np.int32(10), offset_provider={})
        b.ndarray[0], b.ndarray[-1] = b.ndarray[-2], b.ndarray[1]
        program(b, c, np.int32(10), offset_provider={})

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gtstub.capture(run, name="run")
    only, sign = own(caught)
    assert only == (
        "Step 'run' was verified only with the values that its arrays have now: it writes no array of floating-point "
        "numbers."
    )
    assert "position 2 ('difference') reads 2 of 10 elements of argument 'q' that no position writes, those at" in sign
    assert "indices 0 and 9 of axis 0, and position 1 ('difference') writes others of them" in sign


def test_a_section_that_something_may_write() -> None:
    """What fills it is not looked for."""
    scale, gather, _, edges = programs(WITH_HALO)
    first = gtstub.capture(lambda: scale(4, LEVELS), verify=False)[0]
    second = gtstub.capture(gather, verify=False)[0]
    assert len(list(unwritten([first, second]))) == 1
    assert list(unwritten([first, gtstub.action(print, edges.ndarray[4:]), second])) == []


@pytest.mark.parametrize("between", ["nothing", "the array", "another array", "no array"])
def test_an_exported_step(between: str, tmp_path: Path) -> None:
    scale, gather, given, edges = programs(WITH_HALO)

    def exchange(*arrays: Any) -> None: ...

    with gtstub.capture() as first:
        scale(4, LEVELS)
    with gtstub.capture() as second:
        gather()
    arrays = {"the array": [edges], "another array": [given], "no array": []}.get(between)
    middle = [] if arrays is None else [gtstub.action(exchange, *arrays)]
    step = gtstub.Step([first, *middle, second], "run")
    granule = gtstub.Granule("g", steps={"run": step}, hooks={"exchange": exchange} if middle else {})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        granule.export(tmp_path / "g")
    found = own(caught)
    assert len(found) == (between in ("nothing", "another array"))
    position = 3 if middle else 2
    for text in found:
        assert text.startswith(
            f"Step 'run' of granule 'g' may lack something: position {position} ('gather') reads 3 of"
        )
