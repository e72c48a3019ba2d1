"""Programs of icon4py for GPUs, built by nvcc without a GPU (make gpu-build), and arguments to call them with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gtstub.cache.entry import Entry
from gtstub.signature.model import FieldType, ProgramSignature, TupleType, Type
from tests.support.checkout import ROOT
from tests.support.hosting import Domain, Field, domain

PROGRAMS = (
    "apply_diffusion_to_vn",
    "apply_diffusion_to_w_and_compute_horizontal_gradients_for_turbulence",
    "calculate_nabla4",
    "compute_advection_in_corrector_vertical_momentum",
    "scale_k",
)
"""One kernel and many arguments; many kernels and temporaries; tables; the largest; the smallest."""

SIZES = {"Cell": 18, "Edge": 27, "Vertex": 9, "K": 12}
VALUES = {"horizontal_start": 0, "horizontal_end": 9, "vertical_start": 0, "vertical_end": 10}
"""Of scalars that are not compiled in; the others are 1."""

needs_nvcc = [
    pytest.mark.nvcc,
    pytest.mark.xdist_group("nvcc"),
    pytest.mark.skipif("CUDACXX" not in os.environ, reason="CUDACXX names no nvcc; 'make gpu-build' runs this."),
]


def build(arch: str, cache: Path) -> dict[str, Entry]:
    """Builds all programs for an architecture, as users do; returns their entries by program."""
    file = cache.with_suffix(".toml")
    text = (ROOT / "examples" / "icon4py" / "programs.toml").read_text(encoding="utf-8")
    file.write_text(text.replace("[default]", '[default]\nbackend_tag = "GPU"'), encoding="utf-8")
    names = [part for name in PROGRAMS for part in ("--program", name)]
    gtstub = Path(sys.executable).with_name("gtstub")
    command = [str(each) for each in (gtstub, "build", file, *names, "--jobs", "2", "--cache", cache)]
    environment = {**os.environ, "GTSTUB_ARCH": arch, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    entries = {path.parent.name.rpartition("-")[0]: Entry(path.parent) for path in cache.glob("*/manifest.json")}
    assert sorted(entries) == sorted(PROGRAMS)
    return entries


def arguments(signature: ProgramSignature, make: Callable[[NDArray[Any]], object]) -> Mapping[str, Any]:
    """Arguments that a program accepts; `make` turns an array of the host into one that it takes."""
    statics = {each.leaf: each.value for each in signature.static_arguments}

    def value(name: str, type_: Type) -> object:
        if isinstance(type_, TupleType):
            return tuple(value(f"{name}_{i}", element) for i, element in enumerate(type_.elements))
        if not isinstance(type_, FieldType):
            return np.dtype(type_.dtype).type({**VALUES, **statics}.get(name, 1))
        shape = tuple(SIZES[dim.name] if dim.kind != "local" else _neighbors(dim.name) for dim in type_.dims)
        on: Domain = domain({dim.name: (0, size) for dim, size in zip(type_.dims, shape, strict=True)})
        return Field(on, make(np.ones(shape, type_.dtype, order="F")))

    def _neighbors(dim: str) -> int:
        return next(each.max_neighbors for each in signature.connectivities if each.neighbor.name == dim)

    tables = {
        each.name: make(np.zeros((SIZES[each.source.name], each.max_neighbors), each.dtype, order="F"))
        for each in signature.connectivities
    }
    given = {each.name: value(each.name, each.type) for each in signature.parameters}
    return {**given, "offset_provider": tables}


def kernels(entry: Entry, arch: str) -> dict[str, int]:
    """The kernels of an entry's library, and the registers that each needs. The code must be for `arch` alone."""
    library = next(entry.path.glob("lib*.so"))
    done = subprocess.run(["cuobjdump", "-res-usage", library], check=True, capture_output=True, text=True)
    assert set(re.findall(r"^arch = (\w+)$", done.stdout, re.MULTILINE)) == {arch}
    found = re.findall(r"^ Function _Z(\d+)(\w+):\n +REG:(\d+) ", done.stdout, re.MULTILINE)
    return {text[: int(length)]: int(registers) for length, text, registers in found}
