"""docs/refusals.md and the sources list the same checks: message for message, with the exception that each raises."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checkout import ROOT

PAGE = ROOT / "docs" / "refusals.md"

Check = tuple[str, str]
"""Exception and message; what varies in a message is `<>`."""

EXCEPTIONS = {
    "GTS_TYPE_ERROR": "TypeError",
    "GTS_VALUE_ERROR": "ValueError",
    "GTS_RUNTIME_ERROR": "RuntimeError",
}

TEXT = r'(?:"(?:[^"\\]|\\.)*"|PRI\w+|GTS_ARGUMENT|GTS_TABLE|GTS_PROGRAM|GTS_WORKSPACE|GTS_BOUNDS_HINT)'
REFUSALS = r"GTS_REFUSE(?:_TABLE|_PROGRAM|_GRANULE|_KEPT)?|GTS_PY_REFUSE"
CALLS = rf"\b(gts_error_set|{REFUSALS}|PyErr_Format|PyErr_SetString|gts_py_fail)\("
RAISES = re.compile(rf"{CALLS}[^;\"]*?\b(GTS_\w+_ERROR|PyExc_\w+),\s*({TEXT}(?:\s*{TEXT})*)")
PARTS = dict(
    re.findall(r'#define (GTS_\w+) "(.*)"', (ROOT / "runtime" / "base" / "refuse.h").read_text(encoding="utf-8"))
)
"""How messages begin and end that refuse an argument, by the name that C gives it."""
BEGINNING_OF = {
    "GTS_REFUSE": "GTS_ARGUMENT",
    "GTS_REFUSE_TABLE": "GTS_TABLE",
    "GTS_REFUSE_PROGRAM": "GTS_PROGRAM",
    "GTS_REFUSE_GRANULE": "GTS_GRANULE_ARGUMENT",
    "GTS_REFUSE_KEPT": "GTS_KEPT_FILE",
    "GTS_PY_REFUSE": "GTS_ARGUMENT",
}
"""The beginning that these macros add themselves."""

CONVERSION = re.compile(r"%[-+0-9.*]*(?:hh|h|ll|l|z)?[a-zA-Z]|%(?=PRI)")


def checks_of_c(path: Path) -> Iterator[Check]:
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for call, exception, literals in RAISES.findall(text):
        parts = [PARTS[BEGINNING_OF[call]]] if call in BEGINNING_OF else []
        for part in re.findall(TEXT, literals):
            parts.append(PARTS.get(part) or part.strip('"'))
        message = re.sub(r"%PRI\w+", "<>", "".join(parts))
        yield EXCEPTIONS.get(exception, exception.removeprefix("PyExc_")), CONVERSION.sub("<>", message)


def text_of(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.JoinedStr)
    return "".join(str(value.value) if isinstance(value, ast.Constant) else "<>" for value in node.values)


def checks_of_planner(path: Path) -> Iterator[Check]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr == "refusal":
            yield "PlanError", f"The signatures of program '<>' contradict each other: {text_of(node.args[0])}."
        elif isinstance(node.func, ast.Name) and node.func.id == "PlanError":
            text = text_of(node.args[0])
            if not text.startswith("The signatures of program"):  # the frame of those above
                yield "PlanError", text


def checks_of_variants(path: Path) -> Iterator[Check]:
    """Those of calls, and of variants that are added. The page leaves out those of arguments that are no variants."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Raise(exc=ast.Call(func=ast.Name(id="ValueError"), args=[message])):
                if (text := text_of(message)).startswith("Program "):
                    yield "ValueError", text


def checks_of_sources() -> set[Check]:
    c = [check for path in sorted((ROOT / "runtime").rglob("*.c")) for check in checks_of_c(path)]
    planner = [
        check
        for name in (
            "stub/plan/signatures",
            "stub/plan/flattening",
            "stub/plan/connection",
            "stub/plan/bounds",
            "stub/plan/names",
            "stub/codegen/hosts/fortran",
        )
        for check in checks_of_planner(ROOT / "generator" / "gtstub" / f"{name}.py")
    ]
    return {*c, *planner, *checks_of_variants(ROOT / "generator" / "gtstub" / "programs" / "compiled.py")}


def checks_of_page() -> list[Check]:
    """Rows of its tables: message, exception, trigger."""
    rows = re.findall(r"^\| `(.*?)` \| (\w+) \| \S.* \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [(exception, re.sub(r"<[^<>]*>", "<>", message)) for message, exception in rows]


def test_the_sources_can_be_read() -> None:
    found = checks_of_sources()
    assert len(found) > 60
    assert ("TypeError", "Argument '<>' of program '<>' must have dtype '<>', not '<>'.") in found
    assert ("PlanError", "The name of <> '<>' of program '<>' is not an identifier of C.") in found


def test_every_message_of_the_runtime_is_seen() -> None:
    """The pattern above misses no call with a message, except where it passes on another one."""
    for path in sorted((ROOT / "runtime").rglob("*.c")):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        calls = re.findall(rf"{CALLS}(?!gts_|const|PyObject|kind|\(PyObject)", text)
        assert len(calls) == len(list(checks_of_c(path))), path.name


def is_one_of(page: Check, source: Check) -> bool:
    """Whether the page writes out what varies in a message of the sources, such as 'A profile' and 'Checks'."""
    return page[0] == source[0] and re.fullmatch(re.escape(source[1]).replace("<>", ".+"), page[1]) is not None


def test_every_check_is_on_the_page() -> None:
    sources, page = checks_of_sources(), set(checks_of_page())
    assert sorted(each for each in sources - page if not any(is_one_of(row, each) for row in page - sources)) == []


def test_every_check_of_the_page_exists() -> None:
    sources, page = checks_of_sources(), set(checks_of_page())
    assert sorted(row for row in page - sources if not any(is_one_of(row, each) for each in sources - page)) == []


@pytest.mark.parametrize("check", checks_of_page())
def test_message_is_a_sentence(check: Check) -> None:
    """Save those that Python itself words, which are as Python words them."""
    exception, message = check
    if re.match(r"(<>|\w+)\(\)", message):
        assert exception == "TypeError"
    else:
        assert re.match(r"[A-Z'<]", message)
        assert message.endswith(".")
