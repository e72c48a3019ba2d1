"""'gtstub show' as its users meet it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gtstub.entries.cache.manifest import Manifest
from gtstub.entries.cache.store import Cache
from gtstub.stub.plan.document import plan_to_json
from gtstub.stub.plan.planner import make_plan
from tests.support.cli import assert_refused, run, run_installed, write_signatures
from tests.support.signatures import WHOLE_PROGRAM, WHOLE_SDFG
from tests.support.stubs import render_stub

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")


def publish_entry(root: Path) -> Path:
    """A cache entry as far as tools look at it; its libraries are never loaded."""
    cache = Cache(root)
    with cache.private_directory("whole") as private:
        directory = private / "entry"
        write_signatures(directory)
        sources = render_stub(WHOLE_SDFG, WHOLE_PROGRAM)
        (directory / "whole_stub.h").write_text(sources.header, encoding="utf-8")
        (directory / "whole_stub.c").write_text(sources.source, encoding="utf-8")
        for library in ("whole_stub.so", "libwhole.so"):
            (directory / library).touch()
        manifest = Manifest("whole", "whole_stub.so", "libwhole.so")
        return cache.publish(directory, "whole", manifest).path


def test_plan_and_generate_take_an_entry(tmp_path: Path) -> None:
    write_signatures()
    entry = str(publish_entry(tmp_path))
    assert run("plan", entry, "--json").stdout == run("plan", "sdfg.json", "program.json", "--json").stdout
    assert run("generate", entry, "-o", "stubs").exit_code == 0
    assert Path("stubs/whole_stub.c").read_bytes() == Path(entry, "whole_stub.c").read_bytes()


def test_show_in_a_pipe_has_every_slot_whole() -> None:
    write_signatures()
    result = run_installed("show", "sdfg.json", "program.json", env={**os.environ, "COLUMNS": "40"})
    assert (result.returncode, result.stderr) == (0, "")
    lines = [line.split() for line in result.stdout.splitlines()]
    plan = make_plan(WHOLE_SDFG, WHOLE_PROGRAM)
    for slot in plan.slots:
        assert [line for line in lines if line[:1] == [str(slot.index)] and slot.name in line]
    assert "\x1b" not in result.stdout
    assert "…" not in result.stdout


def test_show_of_an_entry_is_that_of_its_signatures(tmp_path: Path) -> None:
    entry = str(publish_entry(tmp_path / "cache"))
    write_signatures()
    for options in ([], ["--code"], ["--header"]):
        assert run("show", entry, *options).stdout == run("show", "sdfg.json", "program.json", *options).stdout


def test_show_the_code_of_an_entry_that_was_made_by_another_version(tmp_path: Path) -> None:
    entry = publish_entry(tmp_path / "cache")
    source = entry / "whole_stub.c"
    source.write_text(source.read_text(encoding="utf-8").replace("const", "CONST"), encoding="utf-8")
    assert run("show", str(entry), "--code").stdout == source.read_text(encoding="utf-8")


def test_show_code_in_a_pipe_is_byte_for_byte() -> None:
    write_signatures()
    sources = render_stub(WHOLE_SDFG, WHOLE_PROGRAM)
    assert run_installed("show", "sdfg.json", "program.json", "--code").stdout == sources.source
    assert run_installed("show", "sdfg.json", "program.json", "--header").stdout == sources.header


def test_show_as_json(tmp_path: Path) -> None:
    entry = str(publish_entry(tmp_path / "cache"))
    write_signatures()
    plan = plan_to_json(make_plan(WHOLE_SDFG, WHOLE_PROGRAM))
    assert json.loads(run("show", "sdfg.json", "program.json", "--json").stdout) == plan
    document = json.loads(run("show", entry, "--json").stdout)
    assert document.pop("manifest")["library"] == "libwhole.so"
    assert document == plan
    assert run("show", entry, "--jq", ".manifest.stub").stdout == "whole_stub.so\n"


def test_show_reads_the_manifest_once(tmp_path: Path) -> None:
    """Another process may replace it between two readings."""
    script = """if True:
        import sys
        from gtstub.cli.app import main
        opened = []
        sys.addaudithook(lambda event, found: opened.append(str(found[0])) if event == "open" else None)
        main(["show", sys.argv[1], "--json"], standalone_mode=False)
        print(sum(name.endswith("manifest.json") for name in opened), file=sys.stderr)
    """
    done = subprocess.run(
        [sys.executable, "-c", script, publish_entry(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stderr == "1\n"


def test_show_of_no_entry(tmp_path: Path) -> None:
    assert_refused(run("show", str(tmp_path)), 6, f"There is no cache entry at '{tmp_path}'.")


def test_show_of_an_entry_that_lacks_a_file(tmp_path: Path) -> None:
    entry = publish_entry(tmp_path / "cache")
    (entry / "sdfg.json").unlink()
    assert_refused(run("show", str(entry)), 6, f"The cache entry '{entry}' lacks its file 'sdfg.json'.")


@pytest.mark.parametrize(
    "arguments",
    [("show",), ("show", "a", "b", "c"), ("show", "a", "--code", "--json"), ("show", "a", "--code", "--header")],
)
def test_show_of_too_little_or_too_much(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Usage: gtstub show ")
