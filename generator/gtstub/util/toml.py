"""Reading of TOML files, with line numbers for error messages."""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gtstub.errors import ConfigError
from gtstub.util.suggest import did_you_mean


def read_toml(file: Path) -> tuple[dict[str, Any], Places]:
    """A document and the lines of its keys. Raises ConfigError if the file is not TOML, OSError if it is unreadable."""
    try:
        text = file.read_bytes().decode().replace("\r\n", "\n")
        data = tomllib.loads(text)
    except UnicodeDecodeError:
        raise ConfigError(f"'{file}' is not TOML: it is not UTF-8 text.") from None
    except tomllib.TOMLDecodeError as error:
        reason, _, where = str(error).removesuffix(")").rpartition(" (at ")
        raise ConfigError(f"'{file}', {where}: {reason}.") from None
    return data, Places(file, _lines(text))


@dataclasses.dataclass(frozen=True)
class Places:
    """The line of each key of a file, by the path of the key. A table in an array has its index in the path."""

    file: Path
    lines: Mapping[tuple[str, ...], int]

    def refusal(self, path: tuple[str, ...], what: str) -> ConfigError:
        return ConfigError(f"'{self.file}', line {self.lines[path]}: {what}")

    def table(self, path: tuple[str, ...], value: Any) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self.refusal(path, f"'{'.'.join(path)}' must be a table, but is {value!r}.")
        return value

    def refuse_unknown(self, path: tuple[str, ...], what: str, known: Sequence[str]) -> None:
        if path[-1] not in known:
            raise self.refusal(path, f"There is no {what} '{path[-1]}'.{did_you_mean(path[-1], known)}")


@functools.cache  # because a model reads the same tables for each of its programs
def _lines(text: str) -> dict[tuple[str, ...], int]:
    """
    The line of each key of a TOML document, by its path.

    tomllib reports no lines. This function therefore parses the document repeatedly, each time with one more line, and
    assigns new keys to the added line. A text that ends within a value of several lines does not parse, so such a key
    gets the first of the lines that were added since the last successful parse.
    """
    lines: dict[tuple[str, ...], int] = {}
    start, read = 1, ""
    for number, line in enumerate(text.split("\n"), 1):
        read += line + "\n"
        try:
            data = tomllib.loads(read)
        except tomllib.TOMLDecodeError:
            continue
        for path in _paths((), data):
            lines.setdefault(path, start)
        start = number + 1
    return lines


def _paths(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, value in table.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from _paths((*path, name), value)
        elif isinstance(value, list):
            elements = {str(number): element for number, element in enumerate(value) if isinstance(element, dict)}
            yield from _paths((*path, name), elements)
