"""Recordings of calls: reading, replaying, and files for serialbox (docs/record.md)."""

from __future__ import annotations

from gtstub.tools.recorded.archive import Archive, Call, Leaf, Program, Value, archives

__all__ = ["Archive", "Call", "Leaf", "Program", "Value", "archives"]
