"""
The runtime library through ctypes: the functions of `gtstub/gtstub.h`, `gtstub/replay.h` and `gtstub/granule.h` that
replays, granules and tests use.

Handles are pointers. The caller releases them as the headers say.
"""

from __future__ import annotations

import ctypes
import functools

from gtstub.abi import MAX_RANK
from gtstub.errors import GtstubError
from gtstub.install import RUNTIME


class Array(ctypes.Structure):
    """`gts_array`. `origin`, `shape` and `strides` count elements."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_uint32, 16),
        ("device", ctypes.c_uint32, 16),
        ("rank", ctypes.c_int16),
        ("readonly", ctypes.c_bool),
        ("origin", ctypes.c_int64 * MAX_RANK),
        ("shape", ctypes.c_int64 * MAX_RANK),
        ("strides", ctypes.c_int64 * MAX_RANK),
        ("dims", ctypes.c_char_p * MAX_RANK),
    )


class Error(ctypes.Structure):
    """`gts_error`."""

    _fields_ = (("kind", ctypes.c_int), ("message", ctypes.c_char * 1024))


@functools.cache
def runtime() -> ctypes.CDLL:
    """The library, with the argument and result types of its functions."""
    library = ctypes.CDLL(str(RUNTIME))
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    for name, result, arguments in (
        ("gts_open", ctypes.c_int, (text, pointer)),
        ("gts_close", None, (pointer,)),
        ("gts_name", text, (pointer,)),
        ("gts_last_error", ctypes.POINTER(Error), (pointer,)),
        ("gts_replay_open", ctypes.c_int, (text, pointer)),
        ("gts_replay_is_of", ctypes.c_bool, (pointer, size, pointer)),
        ("gts_replay_tolerate", ctypes.c_int, (pointer, text, ctypes.c_uint64)),
        ("gts_replay_call", ctypes.c_int, (pointer, size, pointer)),
        ("gts_replay_step", ctypes.c_int, (pointer, ctypes.POINTER(size), ctypes.POINTER(pointer), size)),
        ("gts_replay_compare", ctypes.c_int, (pointer, size, text, ctypes.POINTER(Array))),
        ("gts_replay_worst", pointer, (pointer, ctypes.POINTER(size), ctypes.POINTER(text))),
        ("gts_replay_close", pointer, (pointer,)),
        ("gts_granule_array", ctypes.c_int, (pointer, text, ctypes.POINTER(Array))),
        ("gts_granule_swap", ctypes.c_int, (pointer, text, text)),
        ("gts_granule_close", None, (pointer,)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def refusal(program: ctypes.c_void_p | None = None) -> GtstubError:
    """The last error of a program, or of this thread if there is none, as an exception to raise."""
    return GtstubError(runtime().gts_last_error(program).contents.message.decode(errors="replace"))


def free(memory: int) -> None:
    """Frees memory that the runtime has allocated."""
    ctypes.CDLL(None).free(ctypes.c_void_p(memory))
