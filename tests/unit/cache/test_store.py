"""Cache entries: whole or not there, one for two builders, movable, refused when something is missing."""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

import gtstub
from gtstub import settings
from gtstub.entries.cache.cleanup import set_aside
from gtstub.entries.cache.entry import COMPILED_SDFG, LOWERED_SDFG, STAGE, USE_KNOWN, Entry
from gtstub.entries.cache.key import Difference, make_key
from gtstub.entries.cache.manifest import BuildStage, Built, File, Machine, Manifest, digest
from gtstub.entries.cache.store import Cache, open_cache
from gtstub.entries.toolchain import cpu
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.entries.trust import MARKER
from gtstub.errors import CacheError
from tests.support.entries import LIBRARY, STUB, flip_a_bit, publish, publish_made_of, write_files
from tests.support.sdfg_libraries import build_null_library
from tests.support.signatures import SMALL_PROGRAM, SMALL_SDFG
from tests.support.stubs import build_stub

KEY = "prog-0123"


def build(cache: Cache, toolchain: Toolchain, **manifest: Any) -> Entry:
    """A real entry, that can be loaded."""
    with cache.private_directory(KEY) as private:
        directory = private / "entry"
        build_null_library(SMALL_SDFG, directory)
        build_stub(SMALL_SDFG, SMALL_PROGRAM, directory, toolchain)
        return cache.publish(directory, KEY, Manifest("prog", STUB, LIBRARY, **manifest))


def refusal(path: Path, **baked: Any) -> str:
    with pytest.raises(CacheError) as caught:
        Entry(path).load(baked)
    return str(caught.value)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != MARKER)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


# --- Publishing -------------------------------------------------------------------------------------------------------


def test_published_entry_loads(cache: Cache, toolchain: Toolchain) -> None:
    artifact = build(cache, toolchain)
    assert artifact == Entry(cache.root / KEY)
    assert cache.find(KEY) == artifact
    assert artifact.load().name == "prog"
    assert gtstub.load(str(artifact.path)).name == "prog"


def test_nothing_but_the_entry_is_left(cache: Cache) -> None:
    publish(cache, KEY)
    assert names(cache.root) == [KEY]


def test_an_entry_that_is_pruned_after_it_was_looked_at(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """The builder that finds it, and was slower, gets no error."""
    verify = Entry.verify

    def verify_and_prune(entry: Entry) -> Manifest:
        found = verify(entry)
        shutil.rmtree(entry.path)
        return found

    publish(cache, KEY)
    monkeypatch.setattr(Entry, "verify", verify_and_prune)
    assert publish(cache, KEY) == Entry(cache.root / KEY)


def test_failed_build_leaves_nothing(cache: Cache) -> None:
    def fail() -> None:
        with cache.private_directory(KEY) as private:
            (private / "entry").mkdir()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert names(cache.root) == []
    assert cache.find(KEY) is None


def test_entry_can_be_moved(cache: Cache, toolchain: Toolchain, tmp_path: Path) -> None:
    path = build(cache, toolchain).path
    for file in path.iterdir():
        assert str(tmp_path).encode() not in file.read_bytes(), f"'{file.name}' knows where it lies"
    moved = path.rename(tmp_path / "there")
    assert gtstub.load(moved).name == "prog"


STAGES = (BuildStage("lowering", 1.7e9, 1, 11), BuildStage("saving", 1.7e9 + 1, 0.5, 12))


def test_manifest_says_what_was_built(cache: Cache) -> None:
    before = time.time()
    key = make_key("prog", {"static": {"n": 3}})
    with cache.private_directory(key) as directory:
        made = write_files(directory)._replace(
            ingredients={"static": {"n": 3}}, baked={"n": 3}, built=Built(seconds=1.5, stages=STAGES)
        )
        path = cache.publish(directory, key, made).path
    manifest = Entry(path).manifest()
    document = json.loads((path / "manifest.json").read_bytes())
    assert document == manifest.to_json()
    assert document["schema"] == "gtstub/cache-entry/2"
    assert manifest.key == path.name == key
    assert manifest.ingredients == {"static": {"n": 3}}
    assert manifest.baked == {"n": 3}
    assert manifest.machine == Machine()
    assert manifest.built.seconds == 1.5
    assert manifest.built.stages == STAGES
    assert document["built"]["stages"][1] == {"name": "saving", "begin": 1.7e9 + 1, "seconds": 0.5, "pid": 12}
    assert before <= manifest.built.time <= time.time()
    assert set(manifest.files) == set(names(path)) - {"manifest.json"}


def test_the_time_of_a_build_is_that_in_which_a_stage_was_under_way() -> None:
    stages = [("lowering", 0, 1, 11), ("generation", 5, 2, 12), ("compilation", 7, 2, 12), ("stub", 5, 1, 12)]
    assert Built(seconds=4, stages=tuple(BuildStage(*stage) for stage in stages)).whole == 5
    assert Built(seconds=4).whole == 4


def test_an_entry_of_an_older_gtstub_has_no_stages(cache: Cache) -> None:
    path = publish(cache, KEY, "first").path
    assert "stages" not in json.loads((path / "manifest.json").read_bytes())["built"]
    assert Entry(path).verify().built.stages == ()


def test_second_builder_uses_the_entry_of_the_first(cache: Cache) -> None:
    first = publish(cache, KEY, "first")
    assert publish(cache, KEY, "second") == first
    assert (first.path / STUB).read_text() == f"{STUB} first\n"


def test_builders_at_the_same_time_all_succeed(cache: Cache) -> None:
    barrier = Barrier(4)

    def build_together(number: int) -> Entry:
        barrier.wait()
        return publish(cache, KEY, str(number))

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(build_together, range(4)))) == 1
    assert names(cache.root) == [KEY]
    Entry(cache.root / KEY).verify()


def test_entry_holds_files_only(cache: Cache, tmp_path: Path) -> None:
    with cache.private_directory(KEY) as directory:
        manifest = write_files(directory)
        (directory / "link").symlink_to(tmp_path)
        with pytest.raises(CacheError) as caught:
            cache.publish(directory, KEY, manifest)
        assert str(caught.value) == f"A cache entry holds only files, but '{directory / 'link'}' is not a file."
        (directory / "link").unlink()
        (directory / STUB).unlink()
        with pytest.raises(CacheError) as caught:
            cache.publish(directory, KEY, manifest)
        assert str(caught.value) == f"The manifest of cache entry '{directory}' lists no file '{STUB}'."
    assert names(cache.root) == []


def test_every_file_is_on_the_disk_before_the_entry_has_its_name(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append(f"{path.name} of an entry" if (cache.root / KEY).exists() else path.name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    publish(cache, KEY)
    assert set(synced[:3]) == {STUB, LIBRARY, "manifest.json"}
    assert synced[3] == "entry"
    assert synced[4:] == [f"{cache.root.name} of an entry"]


# --- Places that cannot be written ------------------------------------------------------------------------------------


def test_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError) as caught, Cache(tmp_path / "file").private_directory(KEY):
        pass
    assert str(caught.value) == (
        f"The cache cannot be written at '{tmp_path / 'file'}': Not a directory. Correct this, or name another"
        " directory in GTSTUB_CACHE_DIR."
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("unreadable", ["", "manifest.json", LIBRARY])
def test_entry_that_another_user_may_not_read(unreadable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache itself can be written."""
    code = """if True:
        import os, sys
        from pathlib import Path
        from gtstub.entries.cache.store import Cache
        from gtstub.errors import CacheError
        from tests.support.entries import publish
        publish(Cache(Path(sys.argv[1])), "prog-4567")  # Imports what the other user may not be able to read.
        os.setgid(65534), os.setuid(65534)
        try:
            publish(Cache(Path(sys.argv[1])), "prog-0123")
        except CacheError as error:
            print(error)
    """
    with tempfile.TemporaryDirectory() as root:  # Only its owner can pass the directories of pytest.
        os.chown(root, 0, 65534)
        Path(root).chmod(0o775)
        monkeypatch.setenv(settings.TRUST, "group=65534")
        path = publish(Cache(Path(root)), KEY).path
        (path / unreadable).chmod(0)
        command = [sys.executable, "-c", code, root]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        assert done.stdout == (
            f"This user may not read the cache entry '{path}': ask its owner to make it readable, or name another"
            " directory in GTSTUB_CACHE_DIR.\n"
        )


def test_path_that_is_too_long(tmp_path: Path) -> None:
    cache = Cache(tmp_path.joinpath(*["d" * 200] * 25))
    assert cache.find(KEY) is None
    with pytest.raises(CacheError) as caught, cache.private_directory(KEY):
        pass
    assert ": File name too long. Correct this, or name another directory in GTSTUB_CACHE_DIR." in str(caught.value)


def test_path_that_is_long_or_a_link(tmp_path: Path, toolchain: Toolchain) -> None:
    deep = tmp_path.joinpath(*["d" * 200] * 15)
    deep.mkdir(parents=True)
    (tmp_path / "link").symlink_to(deep)
    for cache in (Cache(deep / "own"), Cache(tmp_path / "link")):
        assert build(cache, toolchain).load().name == "prog"
        assert cache.find(KEY) == Entry(cache.root / KEY)


@pytest.mark.parametrize("call", ["write_text", "rename"])
def test_disk_that_fails(cache: Cache, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def fail(path: Path, *_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with cache.private_directory(KEY) as directory:
        manifest = write_files(directory)
        monkeypatch.setattr(Path, call, fail)
        with pytest.raises(CacheError) as caught:
            cache.publish(directory, KEY, manifest)
    message = ": No space left on device. Correct this, or name another directory in GTSTUB_CACHE_DIR."
    assert str(caught.value).endswith(message)
    assert names(cache.root) == []


# --- Entries that are none --------------------------------------------------------------------------------------------


def test_missing_entry(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no") == f"There is no cache entry at '{tmp_path / 'no'}'."


def test_entry_without_manifest(cache: Cache) -> None:
    path = publish(cache, KEY).path
    (path / "manifest.json").unlink()
    assert refusal(path) == f"There is no cache entry at '{path}'."


def test_missing_file(cache: Cache) -> None:
    path = publish(cache, KEY).path
    (path / LIBRARY).unlink()
    assert refusal(path) == f"The cache entry '{path}' lacks its file '{LIBRARY}'."


def test_truncated_file(cache: Cache) -> None:
    path = publish(cache, KEY).path
    size = (path / STUB).stat().st_size
    with (path / STUB).open("r+b") as file:
        file.truncate(10)
    assert refusal(path) == f"File '{STUB}' of cache entry '{path}' has 10 bytes, not {size}."


@pytest.mark.parametrize("file", [STUB, LIBRARY])
def test_flipped_bit_in_a_file(cache: Cache, file: str) -> None:
    path = publish(cache, KEY).path
    flip_a_bit(path / file)
    assert refusal(path) == f"File '{file}' of cache entry '{path}' is not the one that was built: its digest differs."


def test_a_file_is_read_once_by_a_process_that_finds_and_loads_it(
    cache: Cache, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build(cache, toolchain).path
    read = []
    of = File.of
    monkeypatch.setattr(File, "of", lambda file: read.append(os.fstat(file).st_ino) or of(file))
    found = cache.find(path.name)
    assert found is not None
    found.load()
    files = [file for file in path.iterdir() if file.name != "manifest.json"]
    assert sorted(read) == sorted(file.stat().st_ino for file in files)
    Entry(path).verify()
    assert len(read) == 2 * len(files), "Whoever asks for it has all files read."


def test_a_file_that_changes_between_finding_and_loading_is_read_again(cache: Cache) -> None:
    path = publish(cache, KEY).path
    assert cache.find(KEY) is not None
    library = path / LIBRARY
    before = library.stat()
    flip_a_bit(library)
    os.utime(library, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert library.stat().st_size == before.st_size
    assert refusal(path).endswith("its digest differs.")


@pytest.mark.parametrize("file", [COMPILED_SDFG, LOWERED_SDFG, f"{STAGE}01-final.{LOWERED_SDFG}"])
def test_calls_do_not_read_the_sdfgs(cache: Cache, file: str) -> None:
    with cache.private_directory(KEY) as directory:
        manifest = write_files(directory, "library")
        (directory / file).write_bytes(b"an SDFG")
        path = cache.publish(directory, KEY, manifest).path
    flip_a_bit(path / file)
    assert Entry(path).verify_usable().stub == STUB
    with pytest.raises(CacheError, match="its digest differs"):
        Entry(path).verify()


def test_flipped_bit_anywhere_in_the_manifest(cache: Cache) -> None:
    path = publish(cache, KEY, baked={"n": 1}).path
    content = (path / "manifest.json").read_bytes()
    manifest = Entry(path).manifest()
    for position in range(len(content)):
        flip_a_bit(path / "manifest.json", position)
        try:
            assert Entry(path).verify() == manifest  # The bit made one white space of another.
        except CacheError:
            assert not Entry(path).is_foreign(), "A broken entry must be built again."
        (path / "manifest.json").write_bytes(content)


def test_damaged_manifest(cache: Cache) -> None:
    path = publish(cache, KEY).path
    text = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(text[:50])
    assert refusal(path).startswith(f"The manifest of cache entry '{path}' cannot be read: ")
    for wrong in ("[]", "{}", json.dumps({"schema": "gtstub/cache-entry/9"})):
        (path / "manifest.json").write_text(wrong)
        assert refusal(path) == f"The manifest of cache entry '{path}' is not of schema 'gtstub/cache-entry/2'."
    (path / "manifest.json").write_text(text.replace('"name": "prog"', '"name": "grog"'))
    message = f"The manifest of cache entry '{path}' is not the one that was written: its digest differs."
    assert refusal(path) == message


def test_broken_entry_is_built_again(cache: Cache) -> None:
    path = publish(cache, KEY).path
    (path / LIBRARY).unlink()
    assert cache.find(KEY) is None
    assert publish(cache, KEY, "again") == cache.find(KEY)
    assert (path / LIBRARY).read_text() == f"{LIBRARY} again\n"
    assert names(cache.root) == [KEY]


def test_entry_under_the_key_of_another_one_is_broken(cache: Cache) -> None:
    entries = [publish_made_of(cache, {"n": n}, f"library {n}") for n in (1, 2)]
    first, second = (entry.path for entry in entries)
    first.rename(first.with_name("aside"))
    second.rename(first)
    first.with_name("aside").rename(second)
    for entry, other in (entries, entries[::-1]):
        assert cache.find(entry.key) is None
        for refused in (entry.manifest, entry.verify, entry.load):
            with pytest.raises(CacheError) as error:
                refused()
            assert str(error.value) == (
                f"The cache entry '{entry.path}' was renamed: its manifest has the key '{other.key}'."
            )
    assert publish_made_of(cache, {"n": 1}, "library 1") == entries[0]
    assert cache.find(entries[0].key) == entries[0]
    assert (first / LIBRARY).read_text() == f"{LIBRARY} library 1\n"
    assert Entry(first.rename(first.with_name("other"))).verify().ingredients == {"n": 1}  # a name that is no key


def test_whole_entry_that_was_taken_for_a_broken_one_is_put_back(cache: Cache) -> None:
    path = publish(cache, KEY).path  # Somebody published it after this process saw a broken one.
    inode = path.stat().st_ino
    with cache.private_directory(KEY) as grave:
        set_aside(path, grave)
        assert not path.exists()
    assert path.stat().st_ino == inode
    assert names(cache.root) == [KEY]


@pytest.mark.parametrize("schema", ["gtstub/cache-entry/1", "gtstub/cache-entry/3"])
def test_entry_of_another_version_of_gtstub_is_left_alone(cache: Cache, schema: str) -> None:
    path = publish(cache, KEY).path
    foreign = {"schema": schema, "of": "another gtstub"}
    text = json.dumps({**foreign, "digest": digest(foreign)})
    (path / "manifest.json").write_text(text)
    assert cache.find(KEY) is None
    with pytest.raises(CacheError) as caught:
        publish(cache, KEY)
    assert str(caught.value) == f"Another version of gtstub made the cache entry '{path}': remove it."
    assert (path / "manifest.json").read_text() == text


# --- Entries that do not fit ------------------------------------------------------------------------------------------


def test_value_that_was_compiled_in(cache: Cache, toolchain: Toolchain) -> None:
    path = build(cache, toolchain, baked={"da_min": 3.0, "n": 4}).path
    assert Entry(path).load({"da_min": 3.0, "left_to_run_time": 1}).name == "prog"
    assert refusal(path, da_min=2.5) == (
        f"The cache entry '{path}' has da_min = 3.0 compiled in, but da_min = 2.5 was requested: build it for that"
        " value, or pass the value at run time."
    )
    for wrong in (3, 0, [("da_min", 3.0)]):
        with pytest.raises(TypeError) as caught:
            Entry(path).load(wrong)  # type: ignore[arg-type]
        assert str(caught.value) == f"'baked' must be a mapping of names to values, not '{type(wrong).__name__}'."


def test_cpu_that_lacks_a_feature(cache: Cache, toolchain: Toolchain) -> None:
    has = tuple(sorted(cpu.features())[:2])
    assert build(cache, toolchain, machine=Machine(has)).load().name == "prog"
    other = publish(cache, "prog-4567", machine=Machine(("avx1024", *has)))
    assert cache.find("prog-4567") is None
    assert refusal(other.path) == (
        f"The cache entry '{other.path}' was built for a CPU with 'avx1024', which this one lacks: build it on this"
        " machine."
    )
    content = (other.path / "manifest.json").read_bytes()
    with pytest.raises(CacheError) as caught:
        publish(cache, "prog-4567", machine=Machine(has))
    assert str(caught.value) == (
        f"The cache entry '{other.path}' was built for a CPU with 'avx1024', which this one lacks. It cannot"
        " replace the one built here: name another directory in GTSTUB_CACHE_DIR."
    )
    assert (other.path / "manifest.json").read_bytes() == content, "It is whole, and fits another machine."
    assert publish(cache, "prog-4567", machine=Machine(("avx1024", *has))) == other, "Nobody said it was for this one."


def test_other_gpu(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    path = publish(cache, KEY, machine=Machine(device="cuda", arch="sm_80")).path
    monkeypatch.setenv("GTSTUB_ARCH", "sm_90")
    assert refusal(path) == (
        f"The cache entry '{path}' was built for 'sm_80', but the GPU here is 'sm_90': build it on this machine."
    )
    monkeypatch.setenv("GTSTUB_ARCH", "sm_80")
    Entry(path).verify_usable()


# --- Loading ----------------------------------------------------------------------------------------------------------


def test_artifact_survives_pickling(cache: Cache) -> None:
    artifact = publish(cache, KEY)
    assert pickle.loads(pickle.dumps(artifact)) == artifact


def test_loading_imports_nothing_big(cache: Cache, toolchain: Toolchain) -> None:
    path = build(cache, toolchain, machine=Machine(("fpu",) if "fpu" in cpu.features() else ())).path
    code = """if True:
        import sys, gtstub
        program = gtstub.load(sys.argv[1])
        frameworks = {"gt4py", "dace", "icon4py", "numpy"}
        others = {"jsonschema", "jinja2", "jq", "platformdirs", "click", "rich", "archspec", "dataclasses"}
        print(program.name, sorted((frameworks | others) & sys.modules.keys()))
    """
    command = [sys.executable, "-c", code, str(path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "prog []\n"


def test_use_is_noted_once_an_hour(cache: Cache, toolchain: Toolchain) -> None:
    path = build(cache, toolchain).path
    now = time.time()
    for last, is_noted in ((now - USE_KNOWN / 2, False), (now - 2 * USE_KNOWN, True), (now + 2 * USE_KNOWN, True)):
        for use in (lambda: cache.find(KEY), lambda: gtstub.load(path)):
            os.utime(path, (last, last))
            use()
            assert (path.stat().st_mtime != pytest.approx(last)) is is_noted


# --- Layers -----------------------------------------------------------------------------------------------------------


def test_shared_layer_is_used_where_it_lies_and_never_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = publish(Cache(tmp_path / "shared"), KEY).path
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("GTSTUB_SHARED_CACHE_DIR", f"{tmp_path / 'none'}{os.pathsep}{tmp_path / 'shared'}")
    cache = open_cache()
    os.utime(path, (0, 0))
    assert cache.find(KEY) == Entry(path)
    assert path.stat().st_mtime == 0
    assert not cache.root.exists()
    own = publish(cache, KEY)
    assert own.path.parent == tmp_path / "own"
    assert cache.find(KEY) == own
    assert list(cache.entries()) == [own, Entry(path)]


@pytest.mark.parametrize(
    ("root", "shared", "place", "is_noted"),
    [
        ("shared", "shared", "shared", True),
        ("shared/mine", "shared", "shared/mine", True),
        ("shared/mine", "shared", "shared/mine/FV3_TL", True),
        ("shared/mine", "shared", "shared", False),
        ("own", "own/shared", "own/shared", False),
        ("own", "own/shared", "own", True),
        ("own", "shared", "shared", False),
        ("own", "link", "shared", False),
        ("link", "shared", "shared", True),
        ("own", "shared", "elsewhere", True),
    ],
)
@pytest.mark.parametrize("is_relative", [False, True])
def test_use_is_noted_in_the_root_wherever_it_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    root: str,
    shared: str,
    place: str,
    is_noted: bool,
    is_relative: bool,
) -> None:
    """The innermost layer has an entry."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "link").symlink_to("shared")
    monkeypatch.chdir(tmp_path)
    start = Path() if is_relative else tmp_path
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(start / root))
    monkeypatch.setenv("GTSTUB_SHARED_CACHE_DIR", str(start / shared))
    path = publish(Cache(tmp_path / place), KEY).path
    for entry in (Entry(path), Entry(Path(place) / KEY)):
        os.utime(path, (0, 0))
        entry.mark_used()
        assert (path.stat().st_mtime != 0) is is_noted


def test_broken_entry_of_a_shared_layer_is_passed_over(tmp_path: Path) -> None:
    shared = publish(Cache(tmp_path / "shared"), KEY).path
    flip_a_bit(shared / LIBRARY)
    broken = (shared / LIBRARY).read_bytes()
    cache = Cache(tmp_path / "own", (tmp_path / "shared",))
    assert cache.find(KEY) is None
    assert publish(cache, KEY).path == tmp_path / "own" / KEY
    assert cache.find(KEY) == Entry(tmp_path / "own" / KEY)
    assert (shared / LIBRARY).read_bytes() == broken


def test_place_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GTSTUB_CACHE_DIR", "GTSTUB_SHARED_CACHE_DIR", "GT_CACHE_ROOT", "GT4PY_BUILD_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert open_cache() == Cache(tmp_path / "user" / "gtstub")
    monkeypatch.setenv("GT4PY_BUILD_CACHE_DIR", str(tmp_path))
    assert open_cache() == Cache(tmp_path / ".gt4py_cache" / "gtstub")
    monkeypatch.setenv("GT_CACHE_ROOT", str(tmp_path))
    assert open_cache() == Cache(tmp_path / ".gtstub_cache")
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("GTSTUB_SHARED_CACHE_DIR", os.pathsep.join(map(str, (tmp_path / "a", tmp_path / "own"))))
    assert open_cache() == Cache(tmp_path / "own", (tmp_path / "a",))
    assert open_cache(code_path="21") == Cache(tmp_path / "own" / "21", (tmp_path / "a" / "21",))


def test_nearest_entry(cache: Cache) -> None:
    publish_made_of(cache, {"n": 1, "m": 1, "flags": "-O2"})
    publish_made_of(cache, {"n": 3, "m": 1, "flags": "-O2"})
    near = publish_made_of(cache, {"n": 2, "m": 1, "flags": "-O2"})  # the newest
    publish(cache, "other-00", name="other", ingredients={"n": 4, "m": 1, "flags": "-O2"})
    wanted = {"n": 9, "m": 1, "flags": "-O2"}
    found = cache.nearest("prog", {**wanted, "n": 2})
    assert found is not None
    assert (found.entry, found.differences) == (near, [])
    found = cache.nearest("prog", wanted)
    assert found is not None
    assert (found.entry, found.differences) == (near, [Difference("n", 9, 2)])
    older = cache.nearest("prog", wanted, before=near.manifest().built.time)
    assert older is not None
    assert older.differences == [Difference("n", 9, 3)]
    assert cache.nearest("unknown", wanted) is None


def test_nearest_entry_has_the_same_static_arguments(cache: Cache) -> None:
    same = publish_made_of(cache, {"static": {"n": 1}, "flags": "-O2", "cpu": "a"})
    publish_made_of(cache, {"static": {"n": 2}, "flags": "-O3", "cpu": "b"})
    found = cache.nearest("prog", {"static": {"n": 1}, "flags": "-O3", "cpu": "b"})
    assert found is not None
    assert found.entry == same
