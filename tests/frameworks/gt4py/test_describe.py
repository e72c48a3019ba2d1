"""Descriptions of what hooks and options consist of: different objects differ, equal ones are equal everywhere."""

from __future__ import annotations

import builtins
import collections
import enum
import functools
import importlib
import itertools
import json
import math
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dace
import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next import common

from gtstub.errors import CacheError
from gtstub.frameworks.gt4py.describe import describe
from gtstub.frameworks.gt4py.origin import is_known
from gtstub.util.canonical import plain
from tests.support.entries import DESCRIBED_DOMAIN


@pytest.fixture
def imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., types.ModuleType]]:
    """Writes files, by path, and imports the module 'hooks' as a new process does."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = dict(sys.modules)
    folders = (tmp_path / str(number) for number in itertools.count())

    def forget() -> None:
        for name, module in list(sys.modules.items()):
            if str(tmp_path) in str(getattr(module, "__file__", "")):
                del sys.modules[name]
                if name in before:
                    sys.modules[name] = before[name]

    def made(**files: str) -> types.ModuleType:
        forget()
        folder = next(folders)
        for name, text in files.items():
            file = folder / f"{name.replace('__', '/')}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            (file.parent / "__init__.py").touch() if file.parent != folder else None
            file.write_text(text)
        monkeypatch.syspath_prepend(folder)
        importlib.invalidate_caches()
        for name in files:
            sys.modules.pop(name.split("__")[0], None)
        return importlib.import_module("hooks")

    yield made
    forget()
    sys.modules.update(before)


SHARED = "RATE = 1.0\nOTHER = 1\ndef double(x):\n    return 2 * x\n"

# What differs is in the file 'shared', which is `SHARED` here and has 'RATE = 2.0' there.
REACHED = {
    "by an import": "import shared\ndef hook(sdfg):\n    return shared.RATE\n",
    "by an import inside": "def hook(sdfg):\n    import shared\n    return shared.RATE\n",
    "by a name imported inside": "def hook(sdfg):\n    from shared import RATE\n    return RATE\n",
    "inside a function inside": (
        "def hook(sdfg):\n    def inner():\n        import shared\n        return shared.RATE\n    return inner\n"
    ),
    "by a function of importlib": (
        "import importlib\ndef hook(sdfg):\n    return importlib.import_module('shared').RATE\n"
    ),
    "by globals": "from shared import RATE\ndef hook(sdfg):\n    return globals()['RATE']\n",
    "by getattr": "import shared\ndef hook(sdfg):\n    return getattr(shared, 'RATE')\n",
    "by sys.modules": "import sys, shared as kept\ndef hook(sdfg):\n    return sys.modules['shared'].RATE\n",
    "by eval": "import shared\ndef hook(sdfg):\n    return [eval('shared.RATE + 1') for _ in range(2)]\n",
    "by exec": "def hook(sdfg):\n    exec('from shared import RATE; sdfg.rate = RATE')\n",
    "by a dotted name": (
        "import operator, shared\nclass Holder:\n    module = shared\n"
        "def hook(sdfg):\n    return operator.attrgetter('module.RATE')(Holder)\n"
    ),
    "as an argument of partial": (
        "import functools, shared\ndef rate(module):\n    return module.RATE\nhook = functools.partial(rate, shared)\n"
    ),
    "as an argument of another function": (
        "import shared\ndef rate(module):\n    return module.RATE\ndef hook(sdfg):\n    return rate(shared)\n"
    ),
    "as a member of an object": (
        "import shared\nclass Hook:\n    def __init__(self):\n        self.module = shared\n"
        "    def __call__(self, sdfg):\n        return self.module.RATE\nhook = Hook()\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", REACHED)
def test_modules_of_the_user_are_read_however_they_are_reached(imports: Any, way: str) -> None:
    first = describe(imports(hooks=REACHED[way], shared=SHARED).hook)
    assert describe(imports(hooks=REACHED[way], shared=SHARED).hook) == first
    assert describe(imports(hooks=REACHED[way], shared=SHARED.replace("OTHER = 1", "OTHER = 2")).hook) == first
    assert describe(imports(hooks=REACHED[way], shared=SHARED.replace("1.0", "2.0")).hook) != first


# What differs is `1.0`.
COMPUTED = {
    "by a function of the module": "RATES = {'RATE': 1.0}\ndef __getattr__(name):\n    return RATES[name]\n",
    "by a property of the module": (
        "import sys, types\nclass Module(types.ModuleType):\n    @property\n    def RATE(self):\n"
        "        return self.kept\nsys.modules[__name__].__class__ = Module\nkept = 1.0\n"
    ),
    "by its own property": (
        "import sys, types\nclass Module(types.ModuleType):\n    RATE = property(lambda self: 1.0)\n"
        "sys.modules[__name__].__class__ = Module\n"
    ),
}


@pytest.mark.parametrize("way", COMPUTED)
def test_members_that_a_module_computes(imports: Any, way: str) -> None:
    files = {"hooks": "import shared\ndef hook(sdfg):\n    return shared.RATE\n", "shared": COMPUTED[way]}
    assert imports(**files).hook(None) == 1.0
    first = describe(imports(**files).hook)
    assert describe(imports(**files).hook) == first
    changed = imports(**{**files, "shared": COMPUTED[way].replace("1.0", "2.0")}).hook
    assert changed(None) == 2.0
    assert describe(changed) != first


def test_names_that_the_user_added_to_the_builtins(imports: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = imports(hooks="def hook(sdfg):\n    return [RATE for _ in range(len(sdfg))]\n").hook
    without = describe(hook)
    assert "len" not in json.dumps(without)
    monkeypatch.setattr(builtins, "RATE", 1.0, raising=False)
    first = describe(hook)
    monkeypatch.setattr(builtins, "RATE", 2.0)
    assert len({json.dumps(found) for found in (without, first, describe(hook))}) == 3


@pytest.mark.parametrize("attribute", ["__doc__", "__name__", "__qualname__", "__annotations__"])
@pytest.mark.parametrize("of", ["inner", "Class"])
def test_texts_of_functions_and_classes_matter_if_a_hook_reads_them(imports: Any, attribute: str, of: str) -> None:
    text = (
        "def inner():\n    return 1\nclass Class:\n    pass\n"
        f"def other(sdfg):\n    return {of}\ndef hook(sdfg):\n    return other(sdfg).{attribute}\n"
    )
    one, two = ({"a": int}, {"a": float}) if attribute == "__annotations__" else ("one", "two")

    def described(function: str, value: Any) -> Any:
        module = imports(hooks=text)
        setattr(getattr(module, of), attribute, value)
        return describe(getattr(module, function))

    assert described("hook", one) == described("hook", one)
    assert described("hook", one) != described("hook", two)
    if attribute != "__qualname__":  # by which descriptions call a class
        assert described("other", one) == described("other", two)


def test_relative_imports_inside_a_function(imports: Any) -> None:
    files = {
        "hooks": "from pkg.one import hook\n",
        "pkg__one": (
            "def hook(sdfg):\n    from . import shared\n    from .shared import double\n"
            "    return double(shared.RATE)\n"
        ),
        "pkg__shared": SHARED,
    }
    first = describe(imports(**files).hook)
    assert describe(imports(**files).hook) == first
    assert describe(imports(**{**files, "pkg__shared": SHARED.replace("1.0", "2.0")}).hook) != first


@pytest.mark.parametrize("name", ["wave", "profile", "statistics", "trace", "code", "numpy_like"])
def test_module_of_the_user_with_a_name_of_the_standard_library(imports: Any, name: str) -> None:
    text = f"from {name} import double\nimport {name}\ndef hook(sdfg):\n    return double({name}.RATE)\n"
    first = describe(imports(**{"hooks": text, name: SHARED}).hook)
    assert describe(imports(**{"hooks": text, name: SHARED.replace("1.0", "2.0")}).hook) != first
    assert describe(imports(**{"hooks": text, name: SHARED.replace("2 * x", "3 * x")}).hook) != first


def test_where_a_module_is_decides_whether_its_version_is_known(imports: Any) -> None:
    assert all(
        map(is_known, (math, json, os, functools, np, dace, importlib.import_module("gtstub.entries.cache.key"), sys))
    )
    assert all(map(is_known, (math.sin, json.dumps, dict, np.float64, dace.SDFG, type(None), np.linalg.norm)))
    assert not any(map(is_known, (imports(hooks=""), pytest, sys.modules[__name__])))
    fake = types.ModuleType("statistics")
    assert not is_known(fake)


def test_packages_that_hold_each_other(imports: Any) -> None:
    files = {
        "hooks": "import pkg.sub\ndef hook(sdfg):\n    return pkg.sub.RATE\n",
        "pkg__sub": "import pkg\nRATE = 1.0\n",
        "pkg____init__": "from pkg import sub\n",
    }
    first = describe(imports(**files).hook)
    assert describe(imports(**{**files, "pkg__sub": "import pkg\nRATE = 2.0\n"}).hook) != first


HOOKS = """
import contextlib, dataclasses, enum, functools, math, cmath
import dace

class Hook:
    RATE = 1
    @staticmethod
    def fixed():
        return "static one"
    @classmethod
    def made(cls):
        return "class one"
    @property
    def rate(self):
        return "property one"
    @functools.cached_property
    def kept(self):
        return "cached one"
    def __call__(self, sdfg):
        return self.RATE

class Base(Hook):
    pass

class Hiding(Hook):
    def __init__(self):
        self.rate_ = "hidden one"
    def __getstate__(self):
        return {}

class Slots:
    __slots__ = ("rate",)
    def __reduce__(self):
        return Slots, ()

@dataclasses.dataclass
class Filled(Slots):
    size: int = dataclasses.field(default=1, metadata={"unit": "metadata one"})

class Mode(enum.Enum):
    FAST = "fast one"
    def apply(self):
        return "method one"
    @functools.cache
    def remembered(self):
        return "remembered one"
    @functools.cached_property
    def kept(self):
        return "kept one"
    factor = enum.nonmember("nonmember one")
    by = functools.partialmethod(apply, "partial one")

slots, filled = Slots(), Filled()
slots.rate, filled.rate = "slot one", "filled one"
Mode.LATE, Mode.FAST.extra = "late one", "member one"

def defaults():
    return "defaults one"

def hook(sdfg, strong="default one"):
    return defaults()

hook.strength = "attribute one"

@functools.cache
def cached(sdfg):
    return "cache one"

@functools.lru_cache(maxsize=3)
def lru_cached(sdfg):
    return cached(sdfg)

@functools.wraps(dace.SDFG.validate)
def wrapped(sdfg):
    return "wraps one"

@contextlib.contextmanager
def managed():
    yield "managed one"

def mathematics(sdfg):
    return m.sqrt(2)

def guarded(sdfg):
    try:
        first = sdfg.one()
        second = sdfg.two()
    except ValueError:
        return None

m = math
registry = {"a": hook, "b": Hook}
"""


@pytest.mark.parametrize(
    ("chosen", "before", "after"),
    [
        ("Hook()", "RATE = 1", "RATE = 2"),
        ("Hook()", "static one", "static two"),
        ("Hook()", "class one", "class two"),
        ("Hook()", "property one", "property two"),
        ("Hook()", "cached one", "cached two"),
        ("Base()", "RATE = 1", "RATE = 2"),
        ("Hiding()", "hidden one", "hidden two"),
        ("slots", "slot one", "slot two"),
        ("filled", "filled one", "filled two"),
        ("Filled", "metadata one", "metadata two"),
        ("Mode.FAST", "remembered one", "remembered two"),
        ("Mode.FAST", "kept one", "kept two"),
        ("Mode.FAST", "nonmember one", "nonmember two"),
        ("Mode.FAST", "partial one", "partial two"),
        ("Mode.FAST", "member one", "member two"),
        ("Mode.FAST", "late one", "late two"),
        ("Mode.FAST", "fast one", "fast two"),
        ("Mode.FAST", "method one", "method two"),
        ("Mode", "fast one", "fast two"),
        ("hook", "defaults one", "defaults two"),
        ("hook", "default one", "default two"),
        ("hook", "attribute one", "attribute two"),
        ("cached", "cache one", "cache two"),
        ("lru_cached", "cache one", "cache two"),
        ("wrapped", "wraps one", "wraps two"),
        ("managed", "managed one", "managed two"),
        ("mathematics", "m = math", "m = cmath"),
        ("guarded", "    second = sdfg.two()\n    except", "    pass\n    except"),
        ("registry", "cached one", "cached two"),
        ("registry", '"a": hook, "b": Hook', '"b": Hook, "a": hook'),
    ],
)
def test_everything_that_a_hook_consists_of_matters(imports: Any, chosen: str, before: str, after: str) -> None:
    text = f"{HOOKS}\nchosen = {chosen}\n"
    assert before in text
    first = describe(imports(hooks=text).chosen)
    assert describe(imports(hooks=text).chosen) == first
    assert describe(imports(hooks=text.replace(before, after)).chosen) != first


def test_what_a_try_statement_covers_matters() -> None:
    """Only the table of exceptions differs."""
    inside: dict[str, Any] = {}
    outside: dict[str, Any] = {}
    exec(
        "def hook(s):\n    try:\n        s.one()\n        s.two()\n    except ValueError:\n        s.three()\n", inside
    )
    exec("def hook(s):\n    s.one()\n    try:\n        s.two()\n    except ValueError:\n        s.three()\n", outside)
    assert describe(inside["hook"]) != describe(outside["hook"])


def test_the_state_of_a_hook_is_read_each_time(imports: Any) -> None:
    module = imports(hooks=HOOKS)
    first = describe(module.hook)
    module.defaults = lambda: "another"
    assert describe(module.hook) != first


class Text(str):
    __slots__ = ()


class Named(enum.StrEnum):
    A = "a"


Pair = collections.namedtuple("Pair", "one two")


def test_values_of_different_types_differ() -> None:
    values: list[Any] = [
        *(1, True, 1.0, "1", "1.0", "True", None, "None", 1j, "1j", b"1", bytearray(b"1"), "bytes(31)"),
        *(np.int32(1), np.float64(1), np.complex128(1), np.longdouble(1), np.longdouble("0.1"), np.longdouble(0.1)),
        *(np.datetime64(1, "s"), np.datetime64(1, "m"), np.timedelta64(1, "s"), np.timedelta64(1, "m")),
        *("a", Named.A, Text("a"), "Named.A", np.str_("a")),
        *([1], (1,), {1}, frozenset({1}), {1: None}, {"1": None}, {True: None}, {1.0: None}, {"'1'": None}),
        *({"true": None}, {"True": None}, {False: 1}, {"false": 1}, {None: 1}, {"null": 1}, {"None": 1}),
        *({None: 1, "null": 2}, {"null": 1, None: 2}, {0.0: 1}, {-0.0: 1}, {float("nan"): 1}, {"nan": 1}, {b"a": 1}),
        *({...: 1}, {"Ellipsis": 1}, {(1,): 1}, {"(1,)": 1}, {Named.A: 1}, {Pair(1, 2): 1}, {(1, 2): 1}),
        *(functools.partial(max, key={True: 1}), functools.partial(max, key={"true": 1})),
        *([[1], 2], [1, [2]], [[1, 2]], ["1", "2"], ["1, 2"], (1, 2), Pair(1, 2)),
        *({"a": 1, "b": 2}, {"b": 2, "a": 1}, collections.OrderedDict(a=1, b=2), types.MappingProxyType({"a": 1})),
        *({"<tuple>": [1]}, {"tuple": [1]}, float("nan"), float("inf"), -0.0, 0.0, Ellipsis, NotImplemented),
        *(range(3), slice(0, 3), math, "math", math.sin, np.sin, "numpy.sin", int, "builtins.int", [].append),
        *(np.arange(100), np.arange(100) + 1, np.arange(3), np.arange(3.0), np.dtype("f4"), np.dtype("f8")),
        *(functools.partial(max, 1), functools.partial(max, 1.0), functools.partial(min, 1), list[int], list[str]),
    ]
    texts = [json.dumps(describe(value)) for value in values]
    twice = {text: [value for value, other in zip(values, texts, strict=True) if other == text] for text in texts}
    assert [same for same in twice.values() if len(same) > 1] == []


def test_object_that_makes_every_attribute() -> None:
    """Operators of gt4py are known by the methods of their class, not by those of the object."""

    class Lazy:
        rate = 1

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__") and name.endswith("__") and name != "__gt_gtir__":
                raise AttributeError(name)
            return 2

    first = describe(Lazy())
    Lazy.rate = 3
    assert describe(Lazy()) != first


def test_variable_without_a_value_yet() -> None:
    def outer() -> Callable[[], Any]:
        def hook() -> Any:
            return later

        early = describe(hook)
        later = 1
        assert describe(hook) != early
        return hook

    outer()


def test_a_domain_is_described_as_names_of_entries_need_it() -> None:
    vertical = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
    assert plain(describe(common.domain({gtx.Dimension("I"): (0, 10), vertical: (2, 5)}))) == DESCRIBED_DOMAIN


def test_message_names_the_function_and_the_object() -> None:
    lock = __import__("threading").Lock()

    def hook(_: Any) -> Any:
        return lock

    with pytest.raises(CacheError) as caught:
        describe({"optimization_hooks": [hook]})
    assert str(caught.value) == (
        f"Object 'lock' of type 'lock', which '{hook.__qualname__}' uses, cannot be described (cannot pickle"
        " '_thread.lock' object): it cannot be part of a key."
    )
