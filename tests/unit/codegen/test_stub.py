"""Rendering: the same bytes for the same plan, templates that keep their promises, and texts that nobody changed."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import jinja2
import jinja2.meta
import pytest

from gtstub import install
from gtstub.abi import ABI
from gtstub.entries.toolchain import compiler
from gtstub.stub.codegen.output import is_unedited
from gtstub.stub.codegen.render import environment
from gtstub.stub.signature.model import Axis, Bounds, Claim, ProgramSignature, SdfgSignature
from tests.support.checkout import ROOT
from tests.support.goldens import FOLDER, Golden
from tests.support.signatures import (
    CALLING_PROGRAM,
    CALLING_SDFG,
    EDGE,
    GATHER_PROGRAM,
    GATHER_SDFG,
    SHAPES_PROGRAM,
    SHAPES_SDFG,
    SMALL_PROGRAM,
    SMALL_SDFG,
    WHOLE_PROGRAM,
    WHOLE_SDFG,
    K,
    array,
    collection_of,
    field,
    follow,
    program,
    scalar,
    sdfg,
    symbol,
    tuple_of,
    with_static,
)
from tests.support.stubs import render_stub

TEMPLATES = [name for name in environment().list_templates(["j2"]) if not name.startswith("report/")]

SMALL = SMALL_SDFG, SMALL_PROGRAM
EMPTY = sdfg(), program()

STUBS: dict[str, tuple[SdfgSignature, ProgramSignature]] = {
    "whole": (WHOLE_SDFG, WHOLE_PROGRAM),
    "prog": SMALL,
    "shapes": (SHAPES_SDFG, SHAPES_PROGRAM),
    "calling": (CALLING_SDFG, CALLING_PROGRAM),
}


# --- Bytes ------------------------------------------------------------------------------------------------------------


def test_same_plan_same_bytes() -> None:
    assert render_stub(WHOLE_SDFG, WHOLE_PROGRAM) == render_stub(WHOLE_SDFG, WHOLE_PROGRAM)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_bytes_do_not_depend_on_the_process(seed: str) -> None:
    script = (
        "from tests.support.stubs import render_stub; from tests.support.signatures import *; import sys;"
        "sources = render_stub(WHOLE_SDFG, WHOLE_PROGRAM, fortran=True);"
        "sys.stdout.buffer.write((sources.header + sources.source + sources.module).encode())"
    )
    path = os.pathsep.join((str(ROOT), *sys.path))
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, env=environment)
    here = render_stub(WHOLE_SDFG, WHOLE_PROGRAM, fortran=True)
    assert done.stdout.decode() == "".join(vars(here).values())


def test_digest_shows_a_hand_edit() -> None:
    for text in vars(render_stub(*SMALL, fortran=True)).values():
        assert is_unedited(text)
        assert not is_unedited(text.replace("prog", "prof", 1))
        assert not is_unedited(text + "\n")
        assert not is_unedited(text.rpartition("gtstub: sha256")[0])
    assert not is_unedited("")


@pytest.mark.parametrize("name", STUBS)
def test_golden_stub(name: str, golden: Golden) -> None:
    sources = render_stub(*STUBS[name], fortran=True)
    golden.check(f"stubs/{name}_stub.h", sources.header)
    golden.check(f"stubs/{name}_stub.c", sources.source)
    golden.check(f"stubs/{name}_stub.f90", sources.module)


# --- Patterns: a regular expression a line, `! ` before what must be absent ------------------------------------------

PATTERNS: dict[str, tuple[SdfgSignature, ProgramSignature]] = {
    "empty": EMPTY,
    "scalars": (
        sdfg(symbol("a", dtype="uint8"), symbol("b", dtype="float32"), symbol("c_0"), symbol("c_1", dtype="float64")),
        program(a=scalar("uint8"), b=field(dtype="float32"), c=tuple_of(scalar("int32"), field())),
    ),
    "static": (
        sdfg(symbol("n")),
        with_static(
            program(n=scalar("int32"), x=tuple_of(scalar("float32"), scalar("float64")), flag=scalar("bool")),
            x_0=0.1,
            x_1=float("-inf"),
            flag=True,
        ),
    ),
    "collections": (
        sdfg(symbol("s_0"), symbol("s_1_1"), symbol("x_0_0")),
        program(
            s=collection_of(n=scalar("int32"), wind=collection_of(u=scalar("int32"), v=scalar("int32"))),
            x=tuple_of(collection_of(k=scalar("int32"))),
        ),
    ),
    "unused": (sdfg(symbol("c", dtype="bool")), program(a=field(K), b=tuple_of(field(K)), c=scalar("bool"))),
    "domain_only": (sdfg(symbol("__x_K_range_0"), symbol("__x_K_range_1")), program(x=field(EDGE, K))),
    "constants": (sdfg(array("x", Axis(size=8, start=-2, stop=6, stride=1))), program(x=field(K))),
    "gpu": (
        sdfg(array("x", Axis(), device="cuda", access="write"), device="cuda"),
        program(x=field(K)),
    ),
    "tables": (
        dataclasses.replace(
            GATHER_SDFG,
            bounds=Bounds(1, (Claim((), (), (follow("gt_conn_E2V", "7", "x", plus="-__x_Vertex_range_0"),)),), ()),
        ),
        GATHER_PROGRAM,
    ),
    "whole": (WHOLE_SDFG, WHOLE_PROGRAM),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(name: str) -> None:
    sources = render_stub(*PATTERNS[name])
    text = sources.header + sources.source
    lines = (FOLDER / "patterns" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    assert lines
    for line in lines:
        absent = line.startswith("! ")
        found = re.search(line.removeprefix("! "), text, re.MULTILINE)
        assert (found is None) == absent, f"'{line}' in {name}.txt\n{text}"


def test_every_pattern_file_is_used() -> None:
    assert {path.stem for path in (FOLDER / "patterns").iterdir()} == set(PATTERNS)


# --- Templates --------------------------------------------------------------------------------------------------------


def template_text(name: str) -> str:
    return (install.TEMPLATES / name).read_text(encoding="utf-8")


def test_undefined_names_are_errors() -> None:
    with pytest.raises(jinja2.UndefinedError, match="'nothing' is undefined"):
        environment().from_string("{{ nothing }}").render()


@pytest.mark.parametrize("name", TEMPLATES)
def test_template_says_at_its_head_what_it_expects(name: str) -> None:
    text = template_text(name)
    head = re.match(r"\{#(.*?)-?#\}", text, re.DOTALL)
    assert head is not None
    promised = set(re.findall(r"\w+", head[1].partition("Expects")[2]))
    used = jinja2.meta.find_undeclared_variables(environment().parse(text))
    assert used <= promised


@pytest.mark.parametrize("name", TEMPLATES)
def test_template_is_short(name: str) -> None:
    assert len(template_text(name).splitlines()) <= 150


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_template_knows_python(name: str) -> None:
    assert "Python" not in template_text(name)
    assert "Py" not in re.findall(r"\bPy(?=[A-Z_])", template_text(name))


def test_no_header_of_the_runtime_knows_python() -> None:
    headers = sorted(Path(install.INCLUDE).rglob("*.h"))
    assert headers
    for header in headers:
        assert "Python.h" not in header.read_text(encoding="utf-8")


def test_abi_number_is_the_headers() -> None:
    header = (install.INCLUDE / "gtstub" / "gtstub.h").read_text(encoding="utf-8")
    assert re.findall(r"^#define GTS_ABI (\d+)$", header, re.MULTILINE) == [str(ABI)]


def test_stub_of_another_abi_does_not_compile(tmp_path: Path, toolchain: compiler.Toolchain) -> None:
    sources = render_stub(*SMALL)
    (tmp_path / "prog_stub.h").write_text(sources.header, encoding="utf-8")
    for abi, compiles in ((ABI, True), (ABI + 1, False)):
        source = tmp_path / "prog_stub.c"
        source.write_text(sources.source.replace(f"GTS_ABI != {ABI}", f"GTS_ABI != {abi}"), encoding="utf-8")
        command = toolchain.command(source, tmp_path / "prog_stub.so")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == compiles
        assert ("This stub was generated for ABI" in done.stderr) != compiles
