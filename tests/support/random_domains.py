"""Calls of a gt4py program with fields on random domains, compared with embedded execution of the same calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import gt4py.next as gtx
import numpy as np
from gt4py.next import common
from gt4py.next.embedded.exceptions import NonContiguousDomain

from tests.support.bounds_judge import Setting, needed_ends
from tests.support.bounds_programs import BoundProgram
from tests.support.gt4py_programs import Case

Arguments = dict[str, Any]


def unlike_embedded(program: BoundProgram, case: Case, setting: Setting, draws: int) -> Iterator[str]:
    """
    What differs between a program and embedded execution: calls that only one of them refuses, and other results.
    Domains are drawn around the elements that the signature says are needed. Nothing if embedded execution cannot run
    the program at all. What it refuses for reasons of its own is left out: fields that are no rectangle while they are
    computed, which neighbors often make.
    """
    random = np.random.default_rng(0)
    arguments = dataclasses.replace(case, values=setting.scalars).make_arguments()
    tables = case.make_offset_provider()
    if _embedded(case, arguments, tables) is None:
        return
    ends = needed_ends(program, setting)
    for _ in range(draws):
        drawn = {name: _on_random_domains(value, name, ends, random) for name, value in arguments.items()}
        expected, found = _embedded(case, drawn, tables), _called(program, drawn, tables)
        if expected == {} or (expected is None and tables):
            continue
        domains = {name: str(value.domain) for name, value in _fields(drawn)}
        if (expected is None) != (found is None):
            yield f"{'refused' if found is None else 'accepted'}, unlike by embedded execution, with {domains}"
        elif expected is not None and found is not None:
            for name in expected:
                if not np.allclose(expected[name], found[name], rtol=1e-13, equal_nan=True):
                    yield f"'{name}' has other results than those of embedded execution with {domains}"


def _embedded(case: Case, arguments: Arguments, tables: common.OffsetProvider) -> Mapping[str, Any] | None:
    """The fields after a call by embedded execution; None if it refuses the call, nothing if it cannot compute them."""
    copied = {name: _copied(value) for name, value in arguments.items()}
    try:
        case.program().with_backend(None)(**copied, offset_provider=tables)
    except NonContiguousDomain:
        return {}
    except Exception:  # of any kind
        return None
    return {name: value.asnumpy() for name, value in _fields(copied)}


def _called(program: BoundProgram, arguments: Arguments, tables: common.OffsetProvider) -> Mapping[str, Any] | None:
    copied = {name: _copied(value) for name, value in arguments.items()}
    try:
        program.checked(**copied, offset_provider=tables)
    except ValueError:
        return None
    return {name: value.asnumpy() for name, value in _fields(copied)}


def _fields(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _fields(each, key)
    elif isinstance(value, tuple):
        for number, each in enumerate(value):
            yield from _fields(each, f"{name}_{number}")
    elif isinstance(value, common.Field) and value.domain.dims:
        yield name, value


def _copied(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_copied, value))
    return gtx.as_field(value.domain, value.asnumpy().copy()) if isinstance(value, common.Field) else value


def _on_random_domains(value: Any, name: str, ends: Mapping[tuple[str, int], tuple[int, int]], random: Any) -> Any:
    """The value with fields on parts of their domains, which begin and end where the program needs it, or near."""
    if isinstance(value, tuple):
        return tuple(_on_random_domains(each, f"{name}_{i}", ends, random) for i, each in enumerate(value))
    if not isinstance(value, common.Field) or not value.domain.dims:
        return value
    ranges = []
    for axis, (dim, whole) in enumerate(value.domain):
        start, stop = whole.start, whole.stop
        if dim.kind != common.DimensionKind.LOCAL and random.random() < 0.5:
            low, high = ends.get((name, axis), (start, stop - 1))
            start = int(np.clip(low + random.integers(-1, 2), start, stop - 1))
            stop = int(np.clip(high + 1 + random.integers(-1, 2), start + 1, stop))
        ranges.append(common.named_range((dim, (start, stop))))
    return value[common.Domain(*ranges)]
