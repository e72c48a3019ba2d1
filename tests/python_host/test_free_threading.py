"""A free-threaded CPython: gtstub runs with its GIL, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import gtstub

pytestmark = pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="This Python always has its GIL."
)

IMPORT = """
import sys, warnings
before = sys._is_gil_enabled()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        import gtstub._host
    except ImportError as error:
        print(error)
print(before, sys._is_gil_enabled(), *(each.category.__name__ for each in caught))
"""


def imported(*options: str) -> list[str]:
    paths = [str(Path(gtstub.__file__).parent.parent)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    command = [sys.executable, *options, "-c", IMPORT]
    done = subprocess.run(
        command, env={**environment, "PYTHONPATH": os.pathsep.join(paths)}, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_the_import_enables_the_gil() -> None:
    assert imported() == ["False True RuntimeWarning"]


def test_no_warning_where_the_gil_is_enabled() -> None:
    assert imported("-X", "gil=1") == ["True True"]


def test_a_process_that_has_disabled_the_gil_is_refused() -> None:
    assert imported("-X", "gil=0") == [
        "This process has disabled the GIL, which gtstub needs. Start Python without '-X gil=0' and without "
        "PYTHON_GIL=0: it then enables the GIL when gtstub is imported.",
        "False False",
    ]
