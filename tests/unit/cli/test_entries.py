"""The commands that take an entry take its name, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.manifest import Built
from tests.support.cli import assert_refused, run
from tests.support.reported import publish

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")


@pytest.fixture
def variants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Entry, Entry]:
    """The entries of a program for n = 1 and n = 2; the second one is newer."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(cache))
    monkeypatch.delenv("GTSTUB_SHARED_CACHE_DIR", raising=False)
    made = []
    for n in (1, 2):
        entry = publish(cache, key=f"whole-{str(n) * 32}", baked={"n": n})
        described = entry.manifest()._replace(built=Built(time=float(n)))
        entry.manifest_file.write_text(json.dumps(described.to_json()), encoding="utf-8")
        made.append(entry)
    return made[0], made[1]


TAKEN = (
    "gtstub: Program 'whole' has 2 entries. Taken: the newest of this machine, 'whole@n=2'. To take another, name"
    " 'whole@n=1'.\n"
)


@pytest.mark.parametrize(
    "command",
    [
        ["show", "ENTRY", "--jq", ".manifest.baked.n"],
        ["show", "ENTRY", "--code"],
        ["plan", "ENTRY"],
        ["memory", "ENTRY"],
        ["check", "ENTRY", "--json"],
        ["check", "ENTRY", "--before", "ENTRY", "--json"],
        ["report", "ENTRY", "--json"],
        ["cache", "show", "ENTRY"],
        ["cache", "verify", "ENTRY"],
        ["cache", "path", "ENTRY"],
    ],
    ids=" ".join,
)
def test_a_command_takes_the_name_of_an_entry(command: list[str], variants: tuple[Entry, Entry]) -> None:
    def answer(entry: str) -> tuple[int, str, str]:
        result = run(*(entry if word == "ENTRY" else word for word in command))
        return result.exit_code, result.stdout, result.stderr

    first, second = (entry.key if command[0] == "cache" else str(entry.path) for entry in variants)
    assert answer("whole@n=1") == answer(first)
    exit_code, printed, said = answer("whole")
    assert (exit_code, printed, "") == answer(second)
    assert said == TAKEN * command.count("ENTRY")


def test_generate_takes_the_name_of_an_entry(variants: tuple[Entry, Entry]) -> None:
    assert run("generate", "whole@n=1", "-o", "stubs").exit_code == 0
    assert Path("stubs/whole_stub.c").read_bytes() == (variants[0].path / "whole_stub.c").read_bytes()


def test_two_variants_are_compared_by_their_names(variants: tuple[Entry, Entry]) -> None:
    result = run("report", "--compare", "whole@n=1", "whole@n=2", "--jq", ".entries[].constants[0].value")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "1\n2\n", "")


@pytest.mark.usefixtures("variants")
def test_a_path_that_exists_comes_before_a_name() -> None:
    Path("whole").mkdir()
    assert_refused(run("show", "whole"), 6, "There is no cache entry at 'whole'.")


@pytest.mark.usefixtures("variants")
def test_an_unknown_name(tmp_path: Path) -> None:
    missing = f"The cache '{tmp_path / 'cache'}' has no entry 'whale'. Did you mean: 'whole'?"
    for command, exit_code in (("show", 6), ("plan", 6), ("generate", 6), ("memory", 2), ("check", 2)):
        assert_refused(run(command, "whale"), exit_code, f"There is no file or directory 'whale'. {missing}")
    assert_refused(run("report", "whale", "--json"), 2, f"There is no file or directory 'whale'. {missing}")


def test_the_cache_of_a_name(variants: tuple[Entry, Entry], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "another"))
    Path("whole").mkdir()
    cache = str(variants[0].path.parent)
    for command in (["show"], ["plan"], ["memory"], ["check"], ["report", "--json"]):
        named = run(*command, "whole@n=1", "--cache", cache)
        assert (named.exit_code, named.stderr) == (0, "")
        assert named.stdout == run(*command, str(variants[0].path)).stdout
    result = run("show", "sdfg.json", "program.json", "--cache", cache)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "'--cache' is for an entry; two signatures are files." in result.stderr
