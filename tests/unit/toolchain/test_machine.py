"""The directory of this user on this machine, and what is in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gtstub.entries.building.templates import compiled_templates
from gtstub.entries.toolchain import compiler, machine
from gtstub.entries.toolchain.machine import machine_directory
from gtstub.stub.codegen.render import environment


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GTSTUB_MACHINE_DIR", str(tmp_path / "deeper" / "machine"))
    return tmp_path / "deeper" / "machine"


def test_only_this_user_can_open_it(named: Path) -> None:
    assert machine_directory() == machine_directory() == named
    assert named.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("umask", [0o002, 0o000])
def test_what_is_made_above_it_is_closed_whatever_the_umask_is(named: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        assert machine_directory() == named
    finally:
        os.umask(before)


def test_without_a_name_it_is_in_the_first_place_that_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GTSTUB_MACHINE_DIR")
    places = tmp_path / "missing", tmp_path / "open", tmp_path / "sticky", tmp_path / "not needed"
    for place, mode in zip(places[1:], (0o777, 0o1777, 0o1777), strict=True):
        place.mkdir()
        place.chmod(mode)
    monkeypatch.setattr(machine, "PLACES", places)
    assert machine_directory() == tmp_path / "sticky" / f"gtstub-{os.geteuid()}"
    assert list(places[3].iterdir()) == []


def test_what_others_could_have_written_is_not_used(
    named: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named.mkdir(0o700, parents=True)
    for mode in (0o770, 0o707, 0o750):
        named.chmod(mode)
        assert machine_directory() is None
    named.chmod(0o700)
    assert machine_directory() == named
    named.parent.chmod(0o777)
    assert machine_directory() is None
    named.parent.chmod(0o755)
    with monkeypatch.context() as changed:
        changed.setattr("os.geteuid", lambda: os.getuid() + 1)
        assert machine_directory() is None
    named.rename(tmp_path / "elsewhere")
    named.symlink_to(tmp_path / "elsewhere")
    assert machine_directory() is None


# --- Answers ----------------------------------------------------------------------------------------------------------


def test_an_answer_of_cmake_serves_all_caches(tmp_path: Path, named: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiler.find(tmp_path / "first", machine=machine_directory())
    with monkeypatch.context() as changed:
        changed.setattr(compiler, "ask", lambda *_: pytest.fail("CMake was asked"))
        second = compiler.find(tmp_path / "second", machine=named)
        assert second.answer == first.answer
        assert second.kept == tmp_path / "second" / "failed"
    assert [toolchain.answer for toolchain in compiler.known([tmp_path / "second"])] == [first.answer]


def test_an_answer_to_another_question_is_not_used(
    tmp_path: Path, named: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler.find(tmp_path / "first", machine=machine_directory())
    monkeypatch.setenv("LDFLAGS", "-Wl,-O2")
    assert "-Wl,-O2" in compiler.find(tmp_path / "second", machine=named).answer.c_link


def test_an_answer_that_is_damaged_or_cannot_be_kept_is_asked_for_again(tmp_path: Path, named: Path) -> None:
    first = compiler.find(tmp_path / "first", machine=machine_directory())
    (file,) = named.glob("toolchain-*.json")
    file.write_text("{")
    assert compiler.find(tmp_path / "second", machine=named).answer == first.answer
    assert compiler.find(tmp_path / "third", machine=tmp_path / "missing").answer == first.answer
    assert compiler.find(Path("/proc/cache"), machine=named).answer == first.answer


# --- Compiled templates -----------------------------------------------------------------------------------------------


def test_templates_are_compiled_once(named: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load() -> str:
        made = environment.__wrapped__(compiled_templates.__wrapped__())
        made.get_template("parts/slots.c.j2")
        (directory,) = (named / ".byte-code").iterdir()
        (file,) = directory.glob("*.cache")
        content = file.read_bytes()
        with monkeypatch.context() as changed:
            changed.setattr(type(made), "compile", lambda *_, **__: pytest.fail("A template was compiled"))
            environment.__wrapped__(compiled_templates.__wrapped__()).get_template("parts/slots.c.j2")
        file.write_bytes(content[:-20])
        return str(directory)

    first = load()
    assert load() == first, "A damaged file is compiled again."
    monkeypatch.setattr("jinja2.__version__", "another version")
    assert compiled_templates.__wrapped__() is not None
    assert len(list((named / ".byte-code").iterdir())) == 2


def test_templates_are_compiled_without_a_directory(named: Path) -> None:
    named.parent.mkdir()
    named.write_text("a file in its place")
    assert compiled_templates.__wrapped__() is None
    assert environment.__wrapped__(compiled_templates.__wrapped__()).get_template("parts/slots.c.j2").render
