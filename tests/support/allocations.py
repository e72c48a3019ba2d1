"""What this process holds, counted by those that allocate it: pages and peaks say that only roughly."""

from __future__ import annotations

import ctypes
import gc
import os
import sys

import pytest

needs_frees = pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="The sanitizer keeps freed memory."
)
needs_counts = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="Only glibc 2.33 and later count what malloc gave."
)


class _Mallinfo(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def held() -> tuple[int, int]:
    """Blocks of Python's own allocator, and bytes of malloc's."""
    gc.collect()
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = _Mallinfo
    now = mallinfo()
    return sys.getallocatedblocks(), now.uordblks + now.hblkhd


def growth(before: tuple[int, int]) -> int:
    """Blocks or bytes that are held and were not held before, whichever are more."""
    return max(now - then for now, then in zip(held(), before, strict=True))
