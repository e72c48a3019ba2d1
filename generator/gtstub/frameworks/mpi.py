"""
Takes the ranks from an MPI communicator, and copies entries to ranks that do not see the cache where they were built.

    from mpi4py import MPI
    from gtstub.frameworks.mpi import use_communicator

    use_communicator(MPI.COMM_WORLD, layout=(3, 4))  # before the first gtstub.compile()

All waiting polls with sleeps and has a time-out, because MPI's blocking calls spin, and never return after a rank has
died.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import os
import shutil
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mpi4py import MPI

from gtstub import settings
from gtstub.entries.building.progress import print_line
from gtstub.entries.cache.bundle import pack, unpack
from gtstub.entries.cache.store import Cache, open_cache
from gtstub.entries.trust import make_directory
from gtstub.errors import CacheError, CompilationError
from gtstub.ranks import CodePath, Layout, Pending, Ranks, one_path, tile_position, use_ranks

_PATIENCE = 10.0
"""Seconds of waiting before a message names the missing ranks."""

_SHORTEST_SLEEP, _LONGEST_SLEEP = 0.001, 0.05

_REPORT, _ANSWER, _ENTRY = 1, 2, 3  # tags of messages


def use_communicator(comm: MPI.Intracomm, layout: Layout | None = None, code_path: CodePath | None = None) -> Ranks:
    """
    Uses the ranks of `comm`. A collective call, which must come before the first compilation.

    `layout` and `code_path` are those of `Ranks`; a layout alone means `tile_position`. Test files in the cache
    directory show which ranks share it. If not all do, all ranks must call `gtstub.wait_for_compilation()`, which
    exchanges the entries, before they call a program.
    """
    if code_path is None:
        code_path = one_path if layout is None else tile_position
    # gt4py's build processes import the model's script and mpi4py. As MPI processes they would be killed.
    os.environ.setdefault("MPI4PY_RC_INITIALIZE", "0")
    comm = comm.Dup()
    ranks = Ranks(comm.rank, comm.size, layout, code_path)
    leaders = _find_leaders(comm, open_cache().root)
    if len(set(leaders)) > 1:
        sharing = frozenset(rank for rank, leader in enumerate(leaders) if leader == leaders[comm.rank])
        ranks = dataclasses.replace(ranks, sharing=sharing)
        ranks = dataclasses.replace(ranks, exchange=_Exchange(comm, leaders, ranks))
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


# --- Exchange of entries ----------------------------------------------------------------------------------------------

type _Entry = tuple[str, str]
"""Code path and key."""


@dataclasses.dataclass
class _Requests:
    """For each wanted entry the ranks that lack it, and for each failed entry the reason."""

    wanted: dict[_Entry, list[int]] = dataclasses.field(default_factory=dict)
    failed: dict[_Entry, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class _Plan:
    """The transfers (entry, source rank, target rank), and the builder of each entry that no rank has."""

    transfers: list[tuple[_Entry, int, int]] = dataclasses.field(default_factory=list)
    builders: dict[_Entry, int] = dataclasses.field(default_factory=dict)


class _Exchange:
    """
    The exchange of one communicator. A collective call copies each entry that a rank waits for from a cache that has
    it. If no cache has it, because its builder runs another program, the first rank that waits for it builds it.
    `leaders` has the group of each rank; the ranks of a group share a cache.

    Builds whose entry could not be built or copied get an error. Raises CompilationError if a rank does not take part.
    """

    def __init__(self, comm: MPI.Intracomm, leaders: Sequence[int], ranks: Ranks) -> None:
        self._comm, self._leaders, self._ranks = comm, leaders, ranks
        self._timeout = settings.exchange_timeout()
        self._problem: CompilationError | None = None  # After it, answers may not match reports any more.

    def __call__(self, builds: Collection[Pending]) -> None:
        for build in builds:
            if not build.is_elsewhere:
                build.exception()  # waits for it
        missing = [build for build in builds if not build.done()]
        failed = {
            (self._ranks.path, build.key): str(error)
            for build in builds
            if build.done() and (error := build.exception()) is not None
        }
        try:
            if self._problem is not None:
                raise self._problem
            self._bring(missing, failed)
        except CompilationError as error:
            self._problem = error
            for build in missing:
                if not build.done():
                    build.set_exception(error)
            raise

    def _bring(self, missing: Collection[Pending], failed: Mapping[_Entry, str]) -> None:
        ranks = self._ranks
        cache = open_cache(code_path=ranks.path)
        neighbours = [peer for peer in ranks.peers if self._leaders[peer] == self._leaders[ranks.rank]]
        while True:
            missing = [build for build in missing if not build.done()]
            requests = self._meet(({(ranks.path, build.key) for build in missing}, failed), _merge_requests)
            for build in missing:
                if (text := requests.failed.get((ranks.path, build.key))) is not None:
                    build.set_exception(CompilationError(text))
            if not requests.wanted:
                return
            offers = []
            if ranks.rank == neighbours[0]:  # One rank searches for all that share a cache.
                offers = [(path, key) for path, key in requests.wanted if path == ranks.path and cache.find(key)]
            plan = self._meet(offers, functools.partial(self._plan, requests.wanted))
            failed = self._carry_out(plan, cache, missing)
            self._meet(None, lambda _: None)
            for build in missing:
                if not build.done() and (entry := cache.find(build.key)) is not None:
                    build.set_result(entry)

    def _plan(self, wanted: Mapping[_Entry, Sequence[int]], offers: Sequence[Sequence[_Entry]]) -> _Plan:
        plan = _Plan()
        for entry, missing in wanted.items():
            source = next((rank for rank, offered in enumerate(offers) if entry in offered), None)
            if source is None:
                plan.builders[entry] = missing[0]
            else:
                targets = {self._leaders[rank]: rank for rank in reversed(missing)}  # the first of each group
                plan.transfers += [(entry, source, target) for target in targets.values()]
        return plan

    def _carry_out(self, plan: _Plan, cache: Cache, missing: Collection[Pending]) -> dict[_Entry, str]:
        """Executes this rank's part of a plan; returns the reasons of failures."""
        rank = self._comm.rank
        failed = {}
        packed = {entry: _pack(cache, entry[1]) for entry, source, _ in plan.transfers if source == rank}
        sends = [
            self._comm.isend(packed[entry], target, _ENTRY)
            for entry, source, target in plan.transfers
            if source == rank
        ]
        for entry, source, target in plan.transfers:  # Messages from one rank arrive in the order of sending.
            if target == rank and (problem := _unpack(cache, entry[1], self._receive(source, _ENTRY, self._timeout))):
                failed[entry] = f"Rank {rank} could not import '{entry[1]}' from rank {source}: {problem}"
        self._finish(sends)
        builds = {build.key: build for build in missing}
        for entry, builder in plan.builders.items():
            if builder == rank:
                build = builds[entry[1]]
                build.build()
                if (error := build.exception()) is not None:
                    failed[entry] = str(error)
        return failed

    # --- Messages ----------------------------------------------------------------------------------------------------

    def _meet(self, report: Any, merge: Callable[[list[Any]], Any]) -> Any:
        """Collective: rank 0 merges the reports of all ranks to an answer, which all ranks return."""
        comm = self._comm
        if comm.rank:
            sending = [comm.isend(report, 0, _REPORT)]
            answer = self._receive(0, _ANSWER, 2 * self._timeout)  # Rank 0 may be late, and then wait for others.
            self._finish(sending)
        else:
            reports = {0: report}
            absent = functools.partial(set(range(comm.size)).difference, reports)
            try:
                self._poll(lambda: self._collect(reports), absent, self._timeout)
                answer = merge([reports[rank] for rank in range(comm.size)])
            except CompilationError as error:
                answer = error
            self._finish([comm.isend(answer, rank, _ANSWER) for rank in reports if rank])
        if isinstance(answer, CompilationError):
            raise answer
        return answer

    def _collect(self, reports: dict[int, Any]) -> bool:
        """Receives the reports that have arrived; returns whether all have."""
        status = MPI.Status()
        while (message := self._comm.improbe(MPI.ANY_SOURCE, _REPORT, status)) is not None:
            reports[status.source] = message.recv()
        return len(reports) == self._comm.size

    def _receive(self, source: int, tag: int, timeout: float) -> Any:
        return self._poll(lambda: self._comm.improbe(source, tag), lambda: {source}, timeout).recv()

    def _finish(self, sends: list[MPI.Request]) -> None:
        self._poll(lambda: MPI.Request.Testall(sends), lambda: {"that receives"}, self._timeout)

    def _poll(self, probe: Callable[[], Any], whom: Callable[[], Iterable[Any]], timeout: float) -> Any:
        """Waits without spinning until `probe` returns a true value, and returns it; `whom` returns the other ranks."""
        begin, sleep, is_told = time.monotonic(), _SHORTEST_SLEEP, False
        while not (found := probe()):
            waited = time.monotonic() - begin
            if waited > timeout:
                raise CompilationError(
                    f"Rank {_listed(whom())} did not take part in 'gtstub.wait_for_compilation()' within"
                    f" {timeout:g} s; {settings.EXCHANGE_TIMEOUT} sets the limit."
                )
            if waited > _PATIENCE and not is_told:
                is_told = True
                print_line(f"waits for rank {_listed(whom())}")
            time.sleep(sleep)
            sleep = min(2 * sleep, _LONGEST_SLEEP)
        return found


def _merge_requests(reports: Sequence[tuple[set[_Entry], Mapping[_Entry, str]]]) -> _Requests:
    requests = _Requests()
    for _, failed in reports:
        for entry, text in failed.items():
            requests.failed.setdefault(entry, text)
    for rank, (wanted, _) in enumerate(reports):
        for entry in wanted:
            if entry not in requests.failed:
                requests.wanted.setdefault(entry, []).append(rank)
    return requests


def _pack(cache: Cache, key: str) -> bytes:
    """An entry as bytes; empty if it has been deleted meanwhile."""
    stream = io.BytesIO()
    if (entry := cache.find(key)) is not None:
        pack(entry, stream)
    return stream.getvalue()


def _unpack(cache: Cache, key: str, content: bytes) -> str:
    """Unpacks an entry that `_pack` packed; returns the problem, or an empty text."""
    if not content:
        return "It has been deleted."
    try:
        unpack(cache, io.BytesIO(content))
    except (CacheError, OSError) as error:
        return str(error)
    return "" if cache.find(key) else "It does not fit this machine."


def _listed(ranks: Iterable[Any]) -> str:
    names = [str(rank) for rank in sorted(ranks)]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
