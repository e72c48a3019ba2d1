"""A library with instructions that this CPU lacks is refused, and never run."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.manifest import Machine
from gtstub.entries.cache.store import Cache
from gtstub.entries.toolchain import cpu
from gtstub.errors import CacheError
from tests.faults.builder import MANIFEST, call, ingredients, key_of
from tests.faults.workshop import LIBRARY, Workshop, environment
from tests.support.sdfg_libraries import build_library, c_compiler

RARE = {"avx512f": "-mavx512f", "avx512_fp16": "-mavx512fp16", "avx2": "-mavx2"}
"""Features, and what makes the compiler use them; the first one that this machine lacks is tried."""

INSTRUCTIONS = {
    "avx512f": "vpxorq %zmm16, %zmm16, %zmm16",
    "avx512_fp16": "vaddph %zmm1, %zmm2, %zmm3",
    "avx2": "vpaddd %ymm0, %ymm1, %ymm2",
}


def publish(cache: Cache, directory: Path, needed: list[str]) -> Entry:
    manifest = MANIFEST._replace(ingredients=ingredients(0), machine=Machine(tuple(needed)))
    return cache.publish(directory, key_of(0), manifest)


def refusal(artifact: Entry) -> str:
    with pytest.raises(CacheError) as caught:
        artifact.load()
    return str(caught.value)


def test_manifest_that_wants_more(workshop: Workshop, tmp_path: Path) -> None:
    """What is lacking is named, what is there is not; and such an entry is not found."""
    if not cpu.features():
        pytest.skip("the kernel does not say what this CPU has")
    cache = Cache(tmp_path)
    had = min(cpu.features())
    with cache.private_directory(key_of(0)) as private:
        shutil.copytree(workshop.parts / "0", private / "entry")
        artifact = publish(cache, private / "entry", [had, "unobtainium"])
    assert refusal(artifact) == (
        f"The cache entry '{artifact.path}' was built for a CPU with 'unobtainium', which this one lacks:"
        " build it on this machine."
    )
    assert cache.find(key_of(0)) is None


def test_manifest_that_wants_what_is_there(workshop: Workshop, tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    with cache.private_directory(key_of(0)) as private:
        shutil.copytree(workshop.parts / "0", private / "entry")
        call(publish(cache, private / "entry", sorted(cpu.features())), 0)


def test_library_of_another_cpu(workshop: Workshop, tmp_path: Path) -> None:
    """For real: the compiler says what its flags use, and what is refused would have ended the process."""
    rare = next((name for name in RARE if cpu.features() and name not in cpu.features()), None)
    if rare is None or "sse2" not in cpu.features():
        pytest.skip("this CPU has everything, or is not an x86 one")
    needed = cpu.compiled_features([c_compiler()], [RARE[rare]])
    assert rare in needed
    cache = Cache(tmp_path)
    source = LIBRARY.replace("(void)handle;", f'__asm__ volatile("{INSTRUCTIONS[rare]}");\n    (void)handle;')
    with cache.private_directory(key_of(0)) as private:
        shutil.copytree(workshop.parts / "0", private / "entry")
        (private / "entry" / "libprog.so").unlink()
        build_library(source, private / "entry" / "libprog.so", [c_compiler(), RARE[rare], "-DNUMBER=0"])
        artifact = publish(cache, private / "entry", needed)
    assert f"'{rare}'" in refusal(artifact)
    code = f"""if True:
        from array import array
        from gtstub import _host
        program = _host.load({str(artifact.path / "prog_stub.so")!r}, {str(artifact.path / "libprog.so")!r})
        program(array("d", [1]), 2.0, array("d", [0]))
    """
    done = subprocess.run([sys.executable, "-c", code], env=environment({}), check=False)
    assert done.returncode == -signal.SIGILL


def test_builder_says_what_is_in_the_way(workshop: Workshop, tmp_path: Path) -> None:
    """Flags that ask for what this CPU lacks give the same key wherever they are used, and never what runs here."""
    cache = Cache(tmp_path)
    with cache.private_directory(key_of(0)) as private:
        shutil.copytree(workshop.parts / "0", private / "entry")
        publish(cache, private / "entry", ["unobtainium"])
    ended = workshop.run(tmp_path, 0)
    assert ended.is_refusal
    assert "'unobtainium'" in ended.errors
