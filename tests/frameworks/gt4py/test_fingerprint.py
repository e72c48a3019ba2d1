"""What makes another entry of a program, and what does not. Nothing is lowered or built here."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next import config
from gt4py.next.ffront import type_info as ffront_type_info
from gt4py.next.otf import arguments

from gtstub.entries.cache.key import differences
from gtstub.entries.cache.lookup import Request
from gtstub.entries.cache.own_files import own_files
from gtstub.errors import CacheError, SourceError
from gtstub.frameworks.framework import CompileOptions
from gtstub.frameworks.gt4py import compile as framework
from gtstub.frameworks.gt4py import fingerprint
from gtstub.frameworks.gt4py.backend import make_backend
from gtstub.frameworks.gt4py.describe import Reader, describe
from gtstub.frameworks.gt4py.internals import ConcreteProgramDef, versions
from tests.support.warm_python import WarmPython

MODEL = """
import enum

import gt4py.next as gtx
from gt4py.eve.utils import FrozenNamespace
from gt4py.next import astype

import_of_constants = None

Cell = gtx.Dimension("Cell")
Edge = gtx.Dimension("Edge")
C2EDim = gtx.Dimension("C2E", kind=gtx.DimensionKind.LOCAL)
C2E = gtx.FieldOffset("C2E", source=Edge, target=(Cell, C2EDim))
wpfloat = gtx.float64
grid = FrozenNamespace(da_min=0.25, da_max=4.0)

class Order(enum.IntEnum):
    FIRST = 1
    SECOND = 2

@gtx.field_operator
def _scaled(x: gtx.Field[[Edge], wpfloat]) -> gtx.Field[[Edge], wpfloat]:
    return astype(grid.da_min, wpfloat) * x

@gtx.field_operator
def _sum(x: gtx.Field[[Edge], wpfloat], order: gtx.int32) -> gtx.Field[[Cell], wpfloat]:
    return _scaled(x)(C2E[0]) if order == Order.SECOND else _scaled(x)(C2E[1])

@gtx.program
def sums(x: gtx.Field[[Edge], wpfloat], order: gtx.int32, out: gtx.Field[[Cell], wpfloat]):
    _sum(x, order, out=out)

def hook(sdfg):
    return None

from gt4py.next.program_processors.runners.dace.transformations import GT4PyAutoOptHook
TOP_LEVEL = GT4PyAutoOptHook.TopLevelDataFlowStep
"""

_numbers = itertools.count()


def load(directory: Path, text: str) -> ModuleType:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "model.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(f"model_{next(_numbers)}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table(module: ModuleType, *rows: tuple[int, int]) -> Any:
    return gtx.as_connectivity([module.Cell, module.C2EDim], module.Edge, np.array(rows, dtype=np.int32))


ROWS = ((0, 1), (1, 2), (2, 0))


def request(
    directory: Path,
    text: str = MODEL,
    static: dict[str, Any] | None = None,
    rows: tuple[tuple[int, int], ...] = ROWS,
    **options: Any,
) -> Request:
    module = load(directory, text)
    program = module.sums
    definition = ffront_type_info.type_in_program_context(program.__gt_type__()).definition
    contexts = {arguments.StaticArg: {name: arguments.StaticArg(value) for name, value in (static or {}).items()}}
    args = arguments.CompileTimeArgs(
        args=tuple(definition.pos_or_kw_args.values()),
        kwargs={},
        offset_provider={"C2E": table(module, *rows)},
        column_axis=None,
        argument_descriptor_contexts=contexts if static else {},
    )
    backend = make_backend(gpu=False, **{name: eval(value, vars(module)) for name, value in options.items()})
    assert backend is not None
    return backend.request(ConcreteProgramDef(program.definition_stage, args))


@pytest.fixture
def plain(tmp_path: Path) -> Request:
    return request(tmp_path / "plain")


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ("_sum(x, order, out=out)", "_sum(x, order + 0, out=out)", "program.source.sums"),
        ("_scaled(x)(C2E[1])", "_scaled(x)(C2E[0])", "program.source._sum"),
        ("wpfloat) * x", "wpfloat) + x", "program.source._scaled"),
        ("da_min=0.25", "da_min=0.5", "program.constants._scaled.grid.da_min"),
        ("SECOND = 2", "SECOND = 3", "program.constants._sum.Order.SECOND"),
        ('gtx.Dimension("Cell")', 'gtx.Dimension("Vertex")', "program.types.args"),
        ("wpfloat = gtx.float64", "wpfloat = gtx.float32", "program.types.args"),
    ],
)  # fmt: skip
def test_a_change_of_what_is_compiled_is_another_key(
    tmp_path: Path, plain: Request, before: str, after: str, where: str
) -> None:
    assert before in MODEL
    changed = request(tmp_path / "changed", MODEL.replace(before, after))
    assert changed.key != plain.key
    assert where in [difference.path for difference in differences(changed.ingredients, plain.ingredients)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import enum", "import enum\nimport math\n\n\ndef unrelated():\n    return math.pi\n"),
        ("da_max=4.0", "da_max=5.0"),
        ("FIRST = 1", "FIRST = 0"),
    ],
)
def test_what_is_not_compiled_does_not_matter(tmp_path: Path, plain: Request, before: str, after: str) -> None:
    assert before in MODEL
    assert request(tmp_path / "elsewhere" / "deep", MODEL.replace(before, after)).key == plain.key


def test_module_that_has_constants_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "physical.py").write_text(
        "from gt4py.eve.utils import FrozenNamespace\nconstants = FrozenNamespace(da_min=0.25)\n"
    )
    text = MODEL.replace("import_of_constants = None", "import physical").replace(
        "astype(grid.", "astype(physical.constants."
    )
    import physical

    before = request(tmp_path / "before", text)
    assert before.baked["_scaled.physical.constants.da_min"] == 0.25
    monkeypatch.setattr(physical, "constants", type(physical.constants)(da_min=0.75))
    after = request(tmp_path / "after", text)
    assert after.baked["_scaled.physical.constants.da_min"] == 0.75
    assert after.key != before.key


def test_static_values_and_tables_and_options_are_ingredients(tmp_path: Path, plain: Request) -> None:
    others = [
        plain,
        request(tmp_path / "1", static={"order": gtx.int32(1)}),
        request(tmp_path / "2", static={"order": gtx.int32(2)}),
        request(tmp_path / "3", rows=((0, 2), (1, 2), (2, 0))),  # of the same sizes: static domains need the rows
        request(tmp_path / "4", auto_optimize="False"),
        request(tmp_path / "5", optimization_args="{'scan_loop_unrolling': True}"),
        request(tmp_path / "6", optimization_args="{'optimization_hooks': {TOP_LEVEL: hook}}"),
    ]
    assert len({other.key for other in others}) == len(others)


HOOKS = """
import functools

RATE = 1.0

def hook(sdfg, *, strong=True):
    return None

def _logged(function):
    @functools.wraps(function)
    def call(sdfg):
        return function(sdfg)
    return call

def _silent(function):
    @functools.wraps(function)
    def call(sdfg):
        function(sdfg)
    return call

logged = _logged(hook)

def with_inner(sdfg):
    return [RATE for _ in range(3)]

class Hook:
    strength = 1

    def __call__(self, sdfg):
        return None

    def apply(self, sdfg):
        return Hook.strength

def make(value):
    def hook(sdfg):
        return value
    return hook

def other(sdfg):
    return {1, 2, 3} if sdfg in {"a", "b"} else None

one, two = lambda sdfg: 1, lambda sdfg: 2
"""


@pytest.mark.parametrize(
    ("hook", "before", "after"),
    [
        ("hook", "return None", "return 0"),
        ("hook", "strong=True", "strong=False"),
        ("functools.partial(hook, 1)", "hook, 1", "hook, 2"),
        ("with_inner", "RATE = 1.0", "RATE = 2.0"),
        ("Hook()", "return None", "return 0"),
        ("Hook().apply", "return Hook.strength", "return -Hook.strength"),
        ("logged", "_logged(hook)", "_silent(hook)"),
        ("one", "one, two = lambda sdfg: 1, lambda sdfg: 2", "two, one = lambda sdfg: 1, lambda sdfg: 2"),
        ("make(1)", "make(1)", "make(2)"),
        ("[make(1), make(2)]", "make(1)", "make(3)"),
    ],
)
def test_hook_of_the_optimization_is_known_by_its_code_and_all_that_it_reaches(
    tmp_path: Path, hook: str, before: str, after: str
) -> None:
    def described(directory: str, text: str) -> Any:
        return describe(load(tmp_path / directory, text).chosen)

    text = f"{HOOKS}\nchosen = {hook}\n"
    assert before in text
    assert described("again", text) == described("first", text)
    assert described("changed", text.replace(before, after)) != described("first", text)


def test_helpers_of_one_name_and_text_are_told_apart(tmp_path: Path) -> None:
    helper = """
import gt4py.next as gtx
from gt4py.eve.utils import FrozenNamespace
Edge = gtx.Dimension("Edge")
N = FrozenNamespace(C={value})

@gtx.field_operator
def helper(x: gtx.Field[[Edge], gtx.float64]) -> gtx.Field[[Edge], gtx.float64]:
    return N.C * x
"""
    first, second, other = (
        load(tmp_path / name, helper.format(value=value)).helper for name, value in (("a", 1.5), ("b", 2.0), ("c", 3.5))
    )
    assert describe([first, second]) != describe([other, second])
    assert describe([first, first]) != describe([first, second])


def test_description_is_the_same_in_every_process(tmp_path: Path, warm_python: WarmPython) -> None:
    """Also of sets, which processes order differently: by the hashes of texts, and by the addresses of functions."""
    script = tmp_path / "script.py"
    script.write_text(
        f"{HOOKS}\nimport json\nfrom gtstub.frameworks.gt4py.describe import describe\n"
        'source = \'def anonymous(sdfg):\\n    return [x for x in sdfg if x in {"a", "b", "c"}]\'\n'
        "exec(source)  # without a text\n"
        "chosen = [hook, logged, with_inner, Hook(), Hook().apply, make(1), other, anonymous, {'b', 'a', 'c'}]\n"
        "def again(value):\n    def hook(sdfg):\n        return again, value\n    return hook\n"
        "lambdas = [lambda sdfg: 1, lambda sdfg: 2, lambda sdfg: 3]\n"
        "chosen += [frozenset([*lambdas, again(1), again(2), again('a'), 'b', 1.5]), again(3)]\n"
        "padding = [object() for _ in range(__import__('os').getpid() % 97)]\n"
        "print(json.dumps(describe(chosen)))\n"
    )
    seeded = {**os.environ, "PYTHONHASHSEED": "77"}
    fresh = subprocess.run([sys.executable, script], env=seeded, capture_output=True, text=True, check=True)
    forked = warm_python.run(script, env=os.environ)  # with the seed of its server
    assert forked.stdout == fresh.stdout, forked.stderr
    assert json.loads(fresh.stdout)


def test_flags_of_the_environment_are_ingredients(
    tmp_path: Path, plain: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXXFLAGS", "-O0 -DOTHER")
    assert request(tmp_path / "flags").key != plain.key
    monkeypatch.setenv("CXXFLAGS", "-O0 -march=native")
    assert request(tmp_path / "native").ingredients["cpu"] != []


def test_flags_may_change_between_the_programs_of_a_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXXFLAGS", raising=False)
    backend = make_backend(gpu=False)
    monkeypatch.setattr("tests.frameworks.gt4py.test_fingerprint.make_backend", lambda **_: backend)
    plain = request(tmp_path / "plain")
    monkeypatch.setenv("CXXFLAGS", "-O0")
    changed = request(tmp_path / "changed")
    found = {each.path for each in differences(plain.ingredients, changed.ingredients)}
    assert found == {"cpu", "dace_config.overrides.compiler.cpu.args"}


def test_what_is_compiled_in_is_said_by_name(tmp_path: Path) -> None:
    asked = request(tmp_path, static={"order": gtx.int32(2)})
    assert asked.baked == {
        "_scaled.grid.da_min": 0.25,
        "Cell.size": 3,
        "Edge.size": 3,
        "order": 2,
        "_sum.Order.SECOND": 2,
    }


def test_table_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connectivity = table(load(tmp_path, MODEL), *ROWS)
    first = fingerprint._table(connectivity)
    monkeypatch.setattr(type(connectivity), "asnumpy", lambda _: pytest.fail("The table is read again."))
    assert fingerprint._table(connectivity) is first


def test_values_of_other_types_are_others() -> None:
    values = [1, True, 1.0, "1", np.int32(1), np.int64(1), np.float32(1), np.float64(1)]
    descriptions = [repr(describe(value)) for value in values]
    assert len(set(descriptions)) == len(values), descriptions


def test_what_cannot_be_described_is_refused() -> None:
    itself: list[Any] = []
    itself.append(itself)
    with pytest.raises(CacheError) as caught:
        describe(itself)
    assert str(caught.value) == (
        "An object of type 'list', which a program or its backend uses, contains itself: it cannot be part of a key."
    )
    with pytest.raises(CacheError) as caught, Path(__file__).open() as file:
        describe(file)
    assert str(caught.value).startswith(
        "An object of type 'TextIOWrapper', which a program or its backend uses, cannot be described ("
    )


def test_keys_have_the_digests_of_gtstubs_own_files() -> None:
    assert versions()["gtstub"]["files"] == own_files()


def test_keys_have_the_version_of_gt4py_whatever_its_own_keys_have(monkeypatch: pytest.MonkeyPatch) -> None:
    assert versions()["gt4py"][0] == version("gt4py")
    monkeypatch.setattr(config, "BUILD_CACHE_VERSION_ID", "mine")  # as GT4PY_BUILD_CACHE_VERSION_ID sets it
    assert versions()["gt4py"][:2] == [version("gt4py"), "mine"]


# --- Variants of one program ------------------------------------------------------------------------------------------


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of programs and operators whose trees were read, in order."""
    read: list[str] = []
    tree = Reader._tree

    def counted(self: Reader, operator: Any, node: Any, *args: Any) -> str:
        read.append(str(node.id))
        return tree(self, operator, node, *args)

    monkeypatch.setattr(Reader, "_tree", counted)
    return read


def options_of(module: ModuleType, *orders: int) -> CompileOptions:
    provider = {"C2E": table(module, *ROWS)}
    return CompileOptions(backend=make_backend(gpu=False), offset_provider=provider, static_args={"order": orders})


def variants(module: ModuleType, *orders: int) -> list[Request]:
    return framework.requests(module.sums, options_of(module, *orders))


def test_a_program_is_read_once_for_all_its_variants(tmp_path: Path, readings: list[str]) -> None:
    module = load(tmp_path, MODEL)
    (alone,) = variants(module, 1)
    once = list(readings)
    assert once.count("sums") == 1
    readings.clear()
    first, second, third = variants(module, 1, 2, 3)
    assert readings == once
    assert first.key == alone.key
    assert [each.key for each in (second, third)] == [variants(module, order)[0].key for order in (2, 3)]
    assert [each.baked["order"] for each in (first, second, third)] == [1, 2, 3]


def test_a_program_is_read_again_for_the_next_compilation_and_refused_if_its_file_was_edited(
    tmp_path: Path, readings: list[str]
) -> None:
    module = load(tmp_path, MODEL)
    (before,) = variants(module, 1)
    readings.clear()
    (same,) = variants(module, 1)
    assert "sums" in readings
    assert same.key == before.key
    file = tmp_path / "model.py"
    file.write_text(MODEL.replace("_sum(x, order, out=out)", "_sum(x, order + 0, out=out)"))
    with pytest.raises(SourceError, match="the source of 'sums' at "):
        variants(module, 1)
    (after,) = variants(load(tmp_path, file.read_text()), 1)
    assert after.key != before.key


def test_a_program_that_changes_between_two_variants_is_refused(tmp_path: Path, readings: list[str]) -> None:
    module = load(tmp_path, MODEL)
    (before,) = variants(module, 1)
    with fingerprint.one_reading():
        backend, concrete = next(framework._concrete(module.sums, options_of(module, 1)))
        first = backend.request(concrete)
        (tmp_path / "model.py").write_text(MODEL.replace("_sum(x, order, out=out)", "_sum(x, order + 0, out=out)"))
        with pytest.raises(SourceError, match="the source of 'sums' at "):
            backend.request(concrete)
    assert first.key == before.key
