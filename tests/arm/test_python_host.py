"""
The Python host for arm64, in an emulator: entries are built, loaded and called there and here, and what one machine has
recorded is replayed on the other. An emulated process takes seconds to start, so each does all that it can.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.arm import ARM, X86, Machine, needs_arm_python
from tests.support.two_machines import CALLS

pytestmark = [pytest.mark.arm, pytest.mark.xdist_group("arm"), needs_arm_python]

SCRIPT = ("-m", "tests.support.two_machines")


@dataclasses.dataclass(frozen=True)
class Calls:
    """
    One program on one machine, compiled so that each operation rounds (`separate`), and so that a multiplication and an
    addition may be one (`fused`): entries, the results of calls, and the recording of all calls.
    """

    machine: Machine
    separate: Path
    fused: Path
    results: dict[str, bytes]
    fused_results: dict[str, bytes]
    recording: Path


def made(machine: Machine, folder: Path) -> Calls:
    separate, fused = map(Path, machine.run(*SCRIPT, "build", folder / "cache").splitlines())
    recording = folder / "recording"
    lines = [
        line.split() for line in machine.run(*SCRIPT, "call", separate, fused, GTSTUB_RECORD=recording).splitlines()
    ]
    found = [(name, bytes.fromhex(result)) for name, result in lines]
    return Calls(machine, separate, fused, dict(found[:2]), dict(found[2:]), recording)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    return made(X86, tmp_path_factory.mktemp("x86"))


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    return made(ARM, tmp_path_factory.mktemp("arm"))


def test_results_have_the_same_bits(here: Calls, there: Calls) -> None:
    assert len(set(here.results["out"])) > 100
    assert here.results == there.results


def test_the_compiler_for_arm_fuses_operations(here: Calls, there: Calls) -> None:
    """As docs/record.md says."""
    assert here.fused_results == here.results
    assert there.fused_results["out"] == here.results["out"]
    assert there.fused_results["fused"] != here.results["fused"]
    expected, found = (np.frombuffer(each.fused_results["fused"]) for each in (here, there))
    np.testing.assert_array_max_ulp(expected, found, maxulp=1)


def test_what_arm_has_recorded_is_replayed_here(here: Calls, there: Calls) -> None:
    assert replayed(there, here, here.separate) == {("fused", CALLS + number) for number in range(1, CALLS + 1)}


def test_what_was_recorded_here_is_replayed_on_arm(here: Calls, there: Calls) -> None:
    assert replayed(here, there, there.fused) == {("fused", number) for number in range(1, 2 * CALLS + 1)}


def replayed(recorder: Calls, replayer: Calls, entry: Path) -> set[tuple[str, int]]:
    """
    The results that differ, with the numbers of their calls, when a machine replays the calls that the other one has
    recorded: first those of `separate`, then those of `fused`.
    """
    arguments = ("-m", "gtstub", "replay", recorder.recording, entry, "--compare", "--json")
    report: Any = json.loads(replayer.machine.start(*arguments, exit_code=1).stdout)
    assert (report["calls"], len(report["comparisons"])) == (2 * CALLS, 4 * CALLS)
    return {(each["argument"], each["call"]) for each in report["comparisons"] if each["differ"]}


def test_what_is_refused(here: Calls, there: Calls) -> None:
    """Calls as on this machine, and the entries of the other one: neither is run."""
    of_x86, of_arm = (
        own.machine.run(*SCRIPT, "refuse", own.separate, other.separate).splitlines()
        for own, other in ((here, there), (there, here))
    )
    assert (len(of_x86), len(of_arm)) == (4, 4)
    assert of_arm[:2] == of_x86[:2]
    for machine, features, entry, found in (
        ("aarch64", "'asimd'", there.separate, of_x86[2:]),
        ("x86_64", "'fxsr', 'mmx', 'sse', 'sse2'", here.separate, of_arm[2:]),
    ):
        assert found == [
            f"The cache entry '{entry}' was built for a CPU with {features}, which this one lacks: build it on this"
            " machine.",
            f"Cannot load library '{entry}/mixed_stub.so': it was built for {machine}, and not for this machine.",
        ]
