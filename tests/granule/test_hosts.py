"""Hosts in C and Fortran run the granule 'tiny', and get what its steps do in Python, bit for bit."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from gtstub.abi import ABI, SONAME
from gtstub.install import FOLDER, INCLUDE, LIBRARIES
from gtstub.programs.granule.kept import HEAD, PLACE
from tests.support.c_hosts import ADDRESS, WARNINGS, works
from tests.support.fortran_hosts import MODULES
from tests.support.granules import Exported, Model
from tests.support.programs import needs, reason
from tests.support.runtime import RUNTIME, runtime_sources

pytestmark = pytest.mark.xdist_group("granule")

HERE = Path(__file__).parent
ENVIRONMENT = os.environ | {"ASAN_OPTIONS": "detect_leaks=1:detect_odr_violation=0", "LD_PRELOAD": ""}

BUILDS: dict[str, Sequence[str]] = {"plain": ("gcc", "-g", "-O1"), "address": ("gcc", *ADDRESS)}
"""With the installed runtime, and with one that is sanitized as well."""

KEPT = ("coefficients", "work", "history")
WRITTEN = ("u", "w", "line", "edges", "vertices", *KEPT)


# --- What Python does -------------------------------------------------------------------------------------------------


def bytes_of(model: Model, names: Sequence[str]) -> bytes:
    return b"".join(getattr(model, name).tobytes() for name in names)


def input_of(model: Model) -> bytes:
    return bytes_of(model, ("u", "w", "line", "edges", "vertices", "table"))


def swap(model: Model) -> None:
    """What exchanging the memory of `u` and `w` does to their values, as their names see it."""
    old = model.u.copy()
    model.u[...], model.w[...] = model.w, old


def run(model: Model, factor: float) -> None:
    model.run.set(factor=factor)
    model.run()


def run_all() -> bytes:
    """What the hosts do in the scenario 'run'."""
    model = Model()
    run(model, 0.5)
    model.first.set(factor=0.25)
    model.first()
    run(model, 0.25)
    written = bytes_of(model, WRITTEN)
    swap(model)
    run(model, -1.5)
    written += bytes_of(model, WRITTEN)
    swap(model)
    run(model, -1.5)
    run(model, -1.5)
    return written + bytes_of(model, WRITTEN)


def ran(times: int) -> bytes:
    model = Model()
    for _ in range(times):
        run(model, 0.5)
    return bytes_of(model, WRITTEN)


# --- C ----------------------------------------------------------------------------------------------------------------


class CHost:
    """tests/granule/host.c, linked with the granule's C file."""

    def __init__(self, folder: Path, granule: Path, command: Sequence[str], runtime: Path) -> None:
        self.host = folder / "host"
        self.granule = granule
        sources = (HERE / "host.c", granule / "tiny_granule.c")
        include = ("-I", INCLUDE, "-I", granule, "-I", HERE.parent / "c")
        link = (runtime, f"-Wl,-rpath,{runtime.parent}", "-pthread", "-ldl")
        done = subprocess.run(
            [*command, *WARNINGS, *include, *sources, *link, "-o", self.host],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def run(self, scenario: str, folder: Path, *files: Path) -> str:
        done = subprocess.run(
            [self.host, scenario, folder, *files],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module", params=BUILDS)
def host(request: pytest.FixtureRequest, tiny: Exported, tmp_path_factory: pytest.TempPathFactory) -> CHost:
    folder = tmp_path_factory.mktemp("host")
    command = BUILDS[request.param]
    if not works(command, folder):
        pytest.skip(reason("gcc"))
    runtime = LIBRARIES / SONAME
    if request.param == "address":
        runtime = folder / SONAME
        flags = (*WARNINGS, "-fPIC", "-pthread", "-shared", "-fvisibility=hidden", f"-Wl,-soname,{SONAME}")
        include = ("-I", INCLUDE, "-I", RUNTIME)
        subprocess.run([*command, *flags, *include, *runtime_sources(), "-ldl", "-lm", "-o", runtime], check=True)
    return CHost(folder, tiny.folder, command, runtime)


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("run", run_all),
        ("run_wide", run_all),
        ("two", lambda: ran(2) + ran(1) + ran(2)),
        ("again", lambda: ran(1) + ran(1)),
        ("closed", lambda: ran(1)),
        ("bad_arguments", lambda: ran(1)),
        ("readonly", lambda: ran(1)),
        ("order", lambda: ran(1)),
        ("failing_hook", lambda: b""),
        ("using_hook", lambda: ran(1)),
        ("after_fork", lambda: ran(1)),
    ],
)
def test_c_host(host: CHost, scenario: str, expected: Callable[[], bytes], tmp_path: Path) -> None:
    given, written = tmp_path / "input", tmp_path / "output"
    given.write_bytes(input_of(Model()))
    host.run(scenario, host.granule, given, written)
    assert written.read_bytes() == expected()


# --- Folders that cannot be opened ------------------------------------------------------------------------------------


def changed(folder: Path, offset: int, value: bytes) -> None:
    file = folder / "kept.bin"
    content = bytearray(file.read_bytes())
    content[offset : offset + len(value)] = value
    file.write_bytes(content)


def resized(folder: Path, change: int) -> None:
    file = folder / "kept.bin"
    content = file.read_bytes()
    file.write_bytes(content[:change] if change < 0 else content + bytes(change))


FEATURES = HEAD.size + 10 * PLACE.size
"""Where the text of the features begins, after the places of ten arrays."""


def exchange_entries(folder: Path) -> None:
    shutil.rmtree(folder / "programs" / "gather")
    shutil.copytree(folder / "programs" / "mix", folder / "programs" / "gather")


def make_fifo(folder: Path) -> None:
    (folder / "kept.bin").unlink()
    os.mkfifo(folder / "kept.bin")


OPENED = "Granule 'tiny' cannot be opened: "
FILE = f"{OPENED}the file '<folder>/kept.bin' "


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "kept.bin").unlink(), f"{FILE}cannot be opened: No such file or directory."),
        (shutil.rmtree, f"{FILE}cannot be opened: No such file or directory."),
        (make_fifo, f"{FILE}is no file with kept arrays."),
        (lambda folder: (folder / "kept.bin").write_bytes(b""), f"{FILE}is no file with kept arrays."),
        (
            lambda folder: (folder / "kept.bin").write_bytes(b"gtstub kept 1"),
            f"{FILE}does not contain kept arrays of this version of gtstub.",
        ),
        (
            lambda folder: changed(folder, 0, b"gtstub kept 2"),
            f"{FILE}does not contain kept arrays of this version of gtstub.",
        ),
        (
            lambda folder: changed(folder, 16, b"\1\2\3\4"),
            f"{FILE}was written on a machine with another order of bytes.",
        ),
        (
            lambda folder: changed(folder, HEAD.size - 64, b"0" * 64),
            f"{FILE}belongs to another granule, or to another export of it: its digest is 00000000..., and the "
            f"generated code was made for <digest>....",
        ),
        (lambda folder: resized(folder, -1), f"{FILE}has 196607 bytes, not 196608: it is incomplete."),
        (lambda folder: resized(folder, -100_000), f"{FILE}has 96608 bytes, not 196608: it is incomplete."),
        (lambda folder: resized(folder, 1), f"{FILE}has 196609 bytes, not 196608: it is incomplete."),
        (lambda folder: resized(folder, -196_000), f"{FILE}is damaged: its head has sizes that no granule has."),
        (
            lambda folder: changed(folder, 24, struct.pack("=Q", 2**63)),
            f"{FILE}is damaged: its head has sizes that no granule has.",
        ),
        (
            lambda folder: changed(folder, 20, struct.pack("=I", 11)),
            f"{FILE}is damaged: its head has sizes that no granule has.",
        ),
        (
            lambda folder: changed(folder, HEAD.size + 9 * PLACE.size, struct.pack("=QQ", 2, 2**40)),
            f"{FILE}is damaged: array 'history' has no place in it.",
        ),
        (
            lambda folder: changed(folder, HEAD.size + 9 * PLACE.size, struct.pack("=QQ", 2, 0x10000 - 8)),
            f"{FILE}is damaged: array 'history' has no place in it.",
        ),
        (
            lambda folder: changed(folder, HEAD.size + 9 * PLACE.size, struct.pack("=QQ", 1, 0)),
            f"{FILE}is damaged: array 'history' has no place in it.",
        ),
        (
            lambda folder: changed(folder, HEAD.size + 9 * PLACE.size, struct.pack("=QQ", 9, 0)),
            f"{FILE}is damaged: array 'history' has no place in it.",
        ),
        (
            lambda folder: changed(folder, FEATURES, b"a_feature_of_no_cpu\0"),
            f"{FILE}comes with programs that were built for a CPU with 'a_feature_of_no_cpu', which this one lacks.",
        ),
        (
            lambda folder: shutil.rmtree(folder / "programs" / "gather"),
            f"{OPENED}Cannot open '<folder>/programs/gather': No such file or directory.",
        ),
        (
            exchange_entries,
            f"{OPENED}'<folder>/programs/gather' is not the program 'mix' that it was made of: their "
            "signatures differ.",
        ),
    ],
)
def test_a_folder_that_cannot_be_opened(
    host: CHost, damage: Callable[[Path], object], message: str, folder: Path
) -> None:
    digest = (folder / "kept.bin").read_bytes()[HEAD.size - 64 : HEAD.size - 56].decode()
    damage(folder)
    found = host.run("open", folder).replace(str(folder), "<folder>").replace(digest, "<digest>")
    assert found.strip() == message


def test_a_path_that_is_too_long(host: CHost) -> None:
    assert host.run("open", Path("/" + "a" * 5000)).startswith("Path '/aaaa")


# --- The generated C file ---------------------------------------------------------------------------------------------


@needs("gcc")
def test_code_of_another_version_of_the_binary_interface(tiny: Exported, tmp_path: Path) -> None:
    text = (tiny.folder / "tiny_granule.c").read_text(encoding="utf-8")
    shutil.copy(tiny.folder / "tiny_granule.h", tmp_path)
    file = tmp_path / "tiny_granule.c"
    file.write_text(text.replace(".abi = GTS_ABI", ".abi = 1"), encoding="utf-8")
    host = CHost(tmp_path, tmp_path, BUILDS["plain"], LIBRARIES / SONAME)
    assert host.run("open", tiny.folder) == (
        f"Granule 'tiny' was compiled for version 1 of the binary interface, and this runtime has {ABI}: compile it "
        f"again.\n"
    )
    file.write_text(text.replace(f"#if GTS_ABI != {ABI}", f"#if GTS_ABI != {ABI + 1}"), encoding="utf-8")
    done = subprocess.run(["gcc", "-fsyntax-only", "-I", INCLUDE, file], capture_output=True, text=True, check=False)
    assert (
        "This granule was generated for another version of gtstub's binary interface: export it again." in done.stderr
    )


# --- Fortran ----------------------------------------------------------------------------------------------------------


MODULE_FILES = [FOLDER / "fortran" / f"{module}.f90" for module in MODULES]


def build_fortran_host(tiny: Exported, folder: Path, *flags_of_c: str | Path) -> Path:
    sources = (*MODULE_FILES, tiny.folder / "tiny_granule.f90", HERE / "host.f90")
    return build_fortran(tiny, folder, sources, *flags_of_c)


def build_fortran(tiny: Exported, folder: Path, sources: Sequence[str | Path], *flags_of_c: str | Path) -> Path:
    flags = ("-g", "-O1", "-Wall", "-Wextra", "-Werror")
    code = tiny.folder / "tiny_granule.c"
    runtime = LIBRARIES / SONAME
    for command in (
        ("gcc", *WARNINGS, *flags, "-DGTS_FORTRAN", "-I", INCLUDE, *flags_of_c, "-c", code, "-o", "tiny_granule.o"),
        (
            *("gfortran", "-std=f2018", "-fcheck=all", *flags, *sources),
            *("tiny_granule.o", runtime, f"-Wl,-rpath,{runtime.parent}", "-o", "host"),
        ),
    ):
        done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return folder / "host"


@pytest.fixture(scope="module")
def fortran_host(tiny: Exported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fortran_host(tiny, tmp_path_factory.mktemp("fortran"))


def run_fortran(host: Path, scenario: str, folder: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    command = [host, scenario, folder, *files]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@needs("gfortran")
@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("run", run_all),
        ("again", lambda: ran(1) + ran(1)),
        ("refusals", lambda: ran(1)),
        ("hooks", lambda: ran(1)),
        ("closed", lambda: ran(1)),
    ],
)
def test_fortran_host(
    fortran_host: Path, tiny: Exported, scenario: str, expected: Callable[[], bytes], tmp_path: Path
) -> None:
    given, written = tmp_path / "input", tmp_path / "output"
    model = Model()
    given.write_bytes(
        b"".join(
            np.asfortranarray(array).T.tobytes()
            for array in (model.u, model.w, model.line, model.edges, model.vertices, model.table + 1)
        )
    )
    done = run_fortran(fortran_host, scenario, tiny.folder, given, written)
    assert done.returncode == 0, done.stdout + done.stderr
    assert written.read_bytes() == expected()


USER = """
subroutine user(granule, hook)
    use, intrinsic :: iso_c_binding
    use tiny_granule
    type(tiny_t) :: granule
    type(c_funptr) :: hook
    real(c_double), target :: u(4, 5), w(4, 5), line(7), edges(6, 5), vertices(4, 5)
    real(c_double) :: plain(4, 5)
    integer(c_int32_t), target :: v2e(4, 2)
    call granule%%bind(%s, hook, 1)
end subroutine
"""

GOOD = "u, w, line, edges, vertices, v2e"


@needs("gfortran")
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("u,", "plain,"),  # written
        ("u,", "(u),"),
        ("edges", "2 * edges"),  # not written
        ("edges", "(edges)"),
        ("v2e", "v2e + 1"),
    ],
)
def test_the_compiler_refuses_to_bind_what_has_no_address(
    right: str, wrong: str, tiny: Exported, tmp_path: Path
) -> None:
    errors = []
    for arguments in (GOOD, GOOD.replace(right, wrong, 1)):
        (tmp_path / "user.f90").write_text(USER % arguments, encoding="utf-8")
        sources = (*MODULE_FILES, tiny.folder / "tiny_granule.f90", "user.f90")
        command = list(map(str, ("gfortran", "-std=f2018", "-fsyntax-only", *sources)))
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        errors.append(done.stderr)
    assert errors[0] == ""
    assert "must be a pointer" in errors[1]


@needs("gfortran")
def test_an_error_that_nobody_asks_for_stops_the_fortran_host(fortran_host: Path, tmp_path: Path) -> None:
    done = run_fortran(fortran_host, "stops", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("ERROR STOP ")
    assert f"the file '{tmp_path}/kept.bin' cannot be opened: No such file or directory." in done.stderr


@needs("gfortran")
def test_a_granule_for_another_fortran_compiler_is_refused(tiny: Exported, tmp_path: Path) -> None:
    layouts = HERE.parent / "fortran" / "layouts"
    host = build_fortran_host(tiny, tmp_path, "-I", layouts, "-DLAYOUT=FLANG_19")
    (tmp_path / "input").write_bytes(input_of(Model()))
    done = run_fortran(host, "run", tiny.folder, tmp_path / "input", tmp_path / "output")
    assert done.stderr.startswith(
        "ERROR STOP Argument 'u' of granule 'tiny' has the descriptor of another Fortran compiler: compile the "
        "granule with the ISO_Fortran_binding.h of the host's compiler.\n"
    )
    assert (tmp_path / "output").read_bytes() == b""
    done = run_fortran(host, "looks", tiny.folder)
    assert done.stderr.startswith("ERROR STOP Array 'coefficients' of granule 'tiny' has the descriptor of another ")


@needs("gfortran")
def test_a_fortran_host_without_the_module_is_refused(tiny: Exported, tmp_path: Path) -> None:
    """Also an array of 7 axes, of which no more than GTS_MAX_RANK have room: an index beyond them would be a trap."""
    trap = ("-fsanitize=bounds", "-fsanitize-undefined-trap-on-error")
    host = build_fortran(tiny, tmp_path, ["-fpack-derived", HERE / "untyped.f90"], *trap)
    done = subprocess.run([host, tiny.folder], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
