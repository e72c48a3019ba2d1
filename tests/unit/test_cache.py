"""Cache entries: whole or not there, one for two builders, movable, refused when something is missing."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

import gtstub
from gtstub import cache, entry
from gtstub.errors import CacheError
from gtstub.toolchain import Toolchain
from recording import build_null_library
from signatures import SMALL_PROGRAM, SMALL_SDFG
from stubs import build_stub

KEY = "prog-0123"
MANIFEST = {"name": "prog", "stub": "prog_stub.so", "library": "libprog.so", "workspaces": {}}


def build(root: Path, toolchain: Toolchain, key: str = KEY) -> cache.StubArtifact:
    with cache.private_directory(root, key) as private:
        directory = private / "entry"
        build_null_library(SMALL_SDFG, directory)
        build_stub(SMALL_SDFG, SMALL_PROGRAM, directory, toolchain)
        return cache.publish(directory, root, key, MANIFEST)


def refusal(path: Path) -> str:
    with pytest.raises(CacheError) as caught:
        gtstub.load(path)
    return str(caught.value)


def test_published_entry_loads(tmp_path: Path, toolchain: Toolchain) -> None:
    artifact = build(tmp_path, toolchain)
    assert artifact == cache.StubArtifact(tmp_path / KEY)
    assert cache.find(tmp_path, KEY) == artifact
    assert artifact.load().name == "prog"
    assert gtstub.load(str(artifact.path)).name == "prog"
    cache.verify(artifact.path)


def test_nothing_but_the_entry_is_left(tmp_path: Path, toolchain: Toolchain) -> None:
    build(tmp_path, toolchain)
    assert [path.name for path in tmp_path.iterdir()] == [KEY]


def test_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with cache.private_directory(tmp_path, KEY) as private:
            (private / "entry").mkdir()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []
    assert cache.find(tmp_path, KEY) is None


def test_entry_can_be_moved(tmp_path: Path, toolchain: Toolchain) -> None:
    path = build(tmp_path / "here", toolchain).path
    for file in path.iterdir():
        assert str(tmp_path).encode() not in file.read_bytes(), f"'{file.name}' knows where it lies"
    moved = path.rename(tmp_path / "there")
    assert gtstub.load(moved).name == "prog"


def test_manifest_says_what_was_built(tmp_path: Path, toolchain: Toolchain) -> None:
    path = build(tmp_path, toolchain).path
    manifest = entry.read_manifest(path)
    assert manifest["schema"] == "gtstub/cache-entry/2"
    assert manifest["key"] == KEY
    assert manifest.keys() > MANIFEST.keys()
    assert set(manifest["files"]) == {file.name for file in path.iterdir()} - {"manifest.json"}


def test_second_builder_uses_the_entry_of_the_first(tmp_path: Path, toolchain: Toolchain) -> None:
    first = build(tmp_path, toolchain)
    inode = (first.path / "prog_stub.so").stat().st_ino
    assert build(tmp_path, toolchain) == first
    assert (first.path / "prog_stub.so").stat().st_ino == inode


def test_builders_at_the_same_time_all_succeed(tmp_path: Path, toolchain: Toolchain) -> None:
    barrier = Barrier(4)

    def build_together(_: int) -> cache.StubArtifact:
        barrier.wait()
        return build(tmp_path, toolchain)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(build_together, range(4)))) == 1
    assert [path.name for path in tmp_path.iterdir()] == [KEY]
    assert gtstub.load(tmp_path / KEY).name == "prog"


def test_artifact_survives_pickling(tmp_path: Path, toolchain: Toolchain) -> None:
    artifact = build(tmp_path, toolchain)
    assert pickle.loads(pickle.dumps(artifact)) == artifact


def test_loading_imports_nothing_big(tmp_path: Path, toolchain: Toolchain) -> None:
    artifact = build(tmp_path, toolchain)
    code = """if True:
        import pickle, sys
        program = pickle.loads(bytes.fromhex(sys.argv[1])).load()
        big = {"gt4py", "dace", "icon4py", "jsonschema", "jinja2", "jq", "platformdirs", "numpy"} & sys.modules.keys()
        print(program.name, sorted(big))
    """
    command = [sys.executable, "-c", code, pickle.dumps(artifact).hex()]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "prog []\n"


# --- Entries that are none --------------------------------------------------------------------------------------------


def test_missing_entry(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no") == f"There is no cache entry at '{tmp_path / 'no'}'."


def test_entry_without_manifest(tmp_path: Path, toolchain: Toolchain) -> None:
    path = build(tmp_path, toolchain).path
    (path / "manifest.json").unlink()
    assert refusal(path) == f"There is no cache entry at '{path}'."


def test_missing_file(tmp_path: Path, toolchain: Toolchain) -> None:
    path = build(tmp_path, toolchain).path
    (path / "libprog.so").unlink()
    assert refusal(path) == f"The cache entry '{path}' lacks its file 'libprog.so'."


def test_truncated_file(tmp_path: Path, toolchain: Toolchain) -> None:
    path = build(tmp_path, toolchain).path
    size = (path / "prog_stub.so").stat().st_size
    with (path / "prog_stub.so").open("r+b") as file:
        file.truncate(100)
    assert refusal(path) == f"File 'prog_stub.so' of cache entry '{path}' has 100 bytes, not {size}."


def test_damaged_manifest(tmp_path: Path, toolchain: Toolchain) -> None:
    path = build(tmp_path, toolchain).path
    text = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(text[:50])
    assert refusal(path).startswith(f"The manifest of cache entry '{path}' cannot be read: ")
    for wrong in ("[]", "{}", json.dumps({"schema": "gtstub/cache-entry/9"})):
        (path / "manifest.json").write_text(wrong)
        assert refusal(path) == f"The manifest of cache entry '{path}' is not of schema 'gtstub/cache-entry/2'."
    (path / "manifest.json").write_text(text.replace('"name": "prog"', '"name": "grog"'))
    message = f"The manifest of cache entry '{path}' is not the one that was written: its digest differs."
    assert refusal(path) == message


def test_broken_entry_is_built_again(tmp_path: Path, toolchain: Toolchain) -> None:
    path = build(tmp_path, toolchain).path
    (path / "libprog.so").unlink()
    assert cache.find(tmp_path, KEY) is None
    assert build(tmp_path, toolchain) == cache.find(tmp_path, KEY)
    assert gtstub.load(path).name == "prog"
    assert [path.name for path in tmp_path.iterdir()] == [KEY]


def test_changed_file_is_noticed_by_verify(tmp_path: Path, toolchain: Toolchain) -> None:
    path = build(tmp_path, toolchain).path
    cache.verify(path)
    content = bytearray((path / "libprog.so").read_bytes())
    content[-1] ^= 1
    (path / "libprog.so").write_bytes(content)
    with pytest.raises(CacheError) as caught:
        cache.verify(path)
    message = f"File 'libprog.so' of cache entry '{path}' is not the one that was built: its digest differs."
    assert str(caught.value) == message


def test_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError) as caught, cache.private_directory(tmp_path / "file", KEY):
        pass
    assert str(caught.value) == (
        f"The cache cannot be written at '{tmp_path / 'file'}': Not a directory; free the way, or name another"
        " directory in GTSTUB_CACHE_DIR."
    )


# --- Keys and places --------------------------------------------------------------------------------------------------


def test_key_depends_on_every_input_but_not_on_their_order() -> None:
    key = cache.key("prog", {"a": 1, "b": {"c": [2]}})
    assert key == cache.key("prog", {"b": {"c": [2]}, "a": 1})
    assert key.startswith("prog-")
    assert key != cache.key("prog", {"a": 1, "b": {"c": [3]}})
    assert key != cache.key("other", {"a": 1, "b": {"c": [2]}})


def test_place_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.delenv("GTSTUB_CACHE_DIR", raising=False)
    assert cache.default_root() == tmp_path / "user" / "gtstub"
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "own"))
    assert cache.default_root() == tmp_path / "own"
