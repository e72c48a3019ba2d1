"""
CPU features of this machine and of compiled libraries, under the names that Linux uses in /proc/cpuinfo.

On Arm they are read from the auxiliary vector, which also an emulator has: qemu-user shows the /proc/cpuinfo of the
machine that it runs on.

Every load of a cache entry imports this module, so it must not import heavy packages.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from gtstub.errors import ToolchainError

CPUINFO = Path("/proc/cpuinfo")
AUXV = Path("/proc/self/auxv")
MACHINE = os.uname().machine

SAME_NAME = """
    mmx sse sse2 ssse3 sse4_1 sse4_2 sse4a avx avx2 fma fma4 xop f16c aes vaes vpclmulqdq gfni popcnt movbe bmi2 adx tbm
    rdpid fsgsbase fxsr xsave xsavec xsaveopt clflushopt clwb clzero pku waitpkg movdiri movdir64b serialize
    avx512f avx512cd avx512bw avx512dq avx512vl avx512er avx512pf avx512ifma avx512vbmi abm
"""
"""
The x86 features whose compiler macro has the same name: __AVX2__. RDSEED and RDRAND are not listed: no compiler uses
them by itself, and Linux hides them on CPUs where they are broken, which `-march=native` does not notice. Linux lists
SHA512, SM3, SM4, CMPCCXADD, AVX-IFMA, AVX-NE-CONVERT, AVX-VNNI-INT8 and AVX-VNNI-INT16 of no CPU.
"""

WITHOUT_UNDERSCORE = """
    avx_vnni avx512_vbmi2 avx512_vnni avx512_bf16 avx512_fp16 avx512_bitalg avx512_vpopcntdq avx512_vp2intersect
"""
"""The x86 features whose compiler macro has the same name without underscores: __AVX512BF16__."""

ARM_SAME_NAME = "atomics crc32 aes sha2 sha3 sha512 sm3 sm4 frint sve sve2 sme sme2 cssc mops"
"""
The features of Arm whose compiler macro has the same name: __ARM_FEATURE_SVE2. Random numbers, memory tags and LS64 are
not listed: no compiler uses them by itself, and many kernels do not report them.
"""

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
    "__ARM_FEATURE_BF16_SCALAR_ARITHMETIC": "bf16",
    "__ARM_FEATURE_BF16_VECTOR_ARITHMETIC": "bf16",
    "__ARM_FEATURE_COMPLEX": "fcma",
    "__ARM_FEATURE_JCVT": "jscvt",
    "__ARM_FEATURE_RCPC": "lrcpc",
    "__ARM_FEATURE_SVE_BF16": "svebf16",
    "__ARM_FEATURE_SVE_MATMUL_INT8": "svei8mm",
    "__ARM_FEATURE_SVE_MATMUL_FP32": "svef32mm",
    "__ARM_FEATURE_SVE_MATMUL_FP64": "svef64mm",
    "__ARM_FEATURE_SVE2_AES": "sveaes",
    "__ARM_FEATURE_SVE2_BITPERM": "svebitperm",
    "__ARM_FEATURE_SVE2_SHA3": "svesha3",
    "__ARM_FEATURE_SVE2_SM4": "svesm4",
    "__ARM_FEATURE_SVE2p1": "sve2p1",
}

_IN_HWCAP = """
    asimd:1 aes:3 sha2:6 crc32:7 atomics:8 fphp:9 asimdhp:10 asimdrdm:12 jscvt:13 fcma:14 lrcpc:15 sha3:17 sm3:18 sm4:19
    asimddp:20 sha512:21 sve:22 asimdfhm:23
"""
_IN_HWCAP2 = """
    sve2:1 sveaes:2 svebitperm:4 svesha3:5 svesm4:6 frint:8 svei8mm:9 svef32mm:10 svef64mm:11 svebf16:12 i8mm:13 bf16:14
    sme:23 cssc:34 sve2p1:36 sme2:37 mops:43
"""

ARM_BITS = {
    kind: {name: int(bit) for name, bit in (word.split(":") for word in text.split())}
    for kind, text in ((16, _IN_HWCAP), (26, _IN_HWCAP2))
}
"""The bits of the features of Arm in AT_HWCAP and AT_HWCAP2 of the auxiliary vector, as in runtime/base/cpu.c."""

BASELINE = frozenset(("fxsr", "mmx", "sse", "sse2", "asimd"))
"""What every CPU has that these libraries are for."""

VECTORS = "sve"
"""How a feature begins that is a length of SVE vectors, in bits: code for 'sve256' gives wrong results with others."""

MACROS = {"__x86_64__": X86, "__aarch64__": ARM}
"""
The feature that a compiler may use if it defines the macro, for each architecture: some macros mean other things on
others. No compiler uses other features by itself.
"""


@functools.cache
def features() -> frozenset[str]:
    """The features of this machine's CPU; empty if the kernel does not list them."""
    try:
        if MACHINE == "aarch64":
            return arm_features(AUXV.read_bytes())
        with CPUINFO.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:  # The first processor's suffice; the file is long on machines with many.
                name, _, value = line.partition(":")
                if name.strip() == "flags":
                    return frozenset(value.split())
    except OSError:
        pass
    return frozenset()


def arm_features(auxiliary_vector: bytes) -> frozenset[str]:
    """The features of an Arm CPU that compilers may use."""
    words = memoryview(auxiliary_vector).cast("Q").tolist()
    values = dict(zip(words[::2], words[1::2], strict=False))
    return frozenset(
        name for kind, bits in ARM_BITS.items() for name, bit in bits.items() if values.get(kind, 0) >> bit & 1
    )


def lacking(needed: Iterable[str]) -> list[str]:
    """The features in `needed` that this CPU lacks, sorted; empty if the kernel does not list the CPU's features."""
    return sorted(filter(_lacks_length, set(needed) - features())) if features() else []


def _lacks_length(feature: str) -> bool:
    """Whether a feature that is not in `features()` is no length of SVE vectors, or another one than that here."""
    found = re.fullmatch(rf"{VECTORS}(\d+)", feature)
    if found is None or VECTORS not in features():
        return True
    import ctypes  # Here, because almost no library needs vectors of one length.

    get_vector_length = 51  # PR_SVE_GET_VL, in bytes in the lower 16 bits
    here: int = 8 * (ctypes.CDLL(None).prctl(get_vector_length) & 0xFFFF)
    return here != int(found[1])


def key_features(flags: str) -> list[str]:
    """
    The features of this CPU that a library compiled with `flags` may use: all instruction sets if the flags contain
    'native', else none. No compiler runs.
    """
    if not re.search(r"(?<!\S)-m(arch|cpu)=native(?!\S)", flags):
        return []
    return sorted(features() & {*X86.values(), *ARM.values()})


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
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines() if line.startswith("#define ")]
    defined = {macro: "".join(value) for _, macro, *value in lines}
    length = defined.get("__ARM_FEATURE_SVE_BITS", "0")  # 0 for code that works with any length
    vectors = [] if length == "0" else [f"{VECTORS}{length}"]
    names = {macro: name for machine, macros in MACROS.items() if machine in defined for macro, name in macros.items()}
    return sorted({*vectors, *(name for macro, name in names.items() if macro in defined)})
