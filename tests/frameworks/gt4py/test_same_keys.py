"""An entry that was built for a call of gt4py's serves `gtstub.compile()` with the same values, and vice versa."""

from __future__ import annotations

import concurrent.futures
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from gt4py.next.otf import runners
from icon4py.model.common import model_backends

from gtstub.frameworks import icon4py
from gtstub.frameworks.framework import CompileOptions
from gtstub.frameworks.gt4py import compile as framework
from gtstub.frameworks.gt4py.backend import StubBackend, make_backend
from gtstub.frameworks.gt4py.runner import FindingRunner
from tests.support.gt4py_programs import CASES

NUMPY = {"weights": (np.float64(1.5), np.float64(0.5)), "exponent": np.int32(2), "flag": np.bool_(True)}
PYTHON = {"weights": (1.5, 0.5), "exponent": np.int32(2), "flag": True}


@dataclasses.dataclass
class Keys:
    """A runner that builds nothing, and keeps the keys of what it is asked to build."""

    keys: list[str] = dataclasses.field(default_factory=list)

    def submit(self, task: runners.CompilationTask) -> concurrent.futures.Future[Any]:
        self.keys.append(task.construct_compilable(False).request.key)
        refused: concurrent.futures.Future[Any] = concurrent.futures.Future()
        refused.set_exception(NotImplementedError("nothing is built"))
        return refused

    def shutdown(self, wait: bool = True) -> None:
        pass


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The key that a call of gt4py's asks for."""
    keys = Keys()
    monkeypatch.setattr(runners, "_default_runner", FindingRunner(keys))

    def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
        with pytest.raises(NotImplementedError):
            function(*args, **kwargs)
        return keys.keys.pop()

    return call


def compiled(program: Any, backend: StubBackend, static: Mapping[str, Any], offset_provider: Any) -> str:
    options = CompileOptions(backend=backend, bound_static_args=static, offset_provider=offset_provider)
    (request,) = framework.requests(program, options)
    return request.key


@pytest.mark.parametrize(
    "name",
    ["in_place", "explicit_domain", "scan", "named_collections", "nested_tuples", "static_arguments", "gather"],
)
def test_a_call_of_a_program(name: str, backend: StubBackend, called: Callable[..., str]) -> None:
    case = CASES[name]
    program, provider = case.program(), case.make_offset_provider()
    key = called(program.with_backend(backend), **case.make_arguments(), offset_provider=provider)
    assert key == compiled(program, backend, {}, provider)


def test_a_call_of_a_field_operator(backend: StubBackend, called: Callable[..., str]) -> None:
    case = CASES["field_operator"]
    key = called(case.program().with_backend(backend), **case.make_arguments(), offset_provider={})
    assert key == compiled(case.program(), backend, {}, {})


@pytest.mark.parametrize("given", [NUMPY, PYTHON])
@pytest.mark.parametrize("names", [["exponent"], ["weights"], ["flag", "weights"], list(NUMPY)])
def test_static_arguments(
    names: list[str], given: Mapping[str, Any], backend: StubBackend, called: Callable[..., str]
) -> None:
    """gt4py takes them as they are, numbers of Python or of numpy."""
    program = CASES["static_arguments"].program()
    static = {name: given[name] for name in names}
    choices = {name: [value] for name, value in static.items()}
    key = called(program.with_backend(backend).compile, **choices, offset_provider={})
    assert key == compiled(program, backend, {name: NUMPY[name] for name in names}, {})


def test_static_parameters_of_a_call(backend: StubBackend, called: Callable[..., str]) -> None:
    case = CASES["static_arguments"]
    program, arguments = case.program(), {**case.make_arguments(), **PYTHON}
    jit = program.with_backend(backend).with_compilation_options(static_params=("flag", "exponent"))
    key = called(jit, **arguments, offset_provider={})
    assert key == compiled(program, backend, {name: NUMPY[name] for name in ("flag", "exponent")}, {})


def test_the_backend_of_a_driver(monkeypatch: pytest.MonkeyPatch, called: Callable[..., str]) -> None:
    """What icon4py's driver calls, and what a granule sets up with the same backend, if no table tells them apart."""
    monkeypatch.setattr(icon4py, "arch", lambda device: "")
    backend = icon4py.customize_backend(None, {"device": model_backends.CPU})
    program = CASES["in_place"].program()
    key = called(program.with_backend(backend), **CASES["in_place"].make_arguments(), offset_provider={})
    chosen = icon4py._choose_backend("in_place", backend)
    assert isinstance(chosen, StubBackend)
    assert key == compiled(program, chosen, {}, {})
    other = make_backend(gpu=False, auto_optimize=False)
    assert other is not None
    assert key != compiled(program, other, {}, {})
