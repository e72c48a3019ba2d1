"""The names that generated C may contain. The planner checks them once, before any text is generated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gtstub.errors import PlanError

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

FILE_NAME = re.compile(r"[A-Za-z0-9_.+-]+")

RESERVED_PREFIXES = ("gts_", "GTS_")

C_KEYWORDS = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while alignas
    alignof and and_eq asm bitand bitor bool catch class compl concept const_cast constexpr decltype delete
    dynamic_cast explicit export false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq
    private protected public reinterpret_cast requires static_assert static_cast template this thread_local throw true
    try typeid typename using virtual wchar_t xor xor_eq NULL _Alignas _Alignof _Atomic _Bool _Complex _Generic
    _Imaginary _Noreturn _Static_assert _Thread_local typeof char8_t char16_t char32_t co_await co_return co_yield
    consteval constinit
    """.split()  # noqa: SIM905
)
"""Keywords of C and C++, because the headers are C++ too, and a macro of the standard headers."""

GNU_MACROS = ("linux", "unix")
"""
Macros that the GNU dialects define, but not the standard ones, in which DaCe compiles its code. The header of a program
with these names undefines them.
"""

_INTEGERS = r"u?int(8|16|32|64|max|ptr|_(fast|least)(8|16|32|64))"

RESERVED = re.compile(
    rf"""
    {_INTEGERS}_t | {_INTEGERS.upper()}_(MAX|MIN) | (PTRDIFF|SIG_ATOMIC|SIZE|WCHAR|WINT)_(MAX|MIN)  # of stdint.h
    | CFI_\w+ | ISO_FORTRAN_BINDING_H                                                              # of Fortran's header
    | _+[A-Z][A-Z0-9_]{{2,}} | __\w*_ | __(amd64|k8|linux|unix|x86_64|i386|aarch64|powerpc64)       # of compilers
    | ___int_\w+_h | __DEFINED_\w+ | __\w+_(defined|available) | __stub_\w+                 # of other headers
    | __(always|extern(_always)?)_inline
    | __(attr_dealloc_free|flexarr|fortify_function|ptr_t|restrict_arr|returns_nonnull|seg_fs|seg_gs|size_t|wur)
    """,
    re.VERBOSE,
)
"""The types of scalars, which names of members would hide, and macros without arguments."""


def is_reserved(name: str) -> bool:
    """Whether an identifier cannot be the name of an argument."""
    return name in C_KEYWORDS or RESERVED.fullmatch(name) is not None or name.startswith(RESERVED_PREFIXES)


def check_names(program: str, library: str, names: Mapping[str, Iterable[str]]) -> None:
    """
    Raises PlanError for the first name that is not valid in C, or that two of a kind share. `names` are
    those of each kind: program, SDFG, parameter, dimension, key, argument, slot, workspace and tuple, after tuples are
    flattened.
    """
    if FILE_NAME.fullmatch(library) is None:
        raise PlanError(
            f"The name of library '{library}' of program '{program}' has characters other than [A-Za-z0-9_.+-]."
        )
    for kind, of_kind in names.items():
        seen: set[str] = set()
        for name in of_kind:
            _check_identifier(program, kind, name)
            if kind in ("argument", "slot") and is_reserved(name):
                raise PlanError(f"The name of {kind} '{name}' of program '{program}' is reserved in C or C++.")
            if kind in ("parameter", "argument", "tuple", "workspace") and name in seen:
                raise PlanError(f"Two {kind}s of program '{program}' are called '{name}' after tuples are flattened.")
            seen.add(name)


def _check_identifier(program: str, kind: str, name: str) -> None:
    if IDENTIFIER.fullmatch(name) is None:
        raise PlanError(f"The name of {kind} '{name}' of program '{program}' is not an identifier of C.")
    if name.startswith(RESERVED_PREFIXES):
        raise PlanError(f"The name of {kind} '{name}' of program '{program}' begins with 'gts_', which is reserved.")
