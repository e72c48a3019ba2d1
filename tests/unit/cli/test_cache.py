"""'gtstub cache' as its users meet it."""

from __future__ import annotations

import json
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gtstub.cli.app import main
from gtstub.entries.cache.counts import HITS, MISSES, count
from gtstub.entries.cache.key import make_key
from gtstub.entries.cache.manifest import BuildStage, Built, Machine
from gtstub.entries.cache.store import Cache
from tests.support.entries import LIBRARY, flip_a_bit, publish, publish_made_of

COMMANDS = ("export", "import", "list", "path", "prune", "show", "verify", "why")

MADE_OF = {"static": {"n": 1}, "versions": {"gtstub": "0.1.0"}, "program": {"source": {"diffuse": "ab" * 32}}}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("GTSTUB_SHARED_CACHE_DIR", raising=False)
    return Cache(tmp_path / "cache")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["cache", *arguments], prog_name="gtstub")


def said(*arguments: str) -> str:
    result = run(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def document(*arguments: str) -> dict[str, object]:
    read: dict[str, object] = json.loads(said(*arguments, "--json"))
    return read


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_an_example(command: str) -> None:
    text = said(command, "-h")
    assert "\n  Example:\n    gtstub cache " in text
    assert f"\n  {command} " in said("-h")


# --- list, show, path -------------------------------------------------------------------------------------------------


def test_list_says_size_age_last_use_and_state(cache: Cache) -> None:
    built = Built(time=time.time() - 3 * 86400)
    path = publish_made_of(cache, MADE_OF, "x" * 2000, baked={"n": 1, "Edge.size": 18}, built=built).path
    os.utime(path, (time.time() - 7200,) * 2)
    (publish(cache, "other-00", name="other").path / LIBRARY).unlink()
    (publish(cache, "old-00").path / "manifest.json").write_text('{"schema": "gtstub/cache-entry/1"}')
    lines = rows(said("list"))
    size = f"{sum(file.stat().st_size for file in path.iterdir()) / 1024:.1f}"
    assert [path.name, "prog", "n=1", size, "KiB", "3", "d", "2", "h", "root", "ok"] in lines
    assert [line[-1] for line in lines if line[0] == "other-00"] == ["broken"]
    assert [line[-1] for line in lines if line[0] == "old-00"] == ["foreign"]
    assert f"The cache entry '{cache.root / 'other-00'}' lacks its file '{LIBRARY}'." in said("list")
    assert said("list").endswith(".\n")


def test_list_as_json(cache: Cache) -> None:
    path = publish_made_of(cache, MADE_OF).path
    (found,) = json.loads(said("list", "--json"))["entries"]
    assert {name: found[name] for name in ("key", "name", "path", "layer", "state", "problem")} == {
        "key": path.name,
        "name": "prog",
        "path": str(path),
        "layer": str(cache.root),
        "state": "ok",
        "problem": "",
    }
    assert said("list", "--jq", ".entries[].key") == f"{path.name}\n"


STAGES = (
    BuildStage("lowering", 100.0, 1.0, 11),
    BuildStage("compilation", 110.0, 4.5, 12),
    BuildStage("stub", 110.0, 0.25, 12),
)


def test_list_of_times(cache: Cache) -> None:
    publish_made_of(cache, MADE_OF, baked={"n": 1}, built=Built(seconds=1.25))
    longest = publish(cache, "other-00", name="other", built=Built(seconds=4.5, stages=STAGES)).path
    (publish(cache, "broken-00").path / LIBRARY).unlink()
    head, first, second, last, *notes = rows(said("list", "--times"))
    assert head == ["key", "program", "compiled", "in", "build", "lowering", "compilation", "stub"]
    assert first == ["other-00", "other", "5.50", "1.00", "4.50", "0.25"]
    assert second[1:] == ["prog", "n=1", "1.25"]
    assert last == ["all", "6.75", "1.00", "4.50", "0.25"]
    assert [" ".join(note) for note in notes[1:]] == [
        "Not known: the stages of 1 entry that an older gtstub built.",
        "Left out: 1 entry that 'gtstub cache list' shows as broken or foreign.",
    ]
    entry, other = json.loads(said("list", "--times", "--json"))["entries"]
    assert (entry["path"], entry["seconds"], other["seconds"]) == (str(longest), 5.5, 1.25)
    assert entry["stages"][0] == {"name": "lowering", "begin": 100.0, "seconds": 1.0, "pid": 11}
    assert other["stages"] == []


def test_list_of_times_of_an_empty_cache() -> None:
    assert said("list", "--times") == "0 entries.\n"


def test_empty_key_is_no_beginning_of_a_key(cache: Cache) -> None:
    publish(cache, "prog-00")
    for command in ("show", "path", "verify", "why"):
        result = run(command, "")
        assert (result.exit_code, result.stderr) == (
            6,
            f"The cache '{cache.root}' has no entry '': 'gtstub cache list' lists its entries.\n",
        )


def test_list_of_an_empty_cache() -> None:
    assert said("list").endswith("0 entries, 0 B.\n")


def test_layers(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_SHARED_CACHE_DIR", str(tmp_path / "shared"))
    publish(Cache(tmp_path / "shared"), "prog-00")
    assert ["prog-00", "prog"] in [line[:2] for line in rows(said("list"))]
    assert ["shared", "1", "ok"] in [line[-3:] for line in rows(said("list"))]
    assert rows(said("path"))[1:] == [
        ["root", str(cache.root), "GTSTUB_CACHE_DIR", "missing"],
        ["shared", "1", str(tmp_path / "shared"), "GTSTUB_SHARED_CACHE_DIR"],
    ]
    assert document("path") == {
        "root": str(cache.root),
        "layers": [
            {"path": str(cache.root), "from": "GTSTUB_CACHE_DIR", "exists": False, "code_paths": []},
            {"path": str(tmp_path / "shared"), "from": "GTSTUB_SHARED_CACHE_DIR", "exists": True, "code_paths": []},
        ],
    }
    assert rows(said("path", "--cache", "x"))[1:] == [["root", str(Path("x").absolute()), "--cache", "missing"]]


def test_path_of_a_program(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_SHARED_CACHE_DIR", str(tmp_path / "shared"))
    first = publish(cache, "prog-0a").path
    publish(Cache(tmp_path / "shared"), "prog-0a")
    (publish(cache, "prog-broken").path / LIBRARY).unlink()
    publish(cache, "prog_two-00", name="prog_two")
    assert said("path", "prog") == f"{first}\n"
    assert document("path", "prog")["key"] == "prog-0a"
    assert said("path", "prog_t") == f"{cache.root / 'prog_two-00'}\n"
    refused = run("path", "prig")
    assert (refused.exit_code, refused.stdout) == (6, "")
    assert refused.stderr == f"The cache '{cache.root}' has no entry 'prig'. Did you mean: 'prog'?\n"


@pytest.mark.parametrize("name", [LIBRARY, "."])
def test_path_of_an_entry_that_others_can_write(cache: Cache, name: str) -> None:
    """Who copies its library, as a CMake project does, makes it his own."""
    path = publish_made_of(cache, MADE_OF).path
    assert said("path", "prog") == f"{path}\n"
    (path / name).chmod(0o757)
    result = run("path", "prog")
    assert (result.exit_code, result.stdout) == (6, "")
    assert f"'{path}' is not used: " in result.stderr
    assert "can be written by everyone (mode 0757)" in result.stderr


def test_path_of_one_of_several_entries(cache: Cache) -> None:
    publish(cache, "prog-0a", built=Built(time=60), baked={"n": 1, "same": True})
    publish(cache, "prog-0b", built=Built(time=120), baked={"n": 2, "same": True})
    result = run("path", "prog")
    assert (result.exit_code, result.stdout) == (0, f"{cache.root / 'prog-0b'}\n")
    assert result.stderr == (
        "gtstub: Program 'prog' has 2 entries. Taken: the newest of this machine, 'prog@n=2'. To take another, name"
        " 'prog@n=1'.\n"
    )
    for name in ("prog-0a", "prog@n=1", "prog@0a"):
        assert said("path", name) == f"{cache.root / 'prog-0a'}\n"
    assert document("path", "prog@n=2")["compiled_in"] == {"n": 2, "same": True}


def test_list_tells_the_entries_of_a_program_apart(cache: Cache) -> None:
    for n in (1, 2):
        publish_made_of(cache, MADE_OF | {"static": {"n": n}}, baked={"n": n, "K.size": 10})
        publish_made_of(cache, MADE_OF | {"static": {"n": n}, "offset": n}, baked={"n": n, "K.size": 20})
    publish(cache, "other-00", name="other", baked={"K.size": 10})
    found = sorted(" ".join(line[1:4]) for line in rows(said("list")) if "prog" in line)
    assert found == ["prog K.size=10, n=1", "prog K.size=10, n=2", "prog K.size=20, n=1", "prog K.size=20, n=2"]
    (other,) = (line for line in rows(said("list")) if "other" in line)
    assert "K.size=10" not in other


def test_list_says_how_often_programs_were_found(cache: Cache) -> None:
    publish(cache, "prog-00")
    assert "miss" not in said("list").splitlines()[-1]
    for name in (HITS, HITS, MISSES):
        count(cache.root, name)
    assert said("list").endswith(" B. 2 hits, 1 miss.\n")
    assert said("list", "--jq", ".hits, .misses") == "2\n1\n"


def test_code_paths_are_caches_of_their_own(cache: Cache) -> None:
    publish(cache, "prog-00")
    publish(Cache(cache.root / "12"), "prog-00")
    (cache.root / "failed" / "prog-0123").mkdir(parents=True)
    assert said("path", "--jq", ".layers[].code_paths[]") == "12\n"
    assert ["root,", "code", "path", str(cache.root / "12")] in rows(said("path"))
    assert said("list", "--jq", ".entries[].path") == f"{cache.root / 'prog-00'}\n"


def test_default_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GTSTUB_CACHE_DIR")
    monkeypatch.delenv("GT_CACHE_ROOT", raising=False)
    monkeypatch.delenv("GT4PY_BUILD_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    user = ["root", str(tmp_path / "user" / "gtstub"), "the", "user's", "cache", "directory", "missing"]
    assert rows(said("path"))[1:] == [user]
    monkeypatch.setenv("GT4PY_BUILD_CACHE_DIR", str(tmp_path))
    beside = str(tmp_path / ".gt4py_cache" / "gtstub")
    assert rows(said("path"))[1:] == [["root", beside, "GT4PY_BUILD_CACHE_DIR", "missing"]]


def test_another_cache(tmp_path: Path) -> None:
    publish(Cache(tmp_path / "another"), "prog-00")
    assert said("list", "--cache", str(tmp_path / "another"), "--jq", ".entries[].key") == "prog-00\n"
    assert said("list", "--jq", ".entries[].key") == ""


def test_show_says_what_a_key_is_made_of(cache: Cache) -> None:
    machine = Machine(("avx2", "fma"), "cuda", "sm_90")
    path = publish_made_of(cache, MADE_OF, baked={"n": 1}, machine=machine, built=Built(seconds=2.5)).path
    text = said("show", path.name[:8])
    for row in (
        ["static.n", "1"],
        ["versions.gtstub", "0.1.0"],
        ["program.source.diffuse", "ab" * 28, "..."],
        ["n", "1"],
    ):
        assert row in rows(text)
    for file, described in json.loads((path / "manifest.json").read_text())["files"].items():
        assert [file, str(described["bytes"]), described["sha256"]] in rows(text)
    assert ", in 2.5 s.\nNeeds a CPU with avx2, fma.\nBuilt for cuda sm_90.\n" in text
    assert json.loads(said("show", path.name, "--json"))["manifest"]["ingredients"] == MADE_OF


def test_show_of_a_key_that_is_none(cache: Cache) -> None:
    result = run("show", "nothing")
    assert (result.exit_code, result.stdout) == (6, "")
    assert result.stderr == f"The cache '{cache.root}' has no entry 'nothing': it is empty.\n"


# --- verify -----------------------------------------------------------------------------------------------------------


def test_verify(cache: Cache) -> None:
    publish(cache, "prog-00")
    (publish(cache, "prog-01").path / "manifest.json").write_text('{"schema": "gtstub/cache-entry/1"}')
    broken = publish(cache, "prog-02").path
    assert said("verify") == "2 of 2 entries are intact.\n"
    flip_a_bit(broken / LIBRARY)
    assert said("verify", "prog-00") == "1 of 1 entries are intact.\n"
    result = run("verify")
    assert (result.exit_code, result.stdout) == (6, "1 of 2 entries are intact.\n")
    problem = f"File '{LIBRARY}' of cache entry '{broken}' is not the one that was built: its digest differs."
    assert result.stderr == f"{problem}\n"
    result = run("verify", "--jq", ".entries[] | .key, .state, .problem")
    assert (result.exit_code, result.stdout) == (6, f"prog-00\nok\n\nprog-02\nbroken\n{problem}\n")


# --- prune ------------------------------------------------------------------------------------------------------------


def test_prune(cache: Cache) -> None:
    for number, days in enumerate((40, 20, 0)):
        path = publish(cache, f"prog-{number}").path
        os.utime(path, (time.time() - days * 86400,) * 2)
    left = cache.root / ".building-prog-0-00000000.1.1-00000000"
    left.mkdir()
    os.utime(left, (0, 0))
    text = said("prune", "--older-than", "30d", "--dry-run")
    assert ["prog-0"] in [line[:1] for line in rows(text)]
    assert ", would be removed. 1 leftover of killed builders would be removed.\n" in text
    assert len(list(cache.entries())) == 3
    assert left.exists()
    assert "1 entry, " in said("prune", "--older-than", "30d")
    assert not left.exists()
    assert [entry.key for entry in cache.entries()] == ["prog-1", "prog-2"]
    assert said("prune", "--max-size", "1KiB", "--jq", ".entries[].key") == "prog-1\n"
    assert said("prune") == "0 entries, 0 B, removed.\n"
    assert [entry.key for entry in cache.entries()] == ["prog-2"]


def test_prune_refuses_what_is_no_time_and_no_size() -> None:
    assert "'3x' is not a duration such as '30d'" in run("prune", "--older-than", "3x").stderr
    result = run("prune", "--max-size", "3x")
    assert "'3x' is not a size such as '2GiB'" in result.stderr
    assert result.exit_code == 2


# --- export, import ---------------------------------------------------------------------------------------------------


def test_export_and_import(cache: Cache, tmp_path: Path) -> None:
    path = publish(cache, make_key("prog", {})).path
    file = tmp_path / "prog.tar.gz"
    assert said("export", "prog", str(file)) == f"'{file}' holds the cache entry '{path.name}'.\n"
    there = tmp_path / "there"
    for _ in range(2):
        assert said("import", str(file), "--cache", str(there)) == f"'{there / path.name}' is a cache entry.\n"
    assert said("verify", "--cache", str(there)) == "1 of 1 entries are intact.\n"
    flip_a_bit(path / LIBRARY)
    before = file.read_bytes()
    assert run("export", "prog", str(file)).exit_code == 6
    assert file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "prog.tar.gz", "there"]
    (tmp_path / "text").write_text("text")
    assert run("import", str(tmp_path / "text")).exit_code == 6
    assert run("import", str(tmp_path / "nothing")).exit_code == 7


def test_export_writes_into_what_is_no_file(cache: Cache, tmp_path: Path) -> None:
    """As root, a rename would put a file in the place of the device."""
    path = publish(cache, make_key("prog", {})).path
    result = run("export", "prog", "/dev/full")
    assert (result.exit_code, result.stderr) == (7, "Cannot read or write: No space left on device.\n")
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    result = run("export", "prog", str(loop))
    assert (result.exit_code, result.stderr) == (
        7,
        f"Cannot read or write '{loop}': Too many levels of symbolic links.\n",
    )
    loop.unlink()
    fifo, link, file = tmp_path / "fifo", tmp_path / "link", tmp_path / "file"
    said("export", "prog", str(file))
    os.mkfifo(fifo)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(fifo.read_bytes)
        said("export", "prog", str(fifo))
        assert read.result() == file.read_bytes()
    assert fifo.is_fifo()
    file.write_text("old")
    link.symlink_to("file")
    said("export", "prog", str(link))
    assert link.is_symlink()
    assert run("import", str(file), "--cache", str(tmp_path / "there")).stdout.endswith("is a cache entry.\n")
    flip_a_bit(path / LIBRARY)
    assert run("export", "prog", str(link)).exit_code == 6
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cache", "fifo", "file", "link", "there"]


def test_manifest_cannot_write_to_the_terminal(cache: Cache) -> None:
    ingredients = {"static": 1, "\x1b[2J": {"\ud800": "\n\x1b[2J"}}
    path = publish(cache, "prog-00", ingredients=ingredients, baked={"\x9b": ["\x9b"]}).path
    publish(cache, "prog-01", built=Built(time=1e11), ingredients=ingredients | {"\x1b": 1})
    for command in ("list", "show prog-00", "why prog-00", "path prog-00", "verify"):
        text = said(*command.split())
        assert not {"\x1b", "\x9b", "\ud800"} & set(text)
    assert path.exists()


# --- why --------------------------------------------------------------------------------------------------------------


def test_why_names_the_ingredients_that_differ_from_the_nearest_entry(cache: Cache) -> None:
    now = time.time()
    publish_made_of(cache, {**MADE_OF, "static": {"n": 1, "m": 3}, "cpu": ["avx"]}, built=Built(time=now - 20))
    near = {**MADE_OF, "static": {"n": 1, "m": 2}}
    publish_made_of(cache, near, built=Built(time=now - 7200))
    newest = {**MADE_OF, "static": {"n": 2}}
    publish_made_of(cache, newest, built=Built(time=now - 60))
    publish_made_of(cache, {**MADE_OF, "static": {"n": 1, "m": 4}, "cpu": ["avx"]}, built=Built(time=now - 7000))
    this = make_key("prog", newest)
    text = said("why", this)
    assert text == (
        f"'{this}', built 1 min ago.\nNearest: '{make_key('prog', near)}', built 2 h ago.\n\n"
        "ingredient  this  nearest\nstatic.n    2     1\nstatic.m    -     2\n"
    )
    assert json.loads(said("why", this, "--json")) == {
        "key": this,
        "nearest": make_key("prog", near),
        "differences": [{"path": "static.n", "this": 2, "nearest": 1}, {"path": "static.m", "nearest": 2}],
    }
    latest = json.loads(said("why", "prog", "--json"))
    assert [difference["path"] for difference in latest["differences"]] == ["static.m"]


def test_why_compares_with_the_entry_that_was_replaced(cache: Cache) -> None:
    """Not with a sibling of the same run, which differs less."""
    replaced = {**MADE_OF, "cpu": ["avx"], "flags": "-O2"}
    publish_made_of(cache, replaced, built=Built(time=1.0))
    publish_made_of(cache, {**MADE_OF, "static": {"n": 2}}, built=Built(time=2.0))
    publish_made_of(cache, MADE_OF, built=Built(time=3.0))
    assert json.loads(said("why", "prog", "--json"))["nearest"] == make_key("prog", replaced)


def test_why_shows_long_values_where_they_differ(cache: Cache) -> None:
    flags = " ".join(f"-Wno-{number}" for number in range(20))
    publish_made_of(cache, {"flags": f"{flags} -O2"}, built=Built(time=1.0))
    publish_made_of(cache, {"flags": f"{flags} -O3"}, built=Built(time=2.0))
    assert said("why", "prog").endswith("flags       ... o-18 -Wno-19 -O3  ... o-18 -Wno-19 -O2\n")


def test_why_of_a_program_that_was_compiled_once(cache: Cache) -> None:
    path = publish_made_of(cache, MADE_OF, built=Built(time=time.time() - 7200)).path
    assert said("why", "prog") == (
        f"'{path.name}', built 2 h ago.\n\nThe cache has no older entry of program 'prog' to compare it with.\n"
    )
    assert run("why", "nothing").exit_code == 6
