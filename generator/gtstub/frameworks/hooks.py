"""Hooks for gt4py's optimization of SDFGs; tables of backends name them as 'gtstub.frameworks.hooks:NAME'."""

from __future__ import annotations

import dace
from gt4py.next.program_processors.runners.dace import transformations


def remove_access_node_copies(sdfg: dace.SDFG) -> None:
    """Removes two transients through which a global array is copied into itself."""
    copies = transformations.RemoveAccessNodeCopies()
    sdfg.apply_transformations_repeated(copies, validate=False, validate_all=False)
