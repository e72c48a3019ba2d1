"""Graphs of CUDA whose calls a block makes, as a host in C captures them; `Step.as_graph()` does so with a step."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from gtstub import _host


class Captured:
    """`with Captured() as graph:` captures the calls of the block; `graph(stream)` launches them."""

    def __init__(self) -> None:
        self._graph: object = None

    def __enter__(self) -> Self:
        self._graph = _host.begin_graph()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            _host.end_graph(self._graph)
        else:
            self._graph = None  # frees it, and ends the capture

    def __call__(self, stream: Any = "current") -> None:
        is_current = isinstance(stream, str) and stream == "current"
        _host.launch_graph(self._graph, _host.get_stream() if is_current else stream)
