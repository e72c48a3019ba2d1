"""Overloads of a program: where a call finds each argument, what it refuses, and which overload it chooses."""

from __future__ import annotations

import functools
import gc
import re
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.stub.signature.model import Axis
from tests.support.hosting import Bound, address
from tests.support.signatures import K, array, field, program, scalar, sdfg, symbol

SDFG = sdfg(
    array("a", Axis(start=0, stride=1)),
    array("b", Axis(start=0, stride=1), access="write"),
    symbol("n", ("a", 0, "size"), ("b", 0, "size")),
    symbol("s", dtype="float64"),
    name="over",
)
PROGRAM = program("over", a=field(K), s=scalar("float64"), b=field(K))

Choose = Callable[..., Any]


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Bound:
    return Bound(tmp_path_factory.mktemp("over"), toolchain, SDFG, PROGRAM)


@pytest.fixture
def bound(over: Bound) -> Iterator[Bound]:
    yield over
    over.recorder.clear()


def always(target: Any) -> Choose:
    return lambda *args, **kwargs: target


def make(bound: Bound, places: tuple[int, ...] = (0, 1, 2), **options: Any) -> _host.Overload:
    return _host.Overload(bound.program, places, options.pop("readings", ()), options.pop("constants", ()), **options)


def overloads(target: Any) -> _host.Dispatcher:
    return _host.Dispatcher("over", always(target))


def check_slots(bound: Bound, a: Any, s: float, b: Any) -> None:
    assert bound.last() == {"a": address(a), "b": address(b), "n": len(a), "s": s}


A, B = np.arange(3.0), np.zeros(3)


# --- Places and readings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("places", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_places(bound: Bound, places: tuple[int, ...]) -> None:
    values = [A, 2.5, B]
    args = [values[places.index(number)] for number in range(3)]
    call = overloads(make(bound, places))
    assert call(*args) is None
    check_slots(bound, A, 2.5, B)
    call(args[0], x=args[1], y=args[2])
    check_slots(bound, A, 2.5, B)


def cell(value: Any) -> types.CellType:
    return types.CellType(value)


@pytest.mark.parametrize(
    ("reading", "place"),
    [
        (({"w": A}, ("w",)), "dict"),
        ((cell(A), ()), "cell"),
        ((types.SimpleNamespace(w=A), ("w",)), "attribute"),
        ((types.SimpleNamespace(v=types.SimpleNamespace(w=A)), ("v", "w")), "attributes"),
        (({"v": types.SimpleNamespace(w=[B, A])}, ("v", "w", (1,))), "item of an attribute of a global"),
        ((cell({"w": A}), (("w",),)), "item of a cell"),
        ((A, ()), "the object itself"),
        ((0, ("w",)), "attribute of an argument"),
        (((lambda: A, ()), ()), "what a function returns"),
        (((lambda: types.SimpleNamespace(w=A), ()), ("w",)), "attribute of what a function returns"),
        (((lambda box, s: box.w if s == 2.5 else None, (0, 1)), ()), "what a function of arguments returns"),
    ],
)
def test_readings(bound: Bound, reading: tuple[Any, Any], place: str) -> None:
    target = make(bound, (-1, 1, 2), readings=((*reading, place),))
    overloads(target)(types.SimpleNamespace(w=A), 2.5, B)
    check_slots(bound, A, 2.5, B)


def test_what_is_read_is_read_anew(bound: Bound) -> None:
    names, box, variable = {"s": 1.0}, types.SimpleNamespace(a=A), cell(B)
    readings = ((box, ("a",), "self.a"), (names, ("s",), "s"), (variable, (), "b"))
    call = overloads(make(bound, (-1, -2, -3), readings=readings))
    call()
    check_slots(bound, A, 1.0, B)
    names["s"], box.a, variable.cell_contents = 2.0, np.ones(4), np.ones(4)
    call()
    check_slots(bound, box.a, 2.0, variable.cell_contents)


@pytest.mark.parametrize(
    "reading",
    [({}, ("w",)), (types.CellType(), ()), (object(), ("w",)), ({"w": []}, ("w", (0,))), ({"w": {}}, ("w", ("k",)))],
)
def test_what_does_not_exist_any_more(bound: Bound, reading: tuple[Any, Any]) -> None:
    call = overloads(make(bound, (-1, 0, 1), readings=((*reading, "self.w"),)))
    with pytest.raises(ValueError, match=r"^Program 'over' reads 'self.w', which does not exist any more.$"):
        call(2.5, B)


def test_an_exception_of_an_attribute_is_passed_on(bound: Bound) -> None:
    class Bad:
        @property
        def w(self) -> Any:
            raise ZeroDivisionError("here")

    call = overloads(make(bound, (-1, 0, 1), readings=((Bad(), ("w",), "self.w"),)))
    with pytest.raises(ZeroDivisionError, match="here"):
        call(2.5, B)
    assert bound.recorder.calls() == []


# --- Constants and types ----------------------------------------------------------------------------------------------


class Strange:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")

    __hash__ = None  # type: ignore[assignment]


STRANGE = Strange()


@pytest.mark.parametrize(
    ("compiled", "found", "is_right"),
    [
        (3, 3, True),
        (1000, int("1000"), True),
        (3, 3.0, False),
        (True, 1, False),
        (0.0, -0.0, False),
        (0.0, 0.0, True),
        (float("nan"), float("nan"), True),
        (np.float64(0.0), np.float64(-0.0), False),
        (np.float32(2), np.float32(2), True),
        ("a", "".join("a"), True),
        ("a", "b", False),
        (None, None, True),
        (None, 0, False),
        ((1, 2), (1, 2), True),
        ([1.0], [1.0, 2.0], False),
        ([1.0, 2.0], [1.0, 2], False),
        ([(0.0,)], [(-0.0,)], False),
        ([float("nan"), "a"], [float("nan"), "a"], True),
        ({"a": 1, "b": (2,)}, {"a": 1, "b": (2,)}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({1, 2}, {2, 1}, True),
        ({1}, {1.0}, False),
        ({0.0}, {-0.0}, False),
        ([STRANGE], [Strange()], False),
        (STRANGE, STRANGE, True),
        (STRANGE, Strange(), False),
        (A, B, False),
        (np.float32(1), np.float32(1), True),
        (np.int64(1), np.int64(1), True),
        (np.zeros(4), np.zeros(4), True),
        (np.zeros(4), np.zeros(4, np.int64), False),
        (np.zeros(4), np.zeros((2, 2)), False),
        (b"ab", b"ab", True),
    ],
)
def test_constants(bound: Bound, compiled: object, found: object, is_right: bool) -> None:
    call = overloads(make(bound, constants=(({"k": found}, ("k",), "k", compiled),)))
    if is_right:
        call(A, 2.5, B)
        check_slots(bound, A, 2.5, B)
        return
    with pytest.raises(ValueError) as caught:
        call(A, 2.5, B)
    assert str(caught.value) == (
        f"Program 'over' was compiled for 'k' = {compiled!r}, but it is {found!r} now;"
        " call its method clear() to compile it anew."
    )
    assert bound.recorder.calls() == []


def test_a_refusal_has_no_long_values(bound: Bound) -> None:
    call = overloads(make(bound, constants=(({"k": list(range(100))}, ("k",), "k", 1),)))
    with pytest.raises(ValueError, match="was compiled for 'k' = 1, but it is another list now;"):
        call(A, 2.5, B)


def test_an_object_must_be_the_very_one(bound: Bound) -> None:
    class Equal:
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Equal)

        __hash__ = None  # type: ignore[assignment]

    compiled, names = Equal(), {"k": Equal()}
    overloads(make(bound, constants=((names, ("k",), "k", compiled),)))(A, 2.5, B)
    call = overloads(make(bound, constants=((names, ("k",), "k", compiled, -2),)))
    with pytest.raises(ValueError, match="was compiled for 'k' = "):
        call(A, 2.5, B)
    names["k"] = compiled
    call(A, 2.5, B)


def test_a_list_that_contains_itself(bound: Bound) -> None:
    one: list[Any] = [1]
    other: list[Any] = [1]
    one.append(one)
    other.append(other)
    with pytest.raises(ValueError, match="was compiled for 'k' = "):
        overloads(make(bound, constants=(({"k": other}, ("k",), "k", one),)))(A, 2.5, B)


@pytest.mark.parametrize("change", [lambda items: items.clear(), lambda items: items.append(0)])
@pytest.mark.parametrize("of_found", [True, False])
def test_a_list_that_a_comparison_changes(bound: Bound, change: Callable[[list[Any]], None], *, of_found: bool) -> None:
    class Changing:
        def __eq__(self, other: object) -> bool:
            change(found if of_found else compiled)
            return True

        __hash__ = None  # type: ignore[assignment]

    found: list[Any] = [Changing() for _ in range(3)]
    compiled: list[Any] = [Changing() for _ in range(3)]
    with pytest.raises(ValueError, match="was compiled for 'k' = "):
        overloads(make(bound, constants=(({"k": found}, ("k",), "k", compiled),)))(A, 2.5, B)


def test_an_expression_that_cannot_be_evaluated(bound: Bound) -> None:
    for error, kind, message in (
        (KeyError("x"), ValueError, "Program 'over' reads 'D[x]', which does not exist any more."),
        (ZeroDivisionError("here"), ZeroDivisionError, "here"),
    ):

        def evaluate(error: Exception = error) -> None:
            raise error

        with pytest.raises(kind, match=re.escape(message)):
            overloads(make(bound, constants=(((evaluate, ()), (), "D[x]", 1),)))(A, 2.5, B)
    assert bound.recorder.calls() == []


def test_a_bound_call_compares_before_each_start(bound: Bound) -> None:
    box = types.SimpleNamespace(k=1)
    call = overloads(make(bound, constants=(((lambda of: of.k, (3,)), (), "box.k", 1),)))
    start = _host.bind(call, A, 2.5, B, box)
    bound.recorder.clear()
    start()
    check_slots(bound, A, 2.5, B)
    bound.recorder.clear()
    box.k = 2
    with pytest.raises(ValueError, match=re.escape("was compiled for 'box.k' = 1, but it is 2 now")):
        start()
    assert bound.recorder.calls() == []
    box.k = 1
    start()
    check_slots(bound, A, 2.5, B)


def test_one_array_by_two_paths(bound: Bound) -> None:
    box = types.SimpleNamespace(a=A, other=A)
    readings, constants = ((box, ("a",), "self.a"),), ((box, ("other",), "self.other", None, 0),)
    call = overloads(make(bound, (-1, 0, 1), readings=readings, constants=constants))
    call(2.5, B)
    box.a = np.zeros(3)
    with pytest.raises(ValueError) as caught:
        call(2.5, B)
    assert str(caught.value) == (
        "Program 'over' was compiled for one array as 'self.a' and 'self.other', but these are two now;"
        " call its method clear() to compile it anew."
    )
    box.other = box.a
    call(2.5, B)
    check_slots(bound, box.a, 2.5, B)
    del box.other
    with pytest.raises(ValueError, match=r"reads 'self.other', which does not exist any more"):
        call(2.5, B)


def test_types_choose_an_overload(bound: Bound) -> None:
    chosen = []
    floats = make(bound, exact=((1, (float, np.float64), "s"),))
    others = make(bound, exact=((1, (int,), "s"),))

    def choose(*args: Any, **kwargs: Any) -> _host.Overload:
        chosen.append(type(args[1]))
        return others if type(args[1]) is int else floats

    call = _host.Dispatcher("over", choose)
    for s in (1.5, 2, 3, np.float64(4), 5.0):
        call(A, s, B)
        check_slots(bound, A, float(s), B)
    assert chosen == [float, int, np.float64]
    with pytest.raises(TypeError, match=r"^Program 'over' was compiled for another type of 's' than 'bool'.$"):
        call(A, True, B)


# --- Conversions ------------------------------------------------------------------------------------------------------


def test_refused_arguments_are_converted(bound: Bound) -> None:
    """Once they are refused by the overload that `choose` returns for them; others are passed as they are."""
    asked = []

    def convert(args: tuple[Any, ...], is_bound: bool) -> tuple[Any, ...] | None:
        asked.append((args, is_bound))
        if isinstance(args[0], str):
            raise LookupError(args[0])
        return None if args[0] is None else (np.array(args[0]), *args[1:])

    floats = make(bound, exact=((1, (float,), "s"),), convert=convert)
    others = make(bound, exact=((1, (int,), "s"),), convert=convert)
    call = _host.Dispatcher("over", lambda *args, **kwargs: floats if type(args[1]) is float else others)
    for _ in range(2):
        call(A, 2.5, B)
        check_slots(bound, A, 2.5, B)
        assert asked == []
        for s in (2.5, 2):  # by the overload of the site, and by another one
            values = [1.0, 2.0, 3.0]
            call(values, s, b=B)
            assert bound.last() | {"a": 0} == {"a": 0, "b": address(B), "n": 3, "s": s}
            assert asked.pop() == ((values, s, B), False)
    with pytest.raises(TypeError, match=r"^Argument 'a' of program 'over' must be a field, not 'NoneType'.$"):
        call(None, 2.5, B)
    with pytest.raises(TypeError, match=r"^Argument 'a' of program 'over' must have 1 dimension"):
        call(3.0, 2.5, B)
    with pytest.raises(LookupError, match="text"):
        call("text", 2.5, B)
    call(A, 2.5, B)
    check_slots(bound, A, 2.5, B)


# --- Results ----------------------------------------------------------------------------------------------------------


def allocate(a: Any, s: Any) -> tuple[Any, ...]:
    return (np.full(len(a), s),)


def test_results(bound: Bound) -> None:
    call = overloads(make(bound, (0, 1), results=1, allocate=allocate, single=True))
    found = call(A, 2.5)
    assert list(found) == [2.5] * 3
    check_slots(bound, A, 2.5, found)
    assert call(A, 2.5) is not found
    (several,) = overloads(make(bound, (0, 1), results=1, allocate=allocate))(A, 2.5)
    check_slots(bound, A, 2.5, several)


def test_out(bound: Bound) -> None:
    single = overloads(make(bound, (0, 1), results=1, allocate=allocate, out=2, single=True))
    assert single(A, 2.5, out=B) is B
    check_slots(bound, A, 2.5, B)
    several = overloads(make(bound, (0, 1), results=1, allocate=allocate, out=2))
    out = (B,)
    assert several(A, 2.5, out=out) is out
    for wrong in (B, (), (B, B), None, [B]):
        with pytest.raises(TypeError, match=r"^Argument 'out' of program 'over' must be a tuple of 1 array.$"):
            several(A, 2.5, out=wrong)
    with pytest.raises(ValueError, match="'b'"):
        single(A, 2.5, out=np.zeros(4))


def test_results_for_wrong_arguments(bound: Bound) -> None:
    """The program itself says what is wrong with arguments from which no results can be made."""
    call = overloads(make(bound, (0, 1), results=1, allocate=allocate, single=True))
    with pytest.raises(TypeError, match=r"^Argument 'a' of program 'over' must be a field, not 'float'.$"):
        call(1.0, 2.5)

    def without_memory(*arguments: Any) -> tuple[Any, ...]:
        raise MemoryError("none left")

    with pytest.raises(MemoryError, match="none left"):
        overloads(make(bound, (0, 1), results=1, allocate=without_memory, single=True))(A, 2.5)
    wrong = overloads(make(bound, (0, 1), results=1, allocate=lambda *_: [B], single=True))
    with pytest.raises(TypeError, match="must be"):
        wrong(A, 2.5)
    assert bound.recorder.calls() == []


# --- Choosing ---------------------------------------------------------------------------------------------------------


def test_a_call_site_is_chosen_once(bound: Bound) -> None:
    chosen: list[tuple[int, tuple[str, ...]]] = []

    def choose(*args: Any, **kwargs: Any) -> _host.Overload:
        names = ["a", "s", "b"][: len(args)] + list(kwargs)
        chosen.append((len(args), tuple(kwargs)))
        return make(bound, tuple(names.index(name) for name in "asb"))

    call = _host.Dispatcher("over", choose)
    for _ in range(3):
        call(A, 2.5, B)
        call(A, 2.5, b=B)
        call(A, b=B, s=2.5)
        call(A, s=2.5, b=B)
        check_slots(bound, A, 2.5, B)
    assert len(chosen) == 4
    for _ in range(3):  # more than four call sites
        call(b=B, s=2.5, a=A)
        call(a=A, s=2.5, b=B)
        call(A, 2.5, B)
        check_slots(bound, A, 2.5, B)
    assert chosen[4:6] == [(0, ("b", "s", "a")), (0, ("a", "s", "b"))]
    call.forget()
    chosen.clear()
    call(A, 2.5, B)
    assert len(chosen) == 1


def test_unpacked_keywords_find_their_call_site(bound: Bound) -> None:
    """Each such call has a new tuple of names."""
    chosen = []

    def choose(*args: Any, **kwargs: Any) -> _host.Overload:
        chosen.append(tuple(kwargs))
        return make(bound, tuple(list(kwargs).index(name) for name in "asb"))

    call = _host.Dispatcher("over", choose)
    for _ in range(10):
        call(a=A, s=2.5, b=B)
        functools.partial(call, a=A, s=2.5)(b=B)
    assert chosen == [("a", "s", "b")]
    call(b=B, s=2.5, a=A)
    assert len(chosen) == 2
    check_slots(bound, A, 2.5, B)


def test_a_refused_call_chooses_again(bound: Bound) -> None:
    """A target that is no overload takes the arguments as they are."""
    overload = make(bound)

    def choose(*args: Any, **kwargs: Any) -> Any:
        return overload if isinstance(args[0], np.ndarray) else lambda *args, **kwargs: ("other", args, kwargs)

    call = _host.Dispatcher("over", choose)
    for _ in range(2):
        assert call(A, 2.5, B) is None
    assert call([1.0], 2.5, B) == ("other", ([1.0], 2.5, B), {})
    assert call(A, 2.5, B)[0] == "other", "that one takes all calls of its call site"
    with pytest.raises(TypeError, match=r"^Argument 'a' of program 'over' must be a field, not 'list'.$"):
        overloads(overload)([1.0], 2.5, B)


def test_exceptions_of_choose(bound: Bound) -> None:
    def choose(*args: Any, **kwargs: Any) -> Any:
        if isinstance(args[0], str):
            raise LookupError(args[0])
        return make(bound)

    call = _host.Dispatcher("over", choose)
    with pytest.raises(LookupError, match="first"):
        call("first", 2.5, B)
    call(A, 2.5, B)
    with pytest.raises(LookupError, match="after a refusal"):
        call("after a refusal", 2.5, B)
    call(A, 2.5, B)
    check_slots(bound, A, 2.5, B)
    with pytest.raises(TypeError, match="not callable"):
        _host.Dispatcher("over", always(3))(A)


def test_an_overload_for_more_arguments_is_refused(bound: Bound) -> None:
    with pytest.raises(ValueError, match=r"^A call of program 'over' with 2 arguments cannot use an Overload of 3.$"):
        overloads(make(bound))(A, 2.5)
    with pytest.raises(ValueError, match="with 0 arguments"):
        overloads(make(bound, (-1, -1, -1), readings=((5, ("w",), "w"),)))()


@pytest.mark.parametrize(
    ("places", "options", "message"),
    [
        ((0, 1), {}, "Program 'over' has 3 parameters, but 2 places and 0 results are given."),
        ((0, 1, 2), {"results": 1}, "Program 'over' has 3 parameters, but 3 places and 1 results are given."),
        ((0, 1, -1), {}, "The place -1 is that of no argument and of no reading."),
        ((0, 1, 2**15), {}, "The place 32768 is that of no argument and of no reading."),
        ((), {"results": 4}, "Program 'over' cannot have 3 parameters of which 4 are results."),
        ((0,), {"results": 2, "single": True}, "Program 'over' cannot have 3 parameters of which 2 are results."),
        ((0, 1, 2), {"constants": (({}, (), "k", None, 0),)}, "There is no reading 0."),
        ((0, 1, 2), {"constants": (((len, (-1,)), (), "k", 1),)}, "There is no argument -1."),
        ((0, 1, 2), {"constants": (((len, (0,) * 256), (), "k", 1),)}, "An expression has 256 arguments."),
        ((0, 1, 2), {"exact": ((-1, (int,), "s"),)}, "There is no argument -1."),
    ],
)
def test_overloads_that_are_none(bound: Bound, places: tuple[int, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        make(bound, places, **options)
    assert str(caught.value) == message


# --- Recursion, threads, and memory -----------------------------------------------------------------------------------


def test_a_program_that_is_called_while_it_reads(bound: Bound) -> None:
    class Calls:
        @property
        def s(self) -> float:
            inner(A, 1.5, B)
            return 2.5

    inner = overloads(make(bound))
    overloads(make(bound, (0, -1, 1), readings=((Calls(), ("s",), "self.s"),)))(A, B)
    assert [each["s"] for each in bound.recorder.calls()] == [1.5, 2.5]


def test_choose_may_call_and_forget(bound: Bound) -> None:
    overload = make(bound)

    def choose(*args: Any, **kwargs: Any) -> _host.Overload:
        call.forget()
        if len(args) == 3:
            call(*args, None)
        return overload

    call = _host.Dispatcher("over", choose)
    call(A, 2.5, B)
    call(A, 2.5, B)
    assert len(bound.recorder.calls()) == 3


def test_threads(bound: Bound) -> None:
    """Call sites are replaced while others use them."""
    errors: list[BaseException] = []

    def choose(*args: Any, **kwargs: Any) -> _host.Overload:
        names = ["a", "s", "b"][: len(args)] + list(kwargs)
        return make(bound, tuple(names.index(name) for name in "asb"))

    call = _host.Dispatcher("over", choose)

    def work() -> None:
        try:
            for _ in range(300):
                call(A, 2.5, B)
                call(A, 2.5, b=B)
                call(A, b=B, s=2.5)
                call(b=B, s=2.5, a=A)
                call(a=A, s=2.5, b=B)
                call.forget()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    bound.recorder.clear()


def test_an_object_that_holds_its_program_is_freed(bound: Bound) -> None:
    class Model:
        def __init__(self) -> None:
            self.a = A
            target = make(bound, (-1, 0, 1), readings=((self, ("a",), "self.a"),))
            self.step = _host.Dispatcher("over", lambda *args, **kwargs: (self, target)[1])

    model = Model()
    model.step(2.5, B)
    gone = weakref.ref(model), weakref.ref(model.step)
    del model
    gc.collect()
    assert [each() for each in gone] == [None, None]


def test_references_stay_flat(bound: Bound) -> None:
    box = types.SimpleNamespace(a=A, k=object(), s=2.5)
    constants = (
        (box, ("k",), "self.k", box.k),
        (box, ("a",), "self.a", None, 0),
        ((lambda s: [{"k": {box.k}}], (0,)), (), "s", [{"k": {box.k}}]),
    )
    target = make(
        bound,
        (-1, 0),
        readings=((box, ("a",), "self.a"),),
        constants=constants,
        exact=((0, (float,), "s"),),
        results=1,
        allocate=lambda a, s: (B,),
        single=True,
    )
    call = overloads(target)

    def counts() -> list[int]:
        return [sys.getrefcount(each) for each in (A, B, box.k, box.a, target, call, 2.5, None)]

    def work(times: int) -> None:
        for number in range(times):
            call(2.5)
            if number % 100 == 0:
                bound.recorder.clear()
                with pytest.raises(TypeError):
                    call(3)
                call.forget()

    work(1000)
    before = counts()
    work(100_000)
    found = counts()
    assert all(abs(one - other) < 50 for one, other in zip(before, found, strict=True)), (before, found)
