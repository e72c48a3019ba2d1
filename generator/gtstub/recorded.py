"""The old name of gtstub.tools.recorded, until 1.0. New code calls `gtstub.archives()`."""

from gtstub.tools.recorded import Archive, Call, Leaf, Program, Value, archives

__all__ = ["Archive", "Call", "Leaf", "Program", "Value", "archives"]
