"""'gtstub config' as its users meet it."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gtstub.cli.app import main
from gtstub.frameworks.backends.choice import Tag
from gtstub.frameworks.backends.tables import table_files
from tests.support.checkout import ROOT


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own table."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("GTSTUB_BACKENDS", raising=False)
    monkeypatch.setenv("GTSTUB_ARCH", "zen4,sm_90")
    file = tmp_path / "gtstub" / "backends.toml"
    file.parent.mkdir()
    file.write_text("[program.graupel_run.arch.sm_90]\ndace.optimization_args.gpu_maxnreg = 96\n")
    return file


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["config", *arguments], prog_name="gtstub")


def explained(*arguments: str) -> dict[str, Any]:
    result = run("explain", *arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert isinstance(document, dict)
    return document


def test_explain_says_which_line_decided_and_what_it_overrode(mine: Path) -> None:
    result = run("explain", "graupel_run", "--tag", "GPU")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "Program 'graupel_run', tag 'GPU', gpu 'sm_90': backend 'gtstub'."
    (line,) = (line for line in lines if "gpu_maxnreg" in line)
    _, shipped = table_files()[0]
    overridden = 1 + shipped.read_text().splitlines().index("dace.optimization_args.gpu_maxnreg = 80")
    assert line.split() == [
        "dace.optimization_args.gpu_maxnreg",
        "96",
        "user:2",
        "[program.graupel_run.arch.sm_90]",
        *f"80, gtstub:{overridden} [program.graupel_run.device.cuda]".split(),
    ]
    files = lines.index(f"gtstub: {shipped}")
    assert lines[files + 1] == f"user: {mine}"


@pytest.mark.usefixtures("mine")
def test_explain_as_json() -> None:
    document = explained("graupel_run", "--tag", "gpu")
    assert {name: document[name] for name in ("program", "tag", "arch", "backend", "device")} == {
        "program": "graupel_run",
        "tag": "GPU",
        "arch": "sm_90",
        "backend": "gtstub",
        "device": "gpu",
    }
    assert document["options"]["optimization_args"]["gpu_maxnreg"] == 96
    (reason,) = (reason for reason in document["reasons"] if reason["option"].endswith("gpu_maxnreg"))
    assert (reason["value"], reason["line"], reason["section"]) == (96, 2, "program.graupel_run.arch.sm_90")
    assert (reason["overrode"]["value"], reason["overrode"]["overrode"]) == (80, None)


@pytest.mark.usefixtures("mine")
def test_explain_is_of_the_named_architecture_or_of_this_machine() -> None:
    assert explained("graupel_run", "--tag", "GPU", "--arch", "gfx90a")["options"]["optimization_args"] == {
        "fuse_tasklets": True
    }
    assert explained("graupel_run")["arch"] == "zen4"


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize("tag", Tag)
def test_explain_knows_every_tag(tag: Tag) -> None:
    result = run("explain", "any", "--tag", tag, "--jq", ".tag")
    assert (result.exit_code, result.stdout) == (0, f"{tag}\n")


@pytest.mark.usefixtures("mine")
def test_explain_refuses_an_architecture_of_another_device() -> None:
    result = run("explain", "p", "--tag", "CPU", "--arch", "sm_90")
    message = "Program 'p' with tag 'CPU' runs on a CPU, as 'zen4', but the architecture is 'sm_90'.\n"
    assert (result.exit_code, result.stdout, result.stderr) == (8, "", message)


@pytest.mark.skipif(importlib.util.find_spec("gt4py") is None, reason="gt4py says which options there are")
def test_explain_refuses_what_the_backend_does_not_know(mine: Path) -> None:
    assert explained("p")["checked"] is True
    mine.write_text("[default]\ndace.auto_optimise = true\n")
    result = run("explain", "p")
    message = (
        f"'{mine}', line 2: Option 'auto_optimise' of backend 'gtstub' for program 'p' is unknown."
        " Did you mean: 'auto_optimize'?\n"
    )
    assert (result.exit_code, result.stdout, result.stderr) == (8, "", message)


def test_explain_says_that_it_could_not_check(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "gtstub.frameworks.gt4py.chosen", raising=False)
    for module in ("gt4py", "gt4py.next"):
        monkeypatch.setitem(sys.modules, module, None)  # As if it were not installed.
    mine.write_text("[default]\ndace.auto_optimise = true\n")
    assert run("explain", "p").stdout.endswith("\nThe options were not checked: 'gt4py' is not installed.\n")
    assert explained("p")["checked"] is False


def test_a_malformed_table_has_an_exit_code_of_its_own(mine: Path) -> None:
    mine.write_text("[progam.p]\n")
    result = run("explain", "p")
    message = f"'{mine}', line 1: There is no section 'progam'. Did you mean: 'program'?\n"
    assert (result.exit_code, result.stdout, result.stderr) == (8, "", message)


def test_a_named_table_that_is_missing_cannot_be_read(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = mine.with_name("missing.toml")
    monkeypatch.setenv("GTSTUB_BACKENDS", str(missing))
    result = run("explain", "p")
    message = f"Cannot read or write '{missing}': No such file or directory.\n"
    assert (result.exit_code, result.stdout, result.stderr) == (7, "", message)
    assert run("show").stderr == message


def test_show_lists_files_and_settings(mine: Path) -> None:
    result = run("show")
    assert (result.exit_code, result.stderr) == (0, "")
    words = [line.split() for line in result.stdout.splitlines()]
    assert ["user", str(mine)] in words
    assert ["user:2", "[program.graupel_run.arch.sm_90]", "dace.optimization_args.gpu_maxnreg", "96"] in words
    mine.unlink()
    assert ["user", str(mine), "missing"] in [line.split() for line in run("show").stdout.splitlines()]


def test_show_as_json(mine: Path) -> None:
    document = json.loads(run("show", "--json").stdout)
    assert document["files"][1] == {"from": "user", "file": str(mine), "exists": True}
    assert document["settings"][-1] == {
        "section": "program.graupel_run.arch.sm_90",
        "option": "dace.optimization_args.gpu_maxnreg",
        "value": 96,
        "file": str(mine),
        "line": 2,
    }


def test_the_page_shows_what_is_printed(mine: Path) -> None:
    page = (ROOT / "docs" / "backends.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (shown,) = re.findall(r"<!-- explain -->\n```\n(.*?)```", page, re.DOTALL)
    mine.write_text(table)
    printed = run("explain", "graupel_run", "--tag", "GPU", "--arch", "sm_90").stdout
    lines = shown.splitlines()[:-2]
    assert lines == printed.splitlines()[: len(lines)], "Only where the files are may differ."


def test_the_configuration_of_dace_says_what_decided_each_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXXFLAGS", "-O1 -DMINE")
    result = run("dace", "--build-type", "Debug")
    assert (result.exit_code, result.stderr) == (0, "")
    rows = [re.split(" {2,}", line) for line in result.stdout.splitlines()[3:]]
    assert rows[0] == ["compiler.build_type", '"Debug"', "build type"]
    assert ["compiler.cpu.args", '"-O1 -DMINE"', "CXXFLAGS"] in rows
    assert ["compiler.use_cache", "false", "gtstub"] in rows
    assert rows[-1] == ["treps", "100", "DaCe"]
    document = json.loads(run("dace", "--json").stdout)
    assert document["settings"]["compiler.cpu.args"] == {"value": "-O1 -DMINE", "by": "CXXFLAGS"}
    assert len(document["settings"]) == len(rows)
