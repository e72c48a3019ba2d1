"""The plug-in for icon4py: {"backend_factory": make_backend, "device": ...} is a backend descriptor of icon4py."""

from __future__ import annotations

from typing import Any

from icon4py.model.common.model_backends import GPU, DeviceType

from gtstub.frameworks import gt4py


def make_backend(
    *,
    device: DeviceType,
    auto_optimize: bool = True,
    async_sdfg_call: bool = True,
    optimization_args: dict[str, Any] | None = None,
    external_workspace: Any = None,
    use_metrics: bool = True,
    use_zero_origin: bool = False,
    use_max_domain_range_on_unstructured_shift: bool | None = None,
) -> gt4py.StubBackend:
    """
    As icon4py's own `make_custom_dace_backend`: fields have unit stride in the horizontal.

    icon4py tunes some programs, but only for its own factory; what it would pass can be said in the descriptor.
    """
    return gt4py.make_backend(
        gpu=device == GPU,
        auto_optimize=auto_optimize,
        async_sdfg_call=async_sdfg_call,
        optimization_args=optimization_args,
        external_workspace=external_workspace,
        unstructured_horizontal_has_unit_stride=True,
        use_metrics=use_metrics,
        use_zero_origin=use_zero_origin,
        use_max_domain_range_on_unstructured_shift=use_max_domain_range_on_unstructured_shift,
    )
