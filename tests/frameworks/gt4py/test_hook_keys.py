"""The key of a hook does not depend on what the process did before, nor on whether what it imports can be imported."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

import pytest

from gtstub.frameworks.gt4py.describe import describe
from tests.frameworks.gt4py.test_describe import SHARED, imports

__all__ = ["imports"]  # a fixture


class Config:
    """A class whose objects are copied, compared and asked for their annotations."""

    rate: int = 1

    def __init__(self) -> None:
        self.level = 2

    @functools.cached_property
    def doubled(self) -> int:
        return 2 * self.level

    @functools.cached_property
    def fourfold(self) -> int:
        return 2 * self.doubled


@dataclasses.dataclass
class Settings:
    level: int = 2

    @functools.cached_property
    def doubled(self) -> int:
        return 2 * self.level


USES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: value.__reduce_ex__(2),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "annotations": lambda value: typing.get_type_hints(type(value)),
    "signature": lambda value: inspect.signature(type(value)),
    "members": inspect.getmembers,
    "a property": lambda value: value.doubled,
    "a property by another one": lambda value: getattr(value, "fourfold", None),
    "the description": lambda value: describe([value, type(value)]),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", [Config, Settings])
def test_what_the_process_did_before_does_not_matter(imports: Any, kind: type, use: str) -> None:
    fresh = type(kind.__name__, (kind,), {"__module__": __name__})
    value, other = fresh(), fresh()

    def hook(sdfg: Any) -> Any:
        return isinstance(sdfg, fresh), value.doubled

    first = describe(hook), describe(value)
    USES[use](value)
    USES[use](other)
    assert (describe(hook), describe(value)) == first
    assert describe(other) == first[1]


@pytest.mark.parametrize("kind", [Config, Settings])
def test_a_property_that_is_set_by_hand_matters(kind: type) -> None:
    value = kind()
    first = describe(value)
    value.doubled = 7
    assert describe(value) != first
    assert vars(value) == {"level": 2, "doubled": 7}
    value.doubled = 4
    assert describe(value) == first
    value.level = 3
    assert describe(value) != first


@pytest.mark.parametrize("names", [0, 300])
@pytest.mark.parametrize(
    "statement", ["import shared; s.r = shared.RATE", "from shared import RATE; s.r = RATE", "from . import RATE"]
)
def test_imports_of_functions_with_many_names(imports: Any, names: int, statement: str) -> None:
    """More than 255 names and constants have instructions of two parts."""
    many = "".join(f"    s.name_{number} = {number}.5\n" for number in range(names))
    text = f"def hook(s):\n{many}    {statement}\n"
    first = describe(imports(hooks=text, shared=SHARED).hook)
    assert describe(imports(hooks=text, shared=SHARED).hook) == first
    changed = describe(imports(hooks=text, shared=SHARED.replace("1.0", "2.0")).hook)
    assert (changed != first) is ("shared" in statement)


@pytest.mark.parametrize(
    "failing", ["raise ImportError", "raise ValueError", "import sys\nsys.exit(3)", "def", "assert False", "1 / 0"]
)
@pytest.mark.parametrize("statement", ["import broken", "from broken import x", "from package import broken"])
def test_a_module_that_cannot_be_imported(imports: Any, failing: str, statement: str) -> None:
    text = f"def hook(s):\n    try:\n        {statement}\n    except BaseException:\n        return 1\n"
    files = {"hooks": text, "broken": failing, "package__broken": failing}
    first = describe(imports(**files).hook)
    assert describe(imports(**files).hook) == first
    assert describe(imports(**{**files, "hooks": text.replace("return 1", "return 2")}).hook) != first


def test_a_module_that_computes_its_members_and_fails(imports: Any) -> None:
    text = "def hook(s):\n    from shared import absent\n"
    first = describe(imports(hooks=text, shared="def __getattr__(name):\n    return 1 / 0\n").hook)
    assert describe(imports(hooks=text, shared="def __getattr__(name):\n    return 1 / 0\n").hook) == first
