"""'gtstub check' as its users meet it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gtstub.analysis.rules import RULES
from gtstub.signature import documents
from tests.support.checkout import ROOT
from tests.support.cli import assert_refused, run
from tests.support.rule_documents import array, interstate, mapped, moving, sdfg, state
from tests.support.signatures import WHOLE_PROGRAM

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")

K = "i_K_gtx_vertical"
ARRAYS = {"a": array(), "b": array(), "t": array(transient=True)}

LEGAL = sdfg([moving("move", "a", "b")], ARRAYS)
RACE = sdfg([state("shift", **mapped("a", "a", f"{K} + 1", K))], ARRAYS)
TWICE = sdfg([moving("one", "a", "t"), moving("two", "b", "t")], ARRAYS, [interstate(0, 1)])
ADVICE = sdfg([moving("move", "a", "b")], {**ARRAYS, "t": array(transient=True)})
ADVICE["nodes"][0]["nodes"].append({**ADVICE["nodes"][0]["nodes"][4], "id": 5, "attributes": {"data": "t"}})
for src in ("2", "3"):
    ADVICE["nodes"][0]["edges"].append({**ADVICE["nodes"][0]["edges"][2], "src": src, "dst": "5"})


def save(name: str, document: Any) -> str:
    text = json.dumps(document).encode()
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(gzip.compress(text) if name.endswith(("gz", "sdfgz")) else text)
    return name


def checked(*arguments: str, exit_code: int = 0) -> Any:
    result = run("check", *arguments, "--json")
    assert (result.exit_code, result.stderr) == (exit_code, "")
    document = json.loads(result.stdout)
    schema = ROOT / "generator" / "gtstub" / "signature" / "schema" / "check.schema.json"
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
    file = save("x.json", sdfg([state("update", **mapped("a", "a", K, K))], ARRAYS))
    assert "update" not in run("check", file).stdout
    assert "update" in run("check", file, "--level", "info").stdout
    assert "move" in run("check", save("x.json", ADVICE)).stdout
    assert "move" not in run("check", save("x.json", ADVICE), "--level", "error").stdout


def test_the_sdfg_before() -> None:
    before, after = save("before.json", LEGAL), save("after.json", TWICE)
    assert statuses(checked(before, "--before", before))["2/1"] == "held"
    assert statuses(checked(after, "--before", before, "--only", "2", exit_code=1))["2/1"] == "broken"
    assert run("check", before, after, "--before", before).exit_code == 2


def test_the_signature_of_the_program() -> None:
    Path("program.json").write_text(documents.program_to_json(WHOLE_PROGRAM), encoding="utf-8")
    assert statuses(checked(save("x.json", LEGAL), "--program", "program.json"))["9/11.1"] == "held"
    level = "i_Level_gtx_vertical"
    other = sdfg([state("move", **mapped("a", "b", level, level, variable=level))], ARRAYS)
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


# --- Entries ----------------------------------------------------------------------------------------------------------


def test_an_entry() -> None:
    save(f"cache/one-{'0' * 32}/sdfg.json.gz", RACE)
    save(f"cache/two-{'1' * 32}/sdfg.json.gz", LEGAL)
    assert checked(f"cache/two-{'1' * 32}")["sdfgs"][0]["name"] == "program"
    assert len(checked("--cache", "cache", exit_code=1)["sdfgs"]) == 2


def test_entries_without_an_sdfg_are_listed() -> None:
    old = Path("cache") / f"old-{'0' * 32}"
    old.mkdir(parents=True)
    sentence = f"'{old}' keeps no SDFG: it is no cache entry, or an older gtstub built it."
    assert_refused(run("check", str(old)), 2, sentence)
    save(f"cache/two-{'1' * 32}/sdfg.json.gz", LEGAL)
    result = run("check", "--cache", "cache", "--json")
    assert result.exit_code == 2
    document = json.loads(result.stdout)
    assert [len(document["sdfgs"]), len(document["unreadable"])] == [1, 1]
    assert result.stderr.replace(str(Path.cwd()) + "/", "") == f"{sentence}\n"


# --- Bad input --------------------------------------------------------------------------------------------------------


def test_what_cannot_be_read() -> None:
    assert_refused(run("check", "nothing.json"), 2, "There is no file 'nothing.json'.")
    assert_refused(run("check", "--cache", "nothing"), 2, "'nothing' has no cache entry.")
    assert_refused(run("check", "--stages", "nothing"), 2, "'nothing' cannot be read: No such file or directory.")
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
        "SDFG 'old' cannot be checked: it has another form than that of DaCe 2.",
    )


def test_a_command_line_names_one_kind_of_input() -> None:
    assert run("check").exit_code == 2
    assert run("check", save("x.json", LEGAL), "--cache", ".").exit_code == 2
    assert run("check", "--stages", ".", "--before", "x.json").exit_code == 2
