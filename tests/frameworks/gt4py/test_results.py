"""Programs that are built and called through their stubs give what gt4py's embedded execution gives."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gt4py.next import common
from gt4py.next.otf import stages

from gtstub.frameworks.gt4py.backend import StubBackend, make_backend
from tests.support.gt4py_programs import CASES, ICON_CASES, Case, build_lowered

BUILT = {
    name: CASES[name]
    for name in (
        "apply_diffusion_to_vn_as_in_icon4py",
        "calculate_nabla4",
        "nested_tuples",
        "named_collections",
        "dimensions",
        "field_operator",
        "scan",
        "persistent_memory",
        "external_workspace",
    )
}


@dataclasses.dataclass(frozen=True)
class IdleBackend(StubBackend):
    """Builds programs that do nothing, to see that the comparison notices."""

    def load_artifact(self, artifact: stages.CompilationArtifact) -> stages.ExecutableProgram:
        return lambda *args, **kwargs: None


def fields_of(value: Any) -> Iterator[np.ndarray]:
    """Copies of all fields in an argument: what `asnumpy` returns is a view."""
    if isinstance(value, common.Field):
        yield value.asnumpy().copy()
    elif isinstance(value, tuple):
        for element in value:
            yield from fields_of(element)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from fields_of(getattr(value, field.name))


def assert_same_results(case: Case, backend: StubBackend) -> None:
    before = {name: list(fields_of(value)) for name, value in case.make_arguments().items()}
    expected = {name: list(fields_of(value)) for name, value in case.call(None).items()}
    found = {name: list(fields_of(value)) for name, value in case.call(backend).items()}
    for name, fields in expected.items():
        for wanted, field in zip(fields, found[name], strict=True):
            np.testing.assert_allclose(field, wanted, rtol=1e-12, atol=1e-12, err_msg=f"argument '{name}'")
    assert any(
        not np.array_equal(field, old)
        for name, fields in found.items()
        for field, old in zip(fields, before[name], strict=True)
    ), "the program has changed nothing"


@pytest.mark.parametrize("case", BUILT.values(), ids=BUILT)
def test_results_are_those_of_embedded_execution(case: Case) -> None:
    backend = make_backend(gpu=False, **case.options)
    if case in ICON_CASES:  # the tests beside this one lower them; the small ones go the whole way
        build_lowered(case, backend)
    assert_same_results(case, backend)
    idle = IdleBackend(**{field.name: getattr(backend, field.name) for field in dataclasses.fields(backend)})
    with pytest.raises(AssertionError):
        assert_same_results(case, idle)
