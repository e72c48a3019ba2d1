"""
Compiles the text of a stub to its library with one compiler process.

CMake finds the C compiler and its flags for a shared library, which takes most of a second. gtstub therefore stores
CMake's answer in the cache directory and uses it until something changes that the answer depends on.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gtstub._version import __version__
from gtstub.errors import ToolchainError
from gtstub.install import INCLUDE, RUNTIME
from gtstub.util.atomic import replacing

VARIABLES = ("CC", "CFLAGS", "LDFLAGS", "CXX", "CMAKE_GENERATOR", "CMAKE_TOOLCHAIN_FILE")
"""The environment variables that CMake reads to find compilers."""

COMPILERS = {"CC": ("cc", "gcc", "icx", "clang"), "CXX": ("c++", "g++", "icpx", "clang++")}
"""The compilers that CMake searches on PATH if the environment variable is not set."""

HOW_TO_GET_A_COMPILER = "install one ('apt-get install gcc', or 'conda install c-compiler') or name it in CC"


class StubBuild:
    """A compiler process in the background. The caller must either `wait` or `cancel`."""

    def __init__(self, command: list[str], source: Path, kept: Path) -> None:
        self._compiler = command[0]
        self._source = source
        self._kept = kept
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        except OSError as error:
            raise ToolchainError(f"The C compiler '{self._compiler}' cannot be started: {error.strerror}.") from error

    def wait(self) -> None:
        """Returns when the library exists. If the compiler fails, keeps the C file and raises ToolchainError."""
        message, _ = self._process.communicate()
        if self._process.returncode != 0:
            raise ToolchainError(
                f"The C compiler '{self._compiler}' refused the stub '{self._keep()}' "
                f"with exit status {self._process.returncode}.\n{message.strip()}"
            )

    def cancel(self) -> None:
        """Terminates the compiler if it is still running. Its output is unusable."""
        self._process.terminate()
        self._process.communicate()

    def _keep(self) -> Path:
        """Copies the stub out of its build directory, which is deleted after a failure; returns the copy."""
        digest = hashlib.sha256(self._source.read_bytes()).hexdigest()
        directory = self._kept / f"{self._source.stem}-{digest[:12]}"
        directory.mkdir(parents=True, exist_ok=True)
        for file in (self._source, self._source.with_suffix(".h")):
            if file.exists():
                shutil.copy(file, directory)
        return directory / self._source.name


@dataclasses.dataclass(frozen=True)
class Toolchain:
    """
    A C compiler with its flags for stubs. The directory `kept` receives the stubs that do not compile. `cxx` and
    `cxx_version` describe the C++ compiler that DaCe finds; they are empty if there is none.
    """

    compiler: tuple[str, ...]
    id: str
    version: str
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    cxx: str
    cxx_version: str
    kept: Path

    @property
    def ingredients(self) -> dict[str, Any]:
        """The part of a cache key that describes the compilers and flags; it excludes the paths of the compilers."""
        return {
            "c": [f"{self.id} {self.version}", *self.compiler[1:]],
            "c_flags": " ".join(self.flags),
            "c_link_flags": " ".join(self.link_flags),
            "cxx": self.cxx_version,
        }

    def command(self, source: Path, output: Path) -> list[str]:
        """The command that compiles the stub `source` to the library `output`."""
        runtime = ["-I", str(INCLUDE), "-L", str(RUNTIME.parent), f"-l:{RUNTIME.name}"]
        return [*self.compiler, *self.flags, "-o", str(output), str(source), *runtime, *self.link_flags]

    def start(self, source: Path, output: Path) -> StubBuild:
        """Starts the compiler without waiting. A stub takes a tenth of a second, its SDFG takes seconds."""
        return StubBuild(self.command(source, output), source, self.kept)


def find(cache_dir: Path, shared: Sequence[Path] = ()) -> Toolchain:
    """
    The toolchain of this environment. CMake's answer and stubs that do not compile are stored in `cache_dir`; answers
    are also read from the directories `shared`.

    Raises ToolchainError if CMake or the compiler is missing or fails, or `cache_dir` cannot be written.
    """
    question = _question()
    name = _file_name(question)
    kept = cache_dir / "failed"
    for directory in (cache_dir, *shared):
        if (toolchain := _read(directory / name, kept)) is not None:
            return toolchain
    answer = _ask()
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        with replacing(cache_dir / name) as aside:
            text = json.dumps({"question": question, "answer": answer}, indent=1, sort_keys=True)
            aside.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise ToolchainError(f"The cache directory '{cache_dir}' cannot be written: {error.strerror}.") from error
    return _toolchain(answer, kept)


def known(directories: Sequence[Path]) -> list[Toolchain]:
    """
    The toolchains of all answers stored in `directories`, from any machine, this environment's first: the entries there
    may have been built with any of them. Needs neither CMake nor a compiler.
    """
    own = _file_name(_question())
    files = [file for directory in directories for file in sorted(directory.glob("toolchain-*.json"))]
    files.sort(key=lambda file: file.name != own)
    answers = (_read(file, directories[0] / "failed") for file in files)
    return [toolchain for toolchain in answers if toolchain is not None]


def is_complete() -> bool:
    """Whether CMake, a C compiler and a C++ compiler are on this machine."""
    question = _question()
    return question["cmake"] is not None and all(any(question[name]) for name in ("c", "cxx"))


def _file_name(question: dict[str, Any]) -> str:
    return f"toolchain-{hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:16]}.json"


def _question() -> dict[str, Any]:
    """Everything that can change CMake's answer."""
    return {
        "gtstub": __version__,
        "environment": {name: os.environ.get(name) for name in VARIABLES},
        "c": [_identity(shutil.which(name)) for name in _candidates("CC")],
        "cxx": [_identity(shutil.which(name)) for name in _candidates("CXX")],
        "cmake": _identity(find_cmake()),
    }


def _candidates(variable: str) -> Sequence[str]:
    """The compiler that CC or CXX names, without its arguments; if the variable is not set, those that CMake tries."""
    return os.environ.get(variable, "").split()[:1] or COMPILERS[variable]


def _identity(program: str | None) -> list[str | int] | None:
    """Path, size and time of a program, so that an upgrade in place counts as another program."""
    if program is None:
        return None
    status = Path(program).stat()
    return [str(Path(program).resolve()), status.st_size, status.st_mtime_ns]


def find_cmake() -> str | None:
    """The CMake of gtstub's Python environment, else the one on PATH."""
    return shutil.which("cmake", path=sysconfig.get_path("scripts")) or shutil.which("cmake")


def _ask() -> dict[str, str]:
    cmake = find_cmake()
    if cmake is None:
        raise ToolchainError("CMake was not found: install it with 'pip install cmake'.")
    if not any(map(shutil.which, candidates := _candidates("CC"))):
        name = "A C compiler" if candidates is COMPILERS["CC"] else f"The C compiler '{candidates[0]}', which CC names,"
        raise ToolchainError(f"{name} was not found: {HOW_TO_GET_A_COMPILER}.")
    with tempfile.TemporaryDirectory(prefix="gtstub-") as build:
        done = subprocess.run(
            [cmake, "-S", str(Path(__file__).with_name("cmake")), "-B", build],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ToolchainError(
                f"CMake found no C compiler that works: {HOW_TO_GET_A_COMPILER}.\n{done.stdout.strip()}"
            )
        lines = (Path(build) / "answer.txt").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def _toolchain(answer: dict[str, str], kept: Path) -> Toolchain:
    shared = [answer["standard"], "-O2", answer["pic"], answer["shared"], answer["visibility"] + "hidden"]
    return Toolchain(
        compiler=(answer["compiler"], *shlex.split(answer["arguments"])),
        id=answer["id"],
        version=answer["version"],
        flags=(*shared, *shlex.split(answer["cflags"])),
        link_flags=tuple(shlex.split(answer["ldflags"])),
        cxx=answer["cxx"],
        cxx_version=f"{answer['cxx_id']} {answer['cxx_version']}".strip(),
        kept=kept,
    )


def _read(file: Path, kept: Path) -> Toolchain | None:
    """The toolchain of a stored answer; None if the file is missing or damaged, so that CMake runs again."""
    try:
        return _toolchain(json.loads(file.read_text())["answer"], kept)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
