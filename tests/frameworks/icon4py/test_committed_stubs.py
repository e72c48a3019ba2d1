"""The tool behind `make generated` and `make check-generated`: what is out of date is noticed, down to one byte."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from examples.icon4py import committed
from examples.icon4py.committed import HERE, LONGEST_PATH, Stub, problems, stubs, update, write_all
from gtstub.install import FOLDER, INCLUDE
from gtstub.util.canonical import readable
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


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of all variants, also of those that are not committed whole."""
    folder = tmp_path_factory.mktemp("everything")
    write_all(stubs(HERE / "programs.toml", HERE), HERE, folder)
    return folder


def test_files_are_committed_or_their_digests(everything: Path) -> None:
    digests = dict(reversed(line.split("  ")) for line in (HERE / "digests.sha256").read_text().splitlines())
    files = {str(file.relative_to(everything)): file.read_bytes() for file in everything.glob("*/*")}
    assert len(files) == 6 * len(stubs(HERE / "programs.toml", HERE))
    assert {name: hashlib.sha256(files.pop(name)).hexdigest() for name in digests} == digests
    assert {name: (HERE / name).read_bytes() for name in files} == files


def test_stubs_compile_without_a_warning(everything: Path) -> None:
    sources = sorted(everything.glob("*/*_stub.c"))
    assert len(sources) == len(stubs(HERE / "programs.toml", HERE))
    flags = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only", "-I", str(INCLUDE))
    subprocess.run(["cc", *flags, *sources], check=True)


@needs("gfortran")
def test_modules_compile(everything: Path, tmp_path: Path) -> None:
    modules = sorted(everything.glob("*/*_stub.f90"))
    assert len(modules) == len(stubs(HERE / "programs.toml", HERE))
    flags = ("-std=f2018", "-Wall", "-Werror", "-fsyntax-only")
    gtstub = [FOLDER / "fortran" / f"{module}.f90" for module in MODULES]
    subprocess.run(["gfortran", *flags, *gtstub, *modules], cwd=tmp_path, check=True)


def test_no_line_or_path_is_longer_than_120_characters(everything: Path) -> None:
    files = [file for pattern in ("*.c", "*.h", "*.f90") for file in everything.glob(f"*/{pattern}")]
    assert files
    for file in files:
        assert len(str(HERE.relative_to(ROOT) / file.relative_to(everything))) <= LONGEST_PATH
        assert max(map(len, file.read_text(encoding="utf-8").splitlines())) <= 120, file


def test_long_path_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed, "LONGEST_PATH", 40)
    path = "examples/icon4py/copy_field/copy_field_stub.c"
    assert f"The path '{path}' is longer than 40 characters: give its program a short name." in told(root)


def test_every_byte_counts(root: Path) -> None:
    check_every_byte(root, {".h", ".c", ".json", ".md"})


def check_every_byte(root: Path, suffixes: set[str]) -> None:
    files = [file for file in root.glob("**/*") if file.is_file() and file.suffix in suffixes]
    assert {file.suffix for file in files} == suffixes
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
    file.write_text(readable(source))
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


def test_variant_that_differs_in_a_few_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(committed, "WHOLE", {"times": ("t",)})
    (tmp_path / "stencils_variants.py").write_text(TEXT.format(factor=2.0))
    programs = '[[program]]\nsource = "stencils_variants:times"\nstatic_args.is_negative = [true, false]\n'
    (tmp_path / "programs.toml").write_text(programs)

    update(found(tmp_path), tmp_path, processes=1, everything=False)
    kept = {file.name for file in (tmp_path / "times").iterdir()}
    whole = {f"times_t_stub.{suffix}" for suffix in ("c", "f90", "h")} | {f"t.{name}" for name in committed.SIGNATURES}
    assert kept == {*whole, "f.diff"}
    assert "\n| [times_t](#times_t) |" in (page := (tmp_path / "README.md").read_text())
    assert "\n| times_f |" in page
    check_every_byte(tmp_path, {".diff", ".sha256"})

    every = tmp_path / "everything"
    write_all(found(tmp_path), tmp_path, every)
    told = "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  times/{file.name}\n"
        for name in (*(f"f.{name}" for name in committed.SIGNATURES), *(f"times_f_stub.{s}" for s in ("h", "c", "f90")))
        if (file := every / "times" / name)
    )
    assert (tmp_path / "digests.sha256").read_text() == told

    monkeypatch.setattr(committed, "WHOLE", {})
    shutil.copytree(every / "times", tmp_path / "times", dirs_exist_ok=True)
    update(found(tmp_path), tmp_path, processes=1, everything=False)
    assert {file.name for file in (tmp_path / "times").iterdir()} == {file.name for file in (every / "times").iterdir()}
    assert not (tmp_path / "digests.sha256").exists()
