"""
The plug-in for icon4py. `setup_program` replaces icon4py's function and reads the tables of backends; `use` puts it in
the place of icon4py's in a whole model, and `python -m gtstub.frameworks.icon4py MODEL [ARGUMENT...]` runs a model so.
`make_backend` is for backend descriptors of icon4py's own function: {"backend_factory": make_backend, "device": ...}.
"""

from __future__ import annotations

import functools
import os
import runpy
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gt4py import next as gtx
from gt4py.next import backend as gtx_backend
from icon4py.model.common import model_backends, model_options
from icon4py.model.common.model_backends import DeviceType

from gtstub import settings
from gtstub.entries.toolchain.arch import arch
from gtstub.frameworks.backends.choice import Gpu, Tag, choose
from gtstub.frameworks.backends.tables import load_tables
from gtstub.frameworks.framework import compile  # noqa: A004  gt4py's own name
from gtstub.frameworks.gt4py.argument_types import parameter_types
from gtstub.frameworks.gt4py.backend import StubBackend
from gtstub.frameworks.gt4py.backend import make_backend as make_stub_backend
from gtstub.frameworks.gt4py.chosen import make_chosen_backend
from gtstub.settings import Mode, mode

type Backend = gtx_backend.Backend[Any] | DeviceType | Mapping[str, Any] | None

GPUS: Mapping[DeviceType | None, Gpu] = {DeviceType.CUDA: "cuda", DeviceType.ROCM: "rocm"}


def make_backend(*, device: DeviceType, **options: Any) -> StubBackend | None:
    """
    Like icon4py's `make_custom_dace_backend`: fields have unit stride in the horizontal. `options` are those of
    `gtstub.frameworks.gt4py.make_backend`.

    Only `setup_program` and `gtstub.compile()` know the program and read tables. With icon4py's own `setup_program`, a
    program gets the options of the descriptor only, not those that icon4py adds for its own factory.
    """
    return make_stub_backend(device=device, **{"unstructured_horizontal_has_unit_stride": True, **options})


def setup_program(
    *,
    program: Any,
    backend: Backend,
    constant_args: Mapping[str, Any] | None = None,
    variants: Mapping[str, Sequence[Any]] | None = None,
    horizontal_sizes: Mapping[str, Any] | None = None,
    vertical_sizes: Mapping[str, Any] | None = None,
    offset_provider: Mapping[str, Any] | None = None,
) -> Callable[..., None]:
    """
    Replaces icon4py's function in a granule by one changed import: binds constant arguments and sizes, compiles in the
    scalars among them, and builds the product of the lists in `variants`. Keyword arguments of a call override bound
    arguments.

    - `backend`: for a device, or a descriptor without a factory, the tables choose the backend (docs/backends.md). In a
      descriptor, icon4py's factory for DaCe means gtstub's backend, and options override the tables. A backend that
      `customize_backend` made of one of these counts as what it was made of. Another backend of gt4py is used
      unchanged; None runs the program in Python. Without cupy, icon4py's `model_backends.GPU` is None, too.

    Raises TypeError for another backend or device, ConfigError for an option that the backend does not know, and the
    errors of `gtstub.compile()`.
    """
    constant_args, offset_provider = constant_args or {}, offset_provider or {}
    horizontal_sizes, vertical_sizes = horizontal_sizes or {}, vertical_sizes or {}
    chosen = _choose_backend(program.__name__, backend, parameter_types(program))
    if chosen is None:
        if model_backends.GPU is None and mode() != Mode.PYTHON:
            _warn_about_python(program.__name__)
        bound = {**constant_args, **horizontal_sizes, **vertical_sizes}
        return functools.partial(program.with_backend(None), **bound, offset_provider=offset_provider)
    return compile(  # type: ignore[no-any-return]
        program,
        horizontal_sizes=horizontal_sizes,
        vertical_sizes=vertical_sizes,
        bound_args={name: value for name, value in constant_args.items() if not gtx.is_scalar_type(value)},
        bound_static_args={name: value for name, value in constant_args.items() if gtx.is_scalar_type(value)},
        static_args=variants or {},
        backend=chosen,
        offset_provider=offset_provider,
        static_horizontal_sizes=True,
        overridable=True,
    )


# --- A whole model ----------------------------------------------------------------------------------------------------


def customize_backend(program: Any, backend: Backend) -> gtx_backend.Backend[Any] | None:
    """
    Replaces icon4py's function, which makes a backend of a device or a descriptor. icon4py's driver calls it without a
    program, before it sets up any. The backend remembers what it was made of, so that `setup_program` can choose the
    options of each program.

    Raises TypeError and ConfigError as `setup_program` does.
    """
    if backend is None or isinstance(backend, gtx_backend.Backend):
        return backend
    name, types = ("", {}) if program is None else (program.__name__, parameter_types(program))
    made = _choose_backend(name, backend, types)
    if made is not None:
        # No field of the dataclass, so a copy with other fields is a backend of its own.
        object.__setattr__(made, _MADE_OF, backend if isinstance(backend, DeviceType) else dict(backend))
    return made


_MADE_OF = "_gtstub_made_of"
"""The attribute of a backend with the device or the descriptor that it was made of."""

_REPLACED: Sequence[tuple[Any, Any]] = (
    (model_options.setup_program, setup_program),
    (model_options.customize_backend, customize_backend),
)
"""icon4py's functions that `use` replaces, each with gtstub's."""


def use(*, backends: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = ()) -> None:
    """
    Makes every `setup_program` and `customize_backend` of icon4py gtstub's, for the rest of the process: programs that
    icon4py would run with DaCe run with gtstub, each with the options that the tables of backends have for it. GTFN,
    embedded execution, and backends that the caller made with gt4py stay what they are. A second call changes nothing.

    `backends` names files with such tables, which are added to those in GTSTUB_BACKENDS.

    This replaces names of another package: those of icon4py's modules that were imported, and of
    `icon4py.model.common.model_options`, where later imports find them. A module outside icon4py that has imported one
    of the two functions by name keeps icon4py's, so call `use` before.

    Raises OSError for a table that is missing, and ConfigError for a malformed one; then nothing is replaced.
    """
    files = [backends] if isinstance(backends, str | os.PathLike) else list(backends)
    known = os.environ.get(settings.BACKENDS, "")
    paths = [*filter(None, known.split(os.pathsep)), *(str(Path(file).absolute()) for file in files)]
    os.environ[settings.BACKENDS] = os.pathsep.join(dict.fromkeys(paths))
    try:
        load_tables()
    except BaseException:
        os.environ[settings.BACKENDS] = known
        raise
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == "icon4py":
            for name, value in list(vars(module).items()):
                for theirs, ours in _REPLACED:
                    if value is theirs:
                        setattr(module, name, ours)


def main(arguments: Sequence[str]) -> None:
    """Runs a module, or a file whose name ends in '.py', as Python's command line does, after `use()`."""
    if not arguments:
        raise SystemExit("Usage: python -m gtstub.frameworks.icon4py MODULE | FILE.py [ARGUMENT...]")
    use()
    model = arguments[0]
    sys.argv[:] = arguments
    if model.endswith(".py"):
        sys.path[0] = str(Path(model).parent)
        runpy.run_path(model, run_name="__main__")
    else:
        runpy.run_module(model, run_name="__main__", alter_sys=True)


# --- The backend of a program -----------------------------------------------------------------------------------------

_is_told = False
"""Whether the warning was given: a model has many programs."""


def _warn_about_python(name: str) -> None:
    global _is_told
    if not _is_told:
        _is_told = True
        warnings.warn(
            f"Program '{name}' runs in Python, because its backend is None. icon4py's 'model_backends.GPU' is None as"
            " well, because cupy is not installed: install cupy to use the GPU.",
            stacklevel=3,
        )


def _choose_backend(
    name: str, backend: Backend, types: Mapping[str, Any] = MappingProxyType({})
) -> gtx_backend.Backend[Any] | None:
    backend = getattr(backend, _MADE_OF, backend)
    if backend is None or isinstance(backend, gtx_backend.Backend):
        return backend
    descriptor = {"device": backend} if isinstance(backend, DeviceType) else backend
    if not isinstance(descriptor, Mapping):
        raise TypeError(
            f"The backend of program '{name}' must be a device, 'model_backends.CPU' or 'model_backends.GPU', a backend"
            f" descriptor, a backend of gt4py or None, but is {backend!r}."
        )
    device = descriptor.get("device", model_backends.CPU)
    factory = descriptor.get("backend_factory")
    if factory is None:
        kind = ""
    elif factory in (model_backends.make_custom_dace_backend, make_backend, make_stub_backend):
        kind = "GTSTUB_"
    elif factory is model_backends.make_custom_gtfn_backend:
        kind = "GTFN_"
    elif callable(factory):
        options = {name: value for name, value in descriptor.items() if name not in ("backend_factory", "device")}
        made: gtx_backend.Backend[Any] = factory(device=device, **options)
        return made
    else:
        raise TypeError(f"'backend_factory' of program '{name}' must be a function, but is {factory!r}.")
    if not isinstance(device, DeviceType) and device is not model_backends.GPU:  # None without cupy
        raise TypeError(
            f"'device' of program '{name}' must be 'model_backends.CPU' or 'model_backends.GPU', but is {device!r}."
        )
    tag = Tag(f"{kind}{'CPU' if device == model_backends.CPU else 'GPU'}")
    choice = choose(name, tag, arch(tag.device), load_tables(), GPUS.get(device))
    return make_chosen_backend(choice, descriptor, types)


if __name__ == "__main__":
    from gtstub.frameworks import icon4py  # not this copy, whose functions would be others

    icon4py.main(sys.argv[1:])
