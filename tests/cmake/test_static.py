"""gtstub_add_program(STATIC): executables that contain the runtime and their stubs, and load SDFG libraries alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gtstub.abi import ABI
from gtstub.install import FOLDER, RUNTIME
from tests.support import scale_program as scale
from tests.support.cmake_projects import (
    ALONE,
    ENVIRONMENT,
    FROM_PACKAGE,
    HOSTS,
    PROGRAM,
    Project,
    cmake,
    install_and_move,
)
from tests.support.programs import need
from tests.support.stubs import render_stub, write_stub

pytestmark = pytest.mark.skipif(
    not (FOLDER / "lib" / "libgtstub.a").is_file(), reason="gtstub was installed without libgtstub.a"
)


def run(*command: str | Path, environment: dict[str, str] | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [*map(str, command)], cwd="/", capture_output=True, text=True, check=False, env=environment, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


def needed(file: Path) -> str:
    need("ldd")
    return subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout


def exported(file: Path) -> set[str]:
    need("nm")
    done = subprocess.run(["nm", "-D", "--defined-only", file], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


def build_static(root: Path, sources: Path, folder: Path) -> Project:
    """A C host that was built with a committed stub."""
    write_stub(scale.SDFG, scale.PROGRAM, sources)
    project = Project(folder, root, sources)
    project.configure("-DHOW=COMMITTED;STATIC", "-DCMAKE_BUILD_TYPE=Release")
    project.build()
    return project


@pytest.fixture
def static(roots: dict[str, Path], sources: Path, tmp_path: Path) -> Project:
    """A host that the test may change."""
    return build_static(roots[ALONE], sources, tmp_path)


@pytest.fixture(scope="module")
def unchanged(roots: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A host that tests only run."""
    folder = tmp_path_factory.mktemp("static")
    scale.write_sources(folder / "sources")
    return build_static(roots[ALONE], folder / "sources", folder)


@pytest.mark.parametrize("how", ["STATIC", "COMMITTED;STATIC"])
def test_c_and_fortran(how: str, root: Path, sources: Path, tmp_path: Path) -> None:
    need("gfortran")
    texts = render_stub(scale.SDFG, scale.PROGRAM, fortran=True)
    for suffix, text in {".h": texts.header, ".c": texts.source, ".f90": texts.module}.items():
        (sources / f"scale_stub{suffix}").write_text(text or "")
    project = Project(tmp_path, root, sources, "C", "CXX", "Fortran")
    project.configure(f"-DHOW={how}", f"-DGTSTUB_EXECUTABLE={PROGRAM}")
    project.build()
    assert project.run("host_c") == project.run("host_cxx") == "2.5 5 7.5\n"
    assert project.run("host_fortran") == " 2.5 5.0 7.5\n"
    for host in ("host_c", "host_cxx", "host_fortran"):
        libraries = needed(project.build_folder / host)
        assert "libc.so" in libraries
        assert "gtstub" not in libraries
        assert "scale" not in libraries
    files = {file.name for file in (project.build_folder / "scale").iterdir()}
    assert {"scale_stub.a", "libscale.so"} <= files
    assert "scale_stub.so" not in files


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("scale", True),
        ("scale/", True),
        ("scale/libscale.so", True),
        ("scale/scale_stub.so", True),  # which is not there
        ("$ORIGIN/scale", True),
        ("$ORIGIN/../build/scale/libscale.so", True),
        ("$ORIGINAL", False),
        ("scale/other_stub.so", False),
    ],
)
def test_paths(given: str, found: bool, unchanged: Project) -> None:
    path = given if given.startswith("$") else str(unchanged.build_folder / given)
    status, printed, error = run(unchanged.build_folder / "host_c", path)
    assert (status, printed) == ((0, "2.5 5 7.5\n") if found else (1, "")), error
    if not found:
        assert error == f"Cannot open '{path}': No such file or directory.\n"


def test_library_is_replaced(static: Project, sources: Path) -> None:
    scale.build_library(sources, times=2)
    static.build()
    assert static.run("host_c") == "5 10 15\n"


def test_directory_without_an_sdfg_library(unchanged: Project, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert run(unchanged.build_folder / "host_c", tmp_path / "empty") == (
        1,
        "",
        f"Path '{tmp_path}/empty' belongs to 0 stubs of this host, not to one; name the stub, as"
        f" '{tmp_path}/empty/scale_stub.so'.\n",
    )


def test_stub_in_a_file(static: Project, roots: dict[str, Path], sources: Path, tmp_path: Path) -> None:
    """A cache entry has one. It is not loaded, but must come from the same signatures."""
    shared = Project(tmp_path / "other", roots[ALONE], sources)
    shared.configure("-DHOW=COMMITTED")
    shared.build()
    entry = shared.build_folder / "scale"
    assert run(static.build_folder / "host_c", entry) == (0, "2.5 5 7.5\n", "")

    stub = entry / "scale_stub.so"
    digest = next(line for line in (sources / "scale_stub.c").read_text().splitlines() if ".sdfg_digest" in line)
    old = digest.split('"')[1].encode()
    stub.write_bytes(stub.read_bytes().replace(old, old[::-1]))
    assert run(static.build_folder / "host_c", entry) == (
        1,
        "",
        f"Stub '{stub}' differs from the one that is linked into this host; generate and build both from the same"
        " signatures.\n",
    )
    other = stub.rename(entry / "other_stub.so")
    assert run(static.build_folder / "host_c", entry) == (
        1,
        "",
        f"Stub '{other}' is not linked into this host, which is linked with libgtstub.a and loads no stubs.\n",
    )


def test_profile(unchanged: Project, tmp_path: Path) -> None:
    """What observes programs is in the archive, though no function of the runtime refers to it."""
    report = tmp_path / "report.json"
    status, _, error = run(unchanged.build_folder / "host_c", environment=os.environ | {"GTSTUB_PROFILE": str(report)})
    assert (status, error) == (0, "")
    assert '"scale"' in report.read_text()


def test_stub_of_another_abi(static: Project, roots: dict[str, Path], sources: Path) -> None:
    source = sources / "scale_stub.c"
    text = source.read_text()
    source.write_text(text.replace(".abi = GTS_ABI", ".abi = GTS_ABI - 1"))
    static.build()
    assert run(static.build_folder / "host_c") == (
        1,
        "",
        f"Stub '{static.build_folder}/scale/scale_stub.so' was generated for ABI {ABI - 1} of gtstub, but this is ABI"
        f" {ABI}; generate it again.\n",
    )
    source.write_text(text.replace(f"GTS_ABI != {ABI}", f"GTS_ABI != {ABI - 1}"))
    assert "This stub was generated for ABI" in static.build(fails=True)


# --- Several stubs, and several runtimes ------------------------------------------------------------------------------

TWO_NAMES = """
cmake_minimum_required(VERSION 3.20)
project(two LANGUAGES C)
find_package(gtstub REQUIRED)
foreach(name IN ITEMS first second)
  gtstub_add_program(${name} NAME ${name} LIBRARY libscale.so STATIC
    SDFG_SIGNATURE scale.sdfg.json PROGRAM_SIGNATURE scale.program.json)
endforeach()
add_executable(host host.c)
target_link_libraries(host PRIVATE first second)
"""

CALL_BOTH = """
#include <stdio.h>
#include "first_stub.h"
#include "second_stub.h"

int main(int argc, char **argv)
{
    double value = 1.0;
    const gts_array x = {
        .data = &value, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {1}, .strides = {1}};
    gts_program *first, *second;
    if (argc > 1 && gts_open(argv[1], &first) != 0) {
        fprintf(stderr, "%s\\n", gts_last_error(NULL)->message);
        return 1;
    }
    if (gts_open("$ORIGIN/first/first_stub.so", &first) != 0 ||
        gts_load("second_stub.so", LIBRARY, &second) != 0 ||
        first_call(first, &(struct first_args){.x = x, .factor = 2.0, .out = x}) != 0 ||
        second_call(second, &(struct second_args){.x = x, .factor = 3.0, .out = x}) != 0)
        return 2;
    gts_close(&first);
    gts_close(&second);
    printf("%g\\n", value);
    return 0;
}
"""


def test_two_stubs_of_one_sdfg(roots: dict[str, Path], sources: Path) -> None:
    (sources / "CMakeLists.txt").write_text(TWO_NAMES)
    library = sources / "libscale.so"
    (sources / "host.c").write_text(f'#define LIBRARY "{library}"\n{CALL_BOTH}')
    build = sources / "build"
    cmake("-S", sources, "-B", build, f"-Dgtstub_ROOT={roots[FROM_PACKAGE]}")
    cmake("--build", build)
    assert run(build / "host") == (0, "6\n", "")
    status, _, error = run(build / "host", library)
    assert status == 1
    assert error.startswith(
        f"Path '{library}' belongs to 2 stubs of this host, not to one; name the stub, as '{sources}/"
    )


MIXED = """
cmake_minimum_required(VERSION 3.20)
project(mixed LANGUAGES C)
find_package(gtstub REQUIRED)
set(signatures SDFG_SIGNATURE scale.sdfg.json PROGRAM_SIGNATURE scale.program.json LIBRARY libscale.so)
gtstub_add_program(inside STATIC ${signatures})
gtstub_add_program(outside ${signatures})
"""

PLUGINS = """
add_library(plugin SHARED plugin.c)
target_link_libraries(plugin PRIVATE outside)
target_compile_definitions(plugin PRIVATE RUN=run_plugin "ENTRY=\\"$<TARGET_FILE_DIR:outside>\\"")
add_library(closed SHARED plugin.c)
target_link_libraries(closed PRIVATE inside)
target_compile_definitions(closed PRIVATE RUN=run_closed "ENTRY=\\"$<TARGET_FILE_DIR:inside>\\"")
add_executable(host host.c plugin.c)
target_link_libraries(host PRIVATE plugin closed inside)
target_compile_definitions(host PRIVATE RUN=run_host "ENTRY=\\"$<TARGET_FILE_DIR:inside>\\"")
set_target_properties(host PROPERTIES ENABLE_EXPORTS ON)
"""

PLUGIN = """
#include <stdio.h>
#include "scale_stub.h"

gts_program *RUN(double *x, gts_program *program)
{
    static double out[3];
    if (program == NULL && gts_open(ENTRY, &program) != 0) {
        fprintf(stderr, "%s\\n", gts_last_error(NULL)->message);
        return NULL;
    }
    struct scale_args args = {
        .x = {.data = x, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {3}, .strides = {1}},
        .factor = 2.0,
    };
    args.out = args.x;
    args.out.data = out;
    if (scale_call(program, &args) != 0)
        puts(gts_last_error(program)->message);
    else
        printf("%g %g %g\\n", out[0], out[1], out[2]);
    return program;
}
"""

HOST = """
typedef struct gts_program gts_program;
gts_program *run_plugin(double *, gts_program *), *run_closed(double *, gts_program *),
    *run_host(double *, gts_program *);

int main(void)
{
    double x[3] = {1.0, 2.0, 3.0};
    gts_program *const program = run_host(x, 0), *const other = run_plugin(x, 0);
    if (program == 0 || other == 0 || run_closed(x, 0) == 0)
        return 1;
    run_plugin(x, program); /* refused */
    run_closed(x, other);   /* refused */
    x[0] = 2.0;
    run_plugin(x, other);
    run_host(x, program);
    return 0;
}
"""


OTHER_RUNTIME = "Program 'scale' was opened by another copy of gtstub's runtime in this process; call it there."


def write_mixed(sources: Path, more: str) -> Path:
    (sources / "CMakeLists.txt").write_text(MIXED + more)
    (sources / "plugin.c").write_text(PLUGIN)
    (sources / "host.c").write_text(HOST)
    return sources / "build"


def test_three_runtimes_in_one_process(roots: dict[str, Path], sources: Path) -> None:
    """That of the executable, that of a shared library, and libgtstub.so: each calls its own programs."""
    build = write_mixed(sources, PLUGINS)
    cmake("-S", sources, "-B", build, f"-Dgtstub_ROOT={roots[FROM_PACKAGE]}")
    cmake("--build", build)
    assert run(build / "host") == (
        0,
        f"2 4 6\n2 4 6\n2 4 6\n{OTHER_RUNTIME}\n{OTHER_RUNTIME}\n4 4 6\n4 4 6\n",
        "",
    )
    assert RUNTIME.name in needed(build / "host")
    assert RUNTIME.name not in needed(build / "libclosed.so")
    assert "run_closed" in exported(build / "libclosed.so")
    assert "run_host" in exported(build / "host")
    for file in (build / "libclosed.so", build / "host"):
        assert not {name for name in exported(file) if name.startswith(("gts_", "scale"))}


def test_host_of_both_runtimes(roots: dict[str, Path], sources: Path) -> None:
    more = "add_executable(host host.c plugin.c)\ntarget_link_libraries(host PRIVATE inside outside)\n"
    build = write_mixed(sources, more)
    printed = cmake("-S", sources, "-B", build, f"-Dgtstub_ROOT={roots[FROM_PACKAGE]}", fails=True)
    assert 'The INTERFACE_gtstub_RUNTIME property of "gtstub::gtstub' in printed


OPENER = """
#include <stdio.h>
#include "gtstub/gtstub.h"

int main(int argc, char **argv)
{
    gts_program *program;
    if (argc != 2 || gts_open(argv[1], &program) == 0)
        return 2;
    fprintf(stderr, "%s\\n", gts_last_error(NULL)->message);
    return 1;
}
"""


def test_stub_file_that_contains_a_runtime(root: Path, sources: Path) -> None:
    need("pkg-config")
    write_stub(scale.SDFG, scale.PROGRAM, sources)
    (sources / "opener.c").write_text(OPENER)
    commands = """
        set -e
        flags="$(pkg-config --static --cflags --libs gtstub-static)"
        cc -std=c11 -O2 -shared -fPIC -fvisibility=hidden scale_stub.c $flags -o scale_stub.so
        shared="$(pkg-config --cflags --libs gtstub) -Wl,-rpath,$(pkg-config --variable=libdir gtstub)"
        cc -std=c11 -O2 opener.c $shared -o opener
    """
    environment = {**ENVIRONMENT, "PKG_CONFIG_PATH": str(root / "lib" / "pkgconfig")}
    subprocess.run(["sh", "-c", commands], cwd=sources, env=environment, check=True)
    assert run(sources / "opener", sources) == (
        1,
        "",
        f"Stub '{sources}/scale_stub.so' is not linked with {RUNTIME.name}, as a stub in a file must be; link it"
        " again.\n",
    )


# --- Other ways to build and to install -------------------------------------------------------------------------------


def test_pkg_config(root: Path, sources: Path) -> None:
    need("pkg-config")
    write_stub(scale.SDFG, scale.PROGRAM, sources)
    shutil.copy(HOSTS / "host.c", sources)
    commands = """
        set -e
        cc -std=c11 -O2 -DENTRY='"$ORIGIN"' -c host.c $(pkg-config --cflags gtstub-static)
        cc -std=c11 -O2 -DGTS_LINKED=scale -c scale_stub.c $(pkg-config --cflags gtstub-static)
        cc host.o scale_stub.o $(pkg-config --static --libs gtstub-static) -o host
        ./host
    """
    environment = {**ENVIRONMENT, "PKG_CONFIG_PATH": str(root / "lib" / "pkgconfig")}
    done = subprocess.run(
        ["sh", "-c", commands], cwd=sources, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "2.5 5 7.5\n"), done.stderr
    assert "gtstub" not in needed(sources / "host")
    assert not {name for name in exported(sources / "host") if name.startswith("gts_")}


EARLY = """
#include "gtstub/gtstub.h"

struct early {
    gts_program *program;
    int status = gts_open("$ORIGIN", &program);
} early;

int main()
{
    return early.status != 0;
}
"""


def test_object_that_opens_a_program_before_main(roots: dict[str, Path], sources: Path) -> None:
    need("pkg-config")
    write_stub(scale.SDFG, scale.PROGRAM, sources)
    (sources / "early.cpp").write_text(EARLY)
    commands = """
        set -e
        cc -std=c11 -O2 -DGTS_LINKED=scale -c scale_stub.c $(pkg-config --cflags gtstub-static)
        c++ -std=c++17 early.cpp scale_stub.o $(pkg-config --static --cflags --libs gtstub-static) -o early
    """
    environment = {**ENVIRONMENT, "PKG_CONFIG_PATH": str(roots[FROM_PACKAGE] / "lib" / "pkgconfig")}
    subprocess.run(["sh", "-c", commands], cwd=sources, env=environment, check=True)
    assert run(sources / "early") == (0, "", "")


INSTALLED = """
cmake_minimum_required(VERSION 3.20)
project(model LANGUAGES C)
find_package(gtstub REQUIRED)
gtstub_add_program(scale COMMITTED STATIC
  SDFG_SIGNATURE scale.sdfg.json PROGRAM_SIGNATURE scale.program.json LIBRARY built/other_name.so)
add_executable(model host.c)
target_link_libraries(model PRIVATE scale)
target_compile_definitions(model PRIVATE ENTRY="$ORIGIN/../lib/scale")

gtstub_install_program(scale DESTINATION lib/scale)
install(TARGETS model DESTINATION bin)
"""


def test_installed_program_runs_where_it_was_moved(roots: dict[str, Path], sources: Path, tmp_path: Path) -> None:
    moved = install_and_move(INSTALLED, roots[ALONE], sources, tmp_path)
    assert {str(file.relative_to(moved)) for file in moved.rglob("*") if file.is_file()} == {
        "bin/model",
        "lib/scale/libscale.so",
    }
    assert run(moved / "bin" / "model") == (0, "2.5 5 7.5\n", "")


def test_nothing_to_install(roots: dict[str, Path], sources: Path) -> None:
    (sources / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES C)\nfind_package(gtstub REQUIRED)\n"
        "gtstub_add_program(scale SDFG_SIGNATURE scale.sdfg.json PROGRAM_SIGNATURE scale.program.json STATIC)\n"
        "gtstub_install_program(scale DESTINATION lib)\n"
    )
    printed = cmake("-S", sources, "-B", sources / "build", f"-Dgtstub_ROOT={roots[FROM_PACKAGE]}", fails=True)
    assert (
        "gtstub_install_program(scale): there is nothing to install: 'scale' is STATIC, and has no LIBRARY." in printed
    )
