"""Exports of granules: what a folder has, what is refused, and that Python's arrays are as before."""

from __future__ import annotations

import itertools
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gt4py.next import common

import gtstub
from gtstub.errors import CaptureError, CaptureWarning, GranuleError
from gtstub.programs.granule.description import ArrayValue, Call, Constant, HookCall, Section, Variable
from gtstub.programs.granule.verify import read_granule
from tests.support import small_programs as small
from tests.support.granules import LEVELS, POINTS, ROWS, Exported, Model, built, field
from tests.support.small_programs import I, K

pytestmark = pytest.mark.xdist_group("granule")

SCALE = common._field(np.array(0.75), domain=common.domain({}))

FILES = ["capture.json", "capture.npz", "granule.json", "kept.bin", "programs"]


@pytest.fixture
def model(tiny: Exported) -> Model:
    """After its programs were built."""
    assert tiny.folder.is_dir()
    return Model()


def all_bytes(model: Model) -> list[bytes]:
    return [value.tobytes() for value in vars(model).values() if isinstance(value, np.ndarray)]


def capture(*calls: tuple[Any, ...]) -> gtstub.Step:
    with gtstub.capture() as step:
        for program, *arguments in calls:
            program(*arguments, **({} if program is built()[2] else {"offset_provider": {}}))
    return gtstub.Step([*step], "step")


def refusal(steps: dict[str, Any], **options: Any) -> str:
    with pytest.raises(GranuleError) as caught:
        gtstub.Granule("g", steps=steps, **options)
    return str(caught.value)


# --- What is exported -------------------------------------------------------------------------------------------------


def test_the_files_of_a_folder(tiny: Exported) -> None:
    code = [f"tiny_granule{suffix}" for suffix in (".c", ".f90", ".h")]
    assert sorted(each.name for each in tiny.folder.iterdir()) == sorted([*FILES, *code])
    for name in code:
        text = (tiny.folder / name).read_text(encoding="utf-8")
        assert str(tiny.folder.parent) not in text
        assert str(Path.home()) not in text


def test_the_description(tiny: Exported) -> None:
    found = read_granule(tiny.folder)
    assert {(each.name, each.is_argument, each.written, each.is_table) for each in found.arrays} == {
        ("u", True, True, False),
        ("w", True, True, False),
        ("line", True, True, False),
        ("edges", True, False, False),
        ("vertices", True, True, False),
        ("v2e", True, False, True),
        ("coefficients", False, False, False),
        ("work", False, True, False),
        ("history", False, True, False),
        ("weights", False, False, False),
    }
    assert [each.name for each in found.arguments] == ["u", "w", "line", "edges", "vertices", "v2e"]
    assert (found.hooks, [each.name for each in found.programs][::2]) == (("exchange",), ["mix", "gather"])
    assert [(each.name, each.dtype, each.value) for each in found.scalars] == [("factor", "float64", 0.5)]
    run, first = found.steps
    assert [type(each) for each in run.positions] == [Call, Call, HookCall, Call, Call, Call, Call]
    assert len(first.positions) == 1
    values = {argument.name: argument.value for argument in run.positions[0].arguments}  # type: ignore[union-attr]
    section = Section((ROWS, LEVELS - 1), (0, 1), (1, 1), (0, 1))
    assert values == {
        "a": ArrayValue(0, (2, 0), section),
        "b": ArrayValue(6, (2, 0)),
        "scale": Constant("float64", 0.75),
        "factor": Variable(0),
        "out": ArrayValue(7, (2, 0)),
    }


def test_equal_granules_have_equal_code(tiny: Exported, model: Model, tmp_path: Path) -> None:
    again = model.granule().export(tmp_path / "again")
    for file in tiny.folder.iterdir():
        if file.is_file() and file.suffix != ".npz":
            assert file.read_bytes() == (again / file.name).read_bytes(), file.name


def test_the_arrays_are_as_before(model: Model, tmp_path: Path) -> None:
    before = all_bytes(model)
    model.calls_to_exchange, model.hook_calls = itertools.count(), 7
    model.granule().export(tmp_path / "tiny")
    assert all_bytes(model) == before
    assert next(model.calls_to_exchange) == 3  # from the values of now, and twice from other ones
    assert model.hook_calls == 7


@pytest.mark.filterwarnings("ignore:Granule 'g' has constants")
def test_what_hooks_reach_is_as_before(model: Model, tmp_path: Path) -> None:
    buffer = {"rows": np.zeros((2, LEVELS)), "count": np.zeros(1, object)}
    log: list[float] = []

    def exchange(u: np.ndarray) -> None:
        log.append(u[0, 0])
        buffer["count"][0] += 1
        buffer["rows"][:] = u[-2], u[1]
        u[0], u[-1] = buffer["rows"]

    step = gtstub.Step([*model.first, gtstub.action(exchange, model.u)])
    gtstub.Granule("g", steps={"s": step}, hooks={"exchange": exchange}).export(tmp_path / "g")
    assert not buffer["rows"].any()
    assert (log, buffer["count"].tolist()) == ([], [0])


def test_a_hook_that_resizes_an_array(model: Model, tmp_path: Path) -> None:
    """All that can be put back is, also an array that can be written in the hook alone."""
    history, fixed, u = np.zeros(2), np.zeros(1), model.u.copy()
    fixed.flags.writeable = False

    def note() -> None:
        history.resize(history.size + 1, refcheck=False)
        fixed.flags.writeable = True
        fixed[0] += 1
        fixed.flags.writeable = False

    steps = {"s": gtstub.Step([*model.first, note])}
    granule = gtstub.Granule("g", steps=steps, arguments={"u": model.u}, hooks={"note": note})
    with pytest.raises(GranuleError) as refused:
        granule.export(tmp_path / "g")
    assert str(refused.value).startswith("Granule 'g' cannot be exported: array 'history' cannot be put back: ")
    assert not (tmp_path / "g").exists()
    assert (fixed.tolist(), fixed.flags.writeable, model.u.tolist()) == ([0.0], False, u.tolist())


def test_a_refused_export_runs_hooks_as_often_as_others(model: Model, tmp_path: Path) -> None:
    """All ranks run hooks equally often, because they communicate."""
    calls = itertools.count()

    def change() -> None:
        next(calls)
        model.u[0, -1] = 0.0

    steps = {name: gtstub.Step([*model.first, change]) for name in ("s", "other")}
    granule = gtstub.Granule("g", steps=steps, arguments={"u": model.u}, hooks={"h": change})
    with pytest.raises(GranuleError, match=r"changes array 'u', which it does not get, .* \(position 2 of step 's'\)"):
        granule.export(tmp_path / "g")
    assert next(calls) == 6


@pytest.mark.filterwarnings("ignore:Granule 'g' has constants")
def test_a_hook_that_writes_behind_a_read_only_view(model: Model, tmp_path: Path) -> None:
    """With the same values in each call: the view begins with other ones, because its memory can be written."""
    model.coefficients[:] = 1.0
    whole = model.coefficients.view()
    model.coefficients.flags.writeable = False
    fixed = model.coefficients

    def change() -> None:
        whole[0] = whole[-1]

    step = capture((built()[0], field(model.work, I, K), field(fixed, I, K), SCALE, 0.5, field(model.work, I, K)))
    granule = gtstub.Granule("g", steps={"s": gtstub.Step([*step, change])}, hooks={"h": change})
    with pytest.raises(GranuleError, match=r"which it does not get, at 4 of 16 elements"):
        granule.export(tmp_path / "g")
    assert (model.coefficients == 1.0).all()


def test_a_kept_array_of_which_steps_have_sections(model: Model, tmp_path: Path) -> None:
    whole = model.new(2, POINTS)
    step = capture((built()[2], whole[0], whole[1], 0.25), (built()[2], model.line, whole[0], 0.25))
    folder = gtstub.Granule("g", steps={"s": step}, kept={"whole": whole}).export(tmp_path / "g")
    found = read_granule(folder)
    assert {each.name: each.shape for each in found.arrays} == {"whole": (2, POINTS), "x": (POINTS,)}
    assert [argument.value.array for argument in found.steps[0].positions[0].arguments[:2]] == [0, 0]  # type: ignore[union-attr]


def test_constants_are_not_copied_for_each_process(tiny: Exported) -> None:
    """Arrays that are zero have no bytes in the file: head, constants and what is written are a part each."""
    assert (tiny.folder / "kept.bin").stat().st_size == 3 * 0x10000


def test_everything_may_be_kept(model: Model, tmp_path: Path) -> None:
    folder = model.granule(arguments={}, kept={}).export(tmp_path / "kept")
    found = read_granule(folder)
    assert found.arguments == ()
    assert [each.name for each in found.arrays if each.is_table] == ["V2E"]
    assert len({each.name for each in found.arrays}) == len(found.arrays) == 10


def test_arguments_of_objects(model: Model, tmp_path: Path) -> None:
    objects = {"state": {"u": model.u, "w": model.w, "unused": np.zeros(3)}, "more": [model.line, model.u]}
    description = read_granule(model.granule(arguments=objects).export(tmp_path / "tiny"))
    assert [each.name for each in description.arguments] == ["state_u", "state_w", "more_0"]


def test_a_granule_without_hooks_and_scalars(model: Model, tmp_path: Path) -> None:
    granule = model.granule(steps={"first": model.first}, arguments={"u": model.u}, scalars=[], hooks={}, kept=None)
    folder = granule.export(tmp_path / "first")
    (step,) = read_granule(folder).steps
    assert Constant("float64", 0.5) in [each.value for each in step.positions[0].arguments]  # type: ignore[union-attr]


def test_an_export_has_the_arrays_of_a_swap(model: Model, tmp_path: Path) -> None:
    other = model.new(POINTS)
    step = capture((built()[2], model.line, model.history, 0.25), (built()[2], model.history, other, 0.25))
    granule = gtstub.Granule("g", steps={"step": step}, kept={"history": model.history, "other": other})
    names = []
    for folder in (tmp_path / "before", tmp_path / "after"):
        found = read_granule(granule.export(folder))
        value = found.steps[0].positions[0].arguments[1].value  # type: ignore[union-attr]
        assert isinstance(value, ArrayValue)
        names.append(found.arrays[value.array].name)
        step.swap(model.history, other)
    assert names == ["history", "other"]


def test_views_with_other_strides_are_kept(model: Model, tmp_path: Path) -> None:
    """Memory with gaps, with the axes in another order, backwards, and of one element."""
    mix = built()[0]
    scale = common._field(np.array(1.5), domain=common.domain({}))
    wide, turned, backwards = model.new(ROWS, 9), model.new(LEVELS, ROWS), model.new(ROWS, LEVELS)
    out, one, tiny = np.zeros((ROWS, LEVELS)), model.new(1, 1), np.zeros((1, 1))
    views = [wide[:, 1:6], turned.T, backwards[::-1, ::-1]]
    step = capture(
        (mix, field(views[0], I, K), field(views[1], I, K), scale, 0.5, field(out, I, K)),
        (mix, field(out, I, K), field(views[2], I, K), scale, 0.5, field(views[0], I, K)),
        (mix, field(one, I, K), field(one, I, K), scale, 0.5, field(tiny, I, K)),
    )
    gtstub.Granule("g", steps={"step": step}).export(tmp_path / "kept")
    gtstub.Granule(
        "g", steps={"step": step}, arguments={"a": views[0], "b": views[1], "c": views[2], "one": one}
    ).export(tmp_path / "arguments")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), -0.0, 5e-324, 1.7976931348623157e308])
def test_constants_and_scalars_keep_their_bits(model: Model, value: float, tmp_path: Path) -> None:
    mix = built()[0]
    scale = common._field(np.array(value), domain=common.domain({}))
    out = np.zeros((ROWS, LEVELS))
    step = capture((mix, field(model.u, I, K), field(model.w, I, K), scale, np.float64(value), field(out, I, K)))
    for scalars in ([], ["factor"]):
        folder = gtstub.Granule("g", steps={"step": step}, scalars=scalars).export(tmp_path / str(len(scalars)))
        found = read_granule(folder).steps[0].positions[0]
        assert repr(value) in [repr(each.value.value) for each in found.arguments if isinstance(each.value, Constant)]  # type: ignore[union-attr]


# --- What is refused --------------------------------------------------------------------------------------------------


def test_arguments_that_no_step_has(model: Model) -> None:
    assert refusal({"s": model.first}, arguments={"x": np.zeros(3)}) == (
        "No step of granule 'g' has the array of argument 'x'."
    )
    assert refusal({"s": model.first}, arguments={"x": 3}) == (
        "Argument 'x' of granule 'g' has no array: it is of type 'int'."
    )
    assert refusal({"s": model.first}, arguments={"x": model.u, "y": model.u[1:]}) == (
        "Arguments 'x' and 'y' of granule 'g' share memory: name one array, the larger one."
    )


def test_arrays_that_share_memory_and_are_no_sections(model: Model) -> None:
    text = refusal({"s": model.run}, arguments={"x": model.u[:, 1:]}, hooks={"exchange": model.exchange})
    assert text == (
        "Granule 'g' cannot have step 's': an array of shape (4, 5) shares memory with argument 'x' of shape (4, 4), "
        "and is no section of it (position 5, 'mix')."
    )


def test_kept_arrays_that_no_step_has(model: Model) -> None:
    beginning = "Array 'z' in 'kept' of granule 'g'"
    assert refusal({"s": model.first}, kept={"z": np.zeros(3)}) == (
        f"{beginning} is in no step: pass it as an argument if the host needs it, or to a hook as a whole."
    )
    whole = model.new(3, POINTS)
    step = capture((built()[2], whole[0], whole[1], 0.25))
    assert refusal({"s": step}, arguments={"u": whole[0]}, kept={"z": whole}) == (
        f"{beginning} shares memory with array 'u': name one array, the larger one."
    )
    assert refusal({"s": step}, kept={"z": whole[0, 1:]}) == (
        f"{beginning} shares memory with an array of shape (7,) that a step has, and that is no section of it: name "
        f"that one, or the array that has both."
    )
    gtstub.Granule("g", steps={"s": step}, arguments={"u": whole}, kept={"z": whole[0]})
    gtstub.Granule("g", steps={"s": step}, kept={"of": {"z": np.zeros(3)}})  # what the steps have of it


def test_no_steps() -> None:
    assert refusal({}) == "Granule 'g' has no steps."


def test_hooks_must_be_named(model: Model) -> None:
    assert refusal({"s": model.run}) == (
        "Granule 'g' cannot have step 's': 'exchange' is no hook: pass hooks={'exchange': exchange}, and the host "
        "passes a function for it (position 3, 'Model.exchange')."
    )


def test_a_hook_needs_whole_arrays(model: Model) -> None:
    step = gtstub.Step([*model.first, gtstub.action(model.exchange, model.u[1:])])
    assert refusal({"s": step}, arguments={"u": model.u}, hooks={"h": model.exchange}) == (
        "Granule 'g' cannot have step 's': hook 'h' has a section of an array: pass the whole array (position 2, "
        "'Model.exchange')."
    )


def test_a_hook_that_changes_a_constant(model: Model, tmp_path: Path) -> None:
    def change() -> None:
        model.coefficients[0, 0] += 1.0

    step = gtstub.Step([*model.first, change])
    granule = gtstub.Granule("g", steps={"s": step}, hooks={"h": change}, kept={"coefficients": model.coefficients})
    before = all_bytes(model)
    with pytest.raises(GranuleError) as refused:
        granule.export(tmp_path / "g")
    assert str(refused.value) == (
        "Hook 'h' of granule 'g' changes array 'coefficients', which it does not get, at 1 of 16 elements, first at "
        "(0, 0) (position 2 of step 's'): pass it to gtstub.action()."
    )
    assert all_bytes(model) == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [None, 0.0])
def test_a_hook_that_changes_an_array_it_does_not_get(model: Model, value: float | None, tmp_path: Path) -> None:
    """Also one that has the same value each time, such as a halo that is filled already."""

    def change() -> None:
        model.u[0, -1] = model.u[0, -1] + 1.0 if value is None else value

    model.u[0, -1] = 0.0
    step = gtstub.Step([*model.first, change])
    granule = gtstub.Granule("g", steps={"s": step}, arguments={"u": model.u}, hooks={"h": change})
    with pytest.raises(GranuleError, match=r"changes array 'u', which it does not get, at 1 of 20 elements"):
        granule.export(tmp_path / "g")
    assert list(tmp_path.iterdir()) == []


# --- From which values a step is verified -----------------------------------------------------------------------------


def test_steps_begin_with_other_values(tiny: Exported) -> None:
    """Those of all arrays but tables, and temporaries, which begin as zero."""
    runs = json.loads((tiny.folder / "capture.json").read_text(encoding="utf-8"))["runs"]
    arrays = ["u", "w", "line", "edges", "vertices", "weights", "coefficients", "work", "history"]
    assert {name: (sorted(run["changed"]), run["limits"]) for name, run in runs.items()} == {
        name: (sorted(arrays), "") for name in ("run", "first")
    }


def test_a_hook_that_changes_an_input_that_it_does_not_get(model: Model, tmp_path: Path) -> None:
    """An array that no program writes, with the same values everywhere."""
    model.coefficients[:] = 1.0

    def change() -> None:
        model.coefficients[0] = model.coefficients[-1]

    granule = gtstub.Granule(
        "g",
        steps={"s": gtstub.Step([*model.first, change])},
        kept={"coefficients": model.coefficients},
        hooks={"h": change},
    )
    with pytest.raises(GranuleError, match=r"changes array 'coefficients', which it does not get, at 4 of 16 elements"):
        granule.export(tmp_path / "g")
    assert (model.coefficients == 1.0).all()


@pytest.mark.filterwarnings("ignore:Granule 'g' has constants")
def test_a_hook_that_refuses_other_values_of_an_input(model: Model, tmp_path: Path) -> None:
    """Then only what steps write has other values."""

    def check() -> None:
        if model.coefficients[0, 0] != first:
            raise LookupError("other values")

    first = model.coefficients[0, 0]
    step = gtstub.Step([*model.first, check])
    granule = gtstub.Granule("g", steps={"s": step}, arguments={"u": model.u}, hooks={"h": check})
    text = "was verified with other values only in arrays that steps write: LookupError: other values."
    with pytest.warns(CaptureWarning, match=re.escape(text)):
        folder = granule.export(tmp_path / "g")
    (run,) = json.loads((folder / "capture.json").read_text(encoding="utf-8"))["runs"].values()
    assert len(run["changed"]) == 1


@pytest.mark.filterwarnings("ignore:Granule 'g' has constants")
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_hide_differences(model: Model, value: float, tmp_path: Path) -> None:
    model.work[:2] = value
    granule = gtstub.Granule("g", steps={"s": model.first}, arguments={"u": model.u}, kept={"work": model.work})
    text = "was verified with array 'u' not finite at 8 of 20 elements, which hides differences."
    with pytest.warns(CaptureWarning, match=re.escape(text)):
        granule.export(tmp_path / "g")


@pytest.mark.filterwarnings("ignore:Granule 'g' has constants")
@pytest.mark.parametrize("with_nan", [True, False])
def test_a_hook_that_refuses_other_values(model: Model, with_nan: bool, tmp_path: Path) -> None:
    before = model.u.copy()

    def check(u: np.ndarray) -> None:
        if u[0, -1] != before[0, -1]:
            if not with_nan:
                raise LookupError("other values")
            u[0, 0] = np.nan

    step = gtstub.Step([*model.first, gtstub.action(check, model.u)])
    granule = gtstub.Granule("g", steps={"s": step}, arguments={"u": model.u}, hooks={"check": check})
    said: list[str] = []
    why = "array 'u' is not finite" if with_nan else "LookupError: other values"
    with pytest.warns(CaptureWarning) as caught:
        granule.export(tmp_path / "g", progress=said.append)
    caught = [each for each in caught if str(each.message).startswith("Step")]
    text = f"Step 's' of granule 'g' was verified only from the values of the export: {why}."
    assert [(str(each.message), each.filename) for each in caught] == [(text, __file__)]
    assert said[-1] == f"Comparing step 's' with Python, only from the values of the export: {why}"
    assert model.u.tobytes() == before.tobytes()


# --- Scalars ----------------------------------------------------------------------------------------------------------


def test_a_zero_dimensional_field_is_a_constant_or_a_scalar(model: Model, tmp_path: Path) -> None:
    granule = gtstub.Granule("g", steps={"s": model.first})
    with pytest.warns(CaptureWarning) as caught:
        granule.export(tmp_path / "constant")
    assert [str(each.message) for each in caught] == [
        "Granule 'g' has constants where Python has memory: zero-dimensional field 'scale' of program 'mix' is 0.75. "
        "The host passes those that are named: scalars=['scale']."
    ]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        folder = gtstub.Granule("g", steps={"s": model.first}, scalars=["scale"]).export(tmp_path / "scalar")
    assert [(each.name, each.dtype, each.value) for each in read_granule(folder).scalars] == [
        ("scale", "float64", 0.75)
    ]
    assert refusal({"s": model.first}, arguments={"x": np.array(0.75)}) == (
        "No step of granule 'g' has the array of argument 'x'. A zero-dimensional field is a scalar: name it in "
        "'scalars'."
    )


def test_scalars(model: Model) -> None:
    assert refusal({"s": model.first}, scalars=["nothing"]) == "No program of granule 'g' has the scalar 'nothing'."
    relax = built()[2]
    step = capture((relax, model.line, model.history, 0.25), (relax, model.history, model.line, 0.5))
    assert refusal({"s": step}, scalars=["rate"]) == (
        "Granule 'g' cannot have step 's': scalar 'rate' is 0.5 of type 'float64' here, and 0.25 of type 'float64' at "
        "position 1 of step 's', 'tests_support_granule_programs_relax' (position 2, "
        "'tests_support_granule_programs_relax')."
    )


def test_a_scalar_that_was_compiled_in(model: Model) -> None:
    program = gtstub.compile(
        small.static_arguments,
        bound_static_args={"exponent": 3},
        static_args={"weights": [(2.0, 1.0)], "flag": [True]},
        backend_tag="GTSTUB_CPU",
        offset_provider={},
    )
    with gtstub.capture() as step:
        program(field(model.line, I), weights=(2.0, 1.0), flag=True, out=field(model.history, I))
    assert refusal({"s": gtstub.Step([*step])}, scalars=["exponent"]) == (
        "Granule 'g' cannot have step 's': scalar 'exponent' was compiled in as 3 (position 1, 'static_arguments')."
    )


def test_two_builds_of_one_program(model: Model, tmp_path: Path) -> None:
    program = gtstub.compile(
        small.static_arguments,
        static_args={"exponent": [2, 3], "weights": [(2.0, 1.0)], "flag": [True]},
        backend_tag="GTSTUB_CPU",
        offset_provider={},
    )
    with gtstub.capture() as step:
        for exponent in (2, 3):
            program(field(model.line, I), exponent=exponent, weights=(2.0, 1.0), flag=True, out=field(model.history, I))
    folder = gtstub.Granule("g", steps={"s": gtstub.Step([*step])}).export(tmp_path / "g")
    text = (folder / "g_granule.c").read_text(encoding="utf-8")
    assert "{.index = PROGRAM_static_arguments, " in text
    assert "{.index = PROGRAM_static_arguments_2, " in text
    assert (folder / "programs" / "static_arguments_2").is_dir()


def test_names(model: Model) -> None:
    assert "The name of argument 'class'" in refusal({"s": model.first}, arguments={"class": model.u})
    assert "Step 'open' of granule 'g' needs another name" in refusal({"open": model.first})


def test_a_method_that_sets_a_zero_dimensional_field(model: Model) -> None:
    """A step reads it at each start, so a method that sets it itself does more than the step."""
    mix = built()[0]
    scale = common._field(np.array(0.75), domain=common.domain({}))
    a, b, out, other = (field(array, I, K) for array in (model.u, model.w, *np.zeros((2, ROWS, LEVELS))))

    def run() -> None:
        mix(a, b, scale, 0.5, out, offset_provider={})
        scale.ndarray[...] = 0.75
        mix(a, b, scale, 0.5, other, offset_provider={})

    with pytest.raises(
        CaptureError, match=r"argument 'scale' of program 'mix' \(position 2\) at 1 of 1 elements, first"
    ):
        gtstub.capture(run)
    assert scale.ndarray == 0.75


# --- Folders ----------------------------------------------------------------------------------------------------------


def test_a_folder_that_exists(model: Model, tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "own").write_text("mine", encoding="utf-8")
    granule = model.granule(steps={"first": model.first}, arguments={}, hooks={}, kept={"work": model.work})
    for force in (False, True):
        with pytest.raises(GranuleError, match=r"tiny' exists: it has no granule, which could be replaced\."):
            granule.export(folder, force=force)
    assert (folder / "own").read_text(encoding="utf-8") == "mine"
    granule.export(tmp_path / "other")
    with pytest.raises(GranuleError, match=r"other' exists: pass force=True to replace it\."):
        granule.export(tmp_path / "other")
    before = (tmp_path / "other" / "kept.bin").read_bytes()
    model.work += 1.0
    granule.export(tmp_path / "other", force=True)
    assert (tmp_path / "other" / "kept.bin").read_bytes() != before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other", "tiny"]


class Stop(BaseException):
    pass


@pytest.mark.parametrize("at", ["Running", "Copying", "Writing", "Comparing step 'run'", "Comparing step 'first'"])
def test_an_interrupted_export_leaves_nothing(model: Model, at: str, tmp_path: Path) -> None:
    before = all_bytes(model)

    def stop(what: str) -> None:
        if what.startswith(at):
            raise Stop

    with pytest.raises(Stop):
        model.granule().export(tmp_path / "tiny", progress=stop)
    assert list(tmp_path.iterdir()) == []
    assert all_bytes(model) == before


def test_a_hook_that_is_interrupted_leaves_the_arrays(model: Model, tmp_path: Path) -> None:
    def fail() -> None:
        raise Stop

    granule = gtstub.Granule("g", steps={"s": gtstub.Step([*model.first, fail])}, hooks={"fail": fail})
    before = all_bytes(model)
    with pytest.raises(Stop):
        granule.export(tmp_path / "g")
    assert all_bytes(model) == before
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_export_keeps_the_granule_that_was_there(model: Model, folder: Path) -> None:
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    def stop(what: str) -> None:
        if what.startswith("Comparing"):
            raise Stop

    model.work += 1.0
    with pytest.raises(Stop):
        model.granule().export(folder, force=True, progress=stop)
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before
    assert [each.name for each in folder.parent.iterdir()] == [folder.name]


def test_what_no_step_has_is_refused(model: Model) -> None:
    def unused() -> None: ...

    with pytest.raises(GranuleError) as refused:
        model.granule(hooks={"exchange": model.exchange, "unused": unused})
    assert str(refused.value) == "No step of granule 'tiny' has the function of hook 'unused'."
    with pytest.raises(GranuleError) as refused:
        model.granule(scalars={"one": "factor", "two": "factor"})
    assert str(refused.value) == "Two scalars of granule 'tiny' are the same argument of programs."
    with pytest.raises(GranuleError) as refused:
        model.granule(scalars=["x"])
    assert "argument 'x' has the name of a scalar, but is an array or a function" in str(refused.value)


def test_a_granule_cannot_have_the_name_of_the_runtime(model: Model) -> None:
    with pytest.raises(GranuleError) as refused:
        gtstub.Granule("gts", steps={"run": model.first})
    assert str(refused.value) == "The name of granule 'gts' is that of the runtime: choose another one."
    with pytest.raises(GranuleError) as refused:
        gtstub.Granule("STEP", steps={"run": model.first})
    assert str(refused.value) == "The name of granule 'STEP' has a meaning in the generated C: choose another one."
