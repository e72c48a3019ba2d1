"""gtstub: C call stubs for gt4py programs compiled by DaCe."""

from __future__ import annotations

__version__ = "0.1.0"
