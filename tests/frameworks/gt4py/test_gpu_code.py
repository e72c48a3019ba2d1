"""The code that DaCe generates for a GPU puts everything on one stream, and waits only where gt4py asks for it."""

from __future__ import annotations

import re
from typing import Any

import dace
import pytest
from gt4py.next.program_processors.runners.dace import make_dace_backend

from gtstub.frameworks.dace.streams import STREAM, make_asynchronous, one_stream
from gtstub.frameworks.gt4py.backend import make_backend
from tests.support.gt4py_programs import CASES, LoweringBackend

ON_A_STREAM = re.compile(r"\bcuda(?:LaunchKernel|MallocAsync|FreeAsync|MemcpyAsync|Memcpy2DAsync|MemsetAsync)\(.*\);")
WAIT = re.compile(r"\bcuda(?:Stream|Device)Synchronize\((.*?)\)")
CALL = re.compile(r"\bvoid __program_\w+_internal\(.*?\n}\n", re.DOTALL)


def code_of(name: str, *, changed: bool = True, **options: Any) -> str:
    """The C++ and CUDA code of a program, with gtstub's changes or as gt4py has DaCe generate it."""
    case = CASES[name]
    theirs, ours = make_dace_backend(gpu=True, **{**case.options, **options}), make_backend(gpu=True)
    assert ours is not None
    backend = LoweringBackend(theirs.name, theirs.executor, theirs.allocator, ours.transforms)
    with ours.executor.compilation.build.context():
        case.call(backend)
        sdfg = dace.SDFG.from_json(backend.lowered[-1].source.source_code)
        if not changed:
            return _code(sdfg)
        make_asynchronous(sdfg)
        with one_stream():
            return _code(sdfg)


def _code(sdfg: dace.SDFG) -> str:
    return "\n".join(each.clean_code for each in sdfg.generate_code() if each.language in ("cpp", "cu"))


@pytest.mark.parametrize("name", ["auto_optimized", "scan", "gather"])
def test_all_work_is_on_the_stream_of_the_program(name: str) -> None:
    code = code_of(name)
    work = ON_A_STREAM.findall(code)
    assert work
    assert [line for line in work if STREAM not in line] == []
    assert [line for line in WAIT.findall(code) if line not in ("", STREAM)] == []
    before = code_of(name, changed=False)
    assert [line for line in ON_A_STREAM.findall(before) if STREAM in line] == []
    assert before.count("cudaLaunchKernel(") == code.count("cudaLaunchKernel(")
    assert code.count("cudaMalloc(") == code.count("cudaFree(") == 1  # when the handle is initialised


def test_a_call_waits_only_if_gt4py_asks_for_it() -> None:
    waits = {
        (is_async, has_metrics): len(
            WAIT.findall(CALL.search(code_of("scan", async_sdfg_call=is_async, use_metrics=has_metrics))[0])  # type: ignore[index]
        )
        for is_async in (True, False)
        for has_metrics in (True, False)
    }
    assert waits == {(True, False): 0, (False, False): 1, (True, True): 2, (False, True): 3}
