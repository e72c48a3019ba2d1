"""
Compiles the text of a stub to its library with one compiler process.

CMake finds the compilers and their flags for shared libraries, which takes most of a second. gtstub therefore stores
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
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gtstub._version import __version__
from gtstub.entries.toolchain.answer import BUILD_TYPES, FLAGS, TYPE_FLAGS, Answer, ask, candidates, find_cmake
from gtstub.entries.toolchain.cpu import BASELINE, compiled_features, key_features
from gtstub.entries.toolchain.environment import ANSWERED, in_key, refuse_overrides
from gtstub.entries.toolchain.identity import compiler_identity, identity
from gtstub.entries.trust import make_directory, read_trusted, restrict
from gtstub.errors import ToolchainError, TrustError
from gtstub.install import INCLUDE, RUNTIME
from gtstub.util.atomic import replacing

LARGEST = 2**22
"""Bytes of the largest answer that is read."""


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
        try:
            message, _ = self._process.communicate()
        except BaseException:  # KeyboardInterrupt, for example
            self.cancel()
            raise
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
        """Copies the stub out of its build directory, which is deleted after a failure. Returns the copy, if it can."""
        digest = hashlib.sha256(self._source.read_bytes()).hexdigest()
        directory = self._kept / f"{self._source.stem}-{digest[:12]}"
        try:
            make_directory(directory, exist_ok=True)
            for file in (self._source, self._source.with_suffix(".h")):
                if file.exists():
                    restrict(Path(shutil.copy(file, directory)))
        except OSError:
            return self._source
        return directory / self._source.name


@dataclasses.dataclass(frozen=True)
class Toolchain:
    """
    CMake's answer as the compilers with their flags. `question` has all that can change it, except the files that CMake
    read. The directory `kept` receives the stubs that do not compile.
    """

    answer: Answer
    question: Mapping[str, Any]
    kept: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that compilers and CMake read themselves."""
        return dict(self.question["environment"])

    @property
    def digest(self) -> str:
        """
        A SHA-256 (hexadecimal) that differs for another answer or another question. Unlike `ingredients` it contains
        the paths, sizes and times of the compilers and of CMake.
        """
        everything = [self.question, dataclasses.asdict(self.answer)]
        return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()

    @property
    def compiler(self) -> tuple[str, ...]:
        """The C compiler, with the arguments that CC names."""
        return (self.answer.texts["compiler"], *shlex.split(self.answer.texts["arguments"]))

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of the C compiler for a stub."""
        return ("-O2", *self.answer.c)

    @property
    def name(self) -> str:
        """The C compiler and its version."""
        return f"{self.answer.texts['id']} {self.answer.texts['version']}"

    @property
    def cxx(self) -> tuple[str, ...]:
        """The C++ compiler that DaCe uses, with its arguments; empty if there is none."""
        path = self.answer.texts["cxx"]
        return (path, *shlex.split(self.answer.texts["cxx_arguments"])) if path else ()

    @property
    def cxx_name(self) -> str:
        """The C++ compiler and its version; empty if there is none."""
        return f"{self.answer.texts['cxx_id']} {self.answer.texts['cxx_version']}".strip()

    def cxx_flags(self, build_type: str, flags: str) -> tuple[str, ...]:
        """All flags of the C++ compiler in a build of this type, to which DaCe passes `flags`."""
        inserted = {FLAGS: flags, TYPE_FLAGS: self.answer.texts.get(f"cxx_{build_type}", "")}
        return tuple(flag for each in self.answer.cxx for flag in shlex.split(inserted.get(each, shlex.quote(each))))

    @property
    def ingredients(self) -> dict[str, Any]:
        """The part of a cache key that describes the compilers and flags; it excludes the paths of the compilers."""
        texts, answer = self.answer.texts, self.answer
        own = [*self.compiler[1:], *answer.c, *self.cxx[1:], *answer.cxx, *(texts[f"cxx_{x}"] for x in BUILD_TYPES)]
        return {
            "c": [self.name, *self.compiler[1:]],
            "c_flags": " ".join(self.flags),
            "c_link_flags": " ".join(answer.c_link),
            "cxx": [self.cxx_name, *self.cxx[1:]],
            "cxx_flags": {"": " ".join(answer.cxx), **{name: texts[f"cxx_{name}"] for name in BUILD_TYPES}},
            "cxx_link_flags": " ".join(answer.cxx_link),
            "cpu": key_features(" ".join(own)),
            "cmake_files": sorted(set(answer.files.values())),
            "environment": {**self.environment, **answer.environment},
        }

    def compiled_features(self, build_type: str, flags: str) -> tuple[str, ...]:
        """The features that a CPU needs for a stub and for an SDFG that DaCe builds with `flags`."""
        found = {
            *compiled_features(self.compiler, self.flags, "c"),
            *(compiled_features(self.cxx, self.cxx_flags(build_type, flags), "c++") if self.cxx else ()),
        }
        return tuple(sorted(found))

    def command(self, source: Path, output: Path, cpu: Iterable[str] = ()) -> list[str]:
        """
        The command that compiles the stub `source` to the library `output`. The stub tells the runtime the features
        `cpu` that its program needs, except those that every CPU has.
        """
        runtime = ["-I", str(INCLUDE), "-L", str(RUNTIME.parent), f"-l:{RUNTIME.name}"]
        needed = sorted(set(cpu) - BASELINE)
        defined = [f'-DGTS_NEEDED_CPU="{" ".join(needed)}"'] if needed else []
        return [*self.compiler, *self.flags, *defined, "-o", str(output), str(source), *runtime, *self.answer.c_link]

    def start(self, source: Path, output: Path, cpu: Iterable[str] = ()) -> StubBuild:
        """Starts the compiler without waiting. A stub takes a tenth of a second, its SDFG takes seconds."""
        return StubBuild(self.command(source, output, cpu), source, self.kept)


def find(
    cache_dir: Path,
    shared: Sequence[Path] = (),
    cxx: str = "",
    arguments: Sequence[str] = (),
    machine: Path | None = None,
) -> Toolchain:
    """
    The toolchain of this environment. CMake's answer and stubs that do not compile are stored in `cache_dir`; answers
    are also read from the directories `shared`. The directory `machine` has the answers for other caches of this user.
    `cxx` is the C++ compiler that DaCe uses, or empty for CMake's choice; `arguments` are those that DaCe passes to
    CMake besides its own.

    Raises ToolchainError if CMake or the compiler is missing or fails, or if a variable would change flags unnoticed.
    """
    refuse_overrides(os.environ)
    question = _question(cxx, arguments)
    name = _file_name(question)
    kept = cache_dir / "failed"
    for directory in (cache_dir, *shared):
        if (toolchain := _read(directory / name, kept)) is not None and toolchain.answer.is_current:
            return toolchain
    toolchain = None if machine is None else _read(machine / name, kept)
    if toolchain is None or not toolchain.answer.is_current:
        toolchain = Toolchain(ask(shutil.which(cxx) or "", arguments), question, kept)
        if machine is not None:
            with suppress(OSError):  # It only saves time.
                _write(toolchain, machine / name)
    with suppress(OSError):  # What is needed may be in a cache that cannot be written. If not, the build says so.
        make_directory(cache_dir, exist_ok=True)
        _write(toolchain, cache_dir / name)
    return toolchain


def _write(toolchain: Toolchain, file: Path) -> None:
    document = {"question": toolchain.question, "answer": dataclasses.asdict(toolchain.answer)}
    with replacing(file) as aside:
        aside.write_text(f"{json.dumps(document, indent=1, sort_keys=True)}\n", encoding="utf-8")
        restrict(aside)


def known(directories: Sequence[Path], cxx: str = "", arguments: Sequence[str] = ()) -> list[Toolchain]:
    """
    The toolchains of all answers stored in `directories`, from any machine, this environment's first: the entries there
    may have been built with any of them. Needs neither CMake nor a compiler, and starts no process.
    """
    own = _without_versions(_question(cxx, arguments, asks=False))
    files = [file for directory in directories for file in sorted(directory.glob("toolchain-*.json"))]
    answers = (_read(file, directories[0] / "failed") for file in files)
    read = (toolchain for toolchain in answers if toolchain is not None)
    return sorted(read, key=lambda toolchain: _without_versions(toolchain.question) != own)


def is_complete(cxx: str = "") -> bool:
    """Whether CMake, a C compiler and a C++ compiler (`cxx`, or any) are on this machine."""
    groups = (candidates("CC"), [cxx] if cxx else candidates("CXX"))
    return find_cmake() is not None and all(any(map(shutil.which, group)) for group in groups)


def _file_name(question: dict[str, Any]) -> str:
    return f"toolchain-{hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:16]}.json"


def _question(cxx: str, arguments: Sequence[str], *, asks: bool = True) -> dict[str, Any]:
    """
    What can change CMake's answer, except the files that it reads (Answer.is_current). `asks` says whether compilers
    that are wrappers are asked for their versions.
    """
    return {
        "gtstub": __version__,
        "answered": {name: os.environ.get(name) for name in ANSWERED},
        "environment": in_key(os.environ),
        "arguments": list(arguments),
        "c": [compiler_identity(command, asks=asks) for command in _commands("CC")],
        "cxx": [compiler_identity(command, asks=asks) for command in ([[cxx]] if cxx else _commands("CXX"))],
        "cmake": identity(find_cmake()),
    }


def _without_versions(question: Mapping[str, Any]) -> str:
    """A question as text, without the versions that wrappers have printed."""
    short = {}
    for name in ("c", "cxx"):
        if isinstance(identities := question.get(name), list):
            short[name] = [each[:3] if isinstance(each, list) else each for each in identities]
    return json.dumps({**question, **short}, sort_keys=True)


def _commands(variable: str) -> list[list[str]]:
    """The compiler that CC or CXX names, with its arguments; if the variable is not set, those that CMake tries."""
    arguments = os.environ.get(variable, "").split()[1:]
    return [[name, *arguments] for name in candidates(variable)]


def _read(file: Path, kept: Path) -> Toolchain | None:
    """
    The toolchain of a stored answer. None if the file is missing or damaged, or if somebody who is not trusted could
    have written it (without the extension module, that is not known): it names the compiler that runs. Then CMake runs
    again.
    """
    try:
        document = json.loads(read_trusted(file, LARGEST))
        toolchain = Toolchain(Answer(**document["answer"]), dict(document["question"]), kept)
        toolchain.ingredients  # noqa: B018  raises if a part is missing or of another type
    except (OSError, ImportError, TrustError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None
    return toolchain
