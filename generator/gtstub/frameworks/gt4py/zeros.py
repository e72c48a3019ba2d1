"""
0.0 and -0.0 as values of gt4py's own `static_params`. They are equal, so gt4py keeps one callable for both. This module
makes it a `BothZeros`, which has a program for each of them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from gt4py.next import utils
from gt4py.next.backend import Backend
from gt4py.next.otf import arguments, compilation_tasks, runners

from gtstub.frameworks.gt4py.internals import ConcreteProgramDef, ExecutableProgram

_with_zeros: dict[str, ConcreteProgramDef[Any, Any]] = {}
"""The programs with a static zero, by the keys of their entries, without their tables."""


def remember(key: str, definition: ConcreteProgramDef[Any, Any]) -> None:
    leaves = utils.flatten_nested_tuple(tuple(_static_values(definition.args).values()))
    if any(isinstance(leaf, float | np.floating) and leaf == 0 for leaf in leaves):
        args = dataclasses.replace(definition.args, offset_provider={})
        _with_zeros[key] = dataclasses.replace(definition, args=args)


def for_both_zeros(program: Any, key: str, backend: Backend[Any]) -> Any:
    """A program that was loaded, or a BothZeros around it if it has a static zero."""
    return BothZeros(program, _with_zeros[key], backend) if key in _with_zeros else program


class BothZeros:
    """A `program` with a static zero. It refuses a zero of the other sign, for which a call then builds another one."""

    def __init__(self, program: Any, definition: ConcreteProgramDef[Any, Any], backend: Backend[Any]) -> None:
        self.program, self._definition, self._backend = program, definition, backend
        self._values = _static_values(definition.args)
        self._signs = _signs(self._values.values())
        self._others: dict[tuple[float, ...], ExecutableProgram] = {}

    def __call__(self, *args: Any, offset_provider: Mapping[str, Any]) -> None:
        try:
            self.program(*args, offset_provider=offset_provider)
            return
        except ValueError:
            signs = _signs(args[index] for index in self._values)
            if signs == self._signs:
                raise
        if signs not in self._others:
            self._others[signs] = self._build(args, offset_provider)
        self._others[signs](*args, offset_provider=offset_provider)

    def _build(self, args: tuple[Any, ...], offset_provider: Mapping[str, Any]) -> ExecutableProgram:
        contexts = dict(self._definition.args.argument_descriptor_contexts)
        static = list(contexts[arguments.StaticArg].items())
        for index, value in self._values.items():
            static[index] = static[index][0], arguments.StaticArg(utils.tree_map(_with_sign)(value, args[index]))
        contexts[arguments.StaticArg] = dict(static)
        changed = {"argument_descriptor_contexts": contexts, "offset_provider": offset_provider}
        made = dataclasses.replace(self._definition.args, **changed)
        task = compilation_tasks.make_compilation_task(self._backend, self._definition.data, made)
        built = runners.get_default_runner().submit(task).result()
        return self._backend.load_artifact(built).program  # of a BothZeros


def _static_values(args: arguments.CompileTimeArgs) -> dict[int, Any]:
    """By the places of the parameters."""
    context = args.argument_descriptor_contexts.get(arguments.StaticArg, {}).values()
    return {index: each.value for index, each in enumerate(context) if isinstance(each, arguments.StaticArg)}


def _signs(values: Iterable[Any]) -> tuple[float, ...]:
    return tuple(math.copysign(1, leaf) for leaf in utils.flatten_nested_tuple(tuple(values)))


def _with_sign(value: Any, other: Any) -> Any:
    """A value with the sign of an equal one."""
    return value if math.copysign(1, value) == math.copysign(1, other) else -value
