"""
Numbers of the binary interface between stubs, runtime and hosts, as `gtstub/gtstub.h` defines them. Tests compare them
with the header.
"""

from __future__ import annotations

ABI = 4
"""GTS_ABI: a stub is generated for one ABI, and the runtime refuses stubs of any other."""

MAX_RANK = 6
"""GTS_MAX_RANK: the most dimensions that a field can have."""

SONAME = f"libgtstub.so.{ABI}"
"""The file name of the runtime library."""
