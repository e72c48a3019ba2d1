"""
Draws docs/report.png, the picture of a report that the README shows: the top of the page that `make demo` writes.

    make picture
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "build" / "demo" / "report.html"
PICTURE = ROOT / "docs" / "report.png"

WIDTH, HEIGHT = 1280, 980

COLORS = 64
"""A page has few, and shades of them at the edges of letters."""

LARGEST = 200_000
"""Bytes: what a README may cost its readers."""


def main() -> int:
    chromium = shutil.which("chromium")
    if chromium is None:
        print("picture: chromium is not installed (apt-get install chromium)", file=sys.stderr)
        return 1
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(PAGE.as_uri())
        page.locator("button.leaf", has=page.get_by_text("u_vert", exact=True)).click()
        screenshot = Image.open(io.BytesIO(page.screenshot()))
        browser.close()
    written = io.BytesIO()
    screenshot.convert("RGB").quantize(COLORS).save(written, "PNG", optimize=True)
    picture = written.getvalue()
    if len(picture) > LARGEST:
        print(f"picture: {len(picture)} bytes are more than {LARGEST}", file=sys.stderr)
        return 1
    PICTURE.write_bytes(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
