"""'gtstub check' as its users meet it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gtstub.abi import ABI
from gtstub.entries.cache.store import Cache
from gtstub.stub.signature import documents
from gtstub.tools.rules import RULES
from tests.support.checkout import ROOT
from tests.support.cli import assert_refused, run
from tests.support.entries import flip_a_bit, write_files
from tests.support.sdfg_documents import K, array, mapped, sdfg, state, tasklet, transient, writing
from tests.support.signatures import WHOLE_PROGRAM

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")

LEGAL = sdfg(state(mapped("a", "b"), label="move"))
RACE = sdfg(state(mapped("a", "a", read=f"{K} + 1"), label="shift"))
TWICE = sdfg(state(mapped("a", "t"), label="one"), state(mapped("b", "t"), label="two"), arrays={"t": transient()})
ADVICE = sdfg(
    state(tasklet(), tasklet(), "t", edges=[writing(0, 2, "t", "0:4"), writing(1, 2, "t", "5:9")], label="move"),
    arrays={"t": transient()},
)


def save(name: str, document: Any) -> str:
    text = json.dumps(document).encode()
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(gzip.compress(text) if name.endswith(("gz", "sdfgz")) else text)
    return name


def checked(*arguments: str, exit_code: int = 0) -> Any:
    result = run("check", *arguments, "--json")
    assert (result.exit_code, result.stderr) == (exit_code, "")
    document = json.loads(result.stdout)
    schema = ROOT / "generator" / "gtstub" / "stub" / "signature" / "schema" / "check.schema.json"
    jsonschema.Draft202012Validator(json.loads(schema.read_text(encoding="utf-8"))).validate(document)
    return document


def statuses(document: Any) -> dict[str, str]:
    return {f"{each['rule']}/{each['adr']}": each["status"] for each in document["sdfgs"][0]["rules"]}


@pytest.mark.parametrize("name", ["x.sdfg", "x.sdfgz", "x.json", "x.json.gz"])
def test_exit_codes(name: str) -> None:
    assert run("check", save(name, LEGAL)).exit_code == 0
    assert run("check", save(name, RACE)).exit_code == 1
    assert run("check", save(name, ADVICE)).exit_code == 0
    assert run("check", save(name, ADVICE), "--strict").exit_code == 1


def test_every_rule_is_in_the_json() -> None:
    document = checked(save("x.json", RACE), exit_code=1)
    assert list(statuses(document)) == [rule.key for rule in RULES]
    assert statuses(document)["1/3"] == "broken"
    assert statuses(document)["3/4"] == "held"
    assert statuses(document)["2/1"] == "not checked"
    (finding,) = document["sdfgs"][0]["findings"]
    assert (finding["level"], finding["state"], finding["data"]) == ("error", "shift", "a")


def test_a_rule_that_is_left_out_is_not_held() -> None:
    file = save("x.json", RACE)
    document = checked(file, "--skip", "1,5")
    reasons = {each["rule"]: each.get("reason") for each in document["sdfgs"][0]["rules"]}
    assert (reasons["1"], reasons["5"], reasons["8"]) == ("left out", "left out", None)
    assert document["sdfgs"][0]["findings"] == []
    assert statuses(checked(file, "--only", "9"))["9/11"] == "held"
    assert statuses(checked(file, "--only", "9"))["1/3"] == "not checked"
    assert statuses(checked(file, "--adr", "--only", "3", exit_code=1))["1/3"] == "broken"
    assert statuses(checked(file, "--adr", "--only", "11"))["9/11"] == "held"


def test_an_unknown_number() -> None:
    result = run("check", save("x.json", RACE), "--only", "12")
    assert result.exit_code == 2
    assert "There is no rule 12. Known: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11." in result.stderr


def test_the_table_has_findings_and_what_was_not_checked() -> None:
    file = save("x.json", RACE)
    lines = run("check", file).stdout.splitlines()
    assert lines[0].startswith("x.json: 1 error. Held: 3 (ADR 4), 4 (ADR 5)")
    assert "Not checked: 2 (ADR 1), 11 (ADR 11.5), 11 (ADR 12) (needs the SDFG before)" in lines[0]
    assert lines[-1].split()[:6] == ["1", "(ADR", "3)", "error", "shift", "a"]
    assert run("check", file, "--adr").stdout.splitlines()[-1].startswith("ADR 3 (1)")


def test_the_level_of_the_table() -> None:
    file = save("x.json", sdfg(state(mapped("a", "a"), label="update")))
    assert "update" not in run("check", file).stdout
    assert "update" in run("check", file, "--level", "info").stdout
    assert "move" in run("check", save("x.json", ADVICE)).stdout
    assert "move" not in run("check", save("x.json", ADVICE), "--level", "error").stdout


def test_what_is_unknown_is_a_level_of_its_own() -> None:
    before = save("before.json", LEGAL)
    after = save("after.json", sdfg(state(label="empty")))
    levels = {each["level"] for each in checked(after, "--before", before)["sdfgs"][0]["findings"]}
    assert levels == {"unknown"}
    assert K in run("check", after, "--before", before, "--level", "unknown").stdout
    assert K not in run("check", after, "--before", before, "--level", "advice").stdout


def test_control_characters_do_not_reach_the_terminal() -> None:
    name = "a\x1b[2J\u202e"
    hostile = sdfg(state(mapped(name, name, read=f"{K} + 1"), label="shift"), arrays={name: array()}, name=name)
    result = run("check", save("x.json", hostile))
    assert result.exit_code == 1
    assert "a\\u001b[2J\\u202e" in result.stdout
    text = "SDFG 'a\\u001b[2J\\u202e' is not in the form that this gtstub reads: DaCe \\u001b wrote it."
    assert_refused(run("check", save("x.json", {**hostile, "nodes": 3, "dace_version": "\x1b"})), 2, text)


def test_the_sdfg_before() -> None:
    before, after = save("before.json", LEGAL), save("after.json", TWICE)
    assert statuses(checked(before, "--before", before))["2/1"] == "held"
    assert statuses(checked(after, "--before", before, "--only", "2", exit_code=1))["2/1"] == "broken"
    assert run("check", before, after, "--before", before).exit_code == 2


def test_the_signature_of_the_program() -> None:
    Path("program.json").write_text(documents.program_to_json(WHOLE_PROGRAM), encoding="utf-8")
    assert statuses(checked(save("x.json", LEGAL), "--program", "program.json"))["9/11.1"] == "held"
    other = sdfg(state(mapped("a", "b", "i_Level_gtx_vertical")))
    document = checked(save("x.json", other), "--program", "program.json", exit_code=1)
    assert statuses(document)["9/11.1"] == "broken"
    Path("program.json").write_text("{}", encoding="utf-8")
    result = run("check", "x.json", "--program", "program.json")
    assert (result.exit_code, result.stdout) == (2, "")


def test_stages_name_the_first_with_a_finding() -> None:
    for name, document in (("0-lowered.json", LEGAL), ("1-fused.json.gz", RACE), ("2-inner.sdfg", TWICE)):
        save(f"stages/{name}", document)
    Path("stages/notes.txt").write_text("no SDFG", encoding="utf-8")
    document = checked("--stages", "stages", exit_code=1)
    assert [Path(each["file"]).name for each in document["sdfgs"]] == [
        "0-lowered.json",
        "1-fused.json.gz",
        "2-inner.sdfg",
    ]
    first = {each["rule"]: (Path(each["stage"]).name, each["level"]) for each in document["first"]}
    assert first == {
        "1": ("1-fused.json.gz", "error"),
        "2": ("2-inner.sdfg", "unknown"),
        "5": ("2-inner.sdfg", "error"),
    }
    assert "1-fused.json.gz" in run("check", "--stages", "stages").stdout


def test_stages_name_the_first_that_breaks_a_rule_worst() -> None:
    inform = sdfg(state(mapped("a", "a"), label="update"))
    for name, document in (("stage-8.json", inform), ("stage-9.json", inform), ("stage-10.json", RACE)):
        save(f"stages/{name}", document)
    document = checked("--stages", "stages", "--only", "1", exit_code=1)
    first = [(Path(each["stage"]).name, each["level"]) for each in document["first"]]
    assert first == [("stage-8.json", "info"), ("stage-10.json", "error")]
    text = run("check", "--stages", "stages", "--only", "1", "--level", "error").stdout
    assert "stage-10.json" in text
    assert "stage-8.json" not in text


def test_rules_that_are_all_left_out() -> None:
    file = save("x.json", LEGAL)
    for arguments in (["--only", ","], ["--skip", ""], ["--only", "1", "--skip", "1"]):
        result = run("check", file, *arguments)
        assert (result.exit_code, result.stdout) == (2, "")


# --- Entries ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def cache() -> Cache:
    return Cache(Path("cache").absolute())


def publish(cache: Cache, name: str, **sdfgs: Any) -> Path:
    """A new entry. The SDFGs are its own, or those of its stages."""
    with cache.private_directory(name) as directory:
        manifest = write_files(directory)
        (directory / "program.json").write_text(documents.program_to_json(WHOLE_PROGRAM), encoding="utf-8")
        for stage, document in sdfgs.items():
            save(str(directory / ("sdfg.json.gz" if stage == "own" else f"stage-{stage}.sdfg.json.gz")), document)
        return cache.publish(directory, name, manifest).path


def test_an_entry(cache: Cache) -> None:
    publish(cache, f"one-{'0' * 32}", own=RACE)
    legal = publish(cache, f"two-{'1' * 32}", own=LEGAL)
    document = checked(str(legal))
    assert document["sdfgs"][0]["name"] == "prog"
    assert statuses(document)["9/11.1"] == "held", "The entry has the signature of its program."
    assert len(checked("--cache", "cache", exit_code=1)["sdfgs"]) == 2


def test_entries_without_an_sdfg_are_listed(cache: Cache) -> None:
    old = publish(cache, f"old-{'0' * 32}")
    sentence = f"'{old}' keeps no SDFG, because an older gtstub built it: build it again."
    assert_refused(run("check", str(old)), 2, sentence)
    publish(cache, f"two-{'1' * 32}", own=LEGAL)
    result = run("check", "--cache", "cache", "--json")
    assert result.exit_code == 2
    document = json.loads(result.stdout)
    assert [len(document["sdfgs"]), len(document["unreadable"])] == [1, 1]
    assert result.stderr == f"{sentence}\n"


def test_damaged_entries_are_refused(cache: Cache) -> None:
    entry = publish(cache, f"one-{'0' * 32}", own=LEGAL)
    flip_a_bit(entry / "program.json")
    message = f"File 'program.json' of cache entry '{entry}' is not the one that was built: its digest differs."
    assert_refused(run("check", str(entry)), 2, message)
    (entry / "program.json").unlink()
    assert_refused(run("check", str(entry)), 2, f"The cache entry '{entry}' lacks its file 'program.json'.")
    (entry / "manifest.json").unlink()
    assert_refused(run("check", str(entry)), 2, f"There is no cache entry at '{entry}'.")


@pytest.mark.parametrize(("abi", "exit_code"), [("6", 2), (str(ABI), 0), ("7" * 5000, 0)])
def test_an_entry_for_another_abi_is_refused(cache: Cache, abi: str, exit_code: int) -> None:
    with cache.private_directory("one") as directory:
        manifest = write_files(directory)
        (directory / "prog_stub.c").write_text(f"#if GTS_ABI != {abi}\n", encoding="utf-8")
        save(str(directory / "sdfg.json.gz"), LEGAL)
        (directory / "program.json").write_text(documents.program_to_json(WHOLE_PROGRAM), encoding="utf-8")
        entry = cache.publish(directory, "one", manifest).path
    result = run("check", str(entry))
    assert result.exit_code == exit_code
    assert (f"'{entry}' was built for ABI 6 of gtstub" in result.stderr) == (abi == "6")


def test_the_stages_of_an_entry(cache: Cache) -> None:
    other = sdfg(state(mapped("a", "b", "i_Level_gtx_vertical")))
    entry = publish(cache, "kept", **{"00-lowered": LEGAL, "01-fused": RACE}, own=other)
    document = checked("--stages", str(entry), exit_code=1)
    names = ["stage-00-lowered.sdfg.json.gz", "stage-01-fused.sdfg.json.gz", "sdfg.json.gz"]
    assert [Path(each["file"]).name for each in document["sdfgs"]] == names
    first = {each["rule"]: Path(each["stage"]).name for each in document["first"]}
    assert (first["1"], first["9"]) == (names[1], names[2]), "Rule 9 needs the signature of the program."
    assert_refused(
        run("check", "--stages", str(publish(cache, "own", own=LEGAL))),
        2,
        f"'{cache.root / 'own'}' keeps no stages: those of gt4py's programs are kept with GTSTUB_KEEP_STAGES=1.",
    )


# --- Bad input --------------------------------------------------------------------------------------------------------


def test_what_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_CACHE_DIR", "/no/cache")
    assert_refused(run("check", "nothing.json"), 2, "There is no file 'nothing.json'.")
    assert_refused(run("check", "--cache", "nothing"), 2, "'nothing' has no cache entry.")
    missing = "There is no file or directory 'nothing'. The cache '/no/cache' has no entry 'nothing': it is empty."
    assert_refused(run("check", "nothing"), 2, missing)
    assert_refused(run("check", "--stages", "nothing"), 2, missing)
    Path("empty").mkdir()
    assert_refused(
        run("check", "--stages", "empty"),
        2,
        "'empty' has no SDFG: none of its files ends in .sdfg, .sdfgz, .json, .json.gz.",
    )
    whole = Path(save("x.json.gz", LEGAL)).read_bytes()
    Path("half.json.gz").write_bytes(whole[: len(whole) // 2])
    assert_refused(
        run("check", "half.json.gz"),
        2,
        "'half.json.gz' is not an SDFG: it is neither JSON nor compressed JSON, or is truncated.",
    )
    assert_refused(
        run("check", save("old.json", {"type": "SDFG", "attributes": {"name": "old"}})),
        2,
        "SDFG 'old' is not in the form that this gtstub reads.",
    )


def test_a_command_line_names_one_kind_of_input() -> None:
    assert run("check").exit_code == 2
    assert run("check", save("x.json", LEGAL), "--cache", ".").exit_code == 2
    assert run("check", "--stages", ".", "--before", "x.json").exit_code == 2
