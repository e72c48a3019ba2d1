"""The real CMake and the real compiler, behind scripts that write down when they are called."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

import gtstub
from gtstub.entries.toolchain.answer import find_cmake
from gtstub.entries.toolchain.compiler import Toolchain, find, is_complete, known
from gtstub.errors import ToolchainError
from gtstub.install import RUNTIME
from tests.support.own_cache import copy_answers

STUB = """
#include "x_stub.h"
#include "gtstub/stub.h"
GTS_EXPORT const char *x_name(void);
GTS_EXPORT const char *x_name(void) { return gts_dtype_name(X_DTYPE); }
const char *x_hidden(void);
const char *x_hidden(void) { return "hidden"; }
"""
HEADER = "#define X_DTYPE GTS_INT32\n"


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    source = tmp_path / "build" / "x_stub.c"
    source.parent.mkdir()
    source.write_text(STUB)
    source.with_suffix(".h").write_text(HEADER)
    return source


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def warm_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where CMake has been asked already, for tests of what comes after."""
    directory = tmp_path_factory.mktemp("warm-cache")
    find(directory)
    return directory


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory for scripts that stand before real programs."""
    directory = tmp_path / "programs"
    directory.mkdir()
    return directory


def write_script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def compiler_path() -> str:
    path = shutil.which("cc") or shutil.which("gcc")
    assert path is not None
    return path


def test_stub_is_compiled_linked_to_the_runtime_and_exports_what_it_says(stub: Path, warm_cache: Path) -> None:
    library = stub.with_suffix(".so")
    find(warm_cache).start(stub, library).wait()
    ctypes.CDLL(str(RUNTIME))
    loaded = ctypes.CDLL(str(library))
    loaded.x_name.restype = ctypes.c_char_p
    assert loaded.x_name() == b"int32"
    assert not hasattr(loaded, "x_hidden")


def test_command_is_one_compiler_call(stub: Path, warm_cache: Path) -> None:
    toolchain = find(warm_cache)
    command = toolchain.command(stub, stub.with_suffix(".so"))
    assert command[0] == str(toolchain.compiler[0])
    for flag in ("-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", f"-l:{RUNTIME.name}", str(stub)):
        assert flag in command


def test_a_stub_says_what_its_program_needs_of_a_cpu(stub: Path, warm_cache: Path) -> None:
    """Not what every CPU has: then loading it looks for nothing."""
    ctypes.CDLL(str(RUNTIME))
    library = stub.with_suffix(".so")
    find(warm_cache).start(stub, library, ["sse2", "fma", "avx2"]).wait()
    assert ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(str(library)), NEEDED))) == b"avx2 fma"
    other = stub.with_name("other.so")
    find(warm_cache).start(stub, other, ["sse2"]).wait()
    assert not hasattr(ctypes.CDLL(str(other)), NEEDED)


NEEDED = "gts_needed_cpu"
FIND = (
    "import sys, pathlib, gtstub.entries.toolchain.compiler as t; print(t.find(pathlib.Path(sys.argv[1])).ingredients)"
)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """An interpreter that finds gtstub, and no CMake beside itself."""
    venv.create(tmp_path / "elsewhere", with_pip=False, symlinks=True)
    return tmp_path / "elsewhere" / "bin" / "python"


def run_find(interpreter: Path, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    assert gtstub.__file__ is not None
    search = {"PYTHONPATH": str(Path(gtstub.__file__).parents[1])}
    return subprocess.run(
        [interpreter, "-c", FIND, cache],
        env=os.environ | search | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_cmake_is_asked_once_whatever_the_number_of_processes(elsewhere: Path, cache: Path, programs: Path) -> None:
    log = programs / "log"
    write_script(programs / "cmake", f'echo asked >>"{log}"; exec "{find_cmake()}" "$@"')
    path = f"{programs}:{os.environ['PATH']}"
    answers = [run_find(elsewhere, cache, PATH=path) for _ in range(3)]
    assert [answer.returncode for answer in answers] == [0, 0, 0], answers
    assert len({answer.stdout for answer in answers}) == 1
    assert log.read_text() == "asked\n"


def test_missing_cmake_says_how_to_get_it(elsewhere: Path, cache: Path, programs: Path) -> None:
    done = run_find(elsewhere, cache, PATH=str(programs))
    assert "gtstub.errors.ToolchainError: CMake was not found: install it with 'pip install cmake'.\n" in done.stderr


def test_cmake_is_asked_again_when_the_compiler_changes(
    cache: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = programs / "log"
    compiler = write_script(programs / "compiler", f'echo called >>"{log}"; exec "{compiler_path()}" "$@"')
    monkeypatch.setenv("CC", str(compiler))
    first = find(cache)
    assert first.compiler == (str(compiler),)
    calls = log.read_text()
    assert find(cache) == first
    assert log.read_text() == calls
    write_script(compiler, f'echo upgraded >>"{log}"; exec "{compiler_path()}" "$@"')
    find(cache)
    assert "upgraded" in log.read_text()


def test_flags_of_the_environment_reach_the_stub(stub: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CFLAGS", raising=False)
    monkeypatch.delenv("LDFLAGS", raising=False)
    plain = find(cache)
    monkeypatch.setenv("CFLAGS", "-DFLAVOUR=7 -g")
    monkeypatch.setenv("LDFLAGS", "-Wl,-z,now")
    flavoured = find(cache)
    assert flavoured.ingredients != plain.ingredients
    stub.write_text(f"{STUB}\n#if FLAVOUR != 7\n#error without its flavour\n#endif\n")
    flavoured.start(stub, stub.with_suffix(".so")).wait()
    assert "-Wl,-z,now" in flavoured.command(stub, stub.with_suffix(".so"))
    monkeypatch.delenv("CFLAGS")
    monkeypatch.delenv("LDFLAGS")
    assert find(cache) == plain


def test_answer_of_a_shared_cache_will_do(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain = find(cache)
    monkeypatch.setattr("gtstub.entries.toolchain.compiler.ask", lambda *_: pytest.fail("CMake is asked."))
    own = tmp_path / "own"
    assert find(own, [cache]).ingredients == toolchain.ingredients
    assert not own.exists()


def test_answers_are_known_without_compilers_and_this_environments_comes_first(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = []
    for flags in ("-DA", "-DB", "-DC"):
        monkeypatch.setenv("CFLAGS", flags)
        answers.append(find(cache))
    (cache / "toolchain-damaged.json").write_text("{")
    for flags, answer in zip(("-DA", "-DB", "-DC"), answers, strict=True):
        monkeypatch.setenv("CFLAGS", flags)
        found = known([tmp_path / "none", cache])
        assert found[0].ingredients == answer.ingredients
        assert {each.flags for each in found} == {each.flags for each in answers}
    assert is_complete()
    monkeypatch.setenv("CC", "no-such-compiler")
    assert len(known([cache])) == 3
    assert not is_complete()


def test_cpp_compiler_is_an_ingredient(warm_cache: Path) -> None:
    assert find(warm_cache).ingredients["cxx"] == [find(warm_cache).cxx_name]
    assert find(warm_cache).cxx_name != ""
    assert Path(find(warm_cache).cxx[0]).exists()


def test_words_in_cc_behind_the_compiler_reach_the_stub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", f"{compiler_path()} -pipe")
    assert find(cache).compiler == (compiler_path(), "-pipe")


@pytest.mark.parametrize("damage", ["", "[]", '{"answer": {"compiler": 3}}'])
def test_damaged_answer_is_asked_for_again(cache: Path, warm_cache: Path, damage: str) -> None:
    copy_answers(warm_cache, cache)
    toolchain = find(cache)
    (file,) = cache.glob("toolchain-*.json")
    whole = file.read_text()
    file.write_text(damage)
    assert find(cache) == toolchain
    assert file.read_text() == whole


def make_foreign(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files to another user")
    os.chown(path, 65534, 65534)


def let_others_write(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o002)


def let_another_group_write(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files to another group")
    os.chown(path, 0, 65534)
    path.chmod(path.stat().st_mode | 0o020)


@pytest.mark.parametrize("place", ["the root", "a shared layer", "the machine"])
@pytest.mark.parametrize("what", ["answer", "directory"])
@pytest.mark.parametrize("damage", [make_foreign, let_others_write, let_another_group_write])
def test_answer_that_somebody_else_could_have_written_is_asked_for_again(
    warm_cache: Path,
    tmp_path: Path,
    programs: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    what: str,
    damage: Callable[[Path], None],
) -> None:
    """It names the compiler that runs."""
    toolchain = find(warm_cache)
    monkeypatch.setattr(
        "gtstub.entries.toolchain.compiler.ask", lambda *_: toolchain.answer
    )  # what CMake says, at once
    theirs, own = tmp_path / "theirs", tmp_path / "own"
    copy_answers(warm_cache, theirs)
    (file,) = theirs.glob("toolchain-*.json")
    evil = write_script(programs / "evil", "exit 1")
    file.write_text(file.read_text().replace(f'"compiler": "{toolchain.compiler[0]}"', f'"compiler": "{evil}"'))

    def found() -> Toolchain:
        if place == "the machine":
            return find(own, machine=theirs)
        return find(theirs) if place == "the root" else find(own, [theirs])

    assert found().compiler == (str(evil),)  # It is believed without a reason against it.
    shutil.rmtree(own, ignore_errors=True)
    damage(file if what == "answer" else theirs)
    assert known([theirs]) == []
    assert found() == dataclasses.replace(toolchain, kept=found().kept)


def test_answer_of_whom_this_user_trusts(
    cache: Path, warm_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_answers(warm_cache, cache)
    let_another_group_write(cache)
    monkeypatch.setattr("gtstub.entries.toolchain.compiler.ask", lambda *_: pytest.fail("CMake is asked."))
    monkeypatch.setenv("GTSTUB_TRUST", "group=65534")
    assert find(tmp_path / "own", [cache]).answer == find(warm_cache).answer


@pytest.mark.parametrize("command", ["WRAPPER", "WRAPPER other", "masked"])
def test_cmake_is_asked_again_when_a_wrapper_starts_another_compiler(
    cache: Path, programs: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """The wrapper is the same: ccache, mpicc, Cray's cc."""
    wrapper = write_script(programs / "wrapper", f'[ "$1" = other ] && shift; exec "${{INNER-{compiler_path()}}}" "$@"')
    (programs / "cc").symlink_to(wrapper)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    if command == "masked":  # as in a directory of ccache
        monkeypatch.delenv("CC", raising=False)
    else:
        monkeypatch.setenv("CC", command.replace("WRAPPER", str(wrapper)))
    before = find(cache)
    newer = f"""
for each in "$@"; do [ "$each" = --version ] && echo 'newer than gcc' && exit; done
exec "{compiler_path()}" -DNEWER "$@"
"""
    monkeypatch.setenv("INNER", str(write_script(programs / "inner", newer)))
    asked: list[object] = []
    monkeypatch.setattr("gtstub.entries.toolchain.compiler.ask", lambda *_: asked.append(1) or before.answer)
    after = find(cache)
    assert asked
    assert after.digest != before.digest  # DaCe's caches have it in their names
    assert find(cache) == after
    assert len(asked) == 1


def test_a_compiler_that_is_no_wrapper_is_not_run_to_find_an_answer(
    warm_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if Path(compiler_path()).read_bytes()[:4] != b"\x7fELF":
        pytest.skip("the compiler here is a wrapper")
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("A program is run."))
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/nowhere")  # another environment than that of a known version
    assert find(warm_cache).compiler


def test_processes_that_ask_at_once_get_the_same_answer_and_leave_nothing_behind(cache: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", FIND, cache], stdout=subprocess.PIPE) for _ in range(3)]
    answers = {process.communicate()[0] for process in processes}
    assert answers == {f"{find(cache).ingredients}\n".encode()}
    (file,) = cache.iterdir()
    assert json.loads(file.read_text())["question"]["gtstub"] == gtstub.__version__


def test_missing_compiler_says_how_to_get_one(cache: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    cmake = find_cmake()
    assert cmake is not None
    (programs / "cmake").symlink_to(cmake)
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(ToolchainError) as error:
        find(cache)
    assert str(error.value) == (
        "A C compiler was not found: "
        "install one ('apt-get install gcc', or 'conda install c-compiler') or name it in CC."
    )


def test_compiler_that_cc_names_and_is_missing_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O1")
    with pytest.raises(ToolchainError) as error:
        find(cache)
    assert str(error.value) == (
        "The C compiler 'no-such-compiler', which CC names, was not found: "
        "install one ('apt-get install gcc', or 'conda install c-compiler') or name it in CC."
    )
    assert error.value.exit_code == 5


def test_compiler_that_does_not_work_is_reported_with_what_cmake_says(
    cache: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", str(write_script(programs / "compiler", "echo out of licences; exit 3")))
    with pytest.raises(ToolchainError) as error:
        find(cache)
    sentence, said = str(error.value).split("\n", 1)
    assert sentence == (
        "CMake found no C compiler that works: "
        "install one ('apt-get install gcc', or 'conda install c-compiler') or name it in CC."
    )
    assert "out of licences" in said
    assert not list(cache.glob("*.json"))


def test_refused_stub_is_kept_with_its_header_and_the_compilers_words(stub: Path, warm_cache: Path) -> None:
    toolchain = find(warm_cache)
    toolchain.start(stub, stub.with_suffix(".so")).wait()
    stub.write_text(STUB + "int broken = nonsense;\n")
    build = toolchain.start(stub, stub.with_suffix(".so"))
    with pytest.raises(ToolchainError) as error:
        build.wait()
    sentence, said = str(error.value).split("\n", 1)
    match = re.fullmatch(r"The C compiler '(.+)' refused the stub '(.+)' with exit status 1\.", sentence)
    assert match is not None, sentence
    assert match[1] == toolchain.compiler[0]
    assert "nonsense" in said
    shutil.rmtree(stub.parent)
    kept = Path(match[2])
    assert kept.is_relative_to(warm_cache)
    assert kept.read_text() == STUB + "int broken = nonsense;\n"
    assert kept.with_suffix(".h").read_text() == HEADER


def test_compiler_works_in_the_background_and_can_be_cancelled(
    stub: Path, cache: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = programs / "gate"
    script = f'while [ ! -e "{gate}" ]; do sleep 0.01; done; exec "{compiler_path()}" "$@"'
    monkeypatch.setenv("CC", str(write_script(programs / "compiler", script)))
    gate.touch()
    toolchain = find(cache)
    gate.unlink()
    library = stub.with_suffix(".so")
    toolchain.start(stub, library).cancel()
    assert not library.exists()
    build = toolchain.start(stub, library)
    assert not library.exists()
    gate.touch()
    build.wait()
    assert library.exists()


def test_compiler_that_has_gone_is_named(stub: Path, cache: Path, tmp_path: Path) -> None:
    answer = find(cache).answer
    gone = dataclasses.replace(answer, texts={**answer.texts, "compiler": str(tmp_path / "gone")})
    toolchain = dataclasses.replace(find(cache), answer=gone)
    with pytest.raises(ToolchainError) as error:
        toolchain.start(stub, stub.with_suffix(".so"))
    assert str(error.value) == f"The C compiler '{tmp_path}/gone' cannot be started: No such file or directory."


def test_cache_directory_that_cannot_be_written(stub: Path, cache: Path, tmp_path: Path) -> None:
    """The answer and a stub that does not compile are not kept there; an entry that is there may still be found."""
    (tmp_path / "file").touch()
    toolchain = find(tmp_path / "file" / "cache")
    assert toolchain.answer == find(cache).answer
    stub.write_text("#error no\n")
    with pytest.raises(ToolchainError, match=f"refused the stub '{stub}' with exit status"):
        toolchain.start(stub, stub.with_suffix(".so")).wait()
