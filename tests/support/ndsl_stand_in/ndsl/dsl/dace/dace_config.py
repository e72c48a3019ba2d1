"""Stand-in for ndsl.dsl.dace.dace_config; see the package."""

from __future__ import annotations

import enum
from typing import Any

import dace

from ndsl.performance import NullPerformanceCollector, PerformanceCollector


class DaCeOrchestration(enum.Enum):
    Python = 0
    Build = 1
    BuildAndRun = 2
    Run = 3


class DaceConfig:
    def __init__(
        self,
        communicator: Any,
        backend: str,
        orchestration: DaCeOrchestration = DaCeOrchestration.Python,
        time: bool = False,
    ) -> None:
        assert communicator is None
        self.loaded_dace_executables: dict[Any, Any] = {}
        self.performance_collector = PerformanceCollector() if time else NullPerformanceCollector()
        self.do_compile = True
        self._backend = backend
        self._orchestrate = orchestration
        if self.is_dace_orchestrated():
            for path, value in {
                "compiler.build_type": "Release",
                "compiler.cpu.args": "-march=native -fPIC -Wall -Wextra -O1",  # those of DaCe's precompiled header, too
                "compiler.allow_view_arguments": True,
                "frontend.dont_fuse_callbacks": True,
                "store_history": False,
            }.items():
                dace.Config.set(*path.split("."), value=value)

    def is_dace_orchestrated(self) -> bool:
        return self._orchestrate != DaCeOrchestration.Python

    def is_gpu_backend(self) -> bool:
        return "gpu" in self._backend

    def get_backend(self) -> str:
        return self._backend

    def get_orchestrate(self) -> DaCeOrchestration:
        return self._orchestrate
