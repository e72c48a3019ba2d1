"""Facts: conditions on scalar arguments that are no relations of integer expressions, such as 'dt > 0.5'."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Mapping

from gtstub.stub.signature.expressions import LONGEST_TEXT, names_in, renamed, syntax_tree

OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.And: "&&",
    ast.Or: "||",
}
"""Those of Python in a fact, as C writes them."""


@dataclasses.dataclass(frozen=True)
class Fact:
    """A condition in Python, `text`. In conditions of claims, the symbol `name` is 1 if it holds and 0 otherwise."""

    name: str
    text: str

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all scalar arguments in it."""
        tree = syntax_tree(self.text)
        return frozenset() if tree is None else names_in(tree)


def fact_text(text: str, names: Mapping[str, str]) -> str | None:
    """
    A condition with `names` in place of its own, as Python writes it; None if it has other names, or if C would not
    mean the same by it.
    """
    tree = syntax_tree(text) if len(text) <= LONGEST_TEXT else None
    if tree is None or not names_in(tree) <= names.keys():
        return None
    made = renamed(tree, lambda name: ast.parse(names[name], mode="eval").body)
    try:
        written(made, str)
    except (TypeError, RecursionError):
        return None
    found = ast.unparse(made)
    return found if len(found) <= LONGEST_TEXT else None


def written(tree: ast.expr, symbol: Callable[[str], str]) -> str:
    """A condition in C, in which `symbol` writes names. Raises TypeError for what is no fact."""
    match tree:
        case ast.Name(id=name):
            return symbol(name)
        case ast.Constant(value=bool() | int() | float() as value):
            return repr(int(value) if isinstance(value, bool) else value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"!{written(operand, symbol)}"
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            text = written(operand, symbol)
            return f"-({text})" if text.startswith("-") else f"-{text}"
        case ast.BoolOp(op=op, values=values):
            parts = [written(each, symbol) for each in values]
        case ast.Compare(left=left, ops=[op], comparators=[right]) | ast.BinOp(left=left, op=op, right=right):
            parts = [written(left, symbol), written(right, symbol)]
        case _:
            raise TypeError("not a fact")
    if type(op) not in OPERATORS:
        raise TypeError("not a fact")
    return f"({f' {OPERATORS[type(op)]} '.join(parts)})"
