"""The command line as its users meet it: what it prints, what it writes, its errors and its exit codes."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gtstub import __version__
from gtstub.cache.manifest import Manifest
from gtstub.cache.store import Cache
from gtstub.cli import main
from gtstub.plan.document import plan_to_json
from gtstub.plan.planner import make_plan
from gtstub.signature.documents import program_to_json, sdfg_to_json
from gtstub.signature.model import ProgramSignature, SdfgSignature
from tests.support.checkout import ROOT
from tests.support.sdfg_libraries import build_null_library
from tests.support.signatures import WHOLE_PROGRAM, WHOLE_SDFG, program, scalar, sdfg, symbol
from tests.support.stubs import render_stub

COMMANDS = ("build", "cache", "config", "doctor", "extract", "generate", "plan", "record", "replay", "show")


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="gtstub")


def run_installed(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command that the wheel installs, in a process of its own."""
    command = Path(sys.executable).with_name("gtstub")
    return subprocess.run([command, *arguments], env=env, capture_output=True, text=True, check=False)


def write_signatures(
    directory: Path = Path(), sdfg_: SdfgSignature = WHOLE_SDFG, program_: ProgramSignature = WHOLE_PROGRAM
) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "sdfg.json").write_text(sdfg_to_json(sdfg_), encoding="utf-8")
    (directory / "program.json").write_text(program_to_json(program_), encoding="utf-8")


def names_in(directory: str) -> list[str]:
    return sorted(file.name for file in Path(directory).iterdir())


def assert_refused(result: Result, exit_code: int, message: str) -> None:
    assert (result.exit_code, result.stdout, result.stderr) == (exit_code, "", f"{message}\n")


# --- Help -------------------------------------------------------------------------------------------------------------


def test_version() -> None:
    assert run("--version").stdout == f"gtstub {__version__}\n"


def test_help_lists_commands_and_exit_codes() -> None:
    text = run("--help").stdout
    for command in COMMANDS:
        assert f"\n  {command} " in text
    assert "\n  Example:\n    gtstub doctor\n" in text
    for exit_code in range(9):
        assert f"\n    {exit_code}  " in text
    assert "..." not in text.partition("Commands:")[2], "The summary of a command was cut off."


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_an_example(command: str) -> None:
    result = run(command, "-h")
    assert result.exit_code == 0
    assert f"  Example:\n    gtstub {command}" in result.stdout


def test_a_wrong_option_is_a_usage_error() -> None:
    assert run("plan", "--nonsense").exit_code == 2


# --- plan -------------------------------------------------------------------------------------------------------------


def test_plan_prints_every_leaf_and_every_slot() -> None:
    write_signatures()
    result = run("plan", "sdfg.json", "program.json")
    assert (result.exit_code, result.stderr) == (0, "")
    plan = make_plan(WHOLE_SDFG, WHOLE_PROGRAM)
    words = result.stdout.split()
    for name in [leaf.path for leaf in plan.leaves] + [slot.name for slot in plan.slots]:
        assert name in words


def test_plan_as_json() -> None:
    write_signatures()
    result = run("plan", "sdfg.json", "program.json", "--json")
    assert json.loads(result.stdout) == plan_to_json(make_plan(WHOLE_SDFG, WHOLE_PROGRAM))


def test_jq_does_not_need_json() -> None:
    write_signatures()
    expected = "".join(f"{argument.name}\n" for argument in WHOLE_SDFG.arguments)
    assert run("plan", "sdfg.json", "program.json", "--jq", ".slots[].name").stdout == expected
    assert run("plan", "sdfg.json", "program.json", "--json", "--jq", ".slots[].name").stdout == expected


def test_a_bad_filter() -> None:
    write_signatures()
    assert_refused(
        run("plan", "sdfg.json", "program.json", "--jq", ".slots["),
        2,
        "The jq filter '.slots[' does not work: syntax error, unexpected end of file.",
    )


def test_a_missing_file() -> None:
    write_signatures()
    assert_refused(
        run("plan", "sdfg.json", "nothing.json"),
        7,
        "Cannot read or write 'nothing.json': No such file or directory.",
    )


def test_a_directory_for_a_file(tmp_path: Path) -> None:
    write_signatures()
    assert_refused(run("plan", str(tmp_path), "program.json"), 7, f"Cannot read or write '{tmp_path}': Is a directory.")


def test_signatures_in_the_wrong_order() -> None:
    write_signatures()
    assert_refused(
        run("plan", "program.json", "sdfg.json"),
        3,
        "'program.json' is not an SDFG signature: at '$.schema', expected 'gtstub/sdfg-signature/1', "
        "found '\"gtstub/program-signature/1\"'.",
    )


def test_a_truncated_signature() -> None:
    write_signatures()
    Path("sdfg.json").write_text(sdfg_to_json(WHOLE_SDFG)[:100], encoding="utf-8")
    result = run("plan", "sdfg.json", "program.json")
    assert result.exit_code == 3
    assert result.stderr.startswith("'sdfg.json' is not JSON: ")


def test_a_signature_that_is_no_text() -> None:
    write_signatures()
    Path("sdfg.json").write_bytes(b"\xff\xfe")
    assert_refused(run("plan", "sdfg.json", "program.json"), 3, "'sdfg.json' is not JSON: it is not UTF-8 text.")


def test_signatures_that_contradict_each_other() -> None:
    write_signatures(sdfg_=sdfg(symbol("a")), program_=program(b=scalar("int32")))
    assert_refused(
        run("plan", "sdfg.json", "program.json"),
        4,
        "The signatures of program 'prog' contradict each other: "
        "no argument of the program determines symbol 'a' of the SDFG.",
    )


def test_planning_imports_neither_frameworks_nor_what_it_does_not_need() -> None:
    write_signatures()
    code = (
        "import sys; from gtstub.cli import main; main(sys.argv[1:], standalone_mode=False); "
        "print([m for m in ('gt4py', 'dace', 'numpy', 'jinja2', 'jq') if m in sys.modules])"
    )
    arguments = [sys.executable, "-c", code, "plan", "sdfg.json", "program.json"]
    assert subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.endswith("\n[]\n")


# --- generate ---------------------------------------------------------------------------------------------------------


def test_generate_writes_the_stub() -> None:
    write_signatures()
    result = run("generate", "sdfg.json", "program.json", "-o", "new/stubs")
    assert (result.exit_code, result.stdout) == (
        0,
        "'new/stubs/whole_stub.h' was written.\n'new/stubs/whole_stub.c' was written.\n",
    )
    sources = render_stub(WHOLE_SDFG, WHOLE_PROGRAM)
    assert Path("new/stubs/whole_stub.h").read_text(encoding="utf-8") == sources.header
    assert Path("new/stubs/whole_stub.c").read_text(encoding="utf-8") == sources.source
    assert names_in("new/stubs") == ["whole_stub.c", "whole_stub.h"]


def test_generate_writes_the_fortran_module_where_it_is_wanted() -> None:
    write_signatures()
    result = run("generate", "sdfg.json", "program.json", "--fortran")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "'whole_stub.f90' was written.")
    sources = render_stub(WHOLE_SDFG, WHOLE_PROGRAM, fortran=True)
    assert Path("whole_stub.f90").read_text(encoding="utf-8") == sources.module
    assert run("generate", "sdfg.json", "program.json", "--fortran", "--check").exit_code == 0
    edit_a_byte(Path("whole_stub.f90"))
    assert run("generate", "sdfg.json", "program.json", "--check").exit_code == 0
    assert_refused(
        run("generate", "sdfg.json", "program.json", "--fortran", "--check"),
        1,
        "'whole_stub.f90' was edited by hand.",
    )


def test_generate_gives_a_stub_another_name() -> None:
    write_signatures()
    result = run("generate", "sdfg.json", "program.json", "--name", "first", "--fortran")
    assert result.stdout == "".join(f"'first_stub.{suffix}' was written.\n" for suffix in ("h", "c", "f90"))
    named = Path("first_stub.c").read_text(encoding="utf-8")
    assert "int first_call(gts_program *" in named
    assert f'    .name = "{WHOLE_SDFG.name}",' in named
    digests = re.findall(r"sha256 (\w{64})", named)
    assert digests == re.findall(r"sha256 (\w{64})", render_stub(WHOLE_SDFG, WHOLE_PROGRAM).source)
    assert len(digests) == 2
    assert run("generate", "sdfg.json", "program.json", "--name", "no name").exit_code == 4


def test_generate_leaves_alone_what_stays_the_same() -> None:
    write_signatures()
    run("generate", "sdfg.json", "program.json")
    os.utime("whole_stub.c", (1, 1))
    result = run("generate", "sdfg.json", "program.json")
    assert result.stdout == "'whole_stub.h' is up to date.\n'whole_stub.c' is up to date.\n"
    assert Path("whole_stub.c").stat().st_mtime == 1


def test_generate_replaces_an_older_stub() -> None:
    write_signatures()
    older = render_stub(sdfg(name="whole"), program("whole"))
    Path("whole_stub.c").write_text(older.source, encoding="utf-8")
    assert run("generate", "sdfg.json", "program.json").exit_code == 0
    assert Path("whole_stub.c").read_text(encoding="utf-8") == render_stub(WHOLE_SDFG, WHOLE_PROGRAM).source


def test_the_stub_does_not_depend_on_how_a_signature_is_written() -> None:
    write_signatures()
    run("generate", "sdfg.json", "program.json")
    Path("sdfg.json").write_text(json.dumps(json.loads(sdfg_to_json(WHOLE_SDFG)), indent=8), encoding="utf-8")
    assert run("generate", "sdfg.json", "program.json", "--check").exit_code == 0


def test_check_of_what_is_up_to_date_says_nothing() -> None:
    write_signatures()
    run("generate", "sdfg.json", "program.json")
    result = run("generate", "sdfg.json", "program.json", "--check")
    assert (result.exit_code, result.output) == (0, "")


def test_check_sees_missing_files_and_writes_nothing() -> None:
    write_signatures()
    assert_refused(
        run("generate", "sdfg.json", "program.json", "--check"),
        1,
        "'whole_stub.h' is missing: run 'gtstub generate'.\n'whole_stub.c' is missing: run 'gtstub generate'.",
    )
    assert not Path("whole_stub.h").exists()


def test_check_sees_an_older_stub() -> None:
    write_signatures()
    run("generate", "sdfg.json", "program.json")
    older = render_stub(sdfg(name="whole"), program("whole"))
    Path("whole_stub.c").write_text(older.source, encoding="utf-8")
    assert_refused(
        run("generate", "sdfg.json", "program.json", "--check"),
        1,
        "'whole_stub.c' is out of date: run 'gtstub generate'.",
    )


def edit_a_byte(file: Path) -> bytes:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    return bytes(content)


def test_check_sees_a_changed_byte() -> None:
    write_signatures()
    run("generate", "sdfg.json", "program.json")
    edit_a_byte(Path("whole_stub.c"))
    assert_refused(run("generate", "sdfg.json", "program.json", "--check"), 1, "'whole_stub.c' was edited by hand.")


def test_generate_does_not_replace_what_was_edited_by_hand() -> None:
    write_signatures()
    run("generate", "sdfg.json", "program.json")
    Path("whole_stub.h").unlink()
    edited = edit_a_byte(Path("whole_stub.c"))
    assert_refused(
        run("generate", "sdfg.json", "program.json"),
        1,
        "'whole_stub.c' was edited by hand: move it away, or replace it with '--force'.",
    )
    assert Path("whole_stub.c").read_bytes() == edited
    assert not Path("whole_stub.h").exists(), "Half a stub was written."
    assert run("generate", "sdfg.json", "program.json", "--force").exit_code == 0
    assert run("generate", "sdfg.json", "program.json", "--check").exit_code == 0


def test_generate_does_not_replace_what_is_not_its_own() -> None:
    write_signatures()
    Path("whole_stub.h").write_text("mine\n", encoding="utf-8")
    assert run("generate", "sdfg.json", "program.json").exit_code == 1
    assert Path("whole_stub.h").read_text(encoding="utf-8") == "mine\n"


# --- build ------------------------------------------------------------------------------------------------------------


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
        f"Library '{library}' is not of SDFG 'whole': it has no '__program_whole'.",
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


def test_build_of_a_set_does_not_go_where_it_would_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GTSTUB_CACHE_DIR", "GT_CACHE_ROOT", "GT4PY_BUILD_CACHE_LIFETIME"):
        monkeypatch.delenv(name, raising=False)
    Path("programs.toml").write_text("")
    result = run("build", "programs.toml")
    assert result.exit_code == 2
    assert "Say where entries go, with '--cache' or GTSTUB_CACHE_DIR" in result.stderr
    assert run("build", "programs.toml", "--cache", "cache").exit_code == 0


def test_build_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_signatures()
    library = build_null_library(WHOLE_SDFG, tmp_path)
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CC", "/no/compiler")
    result = run("build", "sdfg.json", "program.json", "--library", str(library))
    assert result.exit_code == 5
    assert result.stderr.startswith("The C compiler '/no/compiler', which CC names, was not found: ")
    assert not list(tmp_path.glob("*.so*.*"))


# --- show -------------------------------------------------------------------------------------------------------------


def publish_entry(root: Path) -> Path:
    """A cache entry as far as tools look at it; its libraries are never loaded."""
    cache = Cache(root)
    with cache.private_directory("whole") as private:
        directory = private / "entry"
        write_signatures(directory)
        sources = render_stub(WHOLE_SDFG, WHOLE_PROGRAM)
        (directory / "whole_stub.h").write_text(sources.header, encoding="utf-8")
        (directory / "whole_stub.c").write_text(sources.source, encoding="utf-8")
        for library in ("whole_stub.so", "libwhole.so"):
            (directory / library).touch()
        manifest = Manifest("whole", "whole_stub.so", "libwhole.so")
        return cache.publish(directory, "whole", manifest).path


def test_show_in_a_pipe_has_every_slot_whole() -> None:
    write_signatures()
    result = run_installed("show", "sdfg.json", "program.json", env={**os.environ, "COLUMNS": "40"})
    assert (result.returncode, result.stderr) == (0, "")
    lines = [line.split() for line in result.stdout.splitlines()]
    plan = make_plan(WHOLE_SDFG, WHOLE_PROGRAM)
    for slot in plan.slots:
        assert [line for line in lines if line[:1] == [str(slot.index)] and slot.name in line]
    assert "\x1b" not in result.stdout
    assert "…" not in result.stdout


def test_show_of_an_entry_is_that_of_its_signatures(tmp_path: Path) -> None:
    entry = str(publish_entry(tmp_path / "cache"))
    write_signatures()
    for options in ([], ["--code"], ["--header"]):
        assert run("show", entry, *options).stdout == run("show", "sdfg.json", "program.json", *options).stdout


def test_show_the_code_of_an_entry_that_was_made_by_another_version(tmp_path: Path) -> None:
    entry = publish_entry(tmp_path / "cache")
    source = entry / "whole_stub.c"
    source.write_text(source.read_text(encoding="utf-8").replace("const", "CONST"), encoding="utf-8")
    assert run("show", str(entry), "--code").stdout == source.read_text(encoding="utf-8")


def test_show_code_in_a_pipe_is_byte_for_byte() -> None:
    write_signatures()
    sources = render_stub(WHOLE_SDFG, WHOLE_PROGRAM)
    assert run_installed("show", "sdfg.json", "program.json", "--code").stdout == sources.source
    assert run_installed("show", "sdfg.json", "program.json", "--header").stdout == sources.header


def test_show_as_json(tmp_path: Path) -> None:
    entry = str(publish_entry(tmp_path / "cache"))
    write_signatures()
    plan = plan_to_json(make_plan(WHOLE_SDFG, WHOLE_PROGRAM))
    assert json.loads(run("show", "sdfg.json", "program.json", "--json").stdout) == plan
    document = json.loads(run("show", entry, "--json").stdout)
    assert document.pop("manifest")["library"] == "libwhole.so"
    assert document == plan
    assert run("show", entry, "--jq", ".manifest.stub").stdout == "whole_stub.so\n"


def test_show_of_no_entry(tmp_path: Path) -> None:
    assert_refused(run("show", str(tmp_path)), 6, f"There is no cache entry at '{tmp_path}'.")


def test_show_of_an_entry_that_lacks_a_file(tmp_path: Path) -> None:
    entry = publish_entry(tmp_path / "cache")
    (entry / "sdfg.json").unlink()
    assert_refused(run("show", str(entry)), 6, f"The cache entry '{entry}' lacks its file 'sdfg.json'.")


@pytest.mark.parametrize(
    "arguments",
    [("show",), ("show", "a", "b", "c"), ("show", "a", "--code", "--json"), ("show", "a", "--code", "--header")],
)
def test_show_of_too_little_or_too_much(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Usage: gtstub show ")


# --- doctor -----------------------------------------------------------------------------------------------------------


def test_doctor_finds_what_the_tests_run_with() -> None:
    result = run_installed("doctor")
    assert (result.returncode, result.stderr) == (0, "")
    assert "MISSING" not in result.stdout
    python = next(line for line in result.stdout.splitlines() if " Python " in line)
    assert python.startswith("ok")
    assert sys.executable in python


def test_doctor_as_json() -> None:
    document = json.loads(run("doctor", "--json").stdout)
    assert document["ok"]
    assert {"name", "ok", "found", "advice"} == document["checks"][0].keys()
    assert run("doctor", "--jq", ".ok").stdout == "true\n"


def test_doctor_without_a_compiler() -> None:
    result = run_installed("doctor", env={**os.environ, "CC": "/no/compiler"})
    assert result.returncode == 1
    assert "MISSING  C compiler" in result.stdout
    assert "\nC compiler: The C compiler '/no/compiler', which CC names, was not found: " in result.stdout
    result = run_installed("doctor", "--jq", ".checks[] | select(.ok | not) | .name", env={**os.environ, "CC": "/no"})
    assert (result.returncode, result.stdout) == (1, "C compiler\n")


# --- extract ----------------------------------------------------------------------------------------------------------

SAVE_AN_SDFG = """
import dace
sdfg = dace.SDFG("halve")
sdfg.add_array("a", [dace.symbol("N", dace.int32), 3], dace.float64)
old, new = dace.Memlet("a[i, 0]"), dace.Memlet("a[i, 1]")
sdfg.add_state().add_mapped_tasklet("halve", {"i": "0:N"}, {"x": old}, "y = x / 2", {"y": new}, external_edges=True)
sdfg.save("halve.sdfg")
"""


@pytest.fixture(scope="module")
def saved_sdfg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Saved by DaCe, in a process of its own, because DaCe changes the process that imports it."""
    if importlib.util.find_spec("dace") is None:
        pytest.skip("DaCe is not installed.")
    directory = tmp_path_factory.mktemp("sdfg")
    subprocess.run([sys.executable, "-c", SAVE_AN_SDFG], cwd=directory, check=True, capture_output=True)
    return directory / "halve.sdfg"


def test_extract_the_signature_of_an_sdfg(saved_sdfg: Path) -> None:
    result = run_installed("extract", str(saved_sdfg))
    assert (result.returncode, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert document["schema"] == "gtstub/sdfg-signature/1"
    assert [argument["name"] for argument in document["arguments"]] == ["a", "N"]
    assert document["arguments"][0]["access"] == "readwrite"
    assert document["arguments"][0]["axes"] == [{"start": 0, "stride": 3}, {"size": 3, "stride": 1}]


def test_extract_from_a_compressed_sdfg_to_a_file(saved_sdfg: Path) -> None:
    Path("compressed.sdfgz").write_bytes(gzip.compress(saved_sdfg.read_bytes()))
    result = run("extract", "compressed.sdfgz", "-o", "out")
    assert (result.exit_code, result.stdout) == (0, "'out/halve.sdfg.json' was written.\n")
    assert Path("out/halve.sdfg.json").read_text(encoding="utf-8") == run("extract", str(saved_sdfg)).stdout


def test_extract_through_a_filter(saved_sdfg: Path) -> None:
    assert run("extract", str(saved_sdfg), "--jq", ".arguments[].name").stdout == "a\nN\n"
    assert run("extract", str(saved_sdfg), "--jq", ".", "-o", "x").exit_code == 2


def test_extract_from_what_is_no_sdfg(saved_sdfg: Path) -> None:
    cut = "it is neither JSON nor compressed JSON, or is cut off"
    for name, content, reason in [
        ("cut.sdfg", saved_sdfg.read_bytes()[:1000], cut),
        ("cut.sdfgz", gzip.compress(saved_sdfg.read_bytes())[:1000], cut),
        ("empty.sdfg", b"", cut),
        ("list.sdfg", b"[]", "its 'type' is not 'SDFG'"),
    ]:
        Path(name).write_bytes(content)
        assert_refused(run("extract", name), 3, f"'{name}' is not an SDFG: {reason}.")


def test_extract_without_dace() -> None:
    code = "import sys; sys.modules['dace'] = None; from gtstub.cli import main; main()"
    arguments = [sys.executable, "-c", code, "extract", "halve.sdfg"]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    expected = "'gtstub extract' needs Python package 'dace': install it with \"pip install 'gtstub[gt4py]'\".\n"
    assert result.stderr == expected


MODEL = """
import gt4py.next as gtx
import numpy as np

I = gtx.Dimension("I")
Edge = gtx.Dimension("Edge")
I2EDim = gtx.Dimension("I2E", kind=gtx.DimensionKind.LOCAL)
I2E = gtx.FieldOffset("I2E", source=Edge, target=(I, I2EDim))
Line = gtx.Field[gtx.Dims[I], gtx.float64]

@gtx.field_operator
def _gather(a: gtx.Field[gtx.Dims[Edge], gtx.float64], factor: gtx.float64) -> Line:
    return factor * a(I2E[0])

@gtx.program
def gather(a: gtx.Field[gtx.Dims[Edge], gtx.float64], factor: gtx.float64, out: Line):
    _gather(a, factor, out=out)

def make_offset_provider():
    return {"I2E": gtx.as_connectivity([I, I2EDim], Edge, np.zeros((3, 2), dtype=np.int32))}
"""


@pytest.fixture
def _model(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("gt4py") is None:
        pytest.skip("gt4py is not installed.")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "model", raising=False)
    Path("model.py").write_text(MODEL, encoding="utf-8")


@pytest.mark.usefixtures("_model")
def test_extract_both_signatures_of_a_program() -> None:
    arguments = ("model:gather", "--grid", "model:make_offset_provider", "--option", "auto_optimize=false")
    result = run_installed("extract", *arguments, "-o", "out")
    assert (result.returncode, result.stdout) == (
        0,
        "'out/gather.sdfg.json' was written.\n'out/gather.program.json' was written.\n",
    )
    plan = json.loads(run("plan", "out/gather.sdfg.json", "out/gather.program.json", "--json").stdout)
    assert [leaf["name"] for leaf in plan["leaves"]] == ["a", "factor", "out", "gt_conn_I2E"]


@pytest.mark.usefixtures("_model")
def test_extract_a_program_with_a_static_argument() -> None:
    arguments = ("model:gather", "--grid", "model:make_offset_provider", "--static", "factor=2")
    document = json.loads(run("extract", *arguments).stdout)
    assert document["program"]["static_arguments"] == [{"leaf": "factor", "value": 2.0}]
    assert "factor" not in [argument["name"] for argument in document["sdfg"]["arguments"]]


@pytest.mark.usefixtures("_model")
@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["model:scatter"], 1, "Module 'model' has no 'scatter'."),
        (["models:gather"], 1, "Module 'models' cannot be imported: No module named 'models'."),
        (["model"], 1, "'model' is neither a '.sdfg' or '.sdfgz' file nor of the form 'module:name'."),
        (["model:I"], 1, "'model:I' is not a gt4py program or field operator, but of type 'Dimension'."),
        (["model:gather"], 1, "gt4py cannot lower 'model:gather': Offset 'I2E' not found in offset provider."),
        (
            ["model:gather", "--static", "factory=2"],
            3,
            "Program 'gather' has no scalar parameter 'factory' to be static.",
        ),
    ],
)
def test_extract_from_what_is_no_program(arguments: list[str], exit_code: int, message: str) -> None:
    assert_refused(run("extract", *arguments), exit_code, message)


@pytest.mark.usefixtures("_model")
def test_extract_with_an_option_that_the_backend_does_not_have() -> None:
    result = run("extract", "model:gather", "--option", "optimise=true")
    assert result.exit_code == 1
    assert result.stderr.startswith("The backend has no option 'optimise'. Its options: 'gpu', 'auto_optimize', ")


def test_extract_with_wrong_settings() -> None:
    for arguments in (["model:gather", "--static", "factor"], ["halve.sdfg", "--static", "factor=2"]):
        result = run("extract", *arguments)
        assert result.exit_code == 2
        assert result.stderr.startswith("Usage: gtstub extract ")


# --- docs/formats.md --------------------------------------------------------------------------------------------------


def test_the_examples_of_the_formats_page_are_documents() -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    program_text, sdfg_text = (block.partition("```")[0] for block in page.split("```json\n")[1:])
    Path("program.json").write_text(program_text, encoding="utf-8")
    Path("sdfg.json").write_text(sdfg_text, encoding="utf-8")
    result = run("plan", "sdfg.json", "program.json", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    filters = [line.partition("--jq ")[2].strip("'") for line in page.splitlines() if "gtstub plan" in line]
    for filter_ in filter(None, filters):
        assert run("plan", "sdfg.json", "program.json", "--jq", filter_).stdout
    plan = json.loads(result.stdout)
    described = page.partition("## Call plan")[2].partition("## Manifest")[0]
    for member in {*plan, *plan["leaves"][0], *plan["slots"][0]} - {"schema"}:
        assert f"`{member}" in described, f"docs/formats.md does not say what '{member}' is."
