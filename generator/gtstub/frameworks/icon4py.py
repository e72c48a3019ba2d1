"""
The plug-in for icon4py. `setup_program` replaces icon4py's function and reads the tables of backends; `make_backend` is
for backend descriptors of icon4py's own function: {"backend_factory": make_backend, "device": ...}.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gt4py import next as gtx
from gt4py.next import backend as gtx_backend
from icon4py.model.common import model_backends
from icon4py.model.common.model_backends import DeviceType

from gtstub.backends.choice import Gpu, Tag, choose
from gtstub.backends.tables import load_tables
from gtstub.frameworks.framework import compile  # noqa: A004  gt4py's own name
from gtstub.frameworks.gt4py.argument_types import parameter_types
from gtstub.frameworks.gt4py.backend import StubBackend
from gtstub.frameworks.gt4py.backend import make_backend as make_stub_backend
from gtstub.frameworks.gt4py.chosen import make_chosen_backend
from gtstub.settings import Mode, mode
from gtstub.toolchain.arch import arch

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
      descriptor, icon4py's factory for DaCe means gtstub's backend, and options override the tables. A backend of gt4py
      is used unchanged; None runs the program in Python. Without cupy, icon4py's `model_backends.GPU` is None, too.

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
