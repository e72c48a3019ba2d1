"""The plug-in for gt4py: `make_backend` makes a backend whose programs are called through stubs."""

from __future__ import annotations

from gtstub.frameworks.gt4py.backend import make_backend

__all__ = ["make_backend"]
