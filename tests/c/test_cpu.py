"""A C host refuses a program that was built for another CPU. Emulated ones have features that can be chosen."""

from __future__ import annotations

import platform
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from gtstub.entries.toolchain import cpu
from tests.support import target
from tests.support.c_hosts import ENVIRONMENT, SOURCES, Build, plain
from tests.support.runtime import RUNTIME
from tests.support.sdfg_libraries import recording_source
from tests.support.signatures import SMALL_PROGRAM, SMALL_SDFG
from tests.support.stubs import write_stub

arm = pytest.mark.skipif(not target.PREFIX.startswith("aarch64"), reason="a CPU of aarch64 that is emulated")

OLD, NEW = {"QEMU_CPU": "cortex-a76"}, {"QEMU_CPU": "max"}
"""Without and with SVE."""

FIRST = """
#ifdef __ARM_FEATURE_SVE
__attribute__((constructor)) static void use_it(void)
{
    __asm__ volatile("ptrue p0.b");
}
#endif
"""
"""What an SDFG library does first if it was compiled for SVE."""


def entry(build: Build, name: str, needed: str, *flags: str) -> Path:
    """A program whose stub says what it needs; `flags` are for its SDFG library."""
    folder = build.folder / name
    source = write_stub(SMALL_SDFG, SMALL_PROGRAM, folder)
    build.shared(f"{name}/prog_stub.so", source, "-fvisibility=hidden", f'-DGTS_NEEDED_CPU="{needed}"')
    (folder / "libprog.c").write_text(f"{recording_source(SMALL_SDFG)}\n{FIRST}", encoding="utf-8")
    build.shared(f"{name}/libprog.so", folder / "libprog.c", *flags)
    return folder


def opened(build: Build, folder: Path, variables: Mapping[str, str] | None = None) -> str:
    return build.run("names.c", str(folder), stubs=[], variables=variables).strip()


def refusal(folder: Path, feature: str) -> str:
    return (
        f"Stub '{folder}/prog_stub.so' belongs to a program that was built for a CPU with '{feature}', which this one"
        " lacks; build the program on this machine."
    )


@plain
def test_a_feature_that_no_cpu_has(build: Build) -> None:
    folder = entry(build, "unobtainable", "unobtainium")
    assert opened(build, folder) == refusal(folder, "unobtainium")


@plain
@pytest.mark.skipif(not target.IS_NATIVE or platform.machine() != "x86_64", reason="features of this x86 CPU")
def test_what_this_cpu_has(build: Build) -> None:
    assert opened(build, entry(build, "here", " ".join(sorted(cpu.features())))) == "prog"
    folder = entry(build, "almost", f"{' '.join(sorted(cpu.features()))} {min(cpu.features())}z")
    assert opened(build, folder) == refusal(folder, f"{min(cpu.features())}z")


@arm
@plain
def test_sve_is_refused_by_name(build: Build) -> None:
    """As the compiler says what its flags need. Without the refusal, the process ends by SIGILL."""
    flags = ("-march=armv8-a+sve",)
    needed = cpu.compiled_features(build.command, flags, "c")
    assert {"asimd", "sve"} <= set(needed)
    assert "cx16" not in needed, "Of x86, though gcc has its macro on all machines"
    folder = entry(build, "sve", " ".join(needed), *flags)
    assert opened(build, folder, NEW) == "prog"
    assert opened(build, folder, OLD) == refusal(folder, "sve")
    silent = entry(build, "sve_silent", "asimd", *flags)
    ended = subprocess.run(target.command(build.folder / "names", silent), env=ENVIRONMENT | OLD, check=False)
    assert ended.returncode == -signal.SIGILL


@arm
@plain
def test_vectors_of_another_length(build: Build) -> None:
    flags = ("-march=armv8-a+sve", "-msve-vector-bits=256")
    needed = cpu.compiled_features(build.command, flags, "c")
    assert {"sve", "sve256"} <= set(needed)
    folder = entry(build, "sve256", " ".join(needed), *flags)
    assert opened(build, folder, {"QEMU_CPU": "max,sve-default-vector-length=32"}) == "prog"
    assert opened(build, folder, {"QEMU_CPU": "max,sve-default-vector-length=16"}) == refusal(folder, "sve256")


@arm
@plain
@pytest.mark.parametrize("variables", [OLD, NEW, {"QEMU_CPU": "a64fx"}], ids=lambda variables: variables["QEMU_CPU"])
def test_python_knows_the_same_features(build: Build, variables: Mapping[str, str]) -> None:
    names = sorted(set(cpu.ARM.values()))
    assert set(names) == {name for bits in cpu.ARM_BITS.values() for name in bits}
    build.compile("features", SOURCES / "features.c", RUNTIME / "base" / "cpu.c")
    done = subprocess.run(
        target.command(build.folder / "features", *names),
        env=ENVIRONMENT | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    has = cpu.arm_features(bytes.fromhex(done.stdout))
    assert done.stderr.split() == [name for name in names if name not in has]
    assert "asimd" in has
    assert ("sve" in has) == (variables != OLD)
