"""examples/c_host, built and run in a checkout as its page says, over the SDFG library that gt4py and DaCe build."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gtstub.entries.toolchain.answer import find_cmake
from tests.support.checkout import ROOT
from tests.support.pages import blocks, run_commands
from tests.support.programs import need

HOST = ROOT / "examples" / "c_host"
COPIED = "   1.0   2.0   3.0\n  10.0  20.0  30.0\n"

pytestmark = pytest.mark.xdist_group("c_host")


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands read of a checkout, and the CMake that they run."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("c_host", "icon4py/copy_field"):
        shutil.copytree(ROOT / "examples" / name, folder / "examples" / name)
    shutil.copy(ROOT / "examples" / "icon4py" / "programs.toml", folder / "examples" / "icon4py")
    (folder / "cmake").symlink_to(find_cmake() or "cmake")
    return folder


@pytest.fixture(scope="module")
def printed(checkout: Path) -> str:
    """What the commands of the page print."""
    need("gfortran")
    (commands,) = blocks(read("examples/c_host/README.md"), "sh")
    return run_commands(commands, checkout)


def test_both_hosts_run(printed: str) -> None:
    assert printed.endswith(2 * COPIED)


@pytest.mark.usefixtures("printed")
def test_pkg_config(checkout: Path) -> None:
    need("pkg-config")
    _, _, *commands = blocks(read("docs/cmake.md"), "sh")
    assert run_commands("".join(commands), checkout) == 2 * COPIED
    for name in ("c_host_by_hand", "c_host_static_by_hand"):
        folder = checkout / "build" / name
        done = subprocess.run([folder / "host", folder], cwd="/", capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, COPIED), done.stderr


@pytest.mark.usefixtures("printed")
def test_static_hosts(checkout: Path) -> None:
    _, commands, *_ = blocks(read("docs/cmake.md"), "sh")
    assert run_commands(commands, checkout).endswith(2 * COPIED)
    for host in ("host_c", "host_fortran"):
        needed = subprocess.run(
            ["ldd", checkout / "build" / "c_host_static" / host], capture_output=True, text=True, check=True
        ).stdout
        assert "gtstub" not in needed
        assert "stub.so" not in needed


@pytest.mark.usefixtures("printed")
def test_copied_entry_needs_nothing_of_its_old_place(checkout: Path) -> None:
    """Which has other files by then."""
    need("readelf")
    (entry,) = (checkout / "build" / "icon4py").glob("copy_field-*")
    copy = Path(shutil.copytree(entry, checkout / "copy"))
    for file in copy.glob("*.so"):
        dynamic = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
        assert "PATH)" not in dynamic
        assert bytes(checkout) not in file.read_bytes()
    aside = entry.rename(checkout / "aside")
    entry.mkdir()
    for file in copy.iterdir():
        (entry / file.name).write_text("another file")
    for host in ("host_c", "host_fortran"):
        assert run_commands(f"build/c_host/{host} copy", checkout) == COPIED
    shutil.rmtree(entry)
    aside.rename(entry)


@pytest.mark.usefixtures("printed")
def test_installed_host_runs(checkout: Path) -> None:
    run_commands("cmake --install build/c_host --prefix installed && rm -r build/c_host", checkout)
    assert run_commands("installed/bin/host_c installed/lib/copy_field", checkout) == COPIED


def test_pages_show_the_files() -> None:
    assert blocks(read("docs/cmake.md"), "sh")[0] == blocks(read("examples/c_host/README.md"), "sh")[0]
    shown = blocks(read("docs/cmake.md"), "cmake")
    (of_ranks,) = (block for block in shown if block.startswith("foreach("))
    for block in shown:
        assert block is of_ranks or block in read("examples/c_host/CMakeLists.txt")
    assert blocks(read("docs/c-abi.md"), "c")[0] == read("examples/c_host/host.c")
    assert blocks(read("docs/fortran.md"), "fortran")[0] == read("examples/c_host/host.f90")


@pytest.mark.parametrize(("page", "picture"), [("cmake.md", "libraries.svg"), ("fortran.md", "sections.svg")])
def test_pages_show_their_pictures(page: str, picture: str) -> None:
    assert f"]({picture})\n" in read(f"docs/{page}")
    assert ElementTree.fromstring(read(f"docs/{picture}")).attrib["role"] == "img"
