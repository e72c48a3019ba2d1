"""
Every file that a cache, a shared layer, the directory of the machine or a granule has, and that is read, goes through
the check of trust, or decides neither what runs nor what is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from gtstub.entries.cache.manifest import FILE
from gtstub.entries.cache.prune import LIMITED
from tests.support.checkout import ROOT
from tests.support.files_read import Reads, run_noting

DECIDE_NOTHING = re.compile(
    r"""
    /\.claims/[^/]+                # which process builds
    | /\.failures/[^/]+            # texts of errors
    | /\.(hits|misses|limited)
    | /\.building-[^/]+/.*         # of this process; nobody else can enter the directory
    | /granule/(kept\.bin|capture\.(npz|json))  # numbers
    """,
    re.VERBOSE,
)


def unasked(found: Sequence[Reads], places: Sequence[Path]) -> list[Path]:
    """A process that reads only the manifest of an entry, as for the time of a build, loads nothing of it."""
    paths = {
        path
        for each in found
        for path in each.unasked(places)
        if path.name != FILE or any(other.parent == path.parent for other in each.read - {path})
    }
    return sorted(path for path in paths if not DECIDE_NOTHING.search(str(path)))


RELAX = "tests_support_granule_programs_relax"

MODEL = ("-m", "tests.support.trusted_model")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reads")


@pytest.fixture(scope="module")
def built(place: Path) -> list[Reads]:
    """What a run reads that builds, records and exports."""
    (place / "cache").mkdir()
    (place / "cache" / LIMITED).touch()  # Otherwise it reads all manifests, to find what to remove.
    environment = environment_of(place, place / "cache") | {"GTSTUB_RECORD": str(place / "recording")}
    return run_noting([*MODEL, str(place / "granule")], place / "build", **environment)


def environment_of(place: Path, cache: Path) -> dict[str, str]:
    return {
        "GTSTUB_CACHE_DIR": str(cache),
        "GTSTUB_MACHINE_DIR": str(place / "machine"),
        "DACE_BUILD_CACHE_DIR": "",  # as users have it
        "PYTHONDONTWRITEBYTECODE": "1",
        "GT4PY_BUILD_JOBS_MODE": "process",
        "PYTHONPATH": str(ROOT),
    }


def test_a_build(place: Path, built: list[Reads]) -> None:
    assert len(built) > 1  # with workers
    assert any(each.name.startswith("toolchain-") for reads in built for each in reads.read)
    assert unasked(built, [place / "cache", place / "machine", place / "granule"]) == []


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("mode", ["BuildAndRun", "Run"])
def test_programs_of_a_shared_layer(place: Path, mode: str) -> None:
    own, machine = place / f"own-{mode}", place / f"machine-{mode}"
    environment = environment_of(place, own) | {
        "GTSTUB_SHARED_CACHE_DIR": str(place / "cache"),
        "GTSTUB_MODE": mode,
        "GTSTUB_MACHINE_DIR": str(machine),
    }
    found = run_noting(MODEL, place / f"noted-{mode}", **environment)
    assert any(each.is_relative_to(place / "cache") for reads in found for each in reads.read)
    assert unasked(found, [place / "cache", own, machine]) == []


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "command",
    [
        ["replay", "recording", RELAX, "--build-checks", "--program", RELAX],
        ["replay", "recording", RELAX, "--program", RELAX, "--compare"],
        ["granule", "verify", "granule"],
    ],
    ids=" ".join,
)
def test_commands(place: Path, command: list[str]) -> None:
    given = [str(place / word) if word in ("recording", "granule") and n else word for n, word in enumerate(command)]
    environment = environment_of(place, place / "cache")
    found = run_noting(["-m", "gtstub", *given], place / "-".join(command), **environment)
    assert unasked(found, [place / "cache", place / "machine", place / "granule"]) == []
