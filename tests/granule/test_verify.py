"""What `gtstub granule verify` finds, and what `gtstub granule show` prints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gtstub.programs.granule.kept import HEAD, PLACE
from tests.support.cli import run
from tests.support.granules import Exported

pytestmark = pytest.mark.xdist_group("granule")


def test_a_granule_that_is_as_it_was(folder: Path) -> None:
    result = run("granule", "verify", str(folder))
    assert (result.exit_code, result.stdout) == (
        0,
        "Granule 'tiny': all 10 arrays are the same after each of 2 steps.\n",
    )
    assert result.stderr.splitlines()[-2:] == [
        "Comparing step 'run' with Python",
        "Comparing step 'first' with Python",
    ]


def change_kept(folder: Path, array: int, value: bytes) -> None:
    """Changes the first bytes of a kept array."""
    file = folder / "kept.bin"
    content = bytearray(file.read_bytes())
    part, offset = PLACE.unpack_from(content, HEAD.size + array * PLACE.size)
    head_size, constant_size = HEAD.unpack_from(content)[3:5]
    begin = head_size + (constant_size if part == 2 else 0) + offset
    content[begin : begin + len(value)] = value
    file.write_bytes(content)


def flip(folder: Path, array: int) -> None:
    content = (folder / "kept.bin").read_bytes()
    part, offset = PLACE.unpack_from(content, HEAD.size + array * PLACE.size)
    head_size, constant_size = HEAD.unpack_from(content)[3:5]
    change_kept(folder, array, bytes([content[head_size + (constant_size if part == 2 else 0) + offset] ^ 1]))


def exchange(folder: Path, one: str, other: str) -> None:
    programs = folder / "programs"
    (programs / one).rename(programs / "aside")
    (programs / other).rename(programs / one)
    (programs / "aside").rename(programs / other)


def replace(folder: Path, name: str, old: str, new: str) -> None:
    file = folder / name
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def change_argument(folder: Path) -> None:
    """Of the recording: the values that the arguments have at the start."""
    with np.load(folder / "capture.npz") as file:
        values = {name: file[name] for name in file.files}
    values["argument/line"][0] += 1.0
    np.savez(folder / "capture.npz", **values)


DIFFERS = "Granule 'tiny' does not do what its steps do in Python: array '{}' differs after step '{}'."


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: flip(folder, 6), "Array 'coefficients' of granule 'tiny' has other values"),
        (lambda folder: flip(folder, 9), "Array 'history' of granule 'tiny' has other values"),
        (
            lambda folder: exchange(folder, "mix", "gather"),
            "is not the program 'gather' that it was made of: their signatures differ.",
        ),
        (
            lambda folder: replace(folder, "tiny_granule.c", "(const double){0.75}", "(const double){0.5}"),
            DIFFERS.format("work", "run"),
        ),
        (
            lambda folder: replace(folder, "tiny_granule.c", ".first = {0, 1}", ".first = {0, 0}"),
            DIFFERS.format("work", "run"),
        ),
        (
            lambda folder: replace(folder, "granule.json", '"value": 0.75', '"value": 0.5'),
            "tiny_granule.c' was not generated from the granule.json beside it: export the granule again.",
        ),
        (lambda folder: (folder / "tiny_granule.c").unlink(), "tiny_granule.c' cannot be read (No such file"),
        (change_argument, "Array 'line' of granule 'tiny' has other values than when it was exported: a file in"),
        (lambda folder: (folder / "capture.npz").unlink(), "has no recording to compare with: "),
        (lambda folder: (folder / "capture.json").write_text("{"), "has no recording to compare with: "),
        (lambda folder: (folder / "capture.npz").write_bytes(b"PK"), "has no recording to compare with: "),
        (lambda folder: (folder / "granule.json").unlink(), "is no exported granule: granule.json cannot be read"),
        (lambda folder: (folder / "granule.json").write_text("{}"), "is not the description of a granule"),
        (lambda folder: (folder / "kept.bin").unlink(), "kept.bin' cannot be opened: No such file or directory."),
    ],
)
def test_what_verify_finds(damage: Callable[[Path], object], message: str, folder: Path) -> None:
    damage(folder)
    result = run("granule", "verify", str(folder))
    assert result.exit_code == (3 if "description" in message else 1)
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_another_program_with_the_same_signatures(folder: Path) -> None:
    """The library of the SDFG is exchanged, and the manifest says so."""
    entry = folder / "programs" / "mix"
    library = entry / "libmix.so"
    content = library.read_bytes()
    library.write_bytes(content + b"more")
    result = run("granule", "verify", str(folder))
    assert result.exit_code in (0, 1)
    assert "Traceback" not in result.stderr


def test_a_folder_may_be_moved(folder: Path) -> None:
    moved = Path(shutil.move(folder, folder.with_name("moved")))
    assert run("granule", "verify", str(moved)).exit_code == 0


# --- Show -------------------------------------------------------------------------------------------------------------


def test_show(tiny: Exported) -> None:
    result = run("granule", "show", str(tiny.folder))
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0] == "Granule 'tiny'. Scalars: factor (float64). Hooks: exchange."
    for line in (
        "array memory type size bytes",
        "u argument float64 I 4, K 5 160 written",
        "v2e argument int32 Vertex 4, V2E 2 80 table",
        "coefficients kept float64 I 4, K 4 128",
        "history kept float64 axis_0 7 56 written",
        "step position does writes constants",
        "run 1 mix work scale=0.75",
        "2 tests_support_granule_programs_relax history rate=0.25",
        "3 hook exchange w",
        "6 gather vertices",
        "first 1 mix u scale=0.75",
    ):
        assert line in lines, result.stdout


def test_show_as_json(tiny: Exported) -> None:
    result = run("granule", "show", str(tiny.folder), "--json")
    assert json.loads(result.stdout) == json.loads((tiny.folder / "granule.json").read_text(encoding="utf-8"))
    result = run("granule", "show", str(tiny.folder), "--jq", ".arrays[] | select(.is_argument) | .name")
    assert result.stdout.split() == ["u", "w", "line", "edges", "vertices", "v2e"]


def test_a_folder_that_is_no_granule(tmp_path: Path) -> None:
    result = run("granule", "show", str(tmp_path))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"'{tmp_path}' is no exported granule: granule.json cannot be read (No such file or directory).\n"
    )
