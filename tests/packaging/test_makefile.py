"""The targets of the Makefile that a word divides: each word is there, and another one is refused."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from tests.support.checkout import ROOT

WORDS = {
    "bench": ("calls", "dace", "starts", "build"),
    "gpu": ("all", "tests", "programs", "bench", "wheels", "build"),
}


def make(*arguments: str) -> tuple[int, str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "WHAT")}
    done = subprocess.run(
        ["make", *arguments], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("target", WORDS)
def test_words_are_those_that_help_lists(target: str) -> None:
    (line,) = re.findall(rf"^make {target} .*", make("help")[1], re.MULTILINE)
    assert set(re.findall(r"[a-z]+", line)) >= set(WORDS[target])
    recipes = {word: make("--dry-run", target, f"WHAT={word}") for word in WORDS[target]}
    assert {status for status, _ in recipes.values()} == {0}
    assert len({output for _, output in recipes.values()}) == len(recipes)
    default = make("--dry-run", target)[1]
    assert default.splitlines()[-1] == recipes[WORDS[target][0]][1].splitlines()[-1]


@pytest.mark.parametrize("target", WORDS)
@pytest.mark.parametrize("word", ["nothing", "build bench"])
def test_other_word_is_refused(target: str, word: str) -> None:
    status, output = make(target, f"WHAT={word}")
    assert (status, output.splitlines()[0]) == (
        2,
        f"{target}: WHAT={word} is none of: {' '.join(WORDS[target])}",
    )


def test_suite_asks_for_its_folder() -> None:
    status, output = make("suite", "SUITE=")
    assert (status, output.splitlines()[0]) == (2, "suite: name the folder with gt4py's tests: make suite SUITE=PATH")
