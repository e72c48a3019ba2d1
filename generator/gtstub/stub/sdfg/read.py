"""Reads SDFGs in DaCe's JSON form, as DaCe and the cache save them."""

from __future__ import annotations

import functools
import graphlib
import gzip
import io
import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gtstub.errors import GtstubError
from gtstub.stub.sdfg.model import (
    Block,
    Branch,
    Conditional,
    Container,
    Edge,
    Loop,
    Node,
    Range,
    Region,
    Sdfg,
    State,
    Subset,
    Transition,
)

Json = Mapping[str, Any]

LARGEST = 2**30
"""Bytes of the largest SDFG that is read, as JSON."""


class SdfgError(GtstubError):
    """A file is no SDFG that can be analysed."""

    exit_code = 2


def read(file: Path) -> Sdfg:
    """The SDFG in a file, which may be compressed. Raises SdfgError if there is none."""
    try:
        with file.open("rb") as stream:
            return parse(stream.read(LARGEST + 1), str(file))
    except FileNotFoundError:
        raise SdfgError(f"There is no file '{file}'.") from None
    except OSError as error:
        raise SdfgError(f"'{file}' cannot be read: {error.strerror}.") from None


def parse(data: bytes, source: str) -> Sdfg:
    """The SDFG in the content of a file, which is called `source` in messages. Raises SdfgError if there is none."""
    text, document = json_in(data, source)
    try:
        return _of_text(text, document)
    except _ScopeError as error:
        raise SdfgError(f"'{source}' is not an SDFG: maps in state '{error.args[0]}' contain each other.") from None


def json_in(data: bytes, source: str) -> tuple[str, Json]:
    """DaCe's JSON form of an SDFG in the content of a file. Raises SdfgError if it is not that of one with a name."""
    text, document = _json(data, source)
    if not isinstance(document, dict) or document.get("type") != "SDFG":
        raise SdfgError(f"'{source}' is not an SDFG: its 'type' is not 'SDFG'.")
    attributes = document.get("attributes")
    if not isinstance(attributes, dict) or not isinstance(attributes.get("name"), str):
        raise SdfgError(f"'{source}' is not an SDFG: its 'attributes' have no 'name'.")
    if not _is_text(document, text):
        raise SdfgError(f"'{source}' is not an SDFG: it contains half of a surrogate pair, which is no character.")
    return text, document


def of_document(document: Json, text: str = "") -> Sdfg:
    """
    An SDFG in DaCe's JSON form (`SDFG.to_json()`), with its `text` if that is known. Raises SdfgError if it has another
    form.
    """
    try:
        return _of_text(text or json.dumps(document), document)
    except _ScopeError as error:
        name = document["attributes"]["name"]
        raise SdfgError(f"SDFG '{name}' has maps in state '{error.args[0]}' that contain each other.") from None


def _json(data: bytes, source: str) -> tuple[str, Any]:
    try:
        if data.startswith(b"\x1f\x8b"):
            with gzip.open(io.BytesIO(data)) as stream:
                data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise SdfgError(f"'{source}' is not an SDFG: it is larger than {LARGEST // 2**20} MiB.")
        text = data.decode()
        return text, json.loads(text)
    except (OSError, ValueError, EOFError, zlib.error):
        raise SdfgError(
            f"'{source}' is not an SDFG: it is neither JSON nor compressed JSON, or is truncated."
        ) from None
    except RecursionError:
        raise SdfgError(f"'{source}' is not an SDFG: it is nested too deeply.") from None
    except MemoryError:
        raise SdfgError(f"'{source}' is too large for the memory of this process.") from None


def _is_text(document: Json, text: str) -> bool:
    """Whether all strings of a document, which was read from `text`, can be written as UTF-8."""
    if re.search(r"\\u[dD][89a-fA-F]", text):
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return False
    return True


def _of_text(text: str, document: Json) -> Sdfg:
    try:
        plain = text.replace("$", "")  # DaCe writes it before symbols; nothing else that is read contains it
        return _sdfg(json.loads(_reduction().input_text(plain).text()))
    except (LookupError, TypeError, AttributeError, ValueError):
        version = document.get("dace_version")
        by = f": DaCe {version} wrote it" if isinstance(version, str) else ""
        name = document["attributes"]["name"]
        raise SdfgError(f"SDFG '{name}' is not in the form that this gtstub reads{by}.") from None
    except RecursionError:
        raise SdfgError(f"SDFG '{document['attributes']['name']}' is nested too deeply.") from None


@functools.cache
def _reduction() -> Any:
    import jq  # Here, because not all commands read an SDFG.

    return jq.compile(Path(__file__).with_name("reduce.jq").read_text(encoding="utf-8"))


# --- Objects ----------------------------------------------------------------------------------------------------------


class _ScopeError(Exception):
    """Maps in the state with this label contain each other."""


def _sdfg(found: Json) -> Sdfg:
    inner = {"containers", "symbols", "init_code"}
    return Sdfg(
        **_region({name: value for name, value in found.items() if name not in inner}),
        containers={name: _container(each) for name, each in found["containers"].items()},
        symbols=found["symbols"],
        init_code=tuple(found["init_code"]),
    )


def _container(found: Json) -> Container:
    return Container(**{**found, "shape": tuple(found["shape"]), "strides": tuple(found["strides"])})


def _region(found: Json) -> dict[str, Any]:
    blocks = {each["id"]: _block(each) for each in found["blocks"]}
    edges = tuple(Transition(**each) for each in found["edges"])
    for edge in edges:
        _ = blocks[edge.src], blocks[edge.dst]
    return {**found, "blocks": blocks, "edges": edges}


def _block(found: Json) -> Block:
    match found:
        case {"nodes": _}:
            return _state(found)
        case {"branches": branches}:
            made = (Branch(each["condition"], (Region(**_region(each["region"])),)) for each in branches)
            return Conditional(**{**found, "branches": tuple(made)})
        case {"variable": _}:
            return Loop(**_region(found))
        case {"blocks": _}:
            return Region(**_region(found))
    return Block(**found)


def _state(found: Json) -> State:
    nodes = {each["id"]: _node(each) for each in found["nodes"]}
    edges = tuple(_edge(each) for each in found["edges"])
    for end in (*(edge.src for edge in edges), *(edge.dst for edge in edges)):
        _ = nodes[end]
    outer = {number: () if node.entry is None else (nodes[node.entry].id,) for number, node in nodes.items()}
    try:
        graphlib.TopologicalSorter(outer).prepare()
    except graphlib.CycleError:
        raise _ScopeError(found["label"]) from None
    return State(found["id"], found["kind"], found["label"], nodes, edges)


def _node(found: Json) -> Node:
    made = dict(found)
    if "variables" in found:
        made |= {"variables": tuple(found["variables"]), "ranges": _subset(found["ranges"])}
    if "sdfg" in found:
        made["sdfg"] = _sdfg(found["sdfg"])
    return Node(**made)


def _edge(found: Json) -> Edge:
    return Edge(**{**found, "subset": _subset(found["subset"]), "other_subset": _subset(found["other_subset"])})


def _subset(found: Json | None) -> Subset | None:
    return None if found is None else Subset(tuple(Range(*each) for each in found["ranges"]), found["unread"])
