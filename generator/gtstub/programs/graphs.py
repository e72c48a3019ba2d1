"""Steps of programs for a GPU as graphs of CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gtstub import _host


class Graph:
    """
    The calls of a step, launched together: what `Step.as_graph()` returns. It has the arrays and scalars that the step
    had then, and keeps the arrays.
    """

    def __init__(self, step: _host.Step) -> None:
        self._arguments = [call.arguments for call in _calls(step, step.__name__)]
        self._graph: object = _host.begin_graph()
        try:
            step()
            _host.end_graph(self._graph)
        except BaseException:
            self._graph = None  # frees it, and ends the capture
            raise

    def __call__(self, stream: Any = "current") -> None:
        """Puts all calls on `stream`, by default that of `gtstub.stream()`, and returns without waiting for them."""
        is_current = isinstance(stream, str) and stream == "current"
        _host.launch_graph(self._graph, _host.get_stream() if is_current else stream)


def _calls(step: _host.Step, title: str, outer: str = "") -> Iterator[_host.BoundCall]:
    """The bound calls of a step and of the steps in it. Raises RuntimeError for a function."""
    for number, each in enumerate(step):
        position = f"{outer}{number + 1}"
        if isinstance(each, _host.BoundCall):
            yield each
        elif isinstance(each, _host.Step):
            yield from _calls(each, title, f"{position}.")
        else:
            raise RuntimeError(
                f"Step '{title}' cannot become a graph: position {position} is a function, which a graph does not call."
            )
