"""The scalars that hosts pass to a granule: sizes, and logicals of Fortran. Annotations are no texts."""

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from gtstub.abi import SONAME
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.errors import GranuleError
from gtstub.frameworks.gt4py.backend import make_backend
from gtstub.install import INCLUDE, LIBRARIES
from gtstub.programs.granule.library import Library
from gtstub.programs.granule.verify import read_granule
from tests.support.fortran_hosts import MODULES, RUNTIME_SOURCES
from tests.support.granules import field
from tests.support.programs import needs
from tests.support.small_programs import I, K, explicit_domain, vertical_shift

pytestmark = pytest.mark.xdist_group("granule")

N = dace.symbol("N")
ROWS, LEVELS = 4, 5


@gtstub.program
@dace.program
def count(x: dace.float64[N], flag: dace.bool):
    x[:] = x + flag


class Sized:
    """`i_end` and `k_end` are sizes, and `flag` is added to `x`."""

    def __init__(self) -> None:
        self.a = np.arange(ROWS * LEVELS, dtype=np.float64).reshape(ROWS, LEVELS) ** 2
        self.out, self.x = np.zeros((ROWS, LEVELS)), np.zeros(ROWS)
        with gtstub.capture() as step:
            vertical_shift.with_backend(make_backend(gpu=False))(
                field(self.a, I, K), field(self.out, I, K), k_end=LEVELS - 1, i_end=ROWS, offset_provider={}
            )
            count(self.x, True)
        self.out[...] = self.x[...] = 0
        self.granule = gtstub.Granule(
            "sized", steps={"step": step}, arguments=self.arrays, scalars=["k_end", "i_end", "flag"]
        )

    @property
    def arrays(self) -> dict[str, Any]:
        return {"a": self.a, "shifted": self.out, "x": self.x}


class Below:
    """Rows begin at -2, so that `i_end` may be negative."""

    def __init__(self) -> None:
        self.a, self.out = np.ones((ROWS, LEVELS)), np.zeros((ROWS, LEVELS))
        a, out = field(self.a, I, K, start=-2), field(self.out, I, K, start=-2)
        with gtstub.capture() as step:
            explicit_domain.with_backend(make_backend(gpu=False))(
                a, a, out, i_start=-2, i_end=1, k_start=0, k_end=LEVELS, offset_provider={}
            )
        self.out[...] = 0
        self.granule = gtstub.Granule("below", steps={"step": step}, arguments=self.arrays, scalars=["i_end", "k_end"])

    @property
    def arrays(self) -> dict[str, Any]:
        return {"a": self.a, "average": self.out}


class Ranges:
    """Two steps with the scalars `i_start` and `i_end`. The arrays of `short` have fewer rows."""

    def __init__(self) -> None:
        self.a, self.long, self.short = np.ones((ROWS, LEVELS)), np.zeros((ROWS, LEVELS)), np.zeros((ROWS - 1, LEVELS))
        steps = {}
        for name, out in (("long", self.long), ("short", self.short)):
            a, rows = field(self.a[: len(out)], I, K), {"i_start": 0, "i_end": 2}
            with gtstub.capture() as steps[name]:
                explicit_domain.with_backend(make_backend(gpu=False))(
                    a, a, field(out, I, K), **rows, k_start=0, k_end=LEVELS, offset_provider={}
                )
            out[...] = 0
        self.granule = gtstub.Granule("ranges", steps=steps, arguments=self.arrays, scalars=["i_start", "i_end"])

    @property
    def arrays(self) -> dict[str, Any]:
        return {"a": self.a, "all_rows": self.long, "some_rows": self.short}


@pytest.fixture(scope="module")
def ranges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Ranges().granule.export(tmp_path_factory.mktemp("granule") / "ranges")


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Sized().granule.export(tmp_path_factory.mktemp("granule") / "sized")


@pytest.fixture(scope="module")
def below(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Below().granule.export(tmp_path_factory.mktemp("granule") / "below")


class Host:
    """A C host of a granule."""

    def __init__(self, folder: Path, arrays: dict[str, Any], toolchain: Toolchain, build: Path) -> None:
        name = folder.name
        toolchain.start(folder / f"{name}_granule.c", build / f"{name}.so").wait()
        self.library = Library(build / f"{name}.so", read_granule(folder), folder)
        self.library.bind(arrays, {})

    def step(self, *scalars: Any, name: str = "step") -> None:
        self.library._check(self.library._function(name)(self.library._handle, *scalars))


def test_which_scalars_are_sizes(sized: Path, below: Path) -> None:
    found = {(each.argument, each.least) for folder in (sized, below) for each in read_granule(folder).scalars}
    assert found == {("i_end", 0), ("k_end", 0), ("flag", None), ("i_end", None)}


REFUSED = "Scalar '{}' of granule 'sized' is a size, and must not be negative: it is {}."


def test_a_negative_size_is_refused(sized: Path, toolchain: Toolchain, tmp_path: Path) -> None:
    model = Sized()
    host = Host(sized, model.arrays, toolchain, tmp_path)
    flag = ctypes.c_bool(True)
    for rows, levels, name, value in ((-1, 2, "i_end", -1), (3, -(2**31), "k_end", -(2**31))):
        with pytest.raises(GranuleError, match=re.escape(REFUSED.format(name, value))):
            host.step(ctypes.c_int32(levels), ctypes.c_int32(rows), flag)
        assert not model.out.any()
        assert not model.x.any()
    with pytest.raises(GranuleError, match="must have the indices 0 to 2147483646 on axis 0"):
        host.step(ctypes.c_int32(2), ctypes.c_int32(2**31 - 1), flag)
    host.step(ctypes.c_int32(2), ctypes.c_int32(0), flag)  # no rows
    assert not model.out.any()
    host.step(ctypes.c_int32(2), ctypes.c_int32(3), flag)
    assert model.x.tolist() == [2] * ROWS
    assert model.out[:3, :2].tolist() == (model.a[:3, 1:3] - model.a[:3, :2]).tolist()
    assert np.count_nonzero(model.out) == 6
    host.library.close()


def test_an_end_below_zero_of_rows_that_begin_there(below: Path, toolchain: Toolchain, tmp_path: Path) -> None:
    model = Below()
    host = Host(below, model.arrays, toolchain, tmp_path)
    host.step(ctypes.c_int32(-1), ctypes.c_int32(LEVELS))
    assert model.out.tolist() == [[1] * LEVELS] + [[0] * LEVELS] * 3
    host.library.close()


def test_the_scalars_of_a_run_are_set_at_once(ranges: Path, toolchain: Toolchain, tmp_path: Path) -> None:
    def run(name: str, start: int, end: int) -> list[float]:
        model.long[...] = model.short[...] = 0
        host.step(ctypes.c_int32(start), ctypes.c_int32(end), name=name)
        return [float(row[0]) for row in (model.long, model.short)[name == "short"]]

    model = Ranges()
    host = Host(ranges, model.arrays, toolchain, tmp_path)
    assert run("long", 0, 2) == [1, 1, 0, 0]
    assert run("long", 3, ROWS) == [0, 0, 0, 1]  # 3 alone is behind the end, and 4 alone behind the arrays of `short`
    assert run("short", 1, 3) == [0, 1, 1]
    with pytest.raises(GranuleError, match=r"Step .ranges_short. cannot be changed at position 1, program"):
        run("short", 2, ROWS)
    assert not model.short.any()
    with pytest.raises(GranuleError, match="Nothing has changed"):
        run("short", 2, ROWS)
    host.library.bind(model.arrays, {})  # with the scalars of the runs before
    assert run("long", 3, ROWS) == [0, 0, 0, 1]
    assert run("short", 1, 3) == [0, 1, 1]
    assert run("long", 2, 3) == [0, 0, 1, 0]
    assert run("short", 2, 3) == [0, 0, 1]
    host.library.close()


HOST = """\
program host
    use, intrinsic :: iso_c_binding, only: c_double, c_int8_t, c_int32_t
    use sized_granule, only: sized_t
    implicit none
    type(sized_t) :: sized
    real(c_double), target :: a(4, 5), shifted(4, 5), x(4)
    integer(c_int8_t), parameter :: bytes(5) = [integer(c_int8_t) :: 1, 0, -1, 2, -128]
    integer :: i, stat
    character(len=1000) :: folder, errmsg

    call get_command_argument(1, folder)
    a = 1
    x = 0
    call sized%open(trim(folder))
    call sized%bind(a, shifted, x)
    do i = 1, size(bytes)
        call sized%step(4_c_int32_t, 4_c_int32_t, bytes(i))
        print '(4f6.1)', x
    end do
    call sized%step(4_c_int32_t, -4_c_int32_t, bytes(1), stat, errmsg)
    print '(a)', trim(errmsg)
    call sized%close()
end program
"""


@needs("gfortran")
def test_any_bit_of_a_logical_is_true(sized: Path, tmp_path: Path) -> None:
    """Compilers differ in the bytes that they pass for true. Here integers take the place of logicals."""
    module = (sized / "sized_granule.f90").read_text(encoding="utf-8")
    module = module.replace("logical(c_bool)", "integer(c_int8_t)").replace("c_bool", "c_int8_t")
    (tmp_path / "sized_granule.f90").write_text(module, encoding="utf-8")
    (tmp_path / "host.f90").write_text(HOST, encoding="utf-8")
    modules = [RUNTIME_SOURCES / "fortran" / f"{module}.f90" for module in MODULES]
    flags = ("-Wall", "-Wextra", "-Werror", "-O1")
    c = ("gcc", "-std=c11", "-Wconversion", *flags, "-DGTS_FORTRAN", "-I", INCLUDE, "-c", sized / "sized_granule.c")
    fortran = ("gfortran", "-std=f2018", *flags, *modules, "sized_granule.f90", "host.f90", "sized_granule.o")
    link = ("-L", LIBRARIES, f"-l:{SONAME}", f"-Wl,-rpath,{LIBRARIES}", "-o", "host")
    for command in (c, (*fortran, *link), ("./host", sized)):
        done = subprocess.run(list(map(str, command)), cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    sums = [f"{value:6.1f}" * ROWS for value in (1, 1, 2, 3, 4)]
    assert done.stdout.splitlines() == [*sums, REFUSED.format("i_end", -4)]
