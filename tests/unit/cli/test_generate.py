"""'gtstub generate' as its users meet it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from gtstub.stub.signature.documents import sdfg_to_json
from tests.support.cli import assert_refused, names_in, run, write_signatures
from tests.support.signatures import WHOLE_PROGRAM, WHOLE_SDFG, program, sdfg
from tests.support.stubs import render_stub

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")


def test_generate_writes_the_stub() -> None:
    write_signatures()
    result = run("generate", "sdfg.json", "program.json", "-o", "new/stubs")
    assert (result.exit_code, result.stdout) == (
        0,
        "'new/stubs/whole_stub.h' was written.\n'new/stubs/whole_stub.c' was written.\n",
    )
    sources = render_stub(WHOLE_SDFG, WHOLE_PROGRAM)
    assert Path("new/stubs/whole_stub.h").read_text(encoding="utf-8") == sources.header
    assert Path("new/stubs/whole_stub.c").read_text(encoding="utf-8") == sources.source
    assert names_in("new/stubs") == ["whole_stub.c", "whole_stub.h"]


def test_generate_writes_the_fortran_module_where_it_is_wanted() -> None:
    write_signatures()
    result = run("generate", "sdfg.json", "program.json", "--fortran")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "'whole_stub.f90' was written.")
    sources = render_stub(WHOLE_SDFG, WHOLE_PROGRAM, fortran=True)
    assert Path("whole_stub.f90").read_text(encoding="utf-8") == sources.module
    assert run("generate", "sdfg.json", "program.json", "--fortran", "--check").exit_code == 0
    edit_a_byte(Path("whole_stub.f90"))
    assert run("generate", "sdfg.json", "program.json", "--check").exit_code == 0
    assert_refused(
        run("generate", "sdfg.json", "program.json", "--fortran", "--check"),
        1,
        "'whole_stub.f90' was edited by hand.",
    )


def test_generate_gives_a_stub_another_name() -> None:
    write_signatures()
    result = run("generate", "sdfg.json", "program.json", "--name", "first", "--fortran")
    assert result.stdout == "".join(f"'first_stub.{suffix}' was written.\n" for suffix in ("h", "c", "f90"))
    named = Path("first_stub.c").read_text(encoding="utf-8")
    assert "int first_call(gts_program *" in named
    assert f'    .name = "{WHOLE_SDFG.name}",' in named
    digests = re.findall(r"sha256 (\w{64})", named)
    assert digests == re.findall(r"sha256 (\w{64})", render_stub(WHOLE_SDFG, WHOLE_PROGRAM).source)
    assert len(digests) == 2
    assert run("generate", "sdfg.json", "program.json", "--name", "no name").exit_code == 4


def test_generate_leaves_alone_what_stays_the_same() -> None:
    write_signatures()
    run("generate", "sdfg.json", "program.json")
    os.utime("whole_stub.c", (1, 1))
    result = run("generate", "sdfg.json", "program.json")
    assert result.stdout == "'whole_stub.h' is up to date.\n'whole_stub.c' is up to date.\n"
    assert Path("whole_stub.c").stat().st_mtime == 1


def test_generate_replaces_an_older_stub() -> None:
    write_signatures()
    older = render_stub(sdfg(name="whole"), program("whole"))
    Path("whole_stub.c").write_text(older.source, encoding="utf-8")
    assert run("generate", "sdfg.json", "program.json").exit_code == 0
    assert Path("whole_stub.c").read_text(encoding="utf-8") == render_stub(WHOLE_SDFG, WHOLE_PROGRAM).source


def test_the_stub_does_not_depend_on_how_a_signature_is_written() -> None:
    write_signatures()
    run("generate", "sdfg.json", "program.json")
    Path("sdfg.json").write_text(json.dumps(json.loads(sdfg_to_json(WHOLE_SDFG)), indent=8), encoding="utf-8")
    assert run("generate", "sdfg.json", "program.json", "--check").exit_code == 0


def test_check_of_what_is_up_to_date_says_nothing() -> None:
    write_signatures()
    run("generate", "sdfg.json", "program.json")
    result = run("generate", "sdfg.json", "program.json", "--check")
    assert (result.exit_code, result.output) == (0, "")


def test_check_sees_missing_files_and_writes_nothing() -> None:
    write_signatures()
    assert_refused(
        run("generate", "sdfg.json", "program.json", "--check"),
        1,
        "'whole_stub.h' is missing: run 'gtstub generate'.\n'whole_stub.c' is missing: run 'gtstub generate'.",
    )
    assert not Path("whole_stub.h").exists()


def test_check_sees_an_older_stub() -> None:
    write_signatures()
    run("generate", "sdfg.json", "program.json")
    older = render_stub(sdfg(name="whole"), program("whole"))
    Path("whole_stub.c").write_text(older.source, encoding="utf-8")
    assert_refused(
        run("generate", "sdfg.json", "program.json", "--check"),
        1,
        "'whole_stub.c' is out of date: run 'gtstub generate'.",
    )


def edit_a_byte(file: Path) -> bytes:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    return bytes(content)


def test_check_sees_a_changed_byte() -> None:
    write_signatures()
    run("generate", "sdfg.json", "program.json")
    edit_a_byte(Path("whole_stub.c"))
    assert_refused(run("generate", "sdfg.json", "program.json", "--check"), 1, "'whole_stub.c' was edited by hand.")


def test_generate_does_not_replace_what_was_edited_by_hand() -> None:
    write_signatures()
    run("generate", "sdfg.json", "program.json")
    Path("whole_stub.h").unlink()
    edited = edit_a_byte(Path("whole_stub.c"))
    assert_refused(
        run("generate", "sdfg.json", "program.json"),
        1,
        "'whole_stub.c' was edited by hand: move it away, or replace it with '--force'.",
    )
    assert Path("whole_stub.c").read_bytes() == edited
    assert not Path("whole_stub.h").exists(), "Half a stub was written."
    assert run("generate", "sdfg.json", "program.json", "--force").exit_code == 0
    assert run("generate", "sdfg.json", "program.json", "--check").exit_code == 0


def test_generate_does_not_replace_what_is_not_its_own() -> None:
    write_signatures()
    Path("whole_stub.h").write_text("mine\n", encoding="utf-8")
    assert run("generate", "sdfg.json", "program.json").exit_code == 1
    assert Path("whole_stub.h").read_text(encoding="utf-8") == "mine\n"
