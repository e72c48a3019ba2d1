"""What gtstub makes can be written by nobody else, and it does not refuse it itself, whatever umask and group are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gtstub.entries.toolchain.compiler import Toolchain
from tests.support.cli import write_signatures
from tests.support.modes import OTHER, run_python, writable_by_others

UMASKS = (0o000, 0o002, 0o022, 0o027, 0o077)

MAKES = """
import os, shutil, sys
from contextlib import ExitStack, suppress
from pathlib import Path
from click.testing import CliRunner
import gtstub
from gtstub.entries.building.listing import Listed, write_list
from gtstub.entries.cache.bundle import pack, unpack
from gtstub.entries.cache.claims import claiming
from gtstub.entries.cache.counts import HITS, count
from gtstub.entries.cache.manifest import Manifest
from gtstub.entries.cache.prune import limit_size
from gtstub.entries.cache.store import Cache
from gtstub.cli.app import main
from gtstub.entries.building.templates import compiled_templates
from gtstub.errors import ToolchainError
from gtstub.entries.toolchain import compiler
from gtstub.entries.toolchain.machine import machine_directory
from tests.support.entries import LIBRARY, STUB

KEY = "prog-" + 32 * "0"
place, libraries, answers = map(Path, sys.argv[1:])
root = place / "made" / "cache"
os.environ.update(GTSTUB_CACHE_DIR=str(root), GTSTUB_MACHINE_DIR=str(place / "new" / "machine"))
for answer in answers.glob("toolchain-*.json"):
    shutil.copyfile(answer, machine_directory() / answer.name)
toolchain = compiler.find(root, machine=machine_directory())
cache = Cache(root)
with cache.private_directory(KEY) as private:
    (private / "entry").mkdir()
    for file in libraries.iterdir():
        shutil.copyfile(file, private / "entry" / file.name)
    entry = cache.publish(private / "entry", KEY, Manifest("prog", STUB, LIBRARY))
gtstub.load(cache.find(KEY).path)
count(root, HITS)
limit_size(cache)
compiled_templates()
broken = place / "x_stub.c"
broken.write_text("#error no")
broken.chmod(0o644)
with suppress(ToolchainError):
    toolchain.start(broken, place / "x_stub.so").wait()
write_list(place / "list.toml", [Listed("prog", KEY, {"program": "a:b"})])
run = CliRunner().invoke


def command(*arguments):
    done = run(main, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output


command("cache", "export", KEY, place / "packed.tar.gz")
command("cache", "import", place / "packed.tar.gz", "--cache", place / "imported" / "cache")
gtstub.load(place / "imported" / "cache" / KEY)
signatures = (place / "given" / "sdfg.json", place / "given" / "program.json")
command("generate", *signatures, "-o", place / "generated" / "stubs", "--fortran")
claim = ExitStack()
claim.enter_context(claiming(root, "other-" + 32 * "0", 1))
os._exit(0)  # The claim stays.
"""


@pytest.mark.parametrize("umask", UMASKS, ids="{:03o}".format)
@pytest.mark.parametrize("group", [None, OTHER], ids=["own group", "shared group"])
def test_what_others_can_write(
    tmp_path: Path, libraries: Path, toolchain: Toolchain, umask: int, group: int | None
) -> None:
    if group is not None and os.geteuid() != 0:
        pytest.skip("only root can have any group")
    write_signatures(tmp_path / "given")
    run_python("-c", MAKES, tmp_path, libraries, toolchain.kept.parent, umask=umask, group=group)
    assert {path.name for path in tmp_path.iterdir()} >= {"made", "new", "list.toml", "generated", "imported"}
    made = {path.name for path in (tmp_path / "made" / "cache").iterdir()}
    assert made >= {".claims", ".hits", ".limited", "failed", "prog-" + 32 * "0"}
    assert any(name.startswith("toolchain-") for name in made)
    assert list(writable_by_others(tmp_path)) == []
