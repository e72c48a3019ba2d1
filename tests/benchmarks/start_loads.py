"""
What it takes to load compiled programs, in a process of its own; prints milliseconds, one line a load.

    python start_loads.py gtstub ENTRY...        entries of gtstub's cache
    python start_loads.py incumbent ARTIFACT LIBRARY...   gt4py's artifact, with each of these copies of its library
    python start_loads.py first ENTRY            loads and calls one entry, on numpy arrays, and prints nothing
"""

from __future__ import annotations

import sys
import time
from pathlib import Path


def through_gtstub(paths: list[str]) -> None:
    import gtstub
    from gtstub.entries.cache import entry  # noqa: F401  the first load would import them

    programs = []
    for path in paths:
        begin = time.perf_counter()
        programs.append(gtstub.load(path))
        print((time.perf_counter() - begin) * 1e3)
    assert not {"gt4py", "dace"} & sys.modules.keys()


def through_gt4py(artifact: str, libraries: list[str]) -> None:
    import dataclasses
    import pickle

    import gt4py.next  # noqa: F401  its import is not what is measured

    own = pickle.loads(Path(artifact).read_bytes())
    programs = []
    for library in libraries:
        copy = dataclasses.replace(own, library_path=Path(library))
        begin = time.perf_counter()
        programs.append(copy.load())
        print((time.perf_counter() - begin) * 1e3)


def first_result(path: str) -> None:
    import numpy as np

    import gtstub

    x, towards = np.zeros((50, 60), order="F"), np.ones((50, 60), order="F")
    gtstub.load(path)(x, towards, 0.5, 50, 60, offset_provider={})
    assert x.min() == 0.5
    assert not {"gt4py", "dace"} & sys.modules.keys()


if __name__ == "__main__":
    way, *rest = sys.argv[1:]
    if way == "gtstub":
        through_gtstub(rest)
    elif way == "incumbent":
        through_gt4py(rest[0], rest[1:])
    else:
        first_result(rest[0])
