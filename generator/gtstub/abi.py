"""
Numbers of the binary interface between stubs, runtime and hosts. They repeat those in `gtstub/gtstub.h`; a test
compares them with the header (tests/unit/test_abi.py).
"""

from __future__ import annotations

ABI = 11
"""GTS_ABI. A stub is generated for one ABI, and the runtime refuses stubs of other ABIs."""

MAX_RANK = 6
"""GTS_MAX_RANK, the largest number of dimensions of a field."""

POOLED_BYTES = 32768
"""GTS_POOLED_BYTES. An array of an SDFG that has at least as many bytes comes from the pool."""

SONAME = f"libgtstub.so.{ABI}"
"""The file name of the runtime library."""
