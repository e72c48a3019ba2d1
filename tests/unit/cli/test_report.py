"""'gtstub report' as its users meet it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gtstub.entries.cache.manifest import BuildStage, Built
from gtstub.stub.signature import documents
from gtstub.stub.signature.documents import program_in
from gtstub.tools.memory.sizes import known_dimensions
from tests.support.cli import assert_refused, run
from tests.support.entries import flip_a_bit
from tests.support.html_pages import Page
from tests.support.reported import publish
from tests.support.signatures import SMALL_PROGRAM, SMALL_SDFG

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    return publish(tmp_path / "cache").path


def test_the_page_of_an_entry_is_the_same_each_time(entry: Path) -> None:
    result = run("report", str(entry), "-o", "pages/whole.html")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "'pages/whole.html' was written.\n", "")
    first = Path("pages/whole.html").read_bytes()
    assert Page(first.decode()).all("h1")[0].text == "whole"
    Path("pages/whole.html").write_text("an older page", encoding="utf-8")
    assert run("report", str(entry), "-o", "pages/whole.html").exit_code == 0
    assert Path("pages/whole.html").read_bytes() == first
    assert [file.name for file in Path("pages").iterdir()] == ["whole.html"]


def test_the_page_of_a_cache_links_the_pages_of_its_entries(entry: Path) -> None:
    assert run("report", "--cache", str(entry.parent), "-o", "pages/all.html", "--pages").exit_code == 0
    (link,) = Page(Path("pages/all.html").read_text(encoding="utf-8")).all("a")
    assert link.attributes["href"] == f"all-pages/{entry.name}.html"
    assert run("report", str(entry), "-o", "one.html").exit_code == 0
    assert Path("pages", link.attributes["href"]).read_bytes() == Path("one.html").read_bytes()
    assert run("report", "--cache", str(entry.parent), "-o", "alone.html").exit_code == 0
    assert Page(Path("alone.html").read_text(encoding="utf-8")).all("a") == []


def test_the_document_fits_its_schema(entry: Path, tmp_path: Path) -> None:
    other = publish(tmp_path / "cache", SMALL_SDFG, SMALL_PROGRAM, None).path
    (tmp_path / "cache" / f"broken-{'0' * 32}").mkdir()
    counts = []
    for arguments in ([str(entry)], ["--cache", str(tmp_path / "cache")], ["--compare", str(entry), str(other)]):
        result = run("report", *arguments, "--json")
        assert (result.exit_code, result.stderr) == (0, "")
        document = documents.parse(result.stdout, "report", "report")
        counts.append((len(document["entries"]), len(document["unreadable"]), document["comparison"] is not None))
    assert counts == [(1, 0, False), (2, 1, False), (2, 0, True)]


def test_a_filter_needs_no_page_and_a_page_may_be_written_too(entry: Path) -> None:
    result = run("report", str(entry), "--jq", ".entries[].kernels[].label")
    assert (result.stdout, list(Path().glob("*.html"))) == ("first\nsecond\nthird\n", [])
    assert run("report", str(entry), "--jq", ".schema", "-o", "a.html").stdout == "gtstub/report/1\n"
    assert Path("a.html").exists()


def test_an_index_lists_all_entries(entry: Path) -> None:
    (entry.parent / f"broken-{'0' * 32}").mkdir()
    assert run("report", "--cache", str(entry.parent), "-o", "index.html").exit_code == 0
    page = Page(Path("index.html").read_text(encoding="utf-8"))
    assert [row[0].partition("built")[0] for row in page.rows("programs")] == [f"whole{entry.name[-32:]}"]
    assert "There is no cache entry at" in page.all("p", "absent")[0].text


def test_an_index_has_the_chart_of_the_latest_build(tmp_path: Path) -> None:
    publish(tmp_path / "cache", built=Built(stages=(BuildStage("lowering", 1.7e9, 2, 11),)))
    assert run("report", "--cache", str(tmp_path / "cache"), "-o", "index.html").exit_code == 0
    page = Page(Path("index.html").read_text(encoding="utf-8"))
    assert [row[1:] for row in page.rows("build")] == [["1", "2.00", "2.00"]]
    assert len(page.all("svg", "build-chart")) == 1


def test_a_comparison_is_a_page(entry: Path, tmp_path: Path) -> None:
    other = publish(tmp_path / "new", ingredients={"static": {"flag": [False]}}).path
    assert run("report", "--compare", str(entry), str(other), "-o", "difference.html").exit_code == 0
    page = Page(Path("difference.html").read_text(encoding="utf-8"))
    assert "static.flag[true][false]" in [each.text.replace("\n", "") for each in page.all("tr")]


def test_times_of_a_profile_are_added(entry: Path) -> None:
    times = {"min": 1e-6, "median": 2e-6, "max": 3e-6, "total": 4e-6}
    calls = {"calls": 2, "conversion": times, "sdfg": times, "whole": times}
    digest = documents.digest((entry / "sdfg.json").read_text(encoding="utf-8"))
    program = {"name": "whole", "sdfg_digest": digest, "static": {}, "initial": calls, "run": calls}
    profile = {"schema": "gtstub/profile/1", "wall": 1.0, "programs": [program]}
    Path("profile.json").write_text(json.dumps(profile), encoding="utf-8")
    result = run("report", str(entry), "--profile", "profile.json", "--jq", ".entries[].timers[].what")
    assert result.stdout == "calls\ninitial calls\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give one of ENTRY, '--compare' and '--cache'."),
        (["entry", "--compare", "a", "b"], "Give one of ENTRY, '--compare' and '--cache'."),
        (["entry"], "Give '-o' with the name of the page, or '--json' or '--jq'."),
        (["entry", "-o", "page.html", "--pages"], "'--pages' is for the entries of '--cache', and needs '-o'"),
        (["--cache", ".", "--json", "--pages"], "'--pages' is for the entries of '--cache', and needs '-o'"),
        (["entry", "--json", "--open"], "'--open' needs '-o' with the name of the page."),
        (["entry", "--size", "Edge"], "'Edge' is not of the form DIM=N, with an integer."),
        (["entry", "--set", "n=1.5"], "'n=1.5' is not of the form SYMBOL=N, with an integer."),
    ],
)
def test_a_wrong_command_line_is_refused(arguments: list[str], message: str) -> None:
    result = run("report", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())


def test_what_cannot_be_read_is_refused_and_an_older_page_stays(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_CACHE_DIR", "/no/cache")
    missing = "There is no file or directory 'nothing'. The cache '/no/cache' has no entry 'nothing': it is empty."
    Path("page.html").write_text("an older page", encoding="utf-8")

    def refused(message: str, *arguments: str) -> None:
        assert_refused(run("report", *arguments, "-o", "page.html"), 2, message)

    refused(missing, "nothing")
    refused("There is no cache entry at 'no/thing'.", "no/thing")
    refused("The cache 'nothing' cannot be read: No such file or directory.", "--cache", "nothing")
    Path("empty").mkdir()
    refused("'empty' has no cache entry: 'gtstub cache path' prints the directory of the cache.", "--cache", "empty")
    refused("Cannot read or write 'nothing.json': No such file or directory.", str(entry), "--profile", "nothing.json")
    message = "Program 'whole' has no dimension 'Cell'. Known: 'Edge', 'K', 'Vertex'."
    refused(message, str(entry), "--size", "Cell=3")
    refused(missing, "--compare", str(entry), "nothing")
    flip_a_bit(entry / "sdfg.json.gz", 0)
    message = f"File 'sdfg.json.gz' of cache entry '{entry}' is not the one that was built: its digest differs."
    refused(message, str(entry))
    (entry / "manifest.json").write_text('{"schema": "gtstub/cache-entry/1"}', encoding="utf-8")
    refused(f"The cache entry '{entry}' was made by another version of gtstub: build it again.", str(entry))
    assert Path("page.html").read_text(encoding="utf-8") == "an older page"


def test_a_full_disk_is_one_sentence(entry: Path) -> None:
    message = "The page cannot be written to '/dev/full': No space left on device."
    assert_refused(run("report", str(entry), "-o", "/dev/full"), 2, message)
    Path("folder").mkdir()
    assert_refused(
        run("report", str(entry), "-o", "folder"), 2, "The page cannot be written to 'folder': Is a directory."
    )


def test_no_page_is_written_into_an_entry(entry: Path) -> None:
    before = (entry / "manifest.json").read_bytes()
    Path("link.html").symlink_to(entry / "program.json")
    Path("folder").symlink_to(entry)
    for name in (
        *(entry / name for name in ("manifest.json", "page.html", "in/page.html")),
        "link.html",
        "folder/x.html",
    ):
        message = f"The page cannot be written to '{name}': a cache entry holds only what was built."
        assert_refused(run("report", str(entry), "-o", str(name)), 2, message)
    assert (entry / "manifest.json").read_bytes() == before
    assert run("report", str(entry), "--jq", ".schema").exit_code == 0, "The entry is whole."
    Path("manifest.json").write_text("{}", encoding="utf-8")
    assert run("report", str(entry), "-o", "page.html").exit_code == 0, "Other programs have manifests, too."


def test_a_size_may_be_one_of_some_entries_only(entry: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    other = publish(cache, SMALL_SDFG, SMALL_PROGRAM, None).path
    dims = {path: set(known_dimensions(program_in(path / "program.json"))) for path in (entry, other)}
    (name,) = sorted(dims[entry] - dims[other])[:1]
    for arguments in (["--cache", str(cache)], ["--compare", str(entry), str(other)]):
        document = json.loads(run("report", *arguments, "--size", f"{name}=5", "--json").stdout)
        assert (len(document["entries"]), document["unreadable"]) == (2, [])
        assert 5 in [value for each in document["entries"] for value in each["sizes"].values()]
        message = "No entry has a dimension or symbol 'Nothing'."
        assert_refused(run("report", *arguments, "--size", "Nothing=5", "-o", "page.html"), 2, message)
    assert not Path("page.html").exists()


def test_a_malformed_filter_is_refused_before_a_page_is_written(entry: Path) -> None:
    assert run("report", str(entry), "-o", "page.html", "--jq", "bad(").exit_code == 2
    assert not Path("page.html").exists()


def test_a_page_that_does_not_fit_leaves_nothing(entry: Path) -> None:
    Path("page.html").write_text("an older page", encoding="utf-8")
    command = f"ulimit -f 4; {sys.executable} -m gtstub report '{entry}' -o page.html"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "The page cannot be written to 'page.html': File too large.\n")
    assert [(file.name, file.read_text(encoding="utf-8")) for file in Path().glob("*page*")] == [
        ("page.html", "an older page")
    ]
    assert [file.name for file in Path().iterdir() if file.name.startswith(".")] == []
