"""
The stubs of icon4py's programs that are committed in this folder, a subfolder for each variant of each program of
programs.toml, and README.md, which lists them.

    python -m examples.icon4py.committed            # writes everything that is out of date
    python -m examples.icon4py.committed --check    # says what is, and exits with 1 if anything is

A program is lowered, which takes up to a minute, only where its source is not the one that its committed signatures
were made from: <name>.source.json tells. Everything else is made from the committed signatures in seconds.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import multiprocessing
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from examples.icon4py.index import index_page
from gtstub.building.jobs import Job, read_jobs
from gtstub.cache.key import MISSING, differences
from gtstub.codegen.stub import make_stub
from gtstub.errors import GtstubError
from gtstub.frameworks.resolve import resolve_program
from gtstub.plan.model import CallPlan
from gtstub.signature import documents
from gtstub.util.atomic import write
from gtstub.util.canonical import plain

HERE = Path(__file__).parent
HOW = "run 'make generated', and read the difference as a reviewer would"
SHOWN = 3
"""Differences of a source that a message lists."""


@dataclasses.dataclass(frozen=True)
class Stub:
    """A variant of a program, in its folder."""

    job: Job
    folder: Path

    @property
    def name(self) -> str:
        """That of the program, with what tells its variants apart: a host may be linked with all of them."""
        return self.folder.name.replace("-", "_")

    @property
    def sdfg_file(self) -> Path:
        return self.folder / f"{self.job.program}.sdfg.json"

    @property
    def program_file(self) -> Path:
        return self.folder / f"{self.job.program}.program.json"

    @property
    def source_file(self) -> Path:
        return self.folder / f"{self.job.program}.source.json"

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
        stub = make_stub(sdfg, program, name=self.name, fortran=True)
        return stub.plan, {**signatures, **{self.folder / file: text for file, text in stub.files.items()}}


def stubs(programs: Path, root: Path) -> list[Stub]:
    """What a file like programs.toml lists, and where it belongs below `root`."""
    jobs = read_jobs(programs)
    values: defaultdict[tuple[str, str], set[Any]] = defaultdict(set)
    for job in jobs:
        for name, (value,) in job.arguments.get("static_args", {}).items():
            values[job.source, name].add(value)

    def folder(job: Job) -> str:
        static = job.arguments.get("static_args", {})
        told = [_told(name, value) for name, (value,) in static.items() if len(values[job.source, name]) > 1]
        return "-".join([job.program, *told])

    return [Stub(job, root / folder(job)) for job in jobs]


def _told(name: str, value: Any) -> str:
    """What a variant is known by: `lprep_adv`, `no_lprep_adv`, `order_4`."""
    if isinstance(value, bool):
        return name if value else f"no_{name}"
    return f"{name}_{value}"


def source_of(job: Job) -> str:
    """What the program is made of, as it is installed now; nothing is lowered."""
    from gtstub.frameworks.gt4py.build_worker import compile_arguments
    from gtstub.frameworks.gt4py.compile import CompileOptions, sources

    (source,) = sources(resolve_program(job.source), CompileOptions(**compile_arguments(job)))
    return json.dumps(plain(source), indent=1, sort_keys=True) + "\n"


def lower(job: Job) -> tuple[str, str]:
    """Both signatures, the program's first; takes up to a minute."""
    from gtstub.frameworks.gt4py.build_worker import compile_arguments
    from gtstub.frameworks.gt4py.compile import CompileOptions, signatures

    ((program, sdfg),) = signatures(resolve_program(job.source), CompileOptions(**compile_arguments(job)))
    return documents.program_to_json(program), documents.sdfg_to_json(sdfg)


# --- Writing ----------------------------------------------------------------------------------------------------------


def update(found: list[Stub], root: Path, processes: int, everything: bool) -> None:
    """Writes what is out of date; `everything` lowers programs that have not changed, too."""
    for folder in _strangers(found, root):
        shutil.rmtree(folder)
        print(f"'{folder}' was removed: no program belongs to it.")
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
            print(f"'{stub.folder.name}' was lowered.", flush=True)
    plans = {}
    for stub in found:
        plans[stub.folder.name], texts = stub.generate()
        for file, text in texts.items():
            if write(file, text):
                print(f"'{file}' was written.")
        for file in _left_over(stub, texts):
            file.unlink()
            print(f"'{file}' was removed.")
    if write(root / "README.md", index_page(plans)):
        print(f"'{root / 'README.md'}' was written.")


# --- Checking ---------------------------------------------------------------------------------------------------------


def problems(found: list[Stub], root: Path) -> Iterator[str]:
    """A sentence for everything that is not as `update` would leave it."""
    for folder in _strangers(found, root):
        yield f"'{folder}' belongs to no program of 'programs.toml': {HOW}."
    plans = {}
    for stub in found:
        if not stub.is_complete:
            yield f"'{stub.folder}' lacks signatures: {HOW}."
            continue
        source = source_of(stub.job)
        if not _has(stub.source_file, source):
            yield _change(stub, source)
        try:
            plans[stub.folder.name], texts = stub.generate()
        except GtstubError as error:
            yield f"The signatures in '{stub.folder}' are of no use: {error}"
            continue
        for file, text in texts.items():
            if not _has(file, text):
                yield f"'{file}' is not what its signatures give: {HOW}."
        for file in _left_over(stub, texts):
            yield f"'{file}' is made of no signatures: {HOW}."
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


def _left_over(stub: Stub, texts: Iterable[Path]) -> list[Path]:
    return sorted(set(stub.folder.iterdir()) - {*texts, stub.source_file})


def _strangers(found: list[Stub], root: Path) -> list[Path]:
    known = {stub.folder for stub in found}
    return sorted(file.parent for file in root.glob("*/*.program.json") if file.parent not in known)


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
