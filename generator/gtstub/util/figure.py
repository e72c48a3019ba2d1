"""Plot files. This is the only module that imports matplotlib, which is optional (the extra 'plot')."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gtstub.errors import GtstubError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def refuse_undrawable(path: Path) -> None:
    """Raises GtstubError if `path` is neither SVG nor PNG, or matplotlib is not installed."""
    if path.suffix.lower() not in (".svg", ".png"):
        raise GtstubError(f"A plot file must end in '.svg' or '.png', but is '{path}'.")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise GtstubError("Plots need matplotlib: 'pip install matplotlib'.") from None


@contextlib.contextmanager
def drawing(path: Path, width: float, height: float) -> Iterator[Figure]:
    """A figure of `width` by `height` inches, written at the end of the block. Equal figures give equal SVG bytes."""
    refuse_undrawable(path)
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "gtstub", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
