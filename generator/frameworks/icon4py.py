"""The plug-in for icon4py: {"backend_factory": make_backend, "device": ...} is a backend descriptor of icon4py."""

from __future__ import annotations

from typing import Any

from icon4py.model.common.model_backends import DeviceType

from gtstub.frameworks import gt4py


def make_backend(*, device: DeviceType, **options: Any) -> gt4py.StubBackend:
    """
    As icon4py's own `make_custom_dace_backend`: fields have unit stride in the horizontal. `options` are those of
    gt4py's `make_dace_backend`.

    icon4py tunes some programs, but only for its own factory; what it would pass can be said in the descriptor.
    """
    return gt4py.make_backend(device=device, **{"unstructured_horizontal_has_unit_stride": True, **options})
