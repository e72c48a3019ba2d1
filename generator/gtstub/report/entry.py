"""Makes the report of a cache entry. Nothing of the entry is loaded or run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gtstub.abi import ABI
from gtstub.analysis.document import Document, SdfgError, read
from gtstub.analysis.memory import Memory, memory
from gtstub.analysis.rules import Result, check
from gtstub.analysis.sizes import symbol_sizes
from gtstub.cache.entry import COMPILED_SDFG, LOWERED_SDFG, Entry
from gtstub.cache.manifest import Manifest
from gtstub.plan.planner import make_plan
from gtstub.profiling.model import Profile, ProgramTimes
from gtstub.report import arguments
from gtstub.report.kernels import kernels
from gtstub.report.model import Ingredient, Kernel, ProgramReport, ReportError, Timer
from gtstub.report.verdict import chips
from gtstub.signature import documents
from gtstub.signature.model import ProgramSignature

NOTHING: Mapping[str, int] = {}


def report(
    path: Path,
    *,
    dims: Mapping[str, int] = NOTHING,
    values: Mapping[str, int] = NOTHING,
    profile: Profile | None = None,
) -> ProgramReport:
    """
    The report of the entry at `path`. The sizes of dimensions and the values of symbols are for its memory; the profile
    has the times of its calls. Raises GtstubError or OSError if there is no entry that this gtstub can read.
    """
    entry = Entry(path)
    if entry.is_foreign():
        raise ReportError(f"The cache entry '{path}' was made by another version of gtstub: build it again.")
    manifest = entry.manifest()
    _check_abi(path, manifest)
    sdfg_file, program_file = path / "sdfg.json", path / "program.json"
    sdfg = documents.sdfg_from_json(sdfg_file.read_bytes(), str(sdfg_file))
    program = documents.program_from_json(program_file.read_bytes(), str(program_file))
    plan = make_plan(sdfg, program)
    absent: dict[str, str] = {}
    interface = arguments.fortran(plan)
    if isinstance(interface, str):
        absent["fortran"] = interface
    fortran = None if isinstance(interface, str) else interface
    sizes = symbol_sizes(program, sdfg, dims, values)
    found, result, used = _analyse(path, manifest, program, sizes, absent)
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
        key=manifest.key or entry.key,
        device=sdfg.device,
        static={leaf.path: str(leaf.value) for leaf in plan.statics},
        chips=chips(leaves, slots, found, used, result),
        leaves=leaves,
        slots=slots,
        remarks=arguments.remarks(plan),
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


def _check_abi(path: Path, manifest: Manifest) -> None:
    """The generated source of a stub names its ABI, which the manifest does not."""
    source = path / f"{manifest.stub.removesuffix('.so')}.c"
    if not source.is_file():
        return
    found = re.search(r"^#if GTS_ABI != (\d+)$", source.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    if found is not None and int(found[1]) != ABI:
        raise ReportError(
            f"The cache entry '{path}' was built for ABI {found[1]} of gtstub, and this gtstub has ABI {ABI}: build it"
            " again, or use the gtstub that built it."
        )


def _analyse(
    path: Path,
    manifest: Manifest,
    program: ProgramSignature,
    sizes: Mapping[str, int],
    absent: dict[str, str],
) -> tuple[tuple[Kernel, ...] | None, Result | None, Memory | None]:
    """
    What the two SDFGs of an entry show. DaCe adds transients when it compiles, and the rules are for what it was given.
    None is for what an entry without them cannot show; `absent` then has the reason.
    """
    found, result, used = None, None, None
    if LOWERED_SDFG in manifest.files:
        file = path / LOWERED_SDFG
        lowered = read(file)
        found = _of_known_form(file, lowered, lambda: kernels(lowered))
        result = _of_known_form(file, lowered, lambda: check(lowered, program=program))
    else:
        absent |= dict.fromkeys(("kernels", "findings"), _without(LOWERED_SDFG))
    if COMPILED_SDFG in manifest.files:
        file = path / COMPILED_SDFG
        compiled = read(file)
        used = _of_known_form(file, compiled, lambda: memory(compiled, sizes))
    else:
        absent["memory"] = _without(COMPILED_SDFG)
    return found, result, used


def _without(name: str) -> str:
    return f"The entry has no '{name}', because an older gtstub built it: build it again to see this."


def _of_known_form[Made](file: Path, document: Document, make: Callable[[], Made]) -> Made:
    """What `make` makes of the SDFG in a file. Raises SdfgError for one of another form than DaCe's."""
    try:
        return make()
    except (SdfgError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        version = document.get("dace_version")
        by = f": DaCe {version} wrote it" if isinstance(version, str) and version.isprintable() else ""
        raise SdfgError(f"'{file}' is not an SDFG in the form that this gtstub reads{by}.") from None


def _timers(profile: Profile, name: str, digest: str, baked: Mapping[str, Any]) -> Iterator[Timer]:
    for program in profile.programs:
        if program.name == name and program.sdfg_digest == digest and _is_variant(program, baked):
            for what, calls in (("calls", program.run), ("initial calls", program.initial)):
                if calls is not None:
                    times = (calls.whole.median, calls.conversion.median, calls.sdfg.median, calls.whole.total)
                    share = calls.whole.total / profile.wall if profile.wall > 0 else 0.0
                    yield Timer(what, calls.calls, *times, share)


def _is_variant(program: ProgramTimes, baked: Mapping[str, Any]) -> bool:
    """Whether all values that the profile names for a program are those of the entry."""
    return all(str(baked.get(name, value)) == str(value) for name, value in program.static.items())


def _ingredients(manifest: Manifest) -> Iterator[Ingredient]:
    for group, value in manifest.ingredients.items():
        yield from (Ingredient(group, path, text) for path, text in _flat(group, value))


def _flat(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """The texts in a nested value, each with its dotted path."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _flat(f"{path}.{name}", inner)
    elif isinstance(value, list) and all(isinstance(each, str) for each in value):
        yield path, ", ".join(value)
    else:
        yield path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
