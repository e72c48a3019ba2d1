"""DaCe as a framework: `gtstub.compile()`, `gtstub extract` and `gtstub build` take its programs, without gt4py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gtstub.entries.building.jobs import Job
from gtstub.entries.building.outcome import Outcome
from gtstub.frameworks import build_worker
from gtstub.stub.signature.documents import program_from_json, sdfg_from_json
from tests.support.cli import assert_refused, run
from tests.support.own_cache import use_own_cache

MODEL = """
import dace

N = dace.symbol("N")


@dace.program
def doubled(a: dace.float64[N], b: dace.float64[N]):
    b[:] = 2 * a
"""

WITHOUT_GT4PY = """
import sys


class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "gt4py":
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)


sys.meta_path.insert(0, Missing())

import numpy as np

import gtstub
from model import doubled

a, b = np.arange(3.0), np.zeros(3)
gtstub.compile(doubled)(a, b)
print(b.tolist())
try:
    gtstub.compile(print)
except TypeError as error:
    print(error)
"""


@pytest.fixture(autouse=True)
def _model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    use_own_cache(tmp_path / "cache", monkeypatch)
    monkeypatch.delitem(sys.modules, "model", raising=False)
    Path("model.py").write_text(MODEL, encoding="utf-8")
    Path("without.py").write_text(WITHOUT_GT4PY, encoding="utf-8")


def test_compile_needs_no_gt4py() -> None:
    done = subprocess.run([sys.executable, "without.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-2:]) == (
        0,
        [
            "[0.0, 2.0, 4.0]",
            "Argument 'program' of 'compile' must be a gt4py program or field operator, or a DaCe program, not"
            " 'builtin_function_or_method'.",
        ],
    ), done.stderr


def test_extract_both_signatures() -> None:
    document = json.loads(run("extract", "model:doubled").stdout)
    program = program_from_json(json.dumps(document["program"]), "program")
    assert [each.name for each in program.parameters] == ["a", "b"]
    assert sdfg_from_json(json.dumps(document["sdfg"]), "sdfg").name == program.name
    assert_refused(
        run("extract", "model:doubled", "--static", "N=3"),
        1,
        "A DaCe program has no grid, no static arguments and no options of a backend.",
    )


def state(result: int | Outcome) -> str:
    assert isinstance(result, Outcome)
    return result.state


def test_build_finds_what_it_has_built(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job("model:doubled", "", {}, lines={"": 1})
    assert state(build_worker.size(job, dry=True)) == "missing"
    assert isinstance(build_worker.size(job, dry=False), int)
    assert state(build_worker.outcome(job)) == "built"
    assert [state(build_worker.size(job, dry)) for dry in (True, False)] == ["found", "found"]
    refused = build_worker.outcome(Job("model:doubled", "", {"backend_tag": "CPU"}, lines={"": 1}))
    assert refused.error.endswith(
        "A DaCe program takes no options of 'gtstub.compile()': pass them to 'gtstub.program()'."
    )
