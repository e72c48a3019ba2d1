"""What the language of a host is to the generator."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from gtstub.stub.plan.model import CallPlan


@dataclasses.dataclass(frozen=True)
class HostLanguage:
    """
    A language whose hosts call stubs through a file of their own.

    `suffix` is that of the file `<name>_stub<suffix>`, which the template `stub<suffix>.j2` renders. The template gets
    the plan and, as `interface`, what `make_interface` makes of it: the names and types of the language. That raises
    PlanError for a plan with a name that the language does not allow. `filters` are filters of the template.

    `comment` is the beginning and the end of a comment in one line. `part` is a template in C that every stub includes,
    for hosts that cannot call the functions for C; it may be empty.
    """

    name: str
    suffix: str
    comment: tuple[str, str]
    make_interface: Callable[[CallPlan], Any]
    filters: Mapping[str, Callable[..., str]]
    part: str = ""
