"""
Takes the ranks from an MPI communicator, and finds out which of them share a cache.

    from mpi4py import MPI
    from gtstub.frameworks.mpi import use_communicator

    use_communicator(MPI.COMM_WORLD, layout=(3, 4))  # before the first gtstub.compile()
"""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import suppress
from pathlib import Path

from mpi4py import MPI

from gtstub.entries.cache.store import open_cache
from gtstub.entries.trust import make_directory
from gtstub.ranks import CodePath, Layout, Ranks, one_path, tile_position, use_ranks


def use_communicator(comm: MPI.Intracomm, layout: Layout | None = None, code_path: CodePath | None = None) -> Ranks:
    """
    Uses the ranks of `comm`. A collective call, which must come before the first compilation.

    `layout` and `code_path` are those of `Ranks`; a layout alone means `tile_position`. Test files in the cache
    directory show which ranks share it. Those that share one build each entry once.
    """
    if code_path is None:
        code_path = one_path if layout is None else tile_position
    # gt4py's build processes import the model's script and mpi4py. As MPI processes they would be killed.
    os.environ.setdefault("MPI4PY_RC_INITIALIZE", "0")
    comm = comm.Dup()
    leaders = _find_leaders(comm, open_cache().root)
    sharing = frozenset(rank for rank, leader in enumerate(leaders) if leader == leaders[comm.rank])
    ranks = Ranks(comm.rank, comm.size, layout, code_path, None if len(sharing) == comm.size else sharing)
    use_ranks(ranks)
    return ranks


def _find_leaders(comm: MPI.Intracomm, root: Path) -> list[int]:
    """For each rank the lowest rank with the same cache directory; 0 for all ranks if none can write there."""
    folder = root / f".ranks-{comm.bcast(uuid.uuid4().hex)}"
    leader, has_written = comm.rank, False
    with suppress(OSError):
        make_directory(folder, exist_ok=True)
        (folder / str(comm.rank)).touch(0o644)
        has_written = True
    comm.Barrier()
    with suppress(OSError, ValueError):
        leader = min(int(file.name) for file in folder.iterdir())
    found = comm.allgather((leader, has_written))
    if leader == comm.rank:
        shutil.rmtree(folder, ignore_errors=True)
    return [leader for leader, _ in found] if any(written for _, written in found) else [0] * comm.size
