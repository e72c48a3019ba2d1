"""What the pages tell a reader to type is there: commands of gtstub and their options, targets of make, modules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from gtstub.cli.app import main
from tests.support.checkout import ROOT

PAGES = sorted(
    path
    for path in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("examples/*/*.md"),
    ]
    if path.name != "refusals.md"  # its texts are messages
)


def code_of(page: Path) -> Iterator[str]:
    """The lines of a page's code, without comments, and the code within its sentences."""
    text = page.read_text(encoding="utf-8")
    fences = r"^```.*?^```$"
    blocks = [*re.findall(fences, text, re.MULTILINE | re.DOTALL), *re.findall(r"^    .*$", text, re.MULTILINE)]
    for line in "\n".join(blocks).replace("\\\n", " ").splitlines():
        yield line.partition(" #")[0].strip()
    for span in re.findall(r"`([^`]+)`", re.sub(fences, "", text, flags=re.MULTILINE | re.DOTALL)):
        yield " ".join(span.split())


def commands_in(code: str) -> Iterator[list[str]]:
    """The words after `gtstub` where it is a command."""
    for found in re.finditer(r"(?:^|^\$ |&& |\$\(|[\w.]/|=\S+ )gtstub ([a-z]+\b(?:(?!\$\()[^|;&)])*)", code):
        yield found[1].split()


def mistakes(words: list[str]) -> list[str]:
    """The words of a command line that name no command of gtstub or no option of the command."""
    command: click.Command = main
    while isinstance(command, click.Group) and words and re.fullmatch("[a-z]+", words[0]):
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            return words[:1]
        command, words = found, words[1:]
    options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"-h", "--help"}
    own = words[: words.index("--")] if "--" in words else words
    named = [found[1] for word in own if (found := re.match(r"\[?(--[a-z-]+|-[a-zA-Z]\b)", word))]
    return [name for name in named if name not in options]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_exist(page: Path) -> None:
    wrong = [(words, mistakes(words)) for code in code_of(page) for words in commands_in(code)]
    assert [each for each in wrong if each[1]] == []


def test_commands_are_found_on_the_pages() -> None:
    found = {words[0] for page in PAGES for code in code_of(page) for words in commands_in(code)}
    assert found == set(main.list_commands(click.Context(main)))
    assert mistakes(["show", "x", "--jq", "."]) == []
    assert mistakes(["show", "x", "--jk", "."]) == ["--jk"]
    assert mistakes(["cache", "lst"]) == ["lst"]
    assert mistakes(["debug", "--", "python", "--jk"]) == []


def test_targets_of_make_and_modules_exist() -> None:
    code = [each for page in PAGES for each in code_of(page)]
    targets = {name for each in code for name in re.findall(r"(?:^|&& )make ([a-z-]+)", each)}
    assert len(targets) > 15
    assert (
        targets - set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
        == set()
    )
    modules = {name for each in code for name in re.findall(r"-m ((?:tests|examples)\.[\w.]+)", each)}
    assert modules
    paths = [ROOT.joinpath(*name.split(".")) for name in modules]
    assert [path for path in paths if not (path.with_suffix(".py").exists() or (path / "__main__.py").exists())] == []
