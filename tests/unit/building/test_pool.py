"""The pool of worker processes."""

from __future__ import annotations

import os
import signal

from gtstub.building.jobs import Job
from gtstub.building.outcome import Outcome
from gtstub.building.pool import Pool


def number_of_process(_: Job) -> int:
    return os.getpid()


def test_a_worker_that_is_killed_while_it_has_nothing_to_do_costs_one_job() -> None:
    """The others are done by a new worker."""
    jobs = [Job(f"module:program_{number}", "", {}) for number in range(3)]
    with Pool(1) as pool:
        (pid,) = {result for _, result in pool.run(jobs[:1], number_of_process) if result is not None}
        assert isinstance(pid, int)
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        results = {job.program: result for job, result in pool.run(jobs, number_of_process) if result is not None}
    failed = [result for result in results.values() if isinstance(result, Outcome)]
    assert [each.error for each in failed] == [
        "'.', line None: Program 'program_0' could not be built: SIGKILL killed its build process, perhaps because"
        " memory ran out."
    ]
    assert {type(results[f"program_{number}"]) for number in (1, 2)} == {int}
