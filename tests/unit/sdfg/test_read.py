"""What is refused before an SDFG is analysed."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gtstub.stub.sdfg import read as reading
from gtstub.stub.sdfg.model import State, blocks_in, sdfgs_in
from gtstub.stub.sdfg.read import SdfgError, parse, read

Json = dict[str, Any]


def sdfg(*blocks: Json, name: str = "prog", **more: Any) -> Json:
    return {"type": "SDFG", "attributes": {"name": name}, "nodes": numbered(blocks), "edges": [], **more}


def numbered(blocks: Sequence[Any]) -> list[Any]:
    return [{"id": number, **block} if isinstance(block, dict) else block for number, block in enumerate(blocks)]


def state(*scopes: int | str | None) -> Json:
    """A state with a map for each scope, in which the map is."""
    entry = {"type": "MapEntry", "attributes": {"params": [], "range": {"type": "Range", "ranges": []}}}
    nodes = [{**entry, "id": number, "scope_entry": scope} for number, scope in enumerate(scopes)]
    return {"type": "SDFGState", "label": "step", "nodes": nodes, "edges": []}


def nested(inner: Json) -> Json:
    node = {"type": "NestedSDFG", "id": 0, "scope_entry": None, "attributes": {"sdfg": inner}}
    return {"type": "SDFGState", "label": "outer", "nodes": [node], "edges": []}


def branches(*blocks: Json) -> Json:
    return {
        "type": "ConditionalBlock",
        "branches": [[None, {"type": "ControlFlowRegion", "nodes": numbered(blocks), "edges": []}]],
    }


def refused(found: Any) -> str:
    with pytest.raises(SdfgError) as caught:
        parse(json.dumps(found).encode(), "x.sdfg")
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_compressed_or_not(tmp_path: Path) -> None:
    made = sdfg(state(None, "0"), branches(nested(sdfg(state(None)))), {"type": "BreakBlock"})
    data = json.dumps(made).encode()
    for content in (data, gzip.compress(data)):
        (tmp_path / "file").write_bytes(content)
        found = [block for each in sdfgs_in(read(tmp_path / "file")) for block in blocks_in(each)]
        assert [block.label for block in found if isinstance(block, State)] == ["step", "outer", "step"]


@pytest.mark.parametrize("scopes", [("0",), ("1", "0"), (None, "3", "1", "2")])
@pytest.mark.parametrize("around", [lambda block: block, lambda block: nested(sdfg(block)), branches])
def test_maps_that_contain_each_other(scopes: tuple[str | None, ...], around: Any) -> None:
    message = "'x.sdfg' is not an SDFG: maps in state 'step' contain each other."
    assert refused(sdfg(around(state(*scopes)))) == message


@pytest.mark.parametrize("attributes", [None, 3, [], {}, {"name": 3}, "name"])
def test_without_a_name(attributes: Any) -> None:
    found = {"type": "SDFG", "attributes": attributes, "nodes": [], "edges": []}
    assert refused(found) == "'x.sdfg' is not an SDFG: its 'attributes' have no 'name'."


@pytest.mark.parametrize("found", [[], 3, None, {}, {"type": "Graph"}])
def test_of_another_type(found: Any) -> None:
    assert refused(found) == "'x.sdfg' is not an SDFG: its 'type' is not 'SDFG'."


@pytest.mark.parametrize(
    "block", [7, {}, {"type": "SDFGState"}, state("9"), {"type": "ConditionalBlock", "branches": [3]}, nested({"a": 1})]
)
def test_of_another_form(block: Any) -> None:
    assert refused(sdfg(block)) == "SDFG 'prog' is not in the form that this gtstub reads."
    message = "SDFG 'prog' is not in the form that this gtstub reads: DaCe 1.0.2 wrote it."
    assert refused(sdfg(block, dace_version="1.0.2")) == message


def test_halves_of_surrogate_pairs() -> None:
    message = "'x.sdfg' is not an SDFG: it contains half of a surrogate pair, which is no character."
    assert refused(sdfg(name="\ud800")) == message
    assert refused(sdfg(labels={"\udfff": 1})) == message
    for name in ("\U0001f300", "\\ud800"):  # a pair, and an escaped backslash
        made = sdfg(name=name)
        assert parse(json.dumps(made).encode(), "x.sdfg").name == name


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\x1f\x8b", gzip.compress(b"{}", mtime=0)[:-9], b'{"type": "SDFG\xff"}']
)
def test_no_json(content: bytes) -> None:
    with pytest.raises(SdfgError) as caught:
        parse(content, "x.sdfg")
    message = "'x.sdfg' is not an SDFG: it is neither JSON nor compressed JSON, or is truncated."
    assert str(caught.value) == message


def test_too_deep() -> None:
    with pytest.raises(SdfgError, match=r"^'x\.sdfg' is not an SDFG: it is nested too deeply\.$"):
        parse(b"[" * 1_000_000, "x.sdfg")
    begin, end = (
        json.dumps({"id": 0, "type": "ControlFlowRegion", "edges": [], "nodes": []}).split("[]}")[0] + "[",
        "]}",
    )
    deep = json.dumps(sdfg("X")).replace('"X"', begin * sys.getrecursionlimit() + end * sys.getrecursionlimit())
    with pytest.raises(SdfgError, match=r" nested too deeply\.$"):
        parse(deep.encode(), "x.sdfg")


def test_too_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reading, "LARGEST", 2**20)
    content = json.dumps(sdfg(name="x" * 2**20)).encode()
    for each in (content, gzip.compress(content)):
        (tmp_path / "file").write_bytes(each)
        with pytest.raises(SdfgError, match=r"' is not an SDFG: it is larger than 1 MiB\.$"):
            read(tmp_path / "file")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    for path, message in ((missing, f"There is no file '{missing}'."), (tmp_path, "Is a directory")):
        with pytest.raises(SdfgError) as caught:
            read(path)
        assert message in str(caught.value)
