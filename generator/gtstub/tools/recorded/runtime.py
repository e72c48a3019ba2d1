"""
The runtime library through ctypes: the functions of `gtstub/gtstub.h`, `gtstub/step.h` and `gtstub/granule.h` that
replays, granules and tests use, and how a stub describes its program.

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


FIELD, CONNECTIVITY, STATIC = 0, 3, 4
"""Of `gts_leaf_kind`."""

CPU = 1
"""GTS_CPU."""


class Contract(ctypes.Structure):
    """`gts_contract`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("path", ctypes.c_char_p),
        ("kind", ctypes.c_uint),
        ("dtype", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("others", ctypes.c_uint * 3),
        ("codomain", ctypes.c_char_p),
        ("member", ctypes.c_size_t),
        ("more", ctypes.c_size_t * 2),
        ("value", ctypes.c_void_p),
    )


class Stub(ctypes.Structure):
    """`gts_stub`, as far as `call`."""

    _fields_ = (
        ("abi", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("others", ctypes.c_void_p * 3),
        ("program_digest", ctypes.c_char_p),
        ("sdfg_digest", ctypes.c_char_p),
        ("more", ctypes.c_void_p * 3),
        ("leaf_count", ctypes.c_uint32),
        ("leaves", ctypes.POINTER(Contract)),
        ("counts", ctypes.c_void_p * 5),
        ("args_size", ctypes.c_size_t),
        ("rest", ctypes.c_void_p * 5),
        ("call", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
    )


class Opened(ctypes.Structure):
    """The beginning of `gts_program`."""

    _fields_ = (("others", ctypes.c_char * 64), ("stub", ctypes.POINTER(Stub)))


class Action(ctypes.Structure):
    """`gts_action`."""

    _fields_ = (("call", ctypes.c_void_p), ("others", ctypes.c_void_p * 7))


@functools.cache
def runtime() -> ctypes.CDLL:
    """The library, with the argument and result types of its functions."""
    library = ctypes.CDLL(str(RUNTIME))
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    for name, result, arguments in (
        ("gts_open", ctypes.c_int, (text, pointer)),
        ("gts_close", None, (pointer,)),
        ("gts_last_error", ctypes.POINTER(Error), (pointer,)),
        ("gts_bind", ctypes.c_int, (pointer, pointer, pointer)),
        ("gts_unbind", None, (pointer,)),
        ("gts_step_new", ctypes.c_int, (text, pointer, size, pointer)),
        ("gts_step_run", ctypes.c_int, (pointer,)),
        ("gts_step_free", ctypes.c_int, (pointer,)),
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
