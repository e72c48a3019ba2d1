"""
A model for `gtstub record`: calls programs of `gt4py_programs.py`, twice each.

    python -m tests.frameworks.gt4py.recorded_model NAME...
"""

from __future__ import annotations

import sys

from gtstub.frameworks.gt4py.backend import make_backend
from tests.support.gt4py_programs import CASES

if __name__ == "__main__":
    for name in sys.argv[1:]:
        case = CASES[name]
        backend = make_backend(gpu=False, **case.options)
        for _ in range(2):
            case.call(backend)
