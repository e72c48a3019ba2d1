"""What somebody else could have written is not loaded: from Python, from C, and through the cache."""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gtstub
from gtstub import settings
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.manifest import FILE, Manifest
from gtstub.entries.cache.store import Cache, open_cache
from gtstub.entries.toolchain import compiler
from gtstub.entries.trust import MARKER
from gtstub.errors import ConfigError, TrustError
from gtstub.install import RUNTIME
from gtstub.tools.recorded.runtime import runtime
from tests.support.entries import LIBRARY, STUB, publish
from tests.support.sdfg_libraries import build_null_library
from tests.support.signatures import SMALL_PROGRAM, SMALL_SDFG
from tests.support.stubs import build_stub

KEY = "prog-" + 32 * "0"
OTHER = 65534
"""The number of another user, and of another group."""

OWN = pwd.getpwuid(os.geteuid()).pw_name
NAME = pwd.getpwuid(OTHER).pw_name

for_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An entry that can be loaded."""
    cache = Cache(tmp_path_factory.mktemp("built"))
    with cache.private_directory(KEY) as private:
        build_null_library(SMALL_SDFG, private / "entry")
        build_stub(SMALL_SDFG, SMALL_PROGRAM, private / "entry", compiler.find(tmp_path_factory.mktemp("toolchain")))
        return cache.publish(private / "entry", KEY, Manifest("prog", STUB, LIBRARY)).path


@pytest.fixture
def entry(built: Path, tmp_path: Path) -> Path:
    """A copy, in a cache of its own, which no other test has loaded."""
    return Path(shutil.copytree(built, tmp_path / "cache" / KEY))


def load_in_python(entry: Path) -> None:
    gtstub.load(entry)


def open_in_c(entry: Path) -> None:
    handle = ctypes.c_void_p()
    if runtime().gts_open(os.fsencode(entry), ctypes.byref(handle)) != 0:
        raise TrustError(runtime().gts_last_error(None).contents.message.decode())
    runtime().gts_close(ctypes.byref(handle))


def load_in_c(entry: Path) -> None:
    handle = ctypes.c_void_p()
    if runtime().gts_load(os.fsencode(entry / STUB), os.fsencode(entry / LIBRARY), ctypes.byref(handle)) != 0:
        raise TrustError(runtime().gts_last_error(None).contents.message.decode())
    runtime().gts_close(ctypes.byref(handle))


def find_in_cache(entry: Path) -> None:
    assert Cache(entry.parent).find(entry.name) is not None


LOADS = (load_in_python, open_in_c, load_in_c, find_in_cache)

all_loads = pytest.mark.parametrize("load", LOADS)


def refusal(load: Callable[[Path], None], entry: Path) -> str:
    with pytest.raises(TrustError) as caught:
        load(entry)
    text = str(caught.value)
    prefix = f"'{entry}' is not used: "
    return text.removeprefix(prefix)


# --- What is refused --------------------------------------------------------------------------------------------------


def test_a_manifest_that_everyone_can_write(entry: Path) -> None:
    load_in_python(entry)
    (entry / FILE).chmod(0o646)
    text = f"File '{entry / FILE}' of user '{OWN}' can be written by everyone"
    assert refusal(load_in_python, entry).startswith(text)


@all_loads
@pytest.mark.parametrize("place", [".", "..", STUB, LIBRARY])
def test_what_everyone_can_write(entry: Path, load: Callable[[Path], None], place: str) -> None:
    load(entry)
    fresh = Path(shutil.copytree(entry, entry.parent.parent / "fresh" / KEY))  # What was loaded is not opened again.
    path = Path(os.path.normpath(fresh / place))
    mode = path.stat().st_mode & 0o777 | 0o002
    path.chmod(mode)
    kind = "Directory" if path.is_dir() else "File"
    assert refusal(load, fresh) == (
        f"{kind} '{path}' of user '{OWN}' can be written by everyone (mode {mode:04o}), and what it holds would run as"
        " this user. Correct this with 'chmod o-w', or build the program in a cache of your own (GTSTUB_CACHE_DIR)."
    )
    path.chmod(mode & ~0o002)
    load(fresh)


@for_root
@all_loads
@pytest.mark.parametrize("place", [".", "..", STUB, LIBRARY])
def test_what_belongs_to_another_user(entry: Path, load: Callable[[Path], None], place: str) -> None:
    path = Path(os.path.normpath(entry / place))
    os.chown(path, OTHER, 0)
    kind = "Directory" if path.is_dir() else "File"
    assert refusal(load, entry) == (
        f"{kind} '{path}' belongs to user '{NAME}', and what it holds would run as this user. Build the program in a"
        f" cache of your own (GTSTUB_CACHE_DIR), or trust the owner: GTSTUB_TRUST=user={NAME}."
    )
    os.chown(path, 0, 0)
    load(entry)


@for_root
@all_loads
def test_what_another_group_can_write(entry: Path, load: Callable[[Path], None]) -> None:
    os.chown(entry, 0, OTHER)
    entry.chmod(0o775)
    group = "nogroup"
    assert refusal(load, entry) == (
        f"Directory '{entry}' of user 'root' can be written by group '{group}' (mode 0775), and what it holds would run"
        f" as this user. Correct this with 'chmod g-w', or trust the group: GTSTUB_TRUST=group={group}."
    )
    entry.chmod(0o755)
    load(entry)


@for_root
def test_the_group_of_this_user_alone(entry: Path) -> None:
    """Many systems give each user a group, and files that it can write."""
    entry.chmod(0o775)
    load_in_python(entry)


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that says who the users are: FILE has those of the machine, GROUP is that of a user of a directory."""
    source = tmp_path_factory.mktemp("users") / "users.c"
    source.write_text(USERS, encoding="utf-8")
    library = source.with_suffix(".so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@for_root
@pytest.mark.parametrize(
    ("lines", "group", "is_trusted"),
    [
        pytest.param("root:x:0:0::/root:/bin/sh\n", "", True, id="nobody else"),
        pytest.param("root:x:0:0:::\nother:x:4711:4711:::\n+::::::\nbroken\n", "", True, id="another user"),
        pytest.param("root:x:0:0:::\nother:x:4711:0:::\n", "", False, id="the primary one of another user"),
        pytest.param("other:x:4711:4711:::\n", "0", True, id="of a directory, with the number of the user"),
        pytest.param("", "0", True, id="of a directory, without users of the machine"),
        pytest.param(None, "0", True, id="of a directory, without a file"),
        pytest.param("other:x:4711:4711:::\n", "4242", False, id="of a directory, with another number"),
        pytest.param("remote:x:0:4242:::\n", "4242", True, id="of the machine, with another number"),
        pytest.param("remote:x:0:4242:::\nother:x:1:4242:::\n", "4242", False, id="of two users of the machine"),
    ],
)
def test_the_group_of_one_user(
    entry: Path, tmp_path: Path, users: Path, lines: str | None, group: str, is_trusted: bool
) -> None:
    """Another user whose primary group it is, is no member in the list of groups. Users are not enumerated."""
    if lines is not None:
        (tmp_path / "passwd").write_text(lines)
    os.chown(entry, 0, int(group or 0))
    entry.chmod(0o775)
    code = f"import gtstub, pathlib; gtstub.load(pathlib.Path({str(entry)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "LD_PRELOAD": str(users), "FILE": str(tmp_path / "passwd"), "GROUP": group},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == is_trusted, done.stderr
    assert ("can be written by group" in done.stderr) != is_trusted


USERS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void setpwent(void)
{
    abort(); /* it may take seconds, and disturbs other threads */
}

FILE *fopen(const char *path, const char *mode)
{
    typedef FILE *function(const char *, const char *);
    function *const next = (function *)dlsym(RTLD_NEXT, "fopen");
    return next(strcmp(path, "/etc/passwd") == 0 ? getenv("FILE") : path, mode);
}

int getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t size, struct passwd **found)
{
    const char *const group = getenv("GROUP");
    (void)size;
    strcpy(buffer, *group == 0 ? "root" : "remote");
    *entry = (struct passwd){.pw_name = buffer, .pw_uid = uid, .pw_gid = (gid_t)atoi(group), .pw_dir = buffer};
    *found = entry;
    return 0;
}

int getgrgid_r(gid_t gid, struct group *entry, char *buffer, size_t size, struct group **found)
{
    static char *nobody[] = {NULL};
    (void)size;
    strcpy(buffer, *getenv("GROUP") == 0 ? "root" : "remote");
    *entry = (struct group){.gr_name = buffer, .gr_gid = gid, .gr_mem = nobody};
    *found = entry;
    return 0;
}
"""


@for_root
def test_an_entry_of_root(entry: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """An administrator may install entries for all users."""
    code = (
        "import os, sys, gtstub; from gtstub import _host; os.setgid(65534); os.setuid(65534);"
        "descriptor = os.open(sys.argv[1], os.O_RDONLY); _host.trust_directory(descriptor, os.fsencode(sys.argv[1]))"
    )
    place = Path("/tmp") / f"gtstub-{os.getpid()}"
    try:
        shutil.copytree(entry, place / KEY)
        place.chmod(0o755)
        (place / KEY).chmod(0o755)
        done = subprocess.run([sys.executable, "-c", code, place / KEY], capture_output=True, text=True, check=False)
        assert done.stderr == ""
    finally:
        shutil.rmtree(place)


@pytest.mark.parametrize("load", [load_in_python, open_in_c, load_in_c])
@pytest.mark.parametrize("marked", [0, 1, 2, 3])
def test_the_root_above_a_code_path(built: Path, tmp_path: Path, load: Callable[[Path], None], marked: int) -> None:
    """All directories from the highest one with a marker down to the entry are checked, and none above it."""
    entry = Path(shutil.copytree(built, tmp_path / "above" / "cache" / "FV3_TL" / KEY))
    root = entry.parents[1]
    root.chmod(0o777)
    for path in (entry, *entry.parents)[: marked + 1]:
        (path / MARKER).symlink_to("nowhere")  # It counts whatever it is.
    if marked >= 2:
        text = f"Directory '{root}' of user '{OWN}' can be written by everyone (mode 0777)"
        assert refusal(load, entry).startswith(text)
        root.chmod(0o755)
    load(entry)


def test_the_lowest_directory_with_a_fault_is_named(entry: Path, tmp_path: Path) -> None:
    (tmp_path / MARKER).touch()
    for path in (tmp_path, entry.parent):
        path.chmod(0o777)
    assert refusal(load_in_python, entry).startswith(f"Directory '{entry.parent}' of user")
    entry.parent.chmod(0o755)
    assert refusal(load_in_python, entry).startswith(f"Directory '{tmp_path}' of user")


def test_a_cache_that_is_deep(built: Path, tmp_path: Path) -> None:
    """The way up has no limit."""
    entry = Path(shutil.copytree(built, tmp_path.joinpath("cache", *["d"] * 100, KEY)))
    (tmp_path / "cache" / MARKER).touch()
    (tmp_path / "cache").chmod(0o777)
    assert f"Directory '{tmp_path / 'cache'}' of user" in refusal(load_in_python, entry)


@for_root
def test_a_directory_that_cannot_be_searched(entry: Path, tmp_path: Path) -> None:
    """The way ends there, and what is above is not known: others may be able to rename it."""
    for path in (tmp_path / "..", tmp_path, entry.parent):
        path.chmod(0o700)
    assert check_as_other(entry) == "0 True"
    entry.chmod(0o700)
    entry.parent.chmod(0o777)
    assert check_as_other(entry) == "0 True"  # Nothing in it can be opened either.
    entry.chmod(0o755)
    assert "can be written by everyone" in check_as_other(entry)


def check_as_other(entry: Path) -> str:
    """What the check says of an open directory for a user who may not search those above it."""
    code = """
import ctypes, os, sys
from gtstub.tools.recorded.runtime import runtime
path, exposed = os.fsencode(sys.argv[1]), ctypes.c_bool()
descriptor = os.open(path, os.O_PATH)
check = runtime().gts_trust_directory
os.setgid(65534), os.setuid(65534)
if check(descriptor, path, ctypes.byref(exposed)) == 0:
    print(0, exposed.value)
else:
    print(runtime().gts_last_error(None).contents.message.decode())
"""
    done = subprocess.run([sys.executable, "-c", code, entry], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_descriptors_of_directories(entry: Path, tmp_path: Path) -> None:
    """None stays open. Without one that is free, it is not known who could have written what is above."""
    (tmp_path / MARKER).touch()
    code = """
import os, resource, sys
from gtstub import _host
path = os.fsencode(sys.argv[1])
descriptor = os.open(path, os.O_PATH)
for fault in range(3):
    for place, mode in ((path, 0o755), (os.path.dirname(path), 0o700)):
        os.chmod(place, 0o777 if fault else mode)
        try:
            _host.trust_directory(descriptor, path)
        except RuntimeError as error:
            print(error)
        os.chmod(place, mode)
    used = os.dup(0)
    os.close(used)
    assert used == descriptor + 1
resource.setrlimit(resource.RLIMIT_NOFILE, (used, used))
_host.trust_directory(descriptor, path)
"""
    done = subprocess.run([sys.executable, "-c", code, entry], capture_output=True, text=True, check=False)
    assert done.stdout.count("can be written by everyone") == 4
    assert done.stderr.endswith(f"RuntimeError: Directory '{entry}' cannot be read: Too many open files.\n")


def test_libraries_outside_of_entries(entry: Path) -> None:
    """Only their own directory matters: nobody says where a cache begins."""
    (entry / FILE).unlink()
    entry.parent.chmod(0o777)
    open_in_c(entry)


@pytest.mark.parametrize("marked", [0, 1])
def test_an_entry_in_a_sticky_directory(entry: Path, marked: int) -> None:
    """Nobody else can rename it in /tmp. As the root of a cache, or below one, such a directory is refused."""
    entry.parent.chmod(0o1777)
    load_in_python(entry)
    (entry.parents[marked] / MARKER).touch()
    fresh = Path(shutil.copytree(entry, entry.parent / "fresh"))
    assert "can be written by everyone (mode 1777)" in refusal(load_in_python, fresh)


@for_root
def test_a_marker_of_another_user(entry: Path) -> None:
    """Anybody can put one into /tmp."""
    entry.parent.chmod(0o1777)
    marker = entry.parent / MARKER
    marker.touch()
    os.chown(marker, OTHER, -1)
    load_in_python(entry)


def test_a_link_to_an_entry(entry: Path, tmp_path: Path) -> None:
    """What it leads to counts."""
    (tmp_path / "near").mkdir()
    link = tmp_path / "near" / KEY
    link.symlink_to(entry)
    entry.parent.chmod(0o777)
    assert f"Directory '{entry.parent}' of user" in refusal(load_in_python, link)


def test_a_directory_above_the_root_that_others_can_rename(entry: Path) -> None:
    """It may lead elsewhere at any time, so the libraries are opened by their descriptors."""
    above = entry.parent.parent
    above.chmod(0o777)
    program = gtstub.load(entry)
    above.chmod(0o755)
    opened = {Path(os.path.realpath(link)) for link in Path("/proc/self/fd").iterdir()}
    assert {entry / STUB, entry / LIBRARY} <= opened
    assert program.name == "prog"


@pytest.mark.parametrize("inner", ["", "FV3_TL"])
@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_builder_is_refused_before_it_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inner: str, mode: int
) -> None:
    """A directory that others can write, such as /tmp, gets no marker."""
    root = tmp_path / "cache"
    root.mkdir()
    monkeypatch.setenv(settings.CACHE_DIR, str(root))
    for _ in range(2):
        root.chmod(mode)
        with (
            pytest.raises(TrustError, match=f"'{root}' of user .* can be written by everyone"),
            open_cache(inner).private_directory(KEY),
        ):
            raise AssertionError("It must not build.")
        root.chmod(0o755)
        assert [path.name for path in root.iterdir()] == ([inner] if inner else [])


# --- What is trusted --------------------------------------------------------------------------------------------------


@for_root
@pytest.mark.parametrize("trusted", [f"user={NAME}", f"user={OTHER}", f"user=root:user={NAME}"])
def test_a_trusted_owner(entry: Path, monkeypatch: pytest.MonkeyPatch, trusted: str) -> None:
    for path in (entry.parent, entry, *entry.iterdir()):
        os.chown(path, OTHER, OTHER)
    monkeypatch.setenv(settings.TRUST, trusted)
    for load in LOADS:
        load(entry)
    entry.chmod(0o777)  # Not everyone is trusted.
    assert "can be written by everyone" in refusal(load_in_python, entry)


@for_root
def test_a_trusted_group(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.TRUST, "group=nogroup")
    for path in (entry.parent, entry, *entry.iterdir()):
        os.chown(path, 4242, OTHER)  # whoever owns it
        path.chmod(0o2775 if path.is_dir() else 0o664)
    for load in LOADS:
        load(entry)
    monkeypatch.setenv(settings.TRUST, "group=daemon")
    assert "belongs to user '4242'" in refusal(load_in_python, entry)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("somebody", "'somebody' is not user=NAME or group=NAME."),
        ("user=nobody:users=x", "'users=x' is not user=NAME or group=NAME."),
        ("user=gts-nobody", "'user=gts-nobody' names a user that this machine does not know."),
        ("group=gts-nobody", "'group=gts-nobody' names a group that this machine does not know."),
        ("user=-1", "'user=-1' names a user that this machine does not know."),
        ("user=", "'user=' names a user that this machine does not know."),
    ],
)
def test_a_setting_that_is_malformed(entry: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str) -> None:
    monkeypatch.setenv(settings.TRUST, text)
    for _ in range(2):
        with pytest.raises(ConfigError) as caught:
            gtstub.load(entry)
        assert str(caught.value) == f"GTSTUB_TRUST: {reason}"


def test_a_fork_while_the_setting_is_read_again(entry: Path, tmp_path: Path) -> None:
    """Another thread may fork at any time. The child takes the lock, and must not free what is freed already."""
    source, library = tmp_path / "forks.c", tmp_path / "forks.so"
    source.write_text(FORKS, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    code = (
        "import ctypes, os, sys; from gtstub.tools.recorded.runtime import runtime; handle = ctypes.c_void_p();"
        "first, second = map(os.fsencode, sys.argv[1:]); assert runtime().gts_open(first, ctypes.byref(handle)) == 0;"
        "os.environ['GTSTUB_TRUST'] = 'user=daemon'; assert runtime().gts_open(second, ctypes.byref(handle)) == 0"
    )
    fresh = Path(shutil.copytree(entry, tmp_path / "fresh" / KEY))
    done = subprocess.run(
        [sys.executable, "-c", code, entry, fresh],
        env=os.environ
        | {"LD_PRELOAD": str(library), "ENTRY": str(fresh), "RUNTIME": str(RUNTIME)}
        | {settings.TRUST: "user=root:user=daemon"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "the child has ended with 0\n"


FORKS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void __libc_free(void *memory);

/* Forks when a copy of the setting is freed, which ends after its first element. */
void free(void *memory)
{
    static int has_forked;
    if (memory != NULL && !has_forked && memcmp(memory, "user=root", 10) == 0) {
        has_forked = 1;
        const pid_t child = fork();
        if (child == 0) {
            void *program = NULL;
            typedef int function(const char *, void **);
            function *const open = (function *)dlsym(dlopen(getenv("RUNTIME"), RTLD_NOW), "gts_open");
            setenv("GTSTUB_TRUST", "user=daemon", 1);
            _exit(open(getenv("ENTRY"), &program) != 0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        printf("the child has ended with %d\\n", status);
        fflush(stdout);
    }
    __libc_free(memory);
}
"""


# --- What gtstub makes ------------------------------------------------------------------------------------------------


@pytest.fixture
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077], indirect=True)
@pytest.mark.usefixtures("umask")
def test_permissions_of_a_cache(tmp_path: Path) -> None:
    entry = publish(Cache(tmp_path / "made" / "cache"), KEY)
    for path in (entry.path, entry.path.parent, *entry.path.iterdir()):
        assert mode(path) & 0o022 in (0, 0o020), path  # The group may be that of this user alone.
        assert not mode(path) & 0o002, path
    assert Cache(tmp_path / "made" / "cache").find(KEY) == entry


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077], indirect=True)
@pytest.mark.usefixtures("umask")
def test_the_marker_of_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the root alone, and a cache of an earlier version gets it with its next build."""
    monkeypatch.setenv(settings.CACHE_DIR, str(tmp_path / "cache"))
    root, other = tmp_path / "cache", tmp_path / "other"
    for cache, place in ((open_cache("FV3_TL"), root), (open_cache(), root), (Cache(other), other)):
        for _ in range(2):
            publish(cache, KEY)
        (found,) = tmp_path.rglob(MARKER)
        assert found.parent == place
        assert not mode(found) & 0o022
        assert len(list(cache.entries())) == 1
        found.unlink()


@for_root
def test_a_code_path_of_a_cache_that_this_user_cannot_write(tmp_path: Path) -> None:
    """An administrator may have made its root."""
    code = """
import os, sys
from pathlib import Path
from gtstub.entries.cache.store import Cache, open_cache
from tests.support.entries import publish
publish(Cache(Path(sys.argv[1])), "prog-0123")  # Imports what the other user may not be able to read.
os.setgid(65534), os.setuid(65534)
publish(open_cache("FV3_TL"), "prog-0123")
"""
    with tempfile.TemporaryDirectory() as root:  # Only its owner can pass the directories of pytest.
        Path(root).chmod(0o755)
        (Path(root) / "FV3_TL").mkdir()
        os.chown(Path(root) / "FV3_TL", OTHER, OTHER)
        environment = os.environ | {settings.CACHE_DIR: root}
        command = [sys.executable, "-c", code, tmp_path]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        assert [path.name for path in Path(root).iterdir()] == ["FV3_TL"]


@for_root
@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077], indirect=True)
@pytest.mark.usefixtures("umask")
def test_a_group_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All members can write it, whatever their umasks are."""
    root = tmp_path / "cache"
    root.mkdir()
    os.chown(root, 0, OTHER)
    root.chmod(0o2775)
    with pytest.raises(TrustError, match="trust the group: GTSTUB_TRUST=group=nogroup"):
        publish(Cache(root), KEY)
    monkeypatch.setenv(settings.TRUST, "group=nogroup")
    entry = publish(Cache(root), KEY)
    assert mode(entry.path) & ~0o005 == 0o2770
    assert entry.path.stat().st_gid == OTHER
    assert all(mode(file) & 0o040 for file in entry.path.iterdir())
    assert Cache(root).find(KEY) == Entry(root / KEY)
