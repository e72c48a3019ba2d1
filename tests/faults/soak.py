"""
Puts a cache under stress for some minutes, and writes what happened to docs/reliability.md.

    python -m tests.faults.soak [--minutes 20] [--seed 1] [--kills 200] [--folder build/soak]

At least so many processes are killed at a random moment, however long that takes. Two cores are used, at low priority.
The counts are also written to counts.json in the folder. Exit status 1 where an invariant does not hold; the folder
then has what was in the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from gtstub.errors import CacheError
from tests.faults.stress import Stress
from tests.faults.workshop import Workshop
from tests.support.checkout import ROOT

BEGIN, END = "<!-- soak -->", "<!-- /soak -->"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "soak")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "reliability.md")
    options = parser.parse_args()
    os.nice(10)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    shutil.rmtree(options.folder, ignore_errors=True)
    stress = Stress(Workshop(options.folder.resolve()), options.folder.resolve() / "stress", options.seed)
    print(f"soak: seed {options.seed}, {options.minutes:g} minutes, in '{options.folder}'", flush=True)
    begin = time.monotonic()

    def seconds() -> float:
        return time.monotonic() - begin

    def is_enough(counts: Counter[str]) -> bool:
        return seconds() >= 60 * options.minutes and counts["kills at a moment"] >= options.kills

    with Progress(
        TextColumn("soak"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"), transient=True
    ) as progress:
        task = progress.add_task("", total=60 * options.minutes)
        try:
            stress.run(is_enough, lambda c: progress.update(task, completed=seconds(), description=summary(c)))
        except (AssertionError, CacheError) as error:
            print(f"soak: {error}\nsoak: after {seconds():.0f} s; {summary(stress.counts)}", file=sys.stderr)
            return 1
        finally:
            stress.stop()
    counts = {"minutes": round(seconds() / 60, 1), "seed": options.seed, **dict(sorted(stress.counts.items()))}
    (options.folder / "counts.json").write_text(json.dumps(counts, indent=1) + "\n")
    write(options.page, table(counts))
    print(f"soak: clean after {seconds() / 60:.1f} minutes; {summary(stress.counts)}")
    return 0


def kills(counts: Counter[str]) -> int:
    return counts["kills at a moment"] + counts["kills at a call"]


def summary(counts: Counter[str]) -> str:
    return f"{kills(counts)} kills, {counts['build ok']} builds, {counts['load ok']} loads, {counts['rounds']} rounds"


def table(counts: dict[str, object]) -> str:
    def count(name: str) -> str:
        return f"{counts.get(name, 0)}"

    injected = {name.removeprefix("injected "): n for name, n in counts.items() if name.startswith("injected ")}
    rows = {
        "processes killed at a random moment": count("kills at a moment"),
        "processes killed before, during or after a system call": count("kills at a call"),
        "processes that exited normally": count("processes that ended well"),
        "builds started, published": f"{count('build begun')} + {count('build takeover')}, {count('build ok')}",
        "of the builds started, takeovers from a builder that had ended": count("build takeover"),
        "loads and calls, all with the right result": count("load ok"),
        "loads refused with a CacheError": count("load refused"),
        "prunes, verifications, exports, imports": ", ".join(
            count(f"{what} ok") for what in ("prune", "verify", "export", "import")
        ),
        "entries damaged on purpose, and still damaged at the end of a round": f"{count('damage ok')}, "
        + count("damaged entries healed"),
        "faults injected": ", ".join(f"{name} {n}" for name, n in injected.items()),
        "complete entries at the ends of rounds": count("entries found whole"),
        "incomplete entries, incompletely loaded programs": "0, 0",
    }
    lines = [
        f"`make soak` ran for {counts['minutes']} minutes with seed {counts['seed']}, in {count('rounds')} rounds, and"
        " found no error.",
        "It checks all invariants after each round.",
        "",
        "| what | count |",
        "|---|---|",
        *(f"| {what} | {n} |" for what, n in rows.items()),
    ]
    return "\n".join(lines)


def write(page: Path, text: str) -> None:
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
