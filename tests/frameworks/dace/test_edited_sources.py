"""A DaCe program whose source has changed since its import is refused, because Python runs its old code."""

import importlib
import linecache
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from gtstub.errors import SourceError
from gtstub.frameworks import sources

TEXT = """
import dace

FACTOR = 2.0

def shifted(x):
    return x + FACTOR

@dace.program
def body(a: dace.float64[3]):
    a[:] = shifted(a) * 2.0

class Model:
    @dace.method
    def run(self, a: dace.float64[3]):
        a[:] = a + FACTOR

def make(k):
    @dace.program
    def inner(a: dace.float64[3]):
        a[:] = a + k
    return inner

two = (lambda x: x + 1.0), (lambda x: x + 2.0)
"""


class Place:
    """The file of a module."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "edited_model.py"

    def load(self, text: str = TEXT) -> ModuleType:
        self.file.write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module("edited_model")

    def edit(self, before: str, after: str) -> None:
        text = self.file.read_text()
        assert text.count(before) == 1
        self.file.write_text(text.replace(before, after))
        stat = self.file.stat()
        os.utime(self.file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))  # so that `linecache` sees it


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield Place(tmp_path)
    sys.modules.pop("edited_model", None)


def compiled(program: Any) -> list[float]:
    """What a program makes of zeros. It is parsed anew."""
    a = np.zeros(3)
    gtstub.program(program)(a)
    return list(a)


def check_refused(program: Any, function: str, **options: Any) -> None:
    with pytest.raises(SourceError, match=f"the source of '{re.escape(function)}' at .* has changed since the import"):
        gtstub.program(program, **options)(np.zeros(3))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("shifted(a) * 2.0", "shifted(a) * 3.0"),
        ("shifted(a) * 2.0", "shifted(a) * 2"),
        ("def body(a", "def other(a"),
        ("@dace.program\ndef body", "# more\n@dace.program\ndef body"),
        ("@dace.program\ndef body", "@dace.program\ndef body("),
        (TEXT, "\n"),
    ],
)
def test_an_edited_program_is_refused(place: Place, before: str, after: str) -> None:
    module = place.load()
    place.edit(before, after)
    check_refused(module.body, "body")
    check_refused(module.body, "body", fallback=True)


def test_an_edited_function_that_a_program_calls_is_refused(place: Place) -> None:
    module = place.load()
    assert compiled(module.body) == [4.0] * 3
    place.edit("return x + FACTOR", "return x - FACTOR")
    check_refused(module.body, "shifted")
    check_refused(module.body, "shifted", fallback=True)
    assert compiled(module.make(1.0)) == [1.0] * 3


def test_edited_methods_and_inner_functions_are_refused(place: Place) -> None:
    module = place.load()
    model, inner = module.Model(), module.make(3.0)
    assert compiled(inner) == [3.0] * 3
    place.edit("a[:] = a + FACTOR", "a[:] = a - FACTOR")
    program = gtstub.program(vars(module.Model)["run"]).__get__(model, module.Model)
    with pytest.raises(SourceError, match=re.escape("'Model.run'")):
        program(np.zeros(3))
    place.edit("a[:] = a + k", "a[:] = a - k")
    check_refused(inner, "make.<locals>.inner")


def test_an_edit_that_changes_no_code_is_accepted(place: Place) -> None:
    module = place.load()
    place.edit("return x + FACTOR", "return x + FACTOR  # the factor")
    place.edit("FACTOR = 2.0", "FACTOR = 5.0")
    assert compiled(module.body) == [4.0] * 3
    place.edit("two = ", "three = ")
    assert compiled(module.body) == [4.0] * 3


def test_an_edit_before_a_recompilation_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    module = place.load()
    program = gtstub.program(module.body, recompile=True)
    program(np.zeros(3))
    place.edit("shifted(a) * 2.0", "shifted(a) * 3.0")
    program(np.zeros(3))
    monkeypatch.setattr(module, "FACTOR", 3.0)
    with pytest.raises(SourceError):
        program(np.zeros(3))


def test_a_module_that_is_imported_again_is_accepted(place: Place) -> None:
    old = place.load()
    place.edit("shifted(a) * 2.0", "shifted(a) * 3.0")
    program = old.body
    assert compiled(importlib.reload(old).body) == [6.0] * 3
    check_refused(program, "body")


# --- Sources that are no files ----------------------------------------------------------------------------------------


def cell(name: str, text: str, names: dict[str, Any]) -> dict[str, Any]:
    """Runs a cell of a notebook, as IPython does."""
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    exec(compile(text, name, "exec"), names)
    return names


def test_cells_of_notebooks() -> None:
    names: dict[str, Any] = {}
    cell("<ipython-input-1>", TEXT, names)
    assert compiled(names["body"]) == [4.0] * 3
    old = names["body"]
    cell("<ipython-input-2>", TEXT.replace("* 2.0", "* 3.0"), names)
    assert compiled(names["body"]) == [6.0] * 3
    assert compiled(old) == [4.0] * 3
    cell("<ipython-input-1>", TEXT.replace("* 2.0", "* 5.0"), names)  # under the same name
    assert compiled(names["body"]) == [10.0] * 3
    check_refused(old, "body")


def test_futures_of_the_code_that_executes_a_text() -> None:
    text = "import dace\n@dace.program\ndef body(a: 'dace.float64[3]'):\n    a[:] = a + 1.0\n"
    names: dict[str, Any] = {}
    executing = "from __future__ import annotations\nexec(compile(text, '<future>', 'exec'), names)"
    linecache.cache["<future>"] = len(text), None, text.splitlines(keepends=True), "<future>"
    exec(executing, {"text": text, "names": names})
    sources.check_source(names["body"].f, "body")


def test_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "models.zip", "w") as archive:
        archive.writestr("zipped_model.py", TEXT)
    monkeypatch.syspath_prepend(tmp_path / "models.zip")
    module = importlib.import_module("zipped_model")
    assert compiled(module.body) == [4.0] * 3


def test_what_has_no_text_is_not_refused(place: Place) -> None:
    names: dict[str, Any] = {}
    exec("def f(x):\n    return x\n", names)
    sources.check_source(names["f"], "f")
    sources.check_source(len, "f")
    module = place.load()
    for each in module.two:
        sources.check_source(each, "f")
    place.file.unlink()
    sources.check_source(module.shifted, "f")


def test_texts_that_another_loader_compiles_otherwise_are_not_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pytest does with assertions."""
    module = place.load()
    place.edit("return x + FACTOR", "return x - FACTOR")
    monkeypatch.setattr(module, "__loader__", object())
    sources.check_source(module.shifted, "f")
    monkeypatch.undo()
    with pytest.raises(SourceError):
        sources.check_source(module.shifted, "f")


def test_a_file_that_is_older_than_the_process_is_not_compiled(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    module = place.load()
    place.edit("return x + FACTOR", "return x - FACTOR")
    started = sources._started() + 10**9
    monkeypatch.setattr(sources, "_started", lambda: started)
    sources.check_source(module.shifted, "f")


@gtstub.program
@dace.program
def asserts(a: dace.float64[3]):
    assert dace.float64 is not None  # which pytest rewrites
    a[:] = a + 1.0


def test_programs_in_files_whose_assertions_pytest_rewrites() -> None:
    a = np.zeros(3)
    Path(__file__).touch()
    asserts(a)
    assert list(a) == [1.0] * 3
