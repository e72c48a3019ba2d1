"""Settings of DaCe's front end in `dace_config`: gtstub parses a program with them as DaCe does."""

from collections.abc import Callable
from typing import Any

import dace
import numpy as np
import pytest
from dace.frontend.python.common import DaceSyntaxError

import gtstub
from gtstub.errors import SignatureError
from tests.support.recorded_dace import opaque

N = dace.symbol("N")


@opaque
def added(a: Any, b: Any) -> Any:
    return a + b


def increased(a: dace.float64[N], b: dace.float64[N]):
    for i in dace.map[0:N]:
        b[i] = a[i]
        b[i] += a[i]


def called_twice(a: dace.float64[N], b: dace.float64[N]):
    a[:] = added(a, b)
    b[:] = added(a, b)


def looped(a: dace.float64[8]):
    for i in range(3):
        a[i] = a[i] + i


def calls_looped(a: dace.float64[8]):
    looped(a)


def untyped(a: dace.float64[N]):
    b = added(a, a)
    a[:] = b


@pytest.mark.parametrize(
    ("function", "setting", "value"),
    [
        (increased, "frontend.avoid_wcr", True),
        (called_twice, "frontend.dont_fuse_callbacks", True),
        (looped, "frontend.unroll_threshold", 5),
        (calls_looped, "frontend.unroll_threshold", 5),
        (calls_looped, "optimizer.automatic_simplification", False),
        (looped, "optimizer.autooptimize", True),
    ],
)
def test_a_setting_does_what_it_does_in_dace(function: Callable[..., Any], setting: str, value: Any) -> None:
    kinds = []
    for changed in ({}, {setting: value}):
        parsed = gtstub.program(function, dace_config=changed).parse().sdfg
        with dace.config.temporary_config():
            for name, each in changed.items():
                dace.Config.set(*name.split("."), value=each)
            program = dace.program(function)
            sdfg = program.to_sdfg()
            if changed.get("optimizer.autooptimize"):
                sdfg = program.auto_optimize(sdfg)
                sdfg.simplify()
        assert kinds_of(parsed) == kinds_of(sdfg)
        kinds.append(kinds_of(parsed))
    assert kinds[0] != kinds[1]


def kinds_of(sdfg: dace.SDFG) -> list[str]:
    """What distinguishes SDFGs that settings have made."""
    nodes = sorted(type(each).__name__ for each, _ in sdfg.all_nodes_recursive())
    wcr = sorted(str(edge.data.wcr) for edge, _ in sdfg.all_edges_recursive() if hasattr(edge.data, "wcr"))
    return [*nodes, *wcr, *sorted(map(str, sdfg.arglist()))]


def test_what_dace_has_parsed_with_other_settings_is_parsed_again() -> None:
    program = dace.program(looped)
    program(np.zeros(8))
    settings = {"frontend.unroll_threshold": 5}
    expected = gtstub.program(looped, dace_config=settings).parse().sdfg
    assert kinds_of(gtstub.program(program, dace_config=settings).parse().sdfg) == kinds_of(expected)


@pytest.mark.parametrize("option", ["recreate_sdfg", "regenerate_code", "recompile"])
def test_what_is_in_the_build_folder_of_dace_is_not_used(option: str) -> None:
    with pytest.raises(SignatureError, match=f"Program '.*looped' has the option '{option}=False'"):
        gtstub.program(dace.program(**{option: False})(looped)).parse()


def test_callbacks_without_types_may_be_forbidden() -> None:
    with pytest.raises(DaceSyntaxError, match='Cannot infer return type of function call "added"'):
        gtstub.program(untyped, dace_config={"frontend.typed_callbacks_only": True})(np.zeros(3))
    with pytest.raises(SignatureError):
        gtstub.program(untyped)(np.zeros(3))
