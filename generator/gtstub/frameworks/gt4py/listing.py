"""What a file of programs to build ahead of time says about a program that a run has set up."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gt4py.next.otf import arguments

from gtstub import settings
from gtstub.entries.building.listing import Listed
from gtstub.frameworks.backends.choice import Choice, choose
from gtstub.frameworks.backends.tables import load_tables
from gtstub.frameworks.gt4py.internals import ConcreteProgramDef
from gtstub.util.canonical import plain


def listed(inp: ConcreteProgramDef[Any, Any], name: str, key: str, choice: Choice | None) -> Listed:
    """The [[program]] table of a variant, or why there is none. `choice` is that of its backend."""
    try:
        table: dict[str, Any] = {"source": _source(inp.data)}
        if inp.args.offset_provider:
            if not (grid := settings.list_grid()):
                raise _NotListedError(
                    "its offset provider has no name, so give the function that makes it with '--grid'"
                )
            table["grid"] = grid
        if static := _static(inp.args.argument_descriptor_contexts):
            table["bound_static_args"] = static
        if choice is None:
            raise _NotListedError(
                "its backend was made with options, and not for a tag: put them into a table of backends"
            )
        if choose(name, choice.tag, choice.arch, load_tables()).options != choice.options:
            raise _NotListedError("a table of backends has options for it, which its backend was not made with")
        return Listed(name, key, {**table, "backend_tag": str(choice.tag)})
    except _NotListedError as error:
        return Listed(name, key, why=str(error))


class _NotListedError(Exception):
    """Says why a program cannot be listed."""


def _source(stage: Any) -> str:
    """`module:name` of a program."""
    if not hasattr(stage, "definition"):
        raise _NotListedError("it was not made from a function")
    definition = stage.definition
    module = sys.modules[definition.__module__]
    name = str(definition.__qualname__)
    try:
        found = functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        found = None
    if getattr(getattr(found, "definition_stage", None), "definition", None) is not definition:
        raise _NotListedError(f"module '{definition.__module__}' has no '{name}' that is this program")
    return f"{_module_name(module)}:{name}"


def _module_name(module: Any) -> str:
    """The name by which another process imports a module."""
    if module.__name__ != "__main__":
        return str(module.__name__)
    if module.__spec__ is not None:  # of 'python -m'
        return str(module.__spec__.name)
    file = Path(getattr(module, "__file__", ""))
    if file.suffix != ".py" or file.absolute().parent != Path.cwd():
        raise _NotListedError("it is in a script outside the current directory, which other processes cannot import")
    return file.stem


def _static(contexts: Mapping[Any, Any]) -> dict[str, Any]:
    values = {}
    for kind, descriptors in contexts.items():
        for name, descriptor in descriptors.items():
            if not _is_empty(descriptor):
                if kind is not arguments.StaticArg:
                    raise _NotListedError("domains of its fields are compiled in")
                values[name] = _value(descriptor)
    return values


def _is_empty(descriptor: Any) -> bool:
    return all(map(_is_empty, descriptor)) if isinstance(descriptor, tuple) else descriptor is None


def _value(descriptor: Any) -> Any:
    if isinstance(descriptor, tuple):
        return [_value(element) for element in descriptor]
    if descriptor is None:
        raise _NotListedError("one of its arguments is a tuple that is only partly compiled in")
    return plain(descriptor.value)
