"""CPython here, and CPython for arm64, which '.ci/arm-root' has installed and qemu runs."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.checkout import ROOT

FOLDER = ROOT / "build" / "arm" / "venv" / "bin"

needs_arm_python = pytest.mark.skipif(
    not (FOLDER.parent / ".packages").exists(), reason="build/arm/venv is not complete; 'make arm' makes it"
)


@dataclasses.dataclass(frozen=True)
class Machine:
    """Where Python runs. `folder` has its interpreter and the compilers for its programs."""

    name: str
    folder: Path

    def start(
        self, *arguments: str | Path, exit_code: int = 0, **variables: str | Path
    ) -> subprocess.CompletedProcess[str]:
        """Runs a Python process to its end, with `arguments` and further environment variables."""
        environment = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX", "CFLAGS")}
        environment["PATH"] = f"{self.folder}{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            [str(self.folder / "python"), *map(str, arguments)],
            cwd=ROOT,
            env={**environment, **{name: str(value) for name, value in variables.items()}},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == exit_code, f"{done.stdout}{done.stderr}"
        return done

    def run(self, *arguments: str | Path, **variables: str | Path) -> str:
        """What such a process prints; it must end well."""
        return self.start(*arguments, **variables).stdout


X86 = Machine("x86_64", Path(sys.executable).parent)
ARM = Machine("aarch64", FOLDER)
