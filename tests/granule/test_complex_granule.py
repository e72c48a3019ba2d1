"""A granule with complex numbers: arrays of the host and kept ones, constants and scalars. Annotations are no texts."""

import json
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
from gtstub.install import INCLUDE, LIBRARIES
from gtstub.programs.granule.library import Library
from gtstub.programs.granule.verify import read_granule
from tests.support.cli import run
from tests.support.fortran_hosts import MODULES, RUNTIME_SOURCES
from tests.support.programs import needs

pytestmark = pytest.mark.xdist_group("granule")

N = dace.symbol("N")

TURN, SCALE = 0.5 - 2j, -0.0 + 1.5j


@gtstub.program
@dace.program
def spin(a: dace.complex128[N], half: dace.complex64[N], z: dace.complex128, w: dace.complex64):
    a[:] = a * z
    half[:] = half * w


class Model:
    """`half` is kept."""

    def __init__(self) -> None:
        self.a, self.half = np.arange(4) + 1j, np.full(4, 1 - 1j, np.complex64)
        before = self.a.copy(), self.half.copy()
        with gtstub.capture() as self.step:
            spin(self.a, self.half, TURN, SCALE)
        self.a[:], self.half[:] = before

    def export(self, folder: Path) -> Path:
        granule = gtstub.Granule(
            "waves", steps={"step": self.step}, arguments={"a": self.a}, kept={"half": self.half}, scalars=["z"]
        )
        return granule.export(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Model().export(tmp_path_factory.mktemp("granule") / "waves")


def test_the_description(folder: Path) -> None:
    assert run("granule", "verify", str(folder)).exit_code == 0
    document = json.loads((folder / "granule.json").read_text(encoding="utf-8"))
    assert document["scalars"][0]["value"] == [0.5, -2.0]
    found = read_granule(folder)
    assert found.scalars[0].value == TURN
    (constant,) = (each.value for each in found.steps[0].calls[0].arguments if each.name == "w")
    assert repr(constant) == f"Constant(dtype='complex64', value={SCALE!r})"
    assert "complex128 z" in re.sub("gts_", "", (folder / "waves_granule.h").read_text(encoding="utf-8"))


def test_a_host_in_c(folder: Path, toolchain: Toolchain, tmp_path: Path) -> None:
    compiled = tmp_path / "waves.so"
    toolchain.start(folder / "waves_granule.c", compiled).wait()
    library, a = Library(compiled, read_granule(folder), folder), np.arange(4) + 1j
    expected: Any = a * TURN
    library.bind({"a": a}, {})
    library.run(read_granule(folder).steps[0])
    assert a.tolist() == expected.tolist()
    assert library.array("half").tolist() == [(1 - 1j) * SCALE] * 4
    library.close()


HOST = """\
program host
    use, intrinsic :: iso_c_binding, only: c_double_complex, c_float_complex
    use waves_granule, only: waves_t
    implicit none
    type(waves_t) :: waves
    complex(c_double_complex), target :: a(4) = [(1, 0), (0, 1), (2, -1), (-1, -1)]
    complex(c_double_complex), parameter :: z = (3.0_c_double_complex, -1.0_c_double_complex)
    complex(c_double_complex) :: before(4)
    complex(c_float_complex), pointer :: half(:)
    character(len=1000) :: folder

    call get_command_argument(1, folder)
    before = a
    call waves%open(trim(folder))
    call waves%bind(a)
    call waves%step(z)
    if (any(a /= before * z)) error stop 'a'
    call waves%step((0.0_c_double_complex, 1.0_c_double_complex))
    if (any(a /= before * z * (0, 1))) error stop 'another scalar'
    call waves%get('half', half)
    if (any(half /= (1, -1) * (0.0, 1.5)**2)) error stop 'half'
    call waves%close()
end program
"""


@needs("gfortran")
def test_a_host_in_fortran(folder: Path, tmp_path: Path) -> None:
    runtime = LIBRARIES / SONAME
    (tmp_path / "host_of_waves.f90").write_text(HOST, encoding="utf-8")
    modules = [RUNTIME_SOURCES / "fortran" / f"{module}.f90" for module in MODULES]
    flags = ("-Wall", "-Werror")
    sources = (*modules, folder / "waves_granule.f90", "host_of_waves.f90", "waves_granule.o", runtime)
    for command in (
        ("gcc", "-std=c11", "-Wconversion", *flags, "-DGTS_FORTRAN", "-I", INCLUDE, "-c", folder / "waves_granule.c"),
        ("gfortran", "-std=f2018", *flags, *sources, f"-Wl,-rpath,{runtime.parent}", "-o", "host"),
        ("./host", folder),
    ):
        done = subprocess.run(list(map(str, command)), cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@gtstub.program
@dace.program
def doubled(a: dace.float16[N]):
    a[:] = a + a


def test_float16_has_no_fortran(tmp_path: Path) -> None:
    a = np.ones(3, np.float16)
    with gtstub.capture() as step:
        doubled(a)
    with pytest.raises(GranuleError, match=r"cannot have an array of dtype 'float16', which Fortran lacks\."):
        gtstub.Granule("halves", steps={"step": step}, arguments={"a": a}).export(tmp_path / "halves")
    assert not (tmp_path / "halves").exists()
