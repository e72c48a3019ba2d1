"""'gtstub record' and 'gtstub replay': what they say, and their exit codes. tests/c has the runtime's side."""

from __future__ import annotations

import dataclasses
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from click.testing import CliRunner, Result

from gtstub.cli.app import main
from gtstub.entries.cache.key import make_key
from gtstub.entries.cache.manifest import Manifest
from gtstub.entries.cache.store import Cache
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.errors import GtstubError, SignatureError
from gtstub.stub.signature.documents import digest, program_to_json, sdfg_to_json
from gtstub.stub.signature.model import StaticArgument
from gtstub.tools.recorded.archive import Call, Leaf, Program, Value, archives, read
from gtstub.tools.recorded.compare import APART, compare, ulp_distances
from gtstub.tools.recorded.plot import MOST_CELLS, collapsed, ticks, to_plane
from tests.support.sdfg_libraries import Recorder, build_recording_library
from tests.support.signatures import SMALL_PROGRAM, SMALL_SDFG, WHOLE_PROGRAM, WHOLE_SDFG, on_gpu, sdfg
from tests.support.stubs import build_stub

INDEX = """\
gtstub/recording/1
program	prog	prog	{digest}	{digest}	3
leaf	x	x	field	float64	0	1	K
leaf	factor	factor	scalar	float64	0	0
leaf	out	out	field	float64	1	1	K
call	prog	1
value	1	0	-1	0	0	3	0	1
value	1	0	-1	1	0
value	1	0	{after}	2	0	3	-1	1
program	other	other	{digest}	{digest}	0
call	other	1
call	prog	2
value	1	0	-1	0	0	3	0	1
value	1	0	-1	1	0
value	1	24	24	2	0	3	-1	1
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)], prog_name="gtstub")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """The second element of `out` is 5 before and after the second call, and becomes 5 + 2 ulp in the first one."""
    archive = tmp_path / "recording" / "host-1"
    (archive / "prog").mkdir(parents=True)
    (archive / "recording.txt").write_text(INDEX.format(digest="0" * 64, after=48))
    five = np.array([4.0, 5.0, 6.0])
    more = np.array([4.0, np.nextafter(np.nextafter(5.0, 9), 9), 6.0])
    for name, values in {"x": [five], "factor": [np.array(2.0)], "out": [five, five, more]}.items():
        (archive / "prog" / f"prog_{name}.dat").write_bytes(b"".join(one.tobytes() for one in values))
    return archive.parent


@pytest.fixture(scope="module")
def entry(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Path:
    """A stub of 'prog', and beside it an SDFG library that writes nothing."""
    folder = tmp_path_factory.mktemp("entry")
    build_stub(SMALL_SDFG, SMALL_PROGRAM, folder, toolchain)
    build_recording_library(SMALL_SDFG, folder)
    return folder


# --- Reading ----------------------------------------------------------------------------------------------------------


def test_recordings_are_read(recording: Path) -> None:
    (archive,) = archives(recording)
    assert archives(archive.path) == [archive]
    assert [(call.program.name, call.number) for call in archive.calls] == [("prog", 1), ("other", 1), ("prog", 2)]
    x, factor, out = archive.calls[0].values
    assert (out.origin, out.shape, out.strides, out.memory, out.leaf.dims) == ((-1,), (3,), (1,), 2, ("K",))
    assert archive.load(archive.calls[0], x, "before").tolist() == [4, 5, 6]
    assert archive.load(archive.calls[0], factor, "before").item() == 2
    assert archive.load(archive.calls[0], out, "after")[1] > 5


def test_an_index_that_ends_anywhere_has_its_whole_calls(recording: Path) -> None:
    index = recording / "host-1" / "recording.txt"
    text = index.read_text()
    counts = []
    for end in range(len(text) + 1):
        index.write_text(text[:end])
        counts.append(len(read(index.parent).calls))
    assert counts == sorted(counts)
    assert set(counts) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("found", "other"),
    [
        ("recording/1", "recording/2"),
        ("float64", "float63"),
        ("field", "fields"),
        ("leaf", "left"),
        ("call\tprog", "call\tnobody"),
        ("call\tprog\t1", "call\tprog\t0"),
        ("value\t1", "value\tx"),
        ("value\t1\t0\t-1\t0\t0\t3", "value\t1\t0\t-1\t0\t0\t-3"),
        ("value\t1\t0\t-1\t0\t0\t3", "value\t1\t0\t-1\t9\t0\t3"),
        ("value\t1\t0\t-1\t0\t0\t3\t0\t1", "value\t1\t0\t-1\t0\t0\t3\t0\t-1"),  # before its memory
        ("value\t1\t0\t-1\t0\t0\t3\t0\t1", f"value\t1\t0\t-1\t0\t0\t3\t0\t{2**61}"),
        ("value\t1\t0\t-1\t0\t0\t3\t0\t1", f"value\t1\t0\t-1\t0\t0\t3\t{2**63 - 3}\t1"),
        ("value\t1\t0\t-1\t0\t0\t3", f"value\t1\t0\t-1\t0\t0\t{2**62}"),
        ("program\tprog", "program\t../prog"),
        ("leaf\tx\t", "leaf\t../x\t"),
        ("\t0\t1\tK", "\t0\t7\tK"),
        ("scalar\tfloat64\t0\t0\n", "scalar\tfloat64\t0\t1\tK\n"),  # which has no element, or several
    ],
)
def test_an_index_that_is_wrong_is_refused(recording: Path, found: str, other: str) -> None:
    index = recording / "host-1" / "recording.txt"
    index.write_text(index.read_text().replace(found, other))
    with pytest.raises(SignatureError) as refusal:
        read(index.parent)
    assert str(refusal.value) == f"'{index}' is malformed, or not of schema 'gtstub/recording/1'."
    result = run("record", "-o", recording)
    assert (result.exit_code, result.stderr) == (3, f"{refusal.value}\n")


def test_values_that_are_missing_are_refused(recording: Path, entry: Path) -> None:
    file = recording / "host-1" / "prog" / "prog_out.dat"
    os.truncate(file, 50)
    (archive,) = archives(recording)
    call = archive.calls[0]
    said = (
        f"Recording '{archive.path}' lacks a value of argument '{{0}}' of program 'prog': 'prog/prog_{{0}}.dat' cannot"
    )
    said += " be read, or is shorter than the index says."
    with pytest.raises(GtstubError, match=re.escape(said.format("out"))):
        archive.load(call, call.values[2], "after")
    result = run("replay", recording, entry, "--compare")
    assert (result.exit_code, result.stderr) == (1, f"{said.format('out')}\n")
    file.with_name("prog_x.dat").unlink()
    os.mkfifo(file.with_name("prog_x.dat"))
    result = run("replay", recording, entry)
    assert (result.exit_code, result.stderr) == (1, f"{said.format('x')}\n")
    (archive.path / "recording.txt").unlink()
    os.mkfifo(archive.path / "recording.txt")
    assert run("replay", recording, entry).stderr.endswith("Not a regular file.\n")
    assert run("replay", archive.path, entry).stderr == f"There is no recording in '{archive.path}'.\n"


# --- gtstub record ----------------------------------------------------------------------------------------------------

SHOWS = "import os; print(*(os.environ.get(f'GTSTUB_RECORD{name}') for name in ('', '_PROGRAMS', '_CALLS')), sep=';')"


def record(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own, because the command's output is not click's."""
    command = [sys.executable, "-c", "from gtstub.cli.app import main; main(prog_name='gtstub')", "record"]
    return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_a_command_is_told_what_to_record(tmp_path: Path) -> None:
    options = ("--program", "a", "--program", "b", "--calls", "2..5")
    done = record("-o", tmp_path / "new" / "recording", *options, sys.executable, "-c", SHOWS)
    assert done.stdout == f"{tmp_path}/new/recording;a,b;2..5\n"
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1,
        f"There are no recorded calls in '{tmp_path}/new/recording'.",
    )


def model(recording: Path, then: str = "") -> tuple[str, ...]:
    """A command that records what `recording` is."""
    copies = f"import os, shutil, sys; shutil.copytree({str(recording)!r}, os.environ['GTSTUB_RECORD'], "
    return sys.executable, "-c", f"{copies}dirs_exist_ok=True); {then}"


def test_exit_codes_are_those_of_the_command(recording: Path, tmp_path: Path) -> None:
    for number, (then, expected) in enumerate({"": 0, "sys.exit(7)": 7, "os.kill(os.getpid(), 9)": 128 + 9}.items()):
        output = tmp_path / str(number)
        done = record("-o", output, "--", *model(recording, then))
        said = f"'{output}/host-1' has the calls of 'prog' 2, 'other' 1.\n"
        assert (done.returncode, done.stderr) == (expected, said)
    done = record("-o", tmp_path / "new", "--", "no-such-command")
    assert (done.returncode, done.stderr) == (1, "'no-such-command' cannot be run: No such file or directory.\n")


@pytest.mark.parametrize("process", ["host-1", "host-1.incomplete"])
def test_recordings_of_another_run_stay_alone(recording: Path, tmp_path: Path, process: str) -> None:
    (recording / "host-1").rename(recording / process)
    done = record("-o", recording, "--", sys.executable, "-c", f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert (done.returncode, done.stderr) == (
        1,
        f"'{recording}' has recordings of another run: name another directory, or remove it.\n",
    )
    assert not (tmp_path / "ran").exists()
    assert len(archives(recording)) == 1


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = record("-o", tmp_path / "file" / "recording", "true")
    assert (done.returncode, done.stderr) == (
        1,
        f"The directory '{tmp_path}/file/recording' cannot be created: Not a directory.\n",
    )


def test_a_program_that_was_not_loaded_is_said(recording: Path, tmp_path: Path) -> None:
    (recording / "programs.txt").write_text("prog\nother\ncopy_field\nprog\n")
    output = tmp_path / "new"
    done = record("-o", output, "--program", "prog", "--program", "copyfield", "--", *model(recording))
    assert (done.returncode, done.stderr.splitlines()[1:]) == (
        1,
        ["No program 'copyfield' was loaded. Did you mean: 'copy_field'?"],
    )
    shutil.rmtree(output / "host-1")  # as if 'prog' had not been there to be recorded either
    done = record("-o", output, "--program", "zzz", "--", *model(recording))
    assert "No program 'zzz' was loaded. Known: 'copy_field', 'other', 'prog'." in done.stderr.splitlines()
    shutil.rmtree(output / "host-1")
    done = record("-o", output, "--program", "prog", "true")  # what another run has loaded does not count
    assert done.stderr == f"There are no recorded calls in '{output}'.\nNo program 'prog' was loaded.\n"
    assert done.returncode == 1


def test_a_recording_that_lacks_calls_is_said(recording: Path) -> None:
    (recording / "host-1").rename(recording / "host-1.incomplete")
    result = run("record", "-o", recording)
    assert (result.exit_code, result.stderr) == (
        1,
        f"'{recording}/host-1.incomplete' has the calls of 'prog' 2, 'other' 1. Later calls are missing; the process"
        " has reported the reason.\n",
    )


@pytest.mark.parametrize("calls", ["0", "x", "3..2", "..0", "1-2", ""])
def test_calls_that_are_no_range_are_refused(tmp_path: Path, calls: str) -> None:
    result = run("record", "-o", tmp_path, "--calls", calls, "true")
    assert result.exit_code == 2
    assert f"'{calls}' is not of the form 'N', 'N..M', 'N..' or '..M', counted from 1." in result.stderr


def test_serialbox_files_say_what_was_recorded(recording: Path) -> None:
    assert run("record", "-o", recording).exit_code == 0
    folder = recording / "host-1" / "prog"
    metadata = json.loads((folder / "MetaData-prog.json").read_text())
    assert metadata["field_map"]["out"] == {"type_id": 5, "dims": [3], "meta_info": None}
    assert metadata["field_map"]["factor"]["dims"] == [1]
    assert metadata["savepoint_vector"]["fields_per_savepoint"] == [
        {"prog-before": {"x": 0, "factor": 0, "out": 0}},
        {"prog-after": {"out": 1}},
        {"prog-before": {"x": 0, "factor": 0, "out": 2}},
        {"prog-after": {"out": 2}},
    ]
    table = json.loads((folder / "ArchiveMetaData-prog.json").read_text())["fields_table"]
    assert table == {"x": [[0, ""]], "factor": [[0, ""]], "out": [[0, ""], [48, ""], [24, ""]]}


# --- gtstub replay ----------------------------------------------------------------------------------------------------


def test_a_replay_says_which_field_differs_where_and_by_how_much(recording: Path, entry: Path) -> None:
    result = run("replay", recording, entry, "--compare")
    assert (result.exit_code, result.stdout.splitlines()) == (
        1,
        [
            "program  argument  differing calls  process  worst call  elements  index  expected           found  ulp"
            "  absolute     relative",
            "prog     out       1                host-1   1           1 of 3    K 0    5.000000000000002  5      2  "
            "  1.77636e-15  3.55271e-16",
            "",
            "2 calls replayed. Of 2 results, 1 differ by more than the tolerance, 0 by less.",
        ],
    )


def test_calls_that_were_not_made_are_a_failure_of_a_comparison(recording: Path, entry: Path) -> None:
    options = ("--compare", "--ulp", "2")
    for more in ((), ("--json",)):
        result = run("replay", recording, entry, *options, *more)
        assert (result.exit_code, result.stderr) == (
            1,
            "Not replayed: 1 of 'other', for which no program was given: give one, or select programs with"
            " '--program'.\n",
        )
    result = run("replay", recording, entry)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1] == "Not replayed: 1 of 'other', for which no program was given."
    result = run("replay", recording, entry, *options, "--program", "prog")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Not replayed" not in result.stdout
    result = run("replay", recording, entry, "--program", "prag")
    assert (result.exit_code, result.stderr) == (1, "No program 'prag' was recorded. Did you mean: 'prog'?\n")


@pytest.mark.parametrize(
    ("tolerances", "exit_code"),
    [(["2"], 0), (["1"], 1), (["out=2"], 0), (["9", "out=1"], 1), (["x=2"], 1), ([f"{2**64 - 1}"], 0), (["002"], 0)],
)
def test_tolerances(recording: Path, entry: Path, tolerances: list[str], exit_code: int) -> None:
    options = [option for ulp in tolerances for option in ("--ulp", ulp)]
    assert run("replay", recording, entry, "--compare", "--program", "prog", *options).exit_code == exit_code


def test_of_several_variants_the_recorded_one_is_called(
    recording: Path, entry: Path, tmp_path: Path, toolchain: Toolchain
) -> None:
    signature = dataclasses.replace(SMALL_PROGRAM, static_arguments=(StaticArgument("factor", 3.0),))
    without = sdfg(*[one for one in SMALL_SDFG.arguments if one.name != "factor"])
    other = tmp_path / "other"
    build_stub(without, signature, other, toolchain)
    build_recording_library(without, other)
    result = run("replay", recording, other)
    assert (result.exit_code, result.stderr) == (
        1,
        "Argument 'factor' of program 'prog' was compiled in with another value than the recorded one.\n",
    )
    index = recording / "host-1" / "recording.txt"
    digest_of_program, digest_of_sdfg = digest(program_to_json(SMALL_PROGRAM)), digest(sdfg_to_json(SMALL_SDFG))
    text = index.read_text().replace(f"{'0' * 64}\t{'0' * 64}\t3", f"{digest_of_program}\t{digest_of_sdfg}\t3")
    index.write_text(text)
    for programs in ([entry, other], [other, entry]):
        assert run("replay", recording, *programs).exit_code == 0
    result = run("replay", recording, entry, entry / "prog_stub.so")
    assert (result.exit_code, result.stderr) == (
        1,
        "Several programs can replay the calls of 'prog': name only one of them.\n",
    )


def test_an_entry_is_named(recording: Path, entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "cache"))
    cache = Cache(tmp_path / "cache")
    with cache.private_directory("prog") as private:
        folder = Path(shutil.copytree(entry, private / "entry"))
        manifest = Manifest("prog", "prog_stub.so", SMALL_SDFG.library, baked={"n": 1})
        path = cache.publish(folder, make_key("prog", {}), manifest).path
    by_path = run("replay", recording, path)
    assert by_path.stdout.startswith("2 calls replayed.")
    for name in ("prog", "prog@n=1"):
        assert run("replay", recording, name).stdout == by_path.stdout
    result = run("replay", recording, "prag")
    assert (result.exit_code, result.stdout) == (6, "")
    assert result.stderr.endswith(" has no entry 'prag'. Did you mean: 'prog'?\n")


def test_a_replay_without_comparison_succeeds(recording: Path, entry: Path) -> None:
    result = run("replay", recording / "host-1", entry / "prog_stub.so")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "2 calls replayed.")


def test_a_replay_as_a_step_finds_the_same(recording: Path, entry: Path) -> None:
    options = ("replay", recording, entry, "--compare", "--program", "prog")
    calls, step = run(*options), run(*options, "--step")
    assert (step.exit_code, step.stdout) == (calls.exit_code, calls.stdout) == (1, calls.stdout)
    assert "2 calls replayed." in step.stdout
    result = run("replay", recording, entry, "--step", "--check", "nan")
    assert result.exit_code == 2
    assert "'--step' is not for '--check' and '--build-checks'" in result.stderr


def test_a_replay_as_json(recording: Path, entry: Path) -> None:
    result = run("replay", recording, entry, "--compare", "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert {name: value for name, value in report.items() if name != "comparisons"} == {
        "schema": "gtstub/replay/1",
        "calls": 2,
        "left_out": {"other": 1},
    }
    worst = {"index": [0], "expected": np.nextafter(np.nextafter(5.0, 9), 9), "found": 5, "ulp": 2}
    assert report["comparisons"][0] == {
        "process": "host-1",
        "program": "prog",
        "call": 1,
        "argument": "out",
        "dtype": "float64",
        "dims": ["K"],
        "elements": 3,
        "tolerance": 0,
        "differ": 1,
        "beyond": 1,
        "worst": {**worst, "absolute": 1.77636e-15, "relative": 3.55271e-16},
    }
    assert report["comparisons"][1]["worst"] is None
    assert run("replay", recording, entry, "--jq", ".comparisons | length").stdout == "2\n"


def test_what_cannot_be_replayed_is_refused(recording: Path, entry: Path, tmp_path: Path) -> None:
    def refusal(*arguments: str | Path) -> tuple[int, str]:
        result = run("replay", *arguments)
        return result.exit_code, result.stderr

    assert refusal(tmp_path / "nowhere", entry) == (1, f"There is no recording in '{tmp_path}/nowhere'.\n")
    assert refusal(recording, tmp_path / "nothing") == (
        1,
        f"Cannot open '{tmp_path}/nothing': No such file or directory.\n",
    )
    assert refusal(recording, entry, "--compare", "--ulp", "y=1") == (1, "No recorded program has an argument 'y'.\n")
    code, text = refusal(recording, entry, "--compare", "--ulp", "few")
    assert (code, "'few' is neither N nor ARGUMENT=N." in text) == (2, True)
    for most in (str(2**64), "9" * 5000):
        code, text = refusal(recording, entry, "--compare", "--ulp", f"out={most}")
        assert (code, f"is more than {2**64 - 1}, the greatest tolerance." in text) == (2, True)
    code, text = refusal(recording, entry, "--backend", "GTFN")
    assert (code, "'GTFN' is not one of 'EMBEDDED', 'CPU', 'GTFN_CPU'," in text) == (2, True)
    code, text = refusal(recording, entry, "--ulp", "2")
    assert (code, "'--ulp' is for '--compare'." in text) == (2, True)
    index = recording / "host-1" / "recording.txt"
    text = index.read_text()
    another = "which is not in the recording, or is of another kind there: it is not the program that was recorded.\n"
    (recording / "host-1" / "prog" / "prog_z.dat").write_bytes(bytes(24))
    for found, other, message in (
        ("\tprog\tprog\t", "\tprog\tgone\t", "No call of 'prog' was recorded, but of 'gone', 'other'.\n"),
        ("leaf\tx\tx", "leaf\tz\tz", f"Program 'prog' takes argument 'x', {another}"),
        ("scalar\tfloat64", "scalar\tint64", f"Program 'prog' takes argument 'factor', {another}"),
        ("field\tfloat64", "field\tint64", "Argument 'x' of program 'prog' must have dtype 'float64', not 'int64'.\n"),
    ):
        assert found in text
        index.write_text(text.replace(found, other))
        assert refusal(recording, entry) == (1, message)


WHOLE = """\
gtstub/recording/1
program	whole	whole	{digest}	{digest}	8
leaf	vn	vn	field	float64	0	2	Edge	K
leaf	x_0	x[0]	field	float64	0	1	K
leaf	x_1_0	x[1][0]	scalar	int32	0	0
leaf	x_1_1	x[1][1]	zero_dim_field	float32	0	0
leaf	flag	flag	scalar	bool	0	0
leaf	out_0	out[0]	field	float64	1	2	Edge	K
leaf	out_1	out[1]	field	float64	1	2	Edge	K
leaf	gt_conn_E2V	E2V	connectivity	int32	0	2	Edge	E2V	Vertex	0
call	whole	1
value	1	0	-1	0	0	3	4	0	0	1	8
value	1	0	-1	1	0	4	0	1
value	1	0	-1	2	0
value	1	0	-1	3	0
value	1	0	-1	4	0
value	1	0	0	5	72	3	4	0	-2	1	-3
value	1	0	0	0	8	3	4	0	0	1	8
value	1	0	-1	7	0	3	2	0	0	1	3
"""


@pytest.mark.parametrize("more", [(), ("--step",)])
def test_layouts_are_as_recorded(
    more: tuple[str, ...], tmp_path: Path, toolchain: Toolchain, capfd: pytest.CaptureFixture[str]
) -> None:
    archive, folder = tmp_path / "host-1", tmp_path / "entry"
    (archive / "whole").mkdir(parents=True)
    (archive / "recording.txt").write_text(WHOLE.format(digest="0" * 64))
    field = np.add.outer(np.arange(3.0), 10 * np.arange(4.0))
    values = {"vn": field, "x_0": field[0], "x_1_0": np.int32(7), "x_1_1": np.float32(0.5), "flag": np.bool_(True)}
    values |= {"out_0": -field, "out_1": field + 1, "gt_conn_E2V": np.full((3, 2), 5, np.int32)}  # no index is 0
    for name, value in values.items():
        (archive / "whole" / f"whole_{name}.dat").write_bytes(value.tobytes("F"))
    build_stub(WHOLE_SDFG, WHOLE_PROGRAM, folder, toolchain)
    recorder = Recorder(build_recording_library(WHOLE_SDFG, folder))
    result = run("replay", tmp_path, folder, "--compare", *more)
    assert (result.exit_code, result.stderr, capfd.readouterr().err) == (0, "", "")
    assert result.stdout == "1 call replayed. Of 2 results, 0 differ by more than the tolerance, 0 by less.\n"
    (slots,) = recorder.calls()
    strides = [slots[f"__{name}_stride"] for name in ("vn_K", "out_0_K", "out_1_K", "gt_conn_E2V_neighbor")]
    assert strides == [8, -3, 8, 3]
    assert (slots["__nk"], slots["__out_0_K_range_0"], slots["__out_0_K_range_1"]) == (4, -2, 2)
    assert (slots["x_1_0"], slots["x_1_1"], slots["flag"]) == (7, 0.5, True)
    assert slots["out_1"] == slots["vn"] + 8


def test_a_program_for_a_gpu_is_refused(recording: Path, tmp_path: Path, toolchain: Toolchain) -> None:
    folder, on_device = tmp_path / "gpu", on_gpu(SMALL_SDFG)
    build_stub(on_device, SMALL_PROGRAM, folder, toolchain)
    build_recording_library(on_device, folder)
    result = run("replay", recording, folder)
    assert (result.exit_code, result.stderr) == (
        1,
        "Program 'prog' takes arrays on a GPU, where calls are not replayed: give one for a CPU.\n",
    )


def test_a_plot_shows_where_the_worst_field_differs(recording: Path, entry: Path, tmp_path: Path) -> None:
    plot = tmp_path / "worst.svg"
    result = run("replay", recording, entry, "--plot", plot)
    assert (result.exit_code, result.stderr) == (0, f"'{plot}' was written.\n")
    drawn = plot.read_text()
    labels = ["\N{MINUS SIGN}1", "0", "1", "K", "1", "2", "5", "10", "difference [ulp]"]
    title = "out of prog, call 1 of host-1: 1 of 3 elements differ"
    assert re.findall(">([^<]+)</text>", drawn) == [*labels, title]
    assert run("replay", recording, entry, "--plot", tmp_path / "again.svg").exit_code == 0
    assert (tmp_path / "again.svg").read_text() == drawn
    with (recording / "host-1" / "prog" / "prog_out.dat").open("r+b") as file:
        file.seek(48)
        file.write(np.array([4.0, 5.0, 6.0]).tobytes())
    result = run("replay", recording, entry, "--plot", tmp_path / "none.svg")
    assert (result.exit_code, result.stderr) == (0, f"'{tmp_path}/none.svg' was not written: nothing differs.\n")
    assert not (tmp_path / "none.svg").exists()
    result = run("replay", tmp_path / "nowhere", entry, "--plot", "worst.pdf")
    assert (result.exit_code, result.stderr) == (
        1,
        "A plot file must end in '.svg' or '.png', but is 'worst.pdf'.\n",
    )


@pytest.mark.parametrize(
    ("shape", "where"), [((3,), (1,)), ((), ()), ((5, 4), (4, 3)), ((2, 3, 4, 5), (1, 2, 0, 4)), ((1200, 3), (1199, 0))]
)
def test_a_plot_misses_no_element(shape: tuple[int, ...], where: tuple[int, ...]) -> None:
    distances = np.zeros(shape)
    distances[where] = 8
    plane, steps = to_plane(distances)
    assert max(plane.shape) <= MOST_CELLS
    assert plane.max() == 8
    row, column = (0, 0, *where)[-2:]
    assert plane[row // steps[0], column // steps[1]] == 8
    assert np.count_nonzero(plane) == 1


def test_a_plot_says_what_its_cells_stand_for() -> None:
    says = "\neach cell shows the largest difference "
    assert collapsed(("I", "J", "K"), (1, 1)) == f"{says}along I"
    assert collapsed(("I", "J", "K", "tracer"), (2, 1)) == f"{says}along I and J, and of 2 × 1 neighbors"
    assert collapsed(("K",), (1, 3)) == f"{says}of 3 neighbors"
    assert collapsed(("I", "K"), (1, 1)) == collapsed((), (1, 1)) == ""


def test_a_scale_of_a_plot_has_whole_numbers() -> None:
    assert ticks(10.0) == [1, 2, 5, 10]
    assert ticks(700.0) == [1, 2, 5, 10, 20, 50, 100, 200, 500]
    assert ticks(1e4) == [1, 10, 100, 1000, 10000]
    assert ticks(2.0**63) == [10.0**power for power in range(0, 19, 2)]


# --- Distances --------------------------------------------------------------------------------------------------------


def distance(a: object, b: object, dtype: str = "float64") -> int:
    x, y = np.array([a], dtype), np.array([b], dtype)
    found = ulp_distances(x, y)
    assert ulp_distances(y, x) == found
    return int(found[0])


@pytest.mark.parametrize("number", [0.0, 1.0, -1.0, 1e300, -1e-300, 4e-324, 1.0 - 2.0**-53, -(2.0**-1022)])
def test_neighbors_are_one_apart(number: float) -> None:
    above, below = np.nextafter(number, np.inf), np.nextafter(number, -np.inf)
    assert (distance(number, above), distance(below, number), distance(below, above)) == (1, 1, 2)
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.float32(number)
        assert distance(narrow, np.nextafter(narrow, np.float32(-np.inf)), "float32") == (
            1 if np.isfinite(narrow) else APART
        )


def test_distances() -> None:
    assert distance(1.0, 2.0) == 2**52
    assert distance(1.0, 2.0, "float32") == 2**23
    assert distance(-4e-324, 4e-324) == 2
    assert distance(-1.7976931348623157e308, 1.7976931348623157e308) == 2 * 0x7FEFFFFFFFFFFFFF
    half = [np.uint16(bits).view(np.float16) for bits in (0x3C00, 0x3C01, 1, 0x8001, 0x7C00, 0x7E00)]
    found = [distance(*pair, "float16") for pair in zip(half[::2], half[1::2], strict=True)]
    assert (found, distance(half[0], half[4], "float16")) == ([1, 2, APART], APART)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_has_no_neighbors(dtype: str) -> None:
    assert distance(0.0, -0.0, dtype) == 0
    assert distance(np.nan, -np.nan, dtype) == 0
    assert distance(np.inf, np.inf, dtype) == 0
    for a, b in ((np.nan, 1.0), (np.inf, np.finfo(dtype).max), (np.inf, -np.inf), (np.nan, np.inf)):
        assert distance(a, b, dtype) == APART


def test_everything_else_is_equal_or_not() -> None:
    assert (distance(1, 1, "int32"), distance(1, 2, "int32"), distance(1, 2**64 - 1, "uint64")) == (0, APART, APART)
    truth = np.array([1, 0xFF, 0], np.uint8).view(np.bool_)
    assert ulp_distances(truth[:2], truth[1:]).tolist() == [0, APART]


def test_of_complex_numbers_the_part_counts_that_differs_more() -> None:
    one = np.nextafter(1.0, 2.0)
    assert distance(1 + 2j, one + 2j, "complex128") == 1
    assert distance(1 + 2j, complex(one, 2 + 2.0**-49), "complex128") == 4
    assert distance(complex(np.nan, 2), 1 + 2j, "complex128") == APART
    assert distance(complex(np.nan, 2), complex(-np.nan, 2), "complex128") == 0
    assert distance(complex(-0.0, 1), 1j, "complex64") == 0


def compared(expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any], tolerance: int = 0) -> dict[str, Any]:
    dtype, shape = str(expected.dtype), expected.shape
    leaf = Leaf("a", "a", "field", dtype, True, ("I", "K")[: len(shape)])
    value = Value(leaf, 1, 0, 0, 0, 0, shape, (-2, 10)[: len(shape)], (1,) * len(shape))
    return compare(
        Call(Program("p", "p", "", "", (leaf,)), 1, (value,)), value, [expected.ravel("F")], found, tolerance
    )


def test_comparisons_find_the_worst() -> None:
    expected = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    found = expected.copy()
    assert compared(expected, found)["worst"] is None
    found[1] = np.nextafter(2, 3)
    found[3] = np.nextafter(np.nextafter(4, 5), 5)
    found[4] = np.nextafter(np.nextafter(5, 4), 4)
    result = compared(expected, found, 1)
    assert (result["differ"], result["beyond"], result["worst"]["index"], result["worst"]["ulp"]) == (3, 2, [1], 2)
    found[4] = np.nan
    result = compared(expected, found, APART)
    assert (result["differ"], result["beyond"]) == (3, 1)
    assert result["worst"] == {
        "index": [2],
        "expected": 5,
        "found": "nan",
        "ulp": None,
        "absolute": "nan",
        "relative": "nan",
    }
    assert compared(np.array([0]), np.array([3]), APART)["worst"] == {
        "index": [-2],
        "expected": 0,
        "found": 3,
        "ulp": None,
        "absolute": 3,
        "relative": None,
    }


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_first_axis_is_the_fastest(order: Literal["C", "F"]) -> None:
    expected = np.ones((3, 4), np.float32, "F")
    found = np.array(expected, order=order)
    found[0, 2] = found[1, 1] = 0.1
    worst = compared(expected, found)["worst"]
    assert (worst["index"], worst["expected"], worst["found"]) == ([-1, 11], 1, 0.100000001)


def test_numbers_without_axes_are_compared() -> None:
    for dtype in ("float64", "complex64", "int8", "bool"):
        a, b = np.zeros((), dtype), np.ones((), dtype)
        assert (compared(a, a)["differ"], compared(a, b)["differ"], compared(a, b)["worst"]["index"]) == (0, 1, [])


# --- Progress ---------------------------------------------------------------------------------------------------------


def stderr_of_terminal(*arguments: str | Path) -> str:
    """What the command says on a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from gtstub.cli.app import main; main(prog_name='gtstub')", *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment):
        os.close(theirs)
        said = b""
        try:
            while some := os.read(ours, 1 << 16):
                said += some
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    return said.decode()


def test_a_terminal_is_told_how_far_it_is(recording: Path, entry: Path, tmp_path: Path) -> None:
    said = stderr_of_terminal("replay", recording, entry)
    assert "3/3" in said
    assert "prog" in said
    output = tmp_path / "new"
    said = stderr_of_terminal("record", "-o", output, "--", *model(recording))
    assert f"Recording the calls of '{sys.executable}' to '{output}'." in said
    assert "1/1" in said
    assert run("replay", recording, entry).stderr == ""
