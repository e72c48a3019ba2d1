"""A later process finds the entry of a DaCe program without parsing it, unless what the parse reads differs."""

from __future__ import annotations

import importlib.util
import itertools
import json
import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from dace.frontend.common.op_repository import Replacements

import gtstub
from gtstub.cache.cleanup import PARSES
from gtstub.frameworks.dace import program as programs
from gtstub.frameworks.dace.known_parses import Parse
from gtstub.frameworks.dace.program import StubbedProgram
from gtstub.frameworks.dace.reachable import UnfitError
from tests.support.own_cache import use_own_cache

MODEL = """
import dace
import numpy as np

N = dace.symbol("N")
FACTOR = 3.0
WEIGHTS = (1.0, 2.0)
SIZE = 4
TABLE = np.ones(4)
OTHER = np.ones(4)

def shifted(x, by=1.0):
    return x + by

@dace.program
def doubled(x: dace.float64[N]):
    return x * 2.0

def inner(x):
    return x * FACTOR

@dace.program
def step(a: dace.float64[N], b: dace.float64[SIZE]):
    a[:] = shifted(a) * WEIGHTS[1] + inner(a) + SIZE
    b[:] = doubled(b) + TABLE

class Model:
    def __init__(self):
        self.factor, self.field = 2.0, np.ones(4)

    @dace.method
    def run(self, a: dace.float64[4]):
        a[:] = self.scaled(a) + self.field

    def scaled(self, a):
        return a * self.factor
"""

_numbers = itertools.count()


class Place:
    """A folder for versions of one module."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, *changes: tuple[str, str], folder: str = "") -> ModuleType:
        """The module after changes of its text, as another process imports it."""
        text = MODEL
        for before, after in changes:
            assert text.count(before) == 1, before
            text = text.replace(before, after)
        file = self._folder / folder / str(next(_numbers)) / "stepping.py"
        file.parent.mkdir(parents=True)
        file.write_text(text)
        spec = importlib.util.spec_from_file_location("stepping", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["stepping"] = module
        spec.loader.exec_module(module)
        return module


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    yield Place(tmp_path)
    sys.modules.pop("stepping", None)
    linecache.clearcache()


def name_of(program: Any, *args: Any, **options: Any) -> str | None:
    """The name of the document of a program with its annotated types, or for arguments; None if it has none."""
    made = program if isinstance(program, StubbedProgram) else gtstub.program(program, **options)
    call = made._bind(args, {}) if args else made._example()
    parse = Parse.of(made.dace_program, made._types(call)[2], call, made._options)
    return None if parse is None else parse.name


def method_of(model: Any) -> StubbedProgram:
    made = gtstub.program(vars(type(model))["run"]).__get__(model, type(model))
    assert isinstance(made, StubbedProgram)
    return made


def test_the_same_program_has_the_same_name_wherever_it_is(place: Place) -> None:
    first, second = place.load(), place.load(folder="moved")
    assert name_of(first.step) == name_of(second.step) is not None
    assert name_of(method_of(first.Model())) is not None
    unrelated = place.load(("class Model:", "LATER = 1\n\nclass Model:"))
    assert name_of(unrelated.step) == name_of(first.step)


CHANGES = {
    "source": ("WEIGHTS[1] + inner(a)", "WEIGHTS[1] - inner(a)"),
    "source of a function": ("return x + by", "return x - by"),
    "source of a program": ("return x * 2.0", "return x * 3.0"),
    "source of a function that a function reads": ("return x * FACTOR", "return x / FACTOR"),
    "global of a function": ("FACTOR = 3.0", "FACTOR = 4.0"),
    "type of a global": ("FACTOR = 3.0", "FACTOR = 3"),
    "type of a number": ("FACTOR = 3.0", "FACTOR = np.float32(3.0)"),
    "item": ("(1.0, 2.0)", "(1.0, 2.5)"),
    "another item": ("(1.0, 2.0)", "(1.5, 2.0)"),
    "default": ("by=1.0", "by=2.0"),
    "number in an annotation": ("SIZE = 4", "SIZE = 5"),
    "type of a symbol": ('dace.symbol("N")', 'dace.symbol("N", dtype=dace.int64)'),
    "name of a symbol": ('dace.symbol("N")', 'dace.symbol("M")'),
    "assumption of a symbol": ('dace.symbol("N")', 'dace.symbol("N", positive=True)'),
    "another symbol": ("FACTOR = 3.0", 'FACTOR = 3.0; K = dace.symbol("K")'),
    "size of a global array": ("TABLE = np.ones(4)", "TABLE = np.ones(1)"),
    "type of a global array": ("TABLE = np.ones(4)", "TABLE = np.ones(4, np.float32)"),
    "strides of a global array": ("TABLE = np.ones(4)", "TABLE = np.ones(8)[::2]"),
    "module of a name": ("import numpy as np", "import numpy as np, math as inner_math"),
    "annotation": ("a: dace.float64[N], b", "a: dace.float32[N], b"),
    "annotation of a program": ("doubled(x: dace.float64[N])", "doubled(x: dace.float64[SIZE])"),
    "options of the decorator": ("@dace.program\ndef step", "@dace.program(use_explicit_cf=False)\ndef step"),
    "other options": (
        "@dace.program\ndef doubled",
        "@dace.program(ignore_type_hints=True)\ndef doubled",
    ),
    "a name becomes a local one": ("    a[:] = shifted(a)", "    SIZE = 1\n    a[:] = shifted(a)"),
    "a function becomes a program": ("def inner(x):", "@dace.program\ndef inner(x):"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_program_is_parsed(place: Place, change: str) -> None:
    is_equal = change == "module of a name"  # which no function reads
    known = name_of(place.load().step)
    assert (name_of(place.load(CHANGES[change]).step) == known) is is_equal
    assert name_of(place.load().step) == known


@pytest.mark.parametrize(
    "change",
    [
        ("self.factor, self.field = 2.0", "self.factor, self.field = 2.5"),
        ("self.field = 2.0, np.ones(4)", "self.field = 2.0, np.ones(4, np.float32)"),
        ("return a * self.factor", "return a / self.factor"),
        ("    def scaled", "    @staticmethod\n    def other(): ...\n\n    @property\n    def scaled"),
        ("class Model:", "class Model:\n    scaled = 1\n\nclass Other:"),
    ],
    ids=str,
)
def test_a_changed_method_is_parsed(place: Place, change: tuple[str, str]) -> None:
    def name(module: ModuleType) -> str | None:
        kind = getattr(module, "Other", module.Model)
        return name_of(method_of(kind()))

    known = name(place.load())
    assert known is not None
    assert name(place.load(change)) != known


def test_an_object_that_changes_is_parsed(place: Place) -> None:
    module = place.load()
    model = module.Model()
    program = method_of(model)
    known = name_of(program)
    model.scaled = lambda a: a
    assert name_of(program) != known
    del model.scaled
    assert name_of(program) == known
    module.FACTOR = 7
    assert name_of(program) == known, "It does not read this."
    del model.factor
    assert name_of(program) != known


def test_two_paths_to_one_array_are_parsed(place: Place) -> None:
    change = ("doubled(b) + TABLE", "doubled(b) + TABLE + OTHER")
    two, one = place.load(change), place.load(change)
    one.OTHER = one.TABLE
    assert None is not name_of(two.step) != name_of(one.step) is not None


def test_a_constant_in_a_library_is_parsed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package may have put it there."""
    module = place.load(("+ inner(a) + SIZE", "+ inner(a) + np.gravity"))
    names = [name_of(module.step)]
    for value in (9.8, 9.81, np.float32(9.81)):
        monkeypatch.setattr(np, "gravity", value, raising=False)
        names.append(name_of(module.step))
    assert None not in names
    assert len(set(names)) == 4


def test_a_name_that_appears_is_parsed(place: Place) -> None:
    module = place.load(("+ inner(a) + SIZE", "+ inner(a) + absent"))
    known = name_of(module.step)
    module.absent = 1.0
    assert None is not known != name_of(module.step)


def test_other_circumstances_are_parsed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    module = place.load()
    names = [name_of(module.step)]
    names.append(name_of(module.step, bounds=False))
    names.append(name_of(module.step, build_type="Debug"))
    names.append(name_of(module.step, dace_config={"frontend.unroll_threshold": 7}))
    for target, value in {
        "gtstub.frameworks.dace.known_parses.metadata.version": lambda _: "another version",
        "gtstub.frameworks.dace.known_parses.dace_versions": lambda: {"dace": "another version"},
        "gtstub.frameworks.dace.known_parses.sys.version": "another version",
    }.items():
        with monkeypatch.context() as changed:
            changed.setattr(target, value)
            names.append(name_of(module.step))
    for variable, text in {"GTSTUB_BOUNDS": "0", "DACE_optimizer_automatic_simplification": "0"}.items():
        with monkeypatch.context() as changed:
            changed.setenv(variable, text)
            names.append(name_of(module.step))
    plain = place.load(("a: dace.float64[N], b: dace.float64[SIZE]", "a, b=None"))
    for args in ((np.ones(4),), (np.ones(5),), (np.ones(4, int),), (np.ones(4), np.ones(4)), (np.ones(4), None)):
        names.append(name_of(plain.step, *args))
    assert None not in names
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "change",
    [
        ("@dace.program\ndef step", "@dace.program(auto_optimize=True)\ndef step"),
        ("@dace.program\ndef step", "@dace.program(recreate_sdfg=False)\ndef step"),
        ("+ inner(a) + SIZE", "+ inner(a) + sum([each for each in WEIGHTS])"),
        ("+ inner(a) + SIZE", "+ inner(a) + len(Model)"),
        ("WEIGHTS = (1.0, 2.0)", "WEIGHTS = (object(), 2.0)\nclass Number(float): ..."),
        ("FACTOR = 3.0", "class Number(float): ...\nFACTOR = Number(3)"),
        ("def inner(x):", "import functools\n@functools.wraps(doubled)\ndef inner(x):"),
    ],
    ids=str,
)
def test_what_is_not_certain_is_parsed(place: Place, change: tuple[str, str]) -> None:
    assert name_of(place.load(change).step) is None


def test_what_another_package_has_dace_parse_is_parsed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def replacement() -> None: ...

    module = place.load()
    assert name_of(module.step) is not None
    monkeypatch.setitem(Replacements._rep, "stepping.inner", replacement)
    assert name_of(module.step) is None


# --- Whole builds -----------------------------------------------------------------------------------------------------


class Parses:
    """What DaCe parses for gtstub."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        parse = programs.parse_variant

        def counted(*args: Any) -> Any:
            self.count += 1
            return parse(*args)

        monkeypatch.setattr(programs, "parse_variant", counted)


@pytest.fixture
def parses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Parses:
    use_own_cache(tmp_path / "cache", monkeypatch)
    return Parses(monkeypatch)


def test_a_later_process_calls_without_a_parse(place: Place, parses: Parses, tmp_path: Path) -> None:
    def run(module: ModuleType) -> tuple[Any, Any]:
        a, b = np.ones(5), np.ones(4)
        gtstub.program(module.step)(a, b)
        return a.tolist(), b.tolist()

    expected = [2.0 * 2.0 + 3.0 + 4.0] * 5, [3.0] * 4
    assert run(place.load()) == expected
    assert run(place.load()) == expected
    assert parses.count == 1
    module = place.load()
    module.TABLE = np.full(4, 2.0)
    assert run(module) == (expected[0], [4.0] * 4)
    assert parses.count == 1
    assert run(place.load(CHANGES["global of a function"])) == ([2.0 * 2.0 + 4.0 + 4.0] * 5, expected[1])
    assert parses.count == 2

    (*_, document) = (tmp_path / "cache" / PARSES).iterdir()
    for damaged in ("", "{}", "[]", json.dumps({**json.loads(document.read_text()), "passed": ["b", "a"]})):
        for each in (tmp_path / "cache" / PARSES).iterdir():
            each.write_text(damaged)
        before = parses.count
        assert run(place.load()) == expected
        assert parses.count == before + 1
    document.parent.chmod(0o777)
    assert run(place.load()) == expected
    assert parses.count == 7


def test_a_later_process_checks_its_calls(place: Place, parses: Parses) -> None:
    """A method, with results: an object may replace its arrays, but not its numbers."""
    change = ("        a[:] = self.scaled(a) + self.field", "        return self.scaled(a) + self.field")
    for count in (1, 2):
        module = place.load(change)
        model = module.Model()
        program = method_of(model)
        assert program(np.ones(4)).tolist() == [3.0] * 4
        model.field = np.full(4, 5.0)
        assert program(np.full(4, 2.0)).tolist() == [9.0] * 4
        model.factor = 7.0
        with pytest.raises((TypeError, ValueError), match=r"self\.factor"):
            program(np.ones(4))
        assert parses.count == 1, count


def test_an_entry_that_is_gone_is_built_again(
    place: Place, parses: Parses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = ("a[:] = shifted(a) * WEIGHTS[1] + inner(a) + SIZE", "a[:] = a + 1.0")
    gtstub.program(place.load(source).step).compile()
    gtstub.program(place.load(source).step).compile()
    assert parses.count == 1
    (entry,) = (tmp_path / "cache").glob("stepping_step-*")
    entry.rename(tmp_path / "elsewhere")
    gtstub.program(place.load(source).step).compile()
    assert parses.count == 2
    assert entry.exists()


def test_what_calls_evaluate_is_parsed(place: Place) -> None:
    module = place.load(("self.scaled(a) + self.field", "self.scaled(a) + self.field * hasattr(self, 'factor')"))
    assert name_of(method_of(module.Model())) is None


def test_a_document_has_no_reading_that_its_name_does_not_contain(place: Place, parses: Parses, tmp_path: Path) -> None:
    """Should DaCe ever read what the source does not show, the program is parsed by each process."""
    program = gtstub.program(place.load().step)
    call = program._example()
    args, given, types = program._types(call)
    parse = Parse.of(program.dace_program, types, call, program._options)
    assert parse is not None
    parsed = programs.parse_variant(program.dace_program, args, given, types, call, program._options)
    assert parse._document(parsed)["constants"]
    for path in [path for path in parse.reachable.paths if path[2] == "FACTOR"]:
        del parse.reachable.paths[path]
    with pytest.raises(UnfitError, match="FACTOR"):
        parse._document(parsed)
    parse.keep(parsed)
    assert not (tmp_path / "cache" / PARSES).exists()
