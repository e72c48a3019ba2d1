"""Builds one variant of a program that a build file lists, as `gtstub.compile()` does."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from typing import Any

from gtstub.building.jobs import Job, failed
from gtstub.building.outcome import Outcome, State
from gtstub.errors import reason
from gtstub.frameworks.resolve import offset_provider, resolve, resolve_program

TABLES = ("horizontal_sizes", "vertical_sizes", "bound_static_args")

_provider = functools.cache(offset_provider)
"""A grid serves many programs."""


def outcome(job: Job, dry: bool) -> Outcome:
    """Builds the variant, unless it is in the cache, or `dry`. What goes wrong is the outcome."""
    from gtstub.frameworks.gt4py.compile import CompileOptions, compile, requests  # noqa: A004

    begin = time.monotonic()
    state: State = "built"
    key = ""
    try:
        program = resolve_program(job.source)
        arguments = compile_arguments(job)
        (request,) = requests(program, CompileOptions(**arguments))
        key = request.key
        if request.cache.find(key) is not None:
            state = "found"
        elif dry:
            state = "missing"
        else:
            compile(program, **arguments).variants[0].result.result()
    except Exception as error:  # gt4py has no common base for its own.
        return failed(job, reason(error), time.monotonic() - begin, key)
    return Outcome(job.program, job.variant, state, time.monotonic() - begin, key)


def compile_arguments(job: Job) -> dict[str, Any]:
    """The arguments of `compile`: values of the file as Python has them."""
    arguments = dict(job.arguments)
    for table in TABLES:
        if table in arguments:
            arguments[table] = {name: _value(value) for name, value in arguments[table].items()}
    static: Mapping[str, list[Any]] = arguments.get("static_args", {})
    arguments["static_args"] = {name: [_value(value) for value in values] for name, values in static.items()}
    return {**arguments, "offset_provider": _provider(job.grid) if job.grid else {}}


def _value(value: Any) -> Any:
    """A list is a tuple, and text names an object, as a member of an enumeration: no program takes lists or text."""
    if isinstance(value, list):
        return tuple(map(_value, value))
    return resolve(value) if isinstance(value, str) else value
