"""
Fortran as the language of a host: the module of a program as data, with the names, types and intents of its procedures,
and how its lines are broken.
"""

from __future__ import annotations

import dataclasses
import hashlib
import textwrap
from collections.abc import Iterable, Mapping

from gtstub.errors import PlanError
from gtstub.stub.codegen.hosts.language import HostLanguage
from gtstub.stub.codegen.layout import WIDTH, joined
from gtstub.stub.plan.model import CallbackLeaf, CallPlan, FieldLeaf, ScalarLeaf
from gtstub.stub.plan.wording import indices_used
from gtstub.stub.signature.dtypes import DType

MAX_NAME = 63
"""The longest name in Fortran 2018, in characters."""

SUFFIX = "_stub"
"""The module has the name of its procedure with this suffix."""

BINDING_SUFFIX = "_bind"
"""The procedure that binds a call has the name of the other one with this suffix, which is no longer than SUFFIX."""

TYPES: Mapping[DType, tuple[str, str]] = {
    "bool": ("logical", "c_bool"),
    "int8": ("integer", "c_int8_t"),
    "uint8": ("integer", "c_int8_t"),
    "int16": ("integer", "c_int16_t"),
    "uint16": ("integer", "c_int16_t"),
    "int32": ("integer", "c_int32_t"),
    "uint32": ("integer", "c_int32_t"),
    "int64": ("integer", "c_int64_t"),
    "uint64": ("integer", "c_int64_t"),
    "float32": ("real", "c_float"),
    "float64": ("real", "c_double"),
    "complex64": ("complex", "c_float_complex"),
    "complex128": ("complex", "c_double_complex"),
}
"""
Types and their kinds in iso_c_binding. Signed integers replace unsigned ones, which Fortran does not have. Nothing
replaces float16.
"""

OWN_KINDS = ("c_char", "c_int")
"""The kinds of `stat` and `errmsg`."""

RESERVED = frozenset(
    ("program", "bound_call", "stat", "errmsg", "gtstub", "gts_bound_call", "gts_program", "iso_c_binding", *OWN_KINDS)
).union(kind for _, kind in TYPES.values())
"""The names that each generated module uses, in lower case because Fortran ignores case."""


@dataclasses.dataclass(frozen=True)
class Argument:
    """
    A dummy argument: an array of these `dims`, '(:, :)', a variable that the program writes, '(..)', or a value. A
    callback is a c_funptr.
    """

    name: str
    type: str
    kind: str
    dims: str
    written: bool
    description: str

    @property
    def declaration(self) -> str:
        """The declaration in the procedure that calls: `real(c_double), intent(in) :: vn(:, :)`."""
        return self._declared(f"intent({'inout' if self.written else 'in'})")

    @property
    def bound_declaration(self) -> str:
        """
        The declaration in the procedure that binds: `real(c_double), pointer, intent(in) :: vn(:, :)`. A pointer
        dummy takes targets and pointers, whose addresses may be kept. Compilers refuse all else.
        """
        return self._declared("pointer, intent(in)")

    def _declared(self, attributes: str) -> str:
        return f"{self.type}({self.kind}), {attributes if self.dims else 'value'} :: {self.name}{self.dims}"


@dataclasses.dataclass(frozen=True)
class FortranInterface:
    """A program's two procedures, in a module of their own; `symbol` is the name of the C function that calls it."""

    procedure: str
    symbol: str
    arguments: tuple[Argument, ...]

    @property
    def module(self) -> str:
        return f"{self.procedure}{SUFFIX}"

    @property
    def binding(self) -> str:
        """The procedure that binds a call."""
        return f"{self.procedure}{BINDING_SUFFIX}"

    @property
    def binding_symbol(self) -> str:
        """
        The name of its C function. The symbol begins with that of the call, so that it is none of another program's,
        whose name may end in "_bind".
        """
        return f"{self.symbol}{BINDING_SUFFIX}"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that the module imports from iso_c_binding, sorted."""
        return tuple(sorted({*OWN_KINDS, *(argument.kind for argument in self.arguments)}))


def make_interface(plan: CallPlan) -> FortranInterface:
    """The Fortran interface of a program; raises PlanError if a name is not valid in Fortran."""
    procedure = procedure_name(plan.name)
    _check_names(plan.name, procedure, [leaf.name for leaf in plan.arguments])
    return FortranInterface(procedure, f"{plan.name}_fortran", tuple(_argument(plan, leaf) for leaf in plan.arguments))


def procedure_name(program: str) -> str:
    """
    The program's name without the leading underscores that gt4py gives field operators. A name without room for SUFFIX
    is cut, and ends in eight digits of its SHA-256.
    """
    longest = MAX_NAME - len(SUFFIX)
    name = program.lstrip("_")
    if len(name) <= longest:
        return name
    digest = f"_{hashlib.sha256(program.encode()).hexdigest()[:8]}"
    return name[: longest - len(digest)] + digest


def _argument(plan: CallPlan, leaf: FieldLeaf | ScalarLeaf | CallbackLeaf) -> Argument:
    if not isinstance(leaf, CallbackLeaf) and leaf.dtype not in TYPES:
        raise PlanError(
            f"Argument '{leaf.path}' of program '{plan.name}' has dtype '{leaf.dtype}', which Fortran lacks."
        )
    type_, kind = ("type", "c_funptr") if isinstance(leaf, CallbackLeaf) else TYPES[leaf.dtype]
    dims, written = "", False
    if isinstance(leaf, FieldLeaf):
        dims, written = f"({', '.join(':' * len(leaf.axes)) or '..'})", leaf.array.written
    path = "" if leaf.path == leaf.name else f"{leaf.path}: "
    used = "".join(f"; uses {each}" for each in indices_used(plan, leaf))
    return Argument(leaf.name, type_, kind, dims, written, f"{path}{leaf.text}{used}")


def _check_names(program: str, procedure: str, arguments: Iterable[str]) -> None:
    if not procedure[:1].isalpha():
        raise PlanError(f"Fortran needs a letter after the leading underscores in the name of program '{program}'.")
    _check_name(program, "program", procedure, RESERVED)
    reserved = RESERVED | {f"{procedure}{suffix}".lower() for suffix in ("", SUFFIX, BINDING_SUFFIX)}
    seen: dict[str, str] = {}
    for name in arguments:
        _check_name(program, "argument", name, reserved)
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise PlanError(
                f"Arguments '{other}' and '{name}' of program '{program}' have the same name in Fortran, which ignores"
                " case."
            )


def _check_name(program: str, kind: str, name: str, reserved: frozenset[str]) -> None:
    if name.startswith("_"):
        raise PlanError(f"The name of {kind} '{name}' of program '{program}' begins with '_'; Fortran forbids that.")
    if len(name) > MAX_NAME:
        raise PlanError(
            f"The name of {kind} '{name}' of program '{program}' has {len(name)} characters; Fortran allows {MAX_NAME}."
        )
    if name.lower() in reserved:
        raise PlanError(f"The name of {kind} '{name}' of program '{program}' is reserved in its Fortran module.")


# --- Lines ------------------------------------------------------------------------------------------------------------
# They have at most 120 characters; Fortran allows 132 in free form.


def pack(text: str) -> str:
    """Fills continued lines with the items of a list, which come one a line."""
    items = text.splitlines()
    indent = items[0][: len(items[0]) - len(items[0].lstrip())]
    text = " ".join(item.strip() for item in items)
    lines = textwrap.wrap(text, WIDTH - len(f"{indent} &"), break_long_words=False)
    return joined([f"{indent}{line} &" for line in lines])


def statement(text: str) -> str:
    """A statement with a list: its begin, the items, and its end, one a line. It stays on one line if it fits."""
    begin, *items, end = text.splitlines()
    line = f"{begin}{' '.join(item.strip() for item in items)}{end.strip()}"
    if len(line) <= WIDTH:
        return joined([line])
    indent = begin[: len(begin) - len(begin.lstrip())]
    return f"{begin} &\n{pack(joined([f'{indent}    {item.strip()}' for item in items]))}{indent}    {end.strip()}\n"


def use(text: str) -> str:
    """A statement on one line, continued on further lines if it is long."""
    indent = text[: len(text) - len(text.lstrip())]
    lines = textwrap.wrap(text.strip(), WIDTH - len(" &"), initial_indent=indent, subsequent_indent=f"{indent}    ")
    return " &\n".join(lines) + "\n"


def comment(text: str) -> str:
    """Breaks comments that are too long, and keeps their indentation."""
    lines = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        later = f"{indent}!     "
        lines += textwrap.wrap(line.strip(), WIDTH, initial_indent=indent, subsequent_indent=later) or [line]
    return joined(lines)


def split(literal: str, indent: int) -> str:
    """The content of a character literal, continued on further lines if it is long."""
    length = 80
    return f"&\n{' ' * indent}&".join(literal[i : i + length] for i in range(0, len(literal), length))


FORTRAN = HostLanguage(
    name="Fortran",
    suffix=".f90",
    comment=("! ", ""),
    make_interface=make_interface,
    filters={
        "fortran_comment": comment,
        "fortran_pack": pack,
        "fortran_split": split,
        "fortran_statement": statement,
        "fortran_use": use,
    },
    part="parts/fortran.c.j2",
)
