"""The pages: the templates in templates/report/, filled with a report. Equal reports give equal bytes."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jinja2

from gtstub._version import __version__
from gtstub.install import TEMPLATES
from gtstub.tools.memory.memory import Transient
from gtstub.tools.profiling.model import duration, percentage
from gtstub.tools.report.build_chart import COLORS, BuildChart
from gtstub.tools.report.flow import flow
from gtstub.tools.report.model import Comparison, ProgramReport, Unreadable
from gtstub.tools.report.picture import BOX_HEIGHT, BOX_WIDTH, picture
from gtstub.tools.report.wording import WHEN, byte_size, count, short_digests
from gtstub.tools.rules import RULES
from gtstub.util.legend import Legend
from gtstub.util.visible import visible

SECTIONS = {
    "timers": "Timers",
    "memory": "Memory",
    "kernels": "Kernels",
    "findings": "Findings",
    "flow": "Arguments and slots",
    "contracts": "Contracts",
    "constants": "Compiled in",
    "ingredients": "Ingredients",
}
"""The titles of a page's sections by their ids, in order: first what a call costs, then how it is passed."""

NOTHING: Mapping[str, Any] = MappingProxyType({})

ON_HEAP = ("init", "call", "caller")
"""Transients that are listed. What is on the stack or not allocated is only counted."""


def program_page(report: ProgramReport) -> str:
    """The page of one entry."""
    transients = () if report.memory is None else report.memory.transients
    return _render(
        "page.html.j2",
        report=report,
        sections={name: SECTIONS[name] for name in SECTIONS if name != "timers" or _has_timers(report)},
        flow=flow(report),
        picture=picture(report.kernels),
        box=(BOX_WIDTH, BOX_HEIGHT),
        heap=_alike([each for each in transients if each.allocated in ON_HEAP]),
        heaped=sum(each.allocated in ON_HEAP for each in transients),
        others=sum(each.allocated not in ON_HEAP for each in transients),
        demands={rule.key: rule.demand for rule in RULES},
        letters=_letters(report),
    )


def _letters(report: ProgramReport) -> dict[str, dict[str, str]]:
    """The conditions that a page would repeat, each with its letter, for the sections that have some."""
    conditions = {
        "kernels": [where for kernel in report.kernels for where in kernel.where],
        "contracts": [text for leaf in report.leaves for use in leaf.used for text in use.conditions],
    }
    counts = Counter(itertools.chain(*conditions.values()))
    legend = Legend(*counts)
    found = {text: legend.letter(text) for text in counts if counts[text] > 1}
    return {name: {text: found[text] for text in found if text in texts} for name, texts in conditions.items()}


def _has_timers(report: ProgramReport) -> bool:
    """Whether a profile was given."""
    return bool(report.timers) or "timers" in report.absent


def _alike(transients: Sequence[Transient]) -> list[tuple[Transient, list[str]]]:
    """Transients that differ in nothing but their names, and the names."""
    names: dict[Transient, list[str]] = {}
    for each in transients:
        names.setdefault(dataclasses.replace(each, name=""), []).append(each.name)
    return list(names.items())


def index_page(
    reports: Sequence[ProgramReport],
    unreadable: Sequence[Unreadable],
    latest: BuildChart | None = None,
    *,
    built: Mapping[str, float] = NOTHING,
    pages: Mapping[str, str] = NOTHING,
) -> str:
    """
    The page of a cache, with a row for each entry, and the chart of its latest build if it is known. By the keys of
    entries, `built` are times in seconds since 1970, and `pages` the addresses of their pages.
    """
    return _render(
        "index.html.j2",
        reports=reports,
        unreadable=unreadable,
        chart=latest,
        colors=COLORS,
        built={key: time.strftime("%Y-%m-%d %H:%M", time.gmtime(when)) for key, when in built.items()},
        pages=pages,
    )


def comparison_page(old: ProgramReport, new: ProgramReport, comparison: Comparison) -> str:
    """The page of two entries, with what differs."""
    return _render("compare.html.j2", old=old, new=new, comparison=comparison)


def _render(template: str, **context: Any) -> str:
    return _environment().get_template(template).render(version=__version__, **context)


@functools.cache
def _environment() -> jinja2.Environment:
    """Every value is escaped, and its marks of direction are made visible. Undefined names are errors."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES / "report"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    made.filters |= {
        "allocated": WHEN.__getitem__,
        "byte_size": byte_size,
        "count": count,
        "duration": duration,
        "percentage": percentage,
        "short_digests": short_digests,
        "without": lambda source, path: source.removesuffix(f" of '{path}'"),
        "within": lambda path, group: path.removeprefix(f"{group}."),
    }
    return made
