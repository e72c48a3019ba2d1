"""
Random gt4py programs access what their signatures say.

GTSTUB_EXAMPLES=N draws N new programs; without it a run draws the same few every time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import os
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gtstub.entries.toolchain.compiler import Toolchain
from tests.bounds.cases import Judged, ring
from tests.bounds.test_small_programs import build_case
from tests.support.bounds_judge import judge
from tests.support.gt4py_programs import Case
from tests.support.random_stencils import Stencil, stencils

EXAMPLES = os.environ.get("GTSTUB_EXAMPLES")
RANGES = {"I": (-16, 20), "K": (-16, 20), "Vertex": (0, 12), "Edge": (0, 12), "V2E": (0, 2), "E2V": (0, 2)}

_numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stencils")


@settings(
    max_examples=int(EXAMPLES or 3),
    derandomize=EXAMPLES is None,
    phases=[Phase.explicit, Phase.generate],  # each program is built, and small as it is
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(stencil=stencils(), is_optimized=st.booleans())
def test_random_programs_access_what_their_signatures_say(
    stencil: Stencil, is_optimized: bool, folder: Path, monkeypatch: pytest.MonkeyPatch, toolchain: Toolchain
) -> None:
    name = f"stencil_{hashlib.sha256(stencil.text.encode()).hexdigest()[:12]}_{next(_numbers)}"
    (folder / f"{name}.py").write_text(stencil.text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    case = Case(
        name,
        name,
        "stencil",
        RANGES,
        options={"auto_optimize": is_optimized},
        values=dict(stencil.scalars[0]),
        offset_provider=ring,
    )
    skips = frozenset({"V2E"} if stencil.tests_skip_values else ())
    judged = Judged(case, stencil.scalars, skips)
    try:
        program = build_case(judged, Path(tempfile.mkdtemp(dir=folder)), toolchain)
    finally:
        sys.modules.pop(name, None)
    for each in judged.settings():
        setting = dataclasses.replace(each, ranges=RANGES)
        assert judge(program, setting).problems == ()
