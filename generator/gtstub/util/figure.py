"""Files of plots. The only module that imports matplotlib, which is optional: the extra 'plot'."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gtstub.errors import GtstubError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def refuse_undrawable(path: Path) -> None:
    """Raises GtstubError where `path` is of another format, or matplotlib is missing."""
    if path.suffix.lower() not in (".svg", ".png"):
        raise GtstubError(f"A plot is written to a file '.svg' or '.png', not to '{path}'.")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise GtstubError("A plot needs matplotlib, which is not installed: 'pip install gtstub[plot]'.") from None


@contextlib.contextmanager
def drawing(path: Path, width: float, height: float) -> Iterator[Figure]:
    """A figure, in inches, that is written when the statement ends. The same figure gives the same bytes of SVG."""
    refuse_undrawable(path)
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "gtstub", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
