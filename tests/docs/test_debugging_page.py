"""docs/debugging.md: its example says what the page says, and its table has all items."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.checkout import ROOT
from tests.support.pages import COMMAND, blocks

PAGE = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
TEXT = (ROOT / "runtime" / "observers" / "debug" / "text.c").read_text(encoding="utf-8")


@pytest.mark.skipif(find_spec("gt4py") is None, reason="gt4py is not installed")
def test_the_example_says_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(blocks(PAGE, "python")[0], encoding="utf-8")
    (tmp_path / "gtstub").write_text(COMMAND, encoding="utf-8")
    command = re.search(r'^`gtstub debug --check "(.*?)" -- python model.py`', PAGE, re.MULTILINE)
    assert command is not None
    arguments = ["debug", "--check", command[1], "--", sys.executable, "model.py"]
    done = subprocess.run(
        [sys.executable, "gtstub", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (
        1,
        re.findall(r"^RuntimeError: .*$", PAGE, re.MULTILINE),
    )


def test_all_items_are_on_the_page() -> None:
    words = re.findall(r'^    \[\w+\] = "(\w+)', TEXT, re.MULTILINE)
    rows = [row.split()[0] for row in re.findall(r"^\| `([a-z].*?)` \| (?!`)", PAGE, re.MULTILINE)]
    assert rows == words


def test_the_names_of_the_preset_are_on_the_page() -> None:
    (row,) = re.findall(r"^\| `fv3` \|.*$", PAGE, re.MULTILINE)
    preset = re.search(r"FV3\[\] =(.*?);\n", TEXT, re.DOTALL)
    assert preset is not None
    names = re.findall(r"min \*(\w+)\*", preset[1])
    assert len(names) == 10
    assert re.findall(r"`(\w+)`", row) == ["fv3", *names]
