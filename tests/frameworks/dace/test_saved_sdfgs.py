"""SDFGs in files that gtstub compiles: those of another version of DaCe are refused."""

import gzip
import json
import math
import pickle
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from gtstub.entries.cache.entry import COMPILED_SDFG
from gtstub.entries.cache.store import open_cache
from gtstub.errors import GtstubError
from gtstub.frameworks.dace.internals import compile_sdfg
from gtstub.frameworks.dace.rebuild import rebuild_with_checks
from gtstub.frameworks.dace.saved import load_nested, saved_sdfg
from gtstub.stub.sdfg.read import SdfgError

REFUSED = (
    "The SDFG in '{file}' was written by {by}. DaCe {installed}, which is installed, may compile it into other code:"
    " make it again with the installed DaCe, or install the other one."
)


def doubling() -> dace.SDFG:
    sdfg = dace.SDFG("doubling")
    sdfg.add_array("x", [4], dace.float64)
    state = sdfg.add_state()
    tasklet = state.add_tasklet("double", {"a"}, {"b"}, "b = 2 * a")
    state.add_edge(state.add_read("x"), None, tasklet, "a", dace.Memlet("x[1]"))
    state.add_edge(tasklet, "b", state.add_write("x"), None, dace.Memlet("x[1]"))
    return sdfg


def save(file: Path, **changes: Any) -> Path:
    raw = {**doubling().to_json(), **changes}
    text = json.dumps({name: value for name, value in raw.items() if value is not None}).encode()
    file.write_bytes(gzip.compress(text) if file.suffix == ".sdfgz" else text)
    return file


@pytest.mark.parametrize("suffix", [".sdfg", ".sdfgz"])
def test_versions(tmp_path: Path, suffix: str) -> None:
    assert saved_sdfg(save(tmp_path / f"own{suffix}")).name == "doubling"
    for version, by in (("1.0.0", "DaCe 1.0.0"), (None, "a DaCe that has not written down its version")):
        file = save(tmp_path / f"other{suffix}", dace_version=version)
        with pytest.raises(GtstubError) as caught:
            saved_sdfg(file)
        assert str(caught.value) == REFUSED.format(file=file, by=by, installed=dace.__version__)


def test_what_is_pickled_is_not_read(tmp_path: Path) -> None:
    """It could run anything, and does not say which DaCe has written it."""
    file = tmp_path / "pickled.sdfg"
    file.write_bytes(pickle.dumps(doubling()))
    with pytest.raises(SdfgError, match="is neither JSON nor compressed JSON"):
        saved_sdfg(file)


def nesting(inner: Path) -> dace.SDFG:
    sdfg = dace.SDFG("nesting")
    sdfg.add_array("y", [4], dace.float64)
    state = sdfg.add_state()
    node = state.add_nested_sdfg(None, {"x"}, {"x"}, {}, name="inner", external_path=str(inner))
    state.add_edge(state.add_read("y"), None, node, "x", dace.Memlet("y[0:4]"))
    state.add_edge(node, "x", state.add_write("y"), None, dace.Memlet("y[0:4]"))
    return sdfg


def test_a_nested_sdfg_in_a_file(tmp_path: Path) -> None:
    sdfg = nesting(save(tmp_path / "inner.sdfg"))
    load_nested(sdfg)
    assert "doubling" in json.dumps(sdfg.to_json(), default=str)  # from which the key is made
    save(tmp_path / "inner.sdfg", dace_version="1.0.0")
    with pytest.raises(GtstubError, match=r"inner.sdfg' was written by DaCe 1.0.0"):
        compile_sdfg(nesting(tmp_path / "inner.sdfg"), tmp_path / "build")
    assert not (tmp_path / "build").exists()


def doubled(a: dace.float64[4], b: dace.float64[4]):  # type: ignore[valid-type]
    b[:] = a * 2


def test_an_entry_of_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`gtstub replay --build-checks` compiles its SDFG."""
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "cache"))
    program = gtstub.program(dace.program(doubled))
    result = np.zeros(4)
    program(np.ones(4), result)
    assert result.tolist() == [2.0] * 4
    (entry,) = open_cache().entries()
    (tmp_path / "rebuilt").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(dace, "__version__", "3.0.0")
        with pytest.raises(GtstubError, match=r"program.sdfgz' was written by DaCe .*\. DaCe 3.0.0, which is"):
            rebuild_with_checks(entry.path, tmp_path / "rebuilt")
    assert list((tmp_path / "rebuilt").iterdir()) == []
    assert rebuild_with_checks(entry.path, tmp_path / "rebuilt").exists()


def rounding(rounded: Any) -> Any:
    @dace.program
    def whole(x: dace.float64):
        return rounded(x)

    return gtstub.program(whole)


def test_rounded_assignments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DaCe's JSON form has `n = x` for the assignments `n = floor(x)` and `n = ceil(x)` of an edge."""
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "cache"))
    for rounded in (math.floor, math.ceil):
        for x in (1.25, -1.25):
            assert rounding(rounded)(x) == rounded(x)
    entries = list(open_cache().entries())
    assert len(entries) == 2
    texts = []
    for entry in entries:
        saved = saved_sdfg(entry.path / COMPILED_SDFG)
        texts += [text for edge in saved.all_interstate_edges() for text in edge.data.assignments.values()]
    assert sorted(texts) == ["ceil(x)", "floor(x)"]
