"""gtstub's words for calls that gt4py refuses before it calls the backend, and for tables that a build lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next import errors
from gt4py.next.otf import arguments
from gt4py.next.program_processors.runners.dace import run_dace_cpu_noopt

import gtstub
from gtstub.errors import ArgumentError
from gtstub.frameworks.gt4py import backend as plugin
from gtstub.frameworks.gt4py.calls import CallError, CheckedProgramType
from tests.support import small_programs as small
from tests.support.checkout import ROOT
from tests.support.small_programs import E2V, I, K, Vertex


def plane(dtype: Any = np.float64) -> gtx.Field:
    return gtx.as_field([I, K], np.zeros((3, 4), dtype))


def refusal(call: Callable[..., Any], *args: Any, **kwargs: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        call(*args, **kwargs)
    assert isinstance(caught.value, errors.DSLError)  # as gt4py's own
    assert isinstance(caught.value, TypeError)  # as that of the stub
    assert caught.value.__cause__ is not None
    return caught.value


def refused(call: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    return str(refusal(call, *args, **kwargs).message)


Call = tuple[tuple[Any, ...], dict[str, Any], str]

LINE, COLUMN = gtx.as_field([I], np.zeros(3)), gtx.as_field([K], np.zeros(4))
PAIR = (plane(), (plane(), 1.0))
OUT = (plane(), plane())

CALLS: dict[str, Call] = {
    "dtype": (
        (plane(np.float32), plane(), plane()),
        {},
        "Argument 'a' of program '<>' must have dtype 'float64', not 'float32'.",
    ),
    "dimensions": (
        (COLUMN, plane(), plane()),
        {},
        "Argument 'a' of program '<>' must be 'Field[[I, K], float64]', not 'Field[[K], float64]'.",
    ),
    "scalar": (
        (1.0, plane()),
        {"out": plane()},
        "Argument 'a' of program '<>' must be 'Field[[I, K], float64]', not 'float64'.",
    ),
    "missing": ((plane(),), {"b": plane()}, "Argument 'out' of program '<>' is missing; the program takes a, b, out."),
    "several missing": (
        (plane(),),
        {},
        "Arguments 'b', 'out' of program '<>' are missing; the program takes a, b, out.",
    ),
    "too many": ((plane(),) * 4, {}, "Program '<>' takes 3 arguments (a, b, out), but 4 were passed by position."),
    "unknown": ((plane(),) * 3, {"x": 1.0}, "Program '<>' has no parameter 'x'; it has a, b, out."),
    "twice": (
        (plane(), plane()),
        {"a": plane()},
        "Argument 'a' of program '<>' was given twice. Argument 'out' of program '<>' is missing; the program takes a,"
        " b, out.",
    ),
    "several": (
        (LINE, COLUMN, plane(np.int32)),
        {},
        "Argument 'a' of program '<>' must be 'Field[[I, K], float64]', not 'Field[[I], float64]'. Argument 'b' of"
        " program '<>' must be 'Field[[I, K], float64]', not 'Field[[K], float64]'. Argument 'out' of program '<>' must"
        " have dtype 'float64', not 'int32'.",
    ),
}


@pytest.mark.parametrize(("args", "kwargs", "message"), CALLS.values(), ids=CALLS)
def test_arguments_of_wrong_types(
    args: tuple[Any, ...], kwargs: dict[str, Any], message: str, backend: plugin.StubBackend
) -> None:
    program = small.implicit_domain.with_backend(backend)
    expected = message.replace("<>", "implicit_domain")
    assert refused(program, *args, **kwargs, offset_provider={}) == expected


def test_swapped_arguments(backend: plugin.StubBackend) -> None:
    line, static = gtx.as_field([I], np.zeros(3)), small.static_arguments.with_backend(backend)
    message = refused(static, line, (1.0, 2.0), flag=np.int32(1), exponent=True, out=line, offset_provider={})
    assert message == (
        "Arguments 'exponent' and 'flag' of program 'static_arguments' seem to be swapped: 'exponent' must be 'int32',"
        " and 'flag' must be 'bool'."
    )


def test_elements_of_tuples(backend: plugin.StubBackend) -> None:
    program = small.nested_tuples.with_backend(backend)
    wrong = (plane(), (plane(np.float32), 1.0))
    name = "of program 'nested_tuples' must"
    message = refused(program, wrong, 1.0, OUT, offset_provider={})
    assert message == f"Argument 'a[1][0]' {name} have dtype 'float64', not 'float32'."
    message = refused(program, PAIR, 1.0, (*OUT, plane()), offset_provider={})
    assert message == f"Argument 'out' {name} be a tuple of length 2, not 3."
    assert refused(program, PAIR, 1, OUT, offset_provider={}) == f"Argument 'b' {name} be 'float64', not 'int32'."


def test_a_field_operator_at_its_first_call(backend: plugin.StubBackend) -> None:
    message = refused(small.average.with_backend(backend), plane(), LINE, out=plane(), offset_provider={})
    assert message == "Argument 'b' of program 'average' must be 'Field[[I, K], float64]', not 'Field[[I], float64]'."


@pytest.mark.parametrize(("args", "kwargs"), [call[:2] for call in CALLS.values()], ids=CALLS)
def test_the_cause_is_the_cause_of_what_gt4py_raises(
    args: tuple[Any, ...], kwargs: dict[str, Any], backend: plugin.StubBackend
) -> None:
    cause = refusal(small.implicit_domain.with_backend(backend), *args, **kwargs, offset_provider={}).__cause__
    with pytest.raises(errors.DSLError) as caught:
        small.implicit_domain.with_backend(run_dace_cpu_noopt)(*args, **kwargs, offset_provider={})
    own = caught.value.__cause__
    assert (type(cause), str(cause)) == (type(own), str(own))


def test_a_tuple_that_is_too_long_has_the_cause_that_gt4py_raises(backend: plugin.StubBackend) -> None:
    call = small.nested_tuples.with_backend(backend)
    assert isinstance(refusal(call, PAIR, 1.0, (*OUT, plane()), offset_provider={}).__cause__, IndexError | ValueError)


def test_what_gt4py_takes_is_called(backend: plugin.StubBackend) -> None:
    a, out = gtx.as_field([I, K], np.ones((3, 4))), plane()
    program = small.implicit_domain.with_backend(backend)
    program(a, b=a, out=out, offset_provider={})
    np.testing.assert_array_equal(out.asnumpy(), np.ones((3, 4)))
    refused(program, a, b=a, out=LINE, offset_provider={})  # also after a call


def test_the_type_of_a_program_is_in_no_key(backend: plugin.StubBackend) -> None:
    """gt4py asks for the type of a call; what is built comes from what it has parsed."""
    program = small.implicit_domain.with_backend(backend)
    assert isinstance(program.__gt_type__(), CheckedProgramType)
    types = tuple(program.__gt_type__().definition.pos_or_kw_args.values())
    compile_time = arguments.CompileTimeArgs(types, {}, {}, None, {})
    parsed = backend.lowering.parsed(plugin.ConcreteProgramDef(program.definition_stage, compile_time))
    assert not isinstance(parsed.data.past_node.type, CheckedProgramType)


# --- Tables -----------------------------------------------------------------------------------------------------------


@gtx.field_operator
def _both(a: small.VertexK) -> small.EdgeK:
    return a(E2V[0]) + a(E2V[1])


@gtx.program
def both(a: small.VertexK, out: small.EdgeK):
    _both(a, out=out)


NEEDS = (
    "Program '{}' needs connectivity 'E2V', which the offset provider does not have: pass it in 'offset_provider',"
    " which {}."
)


def fields() -> dict[str, gtx.Field]:
    return {"a": gtx.as_field([Vertex, K], np.zeros((3, 4))), "out": gtx.as_field([small.Edge, K], np.zeros((2, 4)))}


def test_a_table_that_a_call_lacks(backend: plugin.StubBackend, capfd: pytest.CaptureFixture[str]) -> None:
    program = both.with_backend(backend)
    assert refused(program, **fields()) == NEEDS.format("both", "is empty")
    table = gtx.as_connectivity([small.Edge, small.E2VDim], Vertex, np.zeros((2, 2), np.int32))
    message = refused(program, **fields(), offset_provider={"V2E": table, "E2E": table})
    assert message == NEEDS.format("both", "has 'V2E', 'E2E'")
    operator = _both.with_backend(backend)
    assert refused(operator, fields()["a"], out=fields()["out"], offset_provider={}) == NEEDS.format(
        "_both", "is empty"
    )
    assert not (Path(os.environ["GTSTUB_CACHE_DIR"]) / ".claims").exists()  # No build has begun.
    assert "gtstub: could not build both: Program 'both' needs connectivity 'E2V'" in capfd.readouterr().err


def test_a_table_that_compile_lacks(backend: plugin.StubBackend) -> None:
    message = NEEDS.format("both", "is empty")
    assert refused(gtstub.compile, both, backend=backend) == message
    with pytest.raises(ArgumentError) as caught:
        gtstub.compile(both, backend=backend)
    files = [entry.path for entry in caught.traceback]
    assert [Path(file).name for file in files] == [Path(__file__).name]


# --- What a user sees -------------------------------------------------------------------------------------------------

MODEL = """
import gt4py.next as gtx, numpy as np
import gtstub
from gtstub.frameworks.gt4py import make_backend
from tests.support import small_programs as small

program = small.implicit_domain.with_backend(make_backend(gpu=False, auto_optimize=False))
wrong = gtx.as_field([small.I, small.K], np.zeros((3, 4), np.float32))
{call}
"""


def shown(folder: Path, call: str, **environment: str) -> list[str]:
    """What a script prints that calls so."""
    (folder / "model.py").write_text(MODEL.format(call=call))
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", **environment}
    done = subprocess.run(
        [sys.executable, "model.py"], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    return done.stderr.splitlines()


def test_a_script_ends_with_the_error_and_the_line_of_the_call(tmp_path: Path) -> None:
    assert shown(tmp_path, "program(wrong, wrong, wrong, offset_provider={})") == [
        "gtstub.frameworks.gt4py.calls.CallError: Argument 'a' of program 'implicit_domain' must have dtype 'float64',"
        " not 'float32'. Argument 'b' of program 'implicit_domain' must have dtype 'float64', not 'float32'. Argument"
        " 'out' of program 'implicit_domain' must have dtype 'float64', not 'float32'.",
        f'  File "{tmp_path / "model.py"}", line 9',
        "    9 | program(wrong, wrong, wrong, offset_provider={})",
        "      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    ]


def test_an_error_of_compile_begins_at_the_line_of_the_call(tmp_path: Path) -> None:
    call = "gtstub.compile(small.implicit_domain, bound_args={'a': wrong})"
    last = (
        "TypeError: Argument 'a' of program 'implicit_domain' must be 'Field[[I, K], float64]', not"
        " 'Field[[I, K], float32]'."
    )
    assert shown(tmp_path, call) == [
        "Traceback (most recent call last):",
        f'  File "{tmp_path / "model.py"}", line 9, in <module>',
        f"    {call}",
        last,
    ]
    full = shown(tmp_path, call, GTSTUB_TRACEBACK="full")
    assert full[-1] == last
    assert any("argument_types.py" in line for line in full)
