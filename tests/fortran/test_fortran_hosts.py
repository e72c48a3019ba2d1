"""Fortran hosts: programs in Fortran call generated stubs over recording libraries and look at what arrives."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

import fortran_hosts
from fortran_hosts import Build, run
from gtstub.signature.model import Axis, Dimension, DType, ProgramSignature, SdfgSignature
from signatures import WHOLE_PROGRAM, WHOLE_SDFG, K, array, field, program, scalar, sdfg, symbol

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(fortran_hosts.is_missing(), reason=fortran_hosts.MISSING)

ADDRESS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1")
PLAIN = ("-g", "-O2")
BUILDS = {"plain": PLAIN, "address": ADDRESS}

DIMS = [Dimension(f"D{i}", "horizontal") for i in range(6)]


def _ranks() -> tuple[SdfgSignature, ProgramSignature]:
    """Fields of one to six dimensions; first their data, then for each of them all sizes and all strides."""
    names = "abcdef"
    symbols = [
        symbol(f"__{name}_{property_}_{axis}", (name, axis, property_))
        for i, name in enumerate(names)
        for property_ in ("size", "stride")
        for axis in range(i + 1)
    ]
    arrays = [array(name, *[Axis()] * (i + 1)) for i, name in enumerate(names)]
    fields = {name: field(*DIMS[: i + 1]) for i, name in enumerate(names)}
    return sdfg(*arrays, *symbols, name="ranks"), program("ranks", **fields)


def _types() -> tuple[SdfgSignature, ProgramSignature]:
    """A field and a scalar of every type."""
    dtypes = get_args(DType)
    arrays = [array(f"a_{dtype}", Axis(stride=1), dtype=dtype) for dtype in sorted(dtypes)]
    scalars = [symbol(f"s_{dtype}", dtype=dtype) for dtype in sorted(dtypes)]
    parameters = {f"a_{dtype}": field(K, dtype=dtype) for dtype in dtypes}
    parameters |= {f"s_{dtype}": scalar(dtype) for dtype in dtypes}
    return sdfg(*arrays, *scalars, name="types"), program("types", **parameters)


PROGRAMS = {"whole": (WHOLE_SDFG, WHOLE_PROGRAM), "ranks": _ranks(), "types": _types()}


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Build]:
    """Builds by program and flags, as far as they have been asked for."""
    return {}


def build_of(
    name: str, flags: str, builds: dict[tuple[str, str], Build], tmp_path_factory: pytest.TempPathFactory
) -> Build:
    if (name, flags) not in builds:
        builds[name, flags] = Build(*PROGRAMS[name], tmp_path_factory.mktemp(f"{name}-{flags}"), BUILDS[flags])
    return builds[name, flags]


@pytest.mark.parametrize("flags", BUILDS)
@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("whole", "arrives"),
        ("whole", "refusals"),
        ("whole", "threads"),
        ("whole", "untyped"),
        ("ranks", "ranks"),
        ("types", "types"),
    ],
)
def test_host(
    name: str,
    host: str,
    flags: str,
    builds: dict[tuple[str, str], Build],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    build = build_of(name, flags, builds, tmp_path_factory)
    shared = [HERE / "harness.f90", *([HERE / "whole_arguments.f90"] if name == "whole" and host != "untyped" else [])]
    done = run(build.host(*shared, HERE / f"{host}.f90"))
    assert done.returncode == 0, done.stdout + done.stderr
