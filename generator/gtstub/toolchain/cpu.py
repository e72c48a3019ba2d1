"""
Features of CPUs, by the names that Linux gives them in /proc/cpuinfo: what this machine has, and what a library needs.

Imported wherever an entry is loaded: it must stay as light as it is.
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
    sha512 sm3 sm4
"""
"""
Those that an x86 compiler defines a macro for that is called the same: __AVX2__. RDSEED and RDRAND are left out: no
compiler uses them by itself, and Linux hides them where the CPU's are broken, which `-march=native` does not notice.
"""

X86 = {f"__{name.upper()}__": name for name in SAME_NAME.split()} | {
    "__SSE3__": "pni",
    "__ABM__": "abm",
    "__LZCNT__": "abm",
    "__BMI__": "bmi1",
    "__PCLMUL__": "pclmulqdq",
    "__SHA__": "sha_ni",
    "__LAHF_SAHF__": "lahf_lm",
    "__PRFCHW__": "3dnowprefetch",
    "__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16": "cx16",
    "__AVXVNNI__": "avx_vnni",
    "__AVXIFMA__": "avx_ifma",
    "__AVXNECONVERT__": "avx_ne_convert",
    "__AVXVNNIINT8__": "avx_vnni_int8",
    "__AVXVNNIINT16__": "avx_vnni_int16",
    "__CMPCCXADD__": "cmpccxadd",
    "__AVX512VBMI2__": "avx512_vbmi2",
    "__AVX512VNNI__": "avx512_vnni",
    "__AVX512BF16__": "avx512_bf16",
    "__AVX512FP16__": "avx512_fp16",
    "__AVX512BITALG__": "avx512_bitalg",
    "__AVX512VPOPCNTDQ__": "avx512_vpopcntdq",
    "__AVX512VP2INTERSECT__": "avx512_vp2intersect",
}

ARM = {
    "__ARM_NEON": "asimd",
    "__ARM_FEATURE_ATOMICS": "atomics",
    "__ARM_FEATURE_CRC32": "crc32",
    "__ARM_FEATURE_AES": "aes",
    "__ARM_FEATURE_SHA2": "sha2",
    "__ARM_FEATURE_SHA3": "sha3",
    "__ARM_FEATURE_SHA512": "sha512",
    "__ARM_FEATURE_SM4": "sm4",
    "__ARM_FEATURE_QRDMX": "asimdrdm",
    "__ARM_FEATURE_DOTPROD": "asimddp",
    "__ARM_FEATURE_FP16_SCALAR_ARITHMETIC": "fphp",
    "__ARM_FEATURE_FP16_VECTOR_ARITHMETIC": "asimdhp",
    "__ARM_FEATURE_FP16_FML": "asimdfhm",
    "__ARM_FEATURE_BF16": "bf16",
    "__ARM_FEATURE_MATMUL_INT8": "i8mm",
    "__ARM_FEATURE_COMPLEX": "fcma",
    "__ARM_FEATURE_JCVT": "jscvt",
    "__ARM_FEATURE_FRINT": "frint",
    "__ARM_FEATURE_RCPC": "lrcpc",
    "__ARM_FEATURE_RNG": "rng",
    "__ARM_FEATURE_LS64": "ls64",
    "__ARM_FEATURE_SVE": "sve",
    "__ARM_FEATURE_SVE2": "sve2",
    "__ARM_FEATURE_SVE_BF16": "svebf16",
    "__ARM_FEATURE_SVE_MATMUL_INT8": "svei8mm",
    "__ARM_FEATURE_SVE2_AES": "sveaes",
    "__ARM_FEATURE_SVE2_BITPERM": "svebitperm",
    "__ARM_FEATURE_SVE2_SHA3": "svesha3",
    "__ARM_FEATURE_SVE2_SM4": "svesm4",
    "__ARM_FEATURE_SME": "sme",
    "__ARM_FEATURE_SME2": "sme2",
}

MACROS = X86 | ARM
"""The feature that a compiler may use where it defines a macro. What is not here, no compiler uses by itself."""


@functools.cache
def features() -> frozenset[str]:
    """What this machine's CPU has. Empty where the kernel has no list of it."""
    try:
        with CPUINFO.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:  # Up to the first processor's: the file is long where there are many.
                name, _, value = line.partition(":")
                if name.strip() in ("flags", "Features"):
                    return frozenset(value.split())
    except OSError:
        pass
    return frozenset()


def lacking(needed: Iterable[str]) -> list[str]:
    """What of `needed` this CPU lacks, in order; nothing where the kernel does not say what it has."""
    return sorted(set(needed) - features()) if features() else []


def key_features(flags: str) -> list[str]:
    """
    What of this CPU a library depends on that is compiled with `flags`, without asking a compiler: all that it could
    use where the flags say 'native', else nothing. What the kernel lists beside instructions is left out.
    """
    if not re.search(r"(?<!\S)-m(arch|cpu)=native(?!\S)", flags):
        return []
    return sorted(features().intersection(MACROS.values()))


def compiled_features(compiler: Sequence[str], flags: Sequence[str]) -> list[str]:
    """
    What a CPU must have to run what `compiler`, a command for C++, compiles with `flags`: the compiler is asked.

    Raises ToolchainError where it cannot be started or refuses the flags.
    """
    import subprocess  # Here: loading an entry starts no compiler.

    command = [*compiler, *flags, "-dM", "-E", "-x", "c++", "/dev/null"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ToolchainError(f"The C++ compiler '{compiler[0]}' cannot be started: {error.strerror}.") from error
    if done.returncode != 0:
        raise ToolchainError(f"The C++ compiler '{compiler[0]}' refused the flags {flags}.\n{done.stderr.strip()}")
    defined = {line.split(maxsplit=2)[1] for line in done.stdout.splitlines() if line.startswith("#define ")}
    return sorted({feature for macro, feature in MACROS.items() if macro in defined})
