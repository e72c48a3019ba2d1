"""Where the SDFGs of a process have the memory of their arrays from."""

import os
import re
import resource
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import dace
import numpy as np
import pytest

import gtstub
from tests.frameworks.dace.test_forks import in_child
from tests.support.checkout import ROOT
from tests.support.recorded_dace import opaque

N = dace.symbol("N")


@gtstub.program
@dace.program
def smoothed(a: dace.float64[N], b: dace.float64[N]):
    twice = a * 2.0
    root = np.sqrt(twice) + a
    b[:] = root * twice


@gtstub.program
@dace.program
def larger(a: dace.float64[N], b: dace.float64[N]):
    wide = np.zeros([3 * N], dace.float64)
    wide[N : 2 * N] = a + 1.0
    b[:] = wide[N : 2 * N] * 2.0 + wide[0:N]


@gtstub.program
@dace.program
def calling_back(a: dace.float64[N], b: dace.float64[N]):
    twice = a * 2.0
    call_another()
    b[:] = twice + 1.0


@opaque
def call_another() -> None:
    inner = np.zeros(SIZE)
    larger(np.ones(SIZE), inner)
    assert inner.tolist() == [4.0] * SIZE


SIZE = 200_000
A, B = np.random.default_rng(1).uniform(0.5, 1.5, (2, SIZE))
MIB = 2**20


def check(size: int = SIZE) -> None:
    a, b = A[:size], np.zeros(size)
    smoothed(a, b)
    np.testing.assert_allclose(b, (np.sqrt(a * 2) + a) * (a * 2), rtol=1e-14)
    larger(a, b)
    np.testing.assert_allclose(b, (a + 1) * 2, rtol=1e-14)


def faults(run: Callable[[], object]) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    run()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident() -> int:
    """Bytes that the process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def ten_calls() -> None:
    for _ in range(10):
        smoothed(A, B)
        larger(A, B)


def test_warm_calls_touch_no_new_page() -> None:
    check()
    ten_calls()
    assert faults(ten_calls) <= 5
    before = resident()
    assert gtstub.pool() > 3 * SIZE * 8
    assert before - resident() > 3 * SIZE * 8
    assert 0 < faults(ten_calls) < 10 * 3 * SIZE * 8 / os.sysconf("SC_PAGESIZE")  # in the first call alone


def test_huge_pages_are_asked_for() -> None:
    """Whether the system has some left is another matter."""
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not setting.exists():
        pytest.skip("the system has no transparent huge pages")
    smoothed(A, B)
    sizes = re.findall(
        r"^Size: +([0-9]+) kB$(?:\n.*)*?\nVmFlags:(.*)$", Path("/proc/self/smaps").read_text(), re.MULTILINE
    )
    assert max(int(size) for size, flags in sizes if "hg" in flags.split()) >= 2 * SIZE * 8 // 1024


def test_the_pool_keeps_what_the_largest_program_needs() -> None:
    gtstub.pool()
    larger(A, B)
    alone = gtstub.pool()
    check()
    assert gtstub.pool() == alone
    assert 3 * SIZE * 8 <= alone <= 6 * SIZE * 8
    assert gtstub.pool() == 0


def test_a_program_that_runs_within_another_one() -> None:
    """It has an arena of its own: what it frees is not what the outer one holds."""
    for size in (SIZE, 50_000, SIZE):
        a, b = A[:size], np.zeros(size)
        calling_back(a, b)
        np.testing.assert_array_equal(b, a * 2.0 + 1.0)


def test_changing_sizes() -> None:
    gtstub.pool()
    check()
    most = gtstub.pool()
    for size in np.random.default_rng(2).integers(1, SIZE, 200):
        check(int(size))
    assert gtstub.pool() <= 1.25 * most


def test_a_profile_has_the_arrays() -> None:
    check()
    with gtstub.profile() as report:
        larger(A, B)
        larger(A[:10], B[:10])
    (program,) = report.programs
    assert program.run is not None
    assert program.run.memory is not None
    assert program.run.memory.arrays >= 1
    assert 3 * SIZE * 8 <= program.run.memory.bytes <= 6 * SIZE * 8
    assert 0 < program.run.memory.time < program.run.sdfg.total
    assert re.search(r"[\d.]+ MiB in [\d.]+ (ns|µs|ms)", str(report))


def test_a_child_has_a_pool_of_its_own() -> None:
    check()
    assert in_child(lambda: (check(), ten_calls(), check(1000))) == 0
    check()


def run(code: str, *command: str, variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    text = "from tests.frameworks.dace.test_pool import *\n" + textwrap.dedent(code)
    environment = os.environ | dict(variables or {})
    line = [*command, sys.executable, "-c", text]
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


PRINT = "check(); ten_calls(); print(gtstub.pool() // MIB)"


@pytest.mark.parametrize(
    ("variable", "expected"),
    [("off", "0"), ("1k", "0"), ("0.1GB", "7"), ("3MiB", "1")],
)
def test_the_variable(variable: str, expected: str) -> None:
    done = run(PRINT, variables={"GTSTUB_POOL": variable})
    assert (done.stdout.strip(), done.stderr) == (expected, "")


def test_a_variable_that_is_no_size() -> None:
    done = run(PRINT, variables={"GTSTUB_POOL": "some"})
    message = "GTSTUB_POOL must be 'off' or a size such as '8GiB', but is 'some': the pool has no limit.\n"
    assert (done.stdout.strip(), done.stderr) == ("7", message)


def test_a_process_with_few_addresses() -> None:
    """A quarter of them is for the pool, and what finds no place there is allocated as without a pool."""
    code = """
        resource.setrlimit(resource.RLIMIT_AS, (5 * 2**30, 5 * 2**30))
        large = np.ones(20_000_000)
        larger(large, large)
        assert (large == 4.0).all()
        check(); ten_calls(); print(faults(ten_calls) > 1000)
    """
    assert run(code).stdout == "False\n"


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_warm_calls_ask_the_system_for_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = "import signal; check(); ten_calls(); os.kill(os.getpid(), 0); ten_calls(); os.kill(os.getpid(), 0)"
    run(code, "strace", "-f", "-o", str(log), "-e", "trace=memory,kill")
    before, between, after = re.split(r".* kill\(.*\n", log.read_text())
    assert "mmap(" in before
    assert between == ""
    assert after != before


def test_a_library_is_its_own_without_a_runtime(tmp_path: Path) -> None:
    """DaCe calls it, and its arrays are allocated as DaCe's code does."""
    from gtstub.entries.cache.store import open_cache

    check()
    entries = [each for each in open_cache().entries() if each.key.rpartition("-")[0].endswith("test_pool_larger")]
    entry = max(entries, key=lambda each: each.path.stat().st_mtime)
    code = f"""
        import ctypes
        library = ctypes.CDLL({str(entry.path / entry.manifest().library)!r})
        name = "tests_frameworks_dace_test_pool_larger"
        assert ctypes.c_void_p.in_dll(library, "__gtstub_memory_" + name).value is None
        init = getattr(library, "__dace_init_" + name)
        init.restype = ctypes.c_void_p
        handle = ctypes.c_void_p(init(SIZE))
        pointer = ctypes.c_void_p
        getattr(library, "__program_" + name)(handle, pointer(A.ctypes.data), pointer(B.ctypes.data), SIZE)
        np.testing.assert_array_equal(B, (A + 1.0) * 2.0)
    """
    run(code)
