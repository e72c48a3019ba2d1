"""
CPU features of this machine and of compiled libraries, under the names that Linux uses in /proc/cpuinfo.

Every load of a cache entry imports this module, so it must not import heavy packages.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from gtstub.errors import ToolchainError

CPUINFO = Path("/proc/cpuinfo")

SAME_NAME = """
    mmx sse sse2 ssse3 sse4_1 sse4_2 sse4a avx avx2 fma fma4 xop f16c aes vaes vpclmulqdq gfni popcnt movbe bmi2 adx tbm
    rdpid fsgsbase fxsr xsave xsavec xsaveopt clflushopt clwb clzero pku waitpkg movdiri movdir64b serialize
    avx512f avx512cd avx512bw avx512dq avx512vl avx512er avx512pf avx512ifma avx512vbmi
    sha512 sm3 sm4 abm cmpccxadd
"""
"""
The x86 features whose compiler macro has the same name: __AVX2__. RDSEED and RDRAND are not listed: no compiler uses
them by itself, and Linux hides them on CPUs where they are broken, which `-march=native` does not notice.
"""

WITHOUT_UNDERSCORE = """
    avx_vnni avx_ifma avx_ne_convert avx_vnni_int8 avx_vnni_int16 avx512_vbmi2 avx512_vnni avx512_bf16 avx512_fp16
    avx512_bitalg avx512_vpopcntdq avx512_vp2intersect
"""
"""The x86 features whose compiler macro has the same name without underscores: __AVX512BF16__."""

ARM_SAME_NAME = "atomics crc32 aes sha2 sha3 sha512 sm4 bf16 frint rng ls64 sve sve2 sme sme2"
"""The features of Arm whose compiler macro has the same name: __ARM_FEATURE_SVE2."""

X86 = {f"__{name.upper()}__": name for name in SAME_NAME.split()}
X86 |= {f"__{name.replace('_', '').upper()}__": name for name in WITHOUT_UNDERSCORE.split()}
X86 |= {
    "__SSE3__": "pni",
    "__LZCNT__": "abm",
    "__BMI__": "bmi1",
    "__PCLMUL__": "pclmulqdq",
    "__SHA__": "sha_ni",
    "__LAHF_SAHF__": "lahf_lm",
    "__PRFCHW__": "3dnowprefetch",
    "__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16": "cx16",
}

ARM = {f"__ARM_FEATURE_{name.upper()}": name for name in ARM_SAME_NAME.split()} | {
    "__ARM_NEON": "asimd",
    "__ARM_FEATURE_QRDMX": "asimdrdm",
    "__ARM_FEATURE_DOTPROD": "asimddp",
    "__ARM_FEATURE_FP16_SCALAR_ARITHMETIC": "fphp",
    "__ARM_FEATURE_FP16_VECTOR_ARITHMETIC": "asimdhp",
    "__ARM_FEATURE_FP16_FML": "asimdfhm",
    "__ARM_FEATURE_MATMUL_INT8": "i8mm",
    "__ARM_FEATURE_COMPLEX": "fcma",
    "__ARM_FEATURE_JCVT": "jscvt",
    "__ARM_FEATURE_RCPC": "lrcpc",
    "__ARM_FEATURE_SVE_BF16": "svebf16",
    "__ARM_FEATURE_SVE_MATMUL_INT8": "svei8mm",
    "__ARM_FEATURE_SVE2_AES": "sveaes",
    "__ARM_FEATURE_SVE2_BITPERM": "svebitperm",
    "__ARM_FEATURE_SVE2_SHA3": "svesha3",
    "__ARM_FEATURE_SVE2_SM4": "svesm4",
}

MACROS = X86 | ARM
"""The feature that a compiler may use if it defines the macro. No compiler uses other features by itself."""


@functools.cache
def features() -> frozenset[str]:
    """The features of this machine's CPU; empty if the kernel does not list them."""
    try:
        with CPUINFO.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:  # The first processor's suffice; the file is long on machines with many.
                name, _, value = line.partition(":")
                if name.strip() in ("flags", "Features"):
                    return frozenset(value.split())
    except OSError:
        pass
    return frozenset()


def lacking(needed: Iterable[str]) -> list[str]:
    """The features in `needed` that this CPU lacks, sorted; empty if the kernel does not list the CPU's features."""
    return sorted(set(needed) - features()) if features() else []


def key_features(flags: str) -> list[str]:
    """
    The features of this CPU that a library compiled with `flags` may use: all instruction sets if the flags contain
    'native', else none. No compiler runs.
    """
    if not re.search(r"(?<!\S)-m(arch|cpu)=native(?!\S)", flags):
        return []
    return sorted(features().intersection(MACROS.values()))


def compiled_features(compiler: Sequence[str], flags: Sequence[str], language: str = "c++") -> list[str]:
    """
    The features that a CPU needs for code that `compiler` compiles with `flags`. `language` is its name in the option
    -x. Runs the compiler.

    Raises ToolchainError if the compiler cannot be started or refuses the flags.
    """
    import subprocess  # Here, because loading an entry starts no compiler.

    command = [*compiler, *flags, "-dM", "-E", "-x", language, "/dev/null"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ToolchainError(f"The compiler '{compiler[0]}' cannot be started: {error.strerror}.") from error
    if done.returncode != 0:
        raise ToolchainError(f"The compiler '{compiler[0]}' refused the flags {flags}.\n{done.stderr.strip()}")
    defined = {line.split(maxsplit=2)[1] for line in done.stdout.splitlines() if line.startswith("#define ")}
    return sorted({feature for macro, feature in MACROS.items() if macro in defined})
