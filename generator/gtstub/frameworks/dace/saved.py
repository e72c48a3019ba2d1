"""
SDFGs in files, which gtstub compiles without having made them: those of cache entries, and nested ones that DaCe keeps
in files of their own. DaCe reads what another version has written without a word, and may make other code of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dace
from dace import nodes

from gtstub.errors import GtstubError
from gtstub.stub.sdfg.read import json_in

ASSIGNMENTS = "gtstub_assignments"
"""What gtstub adds to the JSON form of an SDFG: `assignments_of` it."""


def saved_sdfg(file: Path) -> dace.SDFG:
    """
    The SDFG in a file. Raises GtstubError if another version of DaCe has written it, SdfgError if it is not in JSON,
    and OSError if it cannot be read.
    """
    raw = _checked_json(file)
    sdfg = dace.SDFG.from_json(raw)
    if ASSIGNMENTS in raw:
        for edge, assignments in zip(_edges(sdfg), raw[ASSIGNMENTS], strict=True):
            edge.assignments = assignments
    return sdfg


def assignments_of(sdfg: dace.SDFG) -> list[dict[str, str]]:
    """
    The assignments on the edges between states, as DaCe compiles them. Its JSON form has simplified ones, in which each
    symbol is an integer: floor(x) and ceil(x) are x there.
    """
    return [{name: str(value) for name, value in sorted(edge.assignments.items())} for edge in _edges(sdfg)]


def _edges(sdfg: dace.SDFG) -> list[dace.InterstateEdge]:
    return [edge.data for each in sdfg.all_sdfgs_recursive() for edge in each.all_interstate_edges()]


def _checked_json(file: Path) -> Mapping[str, Any]:
    """DaCe's JSON form of the SDFG in a file. Raises as `saved_sdfg`."""
    _, raw = json_in(file.read_bytes(), str(file))
    version = raw.get("dace_version")
    if version != dace.__version__:
        by = f"by DaCe {version}" if isinstance(version, str) else "by a DaCe that has not written down its version"
        raise GtstubError(
            f"The SDFG in '{file}' was written {by}. DaCe {dace.__version__}, which is installed, may compile it into"
            " other code: make it again with the installed DaCe, or install the other one."
        )
    return raw


def load_nested(sdfg: dace.SDFG) -> None:
    """Loads the nested SDFGs that are in files, as `saved_sdfg` does."""
    for node, parent in list(sdfg.all_nodes_recursive()):
        if isinstance(node, nodes.NestedSDFG) and node.sdfg is None and node.ext_sdfg_path:
            _checked_json(Path(node.ext_sdfg_path).expanduser())
            node.load_external(parent)
            load_nested(node.sdfg)
