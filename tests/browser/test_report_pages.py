"""The pages of `gtstub report` in a real browser: what can be pointed at, filtered, pressed, printed and heard."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gtstub.entries.cache.manifest import BuildStage, Built
from tests.support.cli import run
from tests.support.reported import publish, wide_signatures
from tests.support.signatures import SMALL_PROGRAM, SMALL_SDFG

pytestmark = pytest.mark.browser

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """
    Pages of a small program, of one with 200 slots and without an SDFG, of a cache with a
    build, and of a comparison.
    """
    folder = tmp_path_factory.mktemp("pages")
    whole = publish(folder / "cache").path
    built = Built(stages=(BuildStage("lowering", 1.7e9, 1, 11), BuildStage("compilation", 1.7e9 + 2, 5, 12)))
    wide = publish(folder / "cache", *wide_signatures(50), None, built=built).path
    small = publish(folder / "other", SMALL_SDFG, SMALL_PROGRAM).path
    commands = {
        "whole": [whole],
        "wide": [wide],
        "index": ["--cache", folder / "cache"],
        "comparison": ["--compare", whole, small],
    }
    for name, arguments in commands.items():
        result = run("report", *map(str, arguments), "-o", str(folder / f"{name}.html"))
        assert result.exit_code == 0, result.stderr
    return {name: folder / f"{name}.html" for name in commands}


def slots_of(page: Any, leaf: str) -> list[str]:
    return sorted(page.locator(f"#flow :is(.slot[data-m={leaf}], [data-m={leaf}] .slot)").all_inner_texts())


def leaf(page: Any, name: str) -> Any:
    return page.locator("button.leaf", has=page.get_by_text(name, exact=True))


@pytest.mark.parametrize("name", ["whole", "wide"])
def test_pointing_at_a_leaf_marks_its_slots(pages: dict[str, Path], open_page: Open, name: str) -> None:
    page = open_page(pages[name])
    button = leaf(page, {"whole": "vn", "wide": "field_007"}[name])
    button.hover()
    on = sorted(page.locator("#flow :is(.slot.on, .on .slot)").all_inner_texts())
    assert len(on) == {"whole": 3, "wide": 4}[name]  # the size and the stride of 'vn' share a row
    assert on == slots_of(page, button.evaluate("button => button.closest('[data-m]').dataset.m"))
    page.locator("h1").hover()
    assert page.locator(".on").count() == 0


def test_pointing_at_a_slot_marks_its_leaf_and_lines(pages: dict[str, Path], open_page: Open) -> None:
    page = open_page(pages["whole"])
    page.locator("#flow li.slot", has_text="__vn_K_stride").hover()
    assert page.locator("button.leaf.on b").all_inner_texts() == ["vn"]
    assert page.locator("#flow path.on").count() == 3


def test_a_press_keeps_the_marks_until_escape(pages: dict[str, Path], open_page: Open) -> None:
    page = open_page(pages["whole"])
    button = leaf(page, "vn")
    button.click()
    page.locator("h1").hover()
    assert button.get_attribute("aria-pressed") == "true"
    assert page.locator("#flow .slot.on").count() == 3
    leaf(page, "flag").click()
    assert page.locator("button[aria-pressed=true] b").all_inner_texts() == ["flag"]
    page.keyboard.press("Escape")
    assert page.locator("button[aria-pressed=true], .on").count() == 0


def test_the_keyboard_alone_is_enough(pages: dict[str, Path], open_page: Open) -> None:
    page = open_page(pages["whole"])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "filter"
    stops = page.locator(":is(header, #memory, #kernels, #findings) :is(a, summary, [tabindex]):visible").count()
    for _ in range(stops + 1):
        page.keyboard.press("Tab")
    assert page.locator("button.leaf:focus b").inner_text() == "vn"
    assert page.locator("#flow .slot.on").count() == 3
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.locator("button[aria-pressed=true] b").all_inner_texts() == ["vn"]
    page.locator("svg.kernels a").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('tr:target').id") == "k0"


def test_the_filter_leaves_what_fits(pages: dict[str, Path], open_page: Open) -> None:
    page = open_page(pages["whole"])
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "filter"
    page.keyboard.type("OUT_1")
    rows = page.locator("#contracts tbody tr:visible")
    assert rows.count() == 1
    assert "out[1]" in rows.inner_text()
    assert page.locator("#kernels tbody tr:visible").count() == 1
    assert page.locator("#flow .slots li:not(.dim)").count() == 2
    assert page.locator("#found").inner_text() == "4 found"
    page.keyboard.press("Escape")
    assert page.input_value("#filter") == ""
    assert page.locator("#contracts tbody tr:visible").count() == 8
    assert page.locator(".dim").count() == 0


def test_the_filter_unfolds_what_fits(pages: dict[str, Path], open_page: Open) -> None:
    page = open_page(pages["whole"])
    assert page.locator("#ingredients dt:visible").count() == 0
    page.fill("#filter", "2.0.0a10")
    assert page.locator("#ingredients dt:visible").all_inner_texts() == ["dace"]
    page.fill("#filter", "")
    assert page.locator("#ingredients dt:visible").count() == 0


def test_symbols_of_two_hundred_slots_unfold(pages: dict[str, Path], open_page: Open) -> None:
    page = open_page(pages["wide"])
    assert page.locator("#flow .slot").count() == 200
    assert page.locator("#flow .slot:visible").count() == 50
    page.locator("#flow summary").first.click()
    assert page.locator("#flow .slot:visible").count() == 53
    assert page.locator("p.absent").count() == 3


def test_dark_pages_are_dark(pages: dict[str, Path], open_page: Open) -> None:
    for scheme, low, high in (("light", 200, 255), ("dark", 0, 60)):
        page = open_page(pages["whole"], color_scheme=scheme)
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        levels = [int(level) for level in color.removeprefix("rgb(").removesuffix(")").split(",")]
        assert all(low <= level <= high for level in levels), f"{scheme} is {color}"


@pytest.mark.parametrize("name", ["whole", "wide", "index", "comparison"])
def test_no_page_is_wider_than_a_telephone(pages: dict[str, Path], open_page: Open, name: str) -> None:
    page = open_page(pages[name], viewport={"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 400


def test_paper_has_everything(pages: dict[str, Path], open_page: Open) -> None:
    page = open_page(pages["whole"])
    count = "window.folded = document.querySelectorAll('details:not([open])').length"
    page.evaluate(f"addEventListener('beforeprint', () => {{ {count} }})")
    assert page.pdf().startswith(b"%PDF")
    assert page.evaluate("window.folded") == 0
    page.emulate_media(media="print")
    assert page.locator(".filter:visible").count() == 0


def test_the_page_of_a_cache_says_how_old_entries_are(pages: dict[str, Path], open_page: Open) -> None:
    times = open_page(pages["index"]).locator("time").all_inner_texts()
    assert len(times) == 2
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC, \d+ (d|h|min|s) ago", text) for text in times)


def test_a_page_is_readable_without_javascript(pages: dict[str, Path], open_page: Open) -> None:
    page = open_page(pages["whole"], java_script_enabled=False)
    assert page.locator("#flow .slot:visible").count() == 15
    page.locator("#ingredients summary").first.click()
    assert page.locator("#ingredients dt:visible").count() > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["whole", "wide", "index", "comparison"])
def test_axe_finds_no_violation(pages: dict[str, Path], open_page: Open, name: str, scheme: str) -> None:
    pytest.importorskip("axe_playwright_python", reason="axe is not there: 'make browser' installs it")
    page = open_page(pages[name], color_scheme=scheme)
    page.evaluate((importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    result = page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true), axe.run()")
    found = [(each["id"], each["nodes"][0]["html"]) for each in result["violations"]]
    assert found == []
    assert len(result["passes"]) > 10
