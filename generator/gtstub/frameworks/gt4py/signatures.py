"""Both signatures of a gt4py program that is lowered and not built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gt4py.next import common
from gt4py.next.ffront import type_info as ffront_type_info
from gt4py.next.otf import arguments
from gt4py.next.otf.definitions import ConcreteProgramDef
from gt4py.next.type_system import type_specifications as ts

from gtstub.errors import SignatureError
from gtstub.frameworks.gt4py.backend import StubBackend
from gtstub.frameworks.gt4py.workflow import FindingTransforms
from gtstub.signature.model import ProgramSignature, SdfgSignature


def extract_signatures(
    program: Any, offset_provider: common.OffsetProvider, static: Mapping[str, Any], backend: StubBackend
) -> tuple[ProgramSignature, SdfgSignature]:
    """
    Both signatures of a gt4py program or field operator, lowered for `backend` as a call would, but not built.

    `static` holds the values of scalar parameters that are compiled in.
    """
    definition = ffront_type_info.type_in_program_context(program.__gt_type__()).definition
    parameters = definition.pos_or_kw_args | definition.kw_only_args
    for name in static:
        if not isinstance(parameters.get(name), ts.ScalarType):
            raise SignatureError(f"Program '{program.__name__}' has no scalar parameter '{name}' to be static.")
    values = {name: np.dtype(parameters[name].kind.name.lower()).type(value) for name, value in static.items()}
    compile_time_args = arguments.CompileTimeArgs(
        args=(*definition.pos_only_args, *definition.pos_or_kw_args.values()),
        kwargs=definition.kw_only_args,
        offset_provider=offset_provider,
        column_axis=None,
        argument_descriptor_contexts={
            arguments.StaticArg: {name: arguments.StaticArg(value) for name, value in values.items()}
        },
    )
    return lowered_signatures(ConcreteProgramDef(program.definition_stage, compile_time_args), backend)


def lowered_signatures(
    concrete: ConcreteProgramDef[Any, Any], backend: StubBackend
) -> tuple[ProgramSignature, SdfgSignature]:
    """Both signatures of a program with its compile-time arguments: those that its cache entry would hold."""
    steps, transforms = backend.executor, backend.transforms
    assert isinstance(transforms, FindingTransforms)
    with steps.compilation.dace_context():
        source = steps.translation(transforms.lower(concrete))
        return source.signature, steps.bindings(source).binding_source.sdfg
