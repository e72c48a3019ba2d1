"""
Recordings of C hosts: what is in them, what becomes of them when the process or the disk gives out, and that the calls
can be repeated. Read by gtstub's reader and, where it is installed, by serialbox.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.tools.recorded.archive import Archive, Call, archives, loaded_programs
from gtstub.tools.recorded.serialbox import write_serialbox_files
from tests.support import target
from tests.support.c_hosts import ENVIRONMENT, SOURCES, WHOLE, Build, address, plain, thread
from tests.support.cli import run
from tests.support.signatures import SMALL_PROGRAM, SMALL_SDFG, on_gpu
from tests.support.stubs import build_stub, write_stub

Model = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def model(build: Build) -> Model:
    """Runs record.c and records it into `recording`, which is removed first."""
    if not (build.folder / "record").exists():
        build.compile("libsum.so", SOURCES / "sum.c", "-shared", "-lm")
        build.executable(SOURCES / "record.c")

    def record(
        work: str, *, into: str = "recording", stub: str = "./prog_stub.so", **settings: str
    ) -> subprocess.CompletedProcess[str]:
        shutil.rmtree(build.folder / into, ignore_errors=True)
        return subprocess.run(
            target.command("./record", work, stub, "./libsum.so", *WHOLE),
            cwd=build.folder,
            env={**ENVIRONMENT, "GTSTUB_RECORD": into, **settings},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return record


def recorded(build: Build, model: Model, work: str, **settings: str) -> list[Archive]:
    done = model(work, **settings)
    assert (done.returncode, done.stderr) == (0, "")
    return archives(build.folder / "recording")


def the_one(found: list[Archive]) -> Archive:
    (archive,) = found
    return archive


def values(archive: Archive, call: Call) -> dict[str, tuple[list[float], list[float] | None]]:
    """Before and after, by name."""
    return {
        value.leaf.name: (
            archive.load(call, value, "before").ravel("F").tolist(),
            None if value.after is None else archive.load(call, value, "after").ravel("F").tolist(),
        )
        for value in call.values
    }


# --- What is recorded -------------------------------------------------------------------------------------------------


@address
def test_calls_have_their_arguments_before_and_after(build: Build, model: Model) -> None:
    archive = the_one(recorded(build, model, "all ways"))
    assert re.fullmatch(r".+-\d+", archive.path.name)
    assert [call.number for call in archive.calls] == [1, 3, 4, 5, 6, 7]  # the second one was refused
    assert [values(archive, call) for call in archive.calls[:-1]] == [
        {"x": ([1, 2, 3], None), "factor": ([2.5], None), "out": ([0, 0, 0], [2.5, 6, 9.5])},
        {
            "x": ([1, 2, 3, 4], None),
            "factor": ([0.1], None),
            "out": ([2.5, 6, 9.5, 0], [0.1, 0.1 * 2 + 1, 0.1 * 3 + 2, 0.1 * 4 + 3]),
        },
        {
            "x": ([1, 2, 3, 4, 5, 6], None),
            "factor": ([3], None),
            "out": ([1, 2, 3, 4, 5, 6], [3, 9, 18, 30, 45, 63]),
        },
        {
            "x": ([9, 18, 30, 45, 63, 7], None),
            "factor": ([0.25], None),
            "out": ([3, 9, 18, 30, 45, 63], [2.25, 13.5, 25.5, 41.25, 60.75, 64.75]),
        },
        {"x": ([], None), "factor": ([1], None), "out": ([], [])},
    ]
    last = values(archive, archive.calls[-1])
    np.testing.assert_array_equal(last["x"][0], [np.nan, -0.0, np.inf])
    assert np.signbit(last["x"][0][1])


@address
def test_layouts_are_recorded(build: Build, model: Model) -> None:
    archive = the_one(recorded(build, model, "all ways"))
    x, _, out = archive.calls[1].values
    assert (x.origin, out.origin) == ((5,), (7,))
    assert x.memory != out.memory
    x, _, out = archive.calls[2].values
    assert (x.memory, x.offset) == (out.memory, out.offset)
    x, _, out = archive.calls[3].values
    assert (x.memory, x.offset, out.offset) == (out.memory, 8, 0)


@address
def test_strided_fields_scalars_and_tables(build: Build, model: Model) -> None:
    archive = the_one(recorded(build, model, "whole"))
    first, second = archive.calls
    found = {value.leaf.name: value for value in first.values}
    levels, edges = np.meshgrid(np.arange(4), np.arange(6))
    np.testing.assert_array_equal(archive.load(first, found["vn"], "before"), 10 * levels + edges)
    np.testing.assert_array_equal(archive.load(first, found["out_0"], "before"), 130 - 10 * levels + edges)
    assert (found["vn"].strides, found["out_0"].strides) == ((1, 8), (1, -6))
    assert (found["out_0"].offset, found["out_0"].origin) == (6 * 3 * 8, (0, -2))
    scalars = ("x_1_0", "x_1_1", "flag")
    assert [archive.load(first, found[name], "before").item() for name in scalars] == [-3, 0.5, True]
    assert archive.load(second, second.values[2], "before").item() == 7
    table = found["gt_conn_E2V"]
    assert archive.load(first, table, "before").ravel("F").tolist() == list(range(12))
    assert (table.leaf.dims, table.leaf.codomain, table.leaf.has_skip_values) == (("Edge", "E2V"), "Vertex", False)
    assert [value.before for value in second.values if value.leaf.name != "x_1_0"] == [
        value.before for value in first.values if value.leaf.name != "x_1_0"
    ]  # what is as before is not written again


@address
@pytest.mark.parametrize("work", ["all ways", "whole"])
def test_serialbox_reads_the_same_values(build: Build, model: Model, work: str) -> None:
    serialbox = pytest.importorskip("serialbox")
    archive = the_one(recorded(build, model, work))
    write_serialbox_files(archive)
    (program,) = archive.programs
    directory = str(archive.path / program.id)
    serializer = serialbox.Serializer(serialbox.OpenModeKind.Read, directory, program.id)
    for call in archive.calls:
        for when in ("before", "after"):
            expected = {
                value.field: archive.load(call, value, when)
                for value in call.values
                if (when == "before" or value.after is not None) and 0 not in value.shape
            }
            if not expected:
                continue
            savepoint = serializer.savepoint[f"{program.id}-{when}"].call[call.number].as_savepoint()
            assert set(serializer.fields_at_savepoint(savepoint)) == set(expected)
            for name, field in expected.items():
                found = serializer.read(name, savepoint)
                assert found.dtype == field.dtype
                np.testing.assert_array_equal(found.reshape(field.shape), field)


@address
def test_programs_and_calls_are_chosen(build: Build, model: Model) -> None:
    chosen = recorded(build, model, "all ways", GTSTUB_RECORD_CALLS="3..4", GTSTUB_RECORD_PROGRAMS="whole,prog")
    assert [call.number for call in the_one(chosen).calls] == [3, 4]
    for calls, numbers in {"..1": [1], "6..": [6, 7], "4": [4]}.items():
        chosen = recorded(build, model, "all ways", GTSTUB_RECORD_CALLS=calls)
        assert [call.number for call in the_one(chosen).calls] == numbers
    chosen = recorded(build, model, "all ways", GTSTUB_RECORD_PROGRAMS="whole, \tprog ,other")
    assert len(the_one(chosen).calls) == 6
    assert recorded(build, model, "all ways", GTSTUB_RECORD_PROGRAMS="pro,whole,rog, pro g") == []
    assert loaded_programs(build.folder / "recording") == ["prog"]
    assert recorded(build, model, "all ways", GTSTUB_RECORD="") == []


@address
def test_what_cannot_be_recorded_is_said(build: Build, model: Model) -> None:
    for calls in ("0", "x", "2..1", "1..x", "1,2"):
        done = model("all ways", GTSTUB_RECORD_CALLS=calls)
        assert (done.returncode, done.stderr) == (
            0,
            "Nothing is recorded: GTSTUB_RECORD_CALLS must be 'N', 'N..M', 'N..' or '..M', counted from 1, not"
            f" '{calls}'.\n",
        )
    done = model("all ways", into="not/there")
    assert (done.returncode, done.stderr) == (
        0,
        "Nothing is recorded: directory 'not/there' cannot be created: No such file or directory.\n",
    )
    folder = build.folder / "gpu"
    write_stub(on_gpu(SMALL_SDFG), SMALL_PROGRAM, folder)
    build.shared("gpu_stub.so", folder / "prog_stub.c", "-I", str(folder), "-fvisibility=hidden")
    done = model("gpu", stub="./gpu_stub.so")
    assert (done.returncode, done.stderr) == (
        0,
        "Program 'prog' is not recorded: its argument 'x' is on device 'cuda', and no program has been loaded whose"
        " kernels run there.\n",
    )
    assert archives(build.folder / "recording") == []


# --- When something gives out -----------------------------------------------------------------------------------------


@plain
def test_calls_before_a_kill_are_there(build: Build, model: Model) -> None:
    assert model("killed").returncode == -9
    archive = the_one(archives(build.folder / "recording"))
    assert [values(archive, call)["factor"][0] for call in archive.calls] == [[10], [11], [12]]
    assert archive.is_complete  # nothing says that more was to come


@address
def test_a_full_disk_ends_the_recording_and_not_the_model(build: Build, model: Model) -> None:
    counts = set()
    for limit in (*range(0, 1600, 160), 3000, 5000, 30_000):
        done = model("full disk", LIMIT=str(limit))
        archive = the_one(archives(build.folder / "recording"))
        count = len(archive.calls)
        counts.add(count)
        assert [call.number for call in archive.calls] == list(range(1, count + 1))
        for call in archive.calls:
            found = values(archive, call)
            x, (factor,) = found["x"][0], found["factor"][0]
            assert found["out"][1] == [factor * x[i] + (x[i - 1] if i > 0 else 0) for i in range(len(x))]
        assert archive.is_complete == (count == 20)
        assert (done.returncode, done.stderr) == (
            0,
            ""
            if count == 20
            else f"The recording ends before call {count + 1} of program 'prog', because '{archive.path.resolve()}'"
            " cannot be written: File too large. All calls before it can be replayed.\n",
        )
    assert {0, 20} < counts
    assert len(counts) > 4


@address
def test_a_forked_child_has_an_archive_of_its_own(build: Build, model: Model) -> None:
    parent, child = sorted(recorded(build, model, "fork"), key=lambda archive: len(archive.calls), reverse=True)
    assert [values(parent, call)["factor"][0] for call in parent.calls] == [[1], [3]]
    assert [values(child, call)["factor"][0] for call in child.calls] == [[2]]


def check_threads(build: Build, model: Model) -> None:
    archive = the_one(recorded(build, model, "threads"))
    of_prog = [call for call in archive.calls if call.program.name == "prog"]
    of_whole = [call for call in archive.calls if call.program.name == "whole"]
    assert sorted(call.number for call in of_prog) == list(range(1, 201))
    assert sorted(call.number for call in of_whole) == list(range(1, 101))
    for call in of_prog:
        found = values(archive, call)
        (factor,) = found["factor"][0]
        assert found["out"][1] == [factor, factor * 2 + 1, factor * 3 + 2]


@address
def test_threads(build: Build, model: Model) -> None:
    check_threads(build, model)


@thread
def test_threads_do_not_race(build: Build, model: Model) -> None:
    check_threads(build, model)


@address
def test_layouts(build: Build) -> None:
    build.run("layout.c", stubs=[])


# --- Replaying --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not target.IS_NATIVE, reason="another machine may round otherwise")
@plain
def test_replays(build: Build, model: Model, tmp_path: Path, toolchain: Toolchain) -> None:
    archive = the_one(recorded(build, model, "all ways")).path

    def replay(name: str, flags: Sequence[str], *options: str) -> tuple[int, list[dict[str, Any]]]:
        folder = tmp_path / name
        if not folder.exists():
            build_stub(SMALL_SDFG, SMALL_PROGRAM, folder, toolchain)
            library = folder / SMALL_SDFG.library
            subprocess.run(["gcc", "-shared", "-fPIC", *flags, SOURCES / "sum.c", "-lm", "-o", library], check=True)
        result = run("replay", str(archive), str(folder), "--compare", "--json", *options)
        return result.exit_code, json.loads(result.stdout)["comparisons"]

    for more in ((), ("--step",)):
        code, found = replay("same", (), *more)
        assert (code, [one["call"] for one in found]) == (0, [1, 3, 4, 5, 6, 7])
        assert all(one["worst"] is None for one in found)
        code, found = replay("spoiled", ("-DSPOIL=3",), *more)
        assert (code, [one["beyond"] for one in found]) == (1, [1, 1, 1, 1, 0, 0])
        assert found[1] == {
            "process": archive.name,
            "program": "prog",
            "call": 3,
            "argument": "out",
            "dtype": "float64",
            "dims": ["K"],
            "elements": 4,
            "tolerance": 0,
            "differ": 1,
            "beyond": 1,
            "worst": {
                "index": [9],
                "expected": 2.3,
                "found": 2.3000000000000012,
                "ulp": 3,
                "absolute": 1.33227e-15,
                "relative": 5.79247e-16,
            },
        }
    code, found = replay("spoiled", (), "--ulp", "3")
    assert (code, {one["tolerance"] for one in found}, sum(one["differ"] for one in found)) == (0, {3}, 4)
    code, found = replay("spoiled", (), "--ulp", "3", "--ulp", "out=2")
    assert (code, {one["tolerance"] for one in found}) == (1, {2})
