"""Resolves names from the command line: programs and grids of the form `module:name`."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from gtstub.errors import GtstubError, reason
from gtstub.frameworks.framework import Framework, framework_of
from gtstub.install import how_to_install
from gtstub.stub.signature.model import ProgramSignature, SdfgSignature


def signatures_of(
    program: str, grid: str | None, static: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[ProgramSignature, SdfgSignature]:
    """
    Both signatures of the program `program`, of the form `module:name`. Lowers the program, but does not build it.

    `grid` is as in `offset_provider`, `static` maps names to scalars to compile in, and `options` are those of the
    backend.
    """
    with frameworks("extract"):
        framework, found = resolve_program(program)
    provider = offset_provider(grid) if grid is not None else {}
    try:
        return framework.signatures(found, static, provider, options)
    except GtstubError:
        raise
    except Exception as error:  # gt4py's exceptions have no common base class.
        raise GtstubError(f"{framework.NAME} cannot lower '{program}': {reason(error).rstrip('.')}.") from error


def resolve_program(name: str) -> tuple[Framework, Any]:
    """The program that `module:name` names, with its framework."""
    found = resolve(name)
    framework = framework_of(found)
    if framework is None:
        raise GtstubError(
            f"'{name}' is neither a gt4py program or field operator nor a DaCe program, but of type"
            f" '{type(found).__name__}'."
        )
    return framework, found


def offset_provider(grid: str) -> Mapping[str, Any]:
    """
    The offset provider that the function `grid`, of the form `module:name`, returns. The function may also return an
    object with the offset provider as `connectivities`, such as a grid of icon4py.
    """
    made = resolve(grid)()
    provider: Mapping[str, Any] = getattr(made, "connectivities", made)
    return provider


@contextlib.contextmanager
def frameworks(command: str) -> Iterator[None]:
    """Turns a failed import into an error that says how to install the package that command `command` needs."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "gtstub":
            raise
        package = error.name.partition(".")[0]
        raise GtstubError(f"'gtstub {command}' needs Python package '{package}': {how_to_install('gt4py')}.") from None


def resolve(name: str) -> Any:
    """The object `module:name`. The search for the module includes the current directory."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise GtstubError(f"'{name}' is neither a '.sdfg' or '.sdfgz' file nor of the form 'module:name'.")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise GtstubError(f"Module '{module_name}' cannot be imported: {error}.") from error
    try:
        return functools.reduce(getattr, attribute.split("."), module)
    except AttributeError:
        raise GtstubError(f"Module '{module_name}' has no '{attribute}'.") from None
