"""The page that lists the committed stubs: what each program takes, and which slots of its SDFG that fills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from importlib.metadata import version
from pathlib import Path

from gtstub.stub.plan.model import AxisValue, CallPlan, FieldLeaf, Leaf, Metric, StaticLeaf
from gtstub.stub.plan.wording import accesses_not_known

HEAD = """\
# Stubs of icon4py's programs

These stubs were generated from icon4py {icon4py} by gt4py {gt4py} and DaCe {dace}. They are committed, so a C or
Fortran project can compile them without these packages ([docs/cmake.md](../../docs/cmake.md)). `make generated`
writes this page and the folders beside it. `make check-generated` lists what is out of date.

[programs.toml](programs.toml) lists the programs: those of the granules of diffusion and velocity advection, the
vertically implicit solvers, and nabla4. Programs with parameters for their sizes have the sizes of a small torus with
10 levels compiled in; nabla4 takes its sizes as arguments. Another grid needs stubs of its own, because the libraries
that DaCe builds also have the sizes compiled in.

Each program has a folder, with the program's name or the beginning of it. The folder has both signatures, the header,
the stub and the Fortran module, and `source.json`, which records the source that they were made from, so that a change
of icon4py is noticed. If a program has several variants, a letter for each static argument that distinguishes them
follows the program's name: `t` for true, `f` for false, in the order of the table below. Functions and types have the
name of the stub, so one host can be linked with all variants.

A variant without a link in the table differs from the first one of its program in a few lines, and its files are not
committed. A file like `fft.diff` tells its signatures from those of the first variant, as `diff` and `patch` do, and
[digests.sha256](digests.sha256) has the SHA-256 sum of each of its files. `make check-generated` compares both. These
commands write the files of all variants and compare the sums:

    make generated ARGS='--all build/icon4py-stubs'
    (cd build/icon4py-stubs && sha256sum --check ../../examples/icon4py/digests.sha256)

To run a program, a host needs the library that DaCe builds of it, `lib<program>.so`, beside the stub. Build it in a
checkout, with `.venv/bin` on the `PATH`:

    gtstub build examples/icon4py/programs.toml --program copy_field --cache build/icon4py
    gtstub cache path copy_field --cache build/icon4py # the folder with libcopy_field.so

[examples/c_host](../c_host/README.md) shows the next steps, in C and in Fortran.
"""


def index_page(plans: Mapping[str, CallPlan], whole: Set[str]) -> str:
    """`plans` are by folder and name of the stub: 'copy_field/copy_field'. Those in `whole` are committed whole."""
    packages = ("icon4py-atmosphere-diffusion", "gt4py", "dace")
    icon4py, gt4py, dace = map(version, packages)
    lines = [
        *HEAD.format(icon4py=icon4py, gt4py=gt4py, dace=dace).splitlines(),
        "",
        "| stub | slots | arguments | compiled in | accesses known | written |",
        "|---|---|---|---|---|---|",
    ]
    for place, plan in plans.items():
        written = [f"`{leaf.path}`" for leaf in plan.leaves if isinstance(leaf, FieldLeaf) and leaf.array.written]
        known = f"{plan.known} of {_accesses(plan)}"
        counts = (len(plan.slots), len(plan.arguments), len(plan.statics), known)
        stub = Path(place).name
        name = f"[{stub}](#{stub})" if place in whole else stub
        lines.append(f"| {name} | {' | '.join(map(str, counts))} | {', '.join(written)} |")
    known, accesses = sum(plan.known for plan in plans.values()), sum(map(_accesses, plans.values()))
    lines += [
        "",
        f"Of {accesses} accesses of the SDFGs to their arguments, {known} ({known / accesses:.1%}) are known: the stub"
        " refuses a call that would reach elements that were not passed. Each program lists the others.",
    ]
    for place, plan in plans.items():
        if place not in whole:
            continue
        files = f"[header]({place}_stub.h), [stub]({place}_stub.c), [Fortran module]({place}_stub.f90)"
        lines += ["", f"## {Path(place).name}", "", files, "", *_arguments(plan)]
    return "\n".join(lines) + "\n"


def _arguments(plan: CallPlan) -> Iterator[str]:
    yield "| argument | is | slots |"
    yield "|---|---|---|"
    for leaf in plan.leaves:
        if not isinstance(leaf, StaticLeaf):
            yield f"| `{leaf.path}` | {leaf.text} | {_slots(leaf, plan)} |"
    others = [slot for slot in plan.slots if isinstance(slot.source, Metric)]
    if others:
        yield f"| | gt4py's metrics | {', '.join(f'{slot.index} `{slot.name}`' for slot in others)} |"
    if statics := [f"{leaf.path} = {leaf.value!r}" for leaf in plan.statics]:
        yield ""
        yield f"Compiled in: {', '.join(f'`{static}`' for static in statics)}."
    if unknown := accesses_not_known(plan):
        yield ""
        yield f"Not known which elements are accessed: {', '.join(each.replace("'", '`') for each in unknown)}."


def _accesses(plan: CallPlan) -> int:
    return plan.known + sum(each.count for each in plan.unknown)


def _slots(leaf: Leaf, plan: CallPlan) -> str:
    """The slots that an argument fills, with what of it; the data is named by the argument already."""
    return ", ".join(
        str(slot.index) + (f" {_part(slot.source)}" if isinstance(slot.source, AxisValue) else "")
        for slot in plan.slots_of(leaf)
    )


def _part(source: AxisValue) -> str:
    return f"{source.name} {source.axis}"
