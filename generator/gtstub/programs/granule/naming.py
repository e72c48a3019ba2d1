"""
The names of a granule: of the arrays that a user names, each by itself or in a mapping, a sequence or an object whose
attributes are arrays; and which names generated code can have.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from gtstub.errors import GranuleError
from gtstub.programs.layout import Layout
from gtstub.stub.codegen.hosts.fortran import MAX_NAME, TYPES
from gtstub.stub.plan.names import C_KEYWORDS, GNU_MACROS
from gtstub.stub.signature.dtypes import DTYPES, NAMES

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

PREFIXES = ("gts_", "gtstub_")
"""What names of the runtime begin with, in lower case."""

ENUMERATORS = ("ARRAY", "SCALAR", "HOOK", "PROGRAM", "STEP")
"""What enumerators of the generated C begin with, before an underscore."""

MACRO = re.compile(
    r"CFI_\w*|ISO_FORTRAN_BINDING_H|offsetof|(U?INT|PTRDIFF|SIG_ATOMIC|SIZE|W?CHAR|WINT)\w*_(MAX|MIN|WIDTH|C)"
)
"""Macros of the headers that generated C includes."""

LONGEST = 31
"""The longest name of a granule, step or hook, in characters: the lines of the Fortran module have several of them."""

KINDS = frozenset(kind for _, kind in TYPES.values()) | {
    "c_char",
    "c_int",
    "c_int64_t",
    "c_null_ptr",
    "c_ptr",
    "c_funptr",
}

RESERVED = KINDS.union(
    (word.lower() for word in (*C_KEYWORDS, *GNU_MACROS)),
    (NAMES[dtype].c for dtype in DTYPES),
    ("arrays", "found", "granule", "hooks", "index_base"),
    ("c_bind", "c_open", "c_string", "errmsg", "finish", "gtstub", "gtstub_errors", "int", "iso_c_binding", "present"),
    ("array", "folder", "name", "self", "stat", "status"),
)
"""What generated C and Fortran use where the names of arguments, hooks and scalars stand alone, in lower case."""

STEP_NAMES = frozenset(
    (
        *("bind", "close", "get", "granule", "handle", "open", "swap", "t", "unbind"),  # of the Fortran module
        *("arguments", "fortran_bind", "fortran_get", "hooks"),  # of C
        *(f"get_{dtype}" for dtype in DTYPES),
        *(kind.removeprefix("c_") for kind in (*KINDS, "c_string")),
    )
)
"""Names that no step can have, in lower case, because generated code has them with the same prefixes."""


def named_arrays(values: Mapping[str, Any], granule: str, kind: str) -> dict[str, Layout]:
    """
    The arrays of a mapping. An object whose attributes are arrays gives the name of the object, an underscore and that
    of the attribute; a sequence gives numbers. Other values in an object are left out. `kind` of the mapping is for
    messages. Raises GranuleError.
    """
    found: dict[str, Layout] = {}
    for name, value in values.items():
        inside = list(_arrays(name, value))
        if not inside:
            raise GranuleError(
                f"{kind.capitalize()} '{name}' of granule '{granule}' has no array: it is of type "
                f"'{type(value).__qualname__}'."
            )
        for each, layout in inside:
            if found.setdefault(each, layout) != layout:
                raise GranuleError(f"Two arrays of granule '{granule}' are called '{each}': name one differently.")
    return found


def arrays_of(value: Any) -> dict[str, Layout]:
    """The arrays of a mapping, or of an object that has them as attributes, by their names there."""
    found: dict[str, Layout] = {}
    for name, each in _members(value):
        found |= dict(_arrays(name.lstrip("_"), each))
    return found


def layout_of(value: Any) -> Layout | None:
    """
    The memory of a field or an array on the CPU; None for any other value. Without axes, it is that of one element, as
    of a scalar that a DaCe program writes.
    """
    array = getattr(value, "ndarray", value)
    if isinstance(array, np.generic) or not hasattr(array, "__array_interface__"):
        return None
    read = np.asarray(array)
    read = read.reshape(1) if read.ndim == 0 else read
    is_plain = str(read.dtype) in DTYPES and all(stride % read.dtype.itemsize == 0 for stride in read.strides)
    return Layout.of(read) if is_plain else None


def _arrays(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Layout]]:
    if (layout := layout_of(value)) is not None:
        yield name, layout
    elif depth < 3:
        for member, each in _members(value):
            yield from _arrays(f"{name}_{member}", each, depth + 1)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((str(name), each) for name, each in value.items())
    elif hasattr(value, "_fields"):
        yield from ((name, getattr(value, name)) for name in value._fields)
    elif isinstance(value, list | tuple):
        yield from ((str(number), each) for number, each in enumerate(value))
    elif hasattr(value, "__dict__") and not callable(value):
        yield from ((name, each) for name, each in vars(value).items() if not name.startswith("__"))
    elif dataclasses.is_dataclass(value):  # with slots
        yield from ((each.name, getattr(value, each.name)) for each in dataclasses.fields(value))


# --- Names in generated code ------------------------------------------------------------------------------------------


def check_name(kind: str, name: str, granule: str) -> None:
    """Raises GranuleError for a name that C or Fortran does not allow."""
    if NAME.fullmatch(name) is None or name.lower().startswith(PREFIXES):
        raise GranuleError(
            f"The name of {kind} '{name}' of granule '{granule}' must begin with a letter, but not with 'gts_' or "
            f"'gtstub_', and contain letters, digits and underscores alone."
        )
    longest = MAX_NAME if kind == "argument" else LONGEST
    if len(name) > longest:
        raise GranuleError(
            f"The name of {kind} '{name}' of granule '{granule}' has {len(name)} characters; the Fortran module allows "
            f"{longest}."
        )


def check_names(granule: str, steps: Iterable[str], hooks: Iterable[str], arguments: Iterable[str]) -> None:
    """Raises GranuleError for the first name with which the code of a granule would not compile."""
    check_name("granule", granule, granule)
    if f"{granule.lower()}_" in PREFIXES:
        raise GranuleError(f"The name of granule '{granule}' is that of the runtime: choose another one.")
    if granule in ENUMERATORS:
        raise GranuleError(f"The name of granule '{granule}' has a meaning in the generated C: choose another one.")
    reserved = reserved_names(granule, steps)
    of_steps = Names()
    for step in steps:
        check_name("step", step, granule)
        if step.lower() in STEP_NAMES:
            raise GranuleError(f"Step '{step}' of granule '{granule}' needs another name: a granule has a '{step}'.")
        _take(of_steps, "step", step, granule)
    taken = Names()
    for kind, names in (("hook", hooks), ("argument", arguments)):
        for name in names:
            check_name(kind, name, granule)
            if name.lower() in reserved or MACRO.fullmatch(name) is not None:
                raise GranuleError(
                    f"The name of {kind} '{name}' of granule '{granule}' has a meaning in the generated C or Fortran: "
                    f"choose another one."
                )
            for each in (name, f"{name}_data", f"{name}_address") if kind == "hook" else (name,):
                _take(taken, kind, each, granule)


def reserved_names(granule: str, steps: Iterable[str]) -> frozenset[str]:
    """The names that arguments, hooks and scalars cannot have, in lower case."""
    own = (f"{granule}_t", f"{granule}_granule", *(f"{prefix}_{step}" for step in steps for prefix in ("c", "step")))
    return RESERVED.union(each.lower() for each in own)


def _take(names: Names, kind: str, name: str, granule: str) -> None:
    if not names.take(name):
        raise GranuleError(
            f"The name '{name}', which {kind}s of granule '{granule}' need in Fortran, is taken: Fortran ignores case."
        )


class Names:
    """Gives each array a name that differs from all others also in Fortran, which ignores case."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name.lower() for name in taken}

    def take(self, name: str) -> bool:
        """Whether the name was free. Now it is taken."""
        is_free = name.lower() not in self._taken
        self._taken.add(name.lower())
        return is_free

    def of_scalar(self, path: str) -> str:
        """The name of a scalar, whose argument the user cannot rename."""
        has_meaning = MACRO.fullmatch(path) is not None or path.lower().startswith(PREFIXES)
        return self.new(*([] if has_meaning else [path]), f"{path}_value")

    def new(self, *choices: str) -> str:
        """The first choice that is free, or the last one with a number."""
        cleaned = [re.sub(r"[^A-Za-z0-9]+", "_", each).strip("_") for each in choices]
        cleaned = [(each if each[:1].isalpha() else f"array_{each}".rstrip("_"))[:MAX_NAME] for each in cleaned]
        last = cleaned[-1]
        cleaned += [f"{last[: MAX_NAME - len(str(number)) - 1]}_{number}" for number in range(2, 10_000)]
        return next(each for each in cleaned if self.take(each))
