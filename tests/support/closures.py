"""What calls read of DaCe programs that are not compiled."""

from __future__ import annotations

import warnings
from typing import Any

import dace

from gtstub.frameworks.dace.closures import Closure, closure_of
from gtstub.frameworks.dace.front_end import FrontEnd
from gtstub.frameworks.dace.internals import refresh
from gtstub.frameworks.dace.recording import recording


def closure_without_build(function: Any) -> Closure:
    """What calls read of a program that DaCe has only preprocessed."""
    program = dace.program(function)
    with recording(lambda _: None) as recorder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refresh(program)
        program.resolver = program.closure_resolver({}, set())
    closure = closure_of(program, {}, (), recorder, FrontEnd())
    assert sum(closure.ends.values()) == len(recorder.evaluations)
    return closure
