"""Steps: programs with all their arguments, and other callables, that are done in order by one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, overload

from gtstub import _host
from gtstub.errors import CaptureError
from gtstub.programs import registry
from gtstub.programs.captured import (
    Look,
    check_captured,
    run_as_others,
    verify_step,
    warn_of_calls_elsewhere,
    warn_of_unwritten,
)
from gtstub.settings import Mode, mode
from gtstub.util.callables import title


class Step(_host.Step):
    """
    Bound calls and callables that are done in order by one call::

        step = gtstub.Step([diffuse.bind(u, un, dtime=60.0), exchange_halos, advect.bind(un, u)], name="dynamics")
        step()
        step.set(dtime=30.0)

    A bound call is what the `bind` of a program returns. Programs run without the GIL. A callable takes no arguments,
    and its result is ignored. It may be another step, or a function with the arrays that it uses: `action()`.
    """

    calls_elsewhere = 0
    """Calls of programs by other threads while the step was captured, which it does not have."""

    def __str__(self) -> str:
        rows = [("", "action", "writes", "scalars"), *_rows(self)]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = ["  ".join(f"{text:<{width}}" for text, width in zip(row, [*widths, 0], strict=True)) for row in rows]
        notes = [_NOTE] if any(row[2] == _UNKNOWN for row in rows) else []
        return "\n".join([f"Step '{self.__name__}'", *(line.rstrip() for line in lines), *notes])


_UNKNOWN = "?"
_NOTE = "? is not known, and swap() does not reach it. gtstub.action(function, array) passes the arrays to a function."


def action(function: Callable[..., object], /, *arrays: Any) -> _host.Action:
    """
    A function of a step, with the arrays that it is called with::

        step = gtstub.Step([diffuse.bind(now, 60.0, new), gtstub.action(exchange, new)])
        step()  # calls exchange(new)
        step.swap(now, new)
        step()  # calls exchange(now)
    """
    return _host.Action(function, *arrays)


def swap(steps: Iterable[_host.Step], /, *arrays: Any) -> None:
    """
    Exchanges the arrays of each pair in several steps, as `Step.swap()` does in one: `gtstub.swap([dynamics, physics],
    now, new)`. All are exchanged, or none after an error. Each array must be in one of the steps.
    """
    _host.swap(steps, *arrays)


def _rows(step: _host.Step, outer: str = "") -> Iterator[tuple[str, str, str, str]]:
    """The rows of a table. Those of a step inside the step have numbers such as 2.1."""
    for number, each in enumerate(step):
        position = f"{outer}{number + 1}"
        if isinstance(each, _host.BoundCall):
            scalars = [f"{name}={value!r}" for name, value in each.arguments.items() if _is_number(value)]
            yield position, each.__name__, " ".join(each.written), " ".join(scalars)
        elif isinstance(each, _host.Step):
            yield position, f"step '{each.__name__}'", "", ""
            yield from _rows(each, f"{position}.")
        elif isinstance(each, _host.Action):
            count = len(each.arrays)
            yield position, f"{title(each.function)}({count} array{'' if count == 1 else 's'})", "", ""
        else:
            yield position, f"{title(each)}()", _UNKNOWN, ""


def _is_number(value: object) -> bool:
    return isinstance(value, bool | int | float)


@contextmanager
def _capturing(step: Step, look: Look | None = None) -> Iterator[Step]:
    """Captures the programs that a block calls in this thread. `look` sees the arrays before each of them."""
    if mode() == Mode.BUILD:
        registry.stop(why=f"step '{step.__name__}' is captured")
    elsewhere = _host.calls_elsewhere()
    running = _host.begin_capture(look)
    try:
        yield step
    finally:
        actions = _host.end_capture(running)
    step.actions = actions
    check_captured(step.__name__, actions)
    step.calls_elsewhere = _host.calls_elsewhere() - elsewhere


@contextmanager
def _captured_block(step: Step) -> Iterator[Step]:
    with _capturing(step):
        yield step
    _warn(step, stacklevel=5)  # of the block: two frames are Python's


def _captured(method: Callable[[], object], step: Step, look: Look | None = None) -> Step:
    with _capturing(step, look):
        method()
    return step


def _warn(step: Step, stacklevel: int) -> None:
    warn_of_calls_elsewhere(step, step.calls_elsewhere, stacklevel)
    warn_of_unwritten(step, stacklevel)


@overload
def capture(method: None = None, *, name: str = "step") -> AbstractContextManager[Step]: ...
@overload
def capture(method: Callable[[], object], *, verify: bool = True, name: str | None = None) -> Step: ...


def capture(
    method: Callable[[], object] | None = None, *, verify: bool = True, name: str | None = None
) -> AbstractContextManager[Step] | Step:
    """
    Captures the programs that are called, in order and with their arguments, as a step::

        with gtstub.capture() as step:
            granule.run(dtime)
        step()

    In the block, programs run as always. The step has their arrays and scalars. It has nothing else that the block
    does: numpy's work on the same fields, communication, branches that another run would take.

    `gtstub.capture(method)` calls `method()` three times, runs the step twice, and compares all its arrays bit for bit:
    from the values that the arrays have after the first call, and from slightly other ones, which show what the method
    does besides its programs, such as a halo exchange. Then the arrays are as after one call of the method, also after
    an error, and so are the attributes, lists and mappings that it reaches. It raises CaptureError if the step does not
    do the same, or if two calls differ in a program or an argument. If the step does not do the same, `method()` is
    called once more to find out between which programs it changes an array. In a parallel run, each rank calls
    `method()` four times and runs the step three times, whatever it finds, so that exchanges meet. If the
    method cannot be called with other values, a CaptureWarning says so. `verify=False` calls the method once and
    compares nothing.

    If a program reads elements that no program of the step writes, although an earlier one writes others of the array,
    a CaptureWarning says so: something else may have to fill them.

    Without a `name`, the step has that of the method, and of a lambda the function around it with its file and line.
    """
    if method is None:
        return _captured_block(Step([], name or "step"))
    name = name or title(method)
    step = Step([], name)
    try:
        _captured(method, step)
    except CaptureError:
        if verify:
            run_as_others(step, method)
        raise
    if verify:
        verify_step(step, lambda look: _captured(method, Step([], name), look), method)
    _warn(step, stacklevel=4)
    return step
