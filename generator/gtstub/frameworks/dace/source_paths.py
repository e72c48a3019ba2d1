"""The paths in the source of a function: names with attributes and items, such as 'self.state.w' and 'weights[0]'."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
from types import FunctionType
from typing import Any

Step = str | tuple[Any]
"""An attribute by its name, or an item by its index."""


@functools.lru_cache(maxsize=1024)
def source_paths(function: FunctionType) -> dict[str, bool]:
    """
    All paths in the body of a function that do not begin with one of its local variables, each with whether it is
    called. Empty if the source is not known.
    """
    try:
        (definition, *_) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    if not isinstance(definition, ast.FunctionDef):
        return {}
    code = function.__code__
    local = {*code.co_varnames, *code.co_cellvars}.difference(inspect.signature(function).parameters)
    called = {id(node.func) for node in ast.walk(definition) if isinstance(node, ast.Call)}
    found: dict[str, bool] = {}
    for statement in definition.body:
        for node in ast.walk(statement):
            path = path_of(node)
            if path is not None and path[0] not in local:
                text = ast.unparse(node)
                found[text] = found.get(text, False) or id(node) in called
    return found


def path_of(node: ast.AST) -> tuple[str, tuple[Step, ...]] | None:
    """The name with which a path begins, and the steps from there; None for what is no path."""
    steps: list[Step] = []
    while True:
        match node:
            case ast.Name(id=name):
                return name, tuple(reversed(steps))
            case ast.Attribute(value=value, attr=name):
                steps.append(sys.intern(name))
            case ast.Subscript(value=value, slice=ast.Constant(value=index)):
                steps.append((index,))
            case _:
                return None
        node = value
