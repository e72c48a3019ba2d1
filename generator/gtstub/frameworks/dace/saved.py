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
    _, raw = json_in(file.read_bytes(), str(file))
    check_version(raw, file)
    return dace.SDFG.from_json(raw)


def check_version(raw: Mapping[str, Any], file: Path) -> None:
    """Raises GtstubError if another version of DaCe has written an SDFG, or an unknown one."""
    version = raw.get("dace_version")
    if version != dace.__version__:
        by = f"by DaCe {version}" if isinstance(version, str) else "by a DaCe that has not written down its version"
        raise GtstubError(
            f"The SDFG in '{file}' was written {by}. DaCe {dace.__version__}, which is installed, may compile it into"
            " other code: make it again with the installed DaCe, or install the other one."
        )


def load_nested(sdfg: dace.SDFG) -> None:
    """Loads the nested SDFGs that are in files, as `saved_sdfg` does."""
    for node, parent in list(sdfg.all_nodes_recursive()):
        if isinstance(node, nodes.NestedSDFG) and node.sdfg is None and node.ext_sdfg_path:
            file = Path(node.ext_sdfg_path).expanduser()
            _, raw = json_in(file.read_bytes(), str(file))
            check_version(raw, file)
            node.load_external(parent)
            load_nested(node.sdfg)
