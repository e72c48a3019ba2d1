"""C hosts, sanitized: programs in C load generated stubs and recording libraries and look at what arrives."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable

import pytest

from gtstub.tools.recorded.archive import archives
from tests.benchmarks.c_host import count_instructions
from tests.support.c_hosts import PROG, SOURCES, WHOLE, Build, address, others, plain, thread
from tests.support.calling_programs import CALLING, CallingProgram
from tests.support.complex_programs import WAVES
from tests.support.programs import needs
from tests.support.sdfg_libraries import recording_source
from tests.support.signatures import WHOLE_SDFG, program, scalar, sdfg, symbol, with_static
from tests.support.stubs import write_stub


@address
def test_contracts(build: Build) -> None:
    build.run("contracts.c", *WHOLE, stubs=["whole_stub.so"])


@address
def test_tables(build: Build) -> None:
    build.run("tables.c", "./gather_stub.so", "./libgather.so", stubs=["gather_stub.so"])


@address
def test_changed_tables(build: Build) -> None:
    programs = ("./gather_stub.so", "./libgather.so", "./wide_gather_stub.so", "./libwide_gather.so")
    build.run("changed_tables.c", *programs, stubs=["gather_stub.so", "wide_gather_stub.so"])


SOME_CHANGES = {"a region of a twentieth": 10, "one element": 0}
"""Least numbers of changes, out of 50, that are noticed: the elements that a call compares lie in other rows."""


@address
def test_changes_of_the_used_rows_of_a_table(build: Build) -> None:
    program, variables = ("./part_gather_stub.so", "./libpart_gather.so"), {"GTSTUB_SUBSETS": "E2V"}
    printed = build.run("used_rows.c", *program, stubs=program[:1], variables=variables)
    print(printed)
    for line in printed.splitlines():
        what, number = line.split(": ")
        kind, _ = what.split(", ")
        assert int(number) == 0 if kind == "unused elements" else int(number) >= SOME_CHANGES.get(kind, 50), line
    assert len(printed.splitlines()) == 44


@address
def test_changes_of_rows_whose_elements_are_not_checked(build: Build) -> None:
    program = ("./mixed_gather_stub.so", "./libmixed_gather.so")
    build.run("unchecked_rows.c", *program, stubs=program[:1])


@address
def test_changes_of_rows_that_are_elements_of_another_table(build: Build) -> None:
    program = ("./chained_gather_stub.so", "./libchained_gather.so")
    build.run("followed_rows.c", *program, stubs=program[:1])


@address
def test_observers_that_leave_a_program_alone(build: Build) -> None:
    """After its recording has ended, and beside checks of other programs, a program knows its arrays again."""
    shutil.rmtree(build.folder / "of_two_calls", ignore_errors=True)
    recording = {"GTSTUB_RECORD": "of_two_calls", "GTSTUB_RECORD_CALLS": "2..3"}
    build.run("observed.c", "./gather_stub.so", "./libgather.so", stubs=["gather_stub.so"], variables=recording)
    (archive,) = archives(build.folder / "of_two_calls")
    assert [call.number for call in archive.calls] == [2, 3]


DOUBT = (
    "Program 'gather' uses no index 0 of connectivity 'E2V', which has index base 0: the lowest is {}. If the table "
    "counts from 1, set its index base to 1; if it is a part of a grid, silence this line with GTSTUB_SUBSETS=E2V."
)


@address
def test_index_bases_that_may_be_wrong(build: Build) -> None:
    def said(**variables: str) -> dict[str, list[str]]:
        """The lines after each of the titles that the program writes."""
        found: dict[str, list[str]] = {}
        for line in build.run("index_bases.c", *programs, stubs=programs[:1], variables=variables).splitlines():
            if line.endswith(":"):
                title = line[:-1]
                found[title] = []
            else:
                found[title].append(line)
        return found

    programs = ("./gather_stub.so", "./libgather.so")
    lines = said()
    assert {title: each for title, each in lines.items() if each} == {
        "from 1, said to be 0": [DOUBT.format(1)],
        "from 1, nothing said": [DOUBT.format(1)],
        "from 0, the part without index 0": [DOUBT.format(1)],
        "index 0 in padding": [DOUBT.format(1)],
        "no neighbor": [DOUBT.format(2)],
    }
    assert len(lines) == 9
    assert said(GTSTUB_SUBSETS="V2E,E2V") == {title: [] for title in lines}
    assert said(GTSTUB_SUBSETS="E2V2,V2E E2") == lines


@address
def test_extreme_values(build: Build) -> None:
    programs = ("./gather_stub.so", "./libgather.so", "./wide_gather_stub.so", "./libwide_gather.so")
    build.run("extremes.c", *programs, stubs=["gather_stub.so", "wide_gather_stub.so"])


@address
def test_opening(build: Build) -> None:
    directories = {
        "entry": ["whole_stub.so", "libwhole.so"],
        "alone": ["whole_stub.so"],
        "several": ["whole_stub.so", "prog_stub.so"],
        "nothing": [],
    }
    for name, files in directories.items():
        (build.folder / name).mkdir(exist_ok=True)
        for file in files:
            shutil.copy(build.folder / file, build.folder / name)
    text = (build.folder / "whole_stub.c").read_text(encoding="utf-8")
    for field in ("program_digest", "sdfg_digest", "version"):
        other = re.sub(rf'(\.{field} = ")[^"]*', r"\1other", text)
        assert other != text
        folder = build.folder / f"other_{field}"
        folder.mkdir(exist_ok=True)
        (folder / "whole_stub.c").write_text(other, encoding="utf-8")
        build.shared(f"{folder.name}/whole_stub.so", folder / "whole_stub.c", "-fvisibility=hidden")
        shutil.copy(build.folder / "libwhole.so", folder)
    build.run("opening.c", stubs=["whole_stub.so"])


@address
def test_libraries_are_known_by_their_files(build: Build) -> None:
    """Each folder has a program of its own: the library says which one."""
    for flavour in range(1, 5):
        folder = build.folder / f"flavour_{flavour}"
        folder.mkdir(exist_ok=True)
        shutil.copy(build.folder / "whole_stub.so", folder)
        text = f"{recording_source(WHOLE_SDFG)}\nEXPORT extern const int flavour;\nconst int flavour = {flavour};\n"
        (folder / "libwhole.c").write_text(text, encoding="utf-8")
        build.shared(f"{folder.name}/libwhole.so", folder / "libwhole.c")
    (build.folder / "place").unlink(missing_ok=True)
    build.run("libraries.c", stubs=["whole_stub.so"])


@plain
def test_a_forked_child_may_use_openmp_again(build: Build) -> None:
    text = recording_source(WHOLE_SDFG).replace(
        "static void run(void)\n{\n",
        "static void run(void)\n{\n#pragma omp parallel num_threads(2)\n    (void)usleep(1);\n",
    )
    assert "omp parallel" in text
    (build.folder / "with_openmp.c").write_text(text, encoding="utf-8")
    build.shared("with_openmp.so", "with_openmp.c", "-fopenmp")
    build.run("openmp.c", stubs=["whole_stub.so"])


@address
def test_life_of_a_handle(build: Build) -> None:
    build.run("life.c", *WHOLE, *PROG, stubs=["whole_stub.so", "prog_stub.so"])


@plain
def test_pool(build: Build) -> None:
    build.run("pool.c", *WHOLE, *PROG, "and forks", stubs=["whole_stub.so", "prog_stub.so"])


@address
def test_pool_with_sanitizers(build: Build) -> None:
    """It is off unless it is asked for: a sanitizer shall see each array."""
    programs = (*WHOLE, *PROG)
    build.run("pool.c", *programs, stubs=["whole_stub.so", "prog_stub.so"], variables={"GTSTUB_POOL": "4GiB"})


@thread
def test_pool_does_not_race(build: Build) -> None:
    programs = (*WHOLE, *PROG)
    build.run("pool.c", *programs, stubs=["whole_stub.so", "prog_stub.so"], variables={"GTSTUB_POOL": "4GiB"})


@plain
@pytest.mark.valgrind
@needs("valgrind")
def test_what_the_pool_costs(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two arrays are taken and given back, of sizes for which glibc does not ask the system each time."""
    monkeypatch.setenv("GTSTUB_POOL", "1GiB")  # valgrind would see each array otherwise
    program = build.executable(SOURCES / "pool_cost.c", "whole_stub.so")
    monkeypatch.chdir(build.folder)
    pool, malloc = (count_instructions(f"time_{way}", [program]) for way in ("pool", "malloc"))
    assert 400 < pool < malloc


@address
def test_threads(build: Build) -> None:
    build.run("threads.c", *WHOLE, stubs=["whole_stub.so"])


@thread
def test_threads_do_not_race(build: Build) -> None:
    build.run("threads.c", *WHOLE, stubs=["whole_stub.so"])


def write_fixed(build: Build) -> None:
    """A program with a scalar that was compiled in."""
    signature = sdfg(symbol("n"), name="fixed")
    fixed = with_static(program("fixed", n=scalar("int32"), m=scalar("int32")), m=7)
    build.shared("fixed_stub.so", write_stub(signature, fixed, build.folder), "-fvisibility=hidden")
    (build.folder / "libfixed.c").write_text(recording_source(signature), encoding="utf-8")
    build.shared("libfixed.so", "libfixed.c")


@address
def test_bound_calls_and_steps(build: Build) -> None:
    build.compile("libsum.so", SOURCES / "sum.c", "-shared")
    write_fixed(build)
    files = {"prog": "sum", "whole": "whole", "gather": "gather", "fixed": "fixed"}
    paths = [path for stub, library in files.items() for path in (f"./{stub}_stub.so", f"./lib{library}.so")]
    build.run("steps.c", *paths, stubs=[f"{stub}_stub.so" for stub in files])


@address
def test_steps_inside_steps(build: Build) -> None:
    build.compile("libsum.so", SOURCES / "sum.c", "-shared")
    build.run("nested_steps.c", "./prog_stub.so", "./libsum.so", stubs=["prog_stub.so"])


@address
def test_arrays_that_share_elements(build: Build) -> None:
    build.run("sections.c", stubs=[])


@address
def test_steps_in_threads(build: Build) -> None:
    build.run("step_threads.c", *WHOLE, stubs=["whole_stub.so"])


@thread
def test_steps_do_not_race(build: Build) -> None:
    build.run("step_threads.c", *WHOLE, stubs=["whole_stub.so"])


NO_OPENMP = "-Wno-unknown-pragmas"  # clang may lack its library, and a sanitizer does not know its locks


def write_calling(build: Build, *flags: str, program: CallingProgram = CALLING) -> None:
    name = program.sdfg.name
    (build.folder / f"{name}.c").write_text(program.source, encoding="utf-8")
    build.shared(f"lib{name}.so", f"{name}.c", *flags)
    build.shared(f"{name}_stub.so", write_stub(program.sdfg, program.program, build.folder), "-fvisibility=hidden")


@address
def test_callbacks(build: Build) -> None:
    write_calling(build, NO_OPENMP)
    build.run("callbacks.c", *PROG, stubs=["calling_stub.so", "prog_stub.so"])


@plain
def test_callbacks_in_threads_of_openmp(build: Build) -> None:
    write_calling(build, "-fopenmp")
    build.run("callbacks.c", *PROG, stubs=["calling_stub.so", "prog_stub.so"])


@thread
def test_callbacks_do_not_race(build: Build) -> None:
    write_calling(build, NO_OPENMP)
    build.run("callbacks.c", *PROG, stubs=["calling_stub.so", "prog_stub.so"])


@address
def test_complex_numbers(build: Build) -> None:
    write_calling(build, program=WAVES)
    build.run("waves.c", stubs=["waves_stub.so"])


@address
def test_profiles(build: Build) -> None:
    build.run("profile.c", *WHOLE, *PROG, stubs=["whole_stub.so", "prog_stub.so"])


@thread
def test_profiles_do_not_race(build: Build) -> None:
    build.run("profile.c", *WHOLE, *PROG, stubs=["whole_stub.so", "prog_stub.so"])


@address
def test_profiles_of_steps(build: Build) -> None:
    build.run("profiled_steps.c", *PROG, stubs=["prog_stub.so"])


@thread
def test_profiles_of_steps_do_not_race(build: Build) -> None:
    build.run("profiled_steps.c", *PROG, stubs=["prog_stub.so"])


@address
def test_checks(build: Build) -> None:
    build.compile("libsum.so", SOURCES / "sum.c", "-shared")
    build.run("checks.c", "./prog_stub.so", "./libsum.so", stubs=["prog_stub.so"])


@thread
def test_checks_do_not_race(build: Build) -> None:
    build.compile("libsum.so", SOURCES / "sum.c", "-shared")
    build.run("checks.c", "./prog_stub.so", "./libsum.so", stubs=["prog_stub.so"])


@address
def test_guarded_calls(build: Build) -> None:
    build.compile("libpast.so", SOURCES / "sum.c", "-shared", "-DPAST")
    build.run("guarded.c", "./prog_stub.so", "./libpast.so", stubs=["prog_stub.so"])


@thread
def test_guarded_calls_do_not_race(build: Build) -> None:
    build.compile("libpast.so", SOURCES / "sum.c", "-shared", "-DPAST")
    build.run("guarded.c", "./prog_stub.so", "./libpast.so", stubs=["prog_stub.so"])


@plain
def test_guarded_threads_of_openmp(build: Build) -> None:
    build.compile("libparallel.so", SOURCES / "sum.c", "-shared", "-DPAST", "-fopenmp")
    build.run("guarded.c", "./prog_stub.so", "./libparallel.so", stubs=["prog_stub.so"])


@plain
def test_guarded_calls_on_large_pages(build: Build) -> None:
    build.compile("libpast.so", SOURCES / "sum.c", "-shared", "-DPAST")
    build.compile("large_pages.so", SOURCES / "large_pages.c", "-shared")
    arguments = ("./prog_stub.so", "./libpast.so")
    build.run("guarded.c", *arguments, stubs=["prog_stub.so"], variables={"LD_PRELOAD": "./large_pages.so"})


@address
def test_libraries_that_do_not_fit(build: Build) -> None:
    text = recording_source(WHOLE_SDFG)
    spoiled = {
        "without_init": ("__dace_init_whole", "__dace_init_other"),
        "without_exit": ("__dace_exit_whole", "__dace_exit_other"),
        "without_workspace": ("__dace_set_external_memory_CPU_Heap", "__dace_set_external_memory_GPU_Global"),
    }
    for name, (found, other) in spoiled.items():
        assert found in text
        (build.folder / f"{name}.c").write_text(text.replace(found, other), encoding="utf-8")
        build.shared(f"{name}.so", f"{name}.c")
    for name, fields in {"other_abi": ".abi = 99", "huge": ".abi = GTS_ABI, .args_size = PTRDIFF_MAX"}.items():
        descriptor = f'{{{fields}, .name = "whole"}}'
        lines = ('#include "gtstub/stub.h"', "extern const gts_stub gts_descriptor;")
        (build.folder / f"{name}.c").write_text("\n".join((*lines, f"const gts_stub gts_descriptor = {descriptor};\n")))
        build.shared(f"{name}.so", "-Wl,--no-as-needed", f"{name}.c")  # it uses nothing of the runtime
    build.run("loading.c", stubs=["whole_stub.so"])


@others
@pytest.mark.parametrize(
    "test",
    [
        test_contracts,
        test_tables,
        test_opening,
        test_libraries_are_known_by_their_files,
        test_life_of_a_handle,
        test_threads,
        test_bound_calls_and_steps,
        test_callbacks,
        test_profiles,
        test_checks,
        test_guarded_calls,
    ],
)
def test_other_builds(build: Build, test: Callable[[Build], None]) -> None:
    """All of it optimised at link time, or linked with musl."""
    test(build)


VALGRIND = ("valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite")


@plain
@pytest.mark.valgrind
@needs("valgrind")
@pytest.mark.parametrize("source", ["contracts.c", "threads.c"])
def test_under_valgrind(build: Build, source: str) -> None:
    build.run(source, *WHOLE, stubs=["whole_stub.so"], under=VALGRIND)


@plain
@pytest.mark.valgrind
@needs("valgrind")
def test_life_of_a_handle_under_valgrind(build: Build) -> None:
    build.run("life.c", *WHOLE, *PROG, stubs=["whole_stub.so", "prog_stub.so"], under=VALGRIND)
