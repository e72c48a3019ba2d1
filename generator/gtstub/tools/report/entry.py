"""Makes the reports of cache entries. Nothing of an entry is loaded or run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gtstub.entries.cache.entry import COMPILED_SDFG, LOWERED_SDFG, entries_in
from gtstub.entries.cache.inspection import signatures
from gtstub.entries.cache.key import flat
from gtstub.entries.cache.manifest import Manifest
from gtstub.errors import GtstubError, PlanError
from gtstub.stub.codegen.hosts.fortran import make_interface
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.plan.wording import remarks
from gtstub.stub.sdfg.read import read
from gtstub.stub.signature import documents
from gtstub.tools.memory.memory import memory
from gtstub.tools.memory.sizes import SharedSizes, symbol_sizes
from gtstub.tools.profiling.model import Profile, ProgramTimes
from gtstub.tools.report import arguments
from gtstub.tools.report.kernels import kernels
from gtstub.tools.report.model import Ingredient, ProgramReport, ReportError, Timer, Unreadable
from gtstub.tools.report.verdict import chips
from gtstub.tools.rules import check

NOTHING: Mapping[str, int] = {}


def report(
    path: Path,
    *,
    dimensions: Mapping[str, int] = NOTHING,
    symbols: Mapping[str, int] = NOTHING,
    profile: Profile | None = None,
) -> ProgramReport:
    """
    The report of the entry at `path`. The sizes of dimensions and the values of symbols are for its memory; the profile
    has the times of its calls. Raises GtstubError or OSError if there is no entry that this gtstub can read.
    """
    manifest, sdfg, program = signatures(path)
    plan = make_plan(sdfg, program)
    absent: dict[str, str] = {}
    fortran = None
    try:
        fortran = make_interface(plan)
    except PlanError as error:
        absent["fortran"] = str(error)
    sizes = symbol_sizes(program, sdfg, dimensions, symbols)
    # The rules are for the SDFG that DaCe was given, the memory is that of the compiled one, with DaCe's transients.
    found, result, used = None, None, None
    if LOWERED_SDFG in manifest.files:
        lowered = read(path / LOWERED_SDFG)
        found = tuple(each.with_axes(arguments.axis_order(plan)) for each in kernels(lowered))
        result = check(lowered, program=program)
    else:
        absent |= dict.fromkeys(("kernels", "findings"), _without(LOWERED_SDFG))
    if COMPILED_SDFG in manifest.files:
        used = memory(read(path / COMPILED_SDFG), sizes)
    else:
        absent["memory"] = _without(COMPILED_SDFG)
    timers: tuple[Timer, ...] = ()
    if profile is not None:
        digest = documents.digest(documents.sdfg_to_json(sdfg))
        timers = tuple(_timers(profile, program.name, digest, manifest.baked))
        if not timers:
            absent["timers"] = f"The profile has no call of this program with the SDFG signature {digest[:8]}."
    leaves, slots = arguments.leaves(plan, fortran), arguments.slots(plan)
    return ProgramReport(
        name=program.name,
        sdfg_name=sdfg.name,
        key=manifest.key or path.name,
        device=sdfg.device,
        static={leaf.path: str(leaf.value) for leaf in plan.statics},
        chips=chips(leaves, slots, found, used, result),
        leaves=leaves,
        slots=slots,
        remarks=tuple(remarks(plan)),
        constants=arguments.constants(plan, manifest.baked),
        fortran_module="" if fortran is None else fortran.module,
        kernels=found or (),
        memory=used,
        sizes=sizes,
        findings=result,
        timers=timers,
        ingredients=tuple(_ingredients(manifest)),
        absent=absent,
    )


def fitting(path: Path, sizes: SharedSizes) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Those of the sizes of dimensions and values of symbols that an entry has. Raises GtstubError or OSError."""
    _, sdfg, program = signatures(path)
    return sizes.fitting(program, sdfg)


def reports_of(
    cache: Path, report_of: Callable[[Path], ProgramReport]
) -> tuple[tuple[ProgramReport, ...], tuple[Unreadable, ...]]:
    """
    The reports of a cache's entries, sorted by their keys, and the entries that have none. Raises ReportError if the
    directory cannot be read or has no entry.
    """
    try:
        paths = entries_in(cache)
    except OSError as error:
        raise ReportError(f"The cache '{cache}' cannot be read: {error.strerror}.") from None
    if not paths:
        raise ReportError(f"'{cache}' has no cache entry: 'gtstub cache path' prints the directory of the cache.")
    reports, unreadable = [], []
    for path in paths:
        try:
            reports.append(report_of(path))
        except (GtstubError, OSError) as error:
            unreadable.append(Unreadable(path.name, str(error)))
    return tuple(reports), tuple(unreadable)


def _without(name: str) -> str:
    return f"The entry has no '{name}', because an older gtstub built it: build it again to see this."


def _timers(profile: Profile, name: str, digest: str, baked: Mapping[str, Any]) -> Iterator[Timer]:
    for program in profile.programs:
        if program.name == name and program.sdfg_digest == digest and _is_variant(program, baked):
            for what, calls in (("calls", program.run), ("initial calls", program.initial)):
                if calls is not None:
                    times = (calls.whole.median, calls.conversion.median, calls.sdfg.median, calls.whole.total)
                    share = calls.whole.total / profile.wall if profile.wall > 0 else 0.0
                    share = share if math.isfinite(share) else 0.0
                    yield Timer(what, calls.calls, *times, share)


def _is_variant(program: ProgramTimes, baked: Mapping[str, Any]) -> bool:
    """Whether all values that the profile names for a program are those of the entry."""
    return all(str(baked.get(name, value)) == str(value) for name, value in program.static.items())


def _ingredients(manifest: Manifest) -> Iterator[Ingredient]:
    for group, outer in manifest.ingredients.items():
        for path, value in flat(group, outer):
            if isinstance(value, list) and all(isinstance(each, str) for each in value):
                text = ", ".join(value)
            else:
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield Ingredient(group, path, text)
