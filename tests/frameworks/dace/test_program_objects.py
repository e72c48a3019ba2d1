"""Stubbed DaCe programs as objects: compiling, copying, looking at them, calls from others, and failed builds."""

import copy
import inspect
import pickle
import pydoc
import re
import threading
from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from gtstub.errors import SignatureError
from gtstub.frameworks.dace import program as front_end
from gtstub.frameworks.dace.variant import _plain
from tests.support.dace_programs import check_like_dace, check_same

N = dace.symbol("N")


@gtstub.program
@dace.program
def double(a: dace.float64[N], s: dace.float64):
    """Doubles, and adds."""
    a[:] = a * 2 + s


@gtstub.program
@dace.program
def untyped(a, s=1.0):
    a[:] = a * s


class Model:
    @gtstub.program
    def step(self, a: dace.float64[N]):
        a[:] = a + 1


# --- Compiling --------------------------------------------------------------------------------------------------------


def test_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variant of the annotations is that of later calls, with which nothing is parsed."""
    assert double.compile() is double
    assert gtstub.compile(double) is double
    monkeypatch.setattr(front_end, "build_variant", None)
    a = np.ones(3)
    double(a, 3.0)
    double(s=3.0, a=a)
    check_same(a, np.full(3, 13.0))


def test_compile_a_program_of_dace() -> None:
    compiled = gtstub.compile(double.dace_program)
    assert repr(compiled) == "<gtstub program 'double' of DaCe (1 variant)>"
    a = np.ones(3)
    compiled(a, 1.0)
    check_same(a, np.full(3, 3.0))


def test_what_compile_refuses() -> None:
    with pytest.raises(TypeError, match=r"A DaCe program takes no options of 'gtstub.compile"):
        gtstub.compile(double, backend_tag="cpu")
    with pytest.raises(TypeError, match="Program 'untyped' needs an example of 'a', which has no annotation"):
        gtstub.compile(untyped)
    with pytest.raises(TypeError, match="lacks the argument 'a'"):
        untyped.compile(s=3.0)


def test_python_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_MODE", "Python")

    @gtstub.program
    @dace.program
    def in_python(a, s: dace.float64):
        a[:] = [each * s for each in a]  # DaCe cannot parse this

    class Host:
        k = 2

        @gtstub.program
        def method(self, a):
            a[:] = [each * self.k for each in a]

    a = np.ones(3)
    assert in_python.compile() is in_python
    in_python(a, s=3.0)
    Host().method(a)
    check_same(a, np.full(3, 6.0))


# --- What is no program -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("thing", [3, len, dict, Model, Model(), double])
def test_what_is_no_program(thing: object) -> None:
    with pytest.raises(TypeError) as caught:
        gtstub.program(thing)
    assert str(caught.value) == f"gtstub.program() takes a function or a DaCe program, not '{type(thing).__name__}'."


def test_options_of_a_program_that_exists() -> None:
    with pytest.raises(TypeError, match="Pass 'auto_optimize' to dace"):
        gtstub.program(double.dace_program, auto_optimize=True)
    with pytest.raises(gtstub.errors.ConfigError):
        gtstub.program(double.dace_program, dace_config={"no.such.setting": 1})


def test_auto_optimize() -> None:
    @gtstub.program(auto_optimize=True)
    def optimised(a: dace.float64[N], b: dace.float64[N]):
        tmp = a + b
        b[:] = tmp * 2

    check_like_dace(optimised, np.arange(5.0), np.ones(5))


# --- As an object -----------------------------------------------------------------------------------------------------


def test_attributes() -> None:
    assert (double.__name__, double.__qualname__, double.__module__) == ("double", "double", __name__)
    assert double.__doc__ == "Doubles, and adds."
    assert double.__wrapped__ is double.dace_program.f
    assert list(inspect.signature(double).parameters) == ["a", "s"]
    assert list(inspect.signature(Model().step).parameters) == ["a"]
    assert inspect.signature(untyped).parameters["s"].default == 1.0
    assert "StubbedProgram" in pydoc.render_doc(double)
    assert isinstance(Model.__dict__["step"], front_end.StubbedMethod)
    assert Model.step is Model.__dict__["step"]


def test_what_a_program_of_dace_says_of_itself() -> None:
    model = Model()
    for each in (double, untyped, model.step):
        for name in ("f", "name", "argnames", "signature", "methodobj"):
            assert getattr(each, name) == getattr(each.dace_program, name)
    assert model.step.methodobj is model
    assert double.to_sdfg().arglist().keys() == {"a", "s", "N"}
    assert untyped.to_sdfg(np.ones(3)).arrays["a"].shape == (3,)
    assert not hasattr(double, "load_sdfg")
    with pytest.raises(AttributeError) as caught:
        double.load_sdfg  # noqa: B018
    assert str(caught.value) == (
        "'StubbedProgram' object has no attribute 'load_sdfg'. DaCe's program has it: '.dace_program.load_sdfg'."
    )
    with pytest.raises(AttributeError, match=r"^'StubbedProgram' object has no attribute 'nothing'.$"):
        double.nothing  # noqa: B018


def test_copies_and_pickles_are_the_program_itself() -> None:
    assert copy.copy(double) is double
    assert copy.deepcopy({"program": double})["program"] is double
    assert pickle.loads(pickle.dumps(double)) is double


def test_a_copy_of_an_object_has_a_program_of_its_own() -> None:
    model = Model()
    model.w = 3  # type: ignore[attr-defined]
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.step is not model.step
        assert other.step.dace_program.methodobj is other


# --- Calls from other programs ----------------------------------------------------------------------------------------


@dace.program
def of_dace(a: dace.float64[N]):
    double(a, 1.0)


def test_a_program_of_dace_calls_a_stubbed_one() -> None:
    a, b = np.ones(3), np.ones(3)
    of_dace(a)
    gtstub.program(of_dace)(b)
    check_same([a, b], [np.full(3, 3.0)] * 2)
    assert double.__sdfg_signature__()[0] == ["a", "s"]


# --- Builds that fail, and threads ------------------------------------------------------------------------------------


def test_a_failed_build_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    @gtstub.program
    @dace.program
    def tried(a: dace.float64[N]):
        a[:] = a + 7

    a = np.ones(2)
    with monkeypatch.context() as context:

        def fail(*args: Any) -> Any:
            raise OSError("disk full")

        context.setattr(front_end, "build_variant", fail)
        for _ in range(2):
            with pytest.raises(OSError, match="disk full"):
                tried(a)
    tried(a)
    check_same(a, np.full(2, 8.0))


def test_errors_of_dace_are_passed_on() -> None:
    @gtstub.program(fallback=True)
    @dace.program
    def impossible(a: dace.float64[3], b: dace.float64[4]):
        a[:] = a + b

    with pytest.raises(Exception, match="broadcast"):
        impossible(np.ones(3), np.ones(4))
    assert impossible.fallback_calls == 0


def test_calls_while_another_thread_builds() -> None:
    """Both threads get the variant that one of them has built."""

    @gtstub.program
    @dace.program
    def shared(a: dace.float64[N]):
        a[:] = a + 3

    arrays = [np.ones(3) for _ in range(4)]
    errors: list[BaseException] = []

    def work(array: Any) -> None:
        try:
            shared(array)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(array,)) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    check_same(arrays, [np.full(3, 4.0)] * 4)
    assert len(shared._variants) == 1


# --- The key ----------------------------------------------------------------------------------------------------------


def test_programs_of_one_name_are_different() -> None:
    """As in a notebook, in which a cell is executed again, and in two modules."""

    def defined(number: int) -> Any:
        if number == 0:

            @gtstub.program
            @dace.program
            def same(a: dace.float64[N]):
                a[:] = a + 1
        elif number == 1:

            @gtstub.program
            @dace.program
            def same(a: dace.float64[N]):
                a[:] = a - 1
        else:

            @gtstub.program
            @dace.program
            def same(a: dace.float64[N + 1]):
                a[:] = a - 1

        return same

    programs = [defined(number) for number in (0, 1, 2, 0)]
    found = []
    for program in programs:
        a = np.ones(2)
        program(a)
        found.append(a[0])
    assert found == [2, 0, 0, 2]
    paths = [program._variants[0][1].entry.path for program in programs]
    assert len({*paths}) == 3
    assert paths[0] == paths[3]


@pytest.mark.parametrize("name", ["hash", "guid", "debuginfo", "cfg_list_id", "symbols"])
def test_the_key_sees_names_that_dace_uses_itself(name: str) -> None:
    found = []
    for dtype in (dace.float64, dace.float32):
        sdfg = dace.SDFG("p")
        sdfg.add_transient(name, [3], dtype)
        found.append(_plain(sdfg.to_json()))
    assert found[0] != found[1]
    assert found[0] == _plain(_built(name).to_json())


def _built(name: str) -> dace.SDFG:
    sdfg = dace.SDFG("p")
    sdfg.add_transient(name, [3], dace.float64)
    return sdfg


def test_the_key_sees_constants() -> None:
    def described(value: Any) -> Any:
        sdfg = dace.SDFG("p")
        sdfg.add_constant("c", value)
        return _plain(sdfg.to_json())

    assert described(np.arange(2000.0)) != described(np.arange(2000.0) * (np.arange(2000) != 1000))
    assert described(np.float64(1)) != described(np.float64(1 + 1e-15))


def test_refusals_name_the_program() -> None:
    def half() -> None:
        @gtstub.program
        @dace.program
        def halves(a: dace.float32[3], h: dace.float16):
            a[:] = a + h

        halves.compile()

    def text() -> None:
        @gtstub.program
        @dace.program
        def texts(a: "dace.float64[3]"):  # as each annotation after the import from __future__
            a[:] = a + a

        texts.compile(np.zeros(3))

    for build, said in (
        (text, "'a' of .*_texts' must be an array or a scalar, but is a text. DaCe takes annotations for texts after"),
        (half, "'h' of .*_halves' must have one of the element types"),
    ):
        with pytest.raises(SignatureError) as caught:
            build()
        assert re.search(said, str(caught.value)), str(caught.value)
