"""
Ranks of a parallel run: which cache entries each one uses, and which one of them builds an entry.

Ranks that run the same code share entries: a *code path* is a name for them, and a subdirectory of the cache. Of all
ranks with the same code path one builds the entry of a key, chosen by hash, so that the ranks share the work.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from gtstub.errors import RanksError

if TYPE_CHECKING:
    from gtstub.building.pending import Build

type Layout = tuple[int, int]
"""(rows, columns) of ranks on each tile; a tile's ranks are numbered along its rows, from the bottom left."""

type CodePath = Callable[[int, Layout | None], str]
"""(rank, layout) -> the name of the code that the rank runs. Must be the same function on all ranks."""

type Exchange = Callable[[Collection[Build]], None]
"""A collective step of `gtstub.wait_for_compilation()`, which finishes builds."""


# --- Code paths -------------------------------------------------------------------------------------------------------


def one_path(rank: int, layout: Layout | None) -> str:  # noqa: ARG001  every code path takes both
    """All ranks run the same code, and share the entries of a run without ranks."""
    return ""


def path_of_each_rank(rank: int, layout: Layout | None) -> str:  # noqa: ARG001
    """Every rank runs code of its own."""
    return f"rank_{rank:06d}"


def tile_position(rank: int, layout: Layout | None) -> str:
    """
    Where on its tile a rank lies, as codes on the cubed sphere ask: 'FV3_' and the edges of the tile that it has, of
    B(ottom), T(op), L(eft), R(ight): BL, B, BR, L, R, TL, T, TR; C for none of them, A for all four.

    With one row (column) of ranks each has two opposite edges: FV3_BTL, FV3_BT and FV3_BTR (FV3_BLR, FV3_LR, FV3_TLR).
    """
    rows, columns = layout or (1, 1)
    row, column = divmod(rank % (rows * columns), columns)
    edges = "".join(
        edge
        for edge, has in (("B", row == 0), ("T", row == rows - 1), ("L", column == 0), ("R", column == columns - 1))
        if has
    )
    return "FV3_" + {"": "C", "BTLR": "A"}.get(edges, edges)


_CODE_PATHS: Mapping[str, CodePath] = {
    "one_path": one_path,
    "tile_position": tile_position,
    "each_rank": path_of_each_rank,
}


# --- Ranks ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranks:
    """
    A process among those of a run. `layout` says how they lie on tiles, of which all have the same code paths.

    `sharing`: the ranks that see this one's cache directory; None for all of them. `exchange` brings entries to ranks
    that do not see where they were built. Raises RanksError for what does not fit together.
    """

    rank: int = 0
    size: int = 1
    layout: Layout | None = None
    code_path: CodePath = one_path
    sharing: frozenset[int] | None = None
    exchange: Exchange | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.size:
            raise RanksError(f"Rank {self.rank} is not one of {self.size} ranks.")
        if self.layout is not None:
            rows, columns = self.layout
            if rows < 1 or columns < 1 or self.size % (rows * columns):
                raise RanksError(
                    f"Layout {rows}x{columns} does not fit {self.size} ranks: they must be {rows} times {columns} on"
                    " each tile."
                )
        if not re.fullmatch(r"([\w+-][\w.+-]*)?", self.path, re.ASCII):
            raise RanksError(
                f"Code path '{self.path}' of rank {self.rank} must be of letters, digits and '_+-.', and not begin with"
                " '.'."
            )

    @functools.cached_property
    def path(self) -> str:
        """The code path of this rank."""
        return self.code_path(self.rank, self.layout)

    @functools.cached_property
    def peers(self) -> Sequence[int]:
        """All ranks with this one's code path, this one among them."""
        return [rank for rank in range(self.size) if self.code_path(rank, self.layout) == self.path]

    def builder(self, key: str) -> int:
        """The one of the peers that builds the entry of a key."""
        digest = hashlib.sha256(f"{self.path}/{key}".encode()).digest()
        return self.peers[int.from_bytes(digest[:8]) % len(self.peers)]

    def shares_with(self, rank: int) -> bool:
        """Whether what `rank` publishes appears in this rank's cache."""
        return self.sharing is None or rank in self.sharing

    def turn(self, key: str) -> int:
        """
        When it is this rank's turn to build the entry of a key, if those before did not: 0 for the builder, 1 for one
        rank, 2 for two, 3 for four, and so on, so that a builder's death starts one rank and not all of them.
        """
        first = self.peers.index(self.builder(key))
        order = [rank for rank in (*self.peers[first:], *self.peers[:first]) if self.shares_with(rank)]
        return order.index(self.rank).bit_length()


# --- What a launcher says ---------------------------------------------------------------------------------------------

_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMIX_RANK", None),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMI_ID", "PMI_SIZE"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("PALS_RANKID", None),
    ("ALPS_APP_PE", None),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
"""Inner ones first: Open MPI's mpirun runs inside a Slurm job, whose variables then describe mpirun's own processes."""


def from_launcher(environment: Mapping[str, str]) -> tuple[int, int]:
    """
    (rank, size) as a launcher's variables say; (0, 1) where there are none.

    A rank without a size is left out, and so is a Slurm job's first shell, which is no step. Raises RanksError for
    variables that are not numbers, or contradict each other.
    """
    for rank_name, size_name in _LAUNCHERS:
        if rank_name not in environment:
            continue
        if rank_name == "SLURM_PROCID" and not {"SLURM_STEP_ID", "SLURM_STEPID"} & environment.keys():
            continue
        names = [size_name] if size_name else [size for _, size in _LAUNCHERS if size]
        if rank_name == "SLURM_PROCID":
            names.append("SLURM_NTASKS")
        found = next((name for name in names if name in environment), None)
        if found is None:
            continue
        size = _number(environment, found, "a number of ranks")
        rank = _number(environment, rank_name, "a rank")
        if not 0 <= rank < size:
            raise RanksError(f"Variables '{rank_name}={rank}' and '{found}={size}' contradict each other.")
        return rank, size
    return 0, 1


def _number(environment: Mapping[str, str], name: str, what: str) -> int:
    if not environment[name].isdecimal():
        raise RanksError(f"Variable '{name}' must be {what}, but is '{environment[name]}'.")
    return int(environment[name])


def from_environment(environment: Mapping[str, str]) -> Ranks:
    """Ranks as a launcher's variables, GTSTUB_LAYOUT and GTSTUB_CODE_PATH say."""
    rank, size = from_launcher(environment)
    layout = layout_from(environment.get("GTSTUB_LAYOUT", ""))
    return Ranks(rank, size, layout, code_path_from(environment.get("GTSTUB_CODE_PATH", ""), layout))


def layout_from(text: str) -> Layout | None:
    """The layout that GTSTUB_LAYOUT says, as in '3x4': 3 rows of 4 ranks on each tile."""
    if not text:
        return None
    if not (match := re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text.strip(), re.ASCII)):
        raise RanksError(f"GTSTUB_LAYOUT must be rows and columns of ranks on a tile, as in '3x4', but is '{text}'.")
    return int(match[1]), int(match[2])


def code_path_from(text: str, layout: Layout | None) -> CodePath:
    """The code path that GTSTUB_CODE_PATH names; who says a layout and no code path means the position on a tile."""
    if not text:
        return one_path if layout is None else tile_position
    if text in _CODE_PATHS:
        return _CODE_PATHS[text]
    module, _, name = text.partition(":")
    try:
        function: Any = getattr(importlib.import_module(module), name) if name else None
    except (ImportError, AttributeError) as error:
        raise RanksError(f"GTSTUB_CODE_PATH is '{text}', which cannot be imported: {error}.") from error
    if not callable(function):
        known = ", ".join(f"'{known}'" for known in _CODE_PATHS)
        raise RanksError(f"GTSTUB_CODE_PATH must be {known} or 'module:function', but is '{text}'.")
    return cast(CodePath, function)


# --- Of this process --------------------------------------------------------------------------------------------------

_choosing = threading.Lock()
_chosen: Ranks | None = None
_is_used = False


def current() -> Ranks:
    """The ranks of this process: those of `use_ranks`, else as the environment says. From then on they are fixed."""
    global _chosen, _is_used
    with _choosing:
        if _chosen is None:
            _chosen = from_environment(os.environ)
        _is_used = True
        return _chosen


def use_ranks(ranks: Ranks) -> None:
    """Says which ranks there are, before anything is compiled. Raises RanksError afterwards."""
    global _chosen
    with _choosing:
        if _is_used and ranks != _chosen:
            raise RanksError("Ranks must be set before the first program is compiled: they have been used.")
        _chosen = ranks
