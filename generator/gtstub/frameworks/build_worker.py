"""Lowers and builds one variant of a program that a build file lists, as `gtstub.compile()` does."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from gtstub.entries.building.jobs import Job, failed
from gtstub.entries.building.outcome import Outcome, State
from gtstub.errors import reason
from gtstub.frameworks.framework import CompileOptions, Framework
from gtstub.frameworks.resolve import offset_provider, resolve, resolve_program

TABLES = ("horizontal_sizes", "vertical_sizes", "bound_static_args")

_provider = functools.cache(offset_provider)
"""Cached, because many programs use the same grid."""


def size(job: Job, dry: bool) -> int | Outcome:
    """Lowers a variant and returns its size, unless the cache has it or `dry` is True. Returns errors as an outcome."""
    return _run(job, lambda framework, program, options: "missing" if dry else framework.lower(program, options))


def outcome(job: Job) -> Outcome:
    """Builds a variant, unless the cache has it. Returns errors as an outcome."""

    def build(framework: Framework, program: Any, options: CompileOptions) -> State:
        framework.build(program, options)
        return "built"

    result = _run(job, build)
    assert isinstance(result, Outcome)
    return result


def _run(job: Job, work: Callable[[Framework, Any, CompileOptions], State | int]) -> int | Outcome:
    """The outcome of work on a variant that the cache does not have, or its result if that is a size."""
    begin = time.monotonic()
    key = ""
    try:
        framework, program = resolve_program(job.source)
        options = compile_options(job)
        (request,) = framework.requests(program, options)
        key = request.key
        state = "found" if request.cache.find(key) is not None else work(framework, program, options)
    except Exception as error:  # gt4py's exceptions have no common base class.
        return failed(job, reason(error), time.monotonic() - begin, key)
    if isinstance(state, int):
        return state
    return Outcome(job.program, job.variant, state, time.monotonic() - begin, key)


def compile_options(job: Job) -> CompileOptions:
    """The arguments of `gtstub.compile()`, converted from the values of the file."""
    tables = {name: _value(job.arguments[name]) for name in TABLES if name in job.arguments}
    static = {name: list(map(_value, values)) for name, values in job.arguments.get("static_args", {}).items()}
    provider = _provider(job.grid) if job.grid else {}
    return CompileOptions(**{**job.arguments, **tables, "static_args": static, "offset_provider": provider})


def _value(value: Any) -> Any:
    """Converts lists to tuples, and text to the object that it names. No program takes lists or text."""
    if isinstance(value, dict):
        return {name: _value(element) for name, element in value.items()}
    if isinstance(value, list):
        return tuple(map(_value, value))
    return resolve(value) if isinstance(value, str) else value
