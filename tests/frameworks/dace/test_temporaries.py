"""Kept arrays of granules that need no content at the start, because steps overwrite them before they read them."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest

import gtstub
from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.errors import GranuleError
from gtstub.programs.granule import recording
from gtstub.programs.granule.description import Description
from gtstub.programs.granule.kept import FILE, HEAD, IS_TEMPORARY, IS_WRITTEN, PLACE
from gtstub.programs.granule.library import Library
from gtstub.programs.granule.temporaries import temporaries
from gtstub.programs.granule.verify import read_granule, verify
from gtstub.tools.recorded.runtime import refusal, runtime
from gtstub.util.bits import digest

M, N = dace.symbol("M"), dace.symbol("N")
SIZE = 20


@gtstub.program
def fill(a: dace.float64[N], z: dace.float64[N]):
    z[:] = 2.0 * a


@gtstub.program
def fill_inside(a: dace.float64[N], z: dace.float64[N]):
    z[1:-1] = a[1:-1]


@gtstub.program
def fill_if(a: dace.float64[N], z: dace.float64[N]):
    if a[0] > 0.0:
        z[:] = a


@gtstub.program
def fill_unless(a: dace.float64[N], z: dace.float64[N], last: dace.int32):
    if last < 1:
        z[:] = a


@gtstub.program
def fill_end(a: dace.float64[M], z: dace.float64[N]):
    for i in dace.map[0:M]:
        z[N - 1 - i] = a[i]


@gtstub.program
def fill_every_second(a: dace.float64[N], z: dace.float64[N]):
    z[::2] = a[::2]


@gtstub.program
def add(a: dace.float64[N], z: dace.float64[N]):
    for i, j in dace.map[0:N, 0:N]:
        z[i] += a[j]


@gtstub.program
def use(z: dace.float64[N], out: dace.float64[N]):
    out[:] = z + 1.0


@gtstub.program
def use_inside(z: dace.float64[N], out: dace.float64[N]):
    out[1:-1] = z[:-2] * 0.0 + z[1:-1]


@gtstub.program
def use_deep_inside(z: dace.float64[N], out: dace.float64[N]):
    out[2:-2] = z[1:-3] + z[3:-1]


def change(z: np.ndarray) -> None:
    z += 1.0


def step(*calls: Any) -> gtstub.Step:
    """A step of programs with their arguments, and of actions."""
    actions = []
    for each in calls:
        if not isinstance(each, tuple):
            actions.append(each)
            continue
        with gtstub.capture() as captured:
            each[0](*each[1:])
        actions += list(captured)
    return gtstub.Step(actions, "test")


@pytest.fixture
def arrays() -> Mapping[str, np.ndarray]:
    random = np.random.default_rng(3)
    return {name: random.uniform(1.0, 2.0, SIZE) for name in ("a", "z", "out")}


def granule(arrays: Mapping[str, np.ndarray], *steps: gtstub.Step, **options: Any) -> gtstub.Granule:
    named = {f"step_{number}": each for number, each in enumerate(steps)}
    passed = {name: arrays[name] for name in ("a", "out")}
    return gtstub.Granule("test", steps=named, arguments=passed, **options)


def left_out(made: gtstub.Granule) -> set[str]:
    collected = made._collect()
    return {collected.description.arrays[number].name for number in temporaries(collected, made._named())}


def test_written_and_then_read(arrays: Mapping[str, np.ndarray]) -> None:
    a, z, out = arrays.values()
    assert left_out(granule(arrays, step((fill, a, z), (use, z, out)))) == {"z"}
    assert left_out(granule(arrays, step((fill, a, z), (use, a, out)))) == {"z"}


def test_read_first(arrays: Mapping[str, np.ndarray]) -> None:
    a, z, out = arrays.values()
    assert left_out(granule(arrays, step((use, z, out), (fill, a, z)))) == set()


def test_a_part_is_written(arrays: Mapping[str, np.ndarray]) -> None:
    """It counts where nothing else is read."""
    a, z, out = arrays.values()
    assert left_out(granule(arrays, step((fill_inside, a, z), (use, z, out)))) == set()
    assert left_out(granule(arrays, step((fill_inside, a, z), (use_inside, z, out)))) == set()
    assert left_out(granule(arrays, step((fill_inside, a, z), (use_deep_inside, z, out)))) == {"z"}
    assert left_out(granule(arrays, step((fill_every_second, a, z), (use_deep_inside, z, out)))) == set()


def test_parts_are_written_by_several_calls(arrays: Mapping[str, np.ndarray]) -> None:
    a, z, out = arrays.values()
    whole = step((fill_end, a[:1], z), (fill_inside, a, z), (fill_end, a[:19], z), (use, z, out))
    assert left_out(granule(arrays, whole)) == set()  # the first element
    whole = step((fill_end, a[:1], z), (fill_inside, a, z), (fill_end, a[:20], z), (use, z, out))
    assert left_out(granule(arrays, whole)) == {"z"}
    assert left_out(granule(arrays, step((fill_end, a[:18], z), (use_deep_inside, z, out)))) == set()
    assert left_out(granule(arrays, step((fill_end, a[:19], z), (use_deep_inside, z, out)))) == {"z"}


def test_a_scalar_decides_what_is_written(arrays: Mapping[str, np.ndarray]) -> None:
    """A scalar that the host passes is not known."""
    a, z, out = arrays.values()
    assert left_out(granule(arrays, step((fill_unless, a, z, 0), (use, z, out)))) == {"z"}
    assert left_out(granule(arrays, step((fill_unless, a, z, 1), (use, z, out)))) == set()
    assert left_out(granule(arrays, step((fill_unless, a, z, 0), (use, z, out)), scalars=["last"])) == set()


def test_data_decide_whether_it_is_written(arrays: Mapping[str, np.ndarray]) -> None:
    a, z, out = arrays.values()
    assert left_out(granule(arrays, step((fill_if, a, z), (use, z, out)))) == set()
    assert left_out(granule(arrays, step((fill, a, z), (fill_if, a, z), (use, z, out)))) == {"z"}


def test_what_is_there_is_used(arrays: Mapping[str, np.ndarray]) -> None:
    a, z, out = arrays.values()
    assert left_out(granule(arrays, step((add, a, z), (use, z, out)))) == set()
    assert left_out(granule(arrays, step((fill, a, z), (add, a, z), (use, z, out)))) == {"z"}


def test_another_step_reads_first(arrays: Mapping[str, np.ndarray]) -> None:
    a, z, out = arrays.values()
    first, second = step((fill, a, z), (use, z, out)), step((use, z, out))
    assert left_out(granule(arrays, first, second)) == set()
    assert left_out(granule(arrays, first, step((use, a, out)))) == {"z"}


def test_a_hook_gets_it(arrays: Mapping[str, np.ndarray]) -> None:
    a, z, out = arrays.values()
    made = step((fill, a, z), gtstub.action(change, z), (use, z, out))
    assert left_out(granule(arrays, made, hooks={"change": change})) == set()


def test_the_user_has_named_it(arrays: Mapping[str, np.ndarray]) -> None:
    """The host may look at it before a step runs, or swap it."""
    a, z, out = arrays.values()
    called = step((fill, a, z), (use, z, out))
    assert left_out(granule(arrays, called, kept={"z": z})) == set()
    assert left_out(granule(arrays, called, kept={"state": {"z": z}})) == {"state_z"}


def test_a_section_of_it_is_passed(arrays: Mapping[str, np.ndarray]) -> None:
    a, z, out = arrays.values()
    made = granule(arrays, step((fill, a, z), (fill, a[1:], z[1:]), (use, z, out)))
    assert left_out(made) == set()


def part_of(folder: Path, name: str) -> int:
    """Where the file of kept arrays has an array."""
    number = [array.name for array in read_granule(folder).arrays].index(name)
    return int(PLACE.unpack_from((folder / FILE).read_bytes(), HEAD.size + number * PLACE.size)[0])


def test_a_temporary_has_no_bytes_in_the_file(arrays: Mapping[str, np.ndarray], tmp_path: Path) -> None:
    """And an export compares what the granule does without its content."""
    a, z, out = arrays.values()
    called = step((fill, a, z), (use, z, out))
    before = [array.tobytes() for array in arrays.values()]
    folder = granule(arrays, called).export(tmp_path / "without")
    assert part_of(folder, "z") == IS_TEMPORARY
    assert part_of(granule(arrays, called, kept={"z": z}).export(tmp_path / "with"), "z") == IS_WRITTEN
    assert (tmp_path / "without" / FILE).stat().st_size < (tmp_path / "with" / FILE).stat().st_size
    assert [array.tobytes() for array in arrays.values()] == before
    verify(folder, lambda _: None)


def test_an_export_finds_that_content_is_needed(
    arrays: Mapping[str, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the analysis were wrong, nothing would be exported."""
    a, z, out = arrays.values()
    made = granule(arrays, step((use, z, out), (fill, a, z)))
    monkeypatch.setattr("gtstub.programs.granule.granule.temporaries", lambda collected, named: frozenset([2]))
    with pytest.raises(GranuleError) as refusal:
        made.export(tmp_path / "wrong")
    assert str(refusal.value) == (
        "Step 'step_0' of granule 'test' gives array 'out' other values if temporaries are zero at the start, which "
        "are: 'z'. This is an error of gtstub. The granule keeps the values of those that are named in 'kept'."
    )
    assert not (tmp_path / "wrong").exists()


def test_hooks_run_three_times_in_an_export(arrays: Mapping[str, np.ndarray], tmp_path: Path) -> None:
    """
    Those of ranks communicate, and not all ranks have temporaries. An export runs each hook from the values that arrays
    have, and twice from other ones.
    """
    a, z, out = arrays.values()
    calls = itertools.count(1)  # A list would be put back.

    def count(out: np.ndarray) -> None:
        out += next(calls)  # other values each time

    made = granule(arrays, step((fill, a, z), (use, z, out), gtstub.action(count, out)), hooks={"count": count})
    assert part_of(made.export(tmp_path / "hook"), "z") == IS_TEMPORARY
    assert next(calls) == 4


def test_a_recording_is_from_zeros(arrays: Mapping[str, np.ndarray]) -> None:
    """Elements that nothing writes are then as in the granule."""
    a, z, out = arrays.values()
    made = granule(arrays, step((fill_inside, a, z), (use_deep_inside, z, out)))
    collected = made._collect()
    description: Description = collected.description
    actions = {"step_0": list(made._steps["step_0"])}
    content = z.copy()
    found = recording.record(description, collected.layouts, temporaries(collected, ()), actions)
    begin = a.copy()
    recording.change(description, ["a"], {"a": begin}.__getitem__)
    expected = np.concatenate([[0.0], begin[1:-1], [0.0]])
    assert found.runs["step_0"].after["z"] == digest(expected)
    assert z.tobytes() == content.tobytes()


def test_a_temporary_has_no_values_before_a_step_has_run(
    arrays: Mapping[str, np.ndarray], toolchain: Toolchain, tmp_path: Path
) -> None:
    a, z, out = arrays.values()
    folder = granule(arrays, step((fill, a, z), (use, z, out))).export(tmp_path / "g")
    compiled = tmp_path / "g.so"
    toolchain.start(folder / "test_granule.c", compiled).wait()
    description = read_granule(folder)
    library = Library(compiled, description, folder)
    library.bind({name: arrays[name].copy() for name in ("a", "out")}, {})
    with pytest.raises(GranuleError) as refused:
        library.array("z")
    assert str(refused.value) == (
        "Array 'z' of granule 'test' is a temporary, which has no values before a step has run: export the granule "
        "with kept={'z': ...} to keep them."
    )
    library.run(description.steps[0])
    np.testing.assert_array_equal(library.array("out"), library.array("z") + 1.0)
    library.close()


def test_a_temporary_with_values_is_swapped_with_one_that_has_some(
    arrays: Mapping[str, np.ndarray], toolchain: Toolchain, tmp_path: Path
) -> None:
    a, z, out = arrays.values()
    w = np.ones(SIZE)
    steps = [step((fill, a, each), (use, each, out)) for each in (z, w)]
    folder = granule(arrays, *steps, kept={"of_temporaries": {"z": z, "w": w}}).export(tmp_path / "g")
    compiled = tmp_path / "g.so"
    toolchain.start(folder / "test_granule.c", compiled).wait()
    description = read_granule(folder)
    names = [array.name for array in description.arrays if array.name not in ("a", "out")]
    library = Library(compiled, description, folder)
    library.bind({name: arrays[name].copy() for name in ("a", "out")}, {})

    def swap() -> int:
        return runtime().gts_granule_swap(library._handle, *(name.encode() for name in names))

    assert swap() == 0
    library.run(description.steps[0])
    assert swap() == -1
    assert f"Array '{names[1]}' of granule 'test' is a temporary, which has no values before a step" in str(refusal())
    library.run(description.steps[1])
    assert swap() == 0
    np.testing.assert_array_equal(library.array(names[0]), library.array(names[1]))
    library.close()


def test_a_temporary_is_swapped_with_temporaries_alone(
    arrays: Mapping[str, np.ndarray], toolchain: Toolchain, tmp_path: Path
) -> None:
    """The elements of `z` at the ends, which no step writes, are not Python's."""
    a, z, out = arrays.values()
    w = np.ones(SIZE)
    steps = step((fill_inside, a, z), (use_deep_inside, z, out), (use, w, out))
    folder = granule(arrays, steps).export(tmp_path / "g")
    compiled = tmp_path / "g.so"
    toolchain.start(folder / "test_granule.c", compiled).wait()
    description = read_granule(folder)
    (kept,) = (array.name for array in description.arrays if array.name not in ("a", "z", "out"))
    library = Library(compiled, description, folder)
    library.bind({name: arrays[name].copy() for name in ("a", "out")}, {})
    library.run(description.steps[0])
    assert runtime().gts_granule_swap(library._handle, b"z", kept.encode()) == -1
    assert str(refusal()) == (
        f"Arrays 'z' and '{kept}' of granule 'test' cannot be swapped: one is a temporary, whose elements that no step "
        "writes have no values. Export the granule with both in kept={...}."
    )
    library.close()
