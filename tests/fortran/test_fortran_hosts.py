"""Fortran hosts: programs in Fortran call generated stubs over recording libraries and look at what arrives."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from gtstub.stub.signature.dtypes import STATIC_DTYPES
from gtstub.stub.signature.model import Axis, Dimension, ProgramSignature, SdfgSignature, Shapes
from gtstub.tools.recorded.archive import archives
from tests.support import reaching, target
from tests.support.calling_programs import CALLING, CallingProgram
from tests.support.complex_programs import WAVES
from tests.support.fortran_hosts import Build, run, works
from tests.support.programs import needs, reason
from tests.support.signatures import (
    GATHER_PROGRAM,
    GATHER_SDFG,
    WHOLE_PROGRAM,
    WHOLE_SDFG,
    K,
    array,
    field,
    program,
    requirement,
    scalar,
    sdfg,
    symbol,
)
from tests.support.timelines import Timeline

HERE = Path(__file__).parent

pytestmark = needs("gfortran")

# gfortran makes a descriptor of what is not allocated, too, and multiplies bounds that have no value for it.
OVERFLOW = "-fno-sanitize=signed-integer-overflow"
ADDRESS = (
    "-fsanitize=address,undefined",
    OVERFLOW,
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-g",
    "-O0",
)
PLAIN = ("-g", "-O2")
BUILDS = {"plain": PLAIN, "address": ADDRESS}

DIMS = [Dimension(f"D{i}", "horizontal") for i in range(6)]


def _ranks() -> tuple[SdfgSignature, ProgramSignature]:
    """Fields of one to six dimensions; first their data, then for each of them all sizes and all strides."""
    names = "abcdef"
    symbols = [
        symbol(f"__{name}_{property_}_{axis}", (name, axis, property_))
        for i, name in enumerate(names)
        for property_ in ("size", "stride")
        for axis in range(i + 1)
    ]
    arrays = [array(name, *[Axis()] * (i + 1)) for i, name in enumerate(names)]
    fields = {name: field(*DIMS[: i + 1]) for i, name in enumerate(names)}
    return sdfg(*arrays, *symbols, name="ranks"), program("ranks", **fields)


def _types() -> tuple[SdfgSignature, ProgramSignature]:
    """A field and a scalar of every type but the complex ones."""
    dtypes = STATIC_DTYPES
    arrays = [array(f"a_{dtype}", Axis(stride=1), dtype=dtype) for dtype in sorted(dtypes)]
    scalars = [symbol(f"s_{dtype}", dtype=dtype) for dtype in sorted(dtypes)]
    parameters = {f"a_{dtype}": field(K, dtype=dtype) for dtype in dtypes}
    parameters |= {f"s_{dtype}": scalar(dtype) for dtype in dtypes}
    return sdfg(*arrays, *scalars, name="types"), program("types", **parameters)


def _shapes() -> tuple[SdfgSignature, ProgramSignature]:
    """A program of DaCe itself, whose sizes and strides are polynomials, with a symbol of 64 bits."""
    unit = Axis(start=0, stride=1)
    arguments = [array(name, unit) for name in ("a", "edges", "table", "wide")]
    arguments.append(array("columns", unit, Axis(start=0), access="write"))
    symbols = symbol("L", ("wide", 0, "size"), dtype="int64"), symbol("M"), symbol("N", ("a", 0, "size"))
    shapes = Shapes(
        symbols=(),
        requirements=(
            requirement("edges", 0, "size", "N + 1"),
            requirement("table", 0, "size", "M*N"),
            requirement("columns", 1, "stride", "2*N"),
        ),
    )
    fields = {each.name: field(*DIMS[: len(each.axes)]) for each in arguments}
    signature = sdfg(*sorted(arguments, key=lambda each: each.name), *symbols, name="shapes")
    return dataclasses.replace(signature, shapes=shapes), program("shapes", **fields, M=scalar("int32"))


PROGRAMS = {
    "whole": (WHOLE_SDFG, WHOLE_PROGRAM),
    "gather": (GATHER_SDFG, GATHER_PROGRAM),
    "ranks": _ranks(),
    "types": _types(),
    "shapes": _shapes(),
    "calling": (CALLING.sdfg, CALLING.program),
    "waves": (WAVES.sdfg, WAVES.program),
    "reach": (reaching.SDFG, reaching.PROGRAM),
}


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Build]:
    """Builds by program and flags, as far as they have been asked for."""
    return {}


@pytest.fixture
def build_of(
    builds: dict[tuple[str, str], Build], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], Build]:
    def build(name: str, flags: str) -> Build:
        if (name, flags) not in builds:
            if flags == "address" and not target.IS_NATIVE:
                pytest.skip(target.ONLY_HERE)
            folder = tmp_path_factory.mktemp(f"{name}-{flags}")
            if not works(BUILDS[flags], folder):
                pytest.skip(reason(f"gfortran {BUILDS[flags][0]}"))
            builds[name, flags] = Build(*PROGRAMS[name], folder, BUILDS[flags])
        return builds[name, flags]

    return build


WHOLE = (HERE / "harness.f90", HERE / "whole_arguments.f90")


@pytest.mark.parametrize("flags", BUILDS)
@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("whole", "arrives"),
        ("whole", "bound"),
        ("whole", "checks"),
        ("whole", "refusals"),
        ("whole", "threads"),
        ("whole", "untyped"),
        ("gather", "changed_tables"),
        ("ranks", "ranks"),
        ("types", "types"),
        ("shapes", "shapes"),
    ],
)
def test_host(name: str, host: str, flags: str, build_of: Callable[[str, str], Build]) -> None:
    shared = WHOLE if name == "whole" and host != "untyped" else WHOLE[:1]
    done = run(build_of(name, flags).host(*shared, HERE / f"{host}.f90"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_traces_count_as_fortran_does(build_of: Callable[[str, str], Build]) -> None:
    """`vn` has the lower bounds -1 and 0 then, and no element (6, 4)."""
    done = run(build_of("whole", "plain").host(*WHOLE, HERE / "checks.f90"))
    (out,) = (line for line in done.stderr.splitlines() if "after: argument 'out[1]' is 7 at" in line)
    assert out.endswith("argument 'out[1]' is 7 at out[1](6,4).")
    assert "Argument 'vn' of program 'whole' has no element at vn(6,4) for check 'trace 6,4'.\n" in done.stderr


@pytest.mark.parametrize("flags", BUILDS)
def test_guarded_calls(flags: str, build_of: Callable[[str, str], Build]) -> None:
    build = build_of("reach", flags)
    reaching.reach_library(build.folder)
    done = run(build.host(HERE / "guarded.f90"), *target.VERBS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("flags", BUILDS)
@pytest.mark.parametrize(("program", "host"), [(CALLING, "callbacks"), (WAVES, "waves")])
def test_callbacks(program: CallingProgram, host: str, flags: str, build_of: Callable[[str, str], Build]) -> None:
    build = build_of(program.sdfg.name, flags)
    (build.folder / "calling.c").write_text(program.source, encoding="utf-8")
    build.c(program.sdfg.library, "calling.c", "-shared", "-fopenmp")
    done = run(build.host(HERE / f"{host}.f90"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("flags", BUILDS)
def test_fortran_and_c_call_one_program_in_turn(flags: str, build_of: Callable[[str, str], Build]) -> None:
    build = build_of("whole", flags)
    build.c("call_from_c.o", "-c", HERE / "both.c", "-I", ".", "-I", HERE.parent / "c")
    done = run(build.host(*WHOLE, build.folder / "call_from_c.o", HERE / "both.f90"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_calls_from_fortran_are_recorded(
    build_of: Callable[[str, str], Build], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GTSTUB_RECORD", str(tmp_path))
    done = run(build_of("whole", "plain").host(*WHOLE, HERE / "arrives.f90"))
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = archives(tmp_path)
    first, second = archive.calls[:2]
    values = {value.leaf.name: archive.load(first, value, "before") for value in first.values}
    assert (values["x_1_0"], values["x_1_1"], values["flag"]) == (-3, 0.5, True)
    assert not values["gt_conn_E2V"].any()  # the table is of ones, and begins at 1
    vn, out = (value for value in second.values if value.leaf.name in ("vn", "out_0"))
    assert (vn.memory, vn.shape, vn.strides, out.strides) == (out.memory, (6, 4), (1, -18), (1, 18))


def test_calls_from_fortran_are_in_the_timeline(
    build_of: Callable[[str, str], Build], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GTSTUB_TRACE", str(tmp_path / "trace.json"))
    done = run(build_of("whole", "plain").host(*WHOLE, HERE / "arrives.f90"))
    assert done.returncode == 0, done.stdout + done.stderr
    calls = Timeline.read(tmp_path / "trace.json").named("call", "whole")
    assert len(calls) >= 2
    assert {(span.process, span.track) for span in calls} == {("arrives", "main thread")}


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("open", "./nowhere_stub.so"),
        ("origin", "Program 'whole' has no field 'nothing'; it has 'vn', 'x[0]', 'out[0]', 'out[1]'."),
        ("call", "Argument 'vn' of program 'whole' must be allocated or associated."),
        ("closed", "Program 'whole' is not open: it was closed, or never opened."),
    ],
)
def test_an_error_that_nobody_asks_for_stops_the_host(
    what: str, text: str, build_of: Callable[[str, str], Build]
) -> None:
    host = build_of("whole", "plain").host(*WHOLE, HERE / "stops.f90")
    done = run(host, what)
    assert (done.returncode, done.stdout) == (1, "before\n")
    assert done.stderr.startswith("ERROR STOP ")
    assert text in done.stderr
    assert run(host, "nothing").stdout == "before\nafter\n"


# --- What the module does not let pass --------------------------------------------------------------------------------

USER = """
subroutine user()
    use, intrinsic :: iso_c_binding
    use gtstub
    use whole_stub
    type(gts_program) :: program
    real(c_double) :: vn(6, 4), x_0(4), out(6, 4)
    real(c_float) :: single(6, 4)
    integer(c_int32_t) :: table(6, 2)
    integer(c_int64_t) :: wide(6, 2)
    logical(c_bool) :: flag
    call whole(%s)
end subroutine
"""

GOOD = "program, vn, x_0, 1, 1.0, flag, out, out, table"


@pytest.mark.parametrize(
    ("right", "wrong", "text"),
    [
        ("vn,", "single,", "Type mismatch"),
        ("table", "wide", "Type mismatch"),
        ("flag", ".true.", "Type mismatch"),
        ("1.0", "1.0d0", "Type mismatch"),
        ("vn,", "x_0,", "Rank mismatch"),
        ("x_0", "x_0(1)", "Rank mismatch"),
        (", table", "", "Missing actual argument"),
        ("out, out", "out, (out)", "INTENT"),
        ("program", "program%handle", "Type mismatch"),
    ],
)
def test_the_compiler_refuses(right: str, wrong: str, text: str, build_of: Callable[[str, str], Build]) -> None:
    build = build_of("whole", "plain")
    assert build.compiles(USER % GOOD) == ""
    assert text in build.compiles(USER % GOOD.replace(right, wrong, 1))


BINDER = """
subroutine user(taken, given)
    use, intrinsic :: iso_c_binding
    use gtstub
    use whole_stub
    type :: state
        real(c_double), allocatable :: vn(:, :)
        real(c_double), pointer :: shared(:, :)
    end type
    type(gts_program) :: program
    type(gts_bound_call) :: call
    type(state), target :: known
    type(state) :: local
    real(c_double), target :: taken(:, :)
    real(c_double), intent(in), target :: given(:, :)
    real(c_double), target :: vn(6, 4), wide(6, 8), x_0(4), out(6, 4)
    real(c_double), allocatable, target :: allocated(:, :)
    real(c_double), pointer :: pointer(:, :)
    real(c_double) :: plain(6, 4)
    real(c_float), target :: single(6, 4)
    integer(c_int32_t), target :: table(6, 2)
    integer(c_int32_t) :: plain_table(6, 2)
    logical(c_bool) :: flag
    call whole_bind(program, %s, x_0, 1, 1.0, flag, out, %s, %s, call)
end subroutine
"""


@pytest.mark.parametrize(
    "array",
    [
        "vn",
        "vn(6:1:-1,:)",
        "wide(:,::2)",
        "allocated",
        "pointer",
        "pointer(:,2:)",
        "known%vn",
        "known%shared",
        "local%shared",
        "taken",
        "given",
    ],
)
def test_what_can_be_bound(array: str, build_of: Callable[[str, str], Build]) -> None:
    assert build_of("whole", "plain").compiles(BINDER % (array, array, "table")) == ""


@pytest.mark.parametrize(
    ("array", "text"),
    [
        ("plain", "must be a pointer"),
        ("local%vn", "must be a pointer"),
        ("(vn)", "must be a pointer"),
        ("2 * vn", "must be a pointer"),
        ("reshape(x_0, [2, 2])", "must be a pointer"),
        ("single", "Type mismatch"),
        ("x_0", "Rank mismatch"),
    ],
)
def test_the_compiler_refuses_to_bind(array: str, text: str, build_of: Callable[[str, str], Build]) -> None:
    """What has no address that can be kept, whether the program reads or writes it."""
    build = build_of("whole", "plain")
    assert text in build.compiles(BINDER % (array, "out", "table"))
    assert text in build.compiles(BINDER % ("vn", array, "table"))


def test_the_compiler_refuses_to_bind_a_table_without_an_address(build_of: Callable[[str, str], Build]) -> None:
    assert "must be a pointer" in build_of("whole", "plain").compiles(BINDER % ("vn", "out", "plain_table"))
