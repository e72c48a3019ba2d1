"""The example of docs/c-abi.md that is built by hand, compiled and run as the page says."""

from __future__ import annotations

import re
from pathlib import Path

from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.install import INCLUDE, RUNTIME
from tests.support import scale_program as scale
from tests.support.checkout import ROOT
from tests.support.pages import blocks, run_commands
from tests.support.programs import needs
from tests.support.stubs import build_stub

PAGE = (ROOT / "docs" / "c-abi.md").read_text(encoding="utf-8")


@needs("pkg-config")
def test_example(tmp_path: Path, toolchain: Toolchain) -> None:
    build_stub(scale.SDFG, scale.PROGRAM, tmp_path, toolchain)
    scale.build_library(tmp_path)
    (tmp_path / "host.c").write_text(blocks(PAGE, "c")[1])
    assert run_commands(f"{blocks(PAGE, 'sh')[0]}./host\n", tmp_path) == "2.5 5 7.5\n"


@needs("pkg-config")
def test_example_of_a_step(tmp_path: Path, toolchain: Toolchain) -> None:
    build_stub(scale.SDFG, scale.PROGRAM, tmp_path, toolchain)
    scale.build_library(tmp_path)
    (tmp_path / "host.c").write_text(blocks(PAGE, "c")[2])
    printed = run_commands(f"{blocks(PAGE, 'sh')[0]}./host\n", tmp_path)
    assert printed == "exchange 2 4 6\nexchange 10 20 30\nexchange 100 200 300\n100 200 300\n"


def test_soname_is_the_abi() -> None:
    assert RUNTIME.name == f"libgtstub.so.{re.search(r'GTS_ABI (\d+)', header())[1]}"  # type: ignore[index]


def header() -> str:
    return (INCLUDE / "gtstub" / "gtstub.h").read_text(encoding="utf-8")


def test_members_of_an_array_are_on_the_page() -> None:
    body = re.search(r"typedef struct gts_array \{(.*?)\} gts_array;", header(), re.DOTALL)
    assert body is not None
    members = re.findall(r"^ +(?:__attribute__\S+ )?[\w ]+?[ *](\w+)(?: : \d+|\[\w+\])?;", body[1], re.MULTILINE)
    rows = re.findall(r"^\| `(\w+)(?:\[i\])?` \|", PAGE, re.MULTILINE)
    assert members == rows
