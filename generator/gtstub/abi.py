"""Constants of the binary interface between stubs, runtime and hosts. Tests compare them with `gtstub/gtstub.h`."""

from __future__ import annotations

ABI = 4
"""GTS_ABI. The runtime refuses stubs that were generated for another ABI."""

MAX_RANK = 6
"""GTS_MAX_RANK: the greatest number of dimensions of a field."""

SONAME = f"libgtstub.so.{ABI}"
"""The file name of the runtime library."""
