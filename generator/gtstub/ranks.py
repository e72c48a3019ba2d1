"""
The ranks of a parallel run: the cache entries that each rank uses, and the rank that builds each entry.

Ranks that run the same code share entries. Their *code path* is the name of that code, and of a subdirectory of the
cache. Among the ranks with one code path, a hash of the key selects the builder of an entry, which spreads the work.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gtstub import settings
from gtstub.errors import RanksError

type Layout = tuple[int, int]
"""(rows, columns) of ranks on each tile. The ranks of a tile are numbered along its rows, from the bottom left."""

type CodePath = Callable[[int, Layout | None], str]
"""(rank, layout) -> the name of the code that the rank runs. All ranks must use the same function."""


# --- Code paths -------------------------------------------------------------------------------------------------------


def one_path(rank: int, layout: Layout | None) -> str:  # noqa: ARG001  every code path takes both
    """All ranks run the same code. They share the entries of a run without ranks."""
    return ""


def path_of_each_rank(rank: int, layout: Layout | None) -> str:  # noqa: ARG001
    """Each rank runs code of its own."""
    return f"rank_{rank:06d}"


def tile_position(rank: int, layout: Layout | None) -> str:
    """
    The position of a rank on its tile, for codes on the cubed sphere: `FV3_` and the tile edges that the rank touches
    among B(ottom), T(op), L(eft), R(ight): BL, B, BR, L, R, TL, T, TR; C for no edge, A for all four.

    With one row (column) of ranks each touches two opposite edges: `FV3_BTL`, `FV3_BT`, `FV3_BTR` (`FV3_BLR`, `FV3_LR`,
    `FV3_TLR`).
    """
    rows, columns = layout or (1, 1)
    row, column = divmod(rank % (rows * columns), columns)
    touched = {"B": row == 0, "T": row == rows - 1, "L": column == 0, "R": column == columns - 1}
    edges = "".join(edge for edge, touches in touched.items() if touches)
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
    A rank and the number of ranks of its run. `layout` is the layout of the ranks on each tile; all tiles have the same
    code paths. `sharing` are the ranks that see this rank's cache directory, None for all ranks.

    Raises RanksError if the members contradict each other, or the code path is not a valid name.
    """

    rank: int = 0
    size: int = 1
    layout: Layout | None = None
    code_path: CodePath = one_path
    sharing: frozenset[int] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.size:
            raise RanksError(f"Rank {self.rank} is not one of {self.size} ranks.")
        if self.layout is not None:
            rows, columns = self.layout
            if rows < 1 or columns < 1 or self.size % (rows * columns):
                raise RanksError(
                    f"Layout {rows}x{columns} does not fit {self.size} ranks: each tile needs {rows} times {columns}"
                    " ranks."
                )
        if not re.fullmatch(r"([\w+-][\w.+-]*)?", self.path, re.ASCII):
            raise RanksError(
                f"Code path '{self.path}' of rank {self.rank} must consist of letters, digits and '_+-.', and must not"
                " begin with '.'."
            )

    @functools.cached_property
    def path(self) -> str:
        """The code path of this rank."""
        return self.code_path(self.rank, self.layout)

    @functools.cached_property
    def peers(self) -> Sequence[int]:
        """All ranks with this rank's code path, including this rank."""
        return [rank for rank in range(self.size) if self.code_path(rank, self.layout) == self.path]

    def builder(self, key: str) -> int:
        """The peer that builds the entry of a key."""
        digest = hashlib.sha256(f"{self.path}/{key}".encode()).digest()
        return self.peers[int.from_bytes(digest[:8]) % len(self.peers)]

    def turn(self, key: str) -> int:
        """
        The turn in which this rank builds the entry of a key if no earlier turn did. Turn 0 has the builder, turn 1 one
        rank, turn 2 two, turn 3 four, and so on, so that after a builder's failure not all ranks start at once.
        """
        first = self.peers.index(self.builder(key))
        order = [*self.peers[first:], *self.peers[:first]]
        if self.sharing is not None:
            order = [rank for rank in order if rank in self.sharing]
        return order.index(self.rank).bit_length()


# --- Launchers and environment ----------------------------------------------------------------------------------------

_SIZES = ("OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE", "FLUX_JOB_SIZE", "SLURM_STEP_NUM_TASKS")

_LAUNCHERS: Mapping[str, Sequence[str]] = {
    "OMPI_COMM_WORLD_RANK": ("OMPI_COMM_WORLD_SIZE",),
    "MV2_COMM_WORLD_RANK": ("MV2_COMM_WORLD_SIZE",),
    "PMIX_RANK": _SIZES,
    "PMI_RANK": ("PMI_SIZE",),
    "PMI_ID": ("PMI_SIZE",),
    "FLUX_TASK_RANK": ("FLUX_JOB_SIZE",),
    "PALS_RANKID": _SIZES,
    "ALPS_APP_PE": _SIZES,
    "SLURM_PROCID": ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
}
"""
The environment variables of launchers for the rank and for the number of ranks. Inner launchers come first: if Open
MPI's mpirun runs inside a Slurm job, Slurm's variables describe the processes of mpirun.
"""


def from_launcher(environment: Mapping[str, str]) -> tuple[int, int]:
    """
    The rank and the number of ranks from the first launcher whose variables for both are set; (0, 1) without any.

    Slurm's variables count only within a job step, not in the job's first shell. Raises RanksError for variables that
    are not numbers or contradict each other.
    """
    for rank_name, size_names in _LAUNCHERS.items():
        size_name = next((name for name in size_names if name in environment), None)
        is_shell = rank_name == "SLURM_PROCID" and not {"SLURM_STEP_ID", "SLURM_STEPID"} & environment.keys()
        if rank_name not in environment or size_name is None or is_shell:
            continue
        size = _number(environment, size_name, "a number of ranks")
        rank = _number(environment, rank_name, "a rank")
        if rank >= size:
            raise RanksError(f"Variables '{rank_name}={rank}' and '{size_name}={size}' contradict each other.")
        return rank, size
    return 0, 1


def _number(environment: Mapping[str, str], name: str, what: str) -> int:
    if not environment[name].isdecimal():
        raise RanksError(f"Variable '{name}' must be {what}, but is '{environment[name]}'.")
    return int(environment[name])


def from_environment(environment: Mapping[str, str]) -> Ranks:
    """The ranks that a launcher's variables, GTSTUB_LAYOUT and GTSTUB_CODE_PATH describe."""
    layout = layout_from(environment.get(settings.LAYOUT, ""))
    return Ranks(*from_launcher(environment), layout, code_path_from(environment.get(settings.CODE_PATH, ""), layout))


def layout_from(text: str) -> Layout | None:
    """The layout in GTSTUB_LAYOUT: '3x4' means 3 rows of 4 ranks on each tile."""
    if not text:
        return None
    if not (match := re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text.strip(), re.ASCII)):
        raise RanksError(f"GTSTUB_LAYOUT must be rows and columns of ranks on a tile, such as '3x4', but is '{text}'.")
    return int(match[1]), int(match[2])


def code_path_from(text: str, layout: Layout | None) -> CodePath:
    """The code path that GTSTUB_CODE_PATH names. The default is `tile_position` with a layout, `one_path` without."""
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


# --- The ranks of this process ----------------------------------------------------------------------------------------

_choosing = threading.Lock()
_chosen: Ranks | None = None
_is_used = False


def current() -> Ranks:
    """The ranks from `use_ranks`, else from the environment. After the first call they cannot change."""
    global _chosen, _is_used
    with _choosing:
        if _chosen is None:
            _chosen = from_environment(os.environ)
        _is_used = True
        return _chosen


def is_parallel() -> bool:
    """Whether there are several ranks. They can still change."""
    with _choosing:
        ranks = _chosen
    return (ranks or from_environment(os.environ)).size > 1


def use_ranks(ranks: Ranks) -> None:
    """Sets the ranks of this process. Raises RanksError for other ranks after a program was compiled."""
    global _chosen
    with _choosing:
        if _is_used and ranks != _chosen:
            raise RanksError("Ranks must be set before the first program is compiled.")
        _chosen = ranks
