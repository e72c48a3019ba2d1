"""What a user sees of the package in an interactive session."""

from __future__ import annotations

import importlib.util
import pydoc
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import gtstub
from tests.support.checkout import ROOT

PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]

WITHOUT_DACE = """if True:
    import sys
    sys.path.append(sys.argv[1])
    import gtstub, pydoc
    print("program" in dir(gtstub))
    print(pydoc.render_doc(gtstub, renderer=pydoc.plaintext))
"""


def test_dir_has_what_the_pages_use() -> None:
    names = set(dir(gtstub))
    lacking = set() if importlib.util.find_spec("dace") else {"program"}
    assert set(gtstub.__all__) - names == lacking
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    python = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\bgtstub\.(\w+)(?=[`(.,)\s:])", text)) - lacking
    used = {name for name in named if hasattr(gtstub, name)}
    documented = set(re.findall(r"^\.\. auto(?:function|class):: (?:gtstub\.)?(\w+)", python, re.MULTILINE))
    assert names - {"__version__"} - used - documented == set()
    assert {name for name in used if not name.startswith("_")} - names == set()
    assert all(hasattr(gtstub, name) for name in names)


def test_help_begins_with_what_users_do() -> None:
    text = pydoc.render_doc(gtstub, renderer=pydoc.plaintext)
    start = text[: text.index("PACKAGE CONTENTS")]
    assert [line.split()[0] for line in start.splitlines() if re.match(r" +\d\.", line)] == [
        "1.",
        "2.",
        "3.",
        "4.",
        "5.",
    ]
    for name in ("make_backend", "gtstub.compile", "gtstub.capture", "gtstub.load", "gtstub.profile"):
        assert name in start


def test_help_works_without_dace(tmp_path: Path) -> None:
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        if not installed.name.startswith(("dace", "gt4py")) and installed.suffix != ".pth":
            (tmp_path / installed.name).symlink_to(installed)
    command = [sys.executable, "-S", "-c", WITHOUT_DACE, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False\n")
    assert "wait_for_compilation" in done.stdout
