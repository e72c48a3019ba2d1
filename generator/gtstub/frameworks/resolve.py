"""Resolves names from the command line: saved SDFGs, and programs and grids of the form `module:name`."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gtstub.errors import GtstubError, reason
from gtstub.install import how_to_install
from gtstub.signature.model import Device, ProgramSignature, SdfgSignature


def from_file(file: Path, gpu: Device) -> SdfgSignature:
    """The signature of an SDFG that DaCe saved. `gpu` is the device of its GPU code."""
    with frameworks("extract"):
        from gtstub.frameworks.dace.sdfg_signature import read_sdfg
    return read_sdfg(file, gpu)


def from_module(
    program: str, grid: str | None, static: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[ProgramSignature, SdfgSignature]:
    """
    Both signatures of the program `program`, of the form `module:name`. Lowers the program, but does not build it.

    `grid` is as in `offset_provider`, `static` maps names to scalars to compile in, and `options` are keyword arguments
    of `make_backend`.
    """
    found = resolve_program(program)
    with frameworks("extract"):
        from gtstub.frameworks.gt4py.backend import make_backend
        from gtstub.frameworks.gt4py.target import CompiledTarget
    known = inspect.signature(make_backend).parameters
    for option in options:
        if option not in known:
            raise GtstubError(f"The backend has no option '{option}'. Its options: {', '.join(map(repr, known))}.")
    backend = make_backend(**{"gpu": False, **options})
    if backend is None:
        raise GtstubError("Mode 'Python' compiles nothing: unset GTSTUB_MODE to extract signatures.")
    provider = offset_provider(grid) if grid is not None else {}
    try:
        return CompiledTarget(found, backend).signatures(static, provider)
    except GtstubError:
        raise
    except Exception as error:  # gt4py's exceptions have no common base class.
        raise GtstubError(f"gt4py cannot lower '{program}': {reason(error).rstrip('.')}.") from error


def resolve_program(name: str) -> Any:
    """The gt4py program or field operator that `module:name` names."""
    found = resolve(name)
    if not hasattr(found, "definition_stage") or not hasattr(found, "with_backend"):
        raise GtstubError(f"'{name}' is not a gt4py program or field operator, but of type '{type(found).__name__}'.")
    return found


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
