"""
`make weaken`: makes each order of an atomic operation weaker in turn, and says whether the protocol of its row in
docs/design.md fails. Words as arguments choose some of them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.support.weak_memory import Model, atomics, row_of

ROUNDS = 1000


def main(words: list[str]) -> int:
    status = 0
    with tempfile.TemporaryDirectory() as folder:
        model = Model(Path(folder))
        for atomic in atomics():
            if words and atomic.word not in words:
                continue
            for name, text in atomic.weaker():
                is_found = model.finds(atomic, text, ROUNDS)
                status |= not is_found
                said = "found " if is_found else "MISSED"
                print(f"{said} {atomic} -> {name} ({row_of(atomic).protocol})", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
