"""Builds the SDFG of a cache entry again, with debug checks after its maps."""

from __future__ import annotations

import shutil
from pathlib import Path

from gtstub.entries.cache.entry import COMPILED_SDFG, Entry
from gtstub.errors import GtstubError
from gtstub.frameworks.dace.build import Build
from gtstub.frameworks.dace.saved import saved_sdfg
from gtstub.stub.signature import documents


def rebuild_with_checks(path: Path, folder: Path) -> Path:
    """
    Builds the SDFG of the entry at `path` in `folder`, with the settings of its build. Returns the path of its stub,
    which stands beside the library. An entry that has the checks is not built again.

    Raises CacheError if the entry is damaged, GtstubError if it has no SDFG, or one of another version of DaCe, and the
    errors of a build.
    """
    entry = Entry(path)
    entry.verify()
    manifest = entry.verify_usable()
    if manifest.ingredients["dace_config"].get("map_checks"):
        return path / manifest.stub
    if not (path / COMPILED_SDFG).is_file():
        raise GtstubError(f"The cache entry '{path}' has no file '{COMPILED_SDFG}': build its program again.")
    signature = documents.sdfg_in(path / "sdfg.json")
    build = Build(
        signature.device,
        manifest.machine.device,
        manifest.ingredients["backend"]["build_type"],
        manifest.ingredients["dace_config"]["overrides"],
    )
    with build.context():
        _, library = build.compile(saved_sdfg(path / COMPILED_SDFG), folder / "dace", map_checks=True)
    shutil.copy(library, folder / manifest.library)
    return Path(shutil.copy(path / manifest.stub, folder))
