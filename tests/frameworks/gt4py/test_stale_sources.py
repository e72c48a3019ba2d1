"""
Models whose files, constants or environment change after they were imported: the key describes what is lowered.

An entry made from anything else than its key says gives wrong results for good.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next import GridType
from gt4py.next.backend import DEFAULT_TRANSFORMS
from gt4py.next.program_processors.runners.dace.transformations import GT4PyAutoOptHook

from gtstub.errors import CacheError, SourceError
from gtstub.frameworks.gt4py import backend as plugin
from gtstub.frameworks.gt4py.stages import LoweredProgramDef
from tests.frameworks.gt4py.test_stages import I, concrete

OPS = """
import gt4py.next as gtx
from gt4py.eve.utils import FrozenNamespace

I = gtx.Dimension("I")
FieldI = gtx.Field[[I], gtx.float64]
grid = FrozenNamespace(factor=2.0)

@gtx.field_operator
def _scaled(a: FieldI) -> FieldI:
    return 1.0 * grid.factor * a

@gtx.field_operator
def scaled(a: FieldI) -> FieldI:
    return _scaled(a)
"""

MODEL = """
import gt4py.next as gtx
import ops

FieldI = ops.FieldI
scaled = ops.scaled

@gtx.program
def scale(a: FieldI, out: FieldI):
    scaled(a, out=out)
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a model of two files, which `fresh` imports."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "ops.py").write_text(OPS)
    (tmp_path / "model.py").write_text(MODEL)
    yield tmp_path
    for name in ("ops", "model"):
        sys.modules.pop(name, None)


def fresh() -> ModuleType:
    """The model as a new process imports it."""
    for name in ("ops", "model"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return importlib.import_module("model")


def edit(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def key(backend: plugin.StubBackend, program: Any) -> str:
    return backend.request(concrete(program.definition_stage)).key


def lowered(backend: plugin.StubBackend, program: Any) -> str:
    """gt4py's IR of a program, as a build of it lowers it."""
    result = backend.transforms(concrete(program.definition_stage))
    assert isinstance(result, LoweredProgramDef)
    return str(result.data)


def result(backend: plugin.StubBackend, program: Any) -> float:
    a, out = gtx.as_field([I], np.ones(4)), gtx.as_field([I], np.zeros(4))
    program.with_backend(backend)(a, out, offset_provider={})
    (value,) = np.unique(out.asnumpy()).tolist()
    return float(value)


def test_entry_of_an_edited_file_is_not_that_of_the_old_text(backend: plugin.StubBackend, model: Path) -> None:
    old = fresh()
    edit(model / "ops.py", "1.0 * grid", "2.5 * grid")
    assert result(backend, old.scale) == 2.0  # what gt4py holds since the operator was decorated
    new = fresh()
    assert key(backend, new.scale) != key(backend, old.scale)
    assert result(backend, new.scale) == 5.0
    edit(model / "ops.py", "2.5 * grid", "1.0 * grid")
    assert key(backend, fresh().scale) == key(backend, old.scale)


def test_constant_that_is_bound_again_does_not_change_an_operator(backend: plugin.StubBackend, model: Path) -> None:
    model_ = fresh()
    before = key(backend, model_.scale), lowered(backend, model_.scale)
    ops = sys.modules["ops"]
    ops.grid = type(ops.grid)(factor=5.0)
    assert (key(backend, model_.scale), lowered(backend, model_.scale)) == before
    assert backend.request(concrete(model_.scale.definition_stage)).baked == {"_scaled.grid.factor": 2.0}

    edit(model / "ops.py", "factor=2.0", "factor=5.0")
    assert key(backend, fresh().scale) != before[0]


def test_program_whose_file_was_edited_is_refused(backend: plugin.StubBackend, model: Path) -> None:
    """gt4py parses a program again when it is compiled, but Python runs what it was."""
    old = fresh()
    before = key(backend, old.scale)
    edit(model / "model.py", "    scaled(a", "    # more\n    scaled(a")
    assert key(backend, old.scale) == before
    edit(model / "model.py", "out=out", "out=out[1:]")
    for use in (key, result):
        with pytest.raises(SourceError, match=r"^Program 'scale' cannot be compiled: .* has changed since the import"):
            use(backend, old.scale)
    assert key(backend, fresh().scale) != before
    edit(model / "model.py", "out=out[1:]", "out=out")
    assert key(backend, old.scale) == before


def test_program_is_lowered_as_its_key_says_if_its_file_changes_in_between(
    backend: plugin.StubBackend, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fresh()
    undisturbed = lowered(backend, old.scale)
    real = plugin.StubBackend.request

    def request(self: plugin.StubBackend, *args: Any) -> Any:
        found = real(self, *args)
        edit(model / "model.py", "out=out", "out=out[1:]")
        return found

    monkeypatch.setattr(plugin.StubBackend, "request", request)
    slow = plugin.make_backend(gpu=False, auto_optimize=False)
    assert slow is not None
    assert lowered(slow, old.scale) == undisturbed


def test_caches_of_gt4py_do_not_confuse_two_imports_of_a_file(backend: plugin.StubBackend, model: Path) -> None:
    """Their keys have the present text of an operator, also for one that was decorated with another text."""
    old = fresh()
    edit(model / "ops.py", "1.0 * grid", "2.5 * grid")
    new = fresh()
    for own in (backend, DEFAULT_TRANSFORMS):
        transforms = own.transforms if own is backend else own
        inputs = [concrete(each.scale.past_stage) for each in (old, new)]
        ours = [str(transforms(each).data) for each in inputs]
        # If gt4py's own no longer confuse them, `uncached` can go.
        assert (ours[0] == ours[1]) == (own is DEFAULT_TRANSFORMS)


def test_operators_decorated_elsewhere_are_known_by_what_they_were_made_of(
    backend: plugin.StubBackend, model: Path
) -> None:
    """Decorators called as functions, on functions of another file and on closures."""
    (model / "ops.py").write_text(
        OPS.replace("@gtx.field_operator\ndef scaled", "def scaled") + "def make(factor):\n"
        "    local = FrozenNamespace(factor=factor)\n"
        "    def inner(a: FieldI) -> FieldI:\n"
        "        return local.factor * a\n"
        "    return inner\n"
    )
    chosen = "scaled = ops.scaled"
    keys = set()
    for choice in (
        "gtx.field_operator(ops.scaled)",
        "gtx.field_operator(ops.make(2.0))",
        "gtx.field_operator(ops.make(3.0))",
    ):
        name = "inner" if "make" in choice else "scaled"
        text = MODEL.replace(chosen, f"{name} = {choice}").replace("    scaled(", f"    {name}(")
        (model / "model.py").write_text(text)
        program = fresh().scale
        made = key(backend, program)
        assert made not in keys
        keys.add(made)
        edit(model / "ops.py", "import gt4py.next as gtx", "# more\nimport gt4py.next as gtx")
        assert key(backend, fresh().scale) == made


def test_comments_and_places_do_not_matter(backend: plugin.StubBackend, model: Path) -> None:
    before = key(backend, fresh().scale)
    edit(
        model / "ops.py",
        "    return _scaled(a)",
        '    """Says what it does."""\n    return (\n        _scaled(a)  # why\n    )',
    )
    edit(model / "model.py", "    scaled(a, out=out)", "\n    # first\n    scaled(a,   out=out)")
    assert key(backend, fresh().scale) == before


def test_grid_type_of_a_program_and_of_an_operator_matters(backend: plugin.StubBackend, model: Path) -> None:
    fresh()
    for each in (sys.modules["model"].scale, sys.modules["ops"].scaled):
        assert key(backend, each.with_grid_type(GridType.UNSTRUCTURED)) != key(backend, each)


SCAN = """
import gt4py.next as gtx
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
@gtx.scan_operator(axis=K, forward=True, init=0.0)
def scan(carry: gtx.float64, a: gtx.float64) -> gtx.float64:
    return carry + a
"""


@pytest.mark.parametrize(
    ("before", "after"), [("True", "False"), ("0.0", "-0.0"), ('"K"', '"L"'), ("carry +", "carry -")]
)
def test_attributes_of_a_scan_matter(backend: plugin.StubBackend, model: Path, before: str, after: str) -> None:
    (model / "ops.py").write_text(SCAN + "FieldI = gtx.Field[[K], gtx.float64]\nscaled = scan\n")
    edit(model / "model.py", "    scaled(", "    scan(")
    edit(model / "model.py", "scaled = ", "scan = ")
    first = key(backend, fresh().scale)
    edit(model / "ops.py", before, after)
    assert key(backend, fresh().scale) != first


# --- The process that builds ------------------------------------------------------------------------------------------

HOOKS = """
RATE = 1.0

def hook(sdfg):
    return RATE
"""


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda hooks, _: setattr(hooks, "RATE", 2.0), "backend.translation.constants.hook.RATE"),
        (lambda _, patch: patch.setenv("CXXFLAGS", "-O0"), "dace_config.overrides.compiler.cpu.args"),
    ],
)
def test_nothing_is_built_where_hooks_or_environment_are_others(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], change: Any, where: str
) -> None:
    """As in gt4py's worker processes, which import hooks again and keep the environment they were started with."""
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(model / "cache"))
    monkeypatch.delenv("CXXFLAGS", raising=False)
    (model / "hooks.py").write_text(HOOKS)
    monkeypatch.delitem(sys.modules, "hooks", raising=False)
    importlib.invalidate_caches()
    hooks = importlib.import_module("hooks")
    options = {"optimization_hooks": {GT4PyAutoOptHook.TopLevelDataFlowPost: hooks.hook}}
    backend = plugin.make_backend(gpu=False, optimization_args=options)
    assert backend is not None
    inp = concrete(fresh().scale.definition_stage)
    before = backend.request(inp).key
    program = backend.transforms(inp)
    assert isinstance(program, LoweredProgramDef)
    change(hooks, monkeypatch)
    with pytest.raises(CacheError) as caught:
        backend.executor(program)
    assert str(caught.value).startswith(
        "Program 'scale' cannot be built: these ingredients of its key are not the same in the process that builds it: "
    )
    assert f"'{where}'" in str(caught.value)
    assert "gtstub: could not build scale: " in capsys.readouterr().err  # and it is not said to be under way later
    # Another program of this backend is one of the new hook and of the new flags.
    assert backend.request(inp).key != before


def test_field_operator_that_is_called_directly_and_whose_file_was_edited_is_refused(
    backend: plugin.StubBackend, model: Path
) -> None:
    fresh()
    ops = sys.modules["ops"]
    before = key(backend, ops._scaled)
    edit(model / "ops.py", "1.0 * grid", "2.5 * grid")
    with pytest.raises(SourceError, match="the source of '_scaled' at "):
        key(backend, ops._scaled)
    fresh()
    assert key(backend, sys.modules["ops"]._scaled) != before
