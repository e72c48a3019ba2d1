"""Build processes end with the process that started them, however that one ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from multiprocessing import connection, process, util

PATIENCE = 5.0
"""Seconds that a process has to remove its files and to end its compilers before it is killed."""


def end_with_parent() -> None:
    """
    Lets this process of `multiprocessing` end when its parent has ended. Neither a queue nor a pipe says so: the other
    workers have both of its ends, and a worker that is compiling reads none.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job that a shell runs in the background
            signal.signal(signal.SIGINT, signal.default_int_handler)
        util.Finalize(None, _end_group, (parent,), exitpriority=-1)
        threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _end_group(parent: process.BaseProcess) -> None:
    """Ends this process with its compilers: one that was being started at the interrupt goes on otherwise."""
    if os.getpgid(0) == os.getpid() and not parent.is_alive():
        os.killpg(0, signal.SIGKILL)


def _watch(parent: int) -> None:
    connection.wait([parent])
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGINT)  # subprocess.run() then kills what it runs.
    time.sleep(PATIENCE)
    if os.getpgid(0) == os.getpid():  # with the compilers
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
