"""What is said while programs are built, and models without `if __name__ == "__main__"`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import gt4py.next as gtx
import numpy as np
import pytest

import gtstub
from gtstub.frameworks.gt4py import backend as plugin
from tests.support import small_programs as small
from tests.support.checkout import ROOT
from tests.support.small_programs import I, K


def said(capfd: pytest.CaptureFixture[str]) -> list[str]:
    """The lines about builds, without the seconds."""
    lines = capfd.readouterr().err.splitlines()
    return [re.sub(r"\d+\.\d s", "<> s", line) for line in lines if line.startswith("gtstub: ")]


def plane() -> gtx.Field:
    return gtx.as_field([I, K], np.zeros((3, 4)))


def test_a_call_of_gt4py_says_what_it_builds(backend: plugin.StubBackend, capfd: pytest.CaptureFixture[str]) -> None:
    program = small.implicit_domain.with_backend(backend)
    program(plane(), plane(), plane(), offset_provider={})
    assert said(capfd) == ["gtstub: building implicit_domain", "gtstub: built implicit_domain in <> s"]
    program(plane(), plane(), plane(), offset_provider={})
    small.implicit_domain.with_backend(backend)(plane(), plane(), plane(), offset_provider={})  # from the cache
    assert said(capfd) == []


def test_compile_names_what_varies(backend: plugin.StubBackend, capfd: pytest.CaptureFixture[str]) -> None:
    program = gtstub.compile(
        small.static_arguments,
        bound_static_args={"weights": (1.0, 2.0), "exponent": 2},
        static_args={"flag": [True, False]},
        backend=backend,
    )
    program.wait()
    assert said(capfd) == [
        f"gtstub: {what} static_arguments (flag={flag}){seconds}"
        for flag in (True, False)
        for what, seconds in (("building", ""), ("built", " in <> s"))
    ]


# --- Models -----------------------------------------------------------------------------------------------------------

MODEL = """
import gt4py.next as gtx, numpy as np
import gtstub
from gt4py.next.program_processors.runners.dace import transformations
from gtstub.frameworks.gt4py import make_backend
from tests.support.small_programs import I, K, Plane, average

def hook(sdfg):
    pass

hooks = {{transformations.GT4PyAutoOptHook.TopLevelDataFlowPost: hook}}
backend = make_backend(gpu=False, optimization_args={{"optimization_hooks": hooks}} if {has_hook} else None)

@gtx.program(backend=backend)
def called(a: Plane, b: Plane, out: Plane):
    average(a, b, out=out)

@gtx.program
def compiled(a: Plane, b: Plane, out: Plane):
    average(a, out, out=out)

print("imported", flush=True)
a, out = gtx.as_field([I, K], np.ones((3, 4))), gtx.as_field([I, K], np.zeros((3, 4)))
{guard}
    called(a, a, out, offset_provider={{}})
    if not {has_hook}:
        gtstub.compile(compiled, backend_tag="CPU")(a, a, out)
    print(float(out.asnumpy().sum()))
"""


def run_model(folder: Path, **texts: object) -> subprocess.CompletedProcess[str]:
    """A model whose programs worker processes build."""
    (folder / "model.py").write_text(MODEL.format(**texts))
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "GTSTUB_CACHE_DIR": str(folder / "cache"),
        "GT4PY_BUILD_JOBS_MODE": "process",
        "PYTHONWARNINGS": "ignore",
    }
    command = [sys.executable, "model.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_model_needs_no_guard(tmp_path: Path) -> None:
    done = run_model(tmp_path, guard="if True:", has_hook=False)
    assert (done.returncode, done.stdout) == (0, "imported\n12.0\n"), done.stderr
    assert re.sub(r"\d+\.\d s", "<> s", done.stderr).splitlines() == [
        "gtstub: building called",
        "gtstub: built called in <> s",
        "gtstub: building compiled",
        "gtstub: built compiled in <> s",
    ]


def test_a_worker_imports_the_main_module_for_a_hook_in_it(tmp_path: Path) -> None:
    done = run_model(tmp_path, guard='if __name__ == "__main__":', has_hook=True)
    assert (done.returncode, done.stdout) == (0, "imported\nimported\n12.0\n"), done.stderr


def test_a_model_whose_main_module_must_be_imported_needs_a_guard(tmp_path: Path) -> None:
    done = run_model(tmp_path, guard="if True:", has_hook=True)
    message = "put what it does under 'if __name__ == \"__main__\":'."
    assert done.returncode == 1
    assert [message in line for line in done.stderr.splitlines()].count(True) == 2  # when it fails, and as the error
    assert done.stderr.splitlines()[-1].endswith(message)
    assert "In a build process" not in done.stderr
