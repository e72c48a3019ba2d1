"""Calls programs of `programs.py`, twice each: a model for `gtstub record`. `python recorded_model.py NAME...`"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from gtstub.frameworks.gt4py import make_backend
from integration.programs import CASES

if __name__ == "__main__":
    for name in sys.argv[1:]:
        case = CASES[name]
        backend = make_backend(gpu=False, **case.options)
        for _ in range(2):
            case.call(backend)
