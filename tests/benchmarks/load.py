"""
How long a cached program takes to load in an interpreter that has imported nothing yet.

    python load.py ENTRY    prints two times in milliseconds: importing gtstub, loading the entry
"""

from __future__ import annotations

import sys
import time
from pathlib import Path


def main(path: str) -> None:
    begin = time.perf_counter()
    from gtstub.entries.cache.entry import Entry

    imported = time.perf_counter()
    Entry(Path(path)).load()
    loaded = time.perf_counter()
    assert not {"gt4py", "dace"} & sys.modules.keys()
    print((imported - begin) * 1e3, (loaded - imported) * 1e3)


if __name__ == "__main__":
    main(sys.argv[1])
