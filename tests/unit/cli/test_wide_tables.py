"""Tables of large programs: they repeat nothing long, and fit a terminal of 100 columns, or 120 where there is none."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature.documents import program_in, sdfg_in
from gtstub.util.legend import Legend
from tests.support.checkout import ROOT
from tests.support.cli import run

ICON4PY = ROOT / "examples" / "icon4py"
SOLVER = [ICON4PY / "vertically_implicit_solver_at_predictor_step" / f"f.{name}.json" for name in ("sdfg", "program")]
DIFFUSION = [ROOT / "tests/golden/signatures" / f"apply_diffusion_to_vn.{name}.json" for name in ("sdfg", "program")]


def on_a_terminal(columns: int, *arguments: str) -> str:
    """What a command writes to a terminal of so many columns."""
    command = Path(sys.executable).with_name("gtstub")
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        [command, *arguments], stdin=theirs, stdout=theirs, env={**environment, "TERM": "xterm", "NO_COLOR": "1"}
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            text += os.read(ours, 65536)
        except OSError:  # The process has ended.
            break
    os.close(ours)
    assert process.wait() == 0
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.decode()).replace("\r\n", "\n")


@pytest.mark.parametrize("command", ["show", "plan"])
@pytest.mark.parametrize("signatures", [SOLVER, DIFFUSION], ids=["solver", "diffusion"])
def test_all_names_are_whole_on_a_terminal_of_100_columns(command: str, signatures: list[Path]) -> None:
    text = on_a_terminal(100, command, *map(str, signatures))
    assert max(map(len, text.splitlines())) <= 100
    words = text.split()
    plan = make_plan(sdfg_in(signatures[0]), program_in(signatures[1]))
    for name in [slot.name for slot in plan.slots] + [leaf.path for leaf in plan.fields]:
        assert name in words


@pytest.mark.parametrize("command", ["show", "plan"])
@pytest.mark.parametrize("signatures", [SOLVER, DIFFUSION], ids=["solver", "diffusion"])
def test_tables_have_120_columns_in_a_pipe(command: str, signatures: list[Path]) -> None:
    tables = run(command, *map(str, signatures)).stdout.split("\n\n")[1:-1]
    lines = [line for table in tables for line in table.splitlines()]
    assert len(lines) > 60
    assert max(map(len, lines)) <= 120


def test_indices_have_a_line_for_each_axis_and_conditions_are_named_once() -> None:
    text = run("show", *map(str, DIFFUSION)).stdout
    table, legend = text[text.index("argument ") :].split("\n\n")[:2]
    rows = [" ".join(line.split()) for line in table.splitlines()]
    assert rows[0] == "argument axis indices used if"
    assert "vn Edge horizontal_start to horizontal_end - 1 A, C" in rows
    assert "vn K vertical_start to vertical_end - 1 A, C" in rows
    assert "u_vert Vertex as in E2C2V A, B, C" in rows
    # The same indices under two conditions, without those under conditions that include others.
    assert "z_nabla2_e K vertical_start to vertical_end - 1 A, B, C or A, C, D, E" in rows
    assert [row for row in rows if row.startswith("inv_vert_vert_length ")] == [
        "inv_vert_vert_length Edge a to horizontal_end - 1 A, B, C"
    ]
    assert legend.splitlines() == [
        "a: max(horizontal_start, start_2nd_nudge_line_idx_e)",
        "A: horizontal_start < horizontal_end",
        "B: start_2nd_nudge_line_idx_e < horizontal_end",
        "C: vertical_start < vertical_end",
        "D: horizontal_start < start_2nd_nudge_line_idx_e",
        "E: limited_area != 0",
    ]


def test_letters_stand_for_terms_that_are_repeated() -> None:
    inner, outer = "Max(first, second, 0)", "Min(N, Max(first, second, 0) - 1)"
    texts = [f"8 * {outer} * {inner}", f"8 * {outer}", f"{inner} + {outer}", f"{inner} - a", "Max(once, only)"]
    legend = Legend(*texts)
    assert legend.terms(texts) == ["8 * b * c", "8 * b", "c + b", "c - a", "Max(once, only)"]
    assert str(legend) == f"b: {outer}\nc: {inner}"


def test_letters_stand_for_texts_that_are_repeated() -> None:
    texts = ["if flag", *["a long condition of a branch"] * 3, *["another long condition"] * 2, *["if flag"] * 4]
    legend = Legend("A * N")
    assert legend.repeated(texts) == ["if flag", "B", "B", "B", *["another long condition"] * 2, *["if flag"] * 4]
    assert str(legend) == "B: a long condition of a branch"
    many = [legend.letter(f"condition {number}") for number in range(60)]
    assert len(set(many)) == 60
    assert not {"A", "N", "B"} & set(many)
