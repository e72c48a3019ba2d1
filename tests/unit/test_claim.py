"""Who builds an entry: one of many, and another one where the first is gone."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gtstub.cache import Cache, StubArtifact
from gtstub.claim import build_once, is_claimed, wait

KEY = "prog-0123"
MANIFEST = {"name": "prog", "stub": "prog_stub.so", "library": "libprog.so"}

BUILDER = """if True:
    import sys, time
    from pathlib import Path
    from gtstub.cache import Cache
    from gtstub.claim import build_once
    root, seconds = Path(sys.argv[1]), float(sys.argv[2])
    cache = Cache(root)
    def build():
        with (root / "builds").open("a") as builds:
            builds.write("built\\n")
        print("building", flush=True)
        time.sleep(seconds)
        with cache.private_directory("prog-0123") as directory:
            for name in ("prog_stub.so", "libprog.so"):
                (directory / name).write_text(name)
            manifest = {"name": "prog", "stub": "prog_stub.so", "library": "libprog.so"}
            return cache.publish(directory, "prog-0123", manifest)
    print(build_once(cache, "prog-0123", build).path, flush=True)
"""


def start_builder(root: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BUILDER, str(root), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def said(builder: subprocess.Popen[str]) -> str:
    assert builder.stdout is not None
    return builder.stdout.readline().strip()


def publish(cache: Cache) -> StubArtifact:
    with cache.private_directory(KEY) as directory:
        for name in ("prog_stub.so", "libprog.so"):
            (directory / name).write_text(name)
        return cache.publish(directory, KEY, MANIFEST)


@pytest.fixture
def slow_builder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has claimed the entry, and does not end by itself."""
    builder = start_builder(tmp_path, 1000)
    assert said(builder) == "building"
    yield builder
    builder.kill()
    builder.communicate()


def test_sixteen_cold_processes_build_once(tmp_path: Path) -> None:
    builders = [start_builder(tmp_path, 0.2) for _ in range(16)]
    places = {builder.communicate()[0].splitlines()[-1] for builder in builders}
    assert places == {str(tmp_path / KEY)}
    assert (tmp_path / "builds").read_text() == "built\n"
    assert list((tmp_path / ".claims").iterdir()) == []


def test_threads_of_one_process_build_once(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    builds = []

    def build() -> StubArtifact:
        builds.append(1)
        time.sleep(0.1)
        return publish(cache)

    with ThreadPoolExecutor(4) as pool:
        artifacts = set(pool.map(lambda _: build_once(cache, KEY, build), range(4)))
    assert artifacts == {StubArtifact(tmp_path / KEY)}
    assert builds == [1]


def test_killed_builder_is_overtaken(tmp_path: Path, slow_builder: subprocess.Popen[str]) -> None:
    cache = Cache(tmp_path)
    assert is_claimed(cache, KEY)
    slow_builder.send_signal(signal.SIGKILL)
    slow_builder.wait()
    assert not is_claimed(cache, KEY)
    assert wait(cache, KEY) is None
    assert build_once(cache, KEY, lambda: publish(cache)) == cache.find(KEY)
    assert list((tmp_path / ".claims").iterdir()) == []


def test_failed_build_is_left_to_the_next(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def fail() -> StubArtifact:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        build_once(cache, KEY, fail)
    assert not is_claimed(cache, KEY)
    assert build_once(cache, KEY, lambda: publish(cache)) == cache.find(KEY)


def test_fork_does_not_release_the_claim(tmp_path: Path) -> None:
    code = """if True:
        import os, sys
        from pathlib import Path
        from gtstub.cache import Cache
        from gtstub.claim import build_once, is_claimed
        cache = Cache(Path(sys.argv[1]))
        class Done(Exception):
            pass
        def build():
            if (child := os.fork()) == 0:
                raise Done
            os.waitpid(child, 0)
            print(is_claimed(cache, "prog-0123"), flush=True)
            os._exit(0)
        try:
            build_once(cache, "prog-0123", build)
        except Done:
            os._exit(0)
    """
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"
