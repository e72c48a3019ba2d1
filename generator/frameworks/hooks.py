"""Hooks for gt4py's optimization of SDFGs; tables of backends name them as 'gtstub.frameworks.hooks:NAME'."""

from __future__ import annotations

import dace
from gt4py.next.program_processors.runners.dace import transformations


def remove_access_node_copies(sdfg: dace.SDFG) -> None:
    """Removes copies between arrays where one array is enough."""
    copies = transformations.RemoveAccessNodeCopies()
    sdfg.apply_transformations_repeated(copies, validate=False, validate_all=False)
