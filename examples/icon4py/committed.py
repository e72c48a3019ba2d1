"""
The stubs of icon4py's programs that are committed in this folder, a subfolder for each program of programs.toml, and
README.md, which lists them.

    python -m examples.icon4py.committed            # writes everything that is out of date
    python -m examples.icon4py.committed --check    # says what is, and exits with 1 if anything is

A program is lowered, which takes up to a minute, only where its source is not the one that its committed signatures
were made from: source.json tells. Everything else is made from the committed signatures in seconds.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import multiprocessing
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

from examples.icon4py.index import index_page
from gtstub.building.jobs import Job, read_jobs
from gtstub.cache.key import MISSING, differences
from gtstub.codegen.hosts.fortran import FORTRAN
from gtstub.codegen.stub import make_stub
from gtstub.errors import GtstubError
from gtstub.frameworks.resolve import resolve
from gtstub.plan.model import CallPlan
from gtstub.signature import documents
from gtstub.util.atomic import write
from gtstub.util.canonical import plain

HERE = Path(__file__).parent
HOW = "run 'make generated', and read the difference as a reviewer would"
SHOWN = 3
"""Differences of a source that a message lists."""


SHORT_NAMES = {
    "apply_diffusion_to_w_and_compute_horizontal_gradients_for_turbulence": "apply_diffusion_to_w",
    "calculate_enhanced_diffusion_coefficients_for_grid_point_cold_pools": "calculate_enhanced_diffusion_coefficients",
    "compute_advection_in_corrector_vertical_momentum": "compute_advection_in_corrector",
    "compute_advection_in_predictor_vertical_momentum": "compute_advection_in_predictor",
    "init_diffusion_local_fields_for_regular_timestep": "init_diffusion_local_fields",
}
"""The names of stubs whose paths would be longer than LONGEST_PATH under the names of their programs."""

LONGEST_PATH = 120
"""Characters of the path of a committed file in the repository."""


def short_name(program: str) -> str:
    """The name of a program's folder, and of its stub if it has one variant."""
    return SHORT_NAMES.get(program, program)


@dataclasses.dataclass(frozen=True)
class Stub:
    """
    A variant of a program, in the program's folder. `variant` tells it from the others by its static arguments: for
    each one that differs between variants `t` (true), `f` (false) or the number. It is empty if there is one variant.
    """

    job: Job
    folder: Path
    variant: str

    @property
    def name(self) -> str:
        """A host may be linked with the stubs of all programs and variants."""
        return "_".join(filter(None, (self.folder.name, self.variant)))

    @property
    def sdfg_file(self) -> Path:
        return self._file("sdfg.json")

    @property
    def program_file(self) -> Path:
        return self._file("program.json")

    @property
    def source_file(self) -> Path:
        return self._file("source.json")

    def _file(self, name: str) -> Path:
        return self.folder / ".".join(filter(None, (self.variant, name)))

    @property
    def is_complete(self) -> bool:
        """Whether the signatures are there, and the source that they were made from."""
        return all(file.exists() for file in (self.sdfg_file, self.program_file, self.source_file))

    def generate(self) -> tuple[CallPlan, dict[Path, str]]:
        """Of the committed signatures: the call plan, and the text of every file that is made from them."""
        sdfg = documents.sdfg_from_json(self.sdfg_file.read_text(), str(self.sdfg_file))
        program = documents.program_from_json(self.program_file.read_text(), str(self.program_file))
        signatures = {
            self.sdfg_file: documents.sdfg_to_json(sdfg),
            self.program_file: documents.program_to_json(program),
        }
        stub = make_stub(sdfg, program, name=self.name, languages=[FORTRAN])
        return stub.plan, {**signatures, **{self.folder / file: text for file, text in stub.files.items()}}


def stubs(programs: Path, root: Path) -> list[Stub]:
    """What a file like programs.toml lists, and where it belongs below `root`."""
    jobs = read_jobs(programs)
    values: defaultdict[tuple[str, str], set[Any]] = defaultdict(set)
    for job in jobs:
        for name, (value,) in job.arguments.get("static_args", {}).items():
            values[job.source, name].add(value)

    def variant(job: Job) -> str:
        static = job.arguments.get("static_args", {})
        return "".join(_code(value) for name, (value,) in static.items() if len(values[job.source, name]) > 1)

    return [Stub(job, root / short_name(job.program), variant(job)) for job in jobs]


def _code(value: Any) -> str:
    return {True: "t", False: "f"}[value] if isinstance(value, bool) else str(value)


def source_of(job: Job) -> str:
    """What the program is made of, as it is installed now; nothing is lowered."""
    from gtstub.frameworks.build_worker import compile_options
    from gtstub.frameworks.gt4py.compile import sources

    (source,) = sources(resolve(job.source), compile_options(job))
    return json.dumps(plain(source), indent=1, sort_keys=True) + "\n"


def lower(job: Job) -> tuple[str, str]:
    """Both signatures, the program's first; takes up to a minute."""
    from gtstub.frameworks.build_worker import compile_options
    from gtstub.frameworks.gt4py.compile import signatures_of_variants

    ((program, sdfg),) = signatures_of_variants(resolve(job.source), compile_options(job))
    return documents.program_to_json(program), documents.sdfg_to_json(sdfg)


# --- Writing ----------------------------------------------------------------------------------------------------------


def update(found: list[Stub], root: Path, processes: int, everything: bool) -> None:
    """Writes what is out of date; `everything` lowers programs that have not changed, too."""
    sources = [source_of(stub.job) for stub in found]
    changed = [
        (stub, source)
        for stub, source in zip(found, sources, strict=True)
        if everything or not stub.is_complete or not _has(stub.source_file, source)
    ]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=context) as pool:
        lowered = {pool.submit(lower, stub.job): (stub, source) for stub, source in changed}
        for done in concurrent.futures.as_completed(lowered):
            stub, source = lowered[done]
            for file, text in zip((stub.program_file, stub.sdfg_file), done.result(), strict=True):
                write(file, text)
            write(stub.source_file, source)
            print(f"'{stub.name}' was lowered.", flush=True)
    plans = {}
    made = set()
    for stub in found:
        plan, texts = stub.generate()
        plans[f"{stub.folder.name}/{stub.name}"] = plan
        made |= {stub.source_file, *texts}
        for file, text in texts.items():
            if write(file, text):
                print(f"'{file}' was written.")
    for file in _left_over(root, made):
        file.unlink()
        print(f"'{file}' was removed.")
        if not any(file.parent.iterdir()):
            file.parent.rmdir()
    if write(root / "README.md", index_page(plans)):
        print(f"'{root / 'README.md'}' was written.")


# --- Checking ---------------------------------------------------------------------------------------------------------


def problems(found: list[Stub], root: Path) -> Iterator[str]:
    """A sentence for everything that is not as `update` would leave it."""
    plans = {}
    made = set()
    for stub in found:
        made |= {stub.sdfg_file, stub.program_file, stub.source_file}
        if not stub.is_complete:
            yield f"'{stub.name}' lacks signatures in '{stub.folder}': {HOW}."
            continue
        source = source_of(stub.job)
        if not _has(stub.source_file, source):
            yield _change(stub, source)
        try:
            plan, texts = stub.generate()
        except GtstubError as error:
            yield f"The signatures of '{stub.name}' in '{stub.folder}' are of no use: {error}"
            continue
        plans[f"{stub.folder.name}/{stub.name}"] = plan
        made |= texts.keys()
        for file, text in texts.items():
            if not _has(file, text):
                yield f"'{file}' is not what its signatures give: {HOW}."
    for file in _left_over(root, made):
        yield f"'{file}' belongs to no program of 'programs.toml': {HOW}."
    for file in made:
        if len(path := f"examples/icon4py/{file.relative_to(root)}") > LONGEST_PATH:
            yield f"The path '{path}' is longer than {LONGEST_PATH} characters: give its program a short name."
    if not _has(root / "README.md", index_page(plans)):
        yield f"'{root / 'README.md'}' is not what the signatures give: {HOW}."


def _change(stub: Stub, source: str) -> str:
    """What has changed of a program since it was lowered."""
    try:
        different = differences(json.loads(source), json.loads(stub.source_file.read_text(encoding="utf-8")))
    except ValueError:
        different = []
    if not different:
        return f"'{stub.source_file}' was edited: {HOW}."
    told = "; ".join(_difference(each.path, each.ours, each.theirs) for each in different[:SHOWN])
    more = f"; and {len(different) - SHOWN} more" if len(different) > SHOWN else ""
    return f"Program '{stub.job.label}' of icon4py has changed: {told}{more}. To lower it again, {HOW}."


def _difference(path: str, ours: Any, theirs: Any) -> str:
    now, then = ("nothing" if value is MISSING else json.dumps(value) for value in (ours, theirs))
    return f"'{path}' is {now}, but was {then}"


def _has(file: Path, text: str) -> bool:
    return file.exists() and file.read_bytes() == text.encode()


def _left_over(root: Path, made: Set[Path]) -> list[Path]:
    """The files in folders of programs that no program has made."""
    folders = {file.parent for file in root.glob("*/*program.json")} | {file.parent for file in made}
    return sorted(file for folder in folders if folder.exists() for file in set(folder.iterdir()) - made)


def main() -> None:
    parser = argparse.ArgumentParser(description="The committed stubs of icon4py's programs.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if something is out of date")
    parser.add_argument("--lower", action="store_true", help="lower every program, also those that have not changed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many programs are lowered at a time")
    options = parser.parse_args()
    found = stubs(HERE / "programs.toml", HERE)
    if not options.check:
        update(found, HERE, options.jobs, options.lower)
        return
    wrong = list(problems(found, HERE))
    for problem in wrong:
        print(problem, file=sys.stderr)
    if wrong:
        sys.exit(1)
    print(f"{len(found)} stubs of {len({stub.job.source for stub in found})} programs are as they should be.")


if __name__ == "__main__":
    main()
