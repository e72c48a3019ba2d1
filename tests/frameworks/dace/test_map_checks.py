"""GTSTUB_BUILD_CHECKS=1, and `gtstub replay --build-checks`: programs that are built with checks after their maps."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import dace
import numpy as np
import pytest

import gtstub
from gtstub.frameworks.dace.map_checks import with_map_checks
from gtstub.stub.signature.dtypes import NUMBERS
from tests.support.checkout import ROOT
from tests.support.cli import run
from tests.support.dace_programs import check_same
from tests.support.own_cache import use_own_cache

N, M = (dace.symbol(name) for name in "NM")


@gtstub.program
@dace.program
def advance(a: dace.float64[N, M], b: dace.float64[N, M], total: dace.float64[N], steps: dace.int32):
    doubled = a * 2
    b[1:-1, :] = np.sqrt(doubled[2:, :]) + doubled[:-2, :]  # the line of the first map that writes NaN
    for _ in range(steps):
        b[:] = b + 1
    total[:] = np.sum(b, axis=1)
    for i in dace.map[0:N]:
        if a[i, 0] != 7:  # a map that need not write all elements
            b[i, 0] = total[i] / a[i, 0]


SOURCE = Path(__file__).read_text(encoding="utf-8").splitlines()

(LINE,) = (
    number for number, line in enumerate(SOURCE, 1) if line.endswith("# the line of the first map that writes NaN")
)

OF_SQRT = (
    f"is nan at [1, 2] after map '_numpy_sqrt__map' (test_map_checks.py:{LINE}); check 'finite' refuses 1 of 20 "
    f"elements."
)


def arguments() -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    return np.full((6, 5), 3.0), np.ones((6, 5)), np.zeros(6), 2


def wrong_arguments() -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    made = arguments()
    made[0][3, 2] = -1
    return made


def test_programs_that_are_built_with_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("GTSTUB_PROGRESS", "off")
    plain, checked = arguments(), arguments()
    advance(*plain)
    advance.clear()
    monkeypatch.setenv("GTSTUB_BUILD_CHECKS", "1")
    with gtstub.checks("finite"):
        advance(*checked)
        check_same(checked, plain)
        with pytest.raises(RuntimeError) as error:
            advance(*wrong_arguments())
        assert str(error.value).startswith("Array 'sqrt_doubled_slice' of program ")
        assert str(error.value).endswith(OF_SQRT)
        negative = arguments()
        negative[0][2, 0] = 0
        text = r"Argument 'b' .* is inf at axis_0 2, axis_1 0 after map '\w+_advance_\d+'"
        with gtstub.checks("max b=1e9"), pytest.raises(RuntimeError, match=text):
            advance(*negative)
    with gtstub.checks("max total=50; warn"):  # what a nested SDFG writes is the argument of the program
        advance(*arguments())
    (warning,) = capfd.readouterr().err.splitlines()
    assert " at axis_0 1 after map 'reduce_output'; check 'max total=50' refuses 4 of 6 elements" in warning
    assert len(list(tmp_path.glob("*/manifest.json"))) == 2
    advance.clear()


MODEL = """
from tests.frameworks.dace.test_map_checks import advance, arguments, wrong_arguments

for values in (arguments(), wrong_arguments()):
    advance(*values)
"""


def test_a_replay_finds_the_first_map_that_writes_nan(tmp_path: Path) -> None:
    """The recorded calls are those of a program without checks, whose entry has all that another build needs."""
    command = [sys.executable, "-c", "from gtstub.cli.app import main; main()", "record", "-o", "recording", "--"]
    variables = {"GTSTUB_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, sys.executable, "-c", MODEL], env={**os.environ, **variables}, cwd=tmp_path, check=True)
    recording = str(tmp_path / "recording")
    (entry,) = (str(manifest.parent) for manifest in (tmp_path / "cache").rglob("manifest.json"))
    found = run("replay", recording, entry, "--build-checks")
    assert found.exit_code == 1
    assert found.stderr.startswith("Call 2 of '")
    assert found.stderr.endswith(f"': Array 'sqrt_doubled_slice' of program '{Path(entry).name[:-33]}' {OF_SQRT}\n")
    found = run("replay", recording, entry, "--build-checks", "--check", "max total=1000", "--compare")
    assert (found.exit_code, found.stderr) == (0, "")
    found = run("replay", recording, entry, "--check", "max a=2")
    assert (found.exit_code, "Call 1 of '" in found.stderr, "before the call" in found.stderr) == (1, True, True)
    found = run("replay", recording, "a.module:program", "--build-checks")
    said = "'--build-checks' is for entries of a cache, but 'a.module:program' is a program.\n"
    assert (found.exit_code, found.stderr) == (1, said)
    found = run("replay", recording, entry, "--check", "max a")
    assert (found.exit_code, "must have the form 'max PATTERN=NUMBER'" in found.stderr) == (1, True)


TABLE = np.ones(4)


@functools.wraps(np.sqrt)  # a decorator that DaCe does not know, so that it makes a callback of the function
def root(value: float) -> float:
    return float(np.sqrt(value))


@gtstub.program
@dace.program
def calls_python(a: dace.float64[4], b: dace.float64[4]):
    for i in dace.map[0:4]:
        found: dace.float64 = root(a[i])
        b[i] = found + TABLE[i]
    a[:] = b


def test_a_map_that_calls_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_own_cache(tmp_path, monkeypatch)
    monkeypatch.setenv("GTSTUB_BUILD_CHECKS", "1")
    a, b = np.full(4, 4.0), np.zeros(4)
    with gtstub.checks("nan"), np.errstate(invalid="ignore"):
        calls_python(a, b)
        assert (a.tolist(), b.tolist()) == ([3.0] * 4, [3.0] * 4)
        a[2] = -1
        with pytest.raises(
            RuntimeError, match=r"^Argument 'b' of .* is nan at axis_0 2 after map '\w*calls_python\w*' "
        ):
            calls_python(a, b)
    calls_python.clear()


def test_maps_on_a_gpu() -> None:
    """The generated code says that the memory is the GPU's; no compiler is needed to see it."""
    on_gpu, kernel = dace.StorageType.GPU_Global, dace.ScheduleType.GPU_Device

    @gtstub.program
    @dace.program
    def doubled(a: dace.float64[N] @ on_gpu, b: dace.float64[N] @ on_gpu):
        for i in dace.map[0:N] @ kernel:
            b[i] = 2 * a[i]

    parsed = doubled.parse()
    with parsed.build.context():
        code = "".join(each.clean_code for each in with_map_checks(parsed.sdfg).generate_code())
    (output,) = re.findall(r'gts_map_output outputs\[\] = \{\{"map \S+ \(test_map_checks.py:\d+\)", (.*)\}\};', code)
    axes = "{{static_cast<int64_t>(0), static_cast<int64_t>(1), static_cast<int64_t>(N), static_cast<int64_t>(1)}}"
    assert output == f'"b", (void *)written_0, {NUMBERS["float64"]}, 1, true, true, true, {axes}'
