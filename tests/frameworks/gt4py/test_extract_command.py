"""'gtstub extract' of SDFGs that DaCe has saved, and of programs of gt4py."""

from __future__ import annotations

import gzip
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import assert_refused, run, run_installed

pytestmark = pytest.mark.usefixtures("in_an_empty_directory")


SAVE_AN_SDFG = """
import dace
sdfg = dace.SDFG("halve")
sdfg.add_array("a", [dace.symbol("N", dace.int32), 3], dace.float64)
old, new = dace.Memlet("a[i, 0]"), dace.Memlet("a[i, 1]")
sdfg.add_state().add_mapped_tasklet("halve", {"i": "0:N"}, {"x": old}, "y = x / 2", {"y": new}, external_edges=True)
sdfg.save("halve.sdfg")
"""


@pytest.fixture(scope="module")
def saved_sdfg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Saved by DaCe, in a process of its own, because DaCe changes the process that imports it."""
    if importlib.util.find_spec("dace") is None:
        pytest.skip("DaCe is not installed.")
    directory = tmp_path_factory.mktemp("sdfg")
    subprocess.run([sys.executable, "-c", SAVE_AN_SDFG], cwd=directory, check=True, capture_output=True)
    return directory / "halve.sdfg"


def test_extract_the_signature_of_an_sdfg(saved_sdfg: Path) -> None:
    result = run_installed("extract", str(saved_sdfg))
    assert (result.returncode, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert document["schema"] == "gtstub/sdfg-signature/1"
    assert [argument["name"] for argument in document["arguments"]] == ["a", "N"]
    assert document["arguments"][0]["access"] == "readwrite"
    assert document["arguments"][0]["axes"] == [{"start": 0, "stride": 3}, {"size": 3, "stride": 1}]


def test_extract_from_a_compressed_sdfg_to_a_file(saved_sdfg: Path) -> None:
    Path("compressed.sdfgz").write_bytes(gzip.compress(saved_sdfg.read_bytes()))
    result = run("extract", "compressed.sdfgz", "-o", "out")
    assert (result.exit_code, result.stdout) == (0, "'out/halve.sdfg.json' was written.\n")
    assert Path("out/halve.sdfg.json").read_text(encoding="utf-8") == run("extract", str(saved_sdfg)).stdout


def test_extract_through_a_filter(saved_sdfg: Path) -> None:
    assert run("extract", str(saved_sdfg), "--jq", ".arguments[].name").stdout == "a\nN\n"
    assert run("extract", str(saved_sdfg), "--jq", ".", "-o", "x").exit_code == 2


def test_extract_from_what_is_no_sdfg(saved_sdfg: Path) -> None:
    cut = "it is neither JSON nor compressed JSON, or is truncated"
    for name, content, reason in [
        ("cut.sdfg", saved_sdfg.read_bytes()[:1000], cut),
        ("cut.sdfgz", gzip.compress(saved_sdfg.read_bytes())[:1000], cut),
        ("empty.sdfg", b"", cut),
        ("list.sdfg", b"[]", "its 'type' is not 'SDFG'"),
    ]:
        Path(name).write_bytes(content)
        assert_refused(run("extract", name), 3, f"'{name}' is not an SDFG: {reason}.")


MODEL = """
import gt4py.next as gtx
import numpy as np

I = gtx.Dimension("I")
Edge = gtx.Dimension("Edge")
I2EDim = gtx.Dimension("I2E", kind=gtx.DimensionKind.LOCAL)
I2E = gtx.FieldOffset("I2E", source=Edge, target=(I, I2EDim))
Line = gtx.Field[gtx.Dims[I], gtx.float64]

@gtx.field_operator
def _gather(a: gtx.Field[gtx.Dims[Edge], gtx.float64], factor: gtx.float64) -> Line:
    return factor * a(I2E[0])

@gtx.program
def gather(a: gtx.Field[gtx.Dims[Edge], gtx.float64], factor: gtx.float64, out: Line):
    _gather(a, factor, out=out)

def make_offset_provider():
    return {"I2E": gtx.as_connectivity([I, I2EDim], Edge, np.zeros((3, 2), dtype=np.int32))}
"""


@pytest.fixture
def _model(in_an_empty_directory: None, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("gt4py") is None:
        pytest.skip("gt4py is not installed.")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "model", raising=False)
    Path("model.py").write_text(MODEL, encoding="utf-8")


@pytest.mark.usefixtures("_model")
def test_extract_both_signatures_of_a_program() -> None:
    arguments = ("model:gather", "--grid", "model:make_offset_provider", "--option", "auto_optimize=false")
    result = run_installed("extract", *arguments, "-o", "out")
    assert (result.returncode, result.stdout) == (
        0,
        "'out/gather.sdfg.json' was written.\n'out/gather.program.json' was written.\n",
    )
    plan = json.loads(run("plan", "out/gather.sdfg.json", "out/gather.program.json", "--json").stdout)
    assert [leaf["name"] for leaf in plan["leaves"]] == ["a", "factor", "out", "gt_conn_I2E"]


@pytest.mark.usefixtures("_model")
def test_extract_a_program_with_a_static_argument() -> None:
    arguments = ("model:gather", "--grid", "model:make_offset_provider", "--static", "factor=2")
    document = json.loads(run("extract", *arguments).stdout)
    assert document["program"]["static_arguments"] == [{"leaf": "factor", "value": 2.0}]
    assert "factor" not in [argument["name"] for argument in document["sdfg"]["arguments"]]


@pytest.mark.usefixtures("_model")
@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["model:scatter"], 1, "Module 'model' has no 'scatter'."),
        (["models:gather"], 1, "Module 'models' cannot be imported: No module named 'models'."),
        (["model"], 1, "'model' is neither a '.sdfg' or '.sdfgz' file nor of the form 'module:name'."),
        (
            ["model:I"],
            1,
            "'model:I' is neither a gt4py program or field operator nor a DaCe program, but of type 'Dimension'.",
        ),
        (["model:gather"], 1, "gt4py cannot lower 'model:gather': Offset 'I2E' not found in offset provider."),
        (
            ["model:gather", "--static", "factory=2"],
            3,
            "Program 'gather' has no scalar parameter 'factory' to be static.",
        ),
    ],
)
def test_extract_from_what_is_no_program(arguments: list[str], exit_code: int, message: str) -> None:
    assert_refused(run("extract", *arguments), exit_code, message)


@pytest.mark.usefixtures("_model")
def test_extract_with_an_option_that_the_backend_does_not_have() -> None:
    result = run("extract", "model:gather", "--option", "optimise=true")
    assert result.exit_code == 1
    assert result.stderr.startswith("The backend has no option 'optimise'. Its options: 'gpu', 'auto_optimize', ")
