"""'gtstub plan' as its users meet it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gtstub.stub.plan.document import plan_to_json
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature.documents import sdfg_to_json
from tests.support.cli import assert_refused, run, write_signatures
from tests.support.signatures import WHOLE_PROGRAM, WHOLE_SDFG, program, scalar, sdfg, symbol

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")


def test_plan_prints_every_leaf_and_every_slot() -> None:
    write_signatures()
    result = run("plan", "sdfg.json", "program.json")
    assert (result.exit_code, result.stderr) == (0, "")
    plan = make_plan(WHOLE_SDFG, WHOLE_PROGRAM)
    words = result.stdout.split()
    for name in [leaf.path for leaf in plan.leaves] + [slot.name for slot in plan.slots]:
        assert name in words


def test_plan_as_json() -> None:
    write_signatures()
    result = run("plan", "sdfg.json", "program.json", "--json")
    assert json.loads(result.stdout) == plan_to_json(make_plan(WHOLE_SDFG, WHOLE_PROGRAM))


def test_jq_does_not_need_json() -> None:
    write_signatures()
    expected = "".join(f"{argument.name}\n" for argument in WHOLE_SDFG.arguments)
    assert run("plan", "sdfg.json", "program.json", "--jq", ".slots[].name").stdout == expected
    assert run("plan", "sdfg.json", "program.json", "--json", "--jq", ".slots[].name").stdout == expected


def test_a_bad_filter() -> None:
    write_signatures()
    assert_refused(
        run("plan", "sdfg.json", "program.json", "--jq", ".slots["),
        2,
        "The jq filter '.slots[' does not work: syntax error, unexpected end of file.",
    )


def test_a_missing_file() -> None:
    write_signatures()
    assert_refused(
        run("plan", "sdfg.json", "nothing.json"),
        7,
        "Cannot read or write 'nothing.json': No such file or directory.",
    )


def test_a_directory_for_a_file(tmp_path: Path) -> None:
    write_signatures()
    assert_refused(run("plan", str(tmp_path), "program.json"), 7, f"Cannot read or write '{tmp_path}': Is a directory.")


def test_signatures_in_the_wrong_order() -> None:
    write_signatures()
    assert_refused(
        run("plan", "program.json", "sdfg.json"),
        3,
        "'program.json' is not an SDFG signature: at '$.schema', expected 'gtstub/sdfg-signature/1', "
        "found '\"gtstub/program-signature/1\"'.",
    )


def test_a_truncated_signature() -> None:
    write_signatures()
    Path("sdfg.json").write_text(sdfg_to_json(WHOLE_SDFG)[:100], encoding="utf-8")
    result = run("plan", "sdfg.json", "program.json")
    assert result.exit_code == 3
    assert result.stderr.startswith("'sdfg.json' is not JSON: ")


def test_a_signature_that_is_no_text() -> None:
    write_signatures()
    Path("sdfg.json").write_bytes(b"\xff\xfe")
    assert_refused(run("plan", "sdfg.json", "program.json"), 3, "'sdfg.json' is not JSON: it is not UTF-8 text.")


def test_signatures_that_contradict_each_other() -> None:
    write_signatures(sdfg_=sdfg(symbol("a")), program_=program(b=scalar("int32")))
    assert_refused(
        run("plan", "sdfg.json", "program.json"),
        4,
        "The signatures of program 'prog' contradict each other: "
        "no argument of the program determines symbol 'a' of the SDFG.",
    )


def test_planning_imports_neither_frameworks_nor_what_it_does_not_need() -> None:
    write_signatures()
    code = (
        "import sys; from gtstub.cli.app import main; main(sys.argv[1:], standalone_mode=False); "
        "print([m for m in ('gt4py', 'dace', 'numpy', 'jinja2', 'jq') if m in sys.modules])"
    )
    arguments = [sys.executable, "-c", code, "plan", "sdfg.json", "program.json"]
    assert subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.endswith("\n[]\n")
