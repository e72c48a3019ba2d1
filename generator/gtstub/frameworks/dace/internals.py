"""The internals of DaCe that gtstub uses. After an upgrade of DaCe, check this module first."""

from __future__ import annotations

from typing import Any

import dace
from dace.sdfg import type_inference


def fixed_settings() -> dict[str, Any]:
    """The settings that change generated code and that DaCe reads only on import, with their values at that time."""
    return {
        "compiler.cpu.openmp_sections": dace.SDFG.openmp_sections.default,
        "compiler.default_data_types": {"int32": "C", "int64": "Python"}[
            type_inference._py2c_typeconversion["int"].to_string()
        ],
    }
