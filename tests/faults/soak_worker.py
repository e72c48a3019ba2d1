"""
A process of the soak: builds, loads, prunes, verifies, exports, imports and damages entries of a few keys, at random.

    python soak_worker.py FOLDER PARTS SEED ACTIONS

FOLDER/cache is the cache. Every action is a line "<what> <how it ended>" in FOLDER/actions, written when it has ended.
Anything but success or a CacheError is a defect: it ends the process with a traceback.
"""

from __future__ import annotations

import faulthandler
import io
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

from gtstub.entries.building.waiting import build_once
from gtstub.entries.cache import bundle
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.inventory import inventory
from gtstub.entries.cache.prune import remove, unwanted
from gtstub.entries.cache.store import Cache
from gtstub.errors import CacheError
from tests.faults.builder import build, call, key_of

NUMBERS = 3
"""Programs; that of number `invariants.LAST` is not among them."""


class Worker:
    def __init__(self, folder: Path, parts: Path, seed: int) -> None:
        self._cache = Cache(folder / "cache")
        self._folder = folder
        self._parts = parts
        self._random = random.Random(seed)

    def act(self) -> None:
        actions: dict[Callable[[], None], int] = {
            self.load: 12,
            self.prune: 2,
            self.verify: 2,
            self.export: 1,
            self.import_: 1,
            self.damage: 1,
        }
        (action,) = self._random.choices(list(actions), list(actions.values()))
        name = action.__name__.rstrip("_")
        try:
            action()
        except CacheError as error:
            self._note(f"{name} refused: {error}")
        else:
            self._note(f"{name} ok")

    def load(self) -> None:
        number = self._random.randrange(NUMBERS)

        def build_here() -> Entry:
            claims = [path.suffix for path in (self._cache.root / ".claims").glob(f"{key_of(number)}.*")]
            self._note("build takeover" if len(claims) > 1 else "build begun")
            artifact = build(self._cache, self._parts, number, None)
            self._note("build ok")
            return artifact

        call(build_once(self._cache, key_of(number), build_here), number)

    def prune(self) -> None:
        for item in unwanted(inventory(self._cache), max_size=self._random.choice([0, 50_000, 100_000])):
            remove(self._cache, item)

    def verify(self) -> None:
        for entry in self._cache.entries():
            entry.verify()

    def export(self) -> None:
        number = self._random.randrange(NUMBERS)
        packed = io.BytesIO()
        bundle.pack(Entry(self._cache.root / key_of(number)), packed)
        try:
            self._bundle(number).write_bytes(packed.getvalue())
        except OSError as error:  # What the CLI says so.
            raise CacheError(str(error)) from error

    def import_(self) -> None:
        try:
            packed = self._bundle(self._random.randrange(NUMBERS)).read_bytes()
        except FileNotFoundError:
            raise CacheError("Nothing was exported yet.") from None
        bundle.unpack(self._cache, io.BytesIO(packed))

    def damage(self) -> None:
        """One bit of one file flips, in a copy that takes its place: who has the file mapped goes on."""
        path = self._cache.root / key_of(self._random.randrange(NUMBERS))
        aside = self._folder / f"aside-{os.getpid()}"
        try:
            directory = os.open(path, os.O_DIRECTORY)  # It may get another name, and its name another entry.
        except OSError as error:
            raise CacheError(str(error)) from error
        try:
            opened = Path(f"/proc/self/fd/{directory}")
            name = self._random.choice(sorted(opened.iterdir())).name
            content = bytearray((opened / name).read_bytes())
            content[self._random.randrange(len(content))] ^= 1 << self._random.randrange(8)
            self._note(f"damaged {os.fstat(directory).st_ino}")
            aside.write_bytes(content)
            os.rename(aside, name, dst_dir_fd=directory)
        except (OSError, IndexError, ValueError) as error:  # It is being taken apart.
            raise CacheError(str(error)) from error
        finally:
            os.close(directory)

    def _bundle(self, number: int) -> Path:
        return self._folder / f"{number}.tar.gz"

    def _note(self, line: str) -> None:
        file = os.open(self._folder / "actions", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, f"{line}\n".encode())
        os.close(file)


def main(folder: str, parts: str, seed: str, actions: str) -> None:
    worker = Worker(Path(folder), Path(parts), int(seed))
    for _ in range(int(actions)):
        worker.act()


if __name__ == "__main__":
    faulthandler.enable()
    main(*sys.argv[1:])
