"""The errors of gtstub. Each message says what is wrong and, if possible, how to correct it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class GtstubError(Exception):
    """The base class of all errors below. The CLI prints the message and exits with `exit_code`."""

    exit_code = 1


class SignatureError(GtstubError):
    """A signature document is malformed, or does not fit its schema."""

    exit_code = 3


class PlanError(GtstubError):
    """The two signatures of a program contradict each other."""

    exit_code = 4


class ContradictionError(PlanError):
    """`what` says how the signatures contradict each other; `symbols` are those that no argument determines."""

    def __init__(self, program: str, what: str, symbols: tuple[str, ...] = ()) -> None:
        super().__init__(f"The signatures of program '{program}' contradict each other: {what}.")
        self.what = what
        self.symbols = symbols


class SourceError(GtstubError):
    """The source of a function has changed since its import."""


class ToolchainError(GtstubError):
    """There is no C compiler, or it rejected a stub."""

    exit_code = 5


class CacheError(GtstubError):
    """A cache entry is missing or incomplete, or belongs to another program."""

    exit_code = 6


class GranuleError(GtstubError):
    """Steps cannot become a granule, or an exported granule does not do what it was exported from."""


class TrustError(CacheError):
    """Somebody who is not trusted could have written a cache entry."""


def unwritable(path: Path, error: OSError) -> CacheError:
    """The exception to raise if a cache cannot be written."""
    advice = "Correct this, or name another directory in GTSTUB_CACHE_DIR."
    return CacheError(f"The cache cannot be written at '{path}': {error.strerror}. {advice}")


class ConfigError(GtstubError):
    """A table of backends is malformed or has an unknown option, or an environment variable is wrong."""

    exit_code = 8


class VersionError(GtstubError, ImportError):
    """The installed gt4py is of a version that gtstub does not support."""


class ArgumentError(GtstubError, TypeError):
    """The arguments of a call do not fit its program."""


class CompilationError(GtstubError):
    """A variant of a program could not be built. The reason is the `__cause__`."""


class CaptureError(GtstubError):
    """What was captured is no step, or the step does not do what the captured method does."""


class CaptureWarning(UserWarning):
    """A captured step may lack something that the captured method does, which could not be found out."""


class RanksError(GtstubError):
    """The rank, the layout or the code path of a run is malformed or contradictory."""

    exit_code = 9


def reason(error: BaseException) -> str:
    """The message of another library's exception, or else its type. The text of a KeyError loses its quotes."""
    message = error.args[0] if isinstance(error, KeyError) and error.args else error
    return str(message) or type(error).__name__
