"""By which ways a capture reaches what a method changes."""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import types
import weakref
from collections import OrderedDict, UserDict
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtstub
from gtstub import _host
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.errors import CaptureError, CaptureWarning
from gtstub.programs.state import State
from tests.support.calling_programs import SERIAL
from tests.support.scale_program import PROGRAM, SDFG, build_library
from tests.support.stubs import build_stub

type Reach = Callable[[], Level]


class Level:
    """What a method changes."""

    def __init__(self) -> None:
        self.count, self.values, self.below = 0, np.zeros(1), None

    def change(self) -> None:
        self.count += 1
        self.values += 1.0


LEVEL = Level()
PACKAGE = types.ModuleType("package")
PACKAGE.module = types.ModuleType("package.module")


def get(*_: Any) -> Level:
    return LEVEL


@contextlib.contextmanager
def managed() -> Any:
    yield LEVEL


class OwnDict(dict):
    def items(self) -> Any:
        raise AssertionError

    __iter__ = __len__ = keys = items


class Mapped(UserDict):
    def __init__(self) -> None:
        self.level = LEVEL

    def __getitem__(self, key: int) -> Level:
        return self.level


class OwnList(list):
    def __iter__(self) -> Any:
        raise AssertionError


class OwnArray(np.ndarray):
    pass


class Pretender:
    @property
    def __class__(self) -> type:
        return types.FunctionType


def with_level(holder: Any) -> Reach:
    holder.level = LEVEL
    return lambda: holder.level


def enter() -> Level:
    with managed() as level:
        return level


def of_metaclass() -> Reach:
    class Meta(type):
        def __getitem__(cls, key: int) -> Level:
            return LEVEL

    class Holder(metaclass=Meta):
        pass

    return lambda: Holder[0]


def with_method(method: Any, name: str = "get_level") -> Any:
    return type("Holder", (), {name: method})()


def objects() -> Reach:
    first = last = Level()
    for _ in range(30):
        last.below = last = Level()
    last.below = LEVEL

    def reach() -> Level:
        found = first
        while found.below is not None:
            found = found.below
        return found

    return reach


def functions(length: int = 9) -> Reach:
    inner = functions(length - 1) if length else get
    return lambda: inner()


def inner_function() -> Level:
    def inner() -> Level:
        return LEVEL

    return inner()


def imported() -> Level:
    import package.module

    return package.module.level


SHADOWING = "antigravity"
"""A module of the standard library that nothing else imports."""

# Each makes a function that returns LEVEL.
WAYS: dict[str, Callable[[], Reach]] = {
    "set": lambda: lambda holder={LEVEL}: next(iter(holder)),
    "frozen set": lambda: lambda holder=frozenset((LEVEL,)): next(iter(holder)),
    "key": lambda: lambda holder={LEVEL: 0}: next(iter(holder)),
    "read-only mapping": lambda: lambda holder=types.MappingProxyType({0: LEVEL}): holder[0],
    "read-only mapping of the user": lambda: (
        lambda holder=types.MappingProxyType(OwnDict({0: LEVEL})): holder[0]  # noqa: B008
    ),
    "attribute of a read-only mapping": lambda: lambda holder=types.MappingProxyType(Mapped()): holder[0],  # noqa: B008
    "array of objects": lambda: lambda holder=np.array([LEVEL], object): holder[0],  # noqa: B008
    "array of structures": lambda: lambda holder=np.array([(LEVEL,)], [("level", object)]): holder["level"][0],  # noqa: B008
    "values of a mapping": lambda: lambda values={0: LEVEL}.values(): next(iter(values)),  # noqa: B008
    "arguments of an error": lambda: lambda error=LookupError(LEVEL): error.args[0],  # noqa: B008
    "weak reference": lambda: lambda reference=weakref.ref(LEVEL): reference(),  # noqa: B008
    "weak proxy": lambda: lambda proxy=weakref.proxy(LEVEL): proxy,  # noqa: B008
    "weak method": lambda: lambda method=weakref.WeakMethod(LEVEL.change): method().__self__,  # noqa: B008
    "weak set": lambda: lambda holder=weakref.WeakSet([LEVEL]): next(iter(holder)),
    "weak key": lambda: lambda holder=weakref.WeakKeyDictionary({LEVEL: 0}): next(iter(holder)),
    "weak value": lambda: lambda holder=weakref.WeakValueDictionary({0: LEVEL}): holder[0],
    "long list": lambda: lambda holder=[0] * 2000 + [LEVEL]: holder[-1],
    "many objects": objects,
    "many functions": functions,
    "attribute of a mapping": lambda: with_level(OwnDict()),
    "attribute of a list": lambda: with_level(OwnList()),
    "attribute of an array": lambda: with_level(np.zeros(1).view(OwnArray)),
    "attribute of a function": lambda: with_level(lambda: None),
    "attribute of a class": lambda: with_level(type("Holder", (), {})),
    "attribute of a pretender": lambda: with_level(Pretender()),
    "module in a module": lambda: with_level(PACKAGE.module) and (lambda: PACKAGE.module.level),
    "imported module": lambda: with_level(PACKAGE.module) and imported,
    "method": lambda: lambda holder=with_method(get): holder.get_level(),  # noqa: B008
    "static method": lambda: lambda holder=with_method(staticmethod(get)): holder.get_level(),  # noqa: B008
    "class method": lambda: lambda holder=with_method(classmethod(get)): holder.get_level(),  # noqa: B008
    "method of a metaclass": of_metaclass,
    "wrapper of a library's function": lambda: functools.wraps(np.roll)(lambda: LEVEL),
    "wrapper of the standard library": lambda: enter,
    "module with a name of the standard library": lambda: with_level(type("Holder", (), {"__module__": SHADOWING})()),
    "property": lambda: lambda holder=with_method(property(get)): holder.get_level,  # noqa: B008
    "object that can be called": lambda: with_method(get, "__call__"),
    "method of a list": lambda: lambda get=[LEVEL].pop: LEVEL if get is None else get.__self__[0],
    "inner function": lambda: inner_function,
    "generator": lambda: lambda: next(LEVEL for _ in range(1)),
}


@pytest.fixture
def scale(tmp_path: Path, toolchain: Toolchain) -> _host.Program:
    build_library(tmp_path)
    return _host.load(build_stub(SDFG, PROGRAM, tmp_path, toolchain), tmp_path / "libscale.so")


@pytest.fixture
def program(scale: _host.Program) -> Callable[[], None]:
    now, new = np.arange(1.0, 6.0), np.zeros(5)
    return lambda: scale(now, 2.0, new)


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_an_object(way: str, program: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    level = Level()
    monkeypatch.setitem(globals(), "LEVEL", level)
    monkeypatch.setitem(sys.modules, "package", PACKAGE)
    monkeypatch.setitem(sys.modules, "package.module", PACKAGE.module)
    monkeypatch.setitem(sys.modules, SHADOWING, PACKAGE)
    monkeypatch.setattr(PACKAGE, "__file__", __file__, raising=False)
    reach = WAYS[way]()

    def run() -> None:
        program()
        reach().change()

    with pytest.warns(CaptureWarning, match=r"lacks what the method does to array '[^']*values', which no program"):
        gtstub.capture(run)
    assert (level.count, level.values.tolist()) == (1, [1.0])


def test_a_method_that_is_an_object(program: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "LEVEL", Level())
    with pytest.warns(CaptureWarning, match="array 'LEVEL.values'"):
        gtstub.capture(with_method(lambda _: program() or LEVEL.change(), "__call__"))
    assert LEVEL.count == 1


def test_functions_of_a_step(scale: _host.Program) -> None:
    """Also by a step that a method runs and that only its own step shows, as callbacks of programs."""
    now, new, first, second = np.arange(1.0, 6.0), np.zeros(5), Level(), Level()
    step = gtstub.Step([scale.bind(now, 2.0, new), gtstub.action(lambda _: first.change(), new), second.change])
    unknown = itertools.repeat(step)
    for count, method in enumerate((step, lambda: next(unknown)()), 1):
        gtstub.capture(method)
        assert (first.count, second.count, first.values.tolist()) == (count, count, [count])


def test_callbacks_of_a_program(tmp_path: Path, toolchain: Toolchain) -> None:
    serial, level = SERIAL.build(tmp_path, toolchain).load(), Level()
    x, out, unknown = np.zeros(4), np.zeros(1), itertools.repeat(lambda *_: level.change() or 1.0)
    gtstub.capture(lambda: serial(x, out, 1, next(unknown)))
    assert (level.count, level.values.tolist()) == (1, [1.0])


COUNT = 0


MODULE = types.ModuleType("module")
MODULE.count = 0
MODULE.rounds = types.SimpleNamespace(count=0)


def count_in(module: Any) -> None:
    module.count += 1
    module.rounds.count += 1


class Counting:
    count = 0
    config = MODULE

    def of_argument(self) -> None:
        count_in(self.config)

    def of_method(self) -> None:
        global COUNT
        COUNT += 1

    def of_class(self) -> None:
        Counting.count += 1


def test_variables(program: Callable[[], None]) -> None:
    counting = Counting()

    def run() -> None:
        program()
        counting.of_method()
        counting.of_class()
        counting.of_argument()

    gtstub.capture(run)
    assert (COUNT, Counting.count, MODULE.count, MODULE.rounds.count) == (1, 1, 1, 1)


@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_the_order_of_a_mapping(kind: Any, program: Callable[[], None]) -> None:
    """Such as a ring of time levels."""
    ring = kind(now=0, new=1, old=2)

    def run() -> None:
        program()
        name = next(iter(ring))
        if kind is dict:
            ring[name] = ring.pop(name)
        else:
            ring.move_to_end(name)

    gtstub.capture(run)
    assert list(ring.items()) == [("new", 1), ("old", 2), ("now", 0)]


def test_an_array_of_another_class(program: Callable[[], None]) -> None:
    own = np.zeros(1).view(OwnArray)

    def run() -> None:
        program()
        own[0] += 1.0

    with pytest.warns(CaptureWarning, match="array 'own'"):
        gtstub.capture(run)
    assert own[0] == 1.0


@pytest.mark.filterwarnings("error::gtstub.errors.CaptureWarning")
def test_other_objects_with_the_memory_of_an_array(scale: _host.Program) -> None:
    """Each swap gets new views: two of them leave the same array in another object."""
    levels, counting = np.zeros((2, 5)), Level()
    step = gtstub.Step([scale.bind(levels[0], 2.0, levels[1])])

    def run() -> None:
        counting.count += 1
        step.swap(levels[0], levels[1])
        step()

    with pytest.raises(CaptureError, match="was another object in the second call of the method"):
        gtstub.capture(run)
    assert counting.count == 1
    assert np.shares_memory(step[0].arguments["x"], levels[1])


def test_an_array_that_the_method_resizes(program: Callable[[], None]) -> None:
    """Its elements cannot be put back, but all else is."""
    history, level = np.zeros(1), Level()

    def run() -> None:
        program()
        history.resize(level.count + 1, refcheck=False)
        level.change()

    text = r"Step 'run' cannot be verified: array 'history' cannot be put back: ValueError: cannot resize"
    with pytest.raises(CaptureError, match=text):
        gtstub.capture(run)
    assert (level.count, level.values.tolist()) == (1, [1.0])


@pytest.mark.filterwarnings("ignore::gtstub.errors.CaptureWarning")
@pytest.mark.parametrize("name", ["shape", "flag", "hard mask"])
def test_arrays_that_are_more_than_elements(name: str, program: Callable[[], None]) -> None:
    array = np.ma.array(np.zeros((2, 3)), mask=False, hard_mask=True) if name == "hard mask" else np.zeros((2, 3))
    array.flags.writeable = name != "flag"

    def run() -> None:
        program()
        array.flags.writeable = True
        array[0, 1] += 1.0
        if name == "shape":
            array.resize(array.shape[::-1])
        if name == "hard mask":
            array[tuple(np.argwhere(~array.mask)[0])] = np.ma.masked
        array.flags.writeable = name != "flag"

    gtstub.capture(run)
    assert array.shape == ((3, 2) if name == "shape" else (2, 3))
    assert np.asarray(array).ravel().tolist() == [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert array.flags.writeable == (name != "flag")
    assert np.ma.getmaskarray(array).sum() == (name == "hard mask")


class NotImported(types.ModuleType):
    """A module that is imported when somebody looks at it."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError


def test_no_code_runs() -> None:
    class Hidden:
        @property
        def __dict__(self) -> Any:
            raise AssertionError

        def __add__(self, other: Any) -> Any:
            raise AssertionError

        __radd__ = __getattribute__ = __hash__ = __eq__ = __add__

    hidden = Hidden()
    proxy = weakref.proxy(hidden)
    function = with_array(np.zeros(1))
    function.__defaults__ = (1, 2, 3)  # as a decorator may leave them
    module, key = NotImported("lazy"), Key()
    mapping, ordered, own = {key: module}, OrderedDict({key: function}), OwnDict({key: module})
    views = [types.MappingProxyType(own), ordered.keys(), ordered.values(), ordered.items(), {key: 0}.keys()]
    key.has_hash = False
    assert list(State([lambda: (mapping, ordered, own, proxy, views)]).arrays) == ["x"]


def test_names_stay_short() -> None:
    first = last = Level()
    for _ in range(1000):
        last.below = last = Level()
    assert max(map(len, State([lambda: first]).arrays)) < 300


def test_arrays_of_one_name() -> None:
    first, second = (with_array(np.zeros(1)) for _ in range(2))
    assert list(State([lambda: (first, second)]).arrays) == ["x", "x (array 2)"]


def test_functions_of_libraries_are_left_alone() -> None:
    own = with_array(np.zeros(1))
    function = types.FunctionType(own.__code__, {"__name__": "xarray.core"}, closure=own.__closure__)
    assert not State([lambda: function]).arrays


def with_array(x: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: x


def test_too_many_objects(program: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gtstub.programs.state.MOST_OBJECTS", 3)
    with pytest.warns(CaptureWarning, match="changes beyond the nearest 3 objects is neither compared nor put back"):
        gtstub.capture(program)


class Key:
    has_hash = True

    def __hash__(self) -> int:
        if not self.has_hash:
            raise LookupError
        return 1


@pytest.mark.filterwarnings("error::gtstub.errors.CaptureWarning")
def test_what_cannot_be_put_back() -> None:
    """A warning names it, once, and the rest is put back."""
    key, level = Key(), Level()
    mapping = {key: 0}
    state = State([lambda: (mapping, level)])
    for warns in (pytest.warns(CaptureWarning, match="of 'mapping' cannot be put back: LookupError"), nullcontext()):
        key.has_hash = False
        level.change()
        with warns:
            state.restore()
        assert level.count == 0
