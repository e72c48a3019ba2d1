"""Errors of signatures in words for users who have written a DaCe program, and no signature."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from gtstub.errors import ContradictionError, PlanError, SignatureError
from gtstub.frameworks.dace.readings import Reading


@contextlib.contextmanager
def words_of_dace(program: str, read: Mapping[str, Reading]) -> Iterator[None]:
    """A block that makes a program's signatures. `read` has the arrays that it reads by their names in the SDFG."""
    try:
        yield
    except ContradictionError as error:
        if error.symbols:
            s = "s" if error.symbols[1:] else ""
            names = " and ".join(f"'{name}'" for name in error.symbols)
            passed = " and ".join(f"'{name}=...'" for name in error.symbols)
            raise PlanError(
                f"Program '{program}' needs the symbol{s} {names}, which no argument determines: pass {passed}."
            ) from None
        raise PlanError(f"Program '{program}' cannot be called through a stub: {error.what}.") from None
    except SignatureError as error:
        text = str(error)
        for name, reading in read.items():
            text = text.replace(f"'{name}'", f"'{reading.source}'")
        raise SignatureError(text) from None
