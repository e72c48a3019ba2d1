"""Ranks: code paths of square and other layouts, one builder for each key, and what launchers and users say."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gtstub import ranks
from gtstub.errors import RanksError
from gtstub.ranks import Ranks, from_environment, from_launcher, one_path, path_of_each_rank, tile_position


def positions(layout: ranks.Layout) -> list[str]:
    """The positions on a tile, row by row from the bottom."""
    rows, columns = layout
    names = [tile_position(rank, layout).removeprefix("FV3_") for rank in range(rows * columns)]
    return [" ".join(names[row * columns : (row + 1) * columns]) for row in range(rows)]


def refusal(environment: dict[str, str]) -> str:
    with pytest.raises(RanksError) as caught:
        from_environment(environment)
    return str(caught.value)


# --- Code paths -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ((1, 1), ["A"]),
        ((2, 2), ["BL BR", "TL TR"]),
        ((3, 3), ["BL B BR", "L C R", "TL T TR"]),
        ((3, 4), ["BL B B BR", "L C C R", "TL T T TR"]),
        ((4, 3), ["BL B BR", "L C R", "L C R", "TL T TR"]),
        ((2, 3), ["BL B BR", "TL T TR"]),
        ((1, 3), ["BTL BT BTR"]),
        ((3, 1), ["BLR", "LR", "TLR"]),
    ],
)
def test_positions_on_a_tile(layout: ranks.Layout, expected: list[str]) -> None:
    assert positions(layout) == expected


def test_positions_without_a_layout_are_one() -> None:
    assert tile_position(7, None) == "FV3_A"


def test_tiles_share_their_code_paths() -> None:
    assert [tile_position(rank, (3, 4)) for rank in range(12)] == [
        tile_position(12 + rank, (3, 4)) for rank in range(12)
    ]


def test_other_code_paths() -> None:
    assert [one_path(rank, (3, 3)) for rank in (0, 8)] == ["", ""]
    assert [path_of_each_rank(rank, None) for rank in (0, 12)] == ["rank_000000", "rank_000012"]


def test_code_path_is_a_name() -> None:
    for path in ("../elsewhere", "a/b", ".hidden", "/", "a b"):
        with pytest.raises(RanksError) as caught:
            Ranks(code_path=lambda rank, layout, path=path: path)
        assert f"Code path '{path}' of rank 0 must consist of letters" in str(caught.value)


# --- Who builds -------------------------------------------------------------------------------------------------------


def test_builder_is_the_same_in_every_process() -> None:
    code = "from gtstub.ranks import Ranks; print([Ranks(1, 7).builder(f'key-{n}') for n in range(9)])"
    for seed in ("1", "2"):  # of Python's own hash
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", code]
        said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        assert said.strip() == str([Ranks(5, 7).builder(f"key-{n}") for n in range(9)])


def test_turns_double() -> None:
    turns = sorted(Ranks(rank, 12).turn("key") for rank in range(12))
    assert turns == [0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4]
    assert Ranks(Ranks(0, 12).builder("key"), 12).turn("key") == 0


def test_turns_are_among_ranks_that_share() -> None:
    builder = Ranks(0, 12).builder("key")
    sharing = frozenset({builder, (builder + 5) % 12})
    assert Ranks((builder + 5) % 12, 12, sharing=sharing).turn("key") == 1
    others = [(builder + 3) % 12, (builder + 7) % 12]  # who do not see what the builder makes
    assert [Ranks(rank, 12, sharing=frozenset(others)).turn("key") for rank in others] == [0, 1]


@pytest.mark.parametrize(("rank", "size"), [(-1, 2), (2, 2), (0, 0)])
def test_rank_outside(rank: int, size: int) -> None:
    with pytest.raises(RanksError) as caught:
        Ranks(rank, size)
    assert str(caught.value) == f"Rank {rank} is not one of {size} ranks."


def test_layout_that_does_not_fit() -> None:
    with pytest.raises(RanksError) as caught:
        Ranks(0, 10, (3, 4))
    assert str(caught.value) == "Layout 3x4 does not fit 10 ranks: each tile needs 3 times 4 ranks."


# --- What a launcher says ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, (0, 1)),
        ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "9", "PMIX_RANK": "3"}, (3, 9)),
        ({"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2"}, (1, 2)),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, (1, 2)),
        ({"PMI_ID": "1", "PMI_SIZE": "2"}, (1, 2)),
        ({"PALS_RANKID": "1", "PMI_SIZE": "2"}, (1, 2)),
        ({"ALPS_APP_PE": "1", "PMI_SIZE": "2"}, (1, 2)),
        ({"FLUX_TASK_RANK": "1", "FLUX_JOB_SIZE": "2"}, (1, 2)),
        ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_NTASKS": "8"}, (1, 2)),
        ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "8"}, (1, 8)),
        ({"PMIX_RANK": "1", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}, (1, 2)),
    ],
)
def test_launchers(environment: dict[str, str], expected: tuple[int, int]) -> None:
    assert from_launcher(environment) == expected


def test_shell_of_a_slurm_job_is_no_rank() -> None:
    assert from_launcher({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}) == (0, 1)
    interactive = {"SLURM_STEP_ID": "4294967290", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "8"}
    assert from_launcher(interactive) == (0, 1)


def test_mpirun_inside_slurm() -> None:
    outer = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}
    assert from_launcher({**outer, "OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "9"}) == (5, 9)


def test_rank_without_a_size_is_left_out() -> None:
    assert from_launcher({"PMIX_RANK": "3"}) == (0, 1)


def test_malformed_launcher_variables() -> None:
    assert refusal({"PMI_RANK": "one", "PMI_SIZE": "2"}) == "Variable 'PMI_RANK' must be a rank, but is 'one'."
    assert refusal({"PMI_RANK": "0", "PMI_SIZE": ""}) == "Variable 'PMI_SIZE' must be a number of ranks, but is ''."
    assert (
        refusal({"PMI_RANK": "2", "PMI_SIZE": "2"}) == "Variables 'PMI_RANK=2' and 'PMI_SIZE=2' contradict each other."
    )


# --- What users say ---------------------------------------------------------------------------------------------------

TWELVE = {"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "12"}


def test_layout_and_code_path_of_the_environment() -> None:
    assert from_environment(TWELVE).path == ""
    assert from_environment({**TWELVE, "GTSTUB_LAYOUT": "3x4"}).path == "FV3_C"
    assert from_environment({**TWELVE, "GTSTUB_LAYOUT": "3x4", "GTSTUB_CODE_PATH": "one_path"}).path == ""
    assert from_environment({**TWELVE, "GTSTUB_CODE_PATH": "each_rank"}).path == "rank_000005"
    assert from_environment({**TWELVE, "GTSTUB_CODE_PATH": f"{__name__}:own_path"}).path == "odd"


def own_path(rank: int, layout: ranks.Layout | None) -> str:
    return ("even", "odd")[rank % 2]


@pytest.mark.parametrize("text", ["3", "3x", "0x3", "3x-1", "3x4x6", "a"])
def test_malformed_layout(text: str) -> None:
    assert refusal({"GTSTUB_LAYOUT": text}).endswith(f"such as '3x4', but is '{text}'.")


def test_unknown_code_path() -> None:
    assert refusal({"GTSTUB_CODE_PATH": "tiles"}) == (
        "GTSTUB_CODE_PATH must be 'one_path', 'tile_position', 'each_rank' or 'module:function', but is 'tiles'."
    )
    assert "cannot be imported" in refusal({"GTSTUB_CODE_PATH": "no_such_module:path"})
    assert "cannot be imported" in refusal({"GTSTUB_CODE_PATH": "os:no_such_function"})
    assert "but is 'os:sep'" in refusal({"GTSTUB_CODE_PATH": "os:sep"})


# --- Of this process --------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has not asked for its ranks."""
    monkeypatch.setattr(ranks, "_chosen", None)
    monkeypatch.setattr(ranks, "_is_used", False)


@pytest.mark.usefixtures("fresh")
def test_ranks_are_those_of_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TWELVE.items():
        monkeypatch.setenv(name, value)
    assert (ranks.current().rank, ranks.current().size) == (5, 12)


@pytest.mark.usefixtures("fresh")
def test_ranks_that_are_set() -> None:
    ranks.use_ranks(Ranks(1, 2))
    ranks.use_ranks(Ranks(2, 3))
    assert ranks.current() == Ranks(2, 3)


@pytest.mark.usefixtures("fresh")
def test_ranks_are_set_before_they_are_used() -> None:
    used = ranks.current()
    ranks.use_ranks(used)
    with pytest.raises(RanksError) as caught:
        ranks.use_ranks(Ranks(1, 2))
    assert "before the first program is compiled" in str(caught.value)
    assert ranks.current() is used
