"""
From the text of a stub to its library: one compiler process.

CMake knows how to find a C compiler and how that compiler makes a shared library, but asking it takes most of a second.
So it is asked once, and its answer kept until something changes that it depends on.
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
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gtstub import __version__
from gtstub.errors import ToolchainError
from gtstub.signature.abi import ABI

PACKAGE = Path(__file__).parents[1]
INCLUDE = PACKAGE / "include"
RUNTIME = PACKAGE / "lib" / f"libgtstub.so.{ABI}"

VARIABLES = ("CC", "CFLAGS", "LDFLAGS", "CXX", "CMAKE_GENERATOR", "CMAKE_TOOLCHAIN_FILE")
"""What CMake reads from the environment when it looks for compilers."""

COMPILERS = ("cc", "gcc", "icx", "clang")
"""What CMake looks for on PATH where CC does not say."""

CXX_COMPILERS = ("c++", "g++", "icpx", "clang++")
"""The same for CXX."""

HOW_TO_GET_A_COMPILER = "install one ('apt-get install gcc', or 'conda install c-compiler') or name it in CC"


class StubBuild:
    """A compiler at work in the background; whoever starts one either waits for it or cancels it."""

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
        """Returns when the library is there; raises ToolchainError, and keeps the C file, when the compiler refuses."""
        message, _ = self._process.communicate()
        if self._process.returncode != 0:
            raise ToolchainError(
                f"The C compiler '{self._compiler}' refused the stub '{self._keep()}' "
                f"with exit status {self._process.returncode}.\n{message.strip()}"
            )

    def cancel(self) -> None:
        """Ends the compiler where it is still running; nothing it wrote is of use."""
        self._process.terminate()
        self._process.communicate()

    def _keep(self) -> Path:
        """Copies the stub out of its build directory, which does not outlive a failure; returns where it lies now."""
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
    A C compiler, and its flags for a stub; stubs that it refuses are kept in the directory `kept`. `cxx` and
    `cxx_version` are of the C++ compiler that DaCe finds, empty where there is none.
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
        """What decides how stubs and SDFGs are compiled: not where the compilers lie."""
        return {
            "c": [f"{self.id} {self.version}", *self.compiler[1:]],
            "c_flags": " ".join(self.flags),
            "c_link_flags": " ".join(self.link_flags),
            "cxx": self.cxx_version,
        }

    def command(self, source: Path, output: Path) -> list[str]:
        """The one command that makes the library `output` of the stub `source`."""
        runtime = ["-I", str(INCLUDE), "-L", str(RUNTIME.parent), f"-l:{RUNTIME.name}"]
        return [*self.compiler, *self.flags, "-o", str(output), str(source), *runtime, *self.link_flags]

    def start(self, source: Path, output: Path) -> StubBuild:
        """Starts the compiler and returns at once; the stub takes a tenth of a second, its SDFG takes seconds."""
        return StubBuild(self.command(source, output), source, self.kept)


def find(cache_dir: Path, shared: Sequence[Path] = ()) -> Toolchain:
    """
    The toolchain of this environment. CMake's answer is kept in `cache_dir`, and so are stubs that do not compile; an
    answer in one of the directories `shared`, which are only read, will do as well.

    Raises ToolchainError where there is no compiler, no CMake, or where they do not work together.
    """
    question = _question()
    name = _file_name(question)
    kept = cache_dir / "failed"
    for directory in (cache_dir, *shared):
        if (toolchain := _read(directory / name, kept)) is not None:
            return toolchain
    answer = _ask()
    _write(cache_dir / name, {"question": question, "answer": answer})
    return _toolchain(answer, kept)


def known(directories: Sequence[Path]) -> list[Toolchain]:
    """
    The toolchains of all answers that are kept in `directories`, of whatever machine, this environment's first: what
    entries there may have been built with. Neither CMake nor a compiler is asked, or needed.
    """
    own = _file_name(_question())
    files = [file for directory in directories for file in sorted(directory.glob("toolchain-*.json"))]
    files.sort(key=lambda file: file.name != own)
    answers = (_read(file, directories[0] / "failed") for file in files)
    return [toolchain for toolchain in answers if toolchain is not None]


def is_complete() -> bool:
    """Whether CMake and compilers for C and C++ are found here."""
    question = _question()
    return question["cmake"] is not None and all(any(question[name]) for name in ("c", "cxx"))


def _file_name(question: dict[str, Any]) -> str:
    return f"toolchain-{hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:16]}.json"


def _question() -> dict[str, Any]:
    """Everything that could change CMake's answer."""
    compiler = os.environ.get("CC", "").split()[:1]
    cxx = os.environ.get("CXX", "").split()[:1]
    return {
        "gtstub": __version__,
        "environment": {name: os.environ.get(name) for name in VARIABLES},
        "c": [_identity(shutil.which(name)) for name in compiler or COMPILERS],
        "cxx": [_identity(shutil.which(name)) for name in cxx or CXX_COMPILERS],
        "cmake": _identity(find_cmake()),
    }


def _identity(program: str | None) -> list[str | int] | None:
    """Which program a name stands for today: an upgrade in place is another one."""
    if program is None:
        return None
    status = Path(program).stat()
    return [str(Path(program).resolve()), status.st_size, status.st_mtime_ns]


def find_cmake() -> str | None:
    """The CMake that was installed beside gtstub, else the one on PATH."""
    return shutil.which("cmake", path=sysconfig.get_path("scripts")) or shutil.which("cmake")


def _ask() -> dict[str, str]:
    cmake = find_cmake()
    if cmake is None:
        raise ToolchainError("CMake was not found: install it with 'pip install cmake'.")
    compiler = os.environ.get("CC", "").split()[:1]
    if not any(shutil.which(name) for name in compiler or COMPILERS):
        name = f"The C compiler '{compiler[0]}', which CC names," if compiler else "A C compiler"
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
            message = f"CMake found no C compiler that works: {HOW_TO_GET_A_COMPILER}."
            raise ToolchainError(f"{message}\n{done.stdout.strip()}")
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
    """The toolchain of an answer that was kept, or None where there is none or it is damaged: CMake is asked again."""
    try:
        return _toolchain(json.loads(file.read_text())["answer"], kept)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _write(file: Path, document: dict[str, object]) -> None:
    """Writes aside and renames, so that another process reads all of it or nothing."""
    aside = file.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
        aside.replace(file)
    except OSError as error:
        raise ToolchainError(f"The cache directory '{file.parent}' cannot be written: {error.strerror}.") from error
