"""
Orchestrated methods: what NDSL's own call gets wrong is right here, or refused; the rest is as with NDSL.

Annotations are no texts here, as in NDSL's models: NDSL looks at the types.
"""

import dataclasses
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from ndsl.dsl.dace import dace_executable, orchestration
from ndsl.dsl.dace.dace_config import DaceConfig, DaCeOrchestration
from ndsl.quantity import Local, Quantity, State

import gtstub
from gtstub.errors import SignatureError
from gtstub.frameworks.ndsl import orchestrate, orchestrate_function

SHAPE = (6, 6, 3)


def quantity(value: float, shape: tuple[int, ...] = SHAPE) -> Quantity:
    return Quantity(np.full(shape, value), ("x", "y", "z"), "m")


def config(mode: DaCeOrchestration = DaCeOrchestration.BuildAndRun, *, time: bool = False) -> DaceConfig:
    return DaceConfig(None, "numpy", mode, time)


def hash_of(configuration: DaceConfig) -> int:
    (executable,) = configuration.loaded_dace_executables.values()
    return int(executable.arguments_hash)


@dataclasses.dataclass
class Inner(State):
    c: Quantity


@dataclasses.dataclass
class Fields(State):
    a: Quantity
    b: Quantity
    inner: Inner
    is_wet: bool = True


def fields(value: float) -> Fields:
    return Fields(quantity(value), quantity(0.0), Inner(quantity(0.0)))


class Weighted:
    """Reads arrays and numbers of its own."""

    def __init__(self, configuration: DaceConfig) -> None:
        self.w = quantity(10.0)
        self.factor = 2.0
        self.temporary = Local(np.zeros(SHAPE), ("x", "y", "z"), "m")
        orchestrate(obj=self, config=configuration)

    def __call__(self, a, b):
        self.temporary[:] = a * self.factor
        b[:] = self.temporary + self.w


class Typed:
    """Takes Quantities and States by annotation, so that they are compile-time arguments."""

    def __init__(self, configuration: DaceConfig) -> None:
        orchestrate(obj=self, config=configuration)

    def __call__(self, q: Quantity, state: Fields):
        q[:] = q + 1.0
        state.a[:] = state.a + 1.0
        state.inner.c[:] = q
        if state.is_wet:
            state.b[:] = state.a + state.inner.c


class Inside:
    """Takes a State from another orchestrated method."""

    def __init__(self, configuration: DaceConfig) -> None:
        orchestrate(obj=self, config=configuration)

    def __call__(self, state: Fields):
        if state.is_wet:
            state.b[:] = state.a + state.inner.c


class Outer:
    """Calls orchestrated objects and methods, and passes a State on."""

    def __init__(self, configuration: DaceConfig) -> None:
        self.weighted = Weighted(configuration)
        self.inside = Inside(configuration)
        self.scale = 3.0
        orchestrate(obj=self, config=configuration, method_to_orchestrate="twice")
        orchestrate(obj=self, config=configuration, method_to_orchestrate="step")

    def twice(self, a):
        a[:] = a * self.scale

    def step(self, a, b, state: Fields):
        self.twice(a)
        self.weighted(a, b)
        self.inside(state)


# --- The faults -------------------------------------------------------------------------------------------------------


def test_an_array_of_self_that_is_rebound_is_read_anew() -> None:
    code, a, b = Weighted(config()), quantity(1.0), quantity(0.0)
    assert code(a, b) is None
    assert (b.data == 12.0).all()
    code.w = quantity(100.0)
    code(a, b)
    assert (b.data == 102.0).all()
    code.w.swap_buffer(np.full(SHAPE, 1000.0))
    code(a, b)
    assert (b.data == 1002.0).all()


def test_keywords_may_come_in_any_order() -> None:
    code, p, q = Weighted(config()), quantity(1.0), quantity(5.0)
    code(a=p, b=q)
    assert (q.data == 12.0).all()
    code(b=p, a=q)
    assert (p.data == 34.0).all()
    assert (q.data == 12.0).all()


def test_compile_time_arguments_may_come_in_any_order() -> None:
    code, q, state = Typed(config()), quantity(1.0), fields(1.0)
    code(q=q, state=state)
    code(state=state, q=q)
    assert (state.b.data == 6.0).all()


def test_an_attribute_that_was_compiled_in_is_refused_when_it_has_changed() -> None:
    code, a, b = Weighted(config()), quantity(1.0), quantity(0.0)
    code(a, b)
    code.factor = 3.0
    with pytest.raises(ValueError, match=r"was compiled for 'self\.factor' = 2\.0, but it is 3\.0 now; call .*clear"):
        code(a, b)
    code.__call__.clear()
    code(a, b)
    assert (b.data == 13.0).all()


def test_debug_checks_look_at_each_call() -> None:
    """Those of NDSL, which are compiled in, check nothing as long as their list of names is empty."""
    code, a, b = Weighted(config()), quantity(1.0), quantity(0.0)
    code(a, b)
    program = code.__call__.daceprog.name
    a.data[1, 2, 0], code.w.data[1, 2, 0] = np.inf, -np.inf
    with gtstub.checks("nan"), pytest.raises(RuntimeError) as caught:
        code(a, b)
    assert str(caught.value) == (
        f"Argument 'b' of program '{program}' is nan at axis_0 1, axis_1 2, axis_2 0 after the call;"
        " check 'nan' refuses 1 of 108 elements, 0 of them also before the call."
    )
    code.w.data[3, 0, 1] = np.nan
    with gtstub.checks("nan"), pytest.raises(RuntimeError, match=f"'self.w' of program '{program}' is nan .* before"):
        code(a, b)


def test_an_argument_of_another_shape_is_refused() -> None:
    code, a, b = Weighted(config()), quantity(1.0), quantity(0.0)
    code(a, b)
    with pytest.raises(ValueError, match=r"'a'.* must .*6"):
        code(quantity(1.0, (3, 3, 3)), quantity(0.0, (3, 3, 3)))
    code.w = quantity(1.0, (3, 3, 3))
    with pytest.raises(ValueError, match=r"'self\.w' .* must have size 6"):
        code(a, b)


def test_compile_time_objects_are_those_of_the_call() -> None:
    """NDSL's issue 436."""
    code, q, first, second = Typed(config()), quantity(1.0), fields(1.0), fields(10.0)
    code(q, first)
    assert (first.a.data == 2.0).all()
    code(q, second)
    assert (first.a.data == 2.0).all()
    assert (second.a.data == 11.0).all()
    assert (second.b.data == 14.0).all()
    other = quantity(100.0)
    code(other, second)
    assert (other.data == 101.0).all()
    assert (q.data == 3.0).all()
    second.inner = Inner(quantity(0.0))
    second.inner.c.swap_buffer(mine := np.zeros(SHAPE))
    code(q, second)
    assert (mine == 4.0).all()


def test_a_state_with_another_compiled_value_is_refused() -> None:
    code, q, state = Typed(config()), quantity(1.0), fields(1.0)
    code(q, state)
    dry = dataclasses.replace(state, is_wet=False)
    with pytest.raises(ValueError, match=r"was compiled for 'state\.is_wet' = True, but it is False now"):
        code(q, dry)


def test_an_array_in_two_places_must_stay_in_both() -> None:
    """DaCe compiles it as one."""
    code, state = Typed(config()), fields(1.0)
    code(state.b, state)
    assert (state.b.data == state.a.data + state.inner.c.data).all()
    with pytest.raises(ValueError, match=r"compiled for one array as 'q' and 'state\.b', but these are two now"):
        code(quantity(1.0), state)


class Doubled:
    """Reads one Quantity by two names."""

    def __init__(self, configuration: DaceConfig) -> None:
        self.w = self.z = quantity(10.0)
        orchestrate(obj=self, config=configuration)

    def __call__(self, b):
        b[:] = self.w + self.z


def test_two_attributes_that_were_one_array_must_stay_so() -> None:
    code, b = Doubled(config()), quantity(0.0)
    code(b)
    assert (b.data == 20.0).all()
    code.z = quantity(1.0)
    with pytest.raises(ValueError, match=r"one array as 'self\.\w' and 'self\.\w', but these are two now"):
        code(b)
    code.w = code.z
    code(b)
    assert (b.data == 2.0).all()


class Reporting:
    """Calls Python, which keeps the last argument and raises an exception for a certain value."""

    def __init__(self, configuration: DaceConfig) -> None:
        self.seen: list[object] = []
        orchestrate(obj=self, config=configuration)

    @orchestration.dace_inhibitor
    def report(self, field):
        self.seen[:] = [field]
        if np.asarray(field)[0, 0, 0] == 3:
            raise KeyError("three")

    def __call__(self, a):
        a[:] = a + 1.0
        self.report(a)


def test_an_exception_of_a_callback_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    configuration, ignored = config(), []
    code, a = Reporting(configuration), quantity(1.0)
    code(a)
    assert code.seen[0] is a  # the Quantity, as from NDSL
    with pytest.raises(KeyError, match="three") as caught:
        code(a)
    assert caught.traceback[-1].name == "report"
    code(a)
    assert (a.data == 4.0).all()
    # NDSL's own call of the same library returns as if nothing had happened.
    a.data[:] = 2.0
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    orchestration._call_sdfg(code.__call__.daceprog, None, configuration, (a,), {})
    assert code.seen[0] is a
    assert [repr(each.exc_value) for each in ignored] == ["KeyError('three')"]


def test_the_stand_in_has_the_faults() -> None:
    """Without which the tests above would say nothing."""
    code, a, b = Weighted(config(DaCeOrchestration.Python)), quantity(1.0), quantity(0.0)
    orchestration.orchestrate(obj=code, config=config())
    code(a=a, b=b)
    code.w, code.factor = quantity(100.0), 3.0
    code(a=a, b=b)
    assert (b.data == 12.0).all()
    code(b=a, a=b)
    assert (a.data == 1.0).all()
    typed, q, first, second = Typed(config(DaCeOrchestration.Python)), quantity(1.0), fields(1.0), fields(1.0)
    orchestration.orchestrate(obj=typed, config=config())
    typed(q, first)
    typed(q, second)
    assert (second.a.data == 1.0).all()


# --- One orchestrated method calls another ----------------------------------------------------------------------------


def check_outer(code: Outer) -> None:
    a, b, state = quantity(1.0), quantity(0.0), fields(1.0)
    code.step(a, b, state)
    assert (a.data == 3.0).all()
    assert (b.data == 16.0).all()
    assert (state.b.data == 1.0).all()


def test_methods_call_each_other() -> None:
    code = Outer(config())
    check_outer(code)
    check_outer(code)  # with another State
    code.weighted.w = quantity(11.0)
    a, b = quantity(1.0), quantity(0.0)
    code.step(a, b, fields(1.0))
    assert (b.data == 17.0).all()
    code.weighted.factor = 1.0
    with pytest.raises(ValueError, match=r"'self\.factor' = 2\.0"):
        code.step(a, b, fields(1.0))
    code.weighted.factor = 2.0
    with pytest.raises(ValueError, match=r"'state\.is_wet' = True"):
        code.step(a, b, dataclasses.replace(fields(1.0), is_wet=False))


def test_objects_that_ndsl_has_orchestrated_get_our_calls() -> None:
    configuration = config()
    code = Weighted.__new__(Weighted)
    code.w, code.factor, code.temporary = quantity(10.0), 2.0, Local(np.zeros(SHAPE), ("x", "y", "z"), "m")
    orchestration.orchestrate(obj=code, config=configuration)
    orchestrate(obj=code, config=configuration)
    orchestrate(obj=code, config=configuration)
    a, b = quantity(1.0), quantity(0.0)
    code(a, b)
    code.w = quantity(100.0)
    code(a, b)
    assert (b.data == 102.0).all()


# --- As with NDSL -----------------------------------------------------------------------------------------------------


class Plain:
    def __init__(self, configuration: DaceConfig) -> None:
        orchestrate(obj=self, config=configuration, dace_compiletime_args=["n"])

    def __call__(self, a, n):
        for i in range(n):
            a[:] = a + i


def test_without_orchestration_nothing_changes() -> None:
    code, a = Plain(config(DaCeOrchestration.Python)), np.zeros(3)
    assert type(code) is Plain
    code(a, 3)
    assert (a == 3).all()


def test_mode_python_calls_the_method_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_MODE", "Python")
    configuration = config()
    code, a = Plain(configuration), np.zeros(3)
    code(a, 3)
    assert (a == 3).all()
    assert configuration.loaded_dace_executables == {}


def test_the_type_keeps_its_name() -> None:
    code = Plain(config())
    assert type(code).__name__ == "Plain"
    assert isinstance(code, Plain)
    assert code.__name__ == "Plain_patched"


def test_compile_time_arguments_are_refused_when_they_differ() -> None:
    code, a = Plain(config()), np.zeros(3)
    code(a, 3)
    assert (a == 3).all()
    with pytest.raises(ValueError, match="'n' = 3, but it is 4 now"):
        code(a, 4)


def test_arrays_and_quantities_may_take_turns() -> None:
    code, q, a = Plain(config()), quantity(0.0), np.zeros(SHAPE)
    for _ in range(2):
        code(q, 3)
        code(a, 3)
    assert (q.data == 6).all()
    assert (a == 6).all()


def test_a_method_that_does_not_exist_is_ndsls_error() -> None:
    with pytest.raises(RuntimeError, match=r"Plain\.run does not exist"):
        orchestrate(obj=Plain(config(DaCeOrchestration.Python)), config=config(), method_to_orchestrate="run")


def check_hashes(configuration: DaceConfig, hash_now: Any) -> None:
    code, first, state = Typed(configuration), quantity(1.0), fields(1.0)
    code(first, state)
    hash_a = hash_now()
    code(first, state)
    assert hash_now() == hash_a
    code(second := quantity(1.0), state)
    assert hash_now() != hash_a
    code(first, state)
    assert hash_now() == hash_a
    first.swap_buffer(np.zeros(SHAPE))
    code(first, state)
    assert hash_now() != hash_a
    assert (second.data == 2.0).all()
    hash_b = hash_now()
    state.inner = Inner(quantity(1.0))
    code(first, state)
    assert hash_now() != hash_b


def test_the_hash_is_that_of_the_arguments() -> None:
    configuration = config()
    check_hashes(configuration, lambda: hash_of(configuration))


@dataclasses.dataclass
class NewerExecutable:
    """DaceExecutable of newer versions of NDSL, which makes the calls, and records one."""

    compiled_sdfg: Any
    recorded: list[Any]
    _arguments_hash: int = 0
    _record: bool = True

    def _hash_expected_dsl_args(self, args, kwargs):
        return dace_executable.DaceExecutable.hash_expected_dsl_args(args, kwargs)

    def run(self, program, args, kwargs):
        arguments = program._create_sdfg_args(self.compiled_sdfg.sdfg, args, kwargs)
        self._arguments_hash = self._hash_expected_dsl_args(args, kwargs)
        if self._record:
            self.recorded.append(arguments)
            self._record = False
        self.compiled_sdfg(**arguments)


def test_newer_versions_have_other_names(monkeypatch: pytest.MonkeyPatch) -> None:
    executables, recorded = {}, []
    parse, build = orchestration._parse_sdfg, orchestration._build_sdfg

    def get_dace_executable(program, sdfg, configuration, optimization, args, kwargs):
        assert optimization is None
        if program not in executables:
            build(program, sdfg, configuration, args, kwargs)
            loaded = configuration.loaded_dace_executables.pop(program)
            executables[program] = NewerExecutable(loaded.compiled_sdfg, recorded)
        return executables[program]

    def parse_sdfg(program, configuration, optimization, *args, **kwargs):
        assert optimization is None
        return (
            executables[program].compiled_sdfg
            if program in executables
            else parse(program, configuration, *args, **kwargs)
        )

    def call(self, *args, **kwargs):
        sdfg = parse_sdfg(self.daceprog, self._dace_config, None, *args, **kwargs)
        executable = get_dace_executable(self.daceprog, sdfg, self._dace_config, None, args, kwargs)
        return executable.run(self.daceprog, args, kwargs)

    monkeypatch.setattr(orchestration, "parse_sdfg", parse_sdfg, raising=False)
    monkeypatch.setattr(orchestration, "get_dace_executable", get_dace_executable, raising=False)
    monkeypatch.setattr(orchestration._Lazy, "__call__", call)
    monkeypatch.setattr(dace_executable, "DACE_EXECUTABLE_CACHE", executables, raising=False)
    check_hashes(config(), lambda: next(iter(executables.values()))._arguments_hash)
    assert len(recorded) == 1


class Defaulting:
    def __init__(self, configuration: DaceConfig) -> None:
        orchestrate(obj=self, config=configuration)

    def __call__(self, a, b=1.0):
        a[:] = a + b


class Returning:
    def __init__(self, configuration: DaceConfig) -> None:
        orchestrate(obj=self, config=configuration)

    def __call__(self, a):
        return a + 1.0, a + 2.0


def test_results_are_ndsls() -> None:
    code, a = Returning(config()), quantity(1.0)
    first = code(a)
    second = code(a)
    assert isinstance(first, list)
    assert [each[0, 0, 0] for each in first] == [2.0, 3.0]
    assert not np.shares_memory(first[0], second[0])


def test_other_arguments_than_those_of_the_first_call_are_refused() -> None:
    code = Defaulting(config())
    code(a := np.zeros(3))
    assert (a == 1).all()
    with pytest.raises(
        TypeError, match=r"compiled for calls with the arguments \['a'\], but this one has \['a', 'b'\]"
    ):
        code(a, 2.0)


def test_timers_run_as_ndsls() -> None:
    configuration = config(time=True)
    code, a = Plain(configuration), np.zeros(3)
    code(a, 3)
    code(a, 3)
    collector = configuration.performance_collector
    (program,) = configuration.loaded_dace_executables
    assert collector.timestep_timer.clocked == [f"{program.name}.Call", f"{program.name}.Runtime"] * 2
    assert collector.collected == 2


def test_mode_build_ends_and_mode_run_loads(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_MODE", "Build")
    with pytest.raises(SystemExit):
        Weighted(config(DaCeOrchestration.Build))(quantity(1.0), quantity(0.0))
    assert [each.name for each in (caches / "dacecache").iterdir()] == [
        "tests_frameworks_ndsl_test_orchestrate_Weighted___call__"
    ]
    monkeypatch.setenv("GTSTUB_MODE", "Run")  # the stub is there too
    code, a, b = Weighted(config(DaCeOrchestration.Run)), quantity(1.0), quantity(0.0)
    code(a, b)
    assert (b.data == 12.0).all()
    with pytest.raises(ValueError, match=r"'a'.* must .*6"):
        code(quantity(1.0, (3, 3, 3)), b)


def test_functions() -> None:
    @orchestrate_function(config(), ["n"])
    def add(a, n):
        a[:] = a + n

    add(q := quantity(1.0), 3)
    assert (q.data == 4.0).all()
    with pytest.raises(ValueError, match="'n' = 3, but it is 4 now"):
        add(q, 4)

    @orchestrate_function(config(DaCeOrchestration.Python))
    def plain(a):
        return a

    assert plain(3) == 3


def test_what_no_stub_can_carry_is_refused_or_called_by_ndsl() -> None:
    class Doubled:
        def __call__(self, a):
            a[:] = a + a

    refused, code = Doubled(), Doubled()
    orchestrate(obj=refused, config=config())
    with pytest.raises(SignatureError, match="bfloat16"):
        refused(np.zeros(3, bfloat16))
    orchestrate(obj=code, config=config(), fallback=True)
    with pytest.warns(UserWarning, match="NDSL makes the calls of '.*Doubled___call__'.*bfloat16"):
        code(a := np.ones(3, bfloat16))
    code(a)
    assert (a == 4).all()


def halves(a):
    for i in range(7, -1, -1):
        if i > 3:
            a[i] = 1.0
        else:
            a[i] = 2.0


def backwards(a):
    for i in range(6, -1, -1):
        a[i] = a[i + 1] + 1.0
    for i in range(8):
        if i > 3:
            a[i] = 0.0


def test_a_loop_that_counts_down() -> None:
    """NDSL has DaCe simplify the program, which may lose branches in it."""
    with pytest.warns(UserWarning, match=r"NDSL may leave out a branch in a loop of '\w+' that counts down"):
        orchestrate_function(config())(halves)(np.zeros(8))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        orchestrate_function(config())(backwards)(np.zeros(8))
    assert not [each for each in caught if "counts down" in str(each.message)]
