"""Programs on fields with several horizontal dimensions: gtstub's own table must not refuse them."""

from __future__ import annotations

import re
from pathlib import Path

import gt4py.next as gtx
import numpy as np
import pytest

import gtstub
from gtstub.errors import CompilationError, ConfigError
from gtstub.frameworks.gt4py.backend import make_backend
from tests.support.own_cache import use_own_cache

I = gtx.Dimension("I")
J = gtx.Dimension("J")
K = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)


@gtx.field_operator
def _scaled(a: gtx.Field[[I, J, K], gtx.float64], factor: gtx.float64) -> gtx.Field[[I, J, K], gtx.float64]:
    return a * factor


@gtx.program
def scaled(a: gtx.Field[[I, J, K], gtx.float64], factor: gtx.float64, out: gtx.Field[[I, J, K], gtx.float64]):
    _scaled(a, factor, out=out)


@pytest.fixture(autouse=True)
def no_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_own_cache(tmp_path / "cache", monkeypatch)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("GTSTUB_BACKENDS", raising=False)


def test_with_the_defaults() -> None:
    a, out = np.random.default_rng(1).random((3, 4, 5)), np.zeros((3, 4, 5))
    compiled = gtstub.compile(scaled, backend_tag="CPU")
    compiled(gtx.as_field([I, J, K], a), 2.0, result := gtx.as_field([I, J, K], out))
    np.testing.assert_array_equal(result.asnumpy(), 2.0 * a)


@pytest.mark.parametrize("tag", ["CPU", "DACE_CPU"])
def test_a_table_of_the_user(tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mine.toml"
    table.write_text("[default]\ndace.unstructured_horizontal_has_unit_stride = true\n")
    monkeypatch.setenv("GTSTUB_BACKENDS", str(table))
    backend = "gtstub" if tag == "CPU" else "dace"
    with pytest.raises(ConfigError) as caught:
        gtstub.compile(scaled, backend_tag=tag)
    assert str(caught.value) == (
        f"'{table}', line 2: Option 'unstructured_horizontal_has_unit_stride' of backend '{backend}' for program"
        " 'scaled' must be false or left out, because argument 'a' has several horizontal dimensions: 'I', 'J'."
    )


def test_an_option_of_make_backend() -> None:
    backend = make_backend(gpu=False, unstructured_horizontal_has_unit_stride=True)
    text = (
        "Program 'scaled' has fields with several horizontal dimensions, so its backend must be made without the option"
        " 'unstructured_horizontal_has_unit_stride'. gt4py says: "
    )
    with pytest.raises(CompilationError, match=re.escape(text)):
        gtstub.compile(scaled, backend=backend).wait()
