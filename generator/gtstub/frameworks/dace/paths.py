"""Paths in Python source: names with attributes and items, such as 'self.state.w' and 'weights[0, 1]'."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import Any

Step = str | tuple[Any, ...]
"""An attribute by its name, an item by its index in a tuple, or the number of items: an empty tuple."""


def path_of(node: ast.AST) -> tuple[str, tuple[Step, ...]] | None:
    """The name with which a path begins, and the steps from there; None for what is no path."""
    steps: list[Step] = []
    while True:
        match node:
            case ast.Name(id=name):
                return name, tuple(reversed(steps))
            case ast.Attribute(value=value, attr=name):
                steps.append(sys.intern(name))
            case ast.Subscript(value=value, slice=index):
                try:
                    steps.append((ast.literal_eval(index),))
                except ValueError:
                    return None
            case _:
                return None
        node = value


def paths_in(node: ast.expr) -> Iterator[ast.expr]:
    """The longest paths in an expression that do not begin with names that it defines itself."""
    own = own_names(node)
    pending: list[ast.AST] = [node]
    while pending:
        each = pending.pop(0)
        if (path := path_of(each)) is None:
            pending += ast.iter_child_nodes(each)
        elif path[0] not in own and isinstance(each, ast.expr):
            yield each


def own_names(node: ast.expr) -> frozenset[str]:
    """The names that an expression defines itself, in a comprehension or as parameters."""
    stored = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return frozenset(stored | {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)})
