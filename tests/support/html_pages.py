"""HTML pages as tests read them: their elements, with attributes and text."""

from __future__ import annotations

import dataclasses
from html.parser import HTMLParser

VOID = frozenset({"meta", "input", "br", "link", "img"})


@dataclasses.dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parents: tuple[Element, ...]
    text: str = ""

    def has(self, name: str) -> bool:
        """Whether it is of a class."""
        return name in self.attributes.get("class", "").split()

    def is_in(self, id_: str) -> bool:
        return any(parent.attributes.get("id") == id_ for parent in self.parents)


class Page(HTMLParser):
    """Every element of a page, in order. Raises AssertionError if elements are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()
        assert not self._open, f"<{self._open[-1].tag}> is not closed."

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, tuple(self._open))
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}, tuple(self._open)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing."
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>."
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str, class_: str = "") -> list[Element]:
        return [each for each in self.elements if each.tag == tag and (not class_ or each.has(class_))]

    def rows(self, section: str) -> list[list[str]]:
        """The texts of the cells of all tables in a section, without the heads."""
        rows = [each for each in self.all("tr") if each.is_in(section) and each.parents[-1].tag == "tbody"]
        return [
            [" ".join(cell.text.split()) for cell in self.elements if cell.parents and cell.parents[-1] is row]
            for row in rows
        ]
