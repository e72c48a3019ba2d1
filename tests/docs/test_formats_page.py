"""The documents and filters of docs/formats.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.checkout import ROOT
from tests.support.cli import run
from tests.support.reported import publish

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")


def test_the_examples_of_the_formats_page_are_documents() -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    program_text, sdfg_text = (block.partition("```")[0] for block in page.split("```json\n")[1:])
    Path("program.json").write_text(program_text, encoding="utf-8")
    Path("sdfg.json").write_text(sdfg_text, encoding="utf-8")
    result = run("plan", "sdfg.json", "program.json", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    filters = [line.partition("--jq ")[2].strip("'") for line in page.splitlines() if "gtstub plan" in line]
    for filter_ in filter(None, filters):
        assert run("plan", "sdfg.json", "program.json", "--jq", filter_).stdout
    plan = json.loads(result.stdout)
    described = page.partition("## Call plan")[2].partition("## Manifest")[0]
    for member in {*plan, *plan["leaves"][0], *plan["slots"][0]} - {"schema"}:
        assert f"`{member}" in described, f"docs/formats.md does not say what '{member}' is."


def test_the_formats_page_describes_a_report() -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    described = page.partition("## Report\n")[2].partition("\n## ")[0]
    document = json.loads(run("report", str(publish(Path("cache")).path), "--json").stdout)
    (entry,) = document["entries"]
    kept = ("leaves", "slots", "kernels", "constants", "chips", "ingredients")
    members = {*document, *entry}.union(*(entry[name][0] for name in kept if entry[name])) - {"schema", "entries"}
    for member in members:
        assert f"`{member}`" in described or f"`.{member}" in described or f"`{member}[" in described, member
