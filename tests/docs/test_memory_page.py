"""docs/memory.md and docs/formats.md say what 'gtstub memory' prints."""

from __future__ import annotations

import dataclasses
import re
from typing import get_args

from gtstub.tools.memory.memory import Allocation, Memory, StorageUse, Total, Transient
from tests.support.checkout import ROOT

PAGE = (ROOT / "docs" / "memory.md").read_text(encoding="utf-8")
FORMATS = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")


def test_all_words_of_the_column_allocated_are_explained() -> None:
    heading, *words = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert heading == "allocated"
    assert sorted(words) == sorted(get_args(Allocation))


def test_all_members_are_described() -> None:
    described = FORMATS.partition("\n## Memory\n")[2].partition("\n## ")[0]
    members = {field.name for kind in (Memory, Transient, Total, StorageUse) for field in dataclasses.fields(kind)}
    assert members - set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", described)))) == set()
