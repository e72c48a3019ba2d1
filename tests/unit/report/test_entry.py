"""The report of an entry: what it says of arguments, slots, kernels, times and what is missing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from gtstub.abi import ABI
from gtstub.errors import CacheError, GtstubError
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature import documents
from gtstub.stub.signature.model import Axis, ProgramSignature, SdfgSignature
from gtstub.tools.memory.sizes import SizeError
from gtstub.tools.profiling.model import Profile
from gtstub.tools.report.arguments import axis_order
from gtstub.tools.report.entry import report
from gtstub.tools.report.model import Chip, Constant, ProgramReport, UsedWhen, to_json
from tests.support.goldens import REAL, signatures_of
from tests.support.reported import publish
from tests.support.sdfg_documents import EDGE, mapped, state, transient
from tests.support.sdfg_documents import sdfg as lowered_sdfg
from tests.support.signatures import (
    CALLING_PROGRAM,
    CALLING_SDFG,
    SHAPES_PROGRAM,
    SHAPES_SDFG,
    WHOLE_PROGRAM,
    WHOLE_SDFG,
    K,
    array,
    field,
    program,
    scalar,
    sdfg,
    with_static,
)
from tests.support.signatures import EDGE as DIM_EDGE


@pytest.fixture
def whole(tmp_path: Path) -> ProgramReport:
    return report(publish(tmp_path).path)


def test_arguments_and_slots_refer_to_each_other(whole: ProgramReport) -> None:
    plan = make_plan(WHOLE_SDFG, WHOLE_PROGRAM)
    assert [slot.name for slot in whole.slots] == [slot.name for slot in plan.slots]
    by_place = {leaf.index: leaf for leaf in whole.leaves}
    for slot in whole.slots:
        if slot.leaf is not None:
            assert slot.index in by_place[slot.leaf].slots
    assert sum(len(leaf.slots) for leaf in whole.leaves) + sum(slot.leaf is None for slot in whole.slots) == 18
    vn = next(leaf for leaf in whole.leaves if leaf.path == "vn")
    assert (vn.contract, vn.device) == ("float64 field on [Edge (start 0, stride 1), K]", "cpu")
    assert vn.used == (UsedWhen("Edge 0 to 1", "", ()),)
    assert vn.fortran == "real(c_double), intent(in) :: vn(:, :)"
    x_0 = next(leaf for leaf in whole.leaves if leaf.path == "x[0]")
    assert x_0.agrees == ("size of axis 0 of 'x[0]' equals size of axis 1 of 'vn'",)


def test_the_verdict_counts(whole: ProgramReport) -> None:
    note = "8 of them are sizes, starts and strides"
    assert whole.chips[:2] == (
        Chip("arguments → slots", "8 → 18", note),
        Chip("kernels", "3", "the longest chain has 3 kernels"),
    )


def test_kernels_are_those_of_the_lowered_sdfg(whole: ProgramReport) -> None:
    assert [(kernel.label, kernel.dims, kernel.depth) for kernel in whole.kernels] == [
        ("first", "Edge", 0),
        ("second", "Edge, K", 1),
        ("third", "Edge, K", 2),
    ]
    assert [edge.kernel for edge in whole.kernels[2].reads_from] == [0, 1]
    assert whole.kernels[1].ranges == ("Edge first:last", "K 0:nlev")
    assert whole.kernels[2].where == ("flag",)


def test_indices_are_in_the_order_of_the_axes_and_conditions_are_apart(tmp_path: Path) -> None:
    made = report(publish(tmp_path, *signatures_of("apply_diffusion_to_vn")).path)
    used = {leaf.path: leaf.used for leaf in made.leaves}
    horizontal = ("horizontal_start < horizontal_end", "start_2nd_nudge_line_idx_e < horizontal_end")
    conditions = (*horizontal, "vertical_start < vertical_end")
    indices = "Vertex as in E2C2V; K vertical_start to vertical_end - 1"
    assert used["u_vert"] == (UsedWhen(indices, " and ".join(conditions), conditions),)
    # Its elements are read without levels. No result needs them if there are none.
    indices = "Edge max(horizontal_start, start_2nd_nudge_line_idx_e) to horizontal_end - 1"
    assert used["inv_primal_edge_length"] == (UsedWhen(indices, " and ".join(conditions), conditions),)


def test_axes_of_kernels_are_in_the_order_of_the_fields(tmp_path: Path) -> None:
    written = mapped("vn", "out_0", "i_K_gtx_vertical=0:9", "i_Edge_gtx_horizontal=0:4", label="m")
    made = report(publish(tmp_path, lowered=lowered_sdfg(state(written, label="s"))).path)
    assert [(kernel.dims, kernel.ranges) for kernel in made.kernels] == [("Edge, K", ("Edge 0:5", "K 0:10"))]
    assert axis_order(make_plan(*signatures_of("apply_diffusion_to_vn"))) == ("Vertex", "Edge", "K", "E2C2V")
    fields = {"a": field(K, DIM_EDGE), "b": field(DIM_EDGE, K)}  # which have no common order
    plan = make_plan(sdfg(array("a", Axis(), Axis()), array("b", Axis(), Axis())), program("prog", **fields))
    assert axis_order(plan) == ("K", "Edge")


def test_what_was_compiled_in(tmp_path: Path) -> None:
    signature = with_static(program("prog", x=field(K), out=field(K), limit=scalar("int32")), limit=3)
    arrays = (array("out", Axis(start=0, stride=1)), array("x", Axis(start=0, stride=2)))
    made = report(publish(tmp_path, sdfg(*arrays), signature, baked={"limit": 3, "K.size": 27}).path)
    assert made.static == {"limit": "3"}
    assert made.constants == (
        Constant("limit", "3", "argument, int32"),
        Constant("K.size", "27", "used by the program"),
        Constant("start of axis 0, K", "0", "of 'x', 'out'"),
        Constant("stride of axis 0, K", "2", "of 'x'"),
        Constant("stride of axis 0, K", "1", "of 'out'"),
    )


def test_the_ingredients_have_their_paths(whole: ProgramReport) -> None:
    assert [(each.group, each.path, each.value) for each in whole.ingredients] == [
        ("program", "program.x", "null"),
        ("static", "static.flag", "[true]"),
        ("versions", "versions.dace", "2.0.0a10"),
        ("versions", "versions.gtstub", "1"),
    ]


def test_an_entry_without_an_sdfg_still_has_a_report(tmp_path: Path) -> None:
    made = report(publish(tmp_path, lowered=None).path)
    why = "The entry has no '{}', because an older gtstub built it: build it again to see this."
    lowered, compiled = why.format("sdfg.json.gz"), why.format("program.sdfgz")
    assert made.absent == {"kernels": lowered, "memory": compiled, "findings": lowered}
    assert [chip.value for chip in made.chips] == ["8 → 18", "?", "?", "?"]
    assert made.kernels == ()


def test_a_program_without_a_fortran_interface_says_why(tmp_path: Path) -> None:
    made = report(publish(tmp_path, sdfg(array("_x", Axis())), program("prog", _x=field(K))).path)
    assert (
        made.absent["fortran"] == "The name of argument '_x' of program 'prog' begins with '_'; Fortran forbids that."
    )
    assert (made.fortran_module, made.leaves[0].fortran) == ("", "")


@pytest.mark.parametrize("name", REAL)
def test_every_real_program_has_a_report_that_fits_the_schema(tmp_path: Path, name: str) -> None:
    made = report(publish(tmp_path, *signatures_of(name), key=f"{name}-{'a' * 32}").path)
    text = json.dumps(to_json([made]))
    assert documents.parse(text, name, "report") == json.loads(text)
    assert made.name == signatures_of(name)[1].name


@pytest.mark.parametrize("signatures", [(CALLING_SDFG, CALLING_PROGRAM), (SHAPES_SDFG, SHAPES_PROGRAM)])
def test_programs_of_dace_have_one_too(tmp_path: Path, signatures: tuple[SdfgSignature, ProgramSignature]) -> None:
    made = report(publish(tmp_path, *signatures).path)
    documents.parse(json.dumps(to_json([made])), "report", "report")
    assert len(made.slots) == len(make_plan(*signatures).slots)


TIMES = {"min": 1e-6, "median": 2e-6, "max": 3e-6, "total": 4e-6}


def profile_of(name: str, digest: str, **static: object) -> Profile:
    calls = {"calls": 2, "conversion": TIMES, "sdfg": TIMES, "whole": {**TIMES, "median": 5e-6}}
    program = {"name": name, "sdfg_digest": digest, "static": static, "initial": None, "run": calls}
    return Profile({"schema": "gtstub/profile/1", "wall": 8e-6, "programs": [program]})


def test_the_times_of_a_profile_are_those_of_the_same_sdfg(tmp_path: Path) -> None:
    entry = publish(tmp_path)
    digest = documents.digest(documents.sdfg_to_json(WHOLE_SDFG))
    made = report(entry.path, profile=profile_of("whole", digest))
    (timer,) = made.timers
    assert (timer.what, timer.calls, timer.whole, timer.sdfg, timer.share) == ("calls", 2, 5e-6, 2e-6, 0.5)
    other = report(entry.path, profile=profile_of("whole", "0" * 64))
    assert other.timers == ()
    assert other.absent["timers"] == f"The profile has no call of this program with the SDFG signature {digest[:8]}."


def test_a_profile_of_another_variant_has_no_times_of_this_one(tmp_path: Path) -> None:
    entry = publish(tmp_path, baked={"flag": True})
    digest = documents.digest(documents.sdfg_to_json(WHOLE_SDFG))
    assert report(entry.path, profile=profile_of("whole", digest, flag=True)).timers
    assert not report(entry.path, profile=profile_of("whole", digest, flag=False)).timers


def test_memory_has_the_sizes_of_a_call(tmp_path: Path) -> None:
    lowered = lowered_sdfg(state(mapped("vn", "tmp", EDGE)), arrays={"tmp": transient("__nk")})
    entry = publish(tmp_path, lowered=lowered)
    made = report(entry.path)
    assert made.memory is not None
    assert (made.memory.unknown, made.chips[2].value, made.chips[2].tone) == (("__nk",), "?", "unknown")
    made = report(entry.path, dimensions={"K": 65}, symbols={"__vn_K_stride": 32})
    assert (made.sizes["__nk"], made.sizes["__vn_K_stride"]) == (65, 32)
    assert (made.chips[2].value, made.chips[2].tone) == ("520 B", "plain")


def test_a_size_of_what_a_program_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SizeError) as refused:
        report(publish(tmp_path).path, dimensions={"Cell": 3})
    assert str(refused.value).startswith("Program 'whole' has no dimension 'Cell'.")


def test_findings_are_those_of_the_rules(whole: ProgramReport) -> None:
    assert whole.findings is not None
    assert [(each.rule, each.level, each.data) for each in whole.findings.findings] == [("1", "info", "out_0")]
    assert whole.chips[3] == Chip("rules broken / advice", "0 / 0", "4 rules were not checked", "good")


def test_an_entry_of_another_abi_is_refused(tmp_path: Path) -> None:
    entry = publish(tmp_path)
    source = entry.path / "whole_stub.c"
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace(f"#if GTS_ABI != {ABI}\n", f"#if GTS_ABI != {ABI + 1}\n"), encoding="utf-8")
    with pytest.raises(CacheError) as refused:
        report(entry.path)
    assert str(refused.value) == (
        f"The cache entry '{entry.path}' was built for ABI {ABI + 1} of gtstub, and this gtstub has ABI {ABI}: build "
        "it again, or use the gtstub that built it."
    )


def test_a_damaged_entry_is_refused(tmp_path: Path) -> None:
    entry = publish(tmp_path)
    (entry.path / "program.json").unlink()
    with pytest.raises(CacheError) as refused:
        report(entry.path)
    assert str(refused.value) == f"The cache entry '{entry.path}' lacks its file 'program.json'."


NEITHER = "is not an SDFG: it is neither JSON nor compressed JSON, or is truncated."


@pytest.mark.parametrize(
    ("lowered", "message"),
    [
        (b"no SDFG", NEITHER),
        (
            gzip.compress(b'{"type": "SDFG"}', mtime=0)[:-9],
            "is not an SDFG: it is neither JSON nor compressed JSON, or is truncated.",
        ),
        (b'{"type": "Graph"}', "is not an SDFG: its 'type' is not 'SDFG'."),
        (
            b'{"type": "SDFG", "nodes": {}}',
            "is not an SDFG: its 'attributes' have no 'name'.",
        ),
    ],
)
def test_an_sdfg_that_cannot_be_read_is_refused(tmp_path: Path, lowered: bytes, message: str) -> None:
    entry = publish(tmp_path, lowered=lowered)
    with pytest.raises(GtstubError) as refused:
        report(entry.path)
    assert str(refused.value) == f"'{entry.path / 'sdfg.json.gz'}' {message}"
