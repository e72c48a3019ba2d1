"""
The stubs of icon4py's programs that are committed in this folder, a subfolder for each program of programs.toml, and
README.md, which lists them.

    python -m examples.icon4py.committed                 # writes everything that is out of date
    python -m examples.icon4py.committed --check         # says what is, and exits with 1 if anything is
    python -m examples.icon4py.committed --all FOLDER    # writes the files of all variants into another folder

A program is lowered, which takes up to a minute, only where its source is not the one that its committed signatures
were made from: source.json tells. Everything else is made from the committed signatures in seconds.

Variants that differ from another in a few lines are not committed whole (WHOLE). Their signatures are committed as a
unified diff, and their files as SHA-256 sums in digests.sha256.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import multiprocessing
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from examples.icon4py import difference
from examples.icon4py.index import index_page
from gtstub.entries.building.jobs import Job, read_jobs
from gtstub.entries.cache.key import MISSING, differences
from gtstub.errors import GtstubError
from gtstub.frameworks.resolve import resolve
from gtstub.stub.codegen.hosts.fortran import FORTRAN
from gtstub.stub.codegen.stub import make_stub
from gtstub.stub.plan.model import CallPlan
from gtstub.stub.signature import documents
from gtstub.util.atomic import write
from gtstub.util.canonical import plain, readable

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

WHOLE = {
    "compute_advection_in_horizontal_momentum": ("f",),
    "vertically_implicit_solver_at_predictor_step": ("f",),
    "vertically_implicit_solver_at_corrector_step": ("fff", "ttt"),
}
"""The variants that are committed whole, of programs of which not all are. The others are told from the first one."""

LONGEST_PATH = 120
"""Characters of the path of a committed file in the repository."""

SIGNATURES = ("source.json", "program.json", "sdfg.json")
DIGESTS = "digests.sha256"


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
    def place(self) -> str:
        """The folder and the name."""
        return f"{self.folder.name}/{self.name}"

    @property
    def base(self) -> Stub | None:
        """The variant that this one's signatures are told from; None if this one is committed whole."""
        whole = WHOLE.get(self.folder.name, (self.variant,))
        return None if self.variant in whole else dataclasses.replace(self, variant=whole[0])

    @property
    def difference_file(self) -> Path:
        return self.file("diff")

    @property
    def signature_files(self) -> list[Path]:
        """The committed files that the signatures are in."""
        return [self.file(name) for name in SIGNATURES] if self.base is None else [self.difference_file]

    def file(self, name: str) -> Path:
        return self.folder / ".".join(filter(None, (self.variant, name)))

    def signatures(self) -> dict[Path, str] | None:
        """The committed signatures, and the source that they were made from; None if they are not complete."""
        files = [self.file(name) for name in SIGNATURES]
        try:
            if self.base is None:
                return {file: file.read_text() for file in files}
            base = self.base.signatures()
            told = None if base is None else difference.apply(self.difference_file.read_text(), base)
        except (OSError, ValueError):
            return None
        return told if told is not None and told.keys() == set(files) else None

    def generate(self, signatures: Mapping[Path, str]) -> tuple[CallPlan, dict[Path, str]]:
        """The call plan of signatures, and the texts of all files: the signatures as they are written, and the stub."""
        source, program, sdfg = map(self.file, SIGNATURES)
        read_program = documents.program_from_json(signatures[program], str(program))
        read_sdfg = documents.sdfg_from_json(signatures[sdfg], str(sdfg))
        stub = make_stub(read_sdfg, read_program, name=self.name, languages=[FORTRAN])
        return stub.plan, {
            source: signatures[source],
            program: documents.program_to_json(read_program),
            sdfg: documents.sdfg_to_json(read_sdfg),
            **{self.folder / file: text for file, text in stub.files.items()},
        }


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
    return readable(plain(source))


def lower(job: Job) -> tuple[str, str]:
    """Both signatures, the program's first; takes up to a minute."""
    from gtstub.frameworks.build_worker import compile_options
    from gtstub.frameworks.gt4py.compile import signatures_of_variants

    ((program, sdfg),) = signatures_of_variants(resolve(job.source), compile_options(job))
    return documents.program_to_json(program), documents.sdfg_to_json(sdfg)


@dataclasses.dataclass
class Folder:
    """What belongs into the folder `root`."""

    root: Path
    plans: dict[str, CallPlan] = dataclasses.field(default_factory=dict)
    whole: set[str] = dataclasses.field(default_factory=set)
    files: dict[Path, str] = dataclasses.field(default_factory=dict)
    digests: list[str] = dataclasses.field(default_factory=list)

    def add(self, stub: Stub, signatures: Mapping[Path, str]) -> None:
        """Variants that others are told from come first."""
        self.plans[stub.place], texts = stub.generate(signatures)
        if stub.base is None:
            self.whole.add(stub.place)
            self.files |= texts
        else:
            pairs = [(stub.base.file(name), stub.file(name)) for name in SIGNATURES]
            self.files[stub.difference_file] = difference.tell(pairs, {**self.files, **texts})
            self.digests += [f"{_digest(text)}  {file.relative_to(self.root)}\n" for file, text in texts.items()]

    def all_files(self) -> dict[Path, str]:
        digests = {self.root / DIGESTS: "".join(self.digests)} if self.digests else {}
        return {**self.files, **digests, self.root / "README.md": index_page(self.plans, self.whole)}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# --- Writing ----------------------------------------------------------------------------------------------------------


def update(found: list[Stub], root: Path, processes: int, everything: bool) -> None:
    """Writes what is out of date; `everything` lowers programs that have not changed, too."""
    signatures = {stub.place: (not everything and stub.signatures()) or {} for stub in found}
    sources = {stub.place: source_of(stub.job) for stub in found}
    changed = [stub for stub in found if signatures[stub.place].get(stub.file("source.json")) != sources[stub.place]]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=context) as pool:
        lowered = {pool.submit(lower, stub.job): stub for stub in changed}
        for done in concurrent.futures.as_completed(lowered):
            stub = lowered[done]
            texts = (sources[stub.place], *done.result())
            signatures[stub.place] = dict(zip(map(stub.file, SIGNATURES), texts, strict=True))
            print(f"'{stub.name}' was lowered.", flush=True)
    folder = Folder(root)
    for stub in found:
        folder.add(stub, signatures[stub.place])
    files = folder.all_files()
    for file, text in files.items():
        if write(file, text):
            print(f"'{file}' was written.")
    for file in _left_over(root, files.keys()):
        file.unlink()
        print(f"'{file}' was removed.")
        if not any(file.parent.iterdir()):
            file.parent.rmdir()


def write_all(found: list[Stub], root: Path, target: Path) -> None:
    """Writes the files of all variants below `target`, also of those that are not committed whole."""
    for stub in found:
        signatures = stub.signatures()
        if signatures is None:
            raise SystemExit(f"'{stub.name}' lacks signatures in '{stub.folder}': {HOW}.")
        for file, text in stub.generate(signatures)[1].items():
            write(target / file.relative_to(root), text)


# --- Checking ---------------------------------------------------------------------------------------------------------


def problems(found: list[Stub], root: Path) -> Iterator[str]:
    """A sentence for everything that is not as `update` would leave it."""
    folder = Folder(root)
    unusable: set[Path] = set()
    for stub in found:
        signatures = stub.signatures()
        if signatures is None or (stub.base is not None and stub.base.place not in folder.whole):
            unusable.update(stub.signature_files)
            yield f"'{stub.name}' lacks signatures in '{stub.folder}': {HOW}."
            continue
        source = source_of(stub.job)
        if signatures[stub.file("source.json")] != source:
            yield _change(stub, source, signatures[stub.file("source.json")])
        try:
            folder.add(stub, signatures)
        except GtstubError as error:
            unusable.update(stub.signature_files)
            yield f"The signatures of '{stub.name}' in '{stub.folder}' are of no use: {error}"
    files = folder.all_files()
    for file, text in files.items():
        if not _has(file, text):
            yield f"'{file}' is not what the signatures give: {HOW}."
    for file in _left_over(root, files.keys() | unusable):
        yield f"'{file}' belongs to no program of 'programs.toml': {HOW}."
    for file in files:
        if len(path := f"examples/icon4py/{file.relative_to(root)}") > LONGEST_PATH:
            yield f"The path '{path}' is longer than {LONGEST_PATH} characters: give its program a short name."


def _change(stub: Stub, source: str, before: str) -> str:
    """What has changed of a program since it was lowered."""
    try:
        different = differences(json.loads(source), json.loads(before))
    except ValueError:
        different = []
    if not different:
        return f"'{stub.signature_files[0]}' was edited: {HOW}."
    told = "; ".join(_difference(each.path, each.ours, each.theirs) for each in different[:SHOWN])
    more = f"; and {len(different) - SHOWN} more" if len(different) > SHOWN else ""
    return f"Program '{stub.job.label}' of icon4py has changed: {told}{more}. To lower it again, {HOW}."


def _difference(path: str, ours: Any, theirs: Any) -> str:
    now, then = ("nothing" if value is MISSING else json.dumps(value) for value in (ours, theirs))
    return f"'{path}' is {now}, but was {then}"


def _has(file: Path, text: str) -> bool:
    return file.exists() and file.read_bytes() == text.encode()


def _left_over(root: Path, made: Set[Path]) -> list[Path]:
    """The files in folders of programs that no program has made, and the digests if there should be none."""
    folders = {file.parent for file in root.glob("*/*program.json")} | {file.parent for file in made} - {root}
    files = {file for folder in folders if folder.exists() for file in folder.iterdir()} | set(root.glob(DIGESTS))
    return sorted(files - made)


def main() -> None:
    parser = argparse.ArgumentParser(description="The committed stubs of icon4py's programs.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if something is out of date")
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="write the files of all variants into FOLDER")
    parser.add_argument("--lower", action="store_true", help="lower every program, also those that have not changed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many programs are lowered at a time")
    options = parser.parse_args()
    found = stubs(HERE / "programs.toml", HERE)
    if options.all:
        write_all(found, HERE, options.all)
        return
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
