"""The tables of docs/formats.md: the members that the JSON Schemas describe."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.support.checkout import ROOT

SCHEMAS = ROOT / "generator" / "gtstub" / "stub" / "signature" / "schema"

TABLE = re.compile(r"(?<=<!-- members: )(?P<schema>\w+)(?P<within>[\w.]*)(?P<marker> -->\n)(?:\|.*\n)*")
"""A table and the comment before it, which names its schema and, after a dot, the member that the table is about."""


def with_tables(page: str) -> str:
    """The text of a page in which each marked table has been written anew."""
    return TABLE.sub(lambda found: f"{found['schema']}{found['within']}{found['marker']}{_table(found)}", page)


def _table(found: re.Match[str]) -> str:
    schema = json.loads((SCHEMAS / f"{found['schema']}.schema.json").read_text(encoding="utf-8"))
    within = found["within"].removeprefix(".")
    members = dict(_described(schema, schema["$defs"], "", set()))
    inner = tuple(f"{name}." for name in schema["properties"] if f"members: {found['schema']}.{name} " in found.string)
    rows = [
        f"| `{path.removeprefix(f'{within}.')}` | {text} |\n"
        for path, text in members.items()
        if (path.startswith(f"{within}.") if within else not path.startswith(inner))
    ]
    return "".join(["| member | meaning |\n|---|---|\n", *rows])


def _described(node: Any, definitions: dict[str, Any], path: str, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Path and description of each member in a schema; a definition is described where it is first referred to."""
    if (reference := node.get("$ref", "").removeprefix("#/$defs/")) and reference not in seen:
        seen.add(reference)
        yield from _described(definitions[reference], definitions, path, seen)
    if "items" in node:
        yield from _described(node["items"], definitions, path, seen)
    for part in (node, *(case["then"] for case in node.get("allOf", ()))):
        for name, member in part.get("properties", {}).items():
            if isinstance(member, dict):
                inner = f"{path}.{name}".removeprefix(".") + "[]" * (member.get("type") == "array")
                if "description" in member:
                    yield inner, member["description"]
                yield from _described(member, definitions, inner, seen)
