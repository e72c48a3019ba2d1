"""Builds cache entries: DaCe compiles the SDFG while the C compiler compiles its stub; both are published together."""

from __future__ import annotations

import copy
import dataclasses
import gzip
import json
import os
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dace

from gtstub import settings
from gtstub.entries.cache.counts import MISSES, count
from gtstub.entries.cache.entry import COMPILED_SDFG, LOWERED_SDFG, STAGE, Entry
from gtstub.entries.cache.lookup import Request, toolchain_of
from gtstub.entries.cache.manifest import BuildStage, Built, Machine, Manifest
from gtstub.entries.cache.prune import limit_size
from gtstub.entries.cache.store import Cache
from gtstub.entries.toolchain.arch import arch, named_arch, toolkit
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.errors import ToolchainError
from gtstub.frameworks.dace import dace_config, pooled
from gtstub.frameworks.dace.arguments import check_arguments
from gtstub.frameworks.dace.build_caches import build_caches, no_build_caches
from gtstub.frameworks.dace.dace_config import Setting
from gtstub.frameworks.dace.internals import compile_sdfg
from gtstub.frameworks.dace.map_checks import with_map_checks
from gtstub.frameworks.dace.saved import ASSIGNMENTS, assignments_of
from gtstub.frameworks.dace.streams import one_stream
from gtstub.stub.signature import documents
from gtstub.stub.signature.model import Device, ProgramSignature, SdfgSignature

if TYPE_CHECKING:
    from gtstub.stub.codegen.stub import Stub

NOTHING: Mapping[str, str] = {}
NO_STAGES: Mapping[str, Mapping[str, Any]] = {}

GPU_COMPILERS = {
    "cuda": "install the CUDA toolkit, and put 'nvcc' on PATH or name it in CUDACXX",
    "rocm": "install ROCm, and put 'hipcc' on PATH or name it in HIPCXX",
}
"""What to do without the compiler of a GPU."""


def with_gpu_arch(
    device: Device, overrides: Mapping[str, Any], detect: Callable[[], str | None] = lambda: None
) -> Mapping[str, Any]:
    """
    Settings of the DaCe configuration, with the architecture of the GPU for a program that runs on one: that in
    GTSTUB_ARCH, or else what `detect` finds. What `overrides` says comes first.
    """
    if device == "cpu" or not (known := named_arch("gpu").removeprefix("sm_") or detect()):
        return overrides
    return {"compiler.cuda.cuda_arch": known, "compiler.cuda.hip_arch": known, **overrides}


@dataclasses.dataclass(frozen=True)
class Build:
    """
    How programs for a device are built. `build_type` is CMake's, and `overrides` are settings of the DaCe
    configuration. `device_name` is the device's name in the manifest.
    """

    device: Device
    device_name: str
    build_type: str
    overrides: Mapping[str, Any]

    @property
    def settings(self) -> Mapping[str, Setting]:
        """The DaCe configuration of a build in the current environment."""
        return dace_config.configuration(self.device, self.build_type, self.overrides)

    @property
    def flags(self) -> str:
        """All compiler flags for CPU code, including those of host code in GPU programs."""
        names, settings = ("compiler.cpu.args", "compiler.cuda.args"), self.settings
        return " ".join(settings[name].value for name in names[: 1 if self.device == "cpu" else 2])

    @property
    def cmake(self) -> tuple[str, list[str]]:
        """
        The C++ compiler that DaCe names to CMake, and the arguments that it passes besides its own. The first is empty
        if CXX has arguments, because then CMake must separate them.
        """
        settings = self.settings
        cxx = settings["compiler.cpu.executable"].value or os.environ.get("CXX") or "c++"
        return cxx if len(cxx.split()) == 1 else "", shlex.split(settings["compiler.extra_cmake_args"].value)

    @property
    def ingredients(self) -> dict[str, Any]:
        """The part of the DaCe configuration that is in the key, and whether maps are followed by checks."""
        found = dace_config.ingredients(self.device, self.build_type, self.overrides)
        return found | {"map_checks": True} if settings.build_checks() else found

    def context(self) -> AbstractContextManager[None]:
        """Sets DaCe's configuration for a build."""
        return dace_config.frozen(self.device, self.build_type, self.overrides)

    def toolchain(self, cache: Cache) -> Toolchain:
        """The compilers with their flags. Raises ToolchainError as `compiler.find` does."""
        return toolchain_of(cache, self.cmake)

    def publish(
        self,
        request: Request,
        sdfg: dace.SDFG,
        stub: Stub,
        program: ProgramSignature,
        signature: SdfgSignature,
        lowered: Mapping[str, Any],
        names: Mapping[str, str] = NOTHING,
        compiled: Path | None = None,
        stages: Mapping[str, Mapping[str, Any]] = NO_STAGES,
        measured: Sequence[BuildStage] = (),
    ) -> Entry:
        """
        Builds an SDFG and its stub, and publishes the entry. `lowered` is the JSON form of the SDFG before anything
        changed it here. `names` are the names in the signatures of those arguments of the SDFG that have other names
        there. `compiled` is the library of an SDFG that was compiled already. `stages` are the SDFGs before `lowered`
        by name. `measured` are the stages of the build so far. The caller has entered `context`.
        """
        configuration, toolchain = self.settings, self.toolchain(request.cache)
        texts = {
            "program.json": documents.program_to_json(program),
            "sdfg.json": documents.sdfg_to_json(signature),
            **stub.files,
        }
        begin = time.monotonic()
        with request.cache.private_directory(request.key) as private:
            directory = private / "entry"
            directory.mkdir()
            for file, text in texts.items():
                (directory / file).write_text(text, encoding="utf-8")
            stub_library = f"{program.name}_stub.so"
            started = time.time()
            cpu = toolchain.compiled_features(self.build_type, configuration["compiler.cpu.args"].value)
            build = toolchain.start(directory / stub.source, directory / stub_library, cpu)
            try:
                if compiled is None:
                    caches = build_caches(request.cache.root, toolchain, configuration, sdfg, self.device)
                    with known_by(sdfg, stub.interface):
                        made, library = self.compile(sdfg, private / "dace", settings.build_checks(), caches)
                    measured = (*measured, *_times_of_dace(started, private / "dace" / COMPILED_SDFG))
                else:
                    library = Path(shutil.copy(compiled, private))
            except BaseException:
                build.cancel()
                raise
            build.wait()
            stub_stage = BuildStage.since(started, "stub", (directory / stub_library).stat().st_mtime)
            saving = time.time()
            if compiled is None:
                check_arguments(made, signature, names)
                raw = json.loads(gzip.decompress((private / "dace" / COMPILED_SDFG).read_bytes()))
                raw[ASSIGNMENTS] = assignments_of(made)
            else:
                raw = lowered
            _save(raw, directory / COMPILED_SDFG)
            _save(lowered, directory / LOWERED_SDFG)
            for stage, document in stages.items():
                _save(document, directory / f"{STAGE}{stage}.{LOWERED_SDFG}")
            library.rename(directory / signature.library)
            manifest = Manifest(
                name=request.program,
                stub=stub_library,
                library=signature.library,
                workspaces={workspace.storage: workspace.device for workspace in signature.workspaces},
                ingredients=request.ingredients,
                baked=request.baked,
                machine=Machine(  # the hardware that both libraries require
                    cpu=cpu,
                    device=self.device_name,
                    arch="" if self.device == "cpu" else arch("gpu"),
                ),
                built=Built(
                    seconds=round(time.monotonic() - begin, 3),
                    stages=(*measured, stub_stage, BuildStage.since(saving, "saving")),
                ),
            )
            entry = request.cache.publish(directory, request.key, manifest)
        count(request.cache.root, MISSES)
        limit_size(request.cache)
        return entry

    def compile(
        self, sdfg: dace.SDFG, folder: Path, map_checks: bool, caches: AbstractContextManager[None] | None = None
    ) -> tuple[dace.SDFG, Path]:
        """
        Builds the SDFG with DaCe in `folder`. Returns the SDFG as it was compiled, and the path of its library. With
        `map_checks`, debug checks can look at what each map writes. `caches` are those of DaCe, if it uses them. The
        caller has entered `context`.
        """
        if map_checks:
            sdfg = with_map_checks(sdfg)
        try:
            with one_stream(), caches or no_build_caches(self.settings):
                return compile_sdfg(sdfg, folder)
        except Exception as error:
            if self.device == "cpu" or toolkit(self.device):
                raise
            raise ToolchainError(
                f"A program for the device '{self.device}' needs a compiler that was not found:"
                f" {GPU_COMPILERS[self.device]}."
            ) from error


def _times_of_dace(begin: float, saved: Path) -> tuple[BuildStage, BuildStage]:
    """DaCe generates code and compiles it in one call, which began at the time `begin`. It saves the SDFG between."""
    end = time.time()
    generated = min(max(begin, saved.stat().st_mtime), end)  # A file server may have a clock of its own.
    return BuildStage.since(begin, "generation", generated), BuildStage.since(generated, "compilation", end)


@contextmanager
def known_by(sdfg: dace.SDFG, digest: str) -> Iterator[None]:
    """While an SDFG is compiled, its library gets the digest by which a stub knows it, and the memory of its arrays."""
    before = copy.deepcopy(sdfg.global_code)
    name = f"__gtstub_interface_{sdfg.name}"
    sdfg.append_global_code(
        f'extern "C" {{\nextern const char {name}[];\nconst char {name}[] = "{digest}";\n}}\n{pooled.code(sdfg.name)}',
        "frame",
    )
    try:
        with pooled.linked():
            yield
    finally:
        sdfg.global_code = before


def _save(raw: Mapping[str, Any], path: Path) -> None:
    """Saves the JSON form of an SDFG as DaCe does, but without the path of its build."""
    attributes = {name: value for name, value in raw["attributes"].items() if name != "build_folder"}
    text = json.dumps({**raw, "attributes": attributes})
    path.write_bytes(gzip.compress(text.encode(), compresslevel=6, mtime=0))
