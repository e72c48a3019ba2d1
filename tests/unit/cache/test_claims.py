"""Who builds an entry: one of many, and another one where the first is gone."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from gtstub.entries.building.waiting import Waiter, Watch, build_once
from gtstub.entries.cache import claims
from gtstub.entries.cache.cleanup import sweep
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.process import Process, this_process
from gtstub.entries.cache.store import Cache
from gtstub.entries.trust import MARKER
from gtstub.errors import CacheError, ConfigError
from tests.support.entries import publish

KEY = "prog-0123"

BUILDER = """if True:
    import sys, time
    from pathlib import Path
    from gtstub.entries.cache.manifest import Manifest
    from gtstub.entries.cache.store import Cache
    from gtstub.entries.building.waiting import build_once
    root = Path(sys.argv[1])
    cache = Cache(root)
    def build():
        with (root / "builds").open("a") as builds:
            builds.write("built\\n")
        print("building", flush=True)
        while not (root / "go").exists():
            time.sleep(0.01)
        with cache.private_directory("prog-0123") as directory:
            for name in ("prog_stub.so", "libprog.so"):
                (directory / name).write_text(name)
            return cache.publish(directory, "prog-0123", Manifest("prog", "prog_stub.so", "libprog.so"))
    print("started", flush=True)
    print(build_once(cache, "prog-0123", build).path, flush=True)
"""


def start_builder(root: Path) -> subprocess.Popen[str]:
    """A process that builds, or waits for who does; its build ends when there is a file 'go'."""
    command = [sys.executable, "-c", BUILDER, str(root)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def said(builder: subprocess.Popen[str]) -> str:
    assert builder.stdout is not None
    return builder.stdout.readline().strip()


@pytest.fixture
def slow_builder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has claimed the entry, and does not end by itself."""
    builder = start_builder(tmp_path)
    assert [said(builder), said(builder)] == ["started", "building"]
    yield builder
    builder.kill()
    builder.communicate()


def test_sixteen_cold_processes_build_once(tmp_path: Path) -> None:
    builders = [start_builder(tmp_path) for _ in range(16)]
    assert {said(builder) for builder in builders} == {"started"}
    (tmp_path / "go").touch()
    places = {builder.communicate()[0].splitlines()[-1] for builder in builders}
    assert places == {str(tmp_path / KEY)}
    assert (tmp_path / "builds").read_text() == "built\n"
    assert list((tmp_path / ".claims").iterdir()) == []


def test_threads_of_one_process_build_once(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    builds = []

    def build() -> Entry:
        builds.append(1)
        time.sleep(0.1)
        return publish(cache, KEY)

    with ThreadPoolExecutor(4) as pool:
        artifacts = set(pool.map(lambda _: build_once(cache, KEY, build), range(4)))
    assert artifacts == {Entry(tmp_path / KEY)}
    assert builds == [1]


def test_killed_builder_is_overtaken(tmp_path: Path, slow_builder: subprocess.Popen[str]) -> None:
    cache = Cache(tmp_path)
    assert not Watch(cache.root, KEY).is_free()
    slow_builder.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, slow_builder.pid, os.WEXITED | os.WNOWAIT)
    assert Watch(cache.root, KEY).is_free(), "That its parent has not asked for its end does not keep it alive."
    slow_builder.wait()
    assert Watch(cache.root, KEY).is_free()
    with ExitStack() as held:
        assert Waiter(cache, KEY, [Watch(cache.root, KEY)]).wait(held) is None
    assert build_once(cache, KEY, lambda: publish(cache, KEY)) == cache.find(KEY)
    assert list((tmp_path / ".claims").iterdir()) == []


def test_failed_build_is_left_to_the_next(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def fail() -> Entry:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        build_once(cache, KEY, fail)
    assert Watch(cache.root, KEY).is_free()
    assert build_once(cache, KEY, lambda: publish(cache, KEY)) == cache.find(KEY)


def test_fork_does_not_release_the_claim(tmp_path: Path) -> None:
    code = """if True:
        import os, sys
        from pathlib import Path
        from gtstub.entries.building.waiting import Watch, build_once
        from gtstub.entries.cache.store import Cache
        cache = Cache(Path(sys.argv[1]))
        class Done(Exception):
            pass
        def build():
            if (child := os.fork()) == 0:
                raise Done
            os.waitpid(child, 0)
            print(not Watch(cache.root, "prog-0123").is_free(), flush=True)
            os._exit(0)
        try:
            build_once(cache, "prog-0123", build)
        except Done:
            os._exit(0)
    """
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"


# --- Builders that this process cannot see ----------------------------------------------------------------------------

LISTS = ("os.listdir", "os.scandir")  # as Python audits them

ELSEWHERE = Process("nid001234", "another boot", 1, 1)


def write_claim(root: Path, owner: Process, renewals: int = 0, generation: int = 1) -> Path:
    file = root / ".claims" / f"{KEY}.{generation}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"owner": dataclasses.asdict(owner), "renewals": renewals}))
    return file


def test_builder_elsewhere_is_overtaken_when_its_heart_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its heart beats between one look of who waits and the next, always later than the time that is none."""
    monkeypatch.setenv("GTSTUB_BUILD_TIMEOUT", "0.05")
    claim = write_claim(tmp_path, ELSEWHERE)
    beats = []

    @dataclasses.dataclass(frozen=True)
    class Beating(Cache):
        def find(self, key: str) -> Entry | None:
            if len(beats) < 12:
                time.sleep(0.1)
                beats.append(write_claim(tmp_path, ELSEWHERE, len(beats) + 1))
            return super().find(key)

    cache = Beating(tmp_path)

    def build() -> Entry:
        assert len(beats) == 12, "It was overtaken while it gave signs of life."
        assert (tmp_path / ".claims" / f"{KEY}.2").exists()
        assert claim.exists(), "Only who has overtaken it, and is ready, may remove a claim."
        return publish(cache, KEY)

    assert not Watch(cache.root, KEY).is_free()
    assert build_once(cache, KEY, build) == cache.find(KEY)
    assert list((tmp_path / ".claims").iterdir()) == []


def test_claim_is_alive_when_it_is_first_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the look at it takes."""
    monkeypatch.setenv("GTSTUB_BUILD_TIMEOUT", "1e-12")
    write_claim(tmp_path, ELSEWHERE)
    watch = Watch(tmp_path, KEY)
    assert not watch.is_free()
    assert watch.is_free()


def test_builder_gives_signs_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "RENEWAL", 0.01)
    cache = Cache(tmp_path)

    def build() -> Entry:
        file = tmp_path / ".claims" / f"{KEY}.1"
        deadline = time.monotonic() + 20
        seen = set()
        while len(seen) < 3 and time.monotonic() < deadline:
            claim = claims.read_claim(file)
            assert claim is not None
            if claim.owner is not None:  # Else it was read while it was written.
                assert claim.owner == this_process()
                seen.add(claim.renewals)
        assert len(seen) == 3
        return publish(cache, KEY)

    build_once(cache, KEY, build)


def test_builder_that_was_stopped_and_overtaken_ends_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stopped builder is overtaken as one elsewhere: by its heartbeat. It goes on later, and uses what is there."""
    monkeypatch.setenv("GTSTUB_BUILD_TIMEOUT", "1")
    cache = Cache(tmp_path)
    stopped = start_builder(tmp_path)
    assert [said(stopped), said(stopped)] == ["started", "building"]
    stopped.send_signal(signal.SIGSTOP)
    artifact = build_once(cache, KEY, lambda: publish(cache, KEY, "of the second"))
    inode = artifact.path.stat().st_ino
    (tmp_path / "go").touch()
    stopped.send_signal(signal.SIGCONT)
    assert said(stopped) == str(artifact.path)
    assert stopped.wait() == 0
    stopped.communicate()
    assert artifact.path.stat().st_ino == inode
    assert sorted(path.name for path in tmp_path.iterdir()) == [".claims", MARKER, "builds", "go", KEY]
    assert list((tmp_path / ".claims").iterdir()) == []


def test_builder_that_was_overtaken_leaves_the_claims_of_others(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def build() -> Entry:
        (tmp_path / ".claims" / f"{KEY}.1").unlink()  # by somebody who had overtaken it, and was ready
        write_claim(tmp_path, ELSEWHERE)
        return publish(cache, KEY)

    build_once(cache, KEY, build)
    assert (tmp_path / ".claims" / f"{KEY}.1").exists()


@pytest.mark.parametrize("text", ["0", "soon", "-1", "inf", "nan"])
def test_time_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("GTSTUB_BUILD_TIMEOUT", text)
    with pytest.raises(ConfigError) as caught:
        Watch(tmp_path, KEY)
    assert str(caught.value) == f"GTSTUB_BUILD_TIMEOUT must be a number of seconds, but is '{text}'."


def test_claim_that_was_not_written_whole_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_BUILD_TIMEOUT", "0.2")
    cache = Cache(tmp_path)
    write_claim(tmp_path, ELSEWHERE).write_text("")
    assert not Watch(cache.root, KEY).is_free()
    assert build_once(cache, KEY, lambda: publish(cache, KEY)) == cache.find(KEY)


def listings(of: Path) -> list[object]:
    """The times that this process lists a directory, from now on."""
    seen: list[object] = []
    sys.addaudithook(lambda event, args: seen.append(args) if event in LISTS and str(args[0]) == str(of) else None)
    return seen


def test_waiting_does_not_list_all_claims_at_every_look(tmp_path: Path) -> None:
    """A parallel file system has to ask around for a list; there are many programs, and many ranks that wait."""
    claim = write_claim(tmp_path, ELSEWHERE)
    watch = Watch(tmp_path, KEY)
    lists = listings(tmp_path / ".claims")
    for renewals in range(10):
        write_claim(tmp_path, ELSEWHERE, renewals)
        assert not watch.is_free()
    assert len(lists) == 1
    write_claim(tmp_path, ELSEWHERE, generation=2)
    claim.unlink()
    assert not watch.is_free()
    assert watch.generation == 2
    assert len(lists) == 2


def test_entry_that_is_published_while_somebody_claims_it_is_used(tmp_path: Path) -> None:
    """Between the look for the entry and the claim another process publishes."""
    cache = Cache(tmp_path)
    looks = []

    @dataclasses.dataclass(frozen=True)
    class Raced(Cache):
        def find(self, key: str) -> Entry | None:
            found = super().find(key)
            if not looks:
                publish(cache, key)
            looks.append(found)
            return found

    def build() -> Entry:
        raise AssertionError("It was built twice.")

    assert build_once(Raced(tmp_path), KEY, build) == cache.find(KEY)
    assert looks[0] is None


def test_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / ".claims").write_text("")
    with pytest.raises(CacheError) as caught:
        build_once(Cache(tmp_path), KEY, lambda: publish(Cache(tmp_path), KEY))
    assert str(caught.value) == (
        f"The cache cannot be written at '{tmp_path / '.claims'}': Not a directory. Correct this, or name another"
        " directory in GTSTUB_CACHE_DIR."
    )


def test_process_is_known_by_more_than_its_number() -> None:
    ours = this_process()
    assert ours.has_ended is False
    assert dataclasses.replace(ours, start=ours.start - 1).has_ended, "Its number was used again."
    assert dataclasses.replace(ours, boot="another", start=0).has_ended is None


def test_hidden_builder_of_another_user_is_not_taken_for_ended(tmp_path: Path) -> None:
    """Under hidepid=2, /proc shows a user only the user's own processes."""
    code = """if True:
        import os, sys
        from pathlib import Path
        from gtstub.entries.building.waiting import Watch
        from gtstub.entries.cache import claims
        from gtstub.entries.cache.cleanup import building_name, sweep
        from gtstub.entries.cache.process import Process, tagged_has_ended, this_process
        root = Path(sys.argv[1])
        with claims.claiming(root, "key", 1):
            ours, private = this_process(), root / building_name("key")
            private.mkdir()
            if (child := os.fork()) == 0:
                os.setgroups([])
                os.setgid(65534)  # Group 0 sees all processes.
                os.setuid(65534)
                assert not Path(f"/proc/{ours.pid}").exists()
                assert ours.has_ended is None, "the claim's owner"
                assert tagged_has_ended(ours.tag) is None, "the private directory's owner"
                assert Process(ours.host, ours.boot, 2**22 + 1, 1).has_ended, "There is no such process."
                assert not Watch(root, "key").is_free()
                sweep(root)
                assert private.exists() and claims.claim_files(root, "key")
                os._exit(0)
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    script = 'mount -t proc -o hidepid=2 proc "$1" && mount --bind "$1" /proc || exit 99; shift; exec "$@"'
    (tmp_path / "proc").mkdir()
    command = ["unshare", "--mount", "sh", "-c", script, "sh", tmp_path / "proc", sys.executable, "-W", "ignore", "-c"]
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can mount /proc and become another user")
    with tempfile.TemporaryDirectory() as root:  # Only its owner can pass the directories of pytest.
        Path(root).chmod(0o777)
        done = subprocess.run([*command, code, root], capture_output=True, text=True, check=False)
    if "mount: " in done.stderr or "unshare: " in done.stderr:
        pytest.skip(f"/proc cannot be mounted here: {done.stderr}")
    assert (done.returncode, done.stderr) == (0, "")


WRONG_CLAIMS = [
    b"[" * 200_000,
    b'{"owner": ' * 5000,
    b"1" * 5000,
    b"null",
    b'{"owner": null, "renewals": 0}',
    b'{"owner": {"host": "h", "boot": "b", "pid": "../self", "start": 1}, "renewals": 0}',
    b'{"owner": {"host": "h", "boot": "b", "pid": -1, "start": 1}, "renewals": 0}',
    b'{"owner": {"host": "\\u001b[2J", "boot": "b", "pid": 1, "start": 1}, "renewals": 0}',
    b'{"owner": {"host": "h", "boot": {}, "pid": 1, "start": 1}, "renewals": 0}',
    b'{"owner": {"host": "h", "boot": "b", "pid": 1, "start": 1}, "renewals": [0]}',
    b" " * 70_000,
]


@pytest.mark.parametrize("content", WRONG_CLAIMS, ids=range(len(WRONG_CLAIMS)))
def test_wrong_claim_is_one_that_is_being_written(tmp_path: Path, content: bytes) -> None:
    file = write_claim(tmp_path, ELSEWHERE)
    file.write_bytes(content)
    assert claims.read_claim(file) == claims.BuildClaim(1, None, 0)
    assert not Watch(tmp_path, KEY).is_free()
    sweep(tmp_path)
    assert file.exists()
    os.utime(file, (1, 1))
    sweep(tmp_path)
    assert not file.exists()


def test_claim_that_is_no_file(tmp_path: Path) -> None:
    """A FIFO would block, a device would be read without end, and 'str.isdigit' knows more digits than 'int'."""
    file = write_claim(tmp_path, ELSEWHERE)
    (file.parent / f"{KEY}.\N{SUPERSCRIPT TWO}").touch()
    (tmp_path / f".building-key-{Process('', 'x', 1, 1).tag.partition('.')[0]}.1.\N{SUPERSCRIPT TWO}-0").mkdir()
    for replace in (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir):
        file.unlink(missing_ok=True)
        replace(file)
        assert claims.read_claim(file) == claims.BuildClaim(1, None, 0)
        assert not Watch(tmp_path, KEY).is_free()
        sweep(tmp_path)
