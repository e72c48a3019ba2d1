"""Projects that use the CMake package of gtstub: what runs CMake for them, and the hosts of tests/cmake/project."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

from gtstub.entries.toolchain.answer import find_cmake
from gtstub.install import FOLDER
from tests.support import scale_program as scale
from tests.support.checkout import ROOT
from tests.support.stubs import write_stub

HOSTS = ROOT / "tests" / "cmake" / "project"

FROM_PACKAGE, ALONE = "the Python package", "a runtime alone"

PROGRAM = shutil.which("gtstub", path=os.pathsep.join((str(FOLDER.parent / "bin"), sysconfig.get_path("scripts"))))
assert PROGRAM is not None, "gtstub is not installed with its scripts"

# No program 'gtstub' is found by chance.
ENVIRONMENT = {
    **os.environ,
    "PATH": os.pathsep.join(
        place for place in os.environ["PATH"].split(os.pathsep) if not (Path(place) / "gtstub").exists()
    ),
}


def cmake(*arguments: str | Path, fails: bool = False) -> str:
    """What CMake prints, blanks for line ends."""
    command = [find_cmake() or "cmake", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert (done.returncode != 0) is fails, f"{done.stdout}{done.stderr}"
    return " ".join((done.stdout + done.stderr).split())


def install_and_move(project: str, root: Path, sources: Path, folder: Path) -> Path:
    """
    Builds and installs the CMakeLists.txt `project`, with the program 'scale' and the host `host.c`, in `folder`. Moves
    what was installed, removes everything else, also the copy of gtstub, and returns the new place.
    """
    gtstub = shutil.copytree(root, folder / "a blank" / "gtstub")
    write_stub(scale.SDFG, scale.PROGRAM, sources)
    (sources / "built").mkdir()
    (sources / "libscale.so").rename(sources / "built" / "other_name.so")
    shutil.copy(HOSTS / "host.c", sources)
    (sources / "CMakeLists.txt").write_text(project)
    build, installed = folder / "build", folder / "installed"
    cmake("-S", sources, "-B", build, f"-Dgtstub_ROOT={gtstub}")
    cmake("--build", build)
    cmake("--install", build, "--prefix", installed)
    moved = installed.rename(folder / "moved")
    for each in (sources, build, gtstub):
        shutil.rmtree(each)
    return moved


class Project:
    """A copy of tests/cmake/project; CMake is told where gtstub and the sources are."""

    def __init__(self, folder: Path, root: Path, sources: Path, *languages: str) -> None:
        self.folder = folder / "project"
        self.build_folder = folder / "build"
        shutil.copytree(HOSTS, self.folder)
        self._options = [
            f"-Dgtstub_ROOT={root}",
            f"-DSOURCES={sources}",
            f"-DLANGUAGES_OF_HOSTS={';'.join(languages or ('C',))}",
        ]

    def configure(self, *options: str, fails: bool = False) -> str:
        return cmake("-S", self.folder, "-B", self.build_folder, *self._options, *options, fails=fails)

    def build(self, fails: bool = False) -> str:
        return cmake("--build", self.build_folder, fails=fails)

    def run(self, host: str, *arguments: str) -> str:
        command = [str(self.build_folder / host), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout
