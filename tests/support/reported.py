"""Cache entries to report on, which need no compiler: their libraries are text, which is never loaded."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gtstub.entries.cache.entry import COMPILED_SDFG, LOWERED_SDFG, Entry
from gtstub.entries.cache.manifest import Manifest
from gtstub.entries.cache.store import Cache
from gtstub.stub.signature import documents
from gtstub.stub.signature.model import Axis, ProgramSignature, SdfgSignature
from tests.support import signatures
from tests.support.sdfg_documents import EDGE, Json, K, branches, mapped, sdfg, state, transient
from tests.support.signatures import WHOLE_PROGRAM, WHOLE_SDFG
from tests.support.stubs import write_stub

INGREDIENTS = {"static": {"flag": [True]}, "versions": {"gtstub": "1", "dace": ["2.0.0a10"]}, "program": {"x": None}}

EDGE_AND_K = (f"{EDGE}=first:last - 1", f"{K}=0:-1 + nlev")

THREE_KERNELS = sdfg(
    state(
        mapped("vn gt_conn_E2V", "tmp", EDGE, label="first"),
        mapped("tmp", "out_0", *EDGE_AND_K, label="second"),
        label="s",
    ),
    branches({"flag": state(mapped("out_0 tmp", "out_1", *EDGE_AND_K, label="third", tasklets=4), label="t")}),
    arrays={"tmp": transient("65")},
)
"""An SDFG of WHOLE_PROGRAM."""


def publish(
    cache: Path,
    signature: SdfgSignature = WHOLE_SDFG,
    program: ProgramSignature = WHOLE_PROGRAM,
    lowered: Json | bytes | None = THREE_KERNELS,
    key: str = "",
    **manifest: Any,
) -> Entry:
    """An entry with the SDFG `lowered`, before and after DaCe: a document, the bytes of its file, or none."""
    key = key or f"{program.name}-{'0123456789abcdef' * 2}"
    with Cache(cache).private_directory(key) as folder:
        source = write_stub(signature, program, folder)
        stub = source.with_suffix(".so").name
        for name in (stub, signature.library):
            (folder / name).write_text("a library\n", encoding="utf-8")
        (folder / "program.json").write_text(documents.program_to_json(program), encoding="utf-8")
        (folder / "sdfg.json").write_text(documents.sdfg_to_json(signature), encoding="utf-8")
        if lowered is not None:
            data = lowered if isinstance(lowered, bytes) else gzip.compress(json.dumps(lowered).encode(), mtime=0)
            (folder / LOWERED_SDFG).write_bytes(data)
            (folder / COMPILED_SDFG).write_bytes(data)
        described = Manifest(program.name, stub, signature.library, **{"ingredients": INGREDIENTS, **manifest})
        return Cache(cache).publish(folder, key, described)


def wide_signatures(fields: int) -> tuple[SdfgSignature, ProgramSignature]:
    """A program of `fields` fields over Edge and K, each of which fills four slots."""
    names = [f"field_{number:03d}" for number in range(fields)]
    properties: Mapping[str, Any] = {"Edge_range_0": (0, "start"), "K_range_0": (1, "start"), "K_stride": (1, "stride")}
    symbols = [
        signatures.symbol(f"__{name}_{suffix}", (name, axis, property_))
        for name in names
        for suffix, (axis, property_) in properties.items()
    ]
    arrays = [signatures.array(name, Axis(stride=1), Axis(), access="readwrite") for name in names]
    parameters = {name: signatures.field(signatures.EDGE, signatures.K) for name in names}
    return signatures.sdfg(*arrays, *symbols, name="wide"), signatures.program("wide", **parameters)
