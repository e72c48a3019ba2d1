"""The paths in the source of a function: names with attributes and items, such as 'self.state.w' and 'weights[0]'."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import sys
import textwrap
from types import FunctionType
from typing import Any

Step = str | tuple[Any, ...]
"""An attribute by its name, an item by its index in a tuple, or the number of items: an empty tuple."""


@dataclasses.dataclass(frozen=True)
class Use:
    """What a function does with the object at a path: it calls it, or uses more of it than one attribute or item."""

    is_called: bool
    is_whole: bool


@functools.lru_cache(maxsize=1024)
def source_paths(function: FunctionType) -> dict[str, Use]:
    """
    All paths in the body of a function that do not begin with one of its local variables. Empty if the source is not
    known.
    """
    try:
        (definition, *_) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    if not isinstance(definition, ast.FunctionDef):
        return {}
    code = function.__code__
    parameters = inspect.signature(getattr(function, "__func__", function)).parameters  # that of a method has no 'self'
    local = {*code.co_varnames, *code.co_cellvars}.difference(parameters)
    local |= {node.arg for each in definition.body for node in ast.walk(each) if isinstance(node, ast.arg)}
    called = {id(node.func) for node in ast.walk(definition) if isinstance(node, ast.Call)}
    split = {id(node.value) for node in ast.walk(definition) if isinstance(node, ast.Attribute | ast.Subscript)}
    found: dict[str, Use] = {}
    for statement in definition.body:
        for node in ast.walk(statement):
            path = path_of(node)
            if path is not None and path[0] not in local:
                text = ast.unparse(node)
                known = found.get(text, Use(is_called=False, is_whole=False))
                found[text] = Use(known.is_called or id(node) in called, known.is_whole or id(node) not in split)
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
            case ast.Subscript(value=value, slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(index)))):
                steps.append((-index,))
            case _:
                return None
        node = value
