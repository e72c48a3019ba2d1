"""Reads the JSON form of an SDFG, as DaCe and the cache save it."""

from __future__ import annotations

import contextlib
import graphlib
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gtstub.errors import GtstubError

Document = Mapping[str, Any]
"""An SDFG in DaCe's JSON form."""


LARGEST = 2**30
"""Bytes of the largest SDFG that is read, as JSON."""


class SdfgError(GtstubError):
    """A file is no SDFG that can be analysed."""

    exit_code = 2


def read(file: Path) -> Document:
    """The SDFG in a file, which may be compressed. Raises SdfgError if there is none."""
    try:
        with file.open("rb") as stream:
            return parse(stream.read(LARGEST + 1), str(file))
    except FileNotFoundError:
        raise SdfgError(f"There is no file '{file}'.") from None
    except OSError as error:
        raise SdfgError(f"'{file}' cannot be read: {error.strerror}.") from None


def parse(data: bytes, source: str) -> Document:
    """
    The SDFG in the content of a file, which is called `source` in messages. It has a name, and each scope of its states
    ends at a node outside of all scopes. Raises SdfgError otherwise.
    """
    try:
        if data.startswith(b"\x1f\x8b"):
            with gzip.open(io.BytesIO(data)) as stream:
                data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise SdfgError(f"'{source}' is not an SDFG: it is larger than {LARGEST // 2**20} MiB.")
        text = data.decode()
        document = json.loads(text)
    except (OSError, ValueError, EOFError, zlib.error):
        raise SdfgError(
            f"'{source}' is not an SDFG: it is neither JSON nor compressed JSON, or is truncated."
        ) from None
    except RecursionError:
        raise SdfgError(f"'{source}' is not an SDFG: it is nested too deeply.") from None
    except MemoryError:
        raise SdfgError(f"'{source}' is too large for the memory of this process.") from None
    if not isinstance(document, dict) or document.get("type") != "SDFG":
        raise SdfgError(f"'{source}' is not an SDFG: its 'type' is not 'SDFG'.")
    attributes = document.get("attributes")
    if not isinstance(attributes, dict) or not isinstance(attributes.get("name"), str):
        raise SdfgError(f"'{source}' is not an SDFG: its 'attributes' have no 'name'.")
    if not _is_text(document, text):
        raise SdfgError(f"'{source}' is not an SDFG: it contains half of a surrogate pair, which is no character.")
    with in_the_form_of_dace(document):
        for state in _states(document):
            _check_scopes(state, source)
    return document


@contextlib.contextmanager
def in_the_form_of_dace(document: Document) -> Iterator[None]:
    """Raises SdfgError if what the block reads of an SDFG is missing, or is something else."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError):
        version = document.get("dace_version")
        by = f": DaCe {version} wrote it" if isinstance(version, str) else ""
        name = document["attributes"]["name"]
        raise SdfgError(f"SDFG '{name}' is not in the form that this gtstub reads{by}.") from None
    except RecursionError:
        raise SdfgError(f"SDFG '{document['attributes']['name']}' is nested too deeply.") from None


def _is_text(document: Document, text: str) -> bool:
    """Whether all strings of a document, which was read from `text`, can be written as UTF-8."""
    if re.search(r"\\u[dD][89a-fA-F]", text):
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return False
    return True


def _states(document: Document) -> Iterator[Mapping[str, Any]]:
    """The states of an SDFG, and those of its nested SDFGs."""
    pending: list[Mapping[str, Any]] = [document]
    while pending:
        block = pending.pop()
        match block["type"]:
            case "SDFGState":
                yield block
                nested = [node["attributes"] for node in block["nodes"] if node["type"] == "NestedSDFG"]
                pending += [attributes["sdfg"] for attributes in nested if attributes.get("sdfg")]
            case "ConditionalBlock":
                pending += [branch for _, branch in block["branches"]]
            case _:
                pending += block.get("nodes", ())


def _check_scopes(state: Mapping[str, Any], source: str) -> None:
    """Raises SdfgError if maps contain each other, and KeyError if a scope is that of no node."""
    scopes = {str(node["id"]): node.get("scope_entry") for node in state["nodes"]}
    nodes_in = {node: () if scope is None else (str(scope),) for node, scope in scopes.items()}
    try:
        graphlib.TopologicalSorter(nodes_in).prepare()
    except graphlib.CycleError:
        raise SdfgError(f"'{source}' is not an SDFG: maps in state '{state['label']}' contain each other.") from None
    for scope in scopes.values():
        if scope is not None and str(scope) not in scopes:
            raise KeyError(scope)
