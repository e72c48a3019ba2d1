"""What functions of Python consist of, read from their code objects, which are equal in every process."""

from __future__ import annotations

import contextlib
import dis
import hashlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path

from gtstub.frameworks.gt4py.origin import is_known_module


def text(code: types.CodeType) -> str:
    """The source, which DaCe parses for some functions; empty if it is unavailable."""
    try:
        return textwrap.dedent(inspect.getsource(code))
    except (OSError, TypeError):
        return ""


def _with_inner(code: types.CodeType) -> list[types.CodeType]:
    """A code object, those of the functions inside it, and those of its texts that may be for eval() or exec()."""
    found = [code]
    for each in found:
        found += [inner for inner in each.co_consts if isinstance(inner, types.CodeType)]
    if not {"eval", "exec"}.isdisjoint(name for each in found for name in each.co_names):
        for text_ in [const for each in found for const in each.co_consts if isinstance(const, str)]:
            with contextlib.suppress(SyntaxError, ValueError):  # It is no program.
                found += _with_inner(compile(text_.strip(), "<text>", "exec"))
    return found


def names(code: types.CodeType) -> frozenset[str]:
    """The names of variables and attributes in a function."""
    return frozenset(name for each in _with_inner(code) for name in each.co_names)


def variables(code: types.CodeType) -> frozenset[str]:
    """The names of global variables and builtins in a function."""
    found = (each for inner in _with_inner(code) for each in dis.get_instructions(inner))
    return frozenset(each.argval for each in found if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"))


def words(code: types.CodeType) -> frozenset[str]:
    """The names in a function, and its texts, which may be names for getattr(), or dotted ones for attrgetter()."""
    texts = (each.split(".") for inner in _with_inner(code) for each in inner.co_consts if isinstance(each, str))
    return names(code).union(*(parts for parts in texts if all(part.isidentifier() for part in parts)))


def imported(function: types.FunctionType) -> Iterator[types.ModuleType]:
    """
    The user's modules that statements inside a function import, or import_module() by a constant name. They are
    imported here, if they exist. Also those that it may find by a constant name in `sys.modules`.
    """
    for code in _with_inner(function.__code__):
        if "modules" in code.co_names:
            for module in (sys.modules.get(name) for name in code.co_consts if isinstance(name, str)):
                if module is not None and not is_known_module(module):
                    yield module
        if not {"import_module", "__import__"}.isdisjoint((*code.co_names, *code.co_varnames)):
            for text_ in filter(lambda each: isinstance(each, str), code.co_consts):
                if all(part.isidentifier() for part in text_.split(".")):
                    yield from _modules(text_, ())
        found = [each for each in dis.get_instructions(code) if each.opname != "EXTENDED_ARG"]
        for index, each in enumerate(found):
            if each.opname != "IMPORT_NAME":
                continue
            level, members = found[index - 2].argval, found[index - 1].argval or ()
            name = str(each.argval)
            if level:
                try:
                    name = importlib.util.resolve_name(
                        "." * level + name, function.__globals__.get("__package__") or ""
                    )
                except ImportError:  # The function may provide for this itself.
                    continue
            yield from _modules(name, members)


def binary(module: types.ModuleType) -> str:
    """The digest of a module that is not written in Python; empty for other modules, whose members are read."""
    file = getattr(module, "__file__", None) or ""
    if not file.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
        return ""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _modules(name: str, members: tuple[str, ...]) -> Iterator[types.ModuleType]:
    parts = name.split(".")
    names_ = [".".join(parts[: count + 1]) for count in range(len(parts))]
    for one in names_:
        module = _import(one)
        if module is None or is_known_module(module):
            return
        yield module
    for member in members:
        if not _has(module, member) and (inner := _import(f"{name}.{member}")) is not None:
            yield inner


def _has(module: types.ModuleType | None, member: str) -> bool:
    try:
        return hasattr(module, member)
    except Exception:  # of a function `__getattr__` of the module
        return False


def _import(name: str) -> types.ModuleType | None:
    if name in sys.modules:
        return sys.modules[name]
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit):  # The function may provide for this itself, or never come so far.
        return None
