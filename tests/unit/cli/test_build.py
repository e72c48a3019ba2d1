"""'gtstub build' of one stub, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import assert_refused, names_in, run, write_signatures
from tests.support.sdfg_libraries import build_null_library
from tests.support.signatures import WHOLE_SDFG, sdfg

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")


def test_build_makes_a_stub_that_loads_with_the_library(tmp_path: Path) -> None:
    from gtstub import _host

    write_signatures()
    library = build_null_library(WHOLE_SDFG, tmp_path)
    result = run("build", "sdfg.json", "program.json", "--library", str(library), "-o", "stubs")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.endswith(f"'stubs/whole_stub.so' was compiled for '{library}'.\n")
    assert names_in("stubs") == ["whole_stub.c", "whole_stub.h", "whole_stub.so"]
    assert callable(_host.load(tmp_path / "stubs" / "whole_stub.so", library))


def test_build_refuses_the_library_of_another_program(tmp_path: Path) -> None:
    write_signatures()
    library = build_null_library(sdfg(name="other"), tmp_path)
    assert_refused(
        run("build", "sdfg.json", "program.json", "--library", str(library)),
        1,
        f"Library '{library}' was not built from SDFG 'whole': it has no function '__program_whole'.",
    )
    assert not Path("whole_stub.c").exists()


def test_build_without_a_library() -> None:
    write_signatures()
    assert_refused(
        run("build", "sdfg.json", "program.json", "--library", "libwhole.so"),
        7,
        "Cannot read or write 'libwhole.so': No such file or directory.",
    )


@pytest.mark.parametrize(
    "arguments", [("sdfg.json", "program.json"), ("sdfg.json",), ("programs.toml", "sdfg.json", "program.json")]
)
def test_build_takes_a_set_or_two_signatures(arguments: tuple[str, ...]) -> None:
    write_signatures()
    result = run("build", *arguments)
    assert result.exit_code == 2
    assert "Give one file in TOML, or two signatures and '--library'." in result.stderr


def test_build_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_signatures()
    library = build_null_library(WHOLE_SDFG, tmp_path)
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CC", "/no/compiler")
    result = run("build", "sdfg.json", "program.json", "--library", str(library))
    assert result.exit_code == 5
    assert result.stderr.startswith("The C compiler '/no/compiler', which CC names, was not found: ")
    assert not list(tmp_path.glob("*.so*.*"))


@pytest.mark.parametrize("option", [["--dry-run"], ["--jobs", "2"], ["--program", "relax"], ["--library", "x.so"]])
def test_from_run_refuses_other_options(option: list[str], tmp_path: Path) -> None:
    """Nothing is run."""
    ran = tmp_path / "ran"
    found = run("build", "--from-run", str(tmp_path / "list.toml"), *option, "--", "touch", str(ran))
    assert found.exit_code == 2
    assert f"'{option[0]}' cannot be given with '--from-run'." in found.stderr
    assert not ran.exists()


def test_grid_is_for_from_run(tmp_path: Path) -> None:
    found = run("build", str(tmp_path / "programs.toml"), "--grid", "module:grid")
    assert found.exit_code == 2
    assert "'--grid' is for '--from-run'; programs of a file name their grids in it." in found.stderr


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("GTSTUB_PROGRESS", "line", "GTSTUB_PROGRESS cannot be 'line'. Did you mean: 'lines'?"),
        ("GTSTUB_BUILD_TIMEOUT", "soon", "GTSTUB_BUILD_TIMEOUT must be a number of seconds, but is 'soon'."),
    ],
)
def test_a_wrong_setting_is_one_error(name: str, value: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No program is tried."""
    Path("programs.toml").write_text('[[program]]\nsource = "nowhere:one"\n[[program]]\nsource = "nowhere:two"\n')
    monkeypatch.setenv(name, value)
    found = run("build", "programs.toml")
    assert found.exit_code not in (0, 1)
    assert found.stderr.splitlines() == [text]
    assert found.stdout == ""
