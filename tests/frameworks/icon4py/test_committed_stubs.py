"""The tool behind `make generated` and `make check-generated`: what is out of date is noticed, down to one byte."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from examples.icon4py import committed
from examples.icon4py.committed import HERE, LONGEST_PATH, Stub, problems, stubs, update
from gtstub.install import FOLDER, INCLUDE
from tests.support.checkout import ROOT
from tests.support.fortran_hosts import MODULES
from tests.support.programs import needs

PROGRAMS = """
[[program]]
source = "icon4py.model.atmosphere.diffusion.diffusion_utils:copy_field"

[[program]]
source = "icon4py.model.atmosphere.diffusion.diffusion_utils:setup_fields_for_initial_step"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder like examples/icon4py, with two of its small programs."""
    for name in ("copy_field", "setup_fields_for_initial_step"):
        shutil.copytree(HERE / name, tmp_path / name)
    (tmp_path / "programs.toml").write_text(PROGRAMS)
    update(found(tmp_path), tmp_path, processes=1, everything=False)
    return tmp_path


def found(root: Path) -> list[Stub]:
    return stubs(root / "programs.toml", root)


def told(root: Path) -> list[str]:
    return list(problems(found(root), root))


def test_committed_files_need_no_update(root: Path) -> None:
    assert told(root) == []
    for name in ("copy_field", "setup_fields_for_initial_step"):
        committed_files = {file.name: file.read_bytes() for file in (HERE / name).iterdir()}
        assert {file.name: file.read_bytes() for file in (root / name).iterdir()} == committed_files


def test_committed_stubs_compile_without_a_warning() -> None:
    sources = sorted(HERE.glob("*/*_stub.c"))
    assert len(sources) == len(stubs(HERE / "programs.toml", HERE))
    flags = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only", "-I", str(INCLUDE))
    subprocess.run(["cc", *flags, *sources], check=True)


@needs("gfortran")
def test_committed_modules_compile(tmp_path: Path) -> None:
    modules = sorted(HERE.glob("*/*_stub.f90"))
    assert len(modules) == len(stubs(HERE / "programs.toml", HERE))
    flags = ("-std=f2018", "-Wall", "-Werror", "-fsyntax-only")
    gtstub = [FOLDER / "fortran" / f"{module}.f90" for module in MODULES]
    subprocess.run(["gfortran", *flags, *gtstub, *modules], cwd=tmp_path, check=True)


def test_no_committed_line_or_path_is_longer_than_120_characters() -> None:
    files = [file for pattern in ("*.c", "*.h", "*.f90") for file in HERE.glob(f"*/{pattern}")]
    assert files
    for file in files:
        assert len(str(file.relative_to(ROOT))) <= LONGEST_PATH
        assert max(map(len, file.read_text(encoding="utf-8").splitlines())) <= 120, file


def test_long_path_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed, "LONGEST_PATH", 40)
    path = "examples/icon4py/copy_field/copy_field_stub.c"
    assert f"The path '{path}' is longer than 40 characters: give its program a short name." in told(root)


def test_every_byte_counts(root: Path) -> None:
    files = [file for file in root.glob("**/*") if file.is_file() and file.name != "programs.toml"]
    assert {".h", ".c", ".json", ".md"} <= {file.suffix for file in files}
    for file in files:
        content = file.read_bytes()
        where = file.name if file.parent == root else file.parent.name
        for changed in (content.replace(b"\n", b" \n", 1), content[:-1], content.replace(b"f", b"g", 1)):
            file.write_bytes(changed)
            assert any(where in problem for problem in told(root)), file
        file.unlink()
        assert any(where in problem for problem in told(root)), file
        file.write_bytes(content)
    assert told(root) == []


def test_other_source_is_named(root: Path) -> None:
    file = root / "copy_field" / "source.json"
    source = json.loads(file.read_text())
    now = source["program"]["source"]["_identity_c_k"]
    source["program"]["source"]["_identity_c_k"] = "0" * 64
    file.write_text(json.dumps(source, indent=1, sort_keys=True) + "\n")
    assert told(root) == [
        f"Program 'copy_field' of icon4py has changed: 'program.source._identity_c_k' is \"{now}\", but was"
        f" \"{'0' * 64}\". To lower it again, run 'make generated', and read the difference as a reviewer would."
    ]


def test_folder_of_no_program(root: Path) -> None:
    (root / "copy_field").rename(root / "copied_field")
    missing, *others = told(root)
    assert missing.startswith(f"'copy_field' lacks signatures in '{root / 'copy_field'}'")
    assert f"'{root / 'copied_field' / 'sdfg.json'}' belongs to no program of 'programs.toml'" in "".join(others)


def test_file_that_nothing_makes(root: Path) -> None:
    file = root / "copy_field" / "copy_field_old_stub.c"
    file.touch()
    assert told(root) == [
        f"'{file}' belongs to no program of 'programs.toml': run 'make generated', and read the difference as a"
        " reviewer would."
    ]
    update(found(root), root, processes=1, everything=False)
    assert told(root) == []


TEXT = """
import gt4py.next as gtx

K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)

@gtx.field_operator
def _times(x: gtx.Field[[K], gtx.float64], is_negative: bool) -> gtx.Field[[K], gtx.float64]:
    return -{factor} * x if is_negative else {factor} * x

@gtx.program
def times(x: gtx.Field[[K], gtx.float64], is_negative: bool, out: gtx.Field[[K], gtx.float64]):
    _times(x, is_negative, out=out)
"""


def test_program_that_changes_is_lowered_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for version, factor in (("before", 2.0), ("after", 3.0)):
        (tmp_path / f"stencils_{version}.py").write_text(TEXT.format(factor=factor))
    programs = tmp_path / "programs.toml"
    text = '[[program]]\nsource = "stencils_{}:times"\nstatic_args.is_negative = [true, false]\n'

    programs.write_text(text.format("before"))
    update(found(tmp_path), tmp_path, processes=1, everything=False)
    assert {str(file.relative_to(tmp_path)) for file in tmp_path.glob("*/*_stub.c")} == {
        "times/times_t_stub.c",
        "times/times_f_stub.c",
    }
    assert told(tmp_path) == []

    programs.write_text(text.format("after"))
    first, second = told(tmp_path)
    assert first.startswith("Program 'times (is_negative=True)' of icon4py has changed: 'program.source._times' is ")
    assert second.startswith("Program 'times (is_negative=False)' of icon4py has changed: ")
    update(found(tmp_path), tmp_path, processes=1, everything=False)
    assert told(tmp_path) == []
