"""Tables that a host passes to a granule, with indices from 1."""

from __future__ import annotations

import ctypes
from pathlib import Path

import gt4py.next as gtx
import numpy as np
import pytest

import gtstub
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.frameworks.gt4py.backend import make_backend
from gtstub.programs.granule.library import Library, _array
from gtstub.programs.granule.verify import read_granule
from gtstub.tools.recorded.runtime import Array
from tests.support.allocations import growth, held, needs_counts
from tests.support.granules import field
from tests.support.small_programs import Edge, K, V2EDim, Vertex, gather

pytestmark = pytest.mark.xdist_group("granule")

EDGES, VERTICES, POSITIONS = 50, 50_000, 8


class Model:
    """The table is at all positions of the step."""

    def __init__(self) -> None:
        self.edges, self.weights = np.arange(EDGES, dtype=float)[:, None], np.ones((VERTICES, 2))
        self.vertices = np.zeros((POSITIONS, VERTICES, 1))
        table = np.arange(2 * VERTICES, dtype=np.int32).reshape(VERTICES, 2) % EDGES
        provider = {"V2E": gtx.as_connectivity([Vertex, V2EDim], codomain=Edge, data=table)}
        self.table = provider["V2E"].ndarray
        program = gather.with_backend(make_backend(gpu=False))
        a, weights = field(self.edges, Edge, K), field(self.weights, Vertex, V2EDim)
        with gtstub.capture() as self.step:
            for out in self.vertices:
                program(a, weights, field(out, Vertex, K), offset_provider=provider)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"a": self.edges, "out": self.vertices, "v2e": self.table}


class Host(Library):
    """A host whose tables begin at 1."""

    def bind_from_1(self, arrays: dict[str, np.ndarray]) -> None:
        given = [_array(arrays[each.name]) for each in self._description.arguments]
        memory = (Array * (len(given) + 1))(*given)
        ctypes.c_int64.from_buffer(memory, len(given) * ctypes.sizeof(Array)).value = 1
        self._kept = [arrays]
        self._check(self._function("bind")(self._handle, memory))


@needs_counts
def test_all_positions_share_one_copy_of_a_table(toolchain: Toolchain, tmp_path: Path) -> None:
    model = Model()
    expected = model.vertices.copy()
    folder = gtstub.Granule("tables", steps={"step": model.step}, arguments=model.arrays()).export(tmp_path / "tables")
    toolchain.start(folder / "tables_granule.c", tmp_path / "tables.so").wait()
    host = Host(tmp_path / "tables.so", read_granule(folder), folder)
    arrays = model.arrays() | {"v2e": model.table + 1}
    step = read_granule(folder).steps[0]
    before = held()
    host.bind_from_1(arrays)
    assert growth(before) < 2 * model.table.nbytes
    for shift in (0, 1):
        arrays["v2e"][...] = (model.table + shift) % EDGES + 1
        model.vertices[...] = 0
        host.bind_from_1(arrays)  # reads the table again
        host.run(step)
        assert (model.vertices == expected).all() == (shift == 0)
        assert (model.vertices == model.edges[(model.table + shift) % EDGES].sum(1)).all()
    host.close()
