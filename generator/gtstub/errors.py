"""The errors that gtstub raises on purpose: one sentence that says what is wrong and, where it can, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class GtstubError(Exception):
    """Base of all errors below; the CLI prints its text and exits with `exit_code`."""

    exit_code = 1


class SignatureError(GtstubError):
    """A signature document is malformed, or is not of the schema it claims."""

    exit_code = 3


class PlanError(GtstubError):
    """The two signatures of a program contradict each other."""

    exit_code = 4


class ToolchainError(GtstubError):
    """There is no C compiler, or it refused a stub."""

    exit_code = 5


class CacheError(GtstubError):
    """A cache entry is missing, incomplete, or of another program."""

    exit_code = 6


def unwritable(path: Path, error: OSError) -> CacheError:
    """What to raise where a cache cannot be written."""
    return CacheError(
        f"The cache cannot be written at '{path}': {error.strerror}; put that right, or name another directory in"
        " GTSTUB_CACHE_DIR."
    )


class ConfigError(GtstubError):
    """A table of backends is malformed, or names what a backend does not know."""

    exit_code = 8


class CompilationError(GtstubError):
    """A variant of a program could not be built; the reason is its `__cause__`."""


class RanksError(GtstubError):
    """What is said about ranks, layout or code path is malformed or contradicts itself."""

    exit_code = 9


def reason(error: BaseException) -> str:
    """What an exception of another library says; a KeyError puts its text in quotes."""
    said = error.args[0] if isinstance(error, KeyError) and error.args else error
    return str(said) or type(error).__name__
