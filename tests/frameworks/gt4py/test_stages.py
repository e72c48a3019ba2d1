"""Programs that reach the backend at each stage of gt4py's lowering: functions, syntax trees, and gt4py's IR."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next import common
from gt4py.next.backend import DEFAULT_TRANSFORMS
from gt4py.next.iterator import ir as itir
from gt4py.next.iterator.builtins import as_fieldop, deref, named_range, plus, unstructured_domain
from gt4py.next.iterator.runtime import fendef, fundef, set_at
from gt4py.next.otf import arguments

from gtstub.errors import CacheError
from gtstub.frameworks.dace import build as dace_build
from gtstub.frameworks.gt4py import backend as plugin
from gtstub.frameworks.gt4py import fingerprint
from gtstub.frameworks.gt4py.internals import ConcreteProgramDef, make_dace_backend

I = gtx.Dimension("I")
FieldI = gtx.Field[[I], gtx.float64]


@gtx.field_operator
def _plus_one(a: FieldI) -> FieldI:
    return a + 1.0


@gtx.field_operator
def doubled_plus_one(a: FieldI) -> FieldI:
    return 2.0 * _plus_one(a)


@gtx.program
def double_plus_one(a: FieldI, out: FieldI) -> None:
    doubled_plus_one(a, out=out)


def _type_of(program: Any) -> Any:
    return program.__gt_type__().definition.pos_or_kw_args["a"]


def concrete(stage: Any) -> ConcreteProgramDef[Any, Any]:
    type_ = _type_of(double_plus_one)
    return ConcreteProgramDef(
        stage,
        arguments.CompileTimeArgs(
            args=(type_, type_), kwargs={}, offset_provider={}, column_axis=None, argument_descriptor_contexts={}
        ),
    )


def foast() -> Any:
    return DEFAULT_TRANSFORMS.func_to_foast(concrete(doubled_plus_one.definition_stage)).data


def past() -> Any:
    return DEFAULT_TRANSFORMS.func_to_past(concrete(double_plus_one.definition_stage)).data


def ir() -> itir.Program:
    return DEFAULT_TRANSFORMS(concrete(double_plus_one.definition_stage)).data


STAGES: dict[str, Callable[[], Any]] = {
    "program": lambda: double_plus_one.definition_stage,
    "operator": lambda: doubled_plus_one.definition_stage,
    "foast": foast,
    "past": past,
    "ir": ir,
}


def forbid_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("An SDFG is compiled.")

    monkeypatch.setattr(dace_build, "compile_sdfg", refuse)


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_is_compiled_called_and_found_again(
    stage: str, backend: plugin.StubBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.arange(5.0)
    a, out = gtx.as_field([I], values), gtx.as_field([I], np.zeros(5))
    inp = concrete(STAGES[stage]())
    backend.compile(inp.data, inp.args)(a, out, offset_provider={})
    np.testing.assert_array_equal(out.asnumpy(), 2.0 * (values + 1.0))

    forbid_builds(monkeypatch)
    again = gtx.as_field([I], np.zeros(5))
    inp = concrete(STAGES[stage]())
    backend.compile(inp.data, inp.args)(a, again, offset_provider={})
    np.testing.assert_array_equal(again.asnumpy(), out.asnumpy())


def test_the_key_of_a_tree_has_its_content_and_not_its_place() -> None:
    def key(stage: Any) -> dict[str, Any]:
        return fingerprint.read(concrete(stage)).ingredients

    def moved(node: Any) -> Any:
        """The tree as it is after a line was added above the program."""
        for each in node.walk_values():
            if (location := getattr(each, "location", None)) is not None:
                object.__setattr__(each, "location", type(location)("other.py", location.line + 1, location.column))
        return node

    tree = past()
    before = key(tree)
    assert any(getattr(each, "location", None) is not None for each in tree.past_node.walk_values())
    moved(tree.past_node)
    assert key(tree) == before

    program, other = ir(), copy.deepcopy(ir())  # gt4py keeps what it has lowered
    (literal,) = {
        each.value: each for each in other.walk_values() if isinstance(each, itir.Literal) and each.value == "2.0"
    }.values()
    assert key(program) == key(other)
    literal.value = "3.0"
    assert key(program) != key(other)


def test_the_key_of_a_tree_has_the_operators_that_it_calls() -> None:
    reading = fingerprint.read(concrete(foast()))
    assert reading.name == "doubled_plus_one"
    assert "_plus_one" in reading.ingredients["program"]["source"]


def test_an_object_that_is_no_program_is_refused() -> None:
    with pytest.raises(CacheError, match="A gt4py program cannot be an object of type 'int'"):
        fingerprint.read(concrete(3))


# --- The iterator level -----------------------------------------------------------------------------------------------

Cell = common.Dimension("Cell")
K = common.Dimension("K", kind=common.DimensionKind.VERTICAL)


@fundef
def add(a: Any, b: Any) -> Any:
    return plus(deref(a), deref(b))


@fendef
def two_programs_in_one(a: Any, b: Any, out: Any, other: Any, n: Any) -> None:
    domain = unstructured_domain(named_range(Cell, 0, n))
    set_at(as_fieldop(add, domain)(a, b), domain, out)
    set_at(as_fieldop(add, domain)(out, b), domain, other)


def test_a_program_of_the_iterator_level(backend: plugin.StubBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = gtx.as_field([Cell], np.arange(6.0)), gtx.as_field([Cell], np.full(6, 10.0))
    for _ in range(2):
        out, other = gtx.as_field([Cell], np.zeros(6)), gtx.as_field([Cell], np.zeros(6))
        two_programs_in_one(a, b, out, other, np.int32(6), offset_provider={}, backend=backend)
        np.testing.assert_array_equal(out.asnumpy(), np.arange(6.0) + 10.0)
        np.testing.assert_array_equal(other.asnumpy(), np.arange(6.0) + 20.0)
        forbid_builds(monkeypatch)


def test_replaced_transforms_are_used(backend: plugin.StubBackend) -> None:
    """Those of gt4py as well, which know nothing of the cache."""
    replaced = dataclasses.replace(backend, transforms=DEFAULT_TRANSFORMS)
    a = gtx.as_field([I], np.arange(4.0))
    out = gtx.as_field([I], np.zeros(4))
    doubled_plus_one.with_backend(replaced)(a, out=out, offset_provider={})
    np.testing.assert_array_equal(out.asnumpy(), 2.0 * (a.asnumpy() + 1.0))


def test_executor_of_another_backend_is_refused(backend: plugin.StubBackend) -> None:
    with pytest.raises(TypeError, match="The executor of a gtstub backend cannot be '"):
        dataclasses.replace(backend, executor=make_dace_backend(gpu=False).executor)
