"""Many processes start at once on an empty cache; two versions of gtstub share one."""

from __future__ import annotations

import shutil
from pathlib import Path

import gtstub
from tests.faults import invariants
from tests.faults.builder import key_of
from tests.faults.workshop import Ended, Workshop

PROCESSES = 16


def test_cold_processes_build_once(workshop: Workshop, tmp_path: Path) -> None:
    builds = tmp_path / "builds"
    root = tmp_path / "cache"
    started = [workshop.start(root, 0, builds=builds, GTSTUB_BUILD_TIMEOUT=60) for _ in range(PROCESSES)]
    for ended in map(Ended, started):
        assert (ended.status, ended.errors) == (0, "")
        assert ended.output == f"{root / key_of(0)}\n"
    assert builds.read_text().splitlines() == ["0"]
    invariants.check(workshop, root)


OTHER_VERSION = "999.0"


def other_version(folder: Path) -> Path:
    """A copy of the package that calls itself another version, and whose entries have another schema."""
    package = Path(shutil.copytree(Path(gtstub.__file__).parent, folder / "gtstub", symlinks=True))
    for file, old, new in (
        ("_version.py", f'__version__ = "{gtstub.__version__}"', f'__version__ = "{OTHER_VERSION}"'),
        ("entries/cache/manifest.py", 'SCHEMA = "gtstub/cache-entry/', 'SCHEMA = "gtstub/cache-entry/99'),
    ):
        text = (package / file).read_text()
        assert text.count(old) == 1
        (package / file).write_text(text.replace(old, new))
    return folder


def test_two_versions_share_a_cache(workshop: Workshop, tmp_path: Path) -> None:
    """Each has its own keys, of which the version is an ingredient, and leaves the other's entries alone."""
    other = other_version(tmp_path / "other")
    root = tmp_path / "cache"
    started = [workshop.start(root, number, **({"PYTHONPATH": other} if number % 2 else {})) for number in (0, 1, 0, 1)]
    for ended in map(Ended, started):
        assert (ended.status, ended.errors) == (0, "")
    before = invariants.entries(root)
    assert before.keys() == {root / key_of(0), root / key_of(1)}
    for number in (0, 1):
        done = workshop.run(root, number, **({"PYTHONPATH": other} if number else {}))
        assert (done.status, done.errors) == (0, "")
    assert invariants.entries(root) == before


def test_entry_of_another_version_is_refused(workshop: Workshop, tmp_path: Path) -> None:
    """Even under the key of ours it is left where it is: it is whole, and not ours to judge."""
    other = other_version(tmp_path / "other")
    root = tmp_path / "cache"
    assert workshop.run(root, 0, PYTHONPATH=other).status == 0
    before = invariants.entries(root)
    refused = workshop.run(root, 0)
    assert refused.is_refusal
    assert refused.errors == f"Another version of gtstub made the cache entry '{root / key_of(0)}': remove it.\n"
    assert invariants.entries(root) == before
    assert workshop.run(root, 0, PYTHONPATH=other).status == 0
