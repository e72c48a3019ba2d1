"""The files that a path names now are loaded, whatever this process loaded from the same path before."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

import pytest

import gtstub
from gtstub import _host
from tests.benchmarks.entry import build_entry
from tests.support.hosting import run_script
from tests.support.signatures import program, scalar, sdfg, symbol

pytestmark = pytest.mark.sanitizer

STUB, LIBRARY = "same_stub.so", "libsame.so"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two entries of programs with the same name, whose parameters are `a` and `b`."""
    folder = tmp_path_factory.mktemp("entries")
    for name in ("a", "b"):
        signature = program("same", **{name: scalar("int32")})
        build_entry(sdfg(symbol(name), name="same"), signature, folder, name)
    return folder


@pytest.fixture
def entries(built: Path, tmp_path: Path) -> Path:
    """Copies, which no other test has loaded."""
    shutil.copytree(built, tmp_path / "entries")
    return tmp_path / "entries"


def test_a_relative_path_after_chdir(entries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "a"):
        monkeypatch.chdir(entries / name)
        assert gtstub.load(".").parameters == (name,)
        assert _host.load(STUB, LIBRARY).parameters == (name,)
        assert _host.load(f"./{STUB}", f"./{LIBRARY}").parameters == (name,)


def test_a_link_that_is_switched(entries: Path) -> None:
    link = entries / "link"
    for name in ("a", "b", "a"):
        link.symlink_to(name)
        assert gtstub.load(link).parameters == (name,)
        assert _host.load(link / STUB, link / LIBRARY).parameters == (name,)
        link.unlink()


def test_a_directory_that_is_replaced(entries: Path) -> None:
    assert gtstub.load(entries / "a").parameters == ("a",)
    shutil.rmtree(entries / "a")
    (entries / "b").rename(entries / "a")
    assert gtstub.load(entries / "a").parameters == ("b",)


def test_the_library_path_is_not_searched(entries: Path) -> None:
    text = "import os, sys, gtstub; os.chdir(sys.argv[1]); print(gtstub.load('.').parameters)"
    environment = [("LD_LIBRARY_PATH", str(entries / "b"))]
    assert run_script(text, entries / "a", environment=environment) == "('a',)\n"


def test_a_path_with_what_the_dynamic_loader_would_substitute(entries: Path) -> None:
    (entries / "lib").mkdir()
    (entries / "b").rename(entries / "lib" / "entry")
    (entries / "$LIB").mkdir()
    (entries / "a").rename(entries / "$LIB" / "entry")
    for _ in range(2):
        assert gtstub.load(entries / "$LIB" / "entry").parameters == ("a",)
    assert gtstub.load(entries / "lib" / "entry").parameters == ("b",)


def test_a_file_that_was_written_to_is_refused(entries: Path) -> None:
    stub, library = entries / "a" / STUB, entries / "a" / LIBRARY
    assert _host.load(stub, library).parameters == ("a",)
    with library.open("ab") as file:
        file.write(b"\0")
    with pytest.raises(RuntimeError) as error:
        _host.load(stub, library)
    assert str(error.value) == (
        f"Cannot load library '{library}': the file was written to after this process loaded it; load it in a new"
        " process."
    )


@pytest.mark.parametrize("file", [STUB, LIBRARY])
def test_a_library_for_another_machine_is_refused(entries: Path, file: str) -> None:
    """The dynamic loader says of such a file that it does not exist."""
    numbers = {"x86_64": 62, "aarch64": 183, "": 21}  # EM_X86_64, EM_AARCH64, EM_PPC64
    path = entries / "a" / file
    content = bytearray(path.read_bytes())
    for name in numbers.keys() - {platform.machine()}:
        content[18:20] = numbers[name].to_bytes(2, sys.byteorder)  # e_machine
        path.write_bytes(content)
        with pytest.raises(RuntimeError) as error:
            _host.load(entries / "a" / STUB, entries / "a" / LIBRARY)
        machine = f"{name}, and not for this machine" if name else "another machine"
        assert str(error.value) == f"Cannot load library '{path}': it was built for {machine}."


@pytest.mark.parametrize("file", [STUB, LIBRARY])
def test_a_file_that_was_replaced_after_it_was_verified_is_refused(entries: Path, file: str) -> None:
    paths = entries / "a" / STUB, entries / "a" / LIBRARY
    verified = state_of(paths[0]), state_of(paths[1])
    path = entries / "a" / file
    aside = Path(shutil.copy2(path, entries / "aside"))  # of the same size, with the same time
    aside.replace(path)
    with pytest.raises(RuntimeError) as error:
        _host.load(*paths, verified)
    assert str(error.value) == (
        f"Cannot load library '{path}': the file was replaced or written to after it was verified."
    )
    assert str(path) not in Path("/proc/self/maps").read_text()
    assert _host.load(*paths, (state_of(paths[0]), state_of(paths[1]))).parameters == ("a",)


def test_a_known_file_that_is_not_the_verified_one_is_refused(entries: Path) -> None:
    for name in ("a", "b"):
        gtstub.load(entries / name)
    stub, library = entries / "a" / STUB, entries / "a" / LIBRARY
    with pytest.raises(RuntimeError, match=f"'{library}': the file was replaced or written to after"):
        _host.load(stub, library, (state_of(stub), state_of(entries / "b" / LIBRARY)))


def state_of(path: Path) -> tuple[int, int, int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
