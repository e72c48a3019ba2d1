"""
What a framework is, which ones there are, and `gtstub.compile()`, which hands a program to the one that it belongs to.

A framework is the package of a program that gtstub builds. Nothing here imports one: a program exists only after its
framework has been imported.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from gtstub.entries.building.own_errors import OwnErrors

if TYPE_CHECKING:
    from gt4py.next import backend as gtx_backend
    from gt4py.next import common

    from gtstub.entries.cache.lookup import Request
    from gtstub.frameworks.backends.choice import Tag
    from gtstub.stub.signature.model import ProgramSignature, SdfgSignature

NOTHING: Mapping[str, Any] = {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """The keyword arguments of `compile`."""

    horizontal_sizes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    vertical_sizes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    bound_args: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    bound_static_args: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    static_args: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    backend_tag: Tag | str | None = None
    backend: gtx_backend.Backend[Any] | None = None
    offset_provider: common.OffsetProvider | Sequence[common.OffsetProvider] = dataclasses.field(default_factory=dict)
    static_horizontal_sizes: bool = False
    overridable: bool = False

    @property
    def names(self) -> Iterator[str]:
        """The names of all parameters with values, in all tables."""
        tables = (self.horizontal_sizes, self.vertical_sizes, self.bound_args, self.bound_static_args, self.static_args)
        return itertools.chain.from_iterable(tables)

    @property
    def bound(self) -> dict[str, Any]:
        return {**self.horizontal_sizes, **self.vertical_sizes, **self.bound_args, **self.bound_static_args}

    @property
    def static_values(self) -> dict[str, Sequence[Any]]:
        """The list of values of each static argument."""
        of_sizes = self.horizontal_sizes if self.static_horizontal_sizes else {}
        one = {**of_sizes, **self.vertical_sizes, **self.bound_static_args}
        return {**{name: [value] for name, value in one.items()}, **self.static_args}


class Framework(Protocol):
    """What gtstub asks of a framework. `options` are those of `gtstub.compile()`; those that do not fit are refused."""

    NAME: str

    def is_program(self, found: Any) -> bool:
        """Whether an object is a program of the framework."""

    def compile(self, program: Any, options: CompileOptions) -> Any:
        """What `gtstub.compile()` returns. Its builds may go on."""

    def requests(self, program: Any, options: CompileOptions) -> list[Request]:
        """The entries that `compile` would look up, with the ingredients of their keys. Builds nothing."""

    def lower(self, program: Any, options: CompileOptions) -> int:
        """
        Lowers the programs of these entries, and keeps for a later `build` in this process what it can. Returns the
        size of the lowered programs, with which the time of their builds grows.
        """

    def build(self, program: Any, options: CompileOptions) -> None:
        """Builds these entries, and waits for them. Raises the error of the first that cannot be built."""

    def signatures(
        self, program: Any, static: Mapping[str, Any], offset_provider: Mapping[str, Any], options: Mapping[str, Any]
    ) -> tuple[ProgramSignature, SdfgSignature]:
        """
        Both signatures of a program, with values of scalars to compile in. Builds nothing. `options` are those of the
        framework's backend. Raises GtstubError for an unknown option, and the framework's own errors.
        """


FRAMEWORKS = {"gt4py": "gtstub.frameworks.gt4py.compile", "dace": "gtstub.frameworks.dace.compile"}
"""The packages of programs, each with the module that is its `Framework`."""


def framework_of(found: Any) -> Framework | None:
    """The framework of a program; None if an object is no program."""
    for package, module in FRAMEWORKS.items():
        if package in sys.modules:
            framework = cast(Framework, importlib.import_module(module))
            if framework.is_program(found):
                return framework
    return None


def compile(  # noqa: A001  gt4py's own word for it
    program: Any,
    *,
    horizontal_sizes: Mapping[str, Any] = NOTHING,
    vertical_sizes: Mapping[str, Any] = NOTHING,
    bound_args: Mapping[str, Any] = NOTHING,
    bound_static_args: Mapping[str, Any] = NOTHING,
    static_args: Mapping[str, Sequence[Any]] = NOTHING,
    backend_tag: Tag | str | None = None,
    backend: gtx_backend.Backend[Any] | None = None,
    offset_provider: common.OffsetProvider | Sequence[common.OffsetProvider] = NOTHING,
    static_horizontal_sizes: bool = False,
    overridable: bool = False,
) -> Any:
    """
    Compiles a gt4py program or field operator, and binds some of its arguments. Or compiles a DaCe program whose
    parameters are all annotated; it takes none of these options, and comes back as from `gtstub.program`.

    Returns a `CompiledProgram`, a callable that takes the unbound parameters by position or keyword. gtstub builds all
    variants, the product of the lists in `static_args`, in parallel. The first call of a variant waits for its build,
    as does `gtstub.wait_for_compilation()`, or this function if GTSTUB_WAIT=1 is set. `CompiledProgram.compile` adds
    variants.

    - `horizontal_sizes`: scalars to bind. With `static_horizontal_sizes` they are also compiled in, and ranks of a
      parallel run with different sizes compile their own variants.
    - `vertical_sizes`, `bound_static_args`: scalars (or tuples of them) to bind and compile in.
    - `bound_args`: fields and scalars to bind. Their types are checked at once.
    - `static_args`: for each name, the list of values that calls may pass.
    - `backend_tag`: a tag or its name (docs/backends.md), CPU by default; `backend`: a gt4py backend instead of a tag.
    - `offset_provider`: the offset provider to bind, or a list of several; then each call passes one of them.
    - `overridable`: calls may override bound arguments by keyword, as functools.partial allows.

    Raises TypeError or ValueError for arguments that do not fit the program. The code that waits for a build gets the
    errors of the build.
    """
    options = locals().copy()
    del options["program"]
    framework = framework_of(program)
    if framework is None:
        raise TypeError(
            f"Argument 'program' of 'compile' must be a gt4py program or field operator, or a DaCe program, not"
            f" '{type(program).__name__}'."
        )
    with OwnErrors():
        return framework.compile(program, CompileOptions(**options))
