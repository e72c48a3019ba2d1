"""A real browser: Debian's chromium, driven by playwright (the extra 'browser')."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import need


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    need("chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not there: 'make browser' installs it"
    )
    with playwright.sync_playwright() as running:
        program = shutil.which("chromium")
        launched = running.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """
    Opens a file, with the options of a browser context. In the end, no page may have written to its console, or have
    asked for anything but its own file.
    """
    contexts, complaints, requests, opened = [], [], [], set()

    def open_(file: Path, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        opened.add(file.as_uri())
        page.goto(file.as_uri())
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []
    assert {url.partition("#")[0] for url in requests} == opened
