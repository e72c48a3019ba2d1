"""The Fortran module of a program as data: the names, types and intents of its one procedure."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable

from gtstub.errors import PlanError
from gtstub.plan.describe import describe_leaf
from gtstub.plan.model import CallPlan, FieldLeaf, ScalarLeaf
from gtstub.signature.dtypes import NAMES

MAX_NAME = 63
"""Characters of a name in Fortran 2018."""

SUFFIX = "_stub"
"""Of the module's name, behind that of its procedure."""

OWN_KINDS = ("c_char", "c_int")
"""The kinds of `stat` and `errmsg`."""

KINDS = tuple(names.fortran[1] for names in NAMES.values())

RESERVED = frozenset(("program", "stat", "errmsg", "gtstub", "gts_program", "iso_c_binding", *OWN_KINDS, *KINDS))
"""What a generated module uses itself, in lower case: Fortran does not tell cases apart."""


@dataclasses.dataclass(frozen=True)
class Argument:
    """A dummy argument; `rank` is 0 for what is passed by value."""

    name: str
    type: str
    kind: str
    rank: int
    written: bool
    description: str

    @property
    def declaration(self) -> str:
        """As the module has it: `real(c_double), intent(in) :: vn(:, :)`."""
        if self.rank == 0:
            return f"{self.type}({self.kind}), value :: {self.name}"
        intent = "inout" if self.written else "in"
        return f"{self.type}({self.kind}), intent({intent}) :: {self.name}({', '.join(':' * self.rank)})"


@dataclasses.dataclass(frozen=True)
class Interface:
    """One procedure, in a module of its own; `symbol` is what it is in C."""

    procedure: str
    symbol: str
    arguments: tuple[Argument, ...]

    @property
    def module(self) -> str:
        return f"{self.procedure}{SUFFIX}"

    @property
    def kinds(self) -> tuple[str, ...]:
        """What the module needs of iso_c_binding."""
        return tuple(sorted({*OWN_KINDS, *(argument.kind for argument in self.arguments)}))


def make_interface(plan: CallPlan) -> Interface:
    """What Fortran sees of a program; raises PlanError where a name cannot be one of Fortran."""
    procedure = procedure_name(plan.name)
    _check_names(plan.name, procedure, [leaf.name for leaf in plan.arguments])
    return Interface(procedure, f"{plan.name}_fortran", tuple(map(_argument, plan.arguments)))


def procedure_name(program: str) -> str:
    """
    The program's name, without the underscores that gt4py writes before that of a field operator; where that leaves no
    room for SUFFIX, its beginning and eight digits of the name's SHA-256.
    """
    longest = MAX_NAME - len(SUFFIX)
    name = program.lstrip("_")
    if len(name) <= longest:
        return name
    digest = f"_{hashlib.sha256(program.encode()).hexdigest()[:8]}"
    return name[: longest - len(digest)] + digest


def _argument(leaf: FieldLeaf | ScalarLeaf) -> Argument:
    type_, kind = NAMES[leaf.dtype].fortran
    rank, written = (len(leaf.axes), leaf.written) if isinstance(leaf, FieldLeaf) else (0, False)
    description = describe_leaf(leaf)
    if leaf.path != leaf.name:
        description = f"{leaf.path}: {description}"
    return Argument(leaf.name, type_, kind, rank, written, description)


def _check_names(program: str, procedure: str, arguments: Iterable[str]) -> None:
    if not procedure[:1].isalpha():
        raise PlanError(f"The name of program '{program}' has no letter with which its name in Fortran could begin.")
    _check_name(program, "program", procedure, RESERVED)
    reserved = RESERVED | {procedure.lower(), f"{procedure}{SUFFIX}".lower()}
    seen: dict[str, str] = {}
    for name in arguments:
        _check_name(program, "argument", name, reserved)
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise PlanError(
                f"Arguments '{other}' and '{name}' of program '{program}' have one name in Fortran, which does not tell"
                " upper case from lower case."
            )


def _check_name(program: str, kind: str, name: str, reserved: frozenset[str]) -> None:
    if name.startswith("_"):
        raise PlanError(
            f"The name of {kind} '{name}' of program '{program}' begins with '_', which no name of Fortran does."
        )
    if len(name) > MAX_NAME:
        raise PlanError(
            f"The name of {kind} '{name}' of program '{program}' has {len(name)} characters, more than the {MAX_NAME}"
            " of Fortran."
        )
    if name.lower() in reserved:
        raise PlanError(f"The name of {kind} '{name}' of program '{program}' is used by its Fortran module itself.")
