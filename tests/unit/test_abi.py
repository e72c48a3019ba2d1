"""The numbers and layouts that Python repeats from the public headers, held against the headers."""

from __future__ import annotations

import ctypes
import json
import struct
import subprocess
from typing import Any

import numpy as np
import pytest

from gtstub.abi import ABI, MAX_RANK, POOLED_BYTES
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.install import FOLDER, INCLUDE
from gtstub.stub.signature.dtypes import DTYPES, NAMES, NUMBERS
from gtstub.tools.recorded.runtime import CONNECTIVITY, CPU, FIELD, STATIC, Action, Array, Contract, Error, Opened, Stub

TYPES: dict[str, Any] = {
    "gts_array": Array,
    "gts_error": Error,
    "gts_contract": Contract,
    "gts_stub": Stub,
    "gts_program": Opened,
    "gts_action": Action,
}
"""The structs that Python declares with ctypes."""

CUT = {"gts_stub", "gts_program"}
"""Those of which Python declares the beginning only."""

BIT_FIELDS = {"dtype", "device"}
"""Members of gts_array without an address; C writes their values instead of their offsets."""

FILLERS = {"others", "more", "counts", "rest"}
"""They stand for members that Python does not read."""

ENUMERATORS = {"GTS_FIELD": FIELD, "GTS_CONNECTIVITY": CONNECTIVITY, "GTS_STATIC": STATIC, "GTS_CPU": CPU}


def offsets(name: str) -> list[str]:
    left_out = FILLERS | (BIT_FIELDS if name == "gts_array" else set())
    return [field[0] for field in TYPES[name]._fields_ if field[0] not in left_out]


def source() -> str:
    """A C program that prints all facts as JSON."""
    facts = {"abi": "GTS_ABI", "max_rank": "GTS_MAX_RANK", "pooled_bytes": "GTS_POOLED_BYTES"}
    for dtype in DTYPES:
        facts |= {f"{dtype} number": f"GTS_{dtype.upper()}", f"{dtype} size": f"sizeof({NAMES[dtype].c})"}
    facts |= {name: name for name in ENUMERATORS}
    for name in TYPES:
        facts |= {f"{name} size": f"sizeof({name})"}
        facts |= {f"{name}.{member}": f"offsetof({name}, {member})" for member in offsets(name)}
    lines = "\n".join(f'    printf("\\"{name}\\": %ld,\\n", (long){value});' for name, value in facts.items())
    return f"""
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "gtstub/complex.h"
#include "gtstub/gtstub.h"
#include "embedded/memory.h"
#include "gtstub/step.h"
#include "gtstub/stub.h"

int main(void)
{{
    const gts_array array = {{.dtype = GTS_FLOAT64, .device = GTS_ROCM}};
    unsigned bits;
    __builtin_memcpy(&bits, (const char *)&array + sizeof(void *), sizeof bits);
    printf("{{");
{lines}
    printf("\\"bits\\": %u}}", bits);
}}
"""


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> dict[str, int]:
    """What the C compiler makes of the headers."""
    folder = tmp_path_factory.mktemp("abi")
    file, program = folder / "facts.c", folder / "facts"
    file.write_text(source(), encoding="utf-8")
    includes = ("-I", str(INCLUDE), "-I", str(FOLDER))
    subprocess.run([*toolchain.compiler, "-std=gnu11", *includes, "-o", str(program), str(file)], check=True)
    printed: dict[str, int] = json.loads(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
    return printed


def test_numbers_of_the_binary_interface(facts: dict[str, int]) -> None:
    assert (facts["abi"], facts["max_rank"], facts["pooled_bytes"]) == (ABI, MAX_RANK, POOLED_BYTES)


@pytest.mark.parametrize("dtype", DTYPES)
def test_element_types(facts: dict[str, int], dtype: str) -> None:
    size = facts[f"{dtype} size"]
    assert NUMBERS[dtype] == facts[f"{dtype} number"]
    assert np.dtype(dtype).itemsize == size
    assert struct.calcsize(f"={NAMES[dtype].struct}") == size


@pytest.mark.parametrize("name", TYPES)
def test_structs(facts: dict[str, int], name: str) -> None:
    declared = TYPES[name]
    assert name in CUT or ctypes.sizeof(declared) == facts[f"{name} size"]
    for member in offsets(name):
        assert getattr(declared, member).offset == facts[f"{name}.{member}"], member


def test_enumerators(facts: dict[str, int]) -> None:
    assert {name: facts[name] for name in ENUMERATORS} == ENUMERATORS


def test_bit_fields(facts: dict[str, int]) -> None:
    array = Array(dtype=NUMBERS["float64"], device=10)
    assert ctypes.c_uint32.from_buffer(array, ctypes.sizeof(ctypes.c_void_p)).value == facts["bits"]
