"""The sources of the runtime, for tests that compile it themselves or read it."""

from __future__ import annotations

from pathlib import Path

from tests.support.checkout import ROOT

RUNTIME = ROOT / "runtime"


def runtime_sources(pattern: str = "*.c") -> list[Path]:
    """Those of libgtstub, without its public headers and without the Python host."""
    others = (RUNTIME / "python", RUNTIME / "include")
    return [path for path in sorted(RUNTIME.rglob(pattern)) if not any(path.is_relative_to(other) for other in others)]
