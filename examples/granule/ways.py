"""The two ways to run a granule: through gt4py's own DaCe backend, and through gtstub with the same options."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import gt4py.next as gtx
import numpy as np
from gt4py.next import backend as gtx_backend
from gt4py.next.otf import stages
from gt4py.next.type_system import type_specifications as ts
from icon4py.model.common import model_backends, model_options

import gtstub
from examples.granule.steps import ProgramCall
from gtstub.entries.cache.entry import Entry
from gtstub.frameworks import icon4py as gtstub_icon4py
from gtstub.frameworks.gt4py import backend as gtstub_gt4py
from gtstub.stub.signature import documents


@dataclasses.dataclass(frozen=True)
class Announced:
    """
    A step of gt4py's backend that says, in the process that takes it, what it did and how long that took; gtstub says
    by itself what it waits for.
    """

    step: Callable[[Any], Any]
    what: str

    def __call__(self, inp: Any) -> Any:
        begin = time.monotonic()
        result = self.step(inp)
        name = inp.data.id if hasattr(inp, "data") else inp.program_source.entry_point.name
        if (seconds := time.monotonic() - begin) > 1.0:  # else it was there already
            print(f"  {self.what:16}{seconds:6.1f} s  {name}", file=sys.stderr, flush=True)
        return result


class Gt4py:
    name = "gt4py"
    wait_for_compilation = staticmethod(gtx.wait_for_compilation)

    @staticmethod
    def setup_program(*, program: Any, **options: Any) -> Callable[..., None]:
        """
        icon4py's own, with static arguments in the program's own types, which gtstub makes them: a Python int and a
        numpy one are two keys to gt4py's cache of what it has lowered, and lowering takes longest.
        """
        types = program.__gt_type__().definition.pos_or_kw_args
        for group in ("constant_args", "variants", "horizontal_sizes", "vertical_sizes"):
            given = options.get(group) or {}
            options[group] = {name: _in_own_type(types[name], value) for name, value in given.items()}
        return model_options.setup_program(program=program, **options)

    @staticmethod
    def make_backend(**options: Any) -> gtx_backend.Backend[Any]:
        backend = model_backends.make_custom_dace_backend(**options)
        steps = backend.executor
        announced = steps.replace(
            translation=Announced(steps.translation, "gt4py lowered"),
            compilation=Announced(steps.compilation, "gt4py built"),
        )
        return dataclasses.replace(backend, executor=announced)


def _in_own_type(type_: Any, value: Any) -> Any:
    if isinstance(value, list):
        return [_in_own_type(type_, item) for item in value]
    return np.dtype(type_.kind.name.lower()).type(value) if isinstance(type_, ts.ScalarType) else value


class Gtstub:
    """`entries` are the cache entries of all programs that were loaded."""

    name = "gtstub"
    setup_program = staticmethod(gtstub_icon4py.setup_program)
    wait_for_compilation = staticmethod(gtstub.wait_for_compilation)
    entries: ClassVar[list[Path]] = []

    @staticmethod
    def make_backend(**options: Any) -> gtstub_gt4py.StubBackend:
        backend = gtstub_icon4py.make_backend(**options)
        return _NotingBackend(**{field.name: getattr(backend, field.name) for field in dataclasses.fields(backend)})

    @classmethod
    def entry_of(cls, call: ProgramCall) -> Path:
        """The cache entry of the variant that a call uses."""
        arguments = call.arguments()
        for path in cls.entries:
            program = documents.program_from_json((path / "program.json").read_text(encoding="utf-8"), "program.json")
            if program.name == call.name and all(arguments[arg.leaf] == arg.value for arg in program.static_arguments):
                return path
        raise LookupError(f"No cache entry of program '{call.name}' has the static arguments of the call.")


class _NotingBackend(gtstub_gt4py.StubBackend):
    def load_artifact(self, artifact: stages.CompilationArtifact) -> Any:
        assert isinstance(artifact, Entry)
        Gtstub.entries.append(artifact.path)
        return super().load_artifact(artifact)


WAYS = (Gt4py, Gtstub)


def descriptor(way: type[Gt4py] | type[Gtstub]) -> dict[str, Any]:
    """The backend descriptor with which icon4py's granules are given one of the two."""
    return {"backend_factory": way.make_backend, "device": model_backends.CPU}
