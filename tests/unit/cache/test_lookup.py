"""Which entry a process finds that builds none: of any toolchain, in any layer, if it can be used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.lookup import make_request
from gtstub.entries.cache.manifest import Built, Machine
from gtstub.entries.cache.store import Cache
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.errors import CacheError, TrustError
from tests.support.entries import LIBRARY, flip_a_bit, publish_made_of
from tests.support.own_cache import copy_answers

CMAKE = ("", list[str]())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("GTSTUB_MODE", "Run")
    return Cache(tmp_path / "cache")


def publish(cache: Cache, toolchain: object, time: float, **manifest: object) -> Entry:
    """An entry of this toolchain, as if it had been built at a time."""
    return publish_made_of(cache, {"n": 1, "toolchain": toolchain}, built=Built(time=time), **manifest)


def found() -> Path:
    entry = make_request("prog", {"n": 1}, {}, CMAKE).find()
    assert entry is not None
    return entry.path


def damage(entry: Entry) -> None:
    flip_a_bit(entry.path / LIBRARY)


def let_others_write(entry: Entry) -> None:
    entry.path.chmod(0o757)


def truncate(entry: Entry) -> None:
    os.truncate(entry.path / LIBRARY, 1)


UNUSABLE = pytest.mark.parametrize("damage", [damage, let_others_write, truncate])


@UNUSABLE
def test_an_imported_entry_that_can_be_used_comes_before_a_newer_one(
    cache: Cache, damage: Callable[[Entry], None]
) -> None:
    newest, usable, oldest = (publish(cache, f"gcc {n}", time=100.0 - n) for n in range(3))
    assert found() == newest.path
    damage(newest)
    assert found() == usable.path
    damage(usable)
    assert found() == oldest.path


def test_an_imported_entry_for_another_cpu(cache: Cache) -> None:
    publish(cache, "gcc 2", time=2.0, machine=Machine(cpu=("no-cpu-has-this",)))
    usable = publish(cache, "gcc 1", time=1.0)
    assert found() == usable.path


def test_an_entry_of_a_known_toolchain_for_another_cpu(cache: Cache, toolchain: Toolchain) -> None:
    copy_answers(toolchain.kept.parent, cache.root)
    own = publish(cache, toolchain.ingredients, time=2.0)
    usable = publish(cache, "gcc 1", time=1.0)
    assert found() == own.path
    text = own.manifest()._replace(machine=Machine(cpu=("no-cpu-has-this",))).to_json()
    own.manifest_file.write_text(json.dumps(text), encoding="utf-8")
    assert found() == usable.path


def test_the_reason_why_no_entry_can_be_used(cache: Cache) -> None:
    entry = publish(cache, "gcc 1", time=1.0)
    let_others_write(entry)
    with pytest.raises(TrustError, match="can be written by everyone"):
        found()
    entry.path.chmod(0o755)
    damage(entry)
    with pytest.raises(CacheError, match=f"The entry that exists cannot be used: File '{LIBRARY}' of"):
        found()


FORBIDDEN = """
import os, sys, sysconfig
from pathlib import Path
from gtstub import _host
from gtstub.entries.cache.inventory import code_paths, inventory
from gtstub.entries.cache.lookup import make_request
from gtstub.entries.cache.store import Cache, open_cache
from gtstub.errors import CacheError
from gtstub.entries.toolchain import compiler, cpu
from tests.support.entries import publish_made_of

place = Path(sys.argv[1])
# What reads files of Python, which another user may not reach.
sysconfig.get_path("scripts")
Cache(place / "first").nearest(publish_made_of(Cache(place / "first"), {}).key, {})
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
layer = place / "layer"
layer.mkdir()
layer.chmod(int(sys.argv[2], 8))
os.environ.update(GTSTUB_CACHE_DIR=str(place / "own"), GTSTUB_SHARED_CACHE_DIR=str(layer), GTSTUB_MODE="Run")
cache = open_cache()
try:
    make_request("prog", {"n": 1}, {}, ("", [])).find()
except CacheError as error:
    print(error)
entry = publish_made_of(cache, {"n": 1, "toolchain": "gcc"})
assert make_request("prog", {"n": 1}, {}, ("", [])).find() == entry
assert [item.entry for item in inventory(cache)] == [entry]
assert code_paths(layer) == []
assert compiler.known(cache.layers) == []
layer.chmod(0o700)
"""


@pytest.mark.parametrize("mode", ["000", "444", "111"])
def test_a_layer_that_this_user_may_not_enter(mode: str) -> None:
    with tempfile.TemporaryDirectory(prefix="gtstub-", dir="/tmp") as directory:  # Others can enter it.
        Path(directory).chmod(0o755)
        if os.geteuid() == 0:
            os.chown(directory, 65534, 65534)
        command = [sys.executable, "-c", FORBIDDEN, directory, mode]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert "Program 'prog' has no entry in the cache" in done.stdout
    if mode != "111":
        assert f"'{directory}/layer/prog-" in done.stdout
        assert "cannot be read: Permission denied." in done.stdout
