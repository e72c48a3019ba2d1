"""Asks CMake for the compilers and for the flags with which it compiles and links a stub and an SDFG."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gtstub.errors import ToolchainError

FLAGS, TYPE_FLAGS = "-DGTSTUB_FLAGS", "-DGTSTUB_TYPE_FLAGS"
"""Stand in the C++ flags of an answer for those that a build passes in CMAKE_CXX_FLAGS, and those of its build type."""

BUILD_TYPES = ("Debug", "Release", "RelWithDebInfo", "MinSizeRel")

COMPILERS = {"CC": ("cc", "gcc", "icx", "clang"), "CXX": ("c++", "g++", "icpx", "clang++")}
"""The compilers that CMake searches on PATH if the environment variable is not set."""

HOW_TO_GET_A_COMPILER = "install one ('apt-get install gcc', or 'conda install c-compiler') or name it in CC"

_API = ".cmake/api/v1"


@dataclasses.dataclass(frozen=True)
class Answer:
    """
    `texts` are the values of answer.txt; the lists are flags. `files` maps the CMake files that CMake read besides its
    own, such as a toolchain file and what it includes, to their SHA-256; `environment` holds the variables that these
    files read, None for one that is not set.
    """

    texts: Mapping[str, str]
    c: Sequence[str]
    c_link: Sequence[str]
    cxx: Sequence[str]
    cxx_link: Sequence[str]
    files: Mapping[str, str]
    environment: Mapping[str, str | None]

    @property
    def is_current(self) -> bool:
        """Whether the files and the variables that they read are as they were."""
        return self.files == {path: digest(Path(path)) for path in self.files} and self.environment == {
            name: os.environ.get(name) for name in self.environment
        }


def ask(cxx: str, arguments: Sequence[str]) -> Answer:
    """
    Runs CMake with further `arguments`. `cxx` is the path of the C++ compiler, or empty for CMake's choice. Raises
    ToolchainError if CMake or the C compiler is missing or fails.
    """
    cmake = find_cmake()
    if cmake is None:
        raise ToolchainError("CMake was not found: install it with 'pip install cmake'.")
    if not any(map(shutil.which, names := candidates("CC"))):
        name = "A C compiler" if names is COMPILERS["CC"] else f"The C compiler '{names[0]}', which CC names,"
        raise ToolchainError(f"{name} was not found: {HOW_TO_GET_A_COMPILER}.")
    with tempfile.TemporaryDirectory(prefix="gtstub-") as directory:
        build = Path(directory)
        for kind in ("codemodel-v2", "cmakeFiles-v1"):
            (build / _API / "query" / kind).mkdir(parents=True)
        chosen = {
            "CMAKE_BUILD_TYPE": "GTSTUB",
            "CMAKE_C_FLAGS_GTSTUB": "",
            "CMAKE_CXX_FLAGS": FLAGS,
            "CMAKE_CXX_FLAGS_GTSTUB": TYPE_FLAGS,
            **({"CMAKE_CXX_COMPILER": cxx} if cxx else {}),
        }
        done = subprocess.run(
            [cmake, "-S", str(Path(__file__).with_name("cmake")), "-B", directory, *arguments]
            + [f"-D{name}={value}" for name, value in chosen.items()],
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
        return _read(build)


def find_cmake() -> str | None:
    """The CMake of gtstub's Python environment, else the one on PATH."""
    return shutil.which("cmake", path=sysconfig.get_path("scripts")) or shutil.which("cmake")


def candidates(variable: str) -> Sequence[str]:
    """The compiler that CC or CXX names, without its arguments; if the variable is not set, those that CMake tries."""
    return os.environ.get(variable, "").split()[:1] or COMPILERS[variable]


def digest(file: Path) -> str:
    """The SHA-256 of a file; empty if it cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def _read(build: Path) -> Answer:
    reply = build / _API / "reply"
    (index,) = reply.glob("index-*.json")
    replies = {each["kind"]: each["jsonFile"] for each in json.loads(index.read_text())["objects"]}
    configuration = json.loads((reply / replies["codemodel"]).read_text())["configurations"][0]
    targets = {each["name"]: json.loads((reply / each["jsonFile"]).read_text()) for each in configuration["targets"]}
    inputs = json.loads((reply / replies["cmakeFiles"]).read_text())["inputs"]
    files = [Path(each["path"]) for each in inputs if each.get("isExternal") and not each.get("isCMake")]
    names = {name for file in files for name in re.findall(r"ENV\{(\w+)\}", file.read_text(errors="replace"))}
    texts = dict(line.split("=", 1) for line in (build / "answer.txt").read_text().splitlines())
    return Answer(
        texts=texts,
        c=_compile_flags(targets["stub"]),
        c_link=_link_flags(targets["stub"], texts["shared"]),
        cxx=_compile_flags(targets["sdfg"]) if "sdfg" in targets else [],
        cxx_link=_link_flags(targets["sdfg"], texts["cxx_shared"]) if "sdfg" in targets else [],
        files={str(file): digest(file) for file in files},
        environment={name: os.environ.get(name) for name in sorted(names)},
    )


def _compile_flags(target: Mapping[str, Any]) -> list[str]:
    (group,) = target["compileGroups"]
    flags = [flag for each in group["compileCommandFragments"] for flag in shlex.split(each["fragment"])]
    flags += [f"-D{each['define']}" for each in group.get("defines", ())]
    for each in group.get("includes", ()):
        flags += ["-isystem" if each.get("isSystem") else "-I", each["path"]]
    if "sysroot" in group:
        flags.append(f"--sysroot={group['sysroot']['path']}")
    return sorted(flags, key=lambda flag: not flag.startswith("-std="))  # CMake 3 has them last, CMake 4 first


def _link_flags(target: Mapping[str, Any], shared: str) -> list[str]:
    """`shared` are the flags that make a shared library, which CMake 3 leaves out of its reply."""
    fragments = target["link"].get("commandFragments", ())
    flags = [flag for each in fragments for flag in shlex.split(each["fragment"])]
    return [*(flag for flag in shlex.split(shared) if flag not in flags), *flags]
