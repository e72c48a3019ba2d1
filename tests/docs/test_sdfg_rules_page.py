"""The rules, commands and examples of docs/sdfg-rules.md."""

from __future__ import annotations

import re

from gtstub.tools.rules import LEVELS, RULES
from tests.support.checkout import ROOT
from tests.support.cli import run

PAGE = (ROOT / "docs" / "sdfg-rules.md").read_text(encoding="utf-8")


def test_every_rule_is_on_the_page() -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in PAGE.splitlines() if line.startswith("|")]
    listed = [(row[0], row[1]) for row in rows if re.fullmatch(r"[\d.]*", row[0]) and re.fullmatch(r"[\d.]+", row[1])]
    assert listed == [(rule.rule, rule.adr) for rule in RULES]
    for rule in RULES:
        assert rule.demand in PAGE.replace("`", ""), rule.key


def test_every_level_is_on_the_page() -> None:
    for level in LEVELS:
        assert f"| `{level}` |" in PAGE


def test_every_option_on_the_page_exists() -> None:
    help_ = run("check", "-h").stdout
    for option in re.findall(r"--[a-z]+", PAGE):
        assert option in help_, f"'gtstub check' has no option {option}."
