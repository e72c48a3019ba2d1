"""The pool of worker processes."""

from __future__ import annotations

import os
import signal

import pytest

from gtstub.entries.building.jobs import Job
from gtstub.entries.building.outcome import Outcome
from gtstub.entries.building.pool import Pool


def number_of_process(_: Job) -> int:
    return os.getpid()


def end_now(_: Job) -> int:
    os._exit(3)


@pytest.mark.parametrize("count", [1, 3])
def test_an_idle_worker_that_is_killed_is_replaced_and_costs_no_job(count: int) -> None:
    jobs = [Job(f"module:program_{number}", "", {}) for number in range(count)]
    with Pool(1) as pool:
        (pid,) = {result for _, result in pool.run(jobs[:1], number_of_process) if result is not None}
        assert isinstance(pid, int)
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        results = [(job, result) for job, result in pool.run(jobs, number_of_process) if result is not None]
    assert [job for job, _ in results] == jobs
    assert len({result for _, result in results}) == 1
    assert pid not in {result for _, result in results}


def test_a_job_whose_worker_ends_is_not_repeated() -> None:
    jobs = [Job(f"module:program_{number}", "", {}) for number in range(2)]
    with Pool(1) as pool:
        assert len(list(pool.run(jobs, number_of_process))) == 4
        results = [result for _, result in pool.run(jobs, end_now) if result is not None]
    assert [isinstance(each, Outcome) and each.state for each in results] == ["failed", "failed"]
