"""What DaCe calls while it parses, and what somebody has put into libraries: a call evaluates it again."""

import builtins
import collections
import functools
import linecache
import math
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from gtstub.errors import SignatureError
from gtstub.frameworks.dace.closures import Closure, End
from tests.frameworks.dace.test_random_closures import is_refused
from tests.support.closures import closure_without_build

FILE = "coefficient.txt"


def from_file() -> float:
    return float(Path(FILE).read_text())


class Box:
    """Objects whose attributes and results are in the file."""

    k = 2.0

    @property
    def read(self) -> float:
        return from_file()

    def get(self) -> float:
        return from_file()

    def __getattr__(self, name: str) -> float:
        if name != "unknown":
            raise AttributeError(name)
        return from_file()

    def __call__(self) -> float:
        return from_file()


NAMES: dict[str, Any] = {
    "dace": dace, "np": np, "math": math, "norms": np.linalg, "Box": Box, "BOX": Box(), "K": 2.0,
    "FROM_FILE": from_file, "LIST": [from_file], "TABLE": {"f": from_file}, "PARTIAL": functools.partial(from_file),
    "LAMBDA": lambda: from_file(),
}  # fmt: skip


def program(body: str, names: Mapping[str, Any] = NAMES) -> Any:
    """A function whose source DaCe finds."""
    source = f"def parsed(a: dace.float64[3]):\n{body}\n"
    file = f"parse_time_call_{abs(hash(body))}.py"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    made = {**names, "__name__": file.removesuffix(".py")}
    exec(compile(source, file, "exec", dont_inherit=True), made)
    return made["parsed"]


def closure_of(expression: str) -> Closure:
    return closure_without_build(program(f"    a[:] = a + dace.inline({expression})"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COEFFICIENT", "2.0")
    (tmp_path / FILE).write_text("2.0\n")
    return tmp_path


# --- Functions that are not known to be pure --------------------------------------------------------------------------

OF_FILE = (
    "float(np.loadtxt('coefficient.txt'))",
    "float(open('coefficient.txt').read())",
    "[float(line) for line in open('coefficient.txt')][0]",
    "sum(map(float, open('coefficient.txt')))",
    "float(max(open('coefficient.txt')))",
    "(lambda: float(open('coefficient.txt').read()))()",
    "eval('FROM_FILE()')",
    "__import__('numpy').loadtxt('coefficient.txt').item()",
    *("BOX.read", "BOX.get()", "BOX.unknown", "BOX()", "Box().get()", "getattr(BOX, 'read')"),
    *("LIST[0]()", "TABLE['f']()", "PARTIAL()", "LAMBDA()", "FROM_FILE()"),
)


@pytest.mark.parametrize("expression", OF_FILE)
def test_a_file_is_read_again(expression: str, folder: Path) -> None:
    closure = closure_of(expression)
    assert not is_refused(closure)
    (folder / FILE).write_text("3.0\n")
    assert is_refused(closure)
    (folder / FILE).write_text("2.0\n")
    assert not is_refused(closure)


@pytest.mark.parametrize(
    "body",
    [
        "    if open('coefficient.txt').read() == '2.0\\n':\n        a[:] = a + 1.0\n    else:\n        a[:] = a + 2.0",
        "    assert float(np.loadtxt('coefficient.txt')) < 2.5\n    a[:] = a + 1.0",
        "    for k in dace.unroll(np.loadtxt('coefficient.txt', ndmin=1)):\n        a[:] = a + k",
        "    for k in dace.unroll(map(float, open('coefficient.txt'))):\n        a[:] = a + k",
        "    a[:] = a + (1.0 if open('coefficient.txt').readline() == '2.0\\n' else 3.0)",
    ],
)
def test_a_file_decides(body: str, folder: Path) -> None:
    closure = closure_without_build(program(body))
    assert not is_refused(closure)
    (folder / FILE).write_text("3.0\n")
    assert is_refused(closure)


@pytest.mark.parametrize("expression", ["globals()['K']", "eval('K')", "(lambda: K)()", "Box.k", "type(BOX).k"])
def test_names_are_looked_up_again(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = program(f"    a[:] = a + dace.inline({expression})")
    closure = closure_without_build(function)
    assert not is_refused(closure)
    monkeypatch.setitem(function.__globals__, "K", 3.0)
    monkeypatch.setattr(Box, "k", 3.0)
    assert is_refused(closure)


class Level:
    def __init__(self, k: float) -> None:
        self.k = k

    def add(self, x: Any) -> Any:
        return x + self.k


def subtract(x: Any) -> Any:
    return x - 1.0


@pytest.mark.parametrize(
    "body",
    [
        "    a[:] = LEVELS[NOW].add(a)",
        "    a[:] = BY_NAME[KEYS[NOW]].add(a)",
        "    for level in LEVELS:\n        a[:] = level.add(a)",
        "    for level in dace.unroll(QUEUE):\n        a[:] = level.add(a)",
    ],
)
def test_which_function_is_called(body: str) -> None:
    def names() -> dict[str, Any]:
        levels = [Level(2.0), Level(3.0)]
        by_name = dict(zip("xy", levels, strict=True))
        return {"LEVELS": levels, "QUEUE": collections.deque(levels), "BY_NAME": by_name, "KEYS": "xy", "NOW": 0}

    function = program(body, {"dace": dace, **names()})
    closure = closure_without_build(function)
    assert not is_refused(closure)
    function.__globals__["LEVELS"].reverse()
    function.__globals__["QUEUE"].reverse()
    function.__globals__["BY_NAME"].update(x=Level(5.0))
    assert is_refused(closure)
    function = program(body, {"dace": dace, **names()})
    closure = closure_without_build(function)
    function.__globals__["LEVELS"][0].add = subtract
    assert is_refused(closure)


@pytest.mark.parametrize(
    "expression",
    [
        "float(dace.config.os.environ['COEFFICIENT'])",
        "float(dace.config.os.environ.get('COEFFICIENT'))",
        "float(dace.config.os.getenv('COEFFICIENT'))",
    ],
)
def test_the_environment_is_read_again_behind_the_name_of_a_library(
    expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closure = closure_of(expression)
    assert not is_refused(closure)
    monkeypatch.setenv("COEFFICIENT", "3.0")
    assert is_refused(closure)


def test_what_differs_at_once_is_refused() -> None:
    with pytest.raises(SignatureError, match=re.escape("'np.random.rand()', which a call cannot find again")):
        closure_of("np.random.rand()")


@pytest.mark.parametrize(
    ("expression", "compared"),
    [
        ("len((1, 2))", []),
        ("max(1.0, 2.0)", []),
        ("[float(k) for k in range(3)][1]", []),
        ("math.exp(1.0)", []),
        ("np.sqrt(2.0)", ["np"]),
        ("np.arange(3.0).sum()", ["np"]),
        ("np.finfo(np.float64).eps", ["np", "np.float64"]),
        ("np.float64(2)", ["np.float64"]),
        ("dace.float64(2)", ["dace.float64"]),
        ("norms.norm is None", ["norms"]),
        ("'a'.upper() == 'A'", []),
    ],
)
def test_pure_functions_are_not_called_again(expression: str, compared: list[str]) -> None:
    closure = closure_of(expression)
    assert closure.again == ()
    assert {reading.source for reading, _ in closure.constants} == {*compared, "parsed.__code__"}


def test_inside_of_a_program_whatever_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "    if {}():\n        a[:] = a + 1.0"
    for name in ("dace.in_program", "inside"):
        closure = closure_without_build(program(body.format(name), {**NAMES, "inside": dace.in_program}))
        assert not is_refused(closure)
        assert closure.again == ()


def test_annotations_cost_a_call_nothing() -> None:
    closure = closure_without_build(program("    a[:] = a + 1.0"))
    assert [reading.source for reading, _ in closure.constants] == ["parsed.__code__"]
    assert set(closure.ends) == {End.FIXED}


@pytest.mark.parametrize(
    ("expression", "names", "compared"),
    [
        ("np.sqrt(2.0)", ("np", "xp"), {"np"}),
        ("xp.sqrt(2.0)", ("np", "xp"), {"xp"}),
        ("xp.sqrt(np.exp(2.0))", ("np", "xp"), {"np", "xp"}),
        ("np.sqrt(2.0)", ("numpy", "np"), {"np"}),
        ("numpy.sqrt(2.0)", ("numpy", "np"), set()),
        ("numpy.sqrt(np.exp(2.0))", ("numpy", "np"), {"np"}),
        ("(lambda: xp.sqrt(2.0) > 1.0)()", ("np", "xp"), {"xp", "(lambda: xp.sqrt(2.0) > 1.0)()"}),
    ],
)
def test_each_name_of_a_module_is_compared_if_it_is_used(
    expression: str, names: tuple[str, ...], compared: set[str]
) -> None:
    function = program(f"    a[:] = a + dace.inline({expression})", {"dace": dace, **dict.fromkeys(names, np)})
    closure = closure_without_build(function)
    assert {reading.source for reading, _ in closure.constants} == {*compared, "parsed.__code__"}
    for name in names:
        function.__globals__[name] = math
        assert is_refused(closure) == (name in compared)
        function.__globals__[name] = np


# --- What somebody puts into libraries --------------------------------------------------------------------------------


def shift(x: float) -> float:
    return x + 2.0


def other_shift(x: float) -> float:
    return x + 3.0


PUT: tuple[tuple[Any, str, str, Any, Any], ...] = (
    (np, "gravity", "np.gravity", 9.8, 9.81),
    (np, "gravity", "math.pi * np.gravity", 9.8, 9.81),
    (math, "gravity", "math.gravity", 9.8, 9.81),
    (dace, "gravity", "dace.gravity", 9.8, 9.81),
    (np.linalg, "gravity", "np.linalg.gravity", 9.8, 9.81),
    (np.linalg, "gravity", "norms.gravity", 9.8, 9.81),
    (builtins, "gravity", "gravity", 9.8, 9.81),
    (np, "constants", "np.constants['g']", {"g": 9.8}, {"g": 9.81}),
    (np, "box", "np.box.k", Box(), np.float64),
    (np, "shift", "np.shift(1.0)", shift, other_shift),
    (np, "shift", "np.shift(1.0)", np.sqrt, np.exp),
    (np, "shift", "np.shift(1.0)", np.frompyfunc(shift, 1, 1), np.frompyfunc(other_shift, 1, 1)),
    (np, "real_t", "np.real_t(2.7)", np.int64, np.float64),
    (np, "pi", "np.pi", math.pi, 3.0),
    (math, "tau", "math.tau", math.tau, 6.0),
    (dace, "float64", "dace.float64(2)", dace.float64, dace.float32),
    (np, "float64", "np.float64(2)", np.float64, np.float32),
    (np, "sqrt", "np.sqrt(2.0)", np.cos, np.sqrt),
    (math, "exp", "math.exp(2.0)", math.cos, math.exp),
)


@pytest.mark.parametrize(("module", "name", "expression", "before", "after"), PUT)
def test_what_somebody_puts_into_a_library_is_compared(
    module: Any, name: str, expression: str, before: Any, after: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, before, raising=False)
    closure = closure_of(expression)
    assert not is_refused(closure)
    monkeypatch.setattr(module, name, after, raising=False)
    assert is_refused(closure)


@pytest.mark.parametrize("type_", ["np.real_t", "dace.real_t"])
def test_a_type_that_somebody_puts_into_a_library_is_compared(type_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (np, dace):
        monkeypatch.setattr(module, "real_t", np.float32, raising=False)
    closure = closure_without_build(program(f"    b = np.zeros([3], dtype={type_})\n    a[:] = a + b"))
    assert not is_refused(closure)
    for module in (np, dace):
        monkeypatch.setattr(module, "real_t", np.float64, raising=False)
    assert is_refused(closure)


# --- Calls ------------------------------------------------------------------------------------------------------------


@gtstub.program
@dace.program
def reads_all(a: dace.float64[3]):
    a[:] = a * dace.inline(float(np.loadtxt("coefficient.txt"))) + np.gravity + dace.inline(globals()["COEFFICIENT"])


def test_a_call_a_bound_call_and_a_step_evaluate_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "gravity", 9.0, raising=False)
    monkeypatch.setitem(globals(), "COEFFICIENT", 4.0)
    a = np.ones(3)
    reads_all(a)
    assert list(a) == [15.0] * 3
    with gtstub.capture() as step:
        reads_all(a)
    a[:] = 1.0
    changes: list[tuple[Callable[[pytest.MonkeyPatch], Any], str]] = [
        (lambda m: m.setattr(np, "gravity", 8.0), "'np.gravity' = 9.0, but it is 8.0 now"),
        (lambda m: m.setitem(globals(), "COEFFICIENT", 5.0), "'globals()['COEFFICIENT']' = 4.0, but it is 5.0 now"),
        (lambda _: (folder / FILE).write_text("3.0"), "'float(np.loadtxt('coefficient.txt'))' = 2.0, but it is 3.0"),
    ]
    for change, message in changes:
        with monkeypatch.context() as context:
            change(context)
            for call in (lambda: reads_all(a), step):
                with pytest.raises(ValueError, match=re.escape(message)):
                    call()
    assert list(a) == [1.0] * 3
    reads_all.clear()
    reads_all(a)
    assert list(a) == [16.0] * 3


SCRIPT = """
import pathlib, sys
import dace
import numpy as np
import gtstub

pathlib.Path("coefficient.txt").write_text(sys.argv[1])
COEFFICIENT = float(sys.argv[1])

@gtstub.program
@dace.program
def all_of_it(a: dace.float64[3]):
    a[:] = a + dace.inline(float(np.loadtxt("coefficient.txt")))
    if open("coefficient.txt").read() == "2":
        a[:] = a + 20.0
    else:
        a[:] = a + 30.0
    a[:] = a + dace.inline(100 * globals()["COEFFICIENT"])

a = np.zeros(3)
all_of_it(a)
print(a[0])
"""


def test_a_later_process_has_its_own_numbers(folder: Path) -> None:
    (folder / "script.py").write_text(SCRIPT)
    for number in ("2", "3", "2"):
        made = subprocess.run([sys.executable, "script.py", number], capture_output=True, text=True, check=True)
        assert float(made.stdout) == 111 * float(number)
