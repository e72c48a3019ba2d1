"""Graphs of CUDA whose calls a host captures itself: on a stream of its own, which it sets for all programs."""

from __future__ import annotations

import ctypes
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import gtstub

NON_BLOCKING = 1
OF_THIS_THREAD = 1


class Captured:
    """`with Captured() as graph:` captures the calls of the block; `graph(stream)` launches them."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcudart.so.13")
        self._stream, self._executable = ctypes.c_void_p(), ctypes.c_void_p()
        self._outside = ExitStack()

    def _call(self, function: str, *arguments: Any) -> None:
        assert self._cuda[function](*arguments) == 0, function

    def __enter__(self) -> Self:
        self._call("cudaStreamCreateWithFlags", ctypes.byref(self._stream), ctypes.c_uint(NON_BLOCKING))
        self._outside.enter_context(gtstub.stream(self._stream.value))
        self._call("cudaStreamBeginCapture", self._stream, OF_THIS_THREAD)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        graph = ctypes.c_void_p()
        with self._outside:
            self._call("cudaStreamEndCapture", self._stream, ctypes.byref(graph))
        self._call("cudaGraphInstantiateWithFlags", ctypes.byref(self._executable), graph, ctypes.c_uint64(0))

    def __call__(self, stream: int | None = None) -> None:
        self._call("cudaGraphLaunch", self._executable, ctypes.c_void_p(stream))
