"""Programs of icon4py for GPUs, built by nvcc without a GPU (make gpu WHAT=build), and arguments to call them with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gtstub.entries.cache.entry import Entry
from gtstub.stub.signature.model import Connectivity, FieldType, ProgramSignature, TupleType, Type
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

LONGER = {"vect_a": {"K": 13}}
"""Sizes of fields that are used one level beyond the others."""

needs_nvcc = [
    pytest.mark.nvcc,
    pytest.mark.xdist_group("nvcc"),
    pytest.mark.skipif("CUDACXX" not in os.environ, reason="CUDACXX names no nvcc; 'make gpu WHAT=build' runs this."),
]


def build(
    arch: str, cache: Path, names: Collection[str] = PROGRAMS, tag: str = "GPU", jobs: int = 2
) -> dict[str, Entry]:
    """
    Builds programs of examples/icon4py/programs.toml as users do; returns their entries by program, and by program and
    variant ('name argument=True') if there are several. Without an `arch`, for the GPU of this machine.
    """
    file = cache.parent / f"{cache.name}-{tag}.toml"
    text = (ROOT / "examples" / "icon4py" / "programs.toml").read_text(encoding="utf-8")
    file.write_text(text.replace("[default]", f'[default]\nbackend_tag = "{tag}"'), encoding="utf-8")
    only = [part for name in names for part in ("--program", name)]
    gtstub = Path(sys.executable).with_name("gtstub")
    command = [str(each) for each in (gtstub, "build", file, *only, "--jobs", jobs, "--cache", cache, "--json")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **({"GTSTUB_ARCH": arch} if arch else {})}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    built = json.loads(done.stdout)["programs"]
    assert {each["program"] for each in built} == set(names)
    return {f"{each['program']} {each['variant']}".strip(): Entry(cache / each["key"]) for each in built}


def arguments(
    signature: ProgramSignature, make: Callable[[NDArray[Any]], object], random: np.random.Generator | None = None
) -> Mapping[str, Any]:
    """
    Arguments that a program accepts: ones, and tables of zeros; or random values. `make` turns an array of the host
    into one that the program takes.
    """
    statics = {each.leaf: each.value for each in signature.static_arguments}

    def value(name: str, type_: Type) -> object:
        if isinstance(type_, TupleType):
            return tuple(value(f"{name}_{i}", element) for i, element in enumerate(type_.elements))
        if not isinstance(type_, FieldType):
            return np.dtype(type_.dtype).type({**VALUES, **statics}.get(name, 1))
        sizes = {**SIZES, **LONGER.get(name, {})}
        shape = tuple(sizes[dim.name] if dim.kind != "local" else _neighbors(dim.name) for dim in type_.dims)
        on: Domain = domain({dim.name: (0, size) for dim, size in zip(type_.dims, shape, strict=True)})
        return Field(on, make(_values(shape, np.dtype(type_.dtype), random)))

    def _neighbors(dim: str) -> int:
        return next(each.max_neighbors for each in signature.connectivities if each.neighbor.name == dim)

    def table(each: Connectivity) -> object:
        shape = (SIZES[each.source.name], each.max_neighbors)
        indices = random.integers(SIZES[each.codomain.name], size=shape) if random else np.zeros(shape)
        return make(np.asarray(indices, each.dtype, order="F"))

    given = {each.name: value(each.name, each.type) for each in signature.parameters}
    return {**given, "offset_provider": {each.name: table(each) for each in signature.connectivities}}


def _values(shape: tuple[int, ...], dtype: np.dtype[Any], random: np.random.Generator | None) -> NDArray[Any]:
    """Random numbers around 1; integers are offsets in columns, which must stay in them."""
    if random is None:
        return np.ones(shape, dtype, order="F")
    if dtype.kind == "f":
        return np.asarray(random.uniform(0.5, 1.5, shape), dtype, order="F")
    return np.asarray(random.integers(2, size=shape) if dtype.kind == "b" else np.zeros(shape), dtype, order="F")


def fields_of(value: Any) -> Iterator[Any]:
    """The arrays of the fields in arguments, in order; not those of tables."""
    if isinstance(value, Field):
        yield value._ndarray
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from fields_of(each) if name != "offset_provider" else ()
    elif isinstance(value, tuple):
        for each in value:
            yield from fields_of(each)


def kernels(entry: Entry, arch: str) -> dict[str, int]:
    """The kernels of an entry's library, and the registers that each needs. The code must be for `arch` alone."""
    library = next(entry.path.glob("lib*.so"))
    done = subprocess.run(["cuobjdump", "-res-usage", library], check=True, capture_output=True, text=True)
    assert set(re.findall(r"^arch = (\w+)$", done.stdout, re.MULTILINE)) == {arch}
    found = re.findall(r"^ Function _Z(\d+)(\w+):\n +REG:(\d+) ", done.stdout, re.MULTILINE)
    return {text[: int(length)]: int(registers) for length, text, registers in found}
