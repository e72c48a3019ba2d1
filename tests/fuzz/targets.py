"""What is fuzzed. Each target changes one kind of file and hands it to its readers, which may raise a GtstubError."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from gtstub.cli.tables import cache as tables
from gtstub.entries.building.waiting import Watch
from gtstub.entries.cache.bundle import pack, unpack
from gtstub.entries.cache.claims import BuildClaim, claim_file, read_claim
from gtstub.entries.cache.cleanup import leftovers, sweep
from gtstub.entries.cache.entry import Entry
from gtstub.entries.cache.inventory import inventory
from gtstub.entries.cache.key import make_key
from gtstub.entries.cache.manifest import FILE, digest
from gtstub.entries.cache.names import choice, compiled_in, named
from gtstub.entries.cache.process import this_process
from gtstub.entries.cache.store import Cache
from gtstub.entries.cache.wording import whole
from gtstub.entries.trust import MARKER
from gtstub.errors import GtstubError
from gtstub.stub.codegen.stub import make_stub
from gtstub.stub.plan.document import plan_to_json
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature.documents import program_from_json, program_to_json, sdfg_from_json, sdfg_to_json
from gtstub.tools.recorded.archive import INDEX, read
from gtstub.tools.recorded.replay import lay_out
from gtstub.tools.recorded.serialbox import write_serialbox_files
from tests.fuzz.mutations import change_bytes, change_document, change_lines, text_of
from tests.support.entries import publish_made_of
from tests.support.signatures import GATHER_PROGRAM, GATHER_SDFG, SMALL_PROGRAM, SMALL_SDFG, WHOLE_PROGRAM, WHOLE_SDFG

Target = Callable[[], None]

INGREDIENTS = {"static": {"n": 1}, "program": {"source": {"diffuse": "ab" * 32}}, "toolchain": ["gcc", 14, 0.5]}


def targets(random: Random, root: Path) -> Mapping[str, Target]:
    """The targets by name. Each call of one is one round; it uses a directory of its own below `root`."""
    made = {"archives": _archives, "entries": _entries, "claims": _claims, "recordings": _recordings}
    found = {}
    for name, make in {**made, "signatures": _signatures}.items():
        (root / name).mkdir()
        found[name] = make(random, root / name)
    return found


# --- Archives and entries ---------------------------------------------------------------------------------------------


def _entry(root: Path) -> Entry:
    return publish_made_of(Cache(root), INGREDIENTS, baked={"n": 1, "Edge.size": 18}, workspaces={"CPU_Heap": "cpu"})


def _look_at(random: Random, cache: Cache) -> None:
    """Does what the commands of 'gtstub cache' do."""
    items = inventory(cache)
    for item in items:
        text_of(tables.item_to_json(item))
        nearest = cache.nearest(item.name, INGREDIENTS)
        if item.manifest is not None:
            item.manifest.to_json()
            with contextlib.suppress(GtstubError):
                assert choice(named(cache, item.name)).isprintable()
                for name, value in compiled_in(item).items():
                    assert item in named(cache, f"{item.name}@{name}={whole(value)}")
        with contextlib.suppress(GtstubError):
            item.entry.verify_usable()
        item.entry.is_foreign()
        if random.random() < 0.05:  # Tables take ten times as long as all else.
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                tables.print_items(cache, items)
                tables.print_item(named(cache, item.key)[0])
                tables.print_differences(item, nearest)
            assert all(line.isprintable() for line in printed.getvalue().split("\n"))


def _changed_manifest(random: Random, content: bytes) -> bytes:
    """A manifest with changes, in most cases with the right digest: anybody can compute it."""
    if random.random() < 0.2:
        return change_bytes(random, content, [b"null", b"[", b"9" * 5000, b"NaN"])
    document = change_document(random, json.loads(content))
    if isinstance(document, dict) and random.random() < 0.8:
        with contextlib.suppress(TypeError, RecursionError):
            document["digest"] = digest(document)
    return text_of(document)


def _tar(members: list[tuple[str, bytes]], random: Random) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            if random.random() < 0.05:
                member.type = random.choice((b"1", b"2", b"3", b"5", b"6", b"7", b"S", b"L", b"x", b"g"))
                member.linkname = random.choice(("/etc/passwd", "../../x", name))
            if random.random() < 0.05:
                name, value = random.choice(
                    (("path", "../x"), ("size", "9" * 30), ("GNU.sparse.map", "0,99"), ("mtime", "inf"))
                )
                member.pax_headers = {name: value}
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def _archives(random: Random, root: Path) -> Target:
    entry = _entry(root / "here")
    members = [(f"{entry.key}/{file.name}", file.read_bytes()) for file in sorted(entry.path.iterdir())]
    manifest = entry.manifest_file.read_bytes()
    packed = io.BytesIO()
    pack(entry, packed)
    cache = Cache(root / "there")
    cache.root.mkdir()

    def run() -> None:
        match random.randrange(4):
            case 0:
                content = change_bytes(random, packed.getvalue())
            case 1:
                content = gzip.compress(
                    change_bytes(random, gzip.decompress(packed.getvalue()), [entry.key.encode()]), 1
                )
            case _:
                changed = list(members)
                at = random.randrange(len(changed))
                name, old = changed[at]
                if random.random() < 0.4:
                    key = random.choice(
                        (entry.key, "toolchain-0.json", "set-aside", "..", "", make_key("a", {}), "\x1b-1")
                    )
                    changed[at] = f"{key}/{random.choice((name.partition('/')[2], '../x', '', 'x/y', FILE))}", old
                changed = [
                    (name, _changed_manifest(random, old) if old == manifest and random.random() < 0.7 else old)
                    for name, old in changed
                ]
                if random.random() < 0.1:
                    changed.append(random.choice(changed))
                content = gzip.compress(_tar(changed, random), 1)
        try:
            found = unpack(cache, io.BytesIO(content))
        except GtstubError:
            assert not [path for path in cache.root.iterdir() if path.name != MARKER], "Something was left."
            return
        assert found.path.parent == cache.root
        assert {file.name for file in found.path.iterdir()} == {FILE, *found.verify().files}
        _look_at(random, cache)
        shutil.rmtree(found.path)

    return run


def _entries(random: Random, root: Path) -> Target:
    cache = Cache(root)
    entry = _entry(root)
    good = {file: file.read_bytes() for file in entry.path.iterdir()}

    def run() -> None:
        for file, content in good.items():
            if file.name == FILE:
                file.write_bytes(_changed_manifest(random, content))
            elif random.random() < 0.05:
                file.write_bytes(change_bytes(random, content))
        _look_at(random, cache)
        for file, content in good.items():
            if file.name != FILE:
                file.write_bytes(content)

    return run


# --- Claims -----------------------------------------------------------------------------------------------------------


def _claims(random: Random, root: Path) -> Target:
    owner = {"host": "h", "boot": this_process().boot, "pid": 1, "start": 1}
    good = {"owner": owner, "renewals": 3}
    file = claim_file(root, "key", 1)
    file.parent.mkdir()

    def run() -> None:
        file.unlink(missing_ok=True)
        match random.randrange(20):
            case 0:
                os.mkfifo(file)
            case 1:
                file.symlink_to(random.choice(("/dev/zero", "nothing", file.name)))
            case 2:
                file.write_bytes(random.choice((b"[", b'{"owner":', b"1")) * 200_000)
            case 3 | 4 | 5:
                file.write_bytes(change_bytes(random, text_of(good), [b"null", b"9" * 5000]))
            case _:
                file.write_bytes(text_of(change_document(random, good)))
        other = file.with_name(f"key.{random.choice(('²', '', '-1', '٣', '9' * 200, 'x'))}")
        other.touch()
        left = root / f".building-{random.choice(('', 'key-'))}{random.choice((this_process().tag, '0.1.²', 'x'))}-0"
        left.mkdir()
        claim = read_claim(file)
        assert claim is None or (
            isinstance(claim, BuildClaim) and (claim.owner is None or str(claim.owner).isprintable())
        )
        Watch(root, "key").is_free()
        list(leftovers(root))
        sweep(root)
        for directory in root.glob(".building-*"):
            directory.rmdir()
        other.unlink(missing_ok=True)

    return run


# --- Recordings -------------------------------------------------------------------------------------------------------

PROGRAM = """gtstub/recording/1
program\tprog\tprog\t01ab\t23cd\t4
leaf\tfactor\tfactor\tscalar\tfloat64\t0\t0
leaf\tx\tx[0]\tfield\tfloat64\t0\t2\tEdge\tK
leaf\tout\tout\tfield\tint32\t1\t1\tK
leaf\tgt_conn_E2V\tE2V\tconnectivity\tint32\t0\t2\tEdge\tE2V\tVertex\t1
"""
CALL = """call\tprog\t{}
value\t1\t0\t-1\t0\t0
value\t1\t0\t-1\t1\t0\t3\t2\t0\t-1\t2\t1
value\t1\t0\t8\t2\t0\t2\t0\t1
value\t1\t0\t-1\t3\t0\t3\t2\t0\t0\t1\t3
"""
GOOD = PROGRAM + CALL.format(1) + CALL.format(2)


def _recordings(random: Random, root: Path) -> Target:
    archive = root / "host-1"
    (archive / "prog").mkdir(parents=True)
    for name in ("factor", "x", "out", "gt_conn_E2V"):
        (archive / "prog" / f"prog_{name}.dat").write_bytes(bytes(48))

    def run() -> None:
        text = change_lines(random, GOOD) if random.random() < 0.8 else GOOD
        content = text.encode(errors="surrogatepass")
        if text == GOOD or random.random() < 0.05:
            content = change_bytes(random, content, [b"\t", b"\n", b"-1", b"9223372036854775807", b"\0"])
        (archive / INDEX).write_bytes(content)
        try:
            found = read(archive)
            with contextlib.suppress(OSError):  # A name is too long.
                write_serialbox_files(found)
            for call in found.calls:
                with contextlib.suppress(GtstubError):
                    lay_out(found, call)
        except GtstubError:
            pass
        assert {path.name for path in root.iterdir()} == {"host-1"}
        for path in archive.iterdir():
            if path.name not in ("prog", INDEX):
                shutil.rmtree(path)

    return run


# --- Signatures -------------------------------------------------------------------------------------------------------


def _signatures(random: Random, _: Path) -> Target:
    pairs = (
        (SMALL_SDFG, SMALL_PROGRAM),
        (SMALL_SDFG, SMALL_PROGRAM),
        (GATHER_SDFG, GATHER_PROGRAM),
        (WHOLE_SDFG, WHOLE_PROGRAM),
    )
    good: list[tuple[Any, Any]] = [
        (json.loads(sdfg_to_json(sdfg)), json.loads(program_to_json(program))) for sdfg, program in pairs
    ]

    def run() -> None:
        sdfg, program = random.choice(good)
        which = random.randrange(4)
        sdfg_text = text_of(change_document(random, sdfg) if which in (0, 2) else sdfg)
        program_text = text_of(change_document(random, program) if which in (1, 2) else program)
        if which == 3:
            sdfg_text = change_bytes(random, sdfg_text, [b"null", b"[", b"9" * 5000])
        with contextlib.suppress(GtstubError):
            signatures = sdfg_from_json(sdfg_text, "sdfg.json"), program_from_json(program_text, "program.json")
            plan_to_json(make_plan(*signatures))
            sdfg_to_json(signatures[0])
            program_to_json(signatures[1])
            if random.random() < 0.1:
                make_stub(*signatures)

    return run
