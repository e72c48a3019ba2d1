"""The version of gtstub, which the build reads from this file, and the versions of gt4py that it works with."""

__version__ = "0.1.0"

GT4PY_VERSIONS = ("1.2.1", "1.2.2", "1.2.3")
