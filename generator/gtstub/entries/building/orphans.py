"""Build processes end with the process that started them, however that one ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from multiprocessing import util

PATIENCE = 5.0
"""Seconds that a process has to remove its files and to end its compilers before it is killed."""

INTERVAL = 0.5
"""Seconds between two looks at the parent."""


def end_with_parent(parent: int) -> None:
    """
    Lets this process end when its parent, of this number, has ended. Neither a queue nor a pipe says so: the parent's
    other children may have both of its ends, and a worker that is compiling reads none.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job that a shell runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    util.Finalize(None, _end_group, (parent,), exitpriority=-1)
    # A signal that this thread took would not interrupt what the main thread waits for. It inherits the mask.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_group(parent: int) -> None:
    """Ends this process with its compilers: one that was being started at the interrupt goes on otherwise."""
    if os.getpgid(0) == os.getpid() and os.getppid() != parent:
        os.killpg(0, signal.SIGKILL)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(INTERVAL)
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGINT)  # subprocess.run() then kills what it runs.
    time.sleep(PATIENCE)
    if os.getpgid(0) == os.getpid():  # with the compilers
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
