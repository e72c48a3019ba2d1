"""
Random edits of a small model. Each changes the key, or a build from scratch would make what is in the cache.

Instead of the builds, what gt4py and DaCe make them from is compared: gt4py's IR, the types of the arguments, what
hooks return, and DaCe's configuration. GTSTUB_EXAMPLES=N draws N new sequences of edits; without it a run draws the
same ones every time.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gt4py.next.ffront import type_info as ffront_type_info
from gt4py.next.otf import arguments
from gt4py.next.program_processors.runners.dace.transformations import GT4PyAutoOptHook
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from gtstub.frameworks.gt4py.backend import make_backend
from gtstub.frameworks.gt4py.internals import ConcreteProgramDef

EXAMPLES = os.environ.get("GTSTUB_EXAMPLES")

OPS = """{above}
import gt4py.next as gtx
from gt4py.eve.utils import FrozenNamespace
{imports}

I = gtx.Dimension("I")
wpfloat = gtx.{wpfloat}
FieldI = gtx.Field[[I], wpfloat]
grid = FrozenNamespace(factor=wpfloat({constant}), unused={unused})

def operator(function):
    return gtx.field_operator(function)

def make(value):
    local = FrozenNamespace(value=wpfloat(value))
    @operator
    def _closed(a: FieldI) -> FieldI:
        return a + local.value
    return _closed

_closed = make({closed})

@operator
def _helper(a: FieldI, b: FieldI) -> FieldI:{comment}
    return {helper}

{between}
@operator
def edited(a: FieldI, b: FieldI, flag: bool) -> FieldI:
    c = grid.factor * _helper({order})
    return _closed(c) if flag else {otherwise}

def set_up(sdfg, strength={default}):
    return strength

def first(function):
    def hook(sdfg):
        {nothing}
        return {first} and function(sdfg)
    return hook

def second(function):
    def hook(sdfg):
        return {second} and function(sdfg)
    return hook

chosen = {decorators}
"""

MODEL = """import gt4py.next as gtx
import {ops}
from {ops} import FieldI, edited

@gtx.program{parentheses}
def program(a: FieldI, b: FieldI, flag: bool, out: FieldI):
    edited(a, b, flag, out=out{part})
"""

CHOICES: dict[str, list[str]] = {
    "above": ["", "# A model.", '"""A model."""'],
    "imports": ["", "import math", "import os, sys"],
    "wpfloat": ["float64", "float32"],
    "constant": ["2.0", "2", "3.0", "-2.0", "1e-300", "0.0", "-0.0"],
    "unused": ["1", "2"],
    "closed": ["1.5", "2.5"],
    "comment": ["", "  # a comment"],
    "helper": ["a + b", "a  +  b", "(a + b)", "b + a", "a - b", "a * b", "(a + b) + b", "a + (b + b)"],
    "between": ["", "def unrelated():\n    return grid\n"],
    "order": ["a, b", "b, a", "b=b, a=a", "a, a"],
    "otherwise": ["c", "a", "_closed(a)", "_closed(_closed(a))"],
    "default": ["1.0", "1", "'1.0'", "None", "(1,)", "[1]"],
    "nothing": ["pass", "'a text'"],
    "first": ["True", "1", "'one'"],
    "second": ["True", "2"],
    "decorators": ["first(second(set_up))", "second(first(set_up))", "first(set_up)"],
    "ops": ["ops", "operators"],
    "parentheses": ["", "(grid_type=gtx.GridType.UNSTRUCTURED)", "()"],
    "part": ["", "[1:]", "[:-1]"],
    # Not of the text:
    "static": ["", "True", "False"],
    "variable": ["", "DACE_optimizer_autooptimize=1", "DACE_compiler_cpu_openmp_sections=1", "UNRELATED=1"],
    "flags": ["", "-O1", "-O1 -ffast-math", "-O1  -ffast-math"],
}
WITHOUT_EFFECT = {"above", "imports", "unused", "comment", "between", "ops"}
"""Edits that must not change a key, because otherwise models would be built again for nothing."""

State = dict[str, str]
START: State = {name: choices[0] for name, choices in CHOICES.items()}


@dataclasses.dataclass(frozen=True)
class Made:
    """The key of a model, and all that a build of it is made of; None if the key is not that of `START`."""

    key: str
    built_from: Any


def make(state: State) -> Made | str:
    """Imports the model as a new process does; returns the type of the error if gt4py refuses it."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        texts = {state["ops"]: OPS.format(**state), "edited_model": MODEL.format(**state)}
        for name, text in texts.items():
            Path(folder, f"{name}.py").write_text(text)
            patch.delitem(sys.modules, name, raising=False)
        patch.syspath_prepend(folder)
        patch.setattr(sys, "dont_write_bytecode", True)
        for variable in (f"CXXFLAGS={state['flags']}", state["variable"]):
            if variable.partition("=")[2]:
                patch.setenv(*variable.split("="))
        try:
            return _made(state)
        except Exception as error:  # gt4py's own checks raise many errors.
            return type(error).__name__
        finally:
            for name in texts:
                sys.modules.pop(name, None)


def _made(state: State) -> Made:
    module = importlib.import_module("edited_model")
    ops = importlib.import_module(state["ops"])
    hooks = {GT4PyAutoOptHook.TopLevelDataFlowPost: ops.chosen}
    backend = make_backend(gpu=False, auto_optimize=True, optimization_args={"optimization_hooks": hooks})
    assert backend is not None
    definition = ffront_type_info.type_in_program_context(module.program.__gt_type__()).definition
    static = {"flag": arguments.StaticArg(state["static"] == "True")} if state["static"] else {}
    args = arguments.CompileTimeArgs(
        args=tuple(definition.pos_or_kw_args.values()),
        kwargs={},
        offset_provider={},
        column_axis=None,
        argument_descriptor_contexts={arguments.StaticArg: static} if static else {},
    )
    concrete = ConcreteProgramDef(module.program.definition_stage, args)
    key = backend.request(concrete).key
    if _start and key != _start[0].key:
        return Made(key, None)
    lowered = backend.lowering.lower(backend.lowering.parsed(concrete))
    return Made(
        key,
        (
            str(lowered.data),
            repr(lowered.args.args),
            repr(lowered.parameter_types),
            (ops.chosen(None), ops.set_up.__defaults__),
            backend.executor.compilation.build.flags,
            repr(backend.executor.compilation.build.ingredients),
        ),
    )


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One for all models, because it knows the compilers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GTSTUB_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


_start: list[Made] = []


def start() -> Made:
    if not _start:
        made = make(START)
        assert isinstance(made, Made), made
        _start.append(made)
    return _start[0]


edits = st.lists(
    st.sampled_from(sorted(CHOICES)).flatmap(lambda name: st.tuples(st.just(name), st.sampled_from(CHOICES[name]))),
    min_size=1,
    max_size=3,
)


@settings(
    max_examples=int(EXAMPLES or 40),
    derandomize=EXAMPLES is None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
@given(edits)
def test_edit_changes_the_key_or_nothing_of_the_build(chosen: list[tuple[str, str]]) -> None:
    start()
    made = make({**START, **dict(chosen)})
    if isinstance(made, str):
        event("refused by gt4py")
        return
    if made.key == start().key:
        event("same key")
        assert repr(made.built_from) == repr(start().built_from)
    else:
        event("another key")
        effective = {name for name, text in chosen if text != START[name]}
        assert not effective <= WITHOUT_EFFECT


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_each_edit_alone(name: str) -> None:
    """An edit that gt4py always refuses would test nothing."""
    start()
    results = [make({**START, name: text}) for text in CHOICES[name][1:]]
    assert any(isinstance(made, Made) for made in results), results
    for made in results:
        if isinstance(made, Made):
            assert made.key != start().key or repr(made.built_from) == repr(start().built_from)
            assert name not in WITHOUT_EFFECT or made.key == start().key
