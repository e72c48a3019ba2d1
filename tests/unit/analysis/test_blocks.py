"""Which copies DaCe makes with memcpy, in forms that its own programs seldom have."""

import dataclasses

import pytest

from gtstub.stub.bounds.blocks import is_block
from gtstub.stub.sdfg.model import Container, Range, Subset

ROWS = Container("Array", "float64", ("M", "N"), ("N", "1"), "", "Default", "Scope", False, has_offset=False)
COLUMNS = dataclasses.replace(ROWS, strides=("1", "M"))
GAPS = dataclasses.replace(ROWS, strides=("2*N", "1"))
CUBE = dataclasses.replace(ROWS, shape=("K", "M", "N"), strides=("M*N", "N", "1"))


def part(*ends: str) -> Subset:
    """Each is one index, or 'first:last', the last included."""
    split = (each.partition(":") for each in ends)
    return Subset(tuple(Range(first, last or first) for first, _, last in split))


@pytest.mark.parametrize(
    ("container", "ends", "expected"),
    [
        (ROWS, ("i", "1:N - 2"), True),
        (ROWS, ("1:M - 2", "0:N - 1"), True),
        (ROWS, ("1:M - 2", "n:N - 1 + n"), True),
        (ROWS, ("1:M - 2", "i"), False),
        (ROWS, ("1:M - 2", "1:N - 2"), False),
        (COLUMNS, ("1:M - 2", "i"), True),
        (COLUMNS, ("i", "1:N - 2"), False),
        (GAPS, ("i", "1:N - 2"), False),
        (CUBE, ("i", "1:M - 2", "0:N - 1"), True),
        (CUBE, ("i", "0:M - 1", "1:N - 2"), False),
    ],
)
def test_parts(container: Container, ends: tuple[str, ...], expected: bool) -> None:
    assert is_block(container, part(*ends), container, part(*ends)) is expected


def test_two_arrays() -> None:
    row = part("i", "1:N - 2")
    assert is_block(ROWS, None, ROWS, row)
    assert not is_block(ROWS, row, COLUMNS, part("1:M - 2", "i"))
    for other in ({"dtype": "float32"}, {"storage": "Register"}, {"kind": "ArrayView"}):
        assert not is_block(ROWS, row, dataclasses.replace(ROWS, **other), row)
    assert not is_block(ROWS, row, CUBE, part("0", "i", "1:N - 2"))
    assert not is_block(ROWS, Subset((Range("i", "i"), Range("1", "N - 2", "2"))), ROWS, row)
