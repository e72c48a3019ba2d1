"""The memory of arrays: their bytes, and which are sections of which, on random views of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtstub.programs.granule.description import Section
from gtstub.programs.granule.memory import section_of
from gtstub.programs.layout import Layout

Array = np.ndarray[Any, Any]

SIZES = st.lists(st.integers(0, 5), min_size=1, max_size=4).map(tuple)


@st.composite
def views(draw: st.DrawFn, of: Array) -> Array:
    """A part of an array: sliced with steps of both signs, with axes in another order, some left out, some added."""
    slices: list[Any] = []
    for size in of.shape:
        kind = draw(st.sampled_from(["all", "slice", "one", "index"]))
        if kind == "index" and size > 0:
            slices.append(draw(st.integers(0, size - 1)))
        elif kind == "one" and size > 0:
            at = draw(st.integers(0, size - 1))
            slices.append(slice(at, at + 1))
        elif kind == "slice":
            slices.append(draw(st.slices(size)))
        else:
            slices.append(slice(None))
    made = of[tuple(slices)] if slices else of
    made = np.asarray(made) if made.ndim > 0 else of[(*slices[:-1], slice(slices[-1], slices[-1] + 1))]
    if draw(st.booleans()):
        made = made[np.newaxis]
    return made.transpose(draw(st.permutations(range(made.ndim))))


@st.composite
def arrays(draw: st.DrawFn) -> Array:
    """Arrays in any order of their axes, and views of larger ones, of which no two elements share memory."""
    shape = draw(SIZES)
    base = np.arange(np.prod(shape, dtype=int), dtype=draw(st.sampled_from(["float64", "int32", "int8"])))
    made = base.reshape(shape, order=draw(st.sampled_from("CF")))
    return draw(views(made)) if draw(st.booleans()) else made


def section_as_view(whole: Array, section: Section) -> Array:
    """What the runtime makes of a section: an address, sizes and strides."""
    if any(index >= size for index, size in zip(section.first, whole.shape, strict=True)):
        raise IndexError(section.first)
    begin = whole[tuple(slice(index, index + 1) for index in section.first)]
    strides = [step * whole.strides[axis] for axis, step in zip(section.axes, section.steps, strict=True)]
    return np.lib.stride_tricks.as_strided(begin, section.shape, strides)


def addresses(array: Array) -> Array:
    """The address of each element."""
    found = np.full(array.shape, array.ctypes.data)
    for axis, stride in enumerate(array.strides):
        steps = np.arange(array.shape[axis]) * stride
        found += steps.reshape([-1 if each == axis else 1 for each in range(array.ndim)])
    return found


def is_inside(part: Array, whole: Array) -> bool:
    return set(addresses(part).flat) <= set(addresses(whole).flat)


@given(st.data())
def test_a_section_is_at_the_same_addresses(data: st.DataObject) -> None:
    whole = data.draw(arrays())
    part = data.draw(views(whole))
    section = section_of(Layout.of(part), Layout.of(whole))
    if part.size == 0 or any(stride < 0 for stride in whole.strides):
        assert section is None
        return
    assert section is not None
    assert section.shape == part.shape
    found = section_as_view(whole, section)
    assert (addresses(found) == addresses(part)).all()


@given(st.data())
def test_a_section_is_never_wrong(data: st.DataObject) -> None:
    """Two views of one array: where the one is found to be a section of the other, all its elements are inside."""
    base = data.draw(arrays())
    whole, part = data.draw(views(base)), data.draw(views(base))
    section = section_of(Layout.of(part), Layout.of(whole))
    if section is None:
        return
    assert is_inside(part, whole)
    assert (addresses(section_as_view(whole, section)) == addresses(part)).all()


@given(st.data())
def test_a_section_holds_for_an_array_with_other_strides(data: st.DataObject) -> None:
    """The host may pass an argument with other strides: the same indices are the same elements."""
    whole = data.draw(arrays())
    part = data.draw(views(whole))
    section = section_of(Layout.of(part), Layout.of(whole))
    if section is None:
        return
    other = np.zeros([2 * size for size in whole.shape[::-1]], whole.dtype).T[tuple(slice(0, n) for n in whole.shape)]
    other[...] = whole
    assert section_as_view(other, section).tolist() == part.tolist()


def test_what_is_no_section() -> None:
    whole = np.zeros((4, 6))
    of = Layout.of(whole)
    assert section_of(Layout.of(whole.reshape(-1)), of) is None  # its axis crosses both
    assert section_of(Layout.of(whole.reshape(2, 12)[:, :8]), of) is None
    assert section_of(Layout.of(np.lib.stride_tricks.as_strided(whole, (4,), (7 * 8,))), of) is None  # the diagonal
    assert section_of(Layout.of(whole.view("int64")), of) is None
    assert section_of(Layout.of(whole.view("float32")), of) is None
    assert section_of(of, Layout.of(whole[:, 1:])) is None
    assert section_of(Layout.of(np.zeros(3)), of) is None
    assert section_of(Layout.of(whole[:0]), of) is None
    shifted = Layout(of.address + 4, "float64", (2,), (1,))
    assert section_of(shifted, of) is None


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (np.s_[:, 1:], Section((4, 5), (0, 1), (1, 1), (0, 1))),
        (np.s_[::-1, ::2], Section((4, 3), (0, 1), (-1, 2), (3, 0))),
        (np.s_[2], Section((6,), (1,), (1,), (2, 0))),
        (np.s_[:, 3], Section((4,), (0,), (1,), (0, 3))),
    ],
)
def test_sections(index: Any, expected: Section) -> None:
    whole = np.zeros((4, 6))
    assert section_of(Layout.of(whole[index]), Layout.of(whole)) == expected


@given(st.data())
def test_layouts_give_the_elements_and_the_bytes(data: st.DataObject) -> None:
    base = data.draw(arrays())
    array = data.draw(views(base))
    layout = Layout.of(array)
    assert (layout.array() == array).all()
    assert layout.array().strides == array.strides or array.size == 0
    raw = layout.raw()
    assert raw.size == layout.bytes
    low, high = np.lib.array_utils.byte_bounds(array) if array.size else (0, 0)
    assert layout.bytes == high - low
    places = addresses(array) - low
    for byte in range(array.dtype.itemsize):
        mine = raw[places.reshape(-1) + byte]
        assert (mine == array.copy().view("uint8").reshape(-1, array.itemsize)[:, byte]).all() if array.size else True
    outside = np.ones(raw.size, bool)
    for byte in range(array.dtype.itemsize):
        outside[places.reshape(-1) + byte] = False
    assert not raw[outside].any()


@given(st.data())
def test_arrays_overlap_where_they_share_an_element(data: st.DataObject) -> None:
    base = data.draw(arrays())
    one, other = data.draw(views(base)), data.draw(views(base))
    shares = bool(set(addresses(one).flat) & set(addresses(other).flat)) and one.size > 0 and other.size > 0
    assert Layout.of(one).overlaps(Layout.of(other)) == shares
