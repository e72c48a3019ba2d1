"""
Takes the measured program through gt4py, and keeps what its executables are loaded from.

    python -m tests.benchmarks.prepare dace FOLDER    lowers it, and writes
        entry/           a cache entry of gtstub, whose SDFG library does nothing
        variant-<i>/     the same with static arguments
        dace.pickle      the artifact of gt4py's own DaCe backend, with a copy of that library
    python -m tests.benchmarks.prepare gtfn FOLDER    builds it, and writes
        gtfn.pickle      the artifact of gt4py's GTFN backend

gt4py's own cache makes the second time quick.
"""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import dace
from gt4py.next import backend as gtx_backend
from gt4py.next.otf import arguments
from gt4py.next.program_processors.runners.dace.workflow.compilation import DaCeCompilationArtifact
from gt4py.next.program_processors.runners.gtfn import run_gtfn
from icon4py.model.atmosphere.diffusion.stencils.apply_diffusion_to_vn import apply_diffusion_to_vn

from gtstub.frameworks.dace.sdfg_signature import sdfg_signature
from gtstub.frameworks.gt4py.internals import CompilableProgramDef, ConcreteProgramDef, make_dace_backend
from gtstub.frameworks.gt4py.program_signature import program_signature
from tests.benchmarks.callables import build_variants
from tests.benchmarks.entry import build_entry
from tests.benchmarks.fields import SCALARS, offset_provider


def _compilable(backend: gtx_backend.Backend[Any]) -> CompilableProgramDef[Any, Any]:
    types = apply_diffusion_to_vn.__gt_type__().definition.pos_or_kw_args
    compile_time_args = arguments.CompileTimeArgs(
        args=tuple(types.values()),
        kwargs={},
        offset_provider=offset_provider(),
        column_axis=None,
        argument_descriptor_contexts={},
    )
    return backend.transforms(ConcreteProgramDef(data=apply_diffusion_to_vn.definition_stage, args=compile_time_args))


def prepare_dace(folder: Path) -> None:
    backend = make_dace_backend(gpu=False, auto_optimize=True, unstructured_horizontal_has_unit_stride=True)
    compilable = _compilable(backend)
    source = backend.executor.translation(compilable)
    raw: Any = source.source_code
    signature = sdfg_signature(dace.SDFG.from_json(raw), raw)
    program = program_signature(compilable, source)
    artifact = build_entry(signature, program, folder)
    build_variants(signature, program, SCALARS, folder)

    own = folder / "dace"
    own.mkdir(exist_ok=True)
    bindings = backend.executor.bindings(source).binding_source
    own_artifact = DaCeCompilationArtifact(
        library_path=Path(shutil.copy(artifact.path / signature.library, own)),
        sdfg_json=json.dumps(raw),
        binding_source_code=bindings.source_code,
        bind_func_name=backend.executor.compilation.bind_func_name,
        device_type=backend.executor.compilation.device_type,
    )
    # DaCe loads every library through another one, which it expects beside it.
    loader = Path(dace.__file__).parent / "codegen" / "tools" / "dacestub.cpp"
    output = own / f"libdacestub_{signature.name}.so"
    subprocess.run(["c++", "-O2", "-fopenmp", "-shared", "-fPIC", str(loader), "-o", str(output)], check=True)
    (folder / "dace.pickle").write_bytes(pickle.dumps(own_artifact))


def prepare_gtfn(folder: Path) -> None:
    artifact = run_gtfn.executor(_compilable(run_gtfn))
    (folder / "gtfn.pickle").write_bytes(pickle.dumps(artifact))


if __name__ == "__main__":
    {"dace": prepare_dace, "gtfn": prepare_gtfn}[sys.argv[1]](Path(sys.argv[2]))
