"""Checks of SDFGs against gt4py's rules while gt4py makes them, and entries that keep the stages."""

from __future__ import annotations

import dataclasses
import os
import warnings
from pathlib import Path
from typing import Any

import dace
import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next.program_processors.runners.dace.transformations import GT4PyAutoOptHook

from gtstub.entries.cache.entry import LOWERED_SDFG
from gtstub.frameworks.gt4py.backend import StubBackend, make_backend
from gtstub.frameworks.gt4py.internals import ConcreteProgramDef
from gtstub.frameworks.gt4py.sdfg_checks import SdfgRuleWarning, warn_of_broken_rules, warning_hooks
from gtstub.stub.sdfg.read import of_document, read
from gtstub.tools.rules import check
from tests.frameworks.gt4py.test_stages import I, concrete, double_plus_one
from tests.support.cli import run
from tests.support.gt4py_programs import RACING, lower


def compiled(backend: StubBackend) -> Path:
    """The entry of a program that was compiled and called."""
    inp: ConcreteProgramDef[Any, Any] = concrete(double_plus_one.definition_stage)
    out = gtx.as_field([I], np.zeros(5))
    backend.compile(inp.data, inp.args)(gtx.as_field([I], np.arange(5.0)), out, offset_provider={})
    np.testing.assert_array_equal(out.asnumpy(), 2.0 * (np.arange(5.0) + 1.0))
    (manifest,) = Path(os.environ["GTSTUB_CACHE_DIR"]).glob("double_plus_one-*/manifest.json")
    return manifest.parent


def backend_with(hooks: Any) -> StubBackend:
    backend = make_backend(gpu=False, optimization_args={"optimization_hooks": hooks})
    assert backend is not None
    return backend


def test_hooks_warn_of_a_race_at_the_stage_that_has_it() -> None:
    case = dataclasses.replace(
        RACING, name="racing", options={"optimization_args": {"optimization_hooks": warning_hooks()}}
    )
    with pytest.warns(SdfgRuleWarning) as caught:
        lower(case)
    texts = [str(each.message) for each in caught if each.category is SdfgRuleWarning]
    assert all("at stage 'TopLevelDataFlow" in text for text in texts)
    assert (
        "SDFG 'extrapolate_temporally_exner_pressure' breaks rule 1 (ADR 3) at stage 'TopLevelDataFlowPost': 'exner_pr'"
        in texts[-1]
    )


def test_the_final_sdfg_of_that_program_has_no_race() -> None:
    document = lower(RACING).source.source_code
    assert [
        each.data for each in check(of_document(document)).findings if each.rule == "1" and each.level == "info"
    ] == ["exner_pr"]


def test_an_sdfg_of_another_form_is_a_warning() -> None:
    with pytest.warns(SdfgRuleWarning, match="^At stage 'final', SDFG 'x' is not in the form"):
        warn_of_broken_rules({"type": "SDFG", "attributes": {"name": "x"}}, "final")


def rename_variables(sdfg: dace.SDFG) -> None:
    """Breaks rule 9, and the program still computes the same."""
    for node, state in sdfg.all_nodes_recursive():
        if isinstance(node, dace.nodes.MapEntry):
            (variable,) = node.map.params
            state.scope_subgraph(node).replace(variable, "j")
            node.map.params = ["j"]


def test_a_build_warns_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "quiet"))
    backend = backend_with({GT4PyAutoOptHook.TopLevelDataFlowPost: rename_variables})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled(backend)
    assert [each for each in caught if each.category is SdfgRuleWarning] == []

    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "loud"))
    monkeypatch.setenv("GTSTUB_CHECK_SDFG", "1")
    with pytest.warns(SdfgRuleWarning, match=r"breaks rule 9 \(ADR 11\) at stage 'final': 'j' in state"):
        compiled(backend)


def test_an_entry_keeps_its_stages_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    backend = backend_with({GT4PyAutoOptHook.TopLevelDataFlowPost: lambda sdfg: called.append(sdfg.name)})
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "plain"))
    plain = compiled(backend)
    assert not list(plain.glob("stage-*"))
    called.clear()

    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("GTSTUB_KEEP_STAGES", "1")
    entry = compiled(backend)
    assert entry.name == plain.name, "GTSTUB_KEEP_STAGES must be outside of the key."
    assert called == ["double_plus_one"], "The hooks of the user must be called, too."
    stages = sorted(file.name for file in entry.glob("stage-*"))
    assert stages[0] == "stage-00-lowered.sdfg.json.gz"
    assert stages[1] == "stage-01-TopLevelDataFlowPre.sdfg.json.gz"
    assert stages[-1] == f"stage-{len(stages) - 1:02}-TopLevelDataFlowPost.sdfg.json.gz"
    assert all(read(entry / name).name == "double_plus_one" for name in stages)

    names = run("check", "--stages", str(entry), "--jq", ".sdfgs[].file").stdout.splitlines()
    assert [Path(name).name for name in names] == [*stages, LOWERED_SDFG]
    assert run("cache", "verify", "--cache", str(tmp_path / "kept")).exit_code == 0


def test_a_program_that_is_not_optimised_has_no_stages(backend: StubBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_KEEP_STAGES", "1")
    assert not list(compiled(backend).glob("stage-*"))
