"""
What a model makes with gtstub (programs, a granule, a recording, a profile, a timeline) can be written by nobody else,
and gtstub does not refuse it, whatever umask and group are. tests/unit/cache/test_umask.py has the rest.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

from tests.support.checkout import ROOT
from tests.support.modes import OTHER, run_python, writable_by_others


@pytest.mark.parametrize(
    ("umask", "group"),
    [(0o000, None), pytest.param(0o002, OTHER, marks=pytest.mark.skipif(os.geteuid() != 0, reason="only for root"))],
)
def test_what_others_can_write(tmp_path: Path, umask: int, group: int | None) -> None:
    place = tmp_path / "place"
    place.mkdir(0o755)
    environment = {
        "GTSTUB_CACHE_DIR": str(place / "made" / "cache"),
        "GTSTUB_MACHINE_DIR": str(place / "new" / "machine"),
        "GTSTUB_RECORD": str(place / "recording"),
        "GTSTUB_PROFILE": str(place / "profile.json"),
        "GTSTUB_TRACE": str(place / "trace.json"),
        "PYTHONPATH": str(ROOT),
    }

    run = functools.partial(run_python, umask=umask, group=group, environment=environment)

    assert "right" in run("-m", "tests.support.trusted_model", str(place / "new" / "granule"))
    assert {path.name for path in place.iterdir()} >= {"made", "new", "recording", "profile.json"}
    assert any(path.name.startswith("trace") for path in place.iterdir())
    assert list(writable_by_others(place)) == []
    run("-m", "gtstub", "granule", "verify", str(place / "new" / "granule"))
