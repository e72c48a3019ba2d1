"""
Loops that count down, in which DaCe 2.0.0a10 may lose branches: its pass LiftTrivialIf leaves out those that the
variable of a loop never reaches, but takes the first value of any loop for the least one.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import warnings
from collections.abc import Iterator
from typing import Any


def warn_of_falling_loops(function: Any, program: str) -> None:
    """Warns of each loop of a function that counts down and has a condition on its variable."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):
        return
    for loop in _falling_loops(tree):
        warnings.warn(
            f"Program '{program}' has a condition on '{loop.target.id}' in a loop that counts down"
            f" ({inspect.getsourcefile(function)}:{first + loop.lineno - 1}). DaCe 2.0.0a10 may leave out a branch that"
            f" the loop reaches, so that results are wrong: let the loop count up, and compute the index from its"
            f" variable.",
            stacklevel=2,
        )


def _falling_loops(tree: ast.AST) -> Iterator[Any]:
    for loop in ast.walk(tree):
        match loop:
            case ast.For(
                target=ast.Name(id=name),
                iter=ast.Call(func=ast.Name(id="range"), args=[_, _, ast.UnaryOp(op=ast.USub())]),
            ):
                tests = [each.test for each in ast.walk(loop) if isinstance(each, ast.If | ast.IfExp)]
                if any(isinstance(each, ast.Name) and each.id == name for test in tests for each in ast.walk(test)):
                    yield loop
