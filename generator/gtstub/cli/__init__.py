"""The command line, `gtstub`."""

from __future__ import annotations

from gtstub.cli.app import main

__all__ = ["main"]
