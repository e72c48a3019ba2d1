"""`use`: gtstub's backend as the default of gt4py, for programs that name no backend."""

# No postponed annotations here: gt4py evaluates the annotations of its programs.

from pathlib import Path

import gt4py.next as gtx
import numpy as np
import pytest
from gt4py.next.ffront import decorator
from gt4py.next.program_processors.runners.dace import run_dace_cpu_noopt

from gtstub.errors import ConfigError
from gtstub.frameworks import gt4py as plugin
from gtstub.frameworks.gt4py.backend import StubBackend
from tests.support.own_cache import use_own_cache

I = gtx.Dimension("I")
Line = gtx.Field[[I], gtx.float64]


@pytest.fixture(autouse=True)
def default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """gt4py's own default, again after the test, and an empty cache."""
    monkeypatch.setattr(decorator, "DEFAULT_BACKEND", None)
    use_own_cache(tmp_path / "cache", monkeypatch)


def test_programs_that_name_no_backend_run_with_gtstub(tmp_path: Path) -> None:
    @gtx.field_operator
    def before(x: Line) -> Line:
        return 2.0 * x

    plugin.use(gpu=False, auto_optimize=False)

    @gtx.field_operator
    def double(x: Line) -> Line:
        return 2.0 * x

    @gtx.program
    def program(x: Line, out: Line):
        double(x, out=out)

    @gtx.program(backend=None)
    def embedded(x: Line, out: Line):
        double(x, out=out)

    @gtx.program(backend=run_dace_cpu_noopt)
    def own(x: Line, out: Line):
        double(x, out=out)

    assert isinstance(program.backend, StubBackend)
    assert double.backend is program.backend
    assert (before.backend, embedded.backend, own.backend) == (None, None, run_dace_cpu_noopt)
    x, out = gtx.as_field([I], np.arange(5.0)), gtx.as_field([I], np.zeros(5))
    program(x, out, offset_provider={})
    assert out.asnumpy().tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert len(list((tmp_path / "cache").glob("program-*"))) == 1


def test_mode_python_runs_them_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTSTUB_MODE", "Python")
    plugin.use(gpu=False)
    assert decorator.DEFAULT_BACKEND is None


def test_with_an_unknown_option_the_default_stays() -> None:
    plugin.use(gpu=False)
    known = decorator.DEFAULT_BACKEND
    with pytest.raises(ConfigError, match="fuse_everything"):
        plugin.use(gpu=False, optimization_args={"fuse_everything": True})
    assert decorator.DEFAULT_BACKEND is known
