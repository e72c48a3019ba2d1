"""
A process that faults are done to: it has entries built once, loads them, calls them, and looks at the results.

    python builder.py ROOT PARTS NUMBERS [BUILDS]

PARTS/3 holds the compiled parts of a program that adds 3; NUMBERS, as '0,3', says which are wanted. For each build a
line is appended to the file BUILDS. It prints the entries' paths. A CacheError ends it with exit status 6 and its text
on stderr, as it ends the CLI.
"""

from __future__ import annotations

import os
import shutil
import sys
from array import array
from functools import partial
from pathlib import Path

from gtstub.entries.building.waiting import build_once
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.key import make_key
from gtstub.entries.cache.manifest import Manifest
from gtstub.entries.cache.store import Cache
from gtstub.errors import CacheError, unwritable

MANIFEST = Manifest("prog", "prog_stub.so", "libprog.so")


def ingredients(number: int) -> dict[str, object]:
    return {"static": {"number": number}}


def key_of(number: int) -> str:
    return make_key("prog", ingredients(number))


def build(cache: Cache, parts: Path, number: int, builds: Path | None) -> Entry:
    with cache.private_directory(key_of(number)) as private:
        try:  # What compilers write where gtstub is used.
            shutil.copytree(parts / str(number), private / "entry")
        except (OSError, shutil.Error) as error:
            raise unwritable(private, OSError(0, "a part could not be copied")) from error
        if builds is not None:
            line = os.open(builds, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(line, f"{number}\n".encode())
            os.close(line)
        made_of = MANIFEST._replace(ingredients=ingredients(number))
        return cache.publish(private / "entry", key_of(number), made_of)


def call(artifact: Entry, number: int) -> None:
    """Raises AssertionError unless the program does what the one of this number does."""
    out = array("d", [0, 0, 0])
    artifact.load()(array("d", [1, 2, 3]), 10.0, out)
    assert out.tolist() == [10.0 + number, 20.0 + number, 30.0 + number], out


def main(root: str, parts: str, numbers: str, builds: str | None = None) -> None:
    cache = Cache(Path(root))
    file = None if builds is None else Path(builds)
    for number in map(int, numbers.split(",")):
        artifact = build_once(cache, key_of(number), partial(build, cache, Path(parts), number, file))
        call(artifact, number)
        print(artifact.path)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except CacheError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
