"""Calls of programs for a GPU as one graph of CUDA."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from gtstub import _host


class graph:  # noqa: N801  because it is used as a function
    """
    The calls of a block, launched together:

        with gtstub.graph() as step:
            diffusion(...)
            advection(...)
        for _ in range(steps):
            step()

    In the block, calls run nothing. Each program must have been called before. Its arrays and scalars are those of the
    block: arrays must not be freed as long as the graph is launched, and a program must not be called on another stream
    at the same time.

    Raises RuntimeError for a program that cannot be part of a graph, and then the block ends without a graph.
    """

    def __init__(self) -> None:
        self._graph: object = None
        self._is_complete = False

    def __enter__(self) -> Self:
        if self._graph is not None:
            raise RuntimeError("A graph captures one block; make another one with 'gtstub.graph()'.")
        self._graph = _host.begin_graph()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            _host.end_graph(self._graph)
            self._is_complete = True
        else:
            self._graph = None  # frees it, and ends the capture

    def __call__(self, stream: Any = "current") -> None:
        """Puts all calls on `stream`, by default that of `gtstub.stream()`, and returns without waiting for them."""
        if not self._is_complete:
            raise RuntimeError("The graph has captured nothing: its block has not ended, or has failed.")
        is_current = isinstance(stream, str) and stream == "current"
        _host.launch_graph(self._graph, _host.get_stream() if is_current else stream)
