"""
icon4py's diffusion on a tiny torus, whose `run` is a step of gtstub after its first call.

    make captured-diffusion    builds what is not there yet, compares with the granule bit for bit, and shows the times
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from rich.console import Console

from examples.captured_diffusion.captured import Captured
from examples.granule.granules import Diffusion, fields
from examples.granule.torus import Torus
from examples.granule.ways import Gtstub, descriptor

LEVELS = 10
STEPS = 10
ROUNDS = 50

console = Console(highlight=False)


def least_microseconds(call: Callable[[], None]) -> float:
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e6


def main() -> int:
    plain, wrapped = (Diffusion(Torus(LEVELS), descriptor(Gtstub), Gtstub.setup_program) for _ in range(2))
    Gtstub.wait_for_compilation()
    wrapped.granule.run = captured = Captured(wrapped.granule.run)
    for number in range(STEPS):
        plain.step(number)
        wrapped.step(number)
        for name, array in fields(plain).items():
            if array.tobytes() != fields(wrapped)[name].tobytes():
                console.print(f"[red]Field '{name}' differs after step {number}.[/red]")
                return 1
    for reason in captured.refusals:
        console.print(reason)
    console.print(str(captured.steps[-1]), soft_wrap=True)
    console.print(f"{STEPS} steps: the same bits in {len(fields(plain))} fields.")
    console.print(
        f"A step takes {least_microseconds(lambda: plain.step(1)):.1f} µs as icon4py runs it, and "
        f"{least_microseconds(lambda: wrapped.step(1)):.1f} µs captured."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
