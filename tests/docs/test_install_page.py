"""docs/install.md names the extras that there are, and no text asks a package index for gtstub, because none has it."""

from __future__ import annotations

import re
import tomllib

from tests.support.checkout import ROOT

FOR_DEVELOPERS = {"bench", "browser", "lint", "nvcc", "py2fgen", "site", "suite", "test"}


def test_every_extra_is_on_the_page() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    table = page.partition("## Extras")[2].partition("\n## ")[0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (
        set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
        == project["optional-dependencies"].keys() - FOR_DEVELOPERS
    )


def test_no_text_installs_gtstub_from_an_index() -> None:
    texts = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder in ("docs", "examples", "generator", "runtime", "templates"):
        texts += [path for path in (ROOT / folder).rglob("*") if path.suffix in {".c", ".cmake", ".in", ".md", ".py"}]
    assert len(texts) > 100
    from_index = re.compile(r"pip install (?:-\S+ )*['\"]?gtstub(?!\S* @ file:|-\S+\.whl).*")
    found = [command for path in texts for command in from_index.findall(path.read_text(encoding="utf-8"))]
    assert found == []
