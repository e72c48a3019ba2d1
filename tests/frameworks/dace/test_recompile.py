"""Programs that are compiled anew when values that were compiled in have changed."""

import re
import threading
from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.errors import SignatureError
from gtstub.frameworks.dace import program as front_end
from tests.support.recorded_dace import opaque

N = dace.symbol("N")


def three(value: float) -> Any:
    return np.full(3, float(value))


class Box:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def double(x: Any) -> Any:
    return x * 2


def triple(x: Any) -> Any:
    return x * 3


K, LEVELS, FIELD, APPLIED = 2.0, [1.0, 2.0], three(1), double
BOX = Box(old=three(1), new=three(2), k=3)


@dace.program
def inner(x: dace.float64[N]):
    x[:] = APPLIED(x) + BOX.k


@gtstub.program(recompile=16)
@dace.program
def reads(a: dace.float64[N]):
    inner(a)
    a[:] = a * K + len(LEVELS) + FIELD[0] + len(FIELD) + (100 if BOX.k > 5 else 0)


def expected() -> float:
    return float((APPLIED(1) + BOX.k) * K + len(LEVELS) + FIELD[0] + len(FIELD) + (100 if BOX.k > 5 else 0))


def result(program: Any) -> float:
    """What a program makes of an array of ones."""
    a = np.ones(4)
    assert program(a) is None
    assert (a == a[0]).all()
    return float(a[0])


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the programs that are parsed."""
    names: list[str] = []
    parse = front_end.parse_variant

    def parse_variant(program: Any, *args: Any) -> Any:
        names.append(program.f.__name__)
        return parse(program, *args)

    monkeypatch.setattr(front_end, "parse_variant", parse_variant)
    return names


def test_what_changes_is_compiled_anew(monkeypatch: pytest.MonkeyPatch, parsed: list[str]) -> None:
    """And what comes back finds its variant: nothing is parsed again."""
    reads.clear()
    changes: list[tuple[Any, str, Any]] = [
        (None, "K", 3.0),
        (None, "K", 2),
        (None, "LEVELS", [1.0]),
        (None, "FIELD", np.full(5, 1.0)),
        (None, "APPLIED", triple),
        (BOX, "k", 7),
    ]
    for round_ in (1, 2):
        assert result(reads) == expected()
        for place, name, value in changes:
            with monkeypatch.context() as context:
                context.setitem(globals(), name, value) if place is None else context.setattr(place, name, value)
                assert result(reads) == expected()
                FIELD[:] += 1
                assert result(reads) == expected()
            assert result(reads) == expected()
        assert len(parsed) == 1 + len(changes), f"in round {round_}"
    assert repr(reads) == "<gtstub program 'reads' of DaCe (7 variants)>"


def test_a_value_that_comes_back_finds_its_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a later process, too, where the program has no variants."""
    assert result(reads) == expected()
    paths = {each.entry.path for _, each in reads._variants}
    monkeypatch.setattr("gtstub.frameworks.dace.build.Build.publish", None)
    reads.clear()
    assert result(reads) == expected()
    assert {each.entry.path for _, each in reads._variants} <= paths


OLD_AND_NEW = Box(old=three(1), new=three(2))


@gtstub.program(recompile=True)
@dace.program
def reads_two(a: dace.float64[3]):
    a[:] = OLD_AND_NEW.old + 10 * OLD_AND_NEW.new


def of_two() -> list[float]:
    a = three(1)
    reads_two(a)
    return list(a)


def test_two_arrays_that_become_one_and_two_again(parsed: list[str]) -> None:
    old, new = three(1), three(2)
    OLD_AND_NEW.old, OLD_AND_NEW.new = old, new
    assert of_two() == [21] * 3
    OLD_AND_NEW.new = old
    assert of_two() == [11] * 3
    OLD_AND_NEW.old = new
    assert of_two() == [12] * 3
    OLD_AND_NEW.new = new
    assert of_two() == [22] * 3
    OLD_AND_NEW.new = np.zeros((3, 2))[:, 0]
    assert of_two() == [2] * 3
    assert len(parsed) == 3, "the last array has other strides"


class Model:
    def __init__(self, k: int) -> None:
        self.k, self.seen = k, []

    def see(self, x):
        self.seen.append((self.k, x[0]))

    @gtstub.program(recompile=True)
    @dace.method
    def step(self, a: dace.float64[N]):
        a[:] = a * self.k


def test_each_object_has_variants_of_its_own() -> None:
    one, two = Model(2), Model(3)
    assert (result(one.step), result(two.step)) == (2, 3)
    one.k = 3
    assert (result(one.step), result(two.step)) == (3, 3)
    two.k = 2
    assert (result(one.step), result(two.step)) == (3, 2)
    assert [len(each.step._variants) for each in (one, two)] == [2, 2]


# --- How many ---------------------------------------------------------------------------------------------------------

STEP = 0


@gtstub.program(recompile=2)
@dace.program
def counts(a: dace.float64[N]):
    a[:] = a + STEP


def test_a_value_that_changes_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    counts.clear()
    for step in (1, 2, 1, 2):
        monkeypatch.setitem(globals(), "STEP", step)
        assert result(counts) == 1 + step
    monkeypatch.setitem(globals(), "STEP", 3)
    for _ in range(2):
        with pytest.raises(ValueError) as caught:
            result(counts)
        assert str(caught.value) == (
            "Program 'counts' has 2 variants of these types, none of which fits: the last one was compiled for"
            " 'STEP' = 2, but it is 3 now. Make what changes an argument of the program, or allow more variants:"
            " recompile=4."
        )
    monkeypatch.setitem(globals(), "STEP", 1)
    assert result(counts) == 2
    counts.clear()
    monkeypatch.setitem(globals(), "STEP", 2)
    assert result(counts) == 3


def test_other_types_have_variants_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    @gtstub.program(recompile=1)
    def untyped(a):
        a[:] = a + STEP

    for dtype in (np.float64, np.float32):
        a = np.ones(2, dtype)
        untyped(a)
        assert a[0] == 1 + STEP
    assert len(untyped._variants) == 2
    monkeypatch.setitem(globals(), "STEP", 5)
    with pytest.raises(ValueError, match="was compiled for 'STEP' = 0, but it is 5 now"):
        untyped(np.ones(2))


# --- The default ------------------------------------------------------------------------------------------------------


def test_the_default_is_a_refusal_that_names_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    refuses = gtstub.program(counts.dace_program)
    monkeypatch.setitem(globals(), "STEP", 1)
    assert result(refuses) == 2
    monkeypatch.setitem(globals(), "STEP", 2)
    with pytest.raises(ValueError) as caught:
        result(refuses)
    assert str(caught.value) == (
        f"Program '{counts.name}' was compiled for 'STEP' = 1, but it is 2 now; call its method clear() to compile it"
        " anew, or make it with gtstub.program(recompile=True)."
    )
    monkeypatch.setenv("GTSTUB_RECOMPILE", "1")
    assert result(refuses) == 3
    never = gtstub.program(counts.dace_program, recompile=False)
    assert result(never) == 3
    monkeypatch.setitem(globals(), "STEP", 1)
    with pytest.raises(ValueError, match="was compiled for 'STEP' = 2"):
        result(never)
    with pytest.raises(ValueError, match="'recompile' is a number of variants, not -1"):
        gtstub.program(counts.dace_program, recompile=-1)


# --- Bound calls and steps --------------------------------------------------------------------------------------------


def test_a_bound_call_keeps_its_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.zeros(3)
    monkeypatch.setitem(globals(), "STEP", 1)
    counts.clear()
    call = _host.bind(counts, a)
    with gtstub.capture() as step:
        counts(a)
    call()
    step()
    assert list(a) == [3, 3, 3]
    monkeypatch.setitem(globals(), "STEP", 2)
    message = "was compiled for 'STEP' = 1, but it is 2 now; a bound call keeps its variant: bind it again."
    for start in (call, step):
        with pytest.raises(ValueError, match=re.escape(message)):
            start()
    assert list(a) == [3, 3, 3]
    _host.bind(counts, a)()
    assert list(a) == [5, 5, 5]


# --- Threads ----------------------------------------------------------------------------------------------------------


def test_threads_call_while_a_value_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    counts.clear()
    for step in (1, 2):
        monkeypatch.setitem(globals(), "STEP", step)
        assert result(counts) == 1 + step
    found: list[float | BaseException] = []

    def work() -> None:
        for _ in range(20):
            try:
                found.append(result(counts))
            except BaseException as error:
                found.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        globals()["STEP"] = 3 - STEP
    for thread in threads:
        thread.join()
    assert set(found) <= {2.0, 3.0}


def test_each_thread_has_an_object_of_its_own() -> None:
    models = [Model(k) for k in (2, 3, 4)]
    found: dict[int, list[float]] = {}

    def work(number: int, model: Model) -> None:
        k = model.k
        found[number] = []
        for step in range(6):
            model.k = k if step % 2 == 0 else 2
            found[number].append(result(model.step) / model.k)

    threads = [threading.Thread(target=work, args=each) for each in enumerate(models)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [1.0] * 6 for number in range(3)}


# --- What DaCe keeps --------------------------------------------------------------------------------------------------


@dace.program
def applies(a: dace.float64[N]):
    a[:] = APPLIED(a)


def test_what_dace_has_kept_of_its_own_calls_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """DaCe's key of a program does not have the functions that it calls."""
    assert result(applies) == 2
    monkeypatch.setitem(globals(), "APPLIED", triple)
    program = gtstub.program(applies, recompile=True)
    assert result(program) == 3
    monkeypatch.undo()
    assert result(program) == 2


# --- Calls through DaCe -----------------------------------------------------------------------------------------------


@opaque
def text(a: float) -> str:
    return "text"


@opaque
def use(value: Any) -> None:
    USED.append(value if isinstance(value, str) else float(value[0]))  # whose memory is valid here only


ASKED, USED, ITEMS = text, [], iter([2.0])


@gtstub.program(fallback=True)
@dace.program
def asks(a: dace.float64[N]):
    found = ASKED(a[0])
    use(found)
    a[:] = 5


def test_a_call_that_went_through_dace_returns_to_the_stub(monkeypatch: pytest.MonkeyPatch, parsed: list[str]) -> None:
    """And calls go through DaCe again when the object is back, but nothing is parsed for that."""
    calls = [(text, "text", 1), (text, "text", 2), (double, 2.0, 2), (double, 2.0, 2), (text, "text", 3)]
    for function, value, count in calls:
        monkeypatch.setitem(globals(), "ASKED", function)
        assert result(asks) == 5
        assert (USED[-1], asks.fallback_calls) == (value, count)
    assert len(parsed) == 2
    assert repr(asks) == "<gtstub program 'asks' of DaCe (2 variants)>"


def test_a_program_is_parsed_a_few_times_for_a_stub(monkeypatch: pytest.MonkeyPatch, parsed: list[str]) -> None:
    asks.clear()
    monkeypatch.setattr(front_end, "MOST_VARIANTS", 3)
    for count in range(5):
        monkeypatch.setitem(globals(), "ASKED", opaque(text))
        assert result(asks) == 5
        assert len(parsed) == min(count + 1, 3)


@gtstub.program(fallback=True)
@dace.program
def of_seven_axes(a: dace.float64[1, 1, 1, 1, 1, 1, 2]):
    a[:] = APPLIED(a)


def test_dace_parses_what_has_changed_after_the_last_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """What DaCe has compiled before is not found by the functions that were compiled in."""
    monkeypatch.setattr(front_end, "MOST_VARIANTS", 1)
    for function, value in ((double, 2.0), (triple, 3.0)):
        monkeypatch.setitem(globals(), "APPLIED", function)
        a = np.ones((1, 1, 1, 1, 1, 1, 2))
        of_seven_axes(a)
        assert a.flatten().tolist() == [value, value]
    assert of_seven_axes.fallback_calls == 2


@gtstub.program(fallback=True)
@dace.program
def uses_up(a: dace.float64[N]):
    for number in ITEMS:
        a[:] = a + number


def test_dace_is_not_called_after_an_iterator_was_used_up() -> None:
    """It would find no items there."""
    with pytest.raises(SignatureError, match="with the value of 'ITEMS', which a call cannot find again"):
        result(uses_up)
    assert uses_up.fallback_calls == 0


# --- Callbacks --------------------------------------------------------------------------------------------------------


@opaque
def see(box: Box, a: Any) -> None:
    box.seen.append(float(a[0]))


WATCHED = Box(seen=[])


@gtstub.program(recompile=True)
@dace.program
def watched(a: dace.float64[3]):
    see(WATCHED, a)
    a[:] = a + 1


def test_the_objects_of_callbacks(monkeypatch: pytest.MonkeyPatch, parsed: list[str]) -> None:
    first, second = WATCHED, Box(seen=[])
    for number, box in enumerate((first, second, first, second)):
        monkeypatch.setitem(globals(), "WATCHED", box)
        watched(three(number))
    assert (first.seen, second.seen) == ([0, 2], [1, 3])
    assert len(parsed) == 2
