"""The pages: whole, self-contained, the same each time, and harmless whatever the names in them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from gtstub.install import TEMPLATES
from gtstub.tools.memory.memory import Allocation, Memory, StorageUse, Total, Transient
from gtstub.tools.report.compare import compare
from gtstub.tools.report.entry import report
from gtstub.tools.report.flow import FOLDED, flow
from gtstub.tools.report.kernels import Kernel, ReadFrom
from gtstub.tools.report.model import (
    Ingredient,
    ProgramReport,
    Timer,
    Unreadable,
    UsedWhen,
)
from gtstub.tools.report.page import comparison_page, index_page, program_page
from gtstub.tools.report.picture import COLUMNS, MOST, picture
from gtstub.tools.report.verdict import chips
from gtstub.tools.report.wording import byte_size, short_digests
from gtstub.tools.rules import Finding, Result
from gtstub.util.visible import visible
from tests.support.html_pages import Page
from tests.support.reported import publish, wide_signatures
from tests.support.signatures import SMALL_PROGRAM, SMALL_SDFG


def transient(name: str, bytes_: int | None, allocated: Allocation, **others: Any) -> Transient:
    values = {"nested_in": "", "storage": "CPU_Heap", "lifetime": "Scope", "branch": "", "size": "8*n", "repeated": ()}
    return Transient(name=name, bytes=bytes_, allocated=allocated, **{**values, **others})


def use(allocated: Allocation, peak: int | None, least: int) -> StorageUse:
    return StorageUse(allocated, "CPU_Heap", peak, least, peak, least)


MEMORY = Memory(
    (
        transient("tmp", 520, "call", branch="flag"),
        transient("kept", None, "init", nested_in="inner", repeated=("map m",)),
        transient("as_large", 520, "call", branch="flag"),
        transient("in_a_register", 8, "stack"),
    ),
    (Total("call", "CPU_Heap", "Scope", "", 520, 520), Total("init", "CPU_Heap", "Persistent", "", None, 0)),
    (use("call", 520, 520), use("init", None, 0)),
    ("n",),
)

FINDINGS = Result(
    (
        Finding("1", "3", "error", "s", "vn", "it is read and written"),
        Finding("7", "7", "advice", "s", "tmp", "it has two edges"),
        Finding("7", "7", "advice", "s", "other", "it has two edges"),
    ),
    {"2/1": "needs the SDFG before", "/2": "an SDFG does not tell"},
)


@pytest.fixture
def whole(tmp_path: Path) -> ProgramReport:
    return report(publish(tmp_path).path)


@pytest.fixture
def full(whole: ProgramReport) -> ProgramReport:
    """A report in which every section has content."""
    timers = (Timer("calls", 3, 2e-6, 1e-7, 1.9e-6, 6e-6, 0.25),)
    return dataclasses.replace(
        whole,
        memory=MEMORY,
        findings=FINDINGS,
        timers=timers,
        absent={},
        chips=chips(whole.leaves, whole.slots, whole.kernels, MEMORY, FINDINGS),
    )


def pages_of(made: ProgramReport) -> list[str]:
    """All pages that show a report."""
    other = dataclasses.replace(made, key=f"{made.key}x", slots=made.slots[1:], ingredients=())
    unreadable = [Unreadable(made.key, made.name)]
    comparison = comparison_page(made, other, compare(made, other))
    return [program_page(made), index_page([made], unreadable), comparison]


def test_a_page_is_one_file_without_references(full: ProgramReport) -> None:
    for text in pages_of(full):
        page = Page(text)
        assert "http" not in text.replace("http-equiv", "")
        assert not [
            each for each in page.elements if each.attributes.keys() & {"src", "srcset", "style", "onclick"} - {"style"}
        ]
        assert all(each.attributes["href"].startswith("#") for each in page.all("a"))
        assert not page.all("link")
        policy = next(each for each in page.all("meta") if "http-equiv" in each.attributes).attributes["content"]
        assert policy.startswith("default-src 'none';")


def test_the_same_report_gives_the_same_bytes(full: ProgramReport) -> None:
    assert pages_of(full) == pages_of(full)


SECTIONS = ["timers", "memory", "kernels", "findings", "flow", "contracts", "constants", "ingredients"]


def test_a_page_has_its_sections_in_order(full: ProgramReport) -> None:
    for made, sections in ((full, SECTIONS), (dataclasses.replace(full, timers=()), SECTIONS[1:])):
        page = Page(program_page(made))
        assert [each.attributes["id"] for each in page.all("section")] == sections
        titles = [each.text for each in page.all("h2")]
        assert len(set(titles)) == len(sections)
        assert [each.text for each in page.all("a") if each.parents[-1].tag == "nav"] == titles


def test_each_id_is_there_once_and_each_link_leads_somewhere(full: ProgramReport) -> None:
    page = Page(program_page(full))
    ids = [each.attributes["id"] for each in page.elements if "id" in each.attributes]
    assert len(ids) == len(set(ids))
    links = {each.attributes["href"] for each in page.all("a")}
    assert links
    assert links <= {f"#{id_}" for id_ in ids}


def test_a_leaf_has_the_mark_of_its_slots_and_lines(whole: ProgramReport) -> None:
    page = Page(program_page(whole))
    made = flow(whole)
    assert not made.folded
    for leaf in whole.leaves:
        marked = [each for each in page.elements if each.attributes.get("data-m") == f"l{leaf.index}"]
        groups = [group for group in made.groups if group.place == leaf.index]
        assert sum(len(group.slots) for group in groups) == len(leaf.slots)
        assert sum(each.tag == "li" for each in marked) == len(groups)
        assert sum(each.tag == "path" for each in marked) == len(groups)
        assert sum(each.tag == "button" for each in marked) == 1


def test_sizes_starts_and_strides_of_an_array_share_a_row(whole: ProgramReport, tmp_path: Path) -> None:
    made = flow(whole)
    assert [slot for group in made.groups for slot in group.slots] == list(whole.slots)
    rows = [each.text for each in Page(program_page(whole)).all("li", "slot")]
    assert len(rows) == len(made.groups) == 15
    text = "start, stop and stride of axis 1 of 'out[0]'"
    names = "__out_0_K_range_0, __out_0_K_range_1, __out_0_K_stride"
    assert [" ".join(row.split()) for row in rows if "__out_0_K" in row] == [f"8–10 {text} {names}"]
    alike = [
        dataclasses.replace(slot, source=slot.source.replace("stop of axis 0", "stride of axis 0"))
        for slot in whole.slots
    ]
    texts = [group.text for group in flow(dataclasses.replace(whole, slots=tuple(alike))).groups]
    assert "stride of axes 0, 1 of 'vn'" in texts
    other = [
        dataclasses.replace(slot, source=f"({slot.source}) / 2") if slot.index == 9 else slot for slot in whole.slots
    ]
    texts = [group.text for group in flow(dataclasses.replace(whole, slots=tuple(other))).groups]
    halved = "start of axis 1 of 'out[0]', (stop of axis 1 of 'out[0]') / 2, stride of axis 1 of 'out[0]'"
    assert halved in texts
    assert "stop of axis 0, stride of axis 1 of 'vn'" in texts


def test_past_sixty_rows_of_slots_symbols_are_folded_under_their_leaf(tmp_path: Path) -> None:
    for fields, folded in ((FOLDED // 2, False), (FOLDED // 2 + 1, True), (50, True)):
        made = report(publish(tmp_path / str(fields), *wide_signatures(fields)).path)
        page = Page(program_page(made))
        assert flow(made).folded == folded
        details = [each for each in page.all("details") if each.is_in("flow")]
        assert len(details) == (fields if folded else 0)
        assert len(page.all("code", "slot") if folded else page.all("li", "slot")) == fields * (4 if folded else 2)
        assert bool(page.all("svg", "lines")) != folded
    assert all("3 symbols" in each.text for each in details)


def test_tables_have_what_the_report_has(full: ProgramReport) -> None:
    page = Page(program_page(full))
    contracts = page.rows("contracts")
    assert len(contracts) == len(full.leaves)
    assert "real(c_double), intent(in) :: vn(:, :)" in contracts[0][1]
    kernels = page.rows("kernels")
    assert [row[0] for row in kernels] == ["0 first", "1 second", "2 thirdif flag"]
    assert kernels[2][2:4] == ["out_0 1, tmp 0", "out_1"]
    assert page.rows("memory") == [
        ["in each call", "CPU_Heap", "520 B", "520 B"],
        ["kept between calls", "CPU_Heap", "?", "?"],
        ["tmp, as_large 2 arrays", "in each call if flag", "CPU_Heap, Scope", "520 B", "8*n"],
        ["keptin inner", "kept between callsagain in each iteration of map m", "CPU_Heap, Scope", "?", "8*n"],
    ]
    assert "3 arrays, without 1 on the stack or unused" in [each.text for each in page.all("summary")]
    rule = "1 (ADR 18: 3) global memory is input or output, or its output depends on it elementwise"
    assert page.rows("findings")[0] == [rule, "error", "vn", "it is read and written", "s"]
    assert page.rows("timers") == [["calls", "3", "2.00 µs", "100 ns", "1.90 µs", "6.00 µs", "25.0%"]]
    assert [each.text for each in page.all("p", "remark") if each.is_in("findings")] == [
        "Not checked: rule 2 (ADR 18: 1) optimisation within states keeps the number of states: needs the SDFG before.",
        "Not checked: rule (ADR 18: 2) DaCe's simplification runs through gt4py's only: an SDFG does not tell.",
    ]


def test_conditions_that_occur_again_stand_once(whole: ProgramReport) -> None:
    used = [("E 0 to 4", ("0 < n", "flag")), ("E 0 to n", ("0 < n",)), ("E 0 to 1", ("limit > 2",))]
    leaves = [dataclasses.replace(leaf, used=()) for leaf in whole.leaves]
    uses = tuple(UsedWhen(indices, " and ".join(those), those) for indices, those in used)
    leaves[0] = dataclasses.replace(leaves[0], used=uses)
    page = Page(program_page(dataclasses.replace(whole, leaves=tuple(leaves))))
    legend = [(each.attributes["id"], each.text) for each in page.all("li") if "id" in each.attributes]
    in_kernels, in_contracts = [("kernels-A", "A: flag")], [("contracts-A", "A: flag"), ("contracts-B", "B: 0 < n")]
    assert legend == in_kernels + in_contracts
    assert page.rows("kernels")[2][0] == "2 thirdif A"
    assert page.rows("contracts")[0][2] == "E 0 to 4 if B and AE 0 to n if BE 0 to 1 if limit > 2"


def test_the_verdict_says_what_is_wrong(full: ProgramReport) -> None:
    found = [(chip.value, chip.tone) for chip in full.chips]
    assert found == [("8 → 18", "plain"), ("3", "plain"), ("520 B", "unknown"), ("1 / 1", "bad")]
    assert full.chips[2].note == "and ? kept between calls; '--size' and '--set' give sizes"
    assert full.chips[3].note == "2 rules were not checked"
    nothing = chips(full.leaves, full.slots, full.kernels, Memory((), (), (), ()), Result((), {}))
    assert [(chip.value, chip.tone) for chip in nothing[2:]] == [("0 B", "plain"), ("0 / 0", "good")]
    some = Memory((), (), (use("call", 30, 30), use("call", None, 100)), ("n",))
    chip = chips(full.leaves, full.slots, full.kernels, some, None)[2]
    assert (chip.value, chip.tone) == ("≥ 130 B", "unknown")


def test_a_section_that_is_missing_says_why(whole: ProgramReport) -> None:
    names = ("timers", "memory", "kernels", "findings", "fortran")
    absent = {name: f"There is no {name}." for name in names}
    made = dataclasses.replace(whole, kernels=(), memory=None, findings=None, absent=absent)
    assert [each.text for each in Page(program_page(made)).all("p", "absent")] == list(absent.values())


HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onfocus='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\u2066\u200b",
    "a\x00b\x1b[31m\ud800",
    "</style></title>-->",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_do_no_harm(full: ProgramReport, name: str) -> None:
    """Every text of the model is replaced; the elements stay the same, and the page has the text as it is written."""
    hostile = replaced(full, name)
    for clean, text in zip(pages_of(full), pages_of(hostile), strict=True):
        tags = [each.tag for each in Page(text).elements if each.tag in ("script", "style", "title", "img", "svg")]
        assert tags == [
            each.tag for each in Page(clean).elements if each.tag in ("script", "style", "title", "img", "svg")
        ]
        assert not [each for each in Page(text).elements if each.attributes.keys() & {"onerror", "onfocus"}]
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\ud800\x00\x1b]", text)
        text.encode()
    page = Page(program_page(hostile))
    assert visible(name) in [each.text for each in page.all("h1")]
    assert visible(name) in [each.text for each in page.all("td")]


def risky(text: str) -> list[str]:
    """The elements of a page in which a text would do harm."""
    return [each.tag for each in Page(text).elements if each.tag in ("script", "style", "title", "img", "svg")]


def replaced[Value](value: Value, text: str) -> Value:
    """The same with other texts, except those that decide what a page has."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = {"tone", "kind", "level", "when", "allocated", "rule", "adr"}
        changed = {
            field.name: replaced(getattr(value, field.name), text)
            for field in dataclasses.fields(value)
            if field.name not in kept
        }
        return dataclasses.replace(value, **changed)
    if isinstance(value, tuple):
        return tuple(replaced(each, text) for each in value)  # type: ignore[return-value]
    if isinstance(value, dict):
        return {name: replaced(each, text) for name, each in value.items()}  # type: ignore[return-value]
    return text if isinstance(value, str) and value else value  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (520, "520 B"), (999, "999 B"), (1000, "0.977 KiB"), (2_000_000, "1.91 MiB"), (2**50, "1.00 PiB")],
)
def test_sizes_have_three_digits(size: int, text: str) -> None:
    assert byte_size(size) == text


def test_digests_are_shortened() -> None:
    digest = "0123456789abcdef" * 4
    assert short_digests(f"K {digest}, {digest[1:]}") == f"K 0123456789ab…, {digest[1:]}"


def kernel(index: int, depth: int, *reads_from: int) -> Kernel:
    edges = tuple(ReadFrom(writer, ("tmp",)) for writer in reads_from)
    return Kernel(index, "m", "s", (), "Edge", ("Edge 0:9",), (), ("tmp",), edges, 1, depth)


def test_a_picture_is_as_wide_as_a_page_and_draws_edges_to_the_next_rank() -> None:
    first = [kernel(index, 0) for index in range(20)]
    kernels = [*first, kernel(20, 1, 0, 19), kernel(21, 2, 0, 20)]
    drawn = picture(kernels)
    assert drawn is not None
    assert [(curve.writer, curve.reader) for curve in drawn.curves] == [(0, 20), (19, 20), (20, 21)]
    assert drawn.left_out == 1
    assert len(drawn.bands) == 3
    corners = [(box.x, box.y) for box in drawn.boxes]
    assert len(set(corners)) == 22
    assert len({x for x, _ in corners[:18]}) == COLUMNS
    assert all(0 <= x <= drawn.width - 164 and 0 <= y <= drawn.height - 42 for x, y in corners)
    assert drawn.boxes[20].y < drawn.boxes[21].y


def test_nothing_and_too_much_is_not_drawn(whole: ProgramReport) -> None:
    assert picture([]) is None
    many = tuple(kernel(index, 0) for index in range(MOST + 1))
    assert picture(many[:-1]) is not None
    assert picture(many) is None
    page = program_page(dataclasses.replace(whole, kernels=many))
    assert "A picture of 241 kernels would be too large; the table has all of them." in page


def test_a_comparison_has_what_differs(tmp_path: Path, whole: ProgramReport) -> None:
    absent = {"memory": "It is not analysed."}
    whole = dataclasses.replace(whole, memory=None, absent=absent)
    other = dataclasses.replace(
        whole,
        slots=whole.slots[1:],
        ingredients=(*whole.ingredients[:-1], Ingredient("versions", "versions.gtstub", "2")),
    )
    comparison = compare(whole, other)
    by_title = {section.title: section for section in comparison.sections}
    assert [(change.what, change.new) for change in by_title["Slots"].changes] == [("gt_compute_time", None)]
    assert by_title["Slots"].equal == 17
    (change,) = by_title["Ingredients"].changes
    assert (change.what, change.old, change.new) == ("versions.gtstub", "1", "2")
    assert by_title["Kernels"].changes == ()
    assert by_title["Memory"].absent == f"{whole.key}: It is not analysed."
    page = Page(comparison_page(whole, other, comparison))
    texts = [" ".join(each.text.split()) for each in page.all("tr")]
    assert "versions.gtstub12" in texts
    small = report(publish(tmp_path / "small", SMALL_SDFG, SMALL_PROGRAM, None).path)
    titles = [section.title for section in compare(whole, small).sections if section.changes]
    assert titles == ["Slots", "Contracts", "Compiled in"]


def test_an_index_has_a_row_for_each_entry(full: ProgramReport) -> None:
    page = Page(index_page([full, full], [Unreadable("broken-1", "It lacks its manifest.")]))
    rows = page.rows("programs")
    assert len(rows) == 2
    assert rows[0][1].startswith("8 → 18")
    assert [each.text for each in page.all("p", "absent")] == ["broken-1: It lacks its manifest."]
    assert page.all("a") == []


def test_an_index_says_when_entries_were_built_and_links_their_pages(full: ProgramReport) -> None:
    page = Page(index_page([full], [], built={full.key: 86400.0}, pages={full.key: "pages/full.html"}))
    (time,), (link,) = page.all("time"), page.all("a")
    assert (time.text, time.attributes["datetime"]) == ("1970-01-02 00:00 UTC", "1970-01-02T00:00Z")
    assert (link.text, link.attributes["href"]) == (full.name, "pages/full.html")


def test_style_and_script_are_short() -> None:
    lines = [
        (TEMPLATES / "report" / name).read_text(encoding="utf-8").count("\n") for name in ("style.css", "script.js")
    ]
    assert sum(lines) < 250
