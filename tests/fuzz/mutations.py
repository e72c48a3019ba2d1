"""Random changes of texts and of JSON documents, made by a random number generator, so that a seed repeats them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

DIGITS = "a number of 5000 digits"
"""Stands for such a number, which Python refuses to print."""

SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 0.5, -0.0, 1e308, float("inf"), float("nan"), DIGITS),
    *(2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), -(2**63) + 1, 2**64, 10**400, -(10**400)),
    *("", " ", "int", "self", "x", "x_0", "n\n", "\x1b[2J", "\x9b", "\0", "\ud800", "ä", "²", "a" * 300, "../x"),
    *(
        "/bin/true",
        "/dev/zero",
        "..",
        ".",
        "manifest.json",
        "float64",
        "int32",
        "gts_x",
        "nan",
        "%s%n",
        '"; }',
        "$ORIGIN",
    ),
    *([], {}, [None], {"": None}),
)


def nested(depth: int, inner: Any) -> Any:
    for number in range(depth):
        inner = [inner] if number % 2 else {"x": inner}
    return inner


def tuples(depth: int) -> Any:
    """The type of nested tuples in a program signature."""
    inner: Any = {"kind": "scalar", "dtype": "int32"}
    for _ in range(depth):
        inner = {"kind": "tuple", "elements": [inner]}
    return inner


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Each object or array in a document, with each of its keys or indices."""
    found, pending = [], [document]
    while pending:
        outer = pending.pop()
        keys = list(outer) if isinstance(outer, dict) else range(len(outer))
        for key in keys:
            found.append((outer, key))
            if isinstance(outer[key], dict | list):
                pending.append(outer[key])
    return found


def change_document(random: Random, document: Any) -> Any:
    """A copy of a JSON object with one to three changes."""
    document = copy.deepcopy(document)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = _places(document)
        if not places:
            break
        outer, key = random.choice(places)
        if random.random() < 0.01:
            depth = random.choice((3, 50, 99, 300))
            outer[key] = random.choice((nested(depth, 1), tuples(depth)))
            break  # The library copies nothing that is nested so deeply.
        match random.randrange(8):
            case 0:
                del outer[key]
            case 1 if isinstance(outer, list):
                outer.insert(key, copy.deepcopy(outer[key]))
            case 2 if isinstance(outer, list):
                outer.reverse()
            case 3:
                other, other_key = random.choice(places)
                outer[key] = copy.deepcopy(other[other_key])
            case 4 if isinstance(outer, dict):
                outer[str(random.choice(SCALARS))] = outer.pop(key)
            case 5 if isinstance(outer[key], int):
                outer[key] += random.choice((-1, 1, 2**31, 2**63))
            case _:
                outer[key] = copy.deepcopy(random.choice(SCALARS))
    return document


def text_of(document: Any) -> bytes:
    return json.dumps(document).replace(f'"{DIGITS}"', "9" * 5000).encode()


def change_bytes(random: Random, content: bytes, words: Sequence[bytes] = ()) -> bytes:
    """One to four changes: bits, pieces that are cut out, doubled or moved, and `words` that are put in."""
    changed = bytearray(content)
    changes: list[Callable[[int, int], None]] = [
        lambda begin, _: changed.__setitem__(begin, changed[begin] ^ 1 << random.randrange(8)),
        lambda begin, _: changed.__setitem__(begin, random.randrange(256)),
        lambda begin, end: changed.__delitem__(slice(begin, end)),
        lambda begin, end: changed.__setitem__(slice(begin, begin), changed[begin:end]),
        lambda begin, end: changed.__setitem__(slice(begin, end), random.choice(words) if words else b"\0"),
        lambda begin, _: changed.__delitem__(slice(begin, None)),
    ]
    for _ in range(random.randint(1, 4)):
        if changed:
            begin = random.randrange(len(changed))
            random.choices(changes, (4, 4, 3, 3, 4, 1))[0](begin, begin + random.choice((1, 2, 8, 64, 512)))
    return bytes(changed)


def change_lines(random: Random, text: str) -> str:
    """One to three changes of the words, separated by tabs, of a recording's index, or of its lines."""
    lines = [line.split("\t") for line in text.split("\n")]
    for _ in range(random.randint(1, 3)):
        line = random.choice(lines)
        match random.randrange(8):
            case 0:
                lines.remove(line)
            case 1:
                lines.insert(random.randrange(len(lines)), list(line))
            case 2:
                line.pop(random.randrange(len(line)))
            case 3:
                line.insert(random.randrange(len(line) + 1), random.choice(random.choice(lines)))
            case 4:  # everywhere
                old, new = random.choice(line), str(random.choice(SCALARS))
                lines = [[new if word == old else word for word in each] for each in lines]
            case _:
                word = random.choice((*SCALARS, random.choice(random.choice(lines))))
                line[random.randrange(len(line))] = "9" * 5000 if word == DIGITS else str(word)
        lines = [line for line in lines if line] or [[""]]
    return "\n".join("\t".join(line) for line in lines)
