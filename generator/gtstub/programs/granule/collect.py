"""
Steps become the description of a granule. Each array that a call has is one of the granule, or a section of one: an
argument if the user has named it, and kept otherwise.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from gtstub import _host
from gtstub.errors import GranuleError
from gtstub.programs.granule.description import (
    Argument,
    ArrayValue,
    Call,
    Constant,
    Description,
    GranuleArray,
    GranuleProgram,
    GranuleScalar,
    GranuleStep,
    HookCall,
    Number,
    Variable,
)
from gtstub.programs.granule.memory import section_of
from gtstub.programs.granule.naming import Names, check_names, layout_of, reserved_names
from gtstub.programs.granule.sizes import with_sizes
from gtstub.programs.layout import Layout
from gtstub.stub.plan.model import CallbackLeaf, CallPlan, FieldLeaf, ScalarLeaf, StaticLeaf
from gtstub.stub.plan.planner import make_plan
from gtstub.stub.signature.documents import program_in, sdfg_in
from gtstub.stub.signature.dtypes import COMPLEX_DTYPES
from gtstub.util.callables import title


@dataclasses.dataclass(frozen=True)
class Collected:
    """
    A description, the memory of its arrays, and the cache entries and call plans of its programs, in their order.
    `fixed` has a text for each argument that Python may change between two runs, and that is constant in the granule.
    """

    description: Description
    layouts: tuple[Layout, ...]
    entries: tuple[Path, ...]
    plans: tuple[CallPlan, ...]
    fixed: Mapping[str, str]


@dataclasses.dataclass
class _Array:
    """An array while steps are read. `uses` are the program and the argument that have it, at each place."""

    layout: Layout
    name: str = ""
    dims: tuple[str, ...] = ()
    is_argument: bool = False
    is_table: bool = False
    is_field: bool = False
    written: bool = False
    uses: list[tuple[str, str]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class _Place:
    """A position of a step, for messages."""

    granule: str
    step: str
    position: int
    program: str

    def refusal(self, text: str) -> GranuleError:
        return GranuleError(
            f"Granule '{self.granule}' cannot have step '{self.step}': {text} (position {self.position}, "
            f"'{self.program}')."
        )


def collect(
    name: str,
    steps: Mapping[str, _host.Step],
    names: Set[str],
    arguments: Mapping[str, Layout],
    scalars: Mapping[str, str],
    hooks: Mapping[str, Callable[..., object]],
    kept: Mapping[str, Layout],
    names_of_kept: Set[str] = frozenset(),
) -> Collected:
    """
    The granule of steps. `arguments` are the arrays that the host passes; those of `names` must be in a step, others
    may be. `scalars` are the arguments of programs that the host passes, by its names. `kept` names arrays that the
    granule keeps; those of `names_of_kept` must be in a step, also as sections alone. Raises GranuleError.
    """
    return _Collector(name, names, arguments, scalars, hooks).collect(steps, kept, names_of_kept)


class _Collector:
    def __init__(
        self,
        name: str,
        names: Set[str],
        arguments: Mapping[str, Layout],
        scalars: Mapping[str, str],
        hooks: Mapping[str, Callable[..., object]],
    ) -> None:
        self._name = name
        self._names = names
        self._scalars = {argument: name for name, argument in scalars.items()}
        self._hooks = dict(hooks)
        self._values: dict[str, tuple[Constant, _Place]] = {}
        self._programs: dict[Path, tuple[GranuleProgram, CallPlan]] = {}
        self._arguments = arguments
        self._arrays: list[_Array] = []
        self._fixed: dict[str, str] = {}

    def collect(
        self, steps: Mapping[str, _host.Step], kept: Mapping[str, Layout], names_of_kept: Set[str]
    ) -> Collected:
        found = self._read_layouts(steps)
        self._add_arguments(found)
        check_names(self._name, steps, self._hooks, [array.name for array in self._arrays])
        self._add_named_kept(found, {name: layout for name, layout in kept.items() if name in names_of_kept})
        self._add_kept(found)
        made = tuple(self._step(name, step) for name, step in steps.items())
        self._check_tables(made)
        self._check_hooks(made)
        self._name_kept(kept)
        names = Names(reserved_names(self._name, steps))
        description = Description(
            name=self._name,
            arrays=tuple(map(_described, self._arrays)),
            programs=tuple(program for program, _ in self._programs.values()),
            scalars=tuple(self._scalar(each, names) for each in self._scalars),
            hooks=tuple(self._hooks),
            steps=made,
        )
        layouts, plans = (array.layout for array in self._arrays), tuple(plan for _, plan in self._programs.values())
        return Collected(with_sizes(description, plans), tuple(layouts), tuple(self._programs), plans, self._fixed)

    # --- Arrays -------------------------------------------------------------------------------------------------------

    def _read_layouts(self, steps: Mapping[str, _host.Step]) -> dict[Layout, _Place]:
        """All arrays of the steps, each with the first place that has it."""
        found: dict[Layout, _Place] = {}
        for name, step in steps.items():
            for place, action in self._positions(name, step):
                for layout in _layouts(action, place):
                    found.setdefault(layout, place)
        return found

    def _add_arguments(self, found: Mapping[Layout, _Place]) -> None:
        """Adds what the user has named. Of an object, only the arrays that a step has; each array once."""
        for name, layout in self._arguments.items():
            is_object = name not in self._names
            if is_object and any(layout == other.layout for other in self._arrays):
                continue
            if not any(layout.overlaps(each) for each in found):
                if is_object:
                    continue
                advice = " A zero-dimensional field is a scalar: name it in 'scalars'." if layout.shape == (1,) else ""
                raise GranuleError(f"No step of granule '{self._name}' has the array of argument '{name}'.{advice}")
            for other in self._arrays:
                if layout.overlaps(other.layout):
                    raise GranuleError(
                        f"Arguments '{other.name}' and '{name}' of granule '{self._name}' share memory: name one "
                        f"array, the larger one."
                    )
            self._arrays.append(_Array(layout, name, is_argument=True))

    def _add_named_kept(self, found: Mapping[Layout, _Place], kept: Mapping[str, Layout]) -> None:
        """Adds what the user has named, also if steps have sections of it alone."""
        for name, layout in kept.items():
            refusal = f"Array '{name}' in 'kept' of granule '{self._name}'"
            inside = [each for each in found if layout.overlaps(each)]
            if not inside:
                raise GranuleError(
                    f"{refusal} is in no step: pass it as an argument if the host needs it, or to a hook as a whole."
                )
            if self._find(layout) is not None:
                continue  # an argument, or named twice
            for other in self._arrays:
                if layout.overlaps(other.layout):
                    raise GranuleError(
                        f"{refusal} shares memory with array '{other.name}': name one array, the larger one."
                    )
            larger = next((each for each in inside if each != layout and section_of(each, layout) is None), None)
            if larger is not None:
                raise GranuleError(
                    f"{refusal} shares memory with an array of shape {larger.shape} that a step has, and that is no "
                    f"section of it: name that one, or the array that has both."
                )
            if layout not in found:
                self._arrays.append(_Array(layout, name))

    def _add_kept(self, found: Mapping[Layout, _Place]) -> None:
        """Adds the arrays that are no argument, the largest first, because others may be sections of them."""
        for layout, place in sorted(found.items(), key=lambda each: (-each[0].bytes, -math.prod(each[0].shape))):
            if self._find(layout) is None:
                self._check_no_overlap(layout, place)
                self._arrays.append(_Array(layout))

    def _check_no_overlap(self, layout: Layout, place: _Place) -> None:
        for other in self._arrays:
            if layout.overlaps(other.layout):
                whole = f"argument '{other.name}'" if other.is_argument else "another array"
                raise place.refusal(
                    f"an array of shape {layout.shape} shares memory with {whole} of shape {other.layout.shape}, and "
                    f"is no section of it"
                )

    def _find(self, layout: Layout) -> tuple[int, ArrayValue] | None:
        """The array that has these elements, as a program without origin gets it."""
        for number, array in enumerate(self._arrays):
            if array.layout == layout:
                return number, ArrayValue(number, ())
        for number, array in enumerate(self._arrays):
            section = section_of(layout, array.layout)
            if section is not None:
                return number, ArrayValue(number, (), section)
        return None

    def _name_kept(self, kept: Mapping[str, Layout]) -> None:
        names = Names(array.name for array in self._arrays if array.is_argument)
        given = {layout: name for name, layout in kept.items()}
        unnamed = [array for array in self._arrays if not array.is_argument]
        for array in sorted(unnamed, key=lambda array: array.layout not in given):  # What the user names comes first.
            program, argument = array.uses[0]
            chosen = [given[array.layout]] if array.layout in given else []
            array.name = names.new(*chosen, argument, f"{program}_{argument}")

    # --- Steps --------------------------------------------------------------------------------------------------------

    def _positions(self, name: str, step: _host.Step) -> Iterator[tuple[_Place, Any]]:
        for number, action in enumerate(flat_actions(step)):
            does = action.function if isinstance(action, _host.Action) else action
            yield _Place(self._name, name, number + 1, title(does)), action

    def _step(self, name: str, step: _host.Step) -> GranuleStep:
        positions = tuple(
            self._call(place, action) if isinstance(action, _host.BoundCall) else self._hook(place, action)
            for place, action in self._positions(name, step)
        )
        return GranuleStep(name, positions)

    def _hook(self, place: _Place, action: Any) -> HookCall:
        function = action.function if isinstance(action, _host.Action) else action
        for number, (name, hook) in enumerate(self._hooks.items()):
            if function == hook or action is hook:
                return HookCall(number, tuple(self._hook_array(place, name, each) for each in _arrays_of(action)))
        name = getattr(function, "__name__", "function")
        raise place.refusal(
            f"'{name}' is no hook: pass hooks={{'{name}': {name}}}, and the host passes a function for it"
        )

    def _hook_array(self, place: _Place, hook: str, value: Any) -> int:
        layout = layout_of(value)
        found = None if layout is None else self._find(layout)
        if found is None or found[1].section is not None:
            raise place.refusal(f"hook '{hook}' has a section of an array: pass the whole array")
        self._arrays[found[0]].uses.append((hook, "array"))
        self._arrays[found[0]].written = True  # What a hook does is not known.
        return found[0]

    def _call(self, place: _Place, call: _host.BoundCall) -> Call:
        entry = Path(call.program.stub_path).parent
        number, plan = self._program(place, entry, call.program)
        arrays, values = call.arrays, call.arguments
        arguments = []
        for leaf in plan.leaves:
            if leaf.name in self._scalars and leaf.name != leaf.path:
                raise place.refusal(f"argument '{leaf.path}' is also called '{leaf.name}', which is a scalar")
            if leaf.path in self._scalars and not isinstance(leaf, ScalarLeaf | StaticLeaf):
                raise place.refusal(f"argument '{leaf.path}' has the name of a scalar, but is an array or a function")
            match leaf:
                case FieldLeaf():
                    arguments.append(Argument(leaf.path, self._array(place, leaf, arrays[leaf.path])))
                case ScalarLeaf():
                    arguments.append(Argument(leaf.path, self._value(place, leaf, values[leaf.path])))
                case StaticLeaf():
                    if leaf.path in self._scalars:
                        raise place.refusal(f"scalar '{leaf.path}' was compiled in as {leaf.value!r}")
                    arguments.append(Argument(leaf.path))
                case CallbackLeaf():
                    raise place.refusal(f"argument '{leaf.path}' is a callback, which a granule cannot have")
        return Call(number, tuple(arguments))

    def _array(self, place: _Place, leaf: FieldLeaf, given: tuple[Any, ...]) -> ArrayValue:
        address, dtype, shape, strides, origin = given
        found = self._find(Layout(address, dtype, shape, strides))
        assert found is not None, "all arrays were read before"
        number, value = found
        array = self._arrays[number]
        array.uses.append((place.program, leaf.path))
        array.written |= leaf.array.written
        array.is_table |= leaf.is_connectivity
        array.is_field |= not leaf.is_connectivity
        if not array.dims and value.section is None:
            array.dims = tuple(axis.dim for axis in leaf.axes)
        return dataclasses.replace(value, origin=origin if any(origin) else ())

    def _value(self, place: _Place, leaf: ScalarLeaf, given: Any) -> Constant | Variable:
        number = _number(given)
        value = Constant(leaf.dtype, complex(number) if leaf.dtype in COMPLEX_DTYPES else number)
        if leaf.path not in self._scalars:
            if leaf.is_field:
                what = "member" if "." in leaf.path else "zero-dimensional field"
                text = f"{what} '{leaf.path}' of program '{place.program}' is {value.value!r}"
                self._fixed.setdefault(leaf.path, text)
            return value
        first, at = self._values.setdefault(leaf.path, (value, place))
        if repr(first) != repr(value):
            raise place.refusal(
                f"scalar '{leaf.path}' is {value.value!r} of type '{value.dtype}' here, and {first.value!r} of type "
                f"'{first.dtype}' at position {at.position} of step '{at.step}', '{at.program}'"
            )
        return Variable(list(self._scalars).index(leaf.path))

    def _scalar(self, path: str, names: Names) -> GranuleScalar:
        if path not in self._values:
            raise GranuleError(f"No program of granule '{self._name}' has the scalar '{path}'.")
        value, _ = self._values[path]
        return GranuleScalar(names.of_scalar(self._scalars[path]), path, value.dtype, value.value)

    # --- Programs -----------------------------------------------------------------------------------------------------

    def _program(self, place: _Place, entry: Path, program: _host.Program) -> tuple[int, CallPlan]:
        if entry not in self._programs:
            self._programs[entry] = self._read_program(place, entry, program)
        number = list(self._programs).index(entry)
        return number, self._programs[entry][1]

    def _read_program(self, place: _Place, entry: Path, program: _host.Program) -> tuple[GranuleProgram, CallPlan]:
        if not (entry / "program.json").is_file():
            raise place.refusal(f"its cache entry '{entry}' has been removed")
        plan = make_plan(sdfg_in(entry / "sdfg.json"), program_in(entry / "program.json"))
        if plan.device != "cpu":
            raise place.refusal(f"it runs on '{plan.device}', and granules run on the CPU")
        if plan.workspaces:
            raise place.refusal("it needs memory that its host lends (set_workspace), which a granule does not have")
        folders = {made.folder for made, _ in self._programs.values()}
        same = (f"{program.name}_{number}" for number in range(2, 10_000))
        folder = next(each for each in (program.name, *same) if f"programs/{each}" not in folders)
        made = GranuleProgram(program.name, f"programs/{folder}", program.program_digest, program.sdfg_digest)
        return made, plan

    def _check_hooks(self, steps: Sequence[GranuleStep]) -> None:
        used = {call.hook for step in steps for call in step.positions if isinstance(call, HookCall)}
        for number, name in enumerate(self._hooks):
            if number not in used:
                raise GranuleError(f"No step of granule '{self._name}' has the function of hook '{name}'.")

    def _check_tables(self, steps: Sequence[GranuleStep]) -> None:
        """Refuses a program that gets a table of the host at one place, and a kept one for it at another place."""
        for array in self._arrays:
            if array.is_argument and array.is_table and array.is_field:
                raise GranuleError(
                    f"Argument '{array.name}' of granule '{self._name}' is a table of one program and a field of "
                    f"another, which would get the host's indices as they are: leave it out, and the granule keeps it."
                )
        programs = list(self._programs.values())
        kinds: dict[tuple[int, str], bool] = {}
        for step in steps:
            for call in step.calls:
                for argument in call.arguments:
                    if not isinstance(argument.value, ArrayValue) or not self._arrays[argument.value.array].is_table:
                        continue
                    is_argument = self._arrays[argument.value.array].is_argument
                    if kinds.setdefault((call.program, argument.name), is_argument) != is_argument:
                        name = programs[call.program][0].name
                        raise GranuleError(
                            f"Granule '{self._name}' passes program '{name}' a table '{argument.name}' of the host at "
                            f"one position, and a kept one at another: name both as arguments, or none."
                        )


def flat_actions(step: _host.Step) -> Iterator[Any]:
    """The actions of a step and of the steps inside it, in the order in which they are done."""
    for action in step:
        if isinstance(action, _host.Step):
            yield from flat_actions(action)
        else:
            yield action


def _arrays_of(action: Any) -> tuple[Any, ...]:
    return action.arrays if isinstance(action, _host.Action) else ()


def _layouts(action: Any, place: _Place) -> Iterator[Layout]:
    if isinstance(action, _host.BoundCall):
        if action.device != "cpu":
            raise place.refusal(f"it runs on '{action.device}', and granules run on the CPU")
        for address, dtype, shape, strides, _ in action.arrays.values():
            yield Layout(address, dtype, shape, strides)  # type: ignore[arg-type]
        return
    for value in _arrays_of(action):
        layout = layout_of(value)
        if getattr(value, "shape", None) == ():
            raise place.refusal("it has a zero-dimensional array, which is a scalar of a granule, and no array")
        if layout is None:
            raise place.refusal(f"it has an array of type '{type(value).__qualname__}', whose memory is not known")
        yield layout


def _number(value: Any) -> Number:
    """A scalar of Python or numpy, or the element of a zero-dimensional field."""
    while not isinstance(value, bool | int | float | complex):
        value = value.item() if hasattr(value, "item") else value.as_scalar()
    # Not numpy.float64, which is a float.
    type_: Any = next(each for each in (bool, int, float, complex) if isinstance(value, each))
    return type_(value)  # type: ignore[no-any-return]


def _described(array: _Array) -> GranuleArray:
    layout = array.layout
    dims = array.dims or ("",) * len(layout.shape)
    return GranuleArray(
        array.name, layout.dtype, dims, layout.shape, layout.strides, array.is_argument, array.is_table, array.written
    )
