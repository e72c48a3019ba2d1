"""Random DaCe programs that read from around them, and random changes of what they read."""

from __future__ import annotations

import enum
import itertools
import linecache
import random
from collections.abc import Callable
from types import FunctionType
from typing import Any

import dace
import numpy as np

_NUMBERS = itertools.count()


class Box:
    """An object with attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Pair:
    """An object that may equal another one."""

    def __init__(self, k: float) -> None:
        self.k = k

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pair) and self.k == other.k


class Mode(enum.Enum):
    FAST = 1
    EXACT = 2


_HELPERS = """\
def shift(x):
    return x + 1.0


def double(x):
    return x * 2.0


def weigh(x, k=2.0):
    return x + k


def lookup(x):
    return x + BOXES[NOW].k


def of_box(x, box):
    return x + box.k
"""

_SCALARS = (
    "NOW",
    "FACTOR",
    "BOXES[NOW].k",
    "BOXES[-1].k",
    "LIST[NOW]",
    "TABLE[(0, 1)]",
    "TABLE['x']",
    "TABLE[KEY]",
    "BOX.inner.k",
    "BOX.listed[NOW]",
    "X.k",
    "(3.0 if {condition} else 4.0)",
)
_CONDITIONS = (
    "P is Q",
    "P is not BOX",
    "X == Y",
    "X != Y",
    "BOX",
    "not LIST",
    "BOX in BOXES",
    "'x' in TABLE",
    "'u' in ARRAYS",
    "hasattr(BOX, 'option')",
    "isinstance(P, Box)",
    "callable(P)",
    "NOW == 0",
    "FACTOR > 2.5",
    "BOX.inner.on and NOW < 1",
    "MODE is Mode.FAST",
    "MODE == Mode.EXACT",
    "len(BOXES) == 2",
    "max(LIST) > 2.0",
    "any(box.on for box in BOXES)",
    "KEY in SET",
    "LIST == OTHER",
    "getattr(BOX, 'option', 0) == 7",
    "BOXES[NOW].on",
    "BOX.inner",
)
_ARRAYS = ("ARRAY", "BOX.w", "BOX.inner.w", "ARRAYS['u']", "BOXES[NOW].w", "FIELDS[NOW]", "FIELDS[-1]", "BOXES[1].w")
_BLOCKS = (
    "    a[:] = a + {scalar}",
    "    a[:] = a * {scalar}",
    "    if {condition}:\n        a[:] = a + 5.0\n    else:\n        a[:] = a + {scalar}",
    "    for box in BOXES:\n        a[:] = a + box.k",
    "    for number in LIST:\n        a[:] = a + number",
    "    for number, box in enumerate(BOXES):\n        a[:] = a + number * box.k",
    "    for key in TABLE:\n        a[:] = a + 1.0",
    "    for one, other in zip(LIST, OTHER):\n        a[:] = a + one * other",
    "    for f in FUNCTIONS:\n        a[:] = f(a)",
    "    a[:] = weigh(a)",
    "    a[:] = lookup(a)",
    "    a[:] = of_box(a, BOX.inner)",
    "    a[:] = of_box(a, BOXES[NOW])",
    "    assert {condition} or True",
)


def _array(value: float) -> Any:
    return np.full(3, value)


def _boxes() -> list[Box]:
    return [Box(k=2.0, on=True, w=_array(7)), Box(k=5.0, on=False, w=_array(8))]


class RandomClosure:
    """A program, the names around it, and the arrays that it adds."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        box = Box(k=3.0, w=_array(1), inner=Box(k=4.0, on=True, w=_array(2)), listed=[6.0, 7.0], option=7)
        boxes = _boxes()
        self.names: dict[str, Any] = {
            "dace": dace, "np": np, "Box": Box, "Mode": Mode, "NOW": 0, "FACTOR": 3.0, "BOX": box, "BOXES": boxes,
            "LIST": [1.0, 2.0], "OTHER": [1.0, 2.0], "TABLE": {(0, 1): 3.0, "x": 4.0, "y": 5.0}, "KEY": "x",
            "SET": {"x", "z"}, "P": box, "Q": box, "X": Pair(1.0), "Y": Pair(1.0), "MODE": Mode.FAST,
            "ARRAY": _array(3), "ARRAYS": {"u": _array(4), "v": _array(5)}, "FIELDS": [_array(6), _array(9)],
        }  # fmt: skip
        if draw.random() < 0.5:
            boxes.append(box)
            del boxes[0]
            box.on = True
        scalars = [self._scalar() for _ in range(2)]
        blocks = [
            draw.choice(_BLOCKS).format(scalar=draw.choice(scalars), condition=draw.choice(_CONDITIONS))
            for _ in range(draw.randint(1, 4))
        ]
        self.arrays = draw.sample(_ARRAYS, draw.randint(0, 3))
        self.source = "\n".join(["def program(a: dace.float64[3]):", "    a[:] = a + 0.0", *blocks])
        adds = "".join(f"\n    a[:] = a + {each}" for each in self.arrays)
        self._define(f"{_HELPERS}\n\n{self.source}{adds}\n")
        self.names["FUNCTIONS"] = [self.names["shift"], self.names["double"]]
        self.function: FunctionType = self.names["program"]

    def _scalar(self) -> str:
        return self.draw.choice(_SCALARS).format(condition=self.draw.choice(_CONDITIONS))

    def _define(self, source: str) -> None:
        name = f"random_closure_{next(_NUMBERS)}.py"
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
        self.names["__name__"] = name.removesuffix(".py")
        exec(compile(source, name, "exec", dont_inherit=True), self.names)

    def run(self) -> Any:
        """What Python makes of an array of ones; the error if it fails."""
        a = np.ones(3)
        try:
            self.function(a)
        except Exception as error:  # of the names that have changed
            return error
        return a

    def change(self) -> tuple[str, Callable[[], None]]:
        """Changes one thing at random; returns what it was, and what undoes it."""
        draw, names = self.draw, self.names
        box = draw.choice([names["BOX"], names["BOX"].inner, *names["BOXES"]])
        rebound: dict[str, Callable[[], Any]] = {
            "NOW": lambda: draw.choice([1, True, 0.0]),
            "FACTOR": lambda: draw.choice([2.0, 3]),
            "BOX": lambda: Box(**vars(names["BOX"])),
            "BOXES": lambda: draw.choice([_boxes(), list(names["BOXES"]), names["BOXES"][::-1], names["BOXES"] * 2]),
            "LIST": lambda: draw.choice([[2.0, 1.0], [1.0, 2.0, 3.0], [1, 2.0], [1.0, 2.0], (1.0, 2.0)]),
            "OTHER": lambda: draw.choice([[2.0, 1.0], [1.0], [1.0, 2.0]]),
            "TABLE": lambda: draw.choice([{"x": 4.0}, {**names["TABLE"], "x": 9.0}, dict(names["TABLE"])]),
            "KEY": lambda: draw.choice(["y", "z"]),
            "SET": lambda: draw.choice([{"z"}, {"x"}]),
            "P": lambda: draw.choice([Box(k=1.0), Pair(1.0), names["shift"]]),
            "Q": lambda: Box(k=1.0),
            "X": lambda: draw.choice([Pair(2.0), Pair(1.0)]),
            "Y": lambda: draw.choice([Pair(2.0), Pair(1.0)]),
            "MODE": lambda: Mode.EXACT,
            "ARRAY": lambda: _array(30),
            "FIELDS": lambda: draw.choice(
                [names["FIELDS"][::-1], [_array(60), _array(90)], [*names["FIELDS"], _array(1)]]
            ),
            "FUNCTIONS": lambda: draw.choice([names["FUNCTIONS"][::-1], names["FUNCTIONS"][:1]]),
            "weigh": lambda: names["shift"],
            "shift": lambda: names["double"],
            "lookup": lambda: names["double"],
        }
        attributes: dict[str, Callable[[], Any]] = {
            "k": lambda: draw.choice([50.0, 2, 4.0]),
            "on": lambda: not getattr(box, "on", True),
            "w": lambda: _array(70),
            "inner": lambda: Box(k=draw.choice([4.0, 44.0]), on=draw.choice([True, False]), w=_array(20)),
            "listed": lambda: draw.choice([[60.0, 7.0], [6.0, 7.0], [6.0]]),
            "option": lambda: draw.choice([8, 7.0]),
        }  # fmt: skip
        match draw.randrange(8):
            case 0 | 1 | 2:
                name = draw.choice(list(rebound))
                old, names[name] = names[name], rebound[name]()
                return f"{name} = {names[name]!r}", lambda: names.__setitem__(name, old)
            case 3 | 4:
                name = draw.choice(list(attributes))
                held = dict(vars(box))
                setattr(box, name, attributes[name]())
                return f"a box.{name} = {getattr(box, name)!r}", lambda: (vars(box).clear(), vars(box).update(held))[1]
            case 5:
                held = dict(vars(box))
                name = draw.choice(list(held))
                delattr(box, name)
                return f"del a box.{name}", lambda: (vars(box).clear(), vars(box).update(held))[1]
            case 6:
                name = draw.choice(["BOXES", "LIST", "FIELDS", "FUNCTIONS"])
                items = list(names[name])
                match draw.randrange(3):
                    case 0:
                        names[name].append(items[0])
                    case 1:
                        names[name].pop()
                    case _:
                        names[name].reverse()
                return f"items of {name}", lambda: names[name].__setitem__(slice(None), items)
            case _:
                helper = draw.choice([names["weigh"], names["shift"], names["of_box"]])
                code, defaults = helper.__code__, helper.__defaults__
                if helper is names["weigh"] and draw.random() < 0.5:
                    helper.__defaults__ = (20.0,)
                else:
                    other = {"weigh": "def f(x, k=2.0): return x - k", "shift": "def f(x): return x - 1.0"}
                    made: dict[str, Any] = {}
                    exec(other.get(helper.__name__, "def f(x, box): return x - box.k"), made)
                    helper.__code__ = made["f"].__code__

                def undo() -> None:
                    helper.__code__, helper.__defaults__ = code, defaults

                return f"code or defaults of {helper.__name__}", undo
