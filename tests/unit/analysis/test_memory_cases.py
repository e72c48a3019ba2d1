"""Transients whose sizes or places are easily taken for others; test_memory.py has the plain ones."""

from __future__ import annotations

import pytest

from gtstub.analysis.memory import Memory, memory
from tests.support.sdfg_documents import sdfg, state, transient


def sizes(found: Memory) -> dict[str, int | None]:
    return {each.name: each.bytes for each in found.transients}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("symbol($N, dtype=dace.int64)", 8 * 11),
        ("2*symbol($N, dtype=dace.int64) + Max(1, symbol($N, dtype=dace.int64))", 8 * 33),
        ("__int_floor($N, 2)", 8 * 5),
    ],
)
def test_forms_of_sizes(text: str, expected: int) -> None:
    found = memory(sdfg(state("a"), arrays={"a": transient(text)}), {"N": 11})
    assert sizes(found) == {"a": expected}
    assert found.unknown == ()
