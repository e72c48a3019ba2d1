"""The backend in use: what it builds, when it builds nothing, and what it hands to its programs."""

from __future__ import annotations

import dataclasses
import gzip
import inspect
import os
import pickle
import shutil
from pathlib import Path
from typing import Any, cast

import dace
import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next import common, config
from gt4py.next.instrumentation import metrics
from gt4py.next.program_processors.runners.dace.workflow import backend as dace_backend
from icon4py.model.common import model_backends, model_options

import gtstub
from gtstub import _host
from gtstub.entries.cache.counts import counts
from gtstub.entries.cache.entry import Entry
from gtstub.errors import SignatureError, ToolchainError
from gtstub.frameworks import icon4py
from gtstub.frameworks.dace import build as dace_build
from gtstub.frameworks.gt4py import backend as plugin
from gtstub.frameworks.gt4py import workflow
from tests.support import small_programs as small
from tests.support.goldens import FOLDER
from tests.support.gt4py_programs import CASES, aligned_workspace, lower


def make_backend(name: str = "in_place", **options: Any) -> plugin.StubBackend:
    backend = plugin.make_backend(gpu=False, **{**CASES[name].options, **options})
    assert backend is not None
    return backend


def build(name: str = "in_place") -> Entry:
    backend = make_backend(name)
    artifact = backend.executor(backend.transforms(lower(CASES[name]).concrete))
    assert isinstance(artifact, Entry)
    return artifact


def call(program: _host.Program, name: str) -> None:
    lowering = lower(CASES[name])
    program(*lowering.args, offset_provider=lowering.offset_provider)


@pytest.fixture(scope="session")
def built_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with one entry, that of `in_place`."""
    root = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GTSTUB_CACHE_DIR", str(root))
        build()
    return root


@pytest.fixture
def root(built_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, to be changed."""
    shutil.copytree(built_root, tmp_path / "cache")
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("Something is compiled.")

    monkeypatch.setattr(dace_build, "compile_sdfg", refuse)
    monkeypatch.setattr("gtstub.entries.toolchain.compiler.Toolchain.start", refuse)


def entries(root: Path) -> list[Path]:
    return [path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")]


# --- Building ---------------------------------------------------------------------------------------------------------


def test_parameters_are_those_of_gt4py() -> None:
    ours = inspect.signature(plugin.make_backend).parameters
    theirs = inspect.signature(dace_backend.make_dace_backend).parameters
    (gpu, *ours_else), (_, *theirs_else) = (
        [(p.name, p.default) for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
        for parameters in (ours, theirs)
    )
    assert gpu == ("gpu", None)  # because icon4py says 'device' instead
    assert ours_else == theirs_else


def test_either_gpu_or_device_is_said() -> None:
    assert plugin.make_backend(device=gtx.DeviceType.CPU).name == plugin.make_backend(gpu=False).name
    for said in ({}, {"gpu": False, "device": gtx.DeviceType.CPU}):
        with pytest.raises(TypeError) as caught:
            plugin.make_backend(**said)
        assert str(caught.value) == "make_backend() takes either 'gpu' or 'device'."


def test_a_stream_is_for_a_gpu() -> None:
    with pytest.raises(TypeError) as caught:
        plugin.make_backend(gpu=False, stream=None)
    assert str(caught.value) == "make_backend() takes 'stream' only for a GPU."
    for stream in (None, 64):
        assert cast(plugin.StubBackend, plugin.make_backend(gpu=True, stream=stream)).stream == stream
    assert cast(plugin.StubBackend, plugin.make_backend(gpu=True)).stream == "current"
    with pytest.raises(TypeError) as caught:
        plugin.make_backend(gpu=True, stream="default")
    assert str(caught.value) == (
        "A stream must be None, 'current', an address, or an object with '__cuda_stream__', not 'str'."
    )


def test_entry_holds_what_a_program_needs(root: Path) -> None:
    (path,) = entries(root)
    assert {file.name for file in path.iterdir()} == {
        *("in_place_stub.c", "in_place_stub.h", "in_place_stub.so", "libin_place.so"),
        *("program.json", "sdfg.json", "sdfg.json.gz", "program.sdfgz", "manifest.json"),
    }
    for kind in ("program", "sdfg"):
        assert (path / f"{kind}.json").read_bytes() == (FOLDER / "signatures" / f"in_place.{kind}.json").read_bytes()


@pytest.mark.usefixtures("no_compilation")
def test_a_build_is_a_miss_and_an_entry_that_is_found_a_hit(root: Path) -> None:
    assert counts(root) == (0, 1)
    build()
    assert counts(root) == (1, 1)


def test_entry_knows_the_stages_of_its_build(root: Path) -> None:
    (path,) = entries(root)
    built = Entry(path).manifest().built
    stages = {stage.name: stage for stage in built.stages}
    own = ("generation", "compilation", "stub", "saving")
    assert tuple(stages) == ("lowering", "translation", "bindings", *own)
    begins = [stages[name].begin for name in stages if name != "stub"]
    assert begins == sorted(begins)
    assert all(stage.seconds > 0 for stage in stages.values())
    assert stages["stub"].begin == stages["generation"].begin
    assert built.time - 600 < stages["lowering"].begin < built.time
    assert {stage.pid for stage in stages.values()} == {os.getpid()}


def test_entry_does_not_know_where_it_lies(built_root: Path) -> None:
    (path,) = entries(built_root)
    for file in path.iterdir():
        content = gzip.decompress(file.read_bytes()) if file.suffix in (".sdfgz", ".gz") else file.read_bytes()
        assert str(built_root).encode() not in content, file.name


@pytest.mark.usefixtures("no_compilation")
def test_second_build_compiles_nothing(root: Path) -> None:
    artifact = build()
    assert entries(root) == [artifact.path]
    call(make_backend().load_artifact(artifact), "in_place")


@pytest.mark.usefixtures("no_compilation")
def test_other_flags_are_another_entry(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(entries(root)) == 1
    monkeypatch.setenv("CXXFLAGS", "-O0 -DOTHER")
    with pytest.raises(AssertionError) as caught:
        build()
    assert str(caught.value) == "Something is compiled."


def test_broken_entry_is_built_again(root: Path) -> None:
    (path,) = entries(root)
    (path / "libin_place.so").unlink()
    assert build() == Entry(path)
    assert entries(root) == [path]
    Entry(path).manifest()


def test_failure_of_dace_leaves_no_entry(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(*entries(root))

    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(dace_build, "compile_sdfg", fail)
    with pytest.raises(ZeroDivisionError):
        build()
    assert entries(root) == []


def test_failure_of_the_stubs_compiler_leaves_no_entry(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(*entries(root))
    real = workflow.make_stub

    def make_stub(*signatures: Any, **options: Any) -> Any:
        stub = real(*signatures, **options)
        return dataclasses.replace(stub, files={**stub.files, stub.source: "This is not C.\n"})

    monkeypatch.setattr(workflow, "make_stub", make_stub)
    with pytest.raises(ToolchainError):
        build()
    assert [path.name for path in entries(root)] == ["failed"]


def test_argument_list_that_dace_changes_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(*entries(root))
    real = dace_build.compile_sdfg

    def compile_another(sdfg: dace.SDFG, folder: Path) -> tuple[dace.SDFG, Path]:
        sdfg.add_array("surplus", [1], dace.float64)
        return real(sdfg, folder)

    monkeypatch.setattr(dace_build, "compile_sdfg", compile_another)
    with pytest.raises(SignatureError) as caught:
        build()
    assert str(caught.value).startswith("DaCe changed the arguments of SDFG 'in_place' when it compiled it: ")
    assert entries(root) == []


def test_what_passes_between_steps_can_be_pickled() -> None:
    executor = make_backend().executor
    source = executor.translation(lower(CASES["in_place"]).compilable)
    extension = executor.bindings(source)
    assert pickle.loads(pickle.dumps(extension)) == extension
    assert pickle.loads(pickle.dumps(executor)).bindings(source) == extension


# --- Calling ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("root")
def test_gt4py_calls_the_stub_itself() -> None:
    case = CASES["in_place"]
    program = case.program().with_backend(make_backend())
    program(**case.make_arguments(), offset_provider={})
    (executable,) = program._compiled_programs.compiled_programs.values()
    assert type(executable) is _host.Program


@pytest.mark.usefixtures("root")
def test_metrics_are_switched_between_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["in_place"]
    program = case.program().with_backend(make_backend())

    def count() -> int:
        return sum(len(source.metrics[metrics.COMPUTE_METRIC].samples) for source in metrics.sources.values())

    def samples_of_a_call(level: int) -> int:
        before = count()
        monkeypatch.setattr(config, "COLLECT_METRICS_LEVEL", level)
        program(**case.make_arguments(), offset_provider={})
        return count() - before

    levels = (metrics.DISABLED, metrics.PERFORMANCE, metrics.MINIMAL, metrics.ALL)
    assert [samples_of_a_call(level) for level in levels] == [0, 1, 0, 1]


def test_workspace_is_lent() -> None:
    artifact = build("external_workspace")
    program = make_backend("external_workspace").load_artifact(artifact)
    call(program, "external_workspace")

    small_one = {gtx.DeviceType.CPU: aligned_workspace(8)}
    with pytest.raises((RuntimeError, ValueError)) as caught:
        call(
            make_backend("external_workspace", external_workspace=small_one).load_artifact(artifact),
            "external_workspace",
        )
    assert "workspace" in str(caught.value)

    with pytest.raises(RuntimeError) as caught:
        call(make_backend("external_workspace", external_workspace={}).load_artifact(artifact), "external_workspace")
    assert "workspace" in str(caught.value)


@pytest.mark.parametrize("factory", [plugin.make_backend, icon4py.make_backend])
def test_icon4py_takes_the_factory(factory: Any) -> None:
    descriptor = {"backend_factory": factory, "device": model_backends.CPU, "auto_optimize": False}
    a, b = (np.asfortranarray(np.random.default_rng(i).random((6, 4))) for i in range(2))
    domain = common.domain({small.I: (0, 6), small.K: (0, 4)})
    fields = {name: common._field(array, domain=domain) for name, array in (("a", a), ("b", b))}
    out = common._field(np.zeros((6, 4), order="F"), domain=domain)
    program = model_options.setup_program(
        program=small.explicit_domain,
        backend=descriptor,
        constant_args=fields,
        horizontal_sizes={"i_start": gtx.int32(1), "i_end": gtx.int32(5)},
        vertical_sizes={"k_start": gtx.int32(0), "k_end": gtx.int32(3)},
        offset_provider={},
    )
    program(out=out)
    expected = np.zeros((6, 4))
    expected[1:5, :3] = 0.5 * (a + b)[1:5, :3]
    np.testing.assert_array_equal(out.ndarray, expected)


def test_entry_of_a_backend_loads_by_its_path(built_root: Path) -> None:
    (path,) = entries(built_root)
    call(gtstub.load(path), "in_place")
