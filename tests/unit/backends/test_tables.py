"""Tables of backends: which section wins, what a choice says of itself, and what is said of tables that are wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtstub.errors import ConfigError
from gtstub.frameworks.backends.choice import Choice, Gpu, Reason, Tag, choose
from gtstub.frameworks.backends.tables import Table, load_tables, read_table, table_files

RISING = (
    "default",
    "device.gpu",
    "device.cuda",
    "arch.sm_90",
    "program.p",
    "program.p.device.gpu",
    "program.p.device.cuda",
    "program.p.arch.sm_90",
)
"""All sections that apply to program 'p' on an sm_90, the least specific first."""

OTHERS = (
    "device.cpu",
    "device.rocm",
    "arch.sm_80",
    "program.q",
    "program.q.device.gpu",
    "program.q.arch.sm_90",
    "program.p.device.cpu",
    "program.p.arch.zen4",
)


def table(text: str, file: Path) -> Table:
    file.write_text(text, encoding="utf-8")
    return read_table(file)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.toml"


def in_p(text: str, file: Path, tag: str = "GTSTUB_GPU", arch: str = "sm_90") -> Choice:
    return choose("p", tag, arch, [table(text, file)])


def reason_of(choice: Choice, option: str) -> Reason:
    (reason,) = (reason for reason in choice.reasons if reason.setting.option == option)
    return reason


# --- Which section wins -----------------------------------------------------------------------------------------------


@given(
    st.lists(st.permutations(RISING + OTHERS), min_size=1, max_size=3),
    st.sets(st.sampled_from(RISING), min_size=1),
)
def test_the_most_specific_section_wins_then_the_later_file(
    tmp_path_factory: pytest.TempPathFactory, orders: list[list[str]], present: set[str]
) -> None:
    directory = tmp_path_factory.mktemp("tables")
    tables = [
        table(
            "\n".join(f"[{name}]\ndace.x = '{number} {name}'" for name in order if name in present or name in OTHERS),
            directory / f"{number}.toml",
        )
        for number, order in enumerate(orders)
    ]
    choice = choose("p", Tag.DACE_GPU, "sm_90", tables)
    falling = [
        f"{number} {name}" for name in reversed(RISING) if name in present for number in reversed(range(len(orders)))
    ]
    assert choice.options == {"x": falling[0]}
    (reason,) = choice.reasons
    chain = []
    while reason is not None:
        chain.append(reason.setting.value)
        reason = reason.overrode  # type: ignore[assignment]
    assert chain == falling, "What was overridden is not told in order."


@pytest.mark.parametrize(
    ("tag", "arch", "expected"),
    [
        ("DACE_CPU", "zen4", "cpu"),
        ("DACE_GPU", "sm_90", "cuda"),
        ("DACE_GPU", "gfx90a", "rocm"),
        ("DACE_GPU", "", "cuda"),
    ],
)
def test_the_device_is_told_by_tag_and_architecture(file: Path, tag: str, arch: str, expected: str) -> None:
    text = "\n".join(f"device.{device}.dace.x = '{device}'" for device in ("cpu", "gpu", "cuda", "rocm"))
    assert in_p(text, file, tag, arch).options == {"x": expected}


@pytest.mark.parametrize(("arch", "gpu"), [("", "rocm"), ("gfx90a", "rocm"), ("", "cuda"), ("sm_90", "cuda")])
def test_the_kind_of_a_gpu_may_be_said(file: Path, arch: str, gpu: Gpu) -> None:
    tables = [table("device.cuda.dace.x = 'cuda'\ndevice.rocm.dace.x = 'rocm'", file)]
    assert choose("p", "DACE_GPU", arch, tables, gpu).options == {"x": gpu}


@pytest.mark.parametrize(
    ("tag", "arch", "gpu", "machine"),
    [
        ("DACE_CPU", "sm_90", None, "a CPU, as 'zen4'"),
        ("DACE_CPU", "gfx90a", None, "a CPU, as 'zen4'"),
        ("DACE_GPU", "zen4", None, "a GPU, as 'sm_90' or 'gfx90a'"),
        ("DACE_GPU", "sm_90", "rocm", "a GPU of ROCm, as 'gfx90a'"),
        ("DACE_GPU", "gfx90a", "cuda", "a GPU of CUDA, as 'sm_90'"),
    ],
)
def test_an_architecture_of_another_device_is_refused(tag: str, arch: str, gpu: Gpu | None, machine: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        choose("p", tag, arch, [], gpu)
    assert str(refusal.value) == f"Program 'p' with tag '{tag}' runs on {machine}, but the architecture is '{arch}'."


def test_an_unknown_architecture_is_no_section(file: Path) -> None:
    assert in_p("arch.sm_90.dace.x = 1", file, arch="").options == {}


def test_nested_tables_merge_key_by_key(file: Path) -> None:
    text = """
        [default.dace]
        a = 1
        optimization_args = {x = 1, hooks = {f = "m:f", g = "m:g"}}
        [program.p.dace.optimization_args]
        y = 2
        hooks.g = "m:h"
    """
    assert in_p(text, file).options == {
        "a": 1,
        "optimization_args": {"x": 1, "hooks": {"f": "m:f", "g": "m:h"}, "y": 2},
    }


def test_default_takes_an_option_out(file: Path) -> None:
    choice = in_p('default.dace.a.x = 1\nprogram.p.dace.a.x = "default"', file)
    assert choice.options == {}
    assert reason_of(choice, "dace.a.x").overrode is not None


# --- Backends and tags ------------------------------------------------------------------------------------------------


def test_gtstub_takes_options_of_dace_and_its_own_win_in_one_section(file: Path) -> None:
    text = """
        default.gtstub = {a = "own", b = "own"}
        default.dace = {a = "dace", b = "dace", c = "dace"}
        program.p.dace.b = "dace of p"
    """
    assert in_p(text, file, "GTSTUB_CPU", "zen4").options == {"a": "own", "b": "dace of p", "c": "dace"}
    assert in_p(text, file, "DACE_CPU", "zen4").options == {"a": "dace", "b": "dace of p", "c": "dace"}
    assert in_p(text, file, "GTFN_CPU", "zen4").options == {}


@pytest.mark.parametrize("tag", Tag)
def test_a_tag_names_the_backend_or_a_table_does(file: Path, tag: Tag) -> None:
    text = 'default.backend = "dace"\ndevice.gpu.backend = "gtstub"\nprogram.p.device.gpu.backend = "gtfn"'
    choice = in_p(text, file, tag, "")
    assert choice.device == tag.lower()[-3:]
    if tag in (Tag.CPU, Tag.GPU):
        assert choice.backend == {"CPU": "dace", "GPU": "gtfn"}[tag]
        assert reason_of(choice, "backend").setting.value == choice.backend
    else:
        assert choice.backend == tag.lower()[:-4]
        assert choice.reasons == ()


def test_an_unknown_tag_is_refused() -> None:
    with pytest.raises(ConfigError) as refusal:
        choose("p", "gtstub_gpu", "", ())
    assert str(refusal.value) == "There is no backend tag 'gtstub_gpu'. Did you mean: 'GTSTUB_GPU'?"


def test_a_table_must_say_what_cpu_means() -> None:
    with pytest.raises(ConfigError) as refusal:
        choose("p", "CPU", "", ())
    assert str(refusal.value) == "No table names the backend of tag 'CPU' for program 'p'."


# --- Lines ------------------------------------------------------------------------------------------------------------

MANY_LINES = '''# A comment with [default] in it

[default]
backend = "dace" # line 4
dace.a = [
  1, # [program.p]
  2,
]
dace.b = """
c = 1
[program.p]
"""
dace.c = 3

[program]
"q" = {dace = {d = 16}, backend = "gtfn"}
[ program . p . arch . "sm_90" ]
dace . "e" = 18
  [program.p.device.gpu.dace.f.g]
  h = 20
'''


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_lines_are_those_of_the_file(file: Path, ending: str) -> None:
    file.write_bytes(MANY_LINES.replace("\n", ending).encode())
    found = {(str(setting.section), setting.option): setting.line for setting in read_table(file).settings}
    assert found == {
        ("default", "backend"): 4,
        ("default", "dace.a"): 5,
        ("default", "dace.b"): 9,
        ("default", "dace.c"): 13,
        ("program.q", "dace.d"): 16,
        ("program.q", "backend"): 16,
        ("program.p.arch.sm_90", "dace.e"): 18,
        ("program.p.device.gpu", "dace.f.g.h"): 20,
    }


# --- Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[default\n", ", line 1, column 9: Expected ']' at the end of a table declaration."),
        ("\nx = 1\nx = 2\n", ", line 3, column 6: Cannot overwrite a value."),
        ('a = """', ", end of document: Unterminated string."),
        ("\n[progam.p]", ", line 2: There is no section 'progam'. Did you mean: 'program'?"),
        ("default = 1", ", line 1: 'default' must be a table, but is 1."),
        ("program.p = 1", ", line 1: 'program.p' must be a table, but is 1."),
        ("arch = []", ", line 1: 'arch' must be a table, but is []."),
        ("\narch.zen4 = true", ", line 2: 'arch.zen4' must be a table, but is True."),
        ("[device.cdua]", ", line 1: There is no device 'cdua'. Did you mean: 'cuda'?"),
        ("[program.p.device.GPU]", ", line 1: There is no device 'GPU'. Did you mean: 'gpu'?"),
        ("[default]\ndac.x = 1", ", line 2: There is no setting 'dac'. Did you mean: 'dace'?"),
        ("[program.p]\ngtfn = 'x'", ", line 2: 'program.p.gtfn' must be a table, but is 'x'."),
        ("default.backend = 'dacee'", ", line 1: There is no backend 'dacee'. Did you mean: 'dace'?"),
        ("default.backend = 1", ", line 1: There is no backend 1. Known: 'gtfn', 'dace', 'gtstub'."),
        ("default.backend.x = 1", ", line 1: There is no backend {'x': 1}. Known: 'gtfn', 'dace', 'gtstub'."),
        ("default.dace.x = 2000-01-01", ", line 1: 'dace.x' must not be a date or a time."),
        ("default.dace.x = 10:00:00", ", line 1: 'dace.x' must not be a date or a time."),
    ],
)
def test_a_wrong_table_is_refused_with_its_line(file: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        table(text, file)
    assert str(refusal.value) == f"'{file}'{message}"


def test_what_is_not_text_is_refused(file: Path) -> None:
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigError) as refusal:
        read_table(file)
    assert str(refusal.value) == f"'{file}' is not TOML: it is not UTF-8 text."


@pytest.mark.parametrize("reverse", [False, True])
def test_a_table_cannot_override_a_value(file: Path, reverse: bool) -> None:
    lines = ["default.dace.a.b = 1", "program.p.dace.a = 2"]
    if reverse:
        lines = ["program.p.dace.a.b = 1", "default.dace.a = 2"]
    with pytest.raises(ConfigError) as refusal:
        in_p("\n".join(lines), file)
    assert str(refusal.value) == f"'{file}', line 2: 'dace.a' is a table in '{file}', line 1."


# --- Where tables are -------------------------------------------------------------------------------------------------


def test_tables_are_gtstubs_then_the_users_then_those_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("GTSTUB_BACKENDS", f"{tmp_path}/1.toml:{tmp_path}/2.toml")
    (tmp_path / "gtstub").mkdir()
    mine = [tmp_path / "gtstub" / "backends.toml", tmp_path / "1.toml", tmp_path / "2.toml"]
    for number, file in enumerate(mine):
        table(f"[program.graupel_run]\ndace.x{number} = {number}\ndace.x = {number}", file)
    who = [name for name, _ in table_files()]
    assert who == ["gtstub", "user", "GTSTUB_BACKENDS", "GTSTUB_BACKENDS"]
    tables = load_tables()
    assert [table.file for table in tables][1:] == mine
    options = choose("graupel_run", "DACE_CPU", "", tables).options
    assert {name: options[name] for name in ("x0", "x1", "x2", "x")} == {"x0": 0, "x1": 1, "x2": 2, "x": 2}
    assert options["optimization_args"] == {"fuse_tasklets": True}


def test_only_the_users_table_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert [table.file.parent.name for table in load_tables()] == ["backends"]
    monkeypatch.setenv("GTSTUB_BACKENDS", str(tmp_path / "missing.toml"))
    with pytest.raises(FileNotFoundError):
        load_tables()


# --- The table that is shipped ----------------------------------------------------------------------------------------

HOOK = {"TopLevelDataFlowStep": "gtstub.frameworks.hooks:remove_access_node_copies"}
SOLVER = {"optimization_hooks": HOOK, "scan_loop_unrolling": True, "scan_loop_unrolling_factor": 0}


@pytest.mark.parametrize(
    ("program", "tag", "arch", "expected"),
    [
        ("any", "CPU", "zen4", {}),
        ("any", "GPU", "sm_90", {"async_sdfg_call": True}),
        ("vertically_implicit_solver_at_predictor_step", "CPU", "", {"optimization_args": SOLVER}),
        ("vertically_implicit_solver_at_corrector_step", "CPU", "", {"optimization_args": SOLVER}),
        ("compute_rho_theta_pgrad_and_update_vn", "CPU", "", {"use_zero_origin": True}),
        ("graupel_run", "CPU", "zen4", {"optimization_args": {"fuse_tasklets": True}}),
        (
            "graupel_run",
            "GPU",
            "gfx90a",
            {"async_sdfg_call": True, "optimization_args": {"fuse_tasklets": True}},
        ),
        (
            "graupel_run",
            "GPU",
            "sm_90",
            {
                "async_sdfg_call": True,
                "optimization_args": {"fuse_tasklets": True, "gpu_maxnreg": 80, "gpu_block_size_2d": [64, 6]},
            },
        ),
    ],
)
def test_the_shipped_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, tag: str, arch: str, expected: Mapping[str, Any]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    choice = choose(program, tag, arch, load_tables())
    assert choice.backend == "gtstub"
    assert choice.options == {"unstructured_horizontal_has_unit_stride": True, **expected}
    json.dumps(choice.options)
