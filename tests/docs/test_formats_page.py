"""The documents and filters of docs/formats.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checkout import ROOT
from tests.support.cli import run
from tests.support.schema_tables import SCHEMAS, with_tables

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


SECTIONS = {
    "program": ("Program signature",),
    "sdfg": ("SDFG signature",),
    "profile": ("Profile",),
    "memory": ("Memory",),
    "report": ("Report", "Memory", "Check"),
    "check": ("Check",),
    "granule": ("Granule",),
}
"""The sections that tell the members of the documents that have a JSON Schema, by its name."""


def members_of(schema: object) -> Iterator[str]:
    """The names of all members that a JSON Schema allows, at any depth."""
    if isinstance(schema, dict):
        properties = schema.get("properties", {})
        yield from properties
        for part in (*properties.values(), *(each for name, each in schema.items() if name != "properties")):
            yield from members_of(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from members_of(part)


@pytest.mark.parametrize("schema", sorted(SCHEMAS.glob("*.schema.json")), ids=lambda file: file.name)
def test_the_formats_page_has_every_member_of_a_schema(schema: Path) -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    sections = [
        page.partition(f"\n## {section}\n")[2].partition("\n## ")[0] for section in SECTIONS[schema.name.split(".")[0]]
    ]
    prose = re.sub(r"```.*?```", "", "".join(sections), flags=re.DOTALL)
    described = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", prose))))
    assert set(members_of(json.loads(schema.read_text(encoding="utf-8")))) - described - {"schema"} == set()


def test_the_tables_of_the_formats_page_are_those_of_the_schemas(request: pytest.FixtureRequest) -> None:
    """With --regenerate-goldens, pytest writes the tables anew."""
    file = ROOT / "docs" / "formats.md"
    page = with_tables(file.read_text(encoding="utf-8"))
    if request.config.getoption("--regenerate-goldens"):
        file.write_text(page, encoding="utf-8")
    assert page.count("<!-- members: ") == len(list(SCHEMAS.iterdir())) + 1  # bounds have a table of their own
    assert page == file.read_text(encoding="utf-8")
