"""Profiles: which calls they count, and where their reports end up."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.install import INCLUDE, RUNTIME
from gtstub.ranks import from_launcher
from gtstub.stub.signature.model import StaticArgument
from gtstub.tools.profiling.report import Report
from tests.support.checkout import ROOT
from tests.support.hosting import Bound, good_arguments, run_script
from tests.support.sdfg_libraries import build_recording_library
from tests.support.signatures import SMALL_PROGRAM, SMALL_SDFG, program, scalar, sdfg
from tests.support.stubs import build_stub


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Bound:
    return Bound(tmp_path_factory.mktemp("profile"), toolchain)


def call(bound: Bound, times: int) -> None:
    arguments = good_arguments()
    for _ in range(times):
        bound.program(**arguments)


def counts(report: Report) -> dict[str, tuple[int, int]]:
    """Initial calls and others, by name."""
    return {
        item.name: (item.initial.calls if item.initial else 0, item.run.calls if item.run else 0)
        for item in report.programs
    }


SCRIPT = """
import os, sys
from gtstub import _host
from tests.support.hosting import good_arguments

program = _host.load(*sys.argv[1:3])
arguments = good_arguments()
for _ in range(4):
    program(**arguments)
"""

STUCK = """
import threading, time
from tests.support.sdfg_libraries import Recorder
from pathlib import Path
behaviour = Recorder(Path(sys.argv[2])).behaviour
behaviour.delay = 300_000_000
threading.Thread(target=lambda: program(**good_arguments()), daemon=True).start()
while behaviour.running == 0:
    time.sleep(0.001)
"""


# --- Recording --------------------------------------------------------------------------------------------------------


def test_calls_are_counted_and_their_times_add_up(bound: Bound) -> None:
    call(bound, 1)
    with gtstub.profile() as report:
        assert report.programs == ()
        call(bound, 50)
    call(bound, 1)
    assert counts(report) == {"host": (0, 50)}
    run = report.programs[0].run
    assert run is not None
    assert report.programs[0].calls == 50
    assert run.whole.total == pytest.approx(run.conversion.total + run.sdfg.total, abs=1e-12)
    assert 0 < run.whole.total <= report.wall
    for times in (run.conversion, run.sdfg, run.whole):
        assert times.min <= times.median <= times.max
        assert 50 * times.min <= times.total <= 50 * times.max + 1e-12
    assert sum(report.shares().values()) == pytest.approx(report.wall)


def test_time_of_the_sdfg_is_not_conversion(bound: Bound) -> None:
    bound.recorder.behaviour.delay = 3000
    try:
        with gtstub.profile() as report:
            call(bound, 3)
    finally:
        bound.recorder.behaviour.delay = 0
    run = report.programs[0].run
    assert run is not None
    assert run.sdfg.min >= 3e-3  # the library sleeps that long


def test_first_call_and_that_of_a_new_handle_are_initial(bound: Bound) -> None:
    with gtstub.profile() as report:
        first = bound.load()
        for _ in range(3):
            first(**good_arguments())
    assert counts(report) == {"host": (1, 2)}


def test_binding_and_order_are_both_timed(bound: Bound) -> None:
    arguments = good_arguments()
    call(bound, 1)
    with gtstub.profile() as report:
        bound.program(**arguments)
        provider = arguments.pop("offset_provider")
        bound.program(*arguments.values(), offset_provider=provider)
    assert counts(report) == {"host": (0, 2)}


def test_refused_calls_are_not_counted(bound: Bound) -> None:
    call(bound, 1)
    with gtstub.profile() as report:
        call(bound, 2)
        with pytest.raises(TypeError):
            bound.program(**{**good_arguments(), "n": 1.5})
    assert counts(report) == {"host": (0, 2)}
    call(bound, 1)


def test_profiles_nest(bound: Bound) -> None:
    call(bound, 1)
    with gtstub.profile() as outer:
        call(bound, 3)
        with gtstub.profile() as inner:
            call(bound, 4)
        call(bound, 5)
    assert counts(inner) == {"host": (0, 4)}
    assert counts(outer) == {"host": (0, 12)}
    outer_run, inner_run = outer.programs[0].run, inner.programs[0].run
    assert outer_run is not None
    assert inner_run is not None
    assert outer_run.whole.min <= inner_run.whole.min
    assert outer_run.whole.max >= inner_run.whole.max


def test_a_block_that_raises_has_a_report(bound: Bound) -> None:
    call(bound, 1)
    with contextlib.suppress(KeyError), gtstub.profile() as report:
        call(bound, 2)
        raise KeyError
    assert counts(report) == {"host": (0, 2)}


def test_an_unloaded_program_stays_in_the_report(bound: Bound) -> None:
    with gtstub.profile() as report:
        for _ in range(2):
            loaded = bound.load()
            loaded(**good_arguments())
            del loaded
    assert counts(report) == {"host": (2, 0)}


def test_no_call_of_a_thread_is_lost_when_profiles_end(bound: Bound) -> None:
    call(bound, 1)

    def work() -> None:
        call(bound, 300)

    with gtstub.profile() as report:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            with gtstub.profile():
                call(bound, 1)
        for thread in threads:
            thread.join()
    assert counts(report) == {"host": (0, 920)}


def test_a_profile_ends_once() -> None:
    running = _host.begin_profile()
    _host.end_profile(running)
    with pytest.raises(ValueError, match=r"^The profile has already ended\.$"):
        _host.end_profile(running)
    with pytest.raises(
        TypeError, match=r"^Argument 'profile' of 'end_profile' must be a result of 'begin_profile', not 'int'\.$"
    ):
        _host.end_profile(3)


ENDS_WITHIN_A_CALL = """
import sys
import gtstub
from gtstub import _host
from tests.support.hosting import good_arguments

program, other = (_host.load(*sys.argv[1:3]) for _ in range(2))
arguments = good_arguments()

class Index:
    def __index__(self):
        try:
            end()
        except RuntimeError as error:
            print(error)
        return 1

def call():
    program(**{**arguments, "n": Index()})

outer = gtstub.profile()
report = outer.__enter__()
inner = _host.begin_profile()
end = lambda: _host.end_profile(inner)
call()
end()

def block():  # of a generator that is left to the garbage collector
    with gtstub.profile():
        yield

abandoned = block()
next(abandoned)
end = abandoned.close
call()

def begin_and_end():  # a profile that the call does not know
    with gtstub.profile():
        other(**arguments)

end = begin_and_end
call()
outer.__exit__(None, None, None)
print([item.calls for item in report.programs])
"""


def test_a_profile_does_not_end_within_a_call(bound: Bound) -> None:
    refusal = "A profile cannot end within a call of program 'host'.\n"
    assert run_script(ENDS_WITHIN_A_CALL, bound.stub, bound.library) == 3 * refusal + "[4]\n"


def test_a_profile_does_not_end_when_the_interpreter_does(bound: Bound) -> None:
    """It would wait for a thread that never leaves its call."""
    text = """
class Finalizer:
    def __init__(self):
        self.profile = _host.begin_profile()

    def __del__(self, end=_host.end_profile, write=os.write, error=RuntimeError):
        try:
            end(self.profile)
        except error as caught:
            write(1, f"{caught}\\n".encode())

import builtins
builtins.last = Finalizer()
"""
    printed = run_script(SCRIPT + STUCK + text, bound.stub, bound.library)
    assert printed == "A profile cannot end at the end of the interpreter.\n"


def test_static_arguments_are_in_the_report(tmp_path: Path, toolchain: Toolchain) -> None:
    values = {"a": ("bool", True), "b": ("int8", -3), "c": ("uint64", 2**64 - 1), "d": ("float64", 0.1)}
    values |= {"e": ("float32", 0.5), "f": ("float64", float("-inf")), "g": ("int64", -(2**63))}
    parameters = {name: scalar(dtype) for name, (dtype, _) in values.items()}  # type: ignore[arg-type]
    signature = dataclasses.replace(
        program("fixed", **parameters),
        static_arguments=tuple(StaticArgument(name, value) for name, (_, value) in values.items()),
    )
    binding = Bound(tmp_path, toolchain, sdfg(name="fixed"), signature)
    with gtstub.profile() as report:
        binding.program(**{name: value for name, (_, value) in values.items()})
    expected = {name: value for name, (_, value) in values.items()}
    assert report.programs[0].static == {**expected, "f": "-inf"}


def test_report_is_read_as_it_was_saved(bound: Bound, tmp_path: Path) -> None:
    with gtstub.profile() as report:
        call(bound, 3)
    report.save(tmp_path / "report.json")
    read = Report.load(tmp_path / "report.json")
    assert (read.programs, read.wall) == (report.programs, report.wall)


# --- GTSTUB_PROFILE ---------------------------------------------------------------------------------------------------


def script(bound: Bound, text: str, path: Path) -> None:
    assert run_script(text, bound.stub, bound.library, environment={"GTSTUB_PROFILE": str(path)}.items()) == ""


def test_environment_writes_a_report_when_the_process_ends(bound: Bound, tmp_path: Path) -> None:
    script(bound, SCRIPT, tmp_path / "report.json")
    assert counts(Report.load(tmp_path / "report.json")) == {"host": (1, 3)}


def test_report_goes_to_the_directory_in_which_the_profile_began(bound: Bound, tmp_path: Path) -> None:
    """GTSTUB_RECORD is resolved at the same time."""
    text = f"import os; os.chdir({str(tmp_path)!r})\n{SCRIPT}\nos.chdir('/')"
    for name in ("report.json", "%p"):
        script(bound, text, Path(name))
    names = [path.name for path in tmp_path.iterdir()]
    assert "report.json" in names
    assert any(name.isdigit() for name in names)


def test_report_of_the_process_has_the_calls_of_its_profiles(bound: Bound, tmp_path: Path) -> None:
    nested = "import gtstub\nwith gtstub.profile() as report:\n    program(**arguments)\nassert report.programs"
    script(bound, f"{SCRIPT}\n{nested}\n", tmp_path / "report.json")
    assert counts(Report.load(tmp_path / "report.json")) == {"host": (1, 4)}


def test_a_forked_child_leaves_the_report_to_its_parent(bound: Bound, tmp_path: Path) -> None:
    fork = "child = os.fork()\nif child == 0:\n    sys.exit()\nos.waitpid(child, 0)\nassert not os.path.exists(path)\n"
    fork = f"path = {str(tmp_path / 'report.json')!r}\n{fork}program(**arguments)"
    script(bound, f"{SCRIPT}\n{fork}\n", tmp_path / "report.json")
    assert counts(Report.load(tmp_path / "report.json")) == {"host": (1, 4)}


def test_processes_that_share_the_variable_have_reports_of_their_own(bound: Bound, tmp_path: Path) -> None:
    for _ in range(2):
        script(bound, SCRIPT, tmp_path / "report.%p.json")
    reports = list(tmp_path.iterdir())
    assert len(reports) == 2
    assert all(counts(Report.load(report)) == {"host": (1, 3)} for report in reports)


SLURM = {"SLURM_NTASKS": "4", "SLURM_PROCID": "2"}


def test_report_of_the_process_outlives_a_profile_around_the_first_load(bound: Bound, tmp_path: Path) -> None:
    text = f"import gtstub\nwith gtstub.profile():\n{textwrap.indent(SCRIPT.strip(), '    ')}\nprogram(**arguments)\n"
    script(bound, text, tmp_path / "report.json")
    assert counts(Report.load(tmp_path / "report.json")) == {"host": (1, 4)}


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", **SLURM, "SLURM_STEP_ID": "0"}, "report-1.json"),
        ({"PMIX_RANK": "3", "SLURM_STEP_NUM_TASKS": "4"}, "report-3.json"),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, "report-0.json"),
        ({**SLURM, "SLURM_STEP_ID": "0"}, "report-2.json"),
        (SLURM, "report.json"),  # the first shell of a job
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, "report.json"),
    ],
)
def test_ranks_have_reports_of_their_own(bound: Bound, tmp_path: Path, variables: dict[str, str], name: str) -> None:
    (tmp_path / "a.directory").mkdir()
    for given, expected in ((f"{tmp_path}/report.json", name), (f"{tmp_path}/a.directory/.r", None)):
        environment = {"GTSTUB_PROFILE": given, **variables}
        assert run_script(SCRIPT, bound.stub, bound.library, environment=environment.items()) == ""
        if expected is not None:
            assert counts(Report.load(tmp_path / expected)) == {"host": (1, 3)}
    rank, size = from_launcher(variables)
    assert name == (f"report-{rank}.json" if size > 1 else "report.json")
    suffix = f"-{rank}" if size > 1 else ""
    assert [path.name for path in (tmp_path / "a.directory").iterdir()] == [f".r{suffix}"]


def test_a_process_without_calls_writes_nothing(bound: Bound, tmp_path: Path) -> None:
    script(bound, "import sys; from gtstub import _host; _host.load(*sys.argv[1:3])", tmp_path / "report.json")
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_written_is_one_warning(bound: Bound, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "report.json"
    paths = [str(ROOT), str(Path(gtstub.__file__).parents[1])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "GTSTUB_PROFILE": str(path)}
    command = [sys.executable, "-c", SCRIPT, bound.stub, bound.library]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == f"The profile cannot be written to '{path}': No such file or directory.\n"


def test_a_thread_that_is_still_in_a_call_does_not_hold_up_the_end(bound: Bound, tmp_path: Path) -> None:
    script(bound, SCRIPT + STUCK, tmp_path / "report.json")
    assert counts(Report.load(tmp_path / "report.json")) == {"host": (1, 3)}


HOST = """
#include "prog_stub.h"

int main(int argc, char **argv)
{
    gts_program *program;
    double memory[3] = {0};
    const gts_array x = {memory, GTS_FLOAT64, GTS_CPU, 1, false, {0}, {3}, {1}, {"K"}};
    const struct prog_args args = {.x = x, .factor = 2.5, .out = x};
    if (argc != 3 || gts_load(argv[1], argv[2], &program) != 0)
        return 1;
    return prog_call(program, &args) != 0 || prog_call(program, &args) != 0;
}
"""


def test_a_host_in_c_has_the_report_too(tmp_path: Path, toolchain: Toolchain) -> None:
    stub = build_stub(SMALL_SDFG, SMALL_PROGRAM, tmp_path, toolchain)
    library = build_recording_library(SMALL_SDFG, tmp_path)
    (tmp_path / "host.c").write_text(HOST)
    flags = ["-I", str(INCLUDE), f"-Wl,-rpath,{RUNTIME.parent}", f"-L{RUNTIME.parent}", f"-l:{RUNTIME.name}"]
    subprocess.run(["cc", "host.c", str(stub), *flags, "-o", "host"], cwd=tmp_path, check=True)
    environment = os.environ | {"GTSTUB_PROFILE": str(tmp_path / "report.json")}
    subprocess.run([tmp_path / "host", stub, library], env=environment, check=True)
    assert counts(Report.load(tmp_path / "report.json")) == {"prog": (1, 1)}


def test_importing_gtstub_imports_no_profiling() -> None:
    code = "import sys, gtstub; print({'gtstub.tools.profiling.report', 'matplotlib', 'rich'} & sys.modules.keys())"
    assert run_script(code) == "set()\n"
