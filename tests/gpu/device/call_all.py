"""Calls five programs of icon4py on a GPU, for compute-sanitizer: python -m tests.gpu.device.call_all"""

from __future__ import annotations

import gtstub
from tests.gpu.device import arrays, programs


def main() -> None:
    gpu = arrays.find()
    calls = {name: programs.prepare(gpu, entry) for name, entry in programs.build("GPU").items()}
    stream = gpu.stream()
    with gtstub.stream(stream):
        for _ in range(2):
            for call in calls.values():
                call()
        for name, call in calls.items():
            print(name, f"{len(call.results(gpu))} fields")


if __name__ == "__main__":
    main()
