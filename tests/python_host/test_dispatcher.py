"""Compiled programs with bound arguments and variants: what a call passes, which variant it gets, what it is told."""

from __future__ import annotations

import dataclasses
import gc
import inspect
import itertools
import pickle
import re
import shutil
import sys
import threading
import weakref
from collections import UserDict
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gtstub import _host
from gtstub.entries.building.progress import builds
from gtstub.entries.cache import store
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.manifest import Manifest
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.errors import CacheError, CompilationError
from gtstub.programs import registry
from gtstub.programs.registry import wait_for_compilation
from tests.support.allocations import growth, held, needs_counts, needs_frees
from tests.support.dispatching import STATIC_SDFG, Variants
from tests.support.hosting import EDGES, LEVELS, edge_field, good_arguments, run_script
from tests.support.sdfg_libraries import build_null_library

pytestmark = pytest.mark.sanitizer


ALL = {"n": [1, 2], "flag": [True, False]}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Variants:
    return Variants(tmp_path_factory.mktemp("variants"), toolchain)


@pytest.fixture
def variants(built: Variants) -> Iterator[Variants]:
    yield built
    built.called()


def arguments(*names: str) -> dict[str, Any]:
    good = good_arguments()
    return {name: good[name] for name in names}


def refusal(error: type[Exception], program: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(error) as caught:
        program(*args, **kwargs)
    assert type(caught.value) is error
    return str(caught.value)


# --- Binding ----------------------------------------------------------------------------------------------------------


def test_what_is_bound_is_passed_and_the_rest_comes_by_position_or_keyword(variants: Variants) -> None:
    bound = arguments("out", "x")
    program = variants.compile(ALL, bound)
    vn = edge_field()
    for call in (
        lambda: program(vn, 2, True),
        lambda: program(vn, 2, flag=True),
        lambda: program(vn, n=2, flag=True),
        lambda: program(flag=True, vn=vn, n=2),
        lambda: program(*[vn], **dict(n=2, flag=True)),  # noqa: C408  names that are not in the source
        lambda: program.__call__(vn, flag=True, n=2),
    ):
        call()
    recorded = variants.bound(2, True).recorder.calls()
    assert len(recorded) == 6
    assert all(call == recorded[0] for call in recorded)
    assert recorded[0]["vn"] == vn._ndarray.ctypes.data  # type: ignore[attr-defined]
    assert recorded[0]["out"] == bound["out"]._ndarray.ctypes.data
    assert variants.called() == {(2, True): 6}


def test_more_places_in_the_source_than_are_remembered(variants: Variants) -> None:
    program = variants.compile(ALL, arguments("out", "x"))
    vn = edge_field()
    for _ in range(3):
        for order in (
            ("vn", "n", "flag"),
            ("n", "vn", "flag"),
            ("flag", "n", "vn"),
            ("n", "flag", "vn"),
            ("flag", "vn", "n"),
        ):
            program(**{name: {"vn": vn, "n": 1, "flag": False}[name] for name in order})
        program(vn, 1, False)
    assert variants.called() == {(1, False): 18}


def test_unpacked_keywords_are_one_place(variants: Variants) -> None:
    """Each such call has a new tuple of names. The tuple of the place in the source stays remembered."""
    program = variants.compile(ALL, arguments("out", "x"))
    vn = edge_field()

    def call() -> None:
        program(vn=vn, n=1, flag=False)

    names = next(each for each in call.__code__.co_consts if each == ("vn", "n", "flag"))
    before = sys.getrefcount(names)
    call()
    for _ in range(10):
        program(n=1, flag=False, vn=vn)
    assert sys.getrefcount(names) == before + 1
    assert variants.called() == {(1, False): 11}


def test_pythons_own_wording(variants: Variants) -> None:
    program = variants.compile(ALL, arguments("out", "x"))
    vn = edge_field()

    def host(vn: Any, n: Any, flag: Any) -> None:
        raise AssertionError("what is passed to it is wrong")

    for args, kwargs in (
        ((), {}),
        ((vn,), {}),
        ((vn,), {"n": 1}),
        ((vn, 1, True, 4), {}),
        ((vn, 1, True, 4, 5), {}),
        ((vn, 1, True), {"vn": vn}),
        ((), {"vn": vn, "flag": True, "n": 1, "elsewhere": 3}),  # a name like none: Python 3.13 suggests others
        ((vn, 1), {"flag": True, "x": 1}),
    ):
        program(vn, 1, True)
        expected = refusal(TypeError, host, *args, **kwargs).replace("test_pythons_own_wording.<locals>.", "")
        assert refusal(TypeError, program, *args, **kwargs) == expected
    assert variants.called() == {(1, True): 8}


def test_bound_arguments_may_be_overridden_where_this_was_asked_for(variants: Variants) -> None:
    bound = {**arguments("out", "x"), "n": 1, "flag": True}
    program = variants.compile({}, bound, overridable=True)
    other, vn = edge_field(), edge_field()
    program(vn)
    program(vn, out=other)
    assert [call["out"] for call in variants.bound(1, True).recorder.calls()] == [
        field._ndarray.ctypes.data for field in (bound["out"], other)
    ]
    assert refusal(TypeError, program, vn, other) == "host() takes 1 positional argument but 2 were given"
    assert refusal(ValueError, program, vn, flag=False).startswith(
        "Program 'host' was not compiled for (n=1, flag=False)"
    )
    assert refusal(TypeError, program) == "host() missing 1 required positional argument: 'vn'"


def test_what_stands_behind_a_bound_parameter_comes_by_keyword_as_with_partial(variants: Variants) -> None:
    program = variants.compile({}, {**arguments("vn", "out"), "n": 1, "flag": True}, overridable=True)
    program(x=arguments("x")["x"])
    assert refusal(TypeError, program) == "host() missing 1 required keyword-only argument: 'x'"
    assert refusal(TypeError, program, 1, x=2) == (
        "host() takes 0 positional arguments but 1 positional argument (and 1 keyword-only argument) were given"
    )


def test_bound_arguments_that_do_not_fit_are_refused_when_they_are_bound(variants: Variants) -> None:
    with pytest.raises(ValueError) as caught:
        variants.compile({}, {**arguments("out"), "n": 2**40, "flag": True})
    assert str(caught.value) == "Argument 'n' of program 'host' is 1099511627776, which does not fit 'int32'."
    with pytest.raises(TypeError) as refused:
        variants.compile(ALL, {"other": 1})
    assert str(refused.value) == "Program 'host' has no parameter 'other'."


# --- Variants ---------------------------------------------------------------------------------------------------------


def test_values_choose_the_variant_whatever_their_type(variants: Variants) -> None:
    program = variants.compile(ALL, arguments("out", "x"))
    vn = edge_field()
    program(vn, np.int32(2), np.bool_(False))
    program(vn, np.int64(2), False)
    program(vn, 1, np.True_)
    assert variants.called() == {(2, False): 2, (1, True): 1}


def test_many_variants_are_told_apart(variants: Variants) -> None:
    numbers = [0, 1, -1, 2**31 - 1, -(2**31), *range(100, 400)]
    called: list[Any] = []
    load = lambda artifact: lambda *args, offset_provider: called.append((artifact, args[3:]))  # noqa: E731
    program = variants.compile({"n": numbers, "flag": [True, False]}, arguments("out", "x"), load=load)
    for n, flag in itertools.product(numbers, (True, False)):
        program(1, n, flag)
        assert called.pop() == ((n, flag), (n, flag))
    assert program.variant_count == 2 * len(numbers)


def test_a_value_that_was_not_compiled_is_refused_and_the_compiled_ones_are_listed(variants: Variants) -> None:
    program = variants.compile({"n": [1, 2], "flag": [True]}, arguments("out", "x"))
    vn = edge_field()
    program(vn, 1, True)
    assert refusal(ValueError, program, vn, 3, flag=True) == (
        "Program 'host' was not compiled for (n=3, flag=True), but for (n=1, flag=True), (n=2, flag=True)."
    )
    assert variants.called() == {(1, True): 1}
    program(vn, 2, True)
    assert variants.called() == {(2, True): 1}


def test_long_lists_of_variants_are_cut(variants: Variants) -> None:
    program = variants.compile({"n": range(100, 120), "flag": [True]}, arguments("out", "x"), load=lambda _: print)
    message = refusal(ValueError, program, edge_field(), 3, True)
    assert message.endswith("(n=107, flag=True) and 12 more.")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": 1.5}, "Argument 'n' of program 'host' must be an 'int32', not 'float'."),
        ({"n": "1"}, "Argument 'n' of program 'host' must be an 'int32', not 'str'."),
        ({"flag": 1.5}, "Argument 'flag' of program 'host' must be a 'bool', not 'float'."),
    ],
)
def test_a_static_argument_of_another_type_is_refused(
    variants: Variants, changed: dict[str, Any], message: str
) -> None:
    program = variants.compile(ALL, arguments("out", "x"))
    good = {"vn": edge_field(), "n": 1, "flag": True}
    program(**good)
    assert refusal(TypeError, program, **{**good, **changed}) == message
    assert variants.called() == {(1, True): 1}


def test_a_variant_compiled_later(variants: Variants) -> None:
    program = variants.compile({"n": [1], "flag": [True]}, arguments("out", "x"))
    vn = edge_field()
    refusal(ValueError, program, vn, 2, False)
    program.compile(n=[2], flag=[False, True])
    program(vn, 2, False)
    program(vn, 1, True)
    assert variants.called() == {(2, False): 1, (1, True): 1}
    with pytest.raises(ValueError) as caught:
        program.compile(n=[2], flag=[False])
    assert str(caught.value) == "Program 'host' has already been compiled for (n=2, flag=False)."
    with pytest.raises(TypeError) as refused:
        program.compile(n=[2])
    assert str(refused.value) == "Program 'host' must be compiled for values of 'n', 'flag', not of 'n'."
    program(vn, 2, True)
    assert variants.called() == {(2, True): 1}


def test_threads_compile_variants_at_the_same_time(variants: Variants) -> None:
    called: list[Any] = []
    load = lambda artifact: lambda *args, offset_provider: called.append((artifact, args[3:]))  # noqa: E731
    program = variants.compile({"n": [0], "flag": [True]}, arguments("out", "x"), load=load)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [
            threading.Thread(
                target=lambda i=i: [program.compile(n=[n], flag=[True]) for n in range(100 * i, 100 * i + 100)]
            )
            for i in range(1, 5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    for n in range(100, 500):
        program(1, n, True)
        assert called.pop() == ((n, True), (n, True))


def test_values_that_run_code_while_they_are_read(variants: Variants) -> None:
    called: list[Any] = []
    load = lambda artifact: lambda *args, offset_provider: called.append(artifact[0])  # noqa: E731
    program = variants.compile({"n": range(1, 120), "flag": [True]}, arguments("out", "x"), load=load)
    others = iter(range(100, 120))

    class Index:
        def __index__(self) -> int:
            for number in others:
                program(1, number, True)
            return 7

    for _ in range(2):
        program(1, Index(), True)
    assert called == [*range(100, 120), 7, 7]


def test_nan_is_one_value() -> None:
    chosen: list[Any] = []

    def choose(key: bytes, provider: int, statics: tuple[Any, ...]) -> Any:
        chosen.append(key)
        return lambda *_, offset_provider: None

    program = _host.Dispatcher("p", choose, ("x",), statics=((0, (), "x", 11),), offset_providers=({},))
    for value in (float("nan"), -float("nan"), np.float64("nan")):
        program(value)
        assert chosen == [program.key(0, (value,))]


def test_a_tuple_of_another_length_is_named_itself() -> None:
    statics = (((0, ((0, 2),), "x[0]", 6)), (0, ((1, 2), (0, 1)), "x[1][0]", 6))
    executable = lambda *_, offset_provider: None  # noqa: E731
    program = _host.Dispatcher("p", lambda *_: executable, ("x",), statics=statics, offset_providers=({},))
    program((1, (2,)))
    for wrong, message in (
        ([1, (2,)], "Argument 'x' of program 'p' must be a tuple of length 2, not 'list'."),
        ((1,), "Argument 'x' of program 'p' must be a tuple of length 2, not of length 1."),
        ((1, 2), "Argument 'x[1]' of program 'p' must be a tuple of length 1, not 'int'."),
    ):
        assert refusal(TypeError, program, wrong) == message


@pytest.mark.parametrize("statics", [((1, (), "x", 6),), ((0, ((2, 2),), "x[2]", 6),), ((0, ((0, 1),) * 5, "x", 6),)])
def test_statics_that_cannot_be_reached(statics: Any) -> None:
    with pytest.raises(ValueError) as caught:
        _host.Dispatcher("p", lambda *_: print, ("x",), statics=statics, offset_providers=({},))
    assert str(caught.value).startswith("Static argument 'x")
    assert str(caught.value).endswith("of program 'p' cannot be reached.")


def test_what_was_built_must_have_the_parameters_of_the_program(variants: Variants) -> None:
    program = _host.Dispatcher("p", lambda *_: variants.bound(1, True).load(), ("x",), offset_providers=({},))
    assert refusal(ValueError, program, 1) == "Program 'p' has 1 parameters, but the program that was built has 5."


def test_names_of_keywords_that_are_not_plain_strings() -> None:
    calls: list[Any] = []

    class Name(str):
        def __del__(self) -> None:
            for names in (("b", "c", "a"), ("c", "a", "b"), ("c", "b", "a"), ("b", "a", "c")):
                program(**{name: name for name in names})

    executable = lambda *args, offset_provider: calls.append(args)  # noqa: E731
    program = _host.Dispatcher("p", lambda *_: executable, ("a", "b", "c"), offset_providers=({},))
    for _ in range(10):
        program(**{Name("a"): "a", Name("c"): "c", Name("b"): "b"})
    assert set(calls) == {("a", "b", "c")}


# --- Offset providers -------------------------------------------------------------------------------------------------


def test_two_offset_providers(variants: Variants) -> None:
    providers = [{"E2V": np.full((EDGES, 2), i, np.int32)} for i in range(2)]
    program = variants.compile({"n": [1], "flag": [True]}, arguments("out", "x"), providers)
    call = {"vn": edge_field(), "n": 1, "flag": True}
    for provider in (*providers, dict(providers[0]), UserDict(providers[1]), {**providers[0], "more": 1}):
        program(**call, offset_provider=provider)
    tables = [provider["E2V"].ctypes.data for provider in providers]
    recorded = variants.bound(1, True).recorder.calls()
    assert [entry["gt_conn_E2V"] for entry in recorded] == [tables[i] for i in (0, 1, 0, 1, 0)]
    message = "Program 'host' was not compiled for the offset provider that was passed: compile it for this one too."
    assert refusal(ValueError, program, **call, offset_provider={"E2V": providers[0]["E2V"].copy()}) == message
    assert refusal(ValueError, program, **call, offset_provider={}) == message
    assert refusal(ValueError, program, **call, offset_provider=UserDict()) == message
    assert refusal(TypeError, program, **call) == "host() missing 1 required keyword-only argument: 'offset_provider'"
    assert len(variants.bound(1, True).recorder.calls()) == 5


def test_a_connectivity_that_the_offset_provider_lacks_is_named(variants: Variants) -> None:
    program = variants.compile({"n": [1], "flag": [True]}, arguments("out", "x"))
    message = (
        "Program 'host' was compiled for an offset provider with 'E2V', which the one that was passed does not have."
    )
    for lacking in ({}, UserDict(V2E=None)):
        assert refusal(ValueError, program, edge_field(), 1, True, offset_provider=lacking) == message


def test_no_mapping_is_no_offset_provider(variants: Variants) -> None:
    program = variants.compile({"n": [1], "flag": [True]}, arguments("out", "x"))
    for wrong in (None, [1], 5):
        assert refusal(TypeError, program, edge_field(), 1, True, offset_provider=wrong) == (
            f"The offset provider of program 'host' must be a mapping, not '{type(wrong).__name__}'."
        )


def test_each_variant_is_listed_once_for_several_offset_providers(variants: Variants) -> None:
    providers = [{"E2V": np.full((EDGES, 2), i, np.int32)} for i in range(3)]
    program = variants.compile({"n": [1, 2], "flag": [True]}, arguments("out", "x"), providers)
    assert refusal(ValueError, program, edge_field(), np.int32(3), True, offset_provider=providers[1]) == (
        "Program 'host' was not compiled for (n=3, flag=True), but for (n=1, flag=True), (n=2, flag=True)."
    )


def test_variants_are_built_for_the_offset_provider_as_it_was(variants: Variants) -> None:
    provider = good_arguments()["offset_provider"]
    table = provider["E2V"]
    seen = []

    def start(static: Any, offset_provider: Any) -> Future[Any]:
        seen.append(offset_provider["E2V"])
        return variants.start(static, offset_provider)

    program = variants.compile({"n": [1], "flag": [True]}, arguments("out", "x"), [provider], start=start)
    provider["E2V"] = table.copy()
    program.compile(n=[2], flag=[True])
    assert all(connectivity is table for connectivity in seen)
    with pytest.raises(TypeError):
        program.offset_providers[0]["E2V"] = None  # type: ignore[index]


def test_a_compiled_offset_provider_stays_what_it_was(variants: Variants) -> None:
    provider = good_arguments()["offset_provider"]
    table = provider["E2V"]
    program = variants.compile({"n": [1], "flag": [True]}, arguments("out", "x"), [provider])
    provider["E2V"] = table.copy()
    call = {"vn": edge_field(), "n": 1, "flag": True}
    program(**call)
    assert variants.bound(1, True).last()["gt_conn_E2V"] == table.ctypes.data
    refusal(ValueError, program, **call, offset_provider=provider)


# --- Building ---------------------------------------------------------------------------------------------------------


def test_the_first_call_waits_for_what_is_not_ready(variants: Variants, capfd: pytest.CaptureFixture[str]) -> None:
    builds._forget()  # those of tests that lower a program and do not build it
    build: Future[Any] = Future()
    program = variants.compile({"n": [1], "flag": [True]}, arguments("out", "x"), start=lambda *_: build)
    threading.Timer(0.6, build.set_result, [(1, True)]).start()
    program(edge_field(), 1, True)
    assert variants.called() == {(1, True): 1}
    said = capfd.readouterr().err
    assert re.fullmatch(r"gtstub: waiting for host\ngtstub: host is ready after \d\.\d s\n", said), said


def test_a_failed_build_is_raised_by_every_call_and_names_the_variant(variants: Variants) -> None:
    build: Future[Any] = Future()
    build.set_exception(OSError("no space"))
    message = "Program 'host' could not be compiled for (n=1, flag=True): no space"
    with pytest.raises(CompilationError) as caught:
        variants.compile({"n": [1], "flag": [True]}, arguments("out", "x"), start=lambda *_: build)
    assert str(caught.value) == message
    assert caught.value.__cause__ is build.exception()

    later: Future[Any] = Future()
    program = variants.compile({"n": [1], "flag": [True]}, arguments("out", "x"), start=lambda *_: later)
    later.set_exception(OSError("no space"))
    for _ in range(2):
        assert refusal(CompilationError, program, edge_field(), 1, True) == message
    assert variants.called() == {}
    program.wait()  # A call has raised the error.


def test_a_failed_build_that_no_call_met_is_raised_by_everyone_who_waits(variants: Variants) -> None:
    build: Future[Any] = Future()
    program = variants.compile({"n": [1], "flag": [True]}, arguments("out", "x"), start=lambda *_: build)
    build.set_exception(OSError("no space"))
    for _ in range(2):
        with pytest.raises(CompilationError, match="no space"):
            program.wait()


def test_a_build_that_failed_can_be_tried_again(variants: Variants) -> None:
    builds = iter([Future[Any](), Future[Any]()])
    bad = next(builds)
    later = variants.compile({"n": [1], "flag": [True]}, arguments("out", "x"), start=lambda *_: bad)
    bad.set_exception(OSError("no space"))
    refusal(CompilationError, later, edge_field(), 1, True)
    good = next(builds)
    good.set_result((1, True))
    later._builder = dataclasses.replace(later._builder, start=lambda *_: good)
    later.compile(n=[1], flag=[True])
    later(edge_field(), 1, True)
    assert variants.called() == {(1, True): 1}


def test_nothing_is_built_where_one_of_the_variants_exists(variants: Variants) -> None:
    started = []

    def start(static: Any, provider: Any) -> Future[Any]:
        started.append(static)
        return variants.start(static, provider)

    program = variants.compile({"n": [1], "flag": [True]}, arguments("out", "x"), start=start)
    with pytest.raises(ValueError):
        program.compile(n=[2, 1], flag=[True])
    assert len(started) == 1
    with pytest.raises(TypeError) as caught:
        program.compile(n=[], flag=[True])
    assert str(caught.value) == "Static argument 'n' of program 'host' needs a list of values, not an empty one."


def test_wait_for_compilation_loads_everything_and_raises_all_that_went_wrong(
    variants: Variants, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_alive", weakref.WeakSet())  # as in a process that has compiled nothing
    good, bad = Future[Any](), Future[Any]()
    first = variants.compile({"n": [1], "flag": [True]}, arguments("out", "x"), start=lambda *_: good)
    second = variants.compile({"n": [1], "flag": [True, False]}, arguments("out", "x"), start=lambda *_: bad)
    good.set_result((1, True))
    bad.set_exception(OSError("no space"))
    with pytest.raises(ExceptionGroup) as caught:
        wait_for_compilation()
    assert [str(error) for error in caught.value.exceptions] == [
        f"Program 'host' could not be compiled for (n=1, flag={flag}): no space" for flag in (True, False)
    ]
    assert isinstance(first.prepare_variant(0), _host.Program)
    assert variants.released == 1
    del second, caught
    gc.collect()
    wait_for_compilation()


def test_threads_call_variants_of_one_program(variants: Variants) -> None:
    program = variants.compile(ALL, arguments("out", "x"))
    fields = [edge_field() for _ in range(4)]
    start = threading.Barrier(4)
    failed: list[BaseException] = []

    def work(i: int) -> None:
        try:
            start.wait()
            for _ in range(500):
                program(vn=fields[i], n=1 + i // 2, flag=i % 2 == 0)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    for i in range(4):
        recorded = variants.bound(1 + i // 2, i % 2 == 0).recorder.calls()
        assert {call["vn"] for call in recorded} == {fields[i]._ndarray.ctypes.data}  # type: ignore[attr-defined]
    assert variants.called() == {(n, flag): 500 for n in (1, 2) for flag in (True, False)}


# --- Objects ----------------------------------------------------------------------------------------------------------


@needs_frees
def test_time_levels_and_new_fields_at_old_addresses(variants: Variants) -> None:
    program = variants.compile({"n": [1], "flag": [True]}, arguments("out", "x"))
    now, new = edge_field(), edge_field()
    expected = []
    for _ in range(4):
        program(now, 1, True)
        expected.append(now._ndarray.ctypes.data)  # type: ignore[attr-defined]
        now, new = new, now
    addresses = set()
    for _ in range(20):  # A field of other memory, most likely where the last one was.
        field = edge_field(np.zeros((EDGES, LEVELS)))
        addresses.add(id(field))
        program(field, 1, True)
        expected.append(field._ndarray.ctypes.data)  # type: ignore[attr-defined]
        del field
    assert len(addresses) < 20
    assert [call["vn"] for call in variants.bound(1, True).recorder.calls()] == expected


def test_nothing_is_held_beyond_the_bound_arguments(variants: Variants) -> None:
    bound = arguments("out", "x")
    program = variants.compile(ALL, bound)
    vn, number = edge_field(), np.int32(1)
    watched = [vn, number, program, *bound.values(), program.offset_providers[0]]
    for _ in range(3):
        program(vn, number, flag=True)
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(1000):
        program(vn, number, flag=True)
        with pytest.raises(TypeError):
            program(vn, 1.5, flag=True)
        with pytest.raises(ValueError):
            program(vn, 9, flag=True)
        with pytest.raises(TypeError):
            program(vn, number)
    assert [sys.getrefcount(item) for item in watched] == before


@needs_frees
@needs_counts
def test_a_million_calls_without_growth(variants: Variants, tmp_path: Path) -> None:
    library = build_null_library(STATIC_SDFG, tmp_path)
    program = variants.compile(
        ALL, arguments("out", "x"), load=lambda artifact: _host.load(variants.bound(*artifact).stub, library)
    )
    fields = [edge_field(), edge_field()]

    def run(count: int) -> None:
        for i in range(count):
            program(fields[i & 1], 1 + (i & 1), flag=True)

    run(1000)
    before = held()
    run(1_000_000)
    assert growth(before) < 10_000


CALLED_WHILE_THE_COLLECTOR_CLEARS = """
import gc
import weakref
from gtstub import _host

references = []

class Node:
    pass

class Last:
    def __del__(self):
        references.append(weakref.ref(self.box[0]))
        references.append(weakref.ref(self.other, call))

def call(_):
    program = references[0]()
    if program is not None:
        try:
            program()
        except RuntimeError as error:
            print(error)

def make():
    box = []
    def choose(key, provider, statics):
        return box
    program = _host.Dispatcher("p", choose, (), offset_providers=({},))
    box.append(program)
    last = Last()
    last.box = box
    for name in ("other", "late"):
        node = Node()
        node.program, node.self, node.box = program, node, box
        setattr(last, name, node)
    box.append(last)
    box.append(last.late)

gc.disable()
make()
gc.collect()
print(len(references))
"""


def test_a_program_that_the_collector_has_cleared_builds_nothing() -> None:
    """A weak reference that a finalizer makes is called while the collector clears, if this Python does not drop it."""
    *refusals, references = run_script(CALLED_WHILE_THE_COLLECTOR_CLEARS).splitlines()
    assert references == "2"
    assert set(refusals) <= {"Program 'p' was called by a finalizer after its end."}


def test_a_program_in_a_cycle_is_collected(variants: Variants) -> None:
    class Granule:
        def __init__(self) -> None:
            self.load = variants.load
            self.program = variants.compile(ALL, arguments("out", "x"), start=self.start)

        def start(self, static: Any, provider: Any) -> Future[Any]:
            return variants.start(static, provider)

    granule = Granule()
    out = granule.program.bound_args["out"]
    before = sys.getrefcount(out)
    del granule
    gc.collect()
    assert sys.getrefcount(out) == before - 2  # of the interface, and of the C object


# --- What it says of itself -------------------------------------------------------------------------------------------


def test_signature_repr_and_docstring(variants: Variants) -> None:
    program = variants.compile(ALL, arguments("out", "x"))
    assert str(inspect.signature(program)) == "(vn, n, flag)"
    assert repr(program) == "<gtstub program 'host' (vn, n, flag; 2 bound; 4 variants)>"
    assert program.__name__ == "host"
    assert program.__doc__ == "host(vn, n, flag)\n\nWhat it does.\n\nBound: out, x.\n\nStatic: n, flag."
    assert list(program.bound_args) == ["out", "x"]
    assert callable(program)
    overridable = variants.compile(ALL, {"out": np.zeros(3), "x": 1}, overridable=True)
    assert str(inspect.signature(overridable)) == "(vn, *, out=Ellipsis, x=1, n, flag)"


def test_pickle_keeps_bound_arguments_and_variants(variants: Variants, tmp_path: Path) -> None:
    def start(static: Any, provider: Any) -> Future[Any]:
        bound = variants.bound(static["n"], static["flag"])
        with store.Cache(tmp_path).private_directory("entry") as private:
            for file in (bound.stub, bound.library):
                (private / file.name).write_bytes(file.read_bytes())
            manifest = Manifest("host", bound.stub.name, bound.library.name)
            entry = store.Cache(tmp_path).publish(private, f"entry-{static['n']}-{static['flag']}", manifest)
        done: Future[Any] = Future()
        done.set_result(entry)
        return done

    bound = arguments("out", "x")
    provider = {"E2V": np.full((EDGES, 2), 3, np.int32)}
    program = variants.compile(ALL, bound, [provider], start=start, load=Entry.load)
    provider.clear()
    copy = pickle.loads(pickle.dumps(program))
    np.testing.assert_array_equal(copy.offset_providers[0]["E2V"], np.full((EDGES, 2), 3))
    assert repr(copy) == repr(program)
    assert inspect.signature(copy) == inspect.signature(program)
    assert copy.bound_args["out"] is not bound["out"]
    copy(edge_field(), 2, True)
    refusal(ValueError, copy, edge_field(), 3, True)
    with pytest.raises(TypeError) as caught:
        copy.compile(n=[3], flag=[True])
    assert str(caught.value) == "Program 'host' was unpickled: compile more variants where it was compiled."
    pickled = pickle.dumps(program)
    shutil.rmtree(tmp_path / "entry-2-True")
    with pytest.raises(CacheError) as gone:
        pickle.loads(pickled)
    assert str(gone.value) == f"There is no cache entry at '{tmp_path / 'entry-2-True'}'."


def test_what_gt4pys_own_backends_compiled_cannot_be_pickled(variants: Variants) -> None:
    program = variants.compile(ALL, arguments("out", "x"))
    with pytest.raises(TypeError) as caught:
        pickle.dumps(program)
    assert str(caught.value) == "Program 'host' cannot be pickled: a backend of gt4py itself compiled it."


def test_executables_of_gt4py_are_called_in_order(variants: Variants) -> None:
    calls = []

    def executable(*args: Any, offset_provider: Any) -> None:
        calls.append((args, offset_provider))

    program = variants.compile({"n": [1], "flag": [True]}, {"vn": 1, "x": 2})
    other = type(program)("p", lambda *_: executable, ("a", "b"), {"b": 2}, offset_providers=({"E": 1},))
    other(1)
    assert calls == [((1, 2), {"E": 1})]
