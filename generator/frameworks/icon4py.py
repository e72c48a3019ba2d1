"""
The plug-in for icon4py: `setup_program` in place of its own, and `make_backend` for its backend descriptors:
{"backend_factory": make_backend, "device": ...}.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gt4py import next as gtx
from gt4py.next import backend as gtx_backend
from icon4py.model.common import model_backends
from icon4py.model.common.model_backends import DeviceType

from gtstub.arch import arch
from gtstub.backends import Tag, choose, load_tables
from gtstub.frameworks import backends, gt4py
from gtstub.frameworks.compile import compile  # noqa: A004  gt4py's own word for it


def make_backend(*, device: DeviceType, **options: Any) -> gt4py.StubBackend:
    """
    As icon4py's own `make_custom_dace_backend`: fields have unit stride in the horizontal. `options` are those of
    gt4py's `make_dace_backend`.

    icon4py tunes some programs, but only for its own factory; what it would pass can be said in the descriptor.
    """
    return gt4py.make_backend(device=device, **{"unstructured_horizontal_has_unit_stride": True, **options})


def setup_program(
    *,
    program: Any,
    backend: gtx_backend.Backend[Any] | DeviceType | Mapping[str, Any] | None,
    constant_args: Mapping[str, Any] | None = None,
    variants: Mapping[str, Sequence[Any]] | None = None,
    horizontal_sizes: Mapping[str, Any] | None = None,
    vertical_sizes: Mapping[str, Any] | None = None,
    offset_provider: Mapping[str, Any] | None = None,
) -> Callable[..., None]:
    """
    As icon4py's own, whose place it takes in a granule by one changed import: binds constant arguments and sizes,
    compiles in the scalars among them, and builds the product of the lists in `variants`. A call may override by
    keyword what is bound.

    - `backend`: a device, or a descriptor that names no factory, means what the table of backends says
      (docs/backends.md); icon4py's factory for DaCe means gtstub's backend. What a descriptor says wins over the table.
      A backend of gt4py's is used as it is; None runs the program in Python.
    """
    constant_args = constant_args or {}
    horizontal_sizes = horizontal_sizes or {}
    vertical_sizes = vertical_sizes or {}
    offset_provider = offset_provider or {}
    chosen = _choose_backend(program.__name__, backend)
    if chosen is None:
        bound = {**constant_args, **horizontal_sizes, **vertical_sizes}
        return functools.partial(program.with_backend(None), **bound, offset_provider=offset_provider)
    return compile(
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


def _choose_backend(
    name: str, backend: gtx_backend.Backend[Any] | DeviceType | Mapping[str, Any] | None
) -> gtx_backend.Backend[Any] | None:
    if backend is None or isinstance(backend, gtx_backend.Backend):
        return backend
    options = {"device": backend} if isinstance(backend, DeviceType) else dict(backend)
    device = options.pop("device", model_backends.CPU)
    factory = options.pop("backend_factory", None)
    kind = "CPU" if device == model_backends.CPU else "GPU"
    if factory is None:
        tag = Tag(kind)
    elif factory in (model_backends.make_custom_dace_backend, make_backend, gt4py.make_backend):
        tag = Tag(f"GTSTUB_{kind}")
    elif factory is model_backends.make_custom_gtfn_backend:
        tag = Tag(f"GTFN_{kind}")
        options = {}  # which that factory ignores as well
    else:
        made: gtx_backend.Backend[Any] = factory(device=device, **options)
        return made
    return backends.make(choose(name, tag, arch(tag.device), load_tables()), options)
