"""Programs compute on a GPU what they compute on the CPU."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gtstub.entries.cache.entry import Entry
from tests.gpu.device import arrays, programs
from tests.support import gpu_programs
from tests.support.checkout import ROOT

pytestmark = programs.needs_gpu

TOLERANCES = {"float64": (1e-9, 1e-12), "float32": (1e-4, 1e-6)}
"""Relative to each value, and to the largest of its field: a GPU fuses and orders operations in another way."""


def assert_equal(found: list[NDArray[Any]], expected: list[NDArray[Any]]) -> None:
    for i, (field, wanted) in enumerate(zip(found, expected, strict=True)):
        relative, of_largest = TOLERANCES.get(wanted.dtype.name, (0.0, 0.0))
        largest = np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted))
        np.testing.assert_allclose(
            field, wanted, rtol=relative, atol=of_largest * float(largest), equal_nan=True, err_msg=f"field {i}"
        )


def on_the_cpu(entry: Entry) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """The fields before and after a call, with the values of programs.prepare()."""
    arguments = gpu_programs.arguments(programs.signature(entry), lambda array: array, np.random.default_rng(1))
    before = [array.copy() for array in gpu_programs.fields_of(arguments)]
    entry.load()(**arguments)
    return before, list(gpu_programs.fields_of(arguments))


@pytest.fixture(scope="session")
def on_both() -> Mapping[str, dict[str, Entry]]:
    """All programs that these tests compare, by tag."""
    return {tag: programs.build(tag, tuple(programs.NAMES)) for tag in ("GPU", "CPU")}


@programs.needs_kernels
@pytest.mark.parametrize("name", programs.NAMES)
def test_a_program_computes_what_it_computes_on_the_cpu(
    gpu: arrays.Gpu, on_both: Mapping[str, dict[str, Entry]], name: str
) -> None:
    variants = [each for each in on_both["GPU"] if each.split()[0] == name]
    assert variants
    for variant in variants:
        before, expected = on_the_cpu(on_both["CPU"][variant])
        assert any(not np.array_equal(*pair, equal_nan=True) for pair in zip(before, expected, strict=True))
        call = programs.prepare(gpu, on_both["GPU"][variant], stream=gpu.stream())
        call()
        assert_equal(call.results(gpu), expected)


def for_gpus(readme: str) -> tuple[str, str]:
    """README's example, changed as its reader would change it, and what it prints."""
    (example,) = re.findall(r"^```python\n(import gt4py.next.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    (printed,) = re.findall(r"^It prints `(.*?)`", readme, re.MULTILINE)
    (program,) = re.findall(r"\(backend=make_backend\(gpu=False\)\).*\ndef (\w+)\(", example)
    example = example.replace("make_backend(gpu=False)", "make_backend(gpu=True)")
    allocated = rf"\1, allocator={program}.backend)"
    return re.sub(r"(gtx\.as_field\(\[I, K\], np\..*)\)$", allocated, example, flags=re.MULTILINE), printed


@programs.needs_kernels
def test_the_example_of_the_readme(tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    text, printed = for_gpus((ROOT / "README.md").read_text(encoding="utf-8"))
    script.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout.splitlines()
