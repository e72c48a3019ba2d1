"""'gtstub memory': its table, its document, and what it refuses."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gtstub.entries.cache.entry import COMPILED_SDFG, Entry
from gtstub.entries.cache.store import Cache
from gtstub.stub.signature.documents import parse, program_to_json, sdfg_to_json
from gtstub.stub.signature.model import Axis
from tests.support.cli import assert_refused, run
from tests.support.entries import LIBRARY, write_files
from tests.support.sdfg_documents import branches, sdfg, state, transient
from tests.support.signatures import EDGE, K, array, field, program, symbol
from tests.support.signatures import sdfg as signature

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")

DOCUMENT = sdfg(
    state("a", "kept"),
    branches({"flag": state("b"), "else": state("c")}),
    arrays={
        "a": transient("N*M"),
        "kept": transient("N", lifetime="Persistent"),
        "b": transient("10"),
        "c": transient("20"),
    },
    symbols=["N", "M"],
)


@pytest.fixture
def file() -> str:
    Path("program.sdfg").write_text(json.dumps(DOCUMENT))
    return "program.sdfg"


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    cache = Cache(tmp_path / "cache")
    with cache.private_directory("prog") as directory:
        manifest = write_files(directory)
        vn = array("vn", Axis(), Axis())
        made = signature(vn, symbol("N", ("vn", 0, "stop")), symbol("M", ("vn", 1, "stop")))
        (directory / "sdfg.json").write_text(sdfg_to_json(made))
        (directory / "program.json").write_text(program_to_json(program("prog", vn=field(EDGE, K))))
        (directory / COMPILED_SDFG).write_bytes(gzip.compress(json.dumps(DOCUMENT).encode()))
        return cache.publish(directory, "prog", manifest)


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_table(file: str) -> None:
    done = run("memory", file, "--set", "N=1000", "--set", "M=3")
    assert (done.exit_code, done.stderr) == (0, "")
    assert lines(done.stdout) == [
        "transient allocated storage lifetime branch bytes size",
        "a call CPU_Heap Scope 24,000 8 * N * M",
        "kept init CPU_Heap Persistent 8,000 8 * N",
        "b call CPU_Heap Scope choice: if flag 80 80",
        "c call CPU_Heap Scope choice: else 160 160",
        "",
        "allocated storage lifetime branch bytes at least",
        "call CPU_Heap Scope 24,160 24,160",
        "call CPU_Heap Scope choice: if flag 80 80",
        "call CPU_Heap Scope choice: else 160 160",
        "init CPU_Heap Persistent 8,000 8,000",
        "",
        "A call allocates 24,160 bytes in CPU_Heap, at most 24,000 of them at one time.",
        "The handle keeps 8,000 bytes in CPU_Heap.",
    ]


def test_large_arrays_of_a_call_are_pooled(file: str) -> None:
    text = run("memory", file, "--set", "N=5000", "--set", "M=1").stdout
    assert "1 of these arrays are pooled: the process keeps their memory for the next call.\n" in text
    assert "pooled" not in run("memory", file, "--set", "N=4095", "--set", "M=1").stdout


def test_what_many_sizes_have_in_common_is_named_once() -> None:
    arrays = {name: transient("N*Max(0, vertical_end - vertical_start)") for name in "abcde"}
    whole = sdfg(state(*arrays), arrays=arrays, symbols=["N", "vertical_end", "vertical_start"])
    Path("many.sdfg").write_text(json.dumps(whole))
    text = lines(run("memory", "many.sdfg").stdout)
    assert "c call CPU_Heap Scope ? 8 * N * f" in text
    assert text.count("f: Max(0, vertical_end - vertical_start)") == 1


def test_what_is_not_known_is_named(file: str) -> None:
    text = run("memory", file, "--set", "N=1").stdout
    assert "a call CPU_Heap Scope ? 8 * N * M" in lines(text)
    assert text.endswith(
        "A call allocates ? bytes in CPU_Heap, at least 160.\nThe handle keeps 8 bytes in CPU_Heap.\n"
        "Not known: 'M'. '--set' gives them values.\n"
    )


def test_an_sdfg_without_transients() -> None:
    Path("program.sdfg").write_text(json.dumps(sdfg(state())))
    assert run("memory", "program.sdfg").stdout == "SDFG 'prog' has no transient arrays.\n"


def test_the_document_fits_its_schema(file: str) -> None:
    text = run("memory", file, "--set", "N=1", "--json").stdout
    document = parse(text, "memory", "memory")
    assert (document["schema"], document["sdfg"], document["sizes"]) == ("gtstub/memory/1", "prog", {"N": 1})
    assert [each["bytes"] for each in document["transients"]] == [None, 8, 80, 160]
    assert run("memory", file, "--jq", ".unknown[]").stdout == "M\nN\n"


def test_an_entry_has_dimensions(entry: Entry) -> None:
    done = run("memory", str(entry.path), "--size", "Edge=10", "--size", "K=4", "--json")
    assert json.loads(done.stdout)["sizes"] == {"N": 10, "M": 4}
    done = run("memory", str(entry.path), "--size", "Edge=10", "--size", "K=4", "--set", "N=2", "--json")
    assert json.loads(done.stdout)["sizes"] == {"N": 2, "M": 4}


def test_unknown_names(file: str, entry: Entry) -> None:
    assert_refused(
        run("memory", str(entry.path), "--size", "Edges=3"),
        2,
        "Program 'prog' has no dimension 'Edges'. Did you mean: 'Edge'?",
    )
    assert_refused(
        run("memory", str(entry.path), "--set", "edge=3"), 2, "SDFG 'prog' has no symbol 'edge'. Known: 'M', 'N'."
    )
    assert_refused(
        run("memory", file, "--set", "edge=3"), 2, "The SDFG in 'program.sdfg' has no symbol 'edge'. Known: 'M', 'N'."
    )
    assert_refused(
        run("memory", file, "--size", "Edge=3"),
        2,
        "'program.sdfg' alone has no dimensions: give its cache entry, or values of symbols with '--set'.",
    )


@pytest.mark.parametrize("text", ["Edge", "Edge=", "Edge=many", "=3", "=3=4", "K=1_000", "K= 5", "K=٥", f"K={10**18}"])
def test_malformed_sizes(file: str, text: str) -> None:
    done = run("memory", file, "--size", text)
    assert done.exit_code == 2
    assert f"'{text}' is not of the form DIM=N, with an integer." in done.stderr


def test_a_size_that_is_negative_and_a_name_that_is_given_twice(file: str, entry: Entry) -> None:
    done = run("memory", str(entry.path), "--size", "K=-1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "The size of 'K' is negative." in done.stderr
    done = run("memory", file, "--set", "N=1", "--set", "N=1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "'N' is given twice." in done.stderr
    assert json.loads(run("memory", file, "--set", "N=-1", "--json").stdout)["sizes"] == {"N": -1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "'bad' is not an SDFG: its 'type' is not 'SDFG'."),
        ("{", "'bad' is not an SDFG: it is neither JSON nor compressed JSON, or is truncated."),
        ('{"type": "SDFG", "attributes": 3}', "'bad' is not an SDFG: its 'attributes' have no 'name'."),
        (
            '{"type": "SDFG", "attributes": {"name": "old"}, "nodes": []}',
            "SDFG 'old' is not in the form that this gtstub reads.",
        ),
    ],
)
def test_unreadable_files(content: str, message: str) -> None:
    Path("bad").write_text(content)
    assert_refused(run("memory", "bad"), 2, message)
    assert_refused(run("memory", "bad", "--json"), 2, message)


def test_what_is_missing(entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_CACHE_DIR", "/no/cache")
    assert_refused(run("memory", "nothing.sdfg"), 2, "There is no file 'nothing.sdfg'.")
    missing = "There is no file or directory 'nothing'. The cache '/no/cache' has no entry 'nothing': it is empty."
    assert_refused(run("memory", "nothing"), 2, missing)
    Path("empty").mkdir()
    assert_refused(run("memory", "empty"), 2, "There is no cache entry at 'empty'.")
    (entry.path / "sdfg.json").unlink()
    assert_refused(run("memory", str(entry.path)), 2, f"The cache entry '{entry.path}' lacks its file 'sdfg.json'.")


# --- A whole cache ----------------------------------------------------------------------------------------------------

SIZES = ("--size", "Edge=10", "--size", "K=4")


def publish_another(cache: Cache, key: str, sdfg_document: object | None, **manifest: Any) -> Entry:
    """An entry whose program has no dimensions, with an SDFG or without one."""
    with cache.private_directory(key) as directory:
        made = write_files(directory)._replace(name=key, **manifest)
        (directory / "sdfg.json").write_text(sdfg_to_json(signature(*map(symbol, "LMN"))))
        (directory / "program.json").write_text(program_to_json(program("prog")))
        if sdfg_document is not None:
            (directory / COMPILED_SDFG).write_bytes(gzip.compress(json.dumps(sdfg_document).encode()))
        return cache.publish(directory, key, made)


@pytest.fixture
def cache(entry: Entry) -> Path:
    """A cache with an entry that is known with two sizes, one without arrays, one without SDFG, and a broken one."""
    made = Cache(entry.path.parent)
    publish_another(made, "none", sdfg(state()), ingredients={"static": {"n": 1}}, baked={"n": 1, "x": 2})
    publish_another(made, "older", None)
    (publish_another(made, "torn", sdfg(state())).path / LIBRARY).unlink()
    return made.root


def test_a_cache_has_a_row_for_each_entry_and_the_largest_is_first(cache: Path) -> None:
    done = run("memory", "--cache", str(cache), *SIZES)
    head, first, *rest, largest, together, kept, unknown = [line for line in lines(done.stdout) if line]
    assert done.exit_code == 0
    assert head == "key static arguments in a call at one time allocations where kept missing"
    assert first == "prog 480 320 3 CPU_Heap 80"
    assert rest[0] == "none n=1 0 0 0 0"
    reason = "The entry keeps no 'program.sdfgz', because an older gtstub built it: build it again."
    assert rest[1:] == [
        f"older ? ? 0 ? {reason}",
        f"torn ? ? 0 ? The cache entry '{cache / 'torn'}' lacks its file '{LIBRARY}'.",
    ]
    assert largest == "The largest call holds at least 320 bytes at one time, which the pool keeps for all programs."
    assert together == "If each program kept its own, that would be at least 320 bytes."
    assert kept == "The handles of all entries together keep at least 80 bytes."
    assert unknown == "2 of 4 entries have sizes that are not known. '--size' and '--set' give values."


def test_the_reason_of_each_figure_that_is_not_known_is_said(tmp_path: Path) -> None:
    made = Cache(tmp_path / "cache")
    arrays = {"a": transient("N"), "b": transient("-N"), "c": transient("M")}
    publish_another(made, "one", sdfg(state("a", "b", "c"), arrays=arrays, symbols=["N", "M"]))
    (found,) = json.loads(run("memory", "--cache", str(made.root), "--json").stdout)["entries"]
    assert found["missing"] == ["Not known: 'M', 'N'."]
    document = json.loads(run("memory", "--cache", str(made.root), "--set", "N=3", "--json").stdout)
    (found,) = document["entries"]
    assert found["missing"] == ["Not known: 'M'.", "No value: 'b' of 8 * -N bytes."]
    assert (found["call"], document["largest"]) == ({"bytes": None, "at_least": 24},) * 2


def test_sizes_of_a_cache_need_not_be_those_of_each_entry(cache: Path) -> None:
    assert run("memory", "--cache", str(cache), *SIZES, "--set", "L=1").exit_code == 0
    assert_refused(
        run("memory", "--cache", str(cache), "--size", "Edges=1"), 2, "No entry has a dimension or symbol 'Edges'."
    )
    assert_refused(run("memory", "--cache", "nothing"), 2, "'nothing' has no cache entry.")


def test_the_own_cache_is_the_default(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(cache))
    assert run("memory", *SIZES, "--cache", "--jq", ".entries[].key").stdout.split()[0] == "prog"
    monkeypatch.setenv("GTSTUB_CACHE_DIR", str(cache / "nothing"))
    assert run("memory", "--cache").stdout == "The cache has no entry.\n"


def test_a_path_or_a_name_or_a_cache(file: str, entry: Entry) -> None:
    assert "Give SDFG, ENTRY or '--cache'." in run("memory").stderr
    refused = f"The cache '{Path.cwd()}' has no entry '{file}': it is empty."
    assert_refused(run("memory", file, "--cache", "."), 2, refused)
    named = run("memory", "prog", "--cache", str(entry.path.parent))
    assert (named.exit_code, named.stdout) == (0, run("memory", str(entry.path)).stdout)
