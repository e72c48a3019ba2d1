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
from gtstub.sdfg.read import json_in


def saved_sdfg(file: Path) -> dace.SDFG:
    """
    The SDFG in a file. Raises GtstubError if another version of DaCe has written it, SdfgError if it is not in JSON,
    and OSError if it cannot be read.
    """
    return dace.SDFG.from_json(_checked_json(file))


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
