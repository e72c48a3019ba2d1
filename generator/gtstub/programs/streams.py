"""The stream of a GPU that programs put their work on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gtstub import _host


@contextmanager
def stream(stream: Any) -> Iterator[None]:
    """
    Programs for a GPU use `stream` in this context, in all threads, unless they have a stream of their own
    (`Program.stream`, `make_backend(stream=...)`).

    `stream` is None for the default stream, an address, or an object with `__cuda_stream__`, such as
    `cupy.cuda.Stream`. It must not be destroyed in the context. Calls return when their work is on the stream; to wait
    for the work, synchronise the stream. Raises RuntimeError and ValueError as `Program.stream` does.
    """
    before = _host.get_stream()
    _host.set_stream(stream)
    try:
        yield
    finally:
        _host.set_stream(before)
