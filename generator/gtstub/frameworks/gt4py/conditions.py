"""
A condition of `concat_where` that gt4py compiles wrongly. gt4py takes `K != m` for `(K < m) & (K > m)`, which holds
nowhere, so that the program would have the second field everywhere.
"""

from __future__ import annotations

import re
from typing import Any

from gt4py.next import errors
from gt4py.next.iterator import ir as itir

from gtstub.errors import GtstubError

_RENAMED = re.compile(r"ᐞ\d+")
"""What gt4py adds to the names of variables."""


class ConditionError(errors.DSLError, GtstubError):
    """A program with such a condition. As an error of gt4py, it shows the line of the condition."""


def check_conditions(program: itir.Program) -> None:
    """Raises ConditionError if a program, or an operator that it calls, has such a condition."""
    for call in program.pre_walk_values().if_isinstance(itir.FunCall):
        match call:
            case itir.FunCall(fun=itir.SymRef(id="not_eq"), args=[left, right]) if _is_dimension(left, right):
                a, b = _text(left), _text(right)
                raise ConditionError(
                    call.location,
                    f"Program '{program.id}' has the condition '{a} != {b}' of a 'concat_where', which gt4py takes for"
                    f" one that holds nowhere. Write '({a} < {b}) | ({a} > {b})', or '{a} == {b}' with the two fields"
                    " exchanged.",
                )


def _is_dimension(*sides: Any) -> bool:
    return any(isinstance(side, itir.AxisLiteral) for side in sides)


def _text(side: Any) -> str:
    return str(side.value) if isinstance(side, itir.AxisLiteral) else _RENAMED.sub("", str(side))
