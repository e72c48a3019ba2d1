"""CPU features: asked of the kernel, and of the compilers that are here."""

from __future__ import annotations

import platform
from array import array
from pathlib import Path

import pytest

from gtstub.entries.toolchain import cpu
from gtstub.errors import ToolchainError
from tests.support.programs import need

x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="flags of x86")


@pytest.fixture(params=["g++", "clang++"])
def compiler(request: pytest.FixtureRequest) -> str:
    need(request.param)
    return str(request.param)


def test_what_is_compiled_for_this_cpu_runs_on_it(compiler: str) -> None:
    native = cpu.compiled_features([compiler], ["-O3", "-march=native"])
    assert native
    assert cpu.lacking(native) == []


@x86
def test_instructions_that_linux_hides_are_not_needed(compiler: str) -> None:
    """RDSEED of some CPUs is broken: a compiler for 'native' finds it all the same, and never uses it by itself."""
    assert cpu.compiled_features([compiler], ["-mrdseed", "-mrdrnd"]) == cpu.compiled_features([compiler], [])


def test_instructions_that_linux_lists_of_no_cpu_are_not_needed(tmp_path: Path) -> None:
    """Linux has no names for them: what is compiled for 'native' would be refused where it was compiled."""
    macros = "__x86_64__ __AVX2__ __SHA512__ __SM3__ __SM4__ __CMPCCXADD__ __AVXIFMA__ __AVXNECONVERT__ __AVXVNNIINT8__"
    compiler = tmp_path / "compiler"
    compiler.write_text("".join(["#!/bin/sh\n", *(f"echo '#define {macro} 1'\n" for macro in macros.split())]))
    compiler.chmod(0o755)
    assert cpu.compiled_features([str(compiler)], []) == ["avx2"]


def test_the_key_holds_whatever_native_may_use(compiler: str) -> None:
    native = cpu.compiled_features([compiler], ["-march=native"])
    assert set(native) <= set(cpu.key_features("-march=native"))


@x86
def test_without_flags_the_baseline_is_needed_alone(compiler: str) -> None:
    assert cpu.compiled_features([compiler], ["-O1"]) == ["fxsr", "mmx", "sse", "sse2"]


@x86
def test_a_cpu_that_flags_name_decides_not_this_one(compiler: str) -> None:
    needed = cpu.compiled_features([compiler], ["-march=sapphirerapids"])
    assert {"avx512f", "avx512_fp16", "avx_vnni", "sha_ni", "bmi1", "abm", "pni", "cx16"} <= set(needed)


@x86
def test_tuning_needs_nothing(compiler: str) -> None:
    assert cpu.compiled_features([compiler], ["-mtune=native"]) == cpu.compiled_features([compiler], [])


def test_a_feature_that_this_cpu_lacks_is_named() -> None:
    assert cpu.lacking([*cpu.features(), "z80", "avx9000"]) == ["avx9000", "z80"]


@pytest.mark.parametrize("text", ["", "processor\t: 0\ncpu\t\t: POWER9\n"])
def test_where_the_kernel_lists_nothing_nothing_is_lacking(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(text)
    assert _features_of(file, monkeypatch) == frozenset()
    assert cpu.lacking(["avx2"]) == []


ARM = ["clang++", "--target=aarch64-linux-gnu"]


def test_what_code_for_arm_needs() -> None:
    """Instructions that no compiler uses by itself are left out: random numbers, memory tags."""
    need("clang++")
    assert cpu.compiled_features(ARM, []) == ["asimd"]
    assert {"sve", "sve2", "bf16", "i8mm", "atomics"} <= set(cpu.compiled_features(ARM, ["-march=armv8.6-a+sve2"]))
    assert cpu.compiled_features(ARM, ["-march=armv8-a+rng+memtag"]) == ["asimd"]


def test_vectors_of_one_length_are_needed_as_they_were_compiled() -> None:
    need("clang++")
    flags = ["-march=armv8-a+sve", "-msve-vector-bits=256"]
    assert {"sve", "sve256"} <= set(cpu.compiled_features(ARM, flags))
    assert cpu.lacking(["sve256"]) == ["sve256"]


def test_every_feature_of_arm_has_a_bit() -> None:
    words = array("Q", (16, 1 << 1 | 1 << 22, 26, 1 << 14 | 1 << 43, 0, 0))
    assert cpu.arm_features(words.tobytes()) == {"asimd", "sve", "bf16", "mops"}
    assert cpu.arm_features(array("Q", (0, 0)).tobytes()) == frozenset()
    assert {name for bits in cpu.ARM_BITS.values() for name in bits} == set(cpu.ARM.values())


def test_an_arm_cpu_is_asked_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "auxv"
    file.write_bytes(array("Q", (16, 1 << 1 | 1 << 22, 0, 0)).tobytes())
    monkeypatch.setattr(cpu, "AUXV", file)
    monkeypatch.setattr(cpu, "MACHINE", "aarch64")
    cpu.features.cache_clear()
    assert cpu.features() == {"asimd", "sve"}
    assert cpu.lacking(["asimd", "sve2", "sve"]) == ["sve2"]
    assert cpu.key_features("-mcpu=native") == ["asimd", "sve"]
    monkeypatch.setattr(cpu, "AUXV", tmp_path / "hidden")
    cpu.features.cache_clear()
    assert cpu.lacking(["sve2"]) == []


def test_flags_that_compile_for_any_cpu_leave_it_out_of_the_key() -> None:
    assert cpu.key_features("-O1 -mtune=native") == []
    assert cpu.key_features("-march=native-like") == []
    assert cpu.key_features("--device-debug -O3 -Xcompiler -march=native -Xcompiler -Wall") != []


def test_what_is_no_instruction_set_is_not_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cpu.key_features("-march=native")
    file = tmp_path / "cpuinfo"
    file.write_text(f"flags\t: {' '.join(cpu.features())} retpoline ibrs_enhanced\n")
    assert "retpoline" in _features_of(file, monkeypatch)
    assert cpu.key_features("-march=native") == before


def test_a_compiler_that_is_not_there() -> None:
    with pytest.raises(ToolchainError) as refused:
        cpu.compiled_features(["no-such-compiler"], [])
    assert str(refused.value) == ("The compiler 'no-such-compiler' cannot be started: No such file or directory.")


def test_flags_that_a_compiler_refuses(compiler: str) -> None:
    with pytest.raises(ToolchainError) as refused:
        cpu.compiled_features([compiler], ["-march=z80"])
    assert str(refused.value).startswith(f"The compiler '{compiler}' refused the flags ['-march=z80'].\n")


@pytest.fixture(autouse=True)
def _forget() -> object:
    yield
    cpu.features.cache_clear()


def _features_of(file: Path, monkeypatch: pytest.MonkeyPatch) -> frozenset[str]:
    monkeypatch.setattr(cpu, "CPUINFO", file)
    monkeypatch.setattr(cpu, "MACHINE", "x86_64")
    cpu.features.cache_clear()
    return cpu.features()
