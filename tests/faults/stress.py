"""Several processes use one cache while they are killed and their system calls fail, all at random from one seed."""

from __future__ import annotations

import dataclasses
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from gtstub.entries.cache.entry import Entry
from gtstub.errors import CacheError
from tests.faults import invariants
from tests.faults.builder import key_of
from tests.faults.invariants import LAST
from tests.faults.soak_worker import NUMBERS
from tests.faults.workshop import HERE, Workshop, environment

PROCESSES = 4
ACTIONS = 30
"""Of one process, if nobody kills it."""

HANGING = 120
"""Seconds after which a process that should have ended hangs."""


@dataclasses.dataclass
class Running:
    process: subprocess.Popen[bytes]
    errors: Path
    begin: float
    killed_at: float
    is_killed: bool = False


class Stress:
    """One cache under stress. Raises AssertionError where an invariant does not hold."""

    def __init__(self, workshop: Workshop, folder: Path, seed: int) -> None:
        self._workshop = workshop
        self._folder = folder
        self._random = random.Random(seed)
        self._running: list[Running] = []
        self._started = 0
        self.counts: Counter[str] = Counter()
        (folder / "cache").mkdir(parents=True)

    def run(self, is_enough: Callable[[Counter[str]], bool], between: Callable[[Counter[str]], None]) -> None:
        """Rounds of stress, each followed by a look at the cache, until there was enough."""
        while not is_enough(self.counts):
            end = time.monotonic() + 10
            while time.monotonic() < end and not is_enough(self.counts):
                while len(self._running) < PROCESSES:
                    self._running.append(self._start())
                time.sleep(0.02)
                self._look()
                between(self.counts)
            if is_enough(self.counts):
                for running in self._running:
                    running.killed_at = 0.0
            while self._running:
                time.sleep(0.02)
                self._look()
            self._check()
            between(self.counts)

    def stop(self) -> None:
        """Ends what still runs, after an invariant did not hold."""
        for running in self._running:
            running.process.kill()
            running.process.wait()

    def _start(self) -> Running:
        self._started += 1
        seed = self._random.randrange(2**31)
        settings: dict[str, object] = {}
        if self._random.random() < 0.6:
            one_in = self._random.choice([20, 100, 500])
            log = self._folder / "faults"
            settings = self._workshop.injecting(self._folder / "cache", one_in=one_in, seed=seed, log=log)
        arguments = (self._folder, self._workshop.parts, seed, ACTIONS)
        errors = self._folder / f"errors-{self._started}"
        with errors.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, str(HERE / "soak_worker.py"), *map(str, arguments)],
                env=environment(settings),
                stdin=subprocess.DEVNULL,
                stderr=file,
            )
        begin = time.monotonic()
        lifetime = self._random.choice([self._random.uniform(0.05, 0.5), self._random.uniform(0.05, 3), HANGING])
        return Running(process, errors, begin, begin + lifetime)

    def _look(self) -> None:
        for running in list(self._running):
            now = time.monotonic()
            status = running.process.poll()
            if status is None:
                assert now < running.begin + HANGING, f"process {running.process.pid} hangs"
                if now > running.killed_at and not running.is_killed:
                    running.is_killed = True
                    running.process.kill()
                continue
            self._running.remove(running)
            if status == invariants.KILLED:
                self.counts["kills at a moment" if running.is_killed else "kills at a call"] += 1
            else:
                assert status == 0, f"exit status {status}:\n{running.errors.read_text()}"
                self.counts["processes that ended well"] += 1
            running.errors.unlink()

    def _check(self) -> None:
        """When nobody is at work: only what we damaged is broken, all can be had again, nothing is left behind."""
        root = self._folder / "cache"
        damaged = self._read_actions()
        shutil.rmtree(root / key_of(LAST), ignore_errors=True)  # so that the observer builds, and with that tidies up
        whole = {}
        for path, inode in invariants.entries(root).items():
            try:
                Entry(path).verify()
            except CacheError as error:
                if inode not in damaged:
                    raise AssertionError("An entry was published that is not whole.") from error
                self.counts["damaged entries healed"] += 1
            else:
                whole[path] = inode
        self.counts["entries found whole"] += len(whole)
        for number in range(NUMBERS):
            invariants.check_works(self._workshop, root, number)
        invariants.check(self._workshop, root, None, whole)
        self.counts["rounds"] += 1

    def _read_actions(self) -> set[int]:
        """Counts what the processes of a round did and suffered; returns the inodes of the entries they damaged."""
        damaged = set()
        for line in _take(self._folder / "actions"):
            what, _, how = line.partition(" ")
            if what == "damaged":
                damaged.add(int(how))
            else:
                self.counts[f"{what} {how.split(':')[0]}"] += 1
        for line in _take(self._folder / "faults"):
            self.counts[f"injected {line.split(' ')[2]}"] += 1
        return damaged


def _take(file: Path) -> list[str]:
    """The lines of a file, which is gone afterwards."""
    if not file.exists():
        return []
    lines = file.read_text().splitlines()
    file.unlink()
    return lines
