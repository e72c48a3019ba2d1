"""
Hands changed files to gtstub, and fails where it does not refuse them as it should (docs/reliability.md).

    python -m tests.fuzz.run [--rounds N] [--seed N] [--target NAME]
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from types import FrameType

import gtstub
from tests.fuzz.targets import targets

SHARES = {"archives": 0.06, "entries": 0.1, "claims": 0.24, "recordings": 0.25, "signatures": 0.35}
"""Of the rounds."""

LONGEST = 20.0
"""Seconds of a round."""

MEMORY, FILE_SIZE = 2**32, 2**26
"""Bytes of address space, and of the largest file that a round may write."""

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGES = {"os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.truncate", "os.utime"}
FORBIDDEN = ("/etc", "/bin", "/dev/zero")
"""Files that the changed files name, and that nothing may open."""


class Guard:
    """Ends the process with an error where it changes something outside `root`, or opens what it must not."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        sys.addaudithook(self._audit)

    def _is_inside(self, path: object, directory: object = -1) -> bool:
        """`directory` is a file descriptor, or -1."""
        if not isinstance(path, str | bytes | os.PathLike):
            return True  # a file descriptor
        place = Path(os.fsdecode(path))
        if isinstance(directory, int) and directory >= 0:
            place = Path(f"/proc/self/fd/{directory}").readlink() / place
        return os.path.abspath(place).startswith(self._root)  # noqa: PTH100  links are not followed

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        is_wrong = False
        if event == "open":
            path, _, flags = arguments
            is_wrong = isinstance(flags, int) and bool(flags & WRITES) and not self._is_inside(path)
            is_wrong = is_wrong or str(path).startswith(FORBIDDEN)
        elif event == "os.rename":
            old, new, of_old, of_new = arguments
            is_wrong = not (self._is_inside(old, of_old) and self._is_inside(new, of_new))
        elif event in CHANGES:
            is_wrong = not self._is_inside(arguments[0], arguments[-1])
        if is_wrong:
            raise AssertionError(f"{event} outside: {arguments}")


def fuzz(root: Path, seed: int, rounds: int, only: str | None = None) -> dict[str, int]:
    """Runs the rounds, and returns their numbers by target. Raises the first error, with the round in its notes."""
    random = Random(seed)
    counts = {}
    for name, run in targets(random, root).items():
        if only not in (None, name):
            continue
        counts[name] = max(1, round(rounds * (SHARES[name] if only is None else 1)))
        for number in range(counts[name]):
            random.seed(f"{seed} {name} {number}")  # so that a round does not depend on those before
            signal.setitimer(signal.ITIMER_REAL, LONGEST)
            try:
                run()
            except BaseException as error:
                error.add_note(f"in round {number} of '{name}', seed {seed}")
                raise
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    return counts


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise AssertionError(f"A round took more than {LONGEST:.0f} s.")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="tests.fuzz.run")
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", choices=SHARES)
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGALRM, _too_long)
    begin = time.monotonic()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as directory:
        if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # It reserves terabytes.
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FILE_SIZE))
        root = Path(directory).resolve()
        os.environ["GTSTUB_MACHINE_DIR"] = str(root / "machine")
        Guard(root)
        counts = fuzz(root, given.seed, given.rounds, given.target)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    listed = ", ".join(f"{count} {name}" for name, count in counts.items())
    print(
        f"gtstub {gtstub.__version__}, seed {given.seed}: {listed}; {time.monotonic() - begin:.0f} s, {peak:.0f} MiB."
    )


if __name__ == "__main__":
    main()
