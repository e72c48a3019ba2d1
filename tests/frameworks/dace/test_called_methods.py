"""What programs read from objects: those whose methods they call, and those that they get as arguments."""

import dace
import numpy as np
import pytest

import gtstub


class Layer:
    def __init__(self, weight: float, factor: float) -> None:
        self.weight = np.full(6, weight)
        self.factor = factor

    @dace.method
    def add(self, field):
        field[:] = field + self.weight * self.factor


class Model:
    def __init__(self) -> None:
        self.first, self.second = Layer(2.0, 3.0), Layer(5.0, 7.0)

    @gtstub.program
    @dace.method
    def step(self, field):
        self.first.add(field)
        self.second.add(field)


def test_each_object_has_its_own_arrays() -> None:
    model, field = Model(), np.zeros(6)
    model.step(field)
    assert (field == 6 + 35).all()
    model.second.weight = np.full(6, 1.0)
    model.step(field)
    assert (field == 41 + 6 + 7).all()


def test_a_value_that_was_compiled_in_is_refused_when_it_has_changed() -> None:
    model, field = Model(), np.zeros(6)
    model.step(field)
    model.second.factor = 8.0
    with pytest.raises(ValueError, match=r"was compiled for 'self\.factor' = 7\.0, but it is 8\.0 now"):
        model.step(field)


@gtstub.program
@dace.program
def subtract(field, left: dace.compiletime, right: dace.compiletime):
    field[:] = left.weight - right.weight


def test_objects_may_come_in_any_order() -> None:
    left, right, field = Layer(5.0, 1.0), Layer(1.0, 1.0), np.zeros(6)
    subtract(field, left=left, right=right)
    assert (field == 4).all()
    subtract(field, right=right, left=left)
    assert (field == 4).all()
