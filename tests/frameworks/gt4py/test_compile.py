"""`gtstub.compile()` with gt4py's programs: results as gt4py's, and what is refused before anything is built."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import inspect
import json
import os
import re
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next import config
from gt4py.next.instrumentation import metrics
from gt4py.next.otf import runners
from icon4py.model.common import model_backends, model_options

import gtstub
from gtstub import _host
from gtstub.entries.cache.entry import Entry
from gtstub.errors import CompilationError
from gtstub.frameworks import icon4py
from gtstub.frameworks.gt4py import make_backend
from gtstub.frameworks.gt4py.describe import Reader
from gtstub.programs import registry
from gtstub.programs.compiled import CompiledProgram
from tests.support import small_programs as small
from tests.support.checkout import ROOT
from tests.support.gt4py_programs import CASES, Case
from tests.support.warm_python import WarmPython


def horizontally_contiguous(name: str) -> Case:
    """As the table of backends has it."""
    return dataclasses.replace(CASES[name], options={"unstructured_horizontal_has_unit_stride": True})


STATIC = horizontally_contiguous("static_arguments")
SHIFT = horizontally_contiguous("vertical_shift")
GATHER = horizontally_contiguous("gather")
COLLECTIONS = horizontally_contiguous("named_collections")

pytestmark = pytest.mark.xdist_group("compile")


def expected(case: Case, **changed: Any) -> np.ndarray[Any, Any]:
    """What `out` is after a call of gt4py's embedded execution."""
    arguments = {**case.make_arguments(), **changed}
    case.program().with_backend(None)(**arguments, offset_provider=case.make_offset_provider())
    return np.asarray(arguments["out"].asnumpy())


def static_of(program: CompiledProgram, number: int) -> dict[str, Any]:
    artifact = program.variants[number].result.result()
    assert isinstance(artifact, Entry)
    signature = json.loads((artifact.path / "program.json").read_bytes())
    return {static["leaf"]: static["value"] for static in signature["static_arguments"]}


# --- Static arguments -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def relax() -> CompiledProgram:
    return gtstub.compile(
        small.static_arguments,
        bound_static_args={"exponent": 3},
        static_args={"weights": [(2.0, 1.0)], "flag": [True, False]},
        backend_tag="GTSTUB_CPU",
        offset_provider={},
    )


def test_every_variant_computes_what_gt4py_does(relax: CompiledProgram) -> None:
    weights = (2.0, 1.0)
    for flag in (True, False):
        arguments = STATIC.make_arguments()
        relax(arguments["a"], flag=flag, weights=weights, out=arguments["out"])
        wanted = expected(STATIC, flag=flag, weights=weights, exponent=np.int32(3))
        np.testing.assert_array_equal(arguments["out"].asnumpy(), wanted)
    assert str(relax.__signature__) == str(inspect.signature(relax))
    assert list(inspect.signature(relax).parameters) == ["a", "weights", "flag", "out"]
    assert all(isinstance(relax.prepare_variant(number), _host.Program) for number in range(2))
    assert static_of(relax, 1) == {"weights_0": 2.0, "weights_1": 1.0, "exponent": 3, "flag": False}


def test_a_program_is_read_once_for_all_its_variants(relax: CompiledProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    tree = Reader._tree

    def counted(self: Reader, operator: Any, node: Any, *args: Any) -> str:
        read.append(str(node.id))
        return tree(self, operator, node, *args)

    monkeypatch.setattr(Reader, "_tree", counted)
    again = gtstub.compile(
        small.static_arguments,
        bound_static_args={"exponent": 3},
        static_args={"weights": [(2.0, 1.0)], "flag": [True, False]},
        backend_tag="GTSTUB_CPU",
        offset_provider={},
    )
    assert read.count("static_arguments") == 1
    assert [each.result.result() for each in again.variants] == [each.result.result() for each in relax.variants[:2]]


def test_a_value_that_is_not_compiled_in_is_refused(relax: CompiledProgram) -> None:
    arguments = STATIC.make_arguments()
    for changed, message in (
        (
            {"weights": (2.0, 1.5)},
            "Program 'static_arguments' was not compiled for (weights=(2.0, 1.5), exponent=3, flag=True),",
        ),
        (
            {"weights": (2.0,)},
            "Argument 'weights' of program 'static_arguments' must be a tuple of length 2, not of",
        ),
        ({"flag": "1"}, "Argument 'flag' of program 'static_arguments' must be a 'bool', not 'str'."),
    ):
        good = {"a": arguments["a"], "weights": (2.0, 1.0), "flag": True, "out": arguments["out"]}
        relax(**good)
        before = arguments["out"].asnumpy().copy()
        with pytest.raises((TypeError, ValueError)) as caught:
            relax(**{**good, **changed})
        assert str(caught.value).startswith(message)
        np.testing.assert_array_equal(arguments["out"].asnumpy(), before)


def test_the_program_itself_refuses_another_static_value(relax: CompiledProgram) -> None:
    arguments = STATIC.make_arguments()
    program = relax.prepare_variant(0)
    call = (arguments["a"], (2.0, 1.0), 3, True, arguments["out"])
    program(*call, offset_provider={})
    with pytest.raises(ValueError) as caught:
        program(*call[:2], 4, *call[3:], offset_provider={})
    assert str(caught.value) == (
        "Argument 'exponent' of program 'static_arguments' is 4, but was compiled in as 3;"
        " compile the program for this value, too."
    )


def test_a_variant_compiled_later_takes_values_of_any_type_that_fits(relax: CompiledProgram) -> None:
    arguments = STATIC.make_arguments()
    relax.compile(weights=[(4, np.float32(1))], flag=[np.True_])
    relax(arguments["a"], (4.0, 1), True, arguments["out"])
    wanted = expected(STATIC, flag=True, weights=(4.0, 1.0), exponent=np.int32(3))
    np.testing.assert_array_equal(arguments["out"].asnumpy(), wanted)


@pytest.mark.parametrize(("wait", "is_built"), [("1", True), ("0", False)])
def test_gtstub_wait_builds_before_compile_returns(wait: str, is_built: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_WAIT", wait)
    runner = runners.ThreadRunner(max_workers=1)
    monkeypatch.setattr(runners, "get_default_runner", lambda: runner)
    program = gtstub.compile(
        small.static_arguments,
        bound_static_args={"exponent": 70 + int(wait), "weights": (2.0, 1.0), "flag": False},  # not in the cache yet
        backend_tag="GTSTUB_CPU",
        offset_provider={},
    )
    assert program.variants[0].result.done() == is_built
    program.wait()
    runner.shutdown()
    assert isinstance(program.prepare_variant(0), _host.Program)


def test_an_error_that_was_handled_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: concurrent.futures.Future[Any] = concurrent.futures.Future()
    failed.set_exception(OSError("no space"))
    monkeypatch.setattr("gtstub.frameworks.gt4py.target.CompiledTarget.start", lambda *_: failed)
    monkeypatch.setattr(registry, "_alive", weakref.WeakSet())
    monkeypatch.setenv("GTSTUB_WAIT", "1")
    with pytest.raises(CompilationError, match="could not be compiled: no space") as caught:
        gtstub.compile(small.in_place)
    gtstub.wait_for_compilation()
    del caught  # until here it keeps the program alive


def test_metrics_go_to_the_program(relax: CompiledProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "sources", type(metrics.sources)(metrics.Source))
    arguments = STATIC.make_arguments()
    call: Callable[[], None] = lambda: relax(arguments["a"], (2.0, 1.0), True, arguments["out"])  # noqa: E731
    call()
    assert "static_arguments" not in metrics.sources
    monkeypatch.setattr(config, "COLLECT_METRICS_LEVEL", metrics.PERFORMANCE)
    call()
    assert len(metrics.sources["static_arguments"].metrics[metrics.COMPUTE_METRIC].samples) == 1


# --- Sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("static", [False, True])
def test_horizontal_sizes_are_static_only_where_this_is_asked_for(static: bool) -> None:
    arguments = SHIFT.make_arguments()
    program = gtstub.compile(
        small.vertical_shift,
        horizontal_sizes={"i_end": arguments["i_end"]},
        vertical_sizes={"k_end": int(arguments["k_end"])},
        bound_args={"a": arguments["a"]},
        backend_tag="GTSTUB_CPU",
        offset_provider={},
        static_horizontal_sizes=static,
    )
    program(arguments["out"])
    np.testing.assert_array_equal(arguments["out"].asnumpy(), expected(SHIFT))
    assert static_of(program, 0).keys() == ({"i_end", "k_end"} if static else {"k_end"})


# --- Offset providers -------------------------------------------------------------------------------------------------


def test_two_offset_providers() -> None:
    providers = [GATHER.make_offset_provider(), GATHER.make_offset_provider()]
    program = gtstub.compile(small.gather, backend_tag="GTSTUB_CPU", offset_provider=providers)
    for provider in providers:
        arguments = GATHER.make_arguments()
        program(**arguments, offset_provider=provider)
        np.testing.assert_allclose(arguments["out"].asnumpy(), expected(GATHER), rtol=1e-14)
    with pytest.raises(ValueError) as caught:
        program(**arguments, offset_provider=GATHER.make_offset_provider())
    assert str(caught.value).startswith("Program 'gather' was not compiled for the offset provider that was passed")


# --- Containers, and backends of gt4py's own --------------------------------------------------------------------------


@pytest.mark.parametrize("tag", ["CPU", "DACE_CPU", "GTFN_CPU"])
def test_containers_are_passed_as_they_are(tag: str) -> None:
    arguments = COLLECTIONS.make_arguments()
    program = gtstub.compile(
        small.named_collections, bound_args={"wind": arguments["wind"]}, backend_tag=tag, offset_provider={}
    )
    for _ in range(2):
        program(arguments["coefficients"], out=arguments["out"])
    np.testing.assert_allclose(arguments["out"].asnumpy(), expected(COLLECTIONS), rtol=1e-14)
    assert isinstance(program.prepare_variant(0), _host.Program) == (tag == "CPU")


# --- What is refused before anything is built -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"bound_args": {"b": 1}}, TypeError, "has no parameter 'b'; it has a, weights, exponent, flag, out."),
        (
            {"bound_args": {"flag": True}, "static_args": {"flag": [True]}},
            TypeError,
            "Argument 'flag' of program 'static_arguments' was given twice.",
        ),
        ({"static_args": {"flag": []}}, TypeError, "needs a list of values, not an empty one."),
        ({"static_args": {"exponent": 3}}, TypeError, "needs a list of values, not 'int'."),
        ({"offset_provider": None}, TypeError, "must be a mapping, not 'NoneType'."),
        ({"offset_provider": []}, TypeError, "needs an offset provider, which may be empty: {}."),
        ({"backend": "gtfn"}, TypeError, "needs a 'backend_tag', or a backend of gt4py's as 'backend'."),
        ({"backend": make_backend(gpu=False)}, TypeError, "a 'backend_tag' and a 'backend': pass one of them."),
        ({"static_args": {"flag": [2]}}, ValueError, "is 2, which does not fit 'bool'."),
        ({"bound_static_args": {"exponent": 2**31}}, ValueError, "is 2147483648, which does not fit 'int32'."),
        ({"bound_static_args": {"exponent": 2.5}}, TypeError, "must be an 'int32', not 'float'."),
        (
            {"bound_static_args": {"weights": (1.0, "x")}},
            TypeError,
            "'weights[1]' of program 'static_arguments' must be a 'float64', not 'str'.",
        ),
        ({"bound_static_args": {"weights": 1.0}}, TypeError, "must be a scalar or a tuple of scalars to be static;"),
        ({"bound_static_args": {"weights": (1.0,)}}, TypeError, "must be a tuple of length 2, not 1."),
        ({"bound_args": {"weights": (1.0, 2.0, 3.0)}}, TypeError, "must be a tuple of length 2, not 3."),
        ({"static_args": {"exponent": [3, 3]}}, ValueError, "has 3 twice in its list."),
        ({"bound_static_args": {"a": 1.0}}, TypeError, "must be a scalar or a tuple of scalars to be static;"),
        ({"bound_args": {"a": 1.0}}, TypeError, "must be 'Field[[I], float64]', not 'float'."),
        ({"bound_args": {"exponent": 2**40}}, ValueError, "is 1099511627776, which does not fit 'int32'."),
        ({"bound_args": {"exponent": np.timedelta64(1, "s")}}, TypeError, "must be an 'int32', not 'timedelta64'."),
        ({"bound_static_args": {"weights": (1.0, np.timedelta64(1, "s"))}}, TypeError, "'float64', not 'timedelta64'."),
    ],
)
def test_what_does_not_fit_the_program(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        gtstub.compile(small.static_arguments, **{"backend_tag": "GTSTUB_CPU", **given})
    assert type(caught.value) is error
    assert "'static_arguments'" in str(caught.value)
    assert message in str(caught.value)


def test_a_bound_field_of_another_type() -> None:
    other = gtx.as_field([small.I], np.zeros(5, np.float32))
    with pytest.raises(TypeError) as caught:
        gtstub.compile(small.static_arguments, bound_args={"a": other}, backend_tag="GTSTUB_CPU")
    assert str(caught.value) == (
        "Argument 'a' of program 'static_arguments' must be 'Field[[I], float64]', not 'Field[[I], float32]'."
    )


def test_what_is_no_program_or_has_bound_arguments_of_its_own() -> None:
    for wrong, message in (
        (
            print,
            "Argument 'program' of 'compile' must be a gt4py program or field operator, or a DaCe program, not",
        ),
        (
            small.static_arguments.with_bound_args(flag=True),
            "Program 'static_arguments' has bound arguments of gt4py's own:",
        ),
        (
            small.static_arguments.with_static_params("flag"),
            "Program 'static_arguments' has static parameters of gt4py's own:",
        ),
    ):
        with pytest.raises(TypeError) as caught:
            gtstub.compile(wrong, backend_tag="GTSTUB_CPU")
        assert str(caught.value).startswith(message)


def test_a_bound_container_lacks_an_attribute() -> None:
    with pytest.raises(TypeError) as caught:
        gtstub.compile(small.named_collections, bound_args={"wind": 3}, backend_tag="GTSTUB_CPU")
    assert str(caught.value) == (
        "Argument 'wind' of program 'named_collections' must be a tuple of length 2 or have the attributes 'u', 'v',"
        " but is 'int'."
    )


def test_scan_operators_are_generic() -> None:
    with pytest.raises(TypeError) as caught:
        gtstub.compile(small._integral, backend_tag="GTSTUB_CPU")
    assert str(caught.value) == "Program '_integral' is generic, as scan operators are; wrap it in a field operator."


# --- In icon4py -------------------------------------------------------------------------------------------------------


def setup(function: Callable[..., Any], backend: Any) -> tuple[Any, dict[str, Any]]:
    arguments = SHIFT.make_arguments()
    program = function(
        program=small.vertical_shift,
        backend=backend,
        constant_args={"a": arguments.pop("a")},
        horizontal_sizes={"i_end": arguments.pop("i_end")},
        vertical_sizes={"k_end": arguments.pop("k_end")},
        offset_provider={},
    )
    return program, arguments


def test_setup_program_has_the_parameters_of_icon4pys() -> None:
    ours = inspect.signature(icon4py.setup_program).parameters
    theirs = inspect.signature(model_options.setup_program).parameters
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [
        (p.name, p.kind, p.default) for p in theirs.values()
    ]


@pytest.mark.parametrize(
    "backend",
    [
        model_backends.CPU,
        {"device": model_backends.CPU},
        {"backend_factory": model_backends.make_custom_dace_backend, "device": model_backends.CPU},
        {"backend_factory": icon4py.make_backend, "device": model_backends.CPU, "use_metrics": True},
    ],
)
def test_setup_program_means_what_icon4pys_means(backend: Any) -> None:
    program, arguments = setup(icon4py.setup_program, backend)
    program(**arguments)
    np.testing.assert_array_equal(arguments["out"].asnumpy(), expected(SHIFT))
    assert static_of(program, 0).keys() == {"i_end", "k_end"}
    assert isinstance(program.prepare_variant(0), _host.Program)
    other = SHIFT.make_arguments(seed=1)["a"]
    program(a=other, **arguments)
    np.testing.assert_array_equal(arguments["out"].asnumpy(), expected(SHIFT, a=other))
    with pytest.raises(ValueError) as caught:
        program(**arguments, k_end=np.int32(1))
    assert str(caught.value).startswith("Program 'vertical_shift' was not compiled for")


def test_setup_program_without_a_backend_runs_the_program_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(icon4py, "_is_told", False)
    with pytest.warns(UserWarning, match="runs in Python, because its backend is None") as caught:
        program, arguments = setup(icon4py.setup_program, None)
    assert caught[0].filename == __file__  # where the model calls setup_program
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        setup(icon4py.setup_program, None)
    assert isinstance(program, functools.partial)
    program(**arguments)
    np.testing.assert_array_equal(arguments["out"].asnumpy(), expected(SHIFT))


def test_factories_of_others_and_backends_are_used_as_they_are() -> None:
    seen = {}

    def factory(**options: Any) -> Any:
        seen.update(options)
        return icon4py.make_backend(device=options["device"])

    program, _ = setup(icon4py.setup_program, {"backend_factory": factory, "device": model_backends.CPU, "mine": 1})
    assert seen == {"device": model_backends.CPU, "mine": 1}
    assert isinstance(program, CompiledProgram)
    for backend, kind in (
        ({"backend_factory": model_backends.make_custom_gtfn_backend, "device": model_backends.CPU}, "gtfn"),
        (icon4py.make_backend(device=model_backends.CPU), "dace"),
    ):
        chosen = icon4py._choose_backend("any", backend)
        assert chosen is not None
        assert kind in chosen.name


# --- The page ---------------------------------------------------------------------------------------------------------


def test_the_example_of_the_page_prints_what_it_says(tmp_path: Path, warm_python: WarmPython) -> None:
    page = (ROOT / "docs" / "compile.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```\n\nIt prints `(.*?)`", page, re.DOTALL)
    assert found is not None
    script = tmp_path / "example.py"
    script.write_text(found[1], encoding="utf-8")
    environment = {**os.environ, "GT4PY_BUILD_JOBS_MODE": "process"}  # as it is for users
    done = warm_python.run(script, env=environment)
    assert (done.returncode, done.stdout) == (0, f"{found[2]}\n"), done.stderr
