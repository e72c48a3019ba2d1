"""Makes SDFG signatures from DaCe's SDFGs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import dace

from gtstub import settings
from gtstub.errors import SignatureError
from gtstub.frameworks.dace.arguments import arguments_of
from gtstub.frameworks.dace.callbacks import callback_argument, calls_in_parallel, calls_of, check_devices
from gtstub.frameworks.dace.internals import type_name
from gtstub.frameworks.dace.program_signature import RESULT, renamed
from gtstub.frameworks.dace.shapes import ShapeReader
from gtstub.frameworks.dace.structures import (
    is_structure,
    names_of_members,
    structure_argument,
    with_members,
    written_members,
)
from gtstub.stub.bounds.access import OTHER
from gtstub.stub.bounds.claims import bounds_of
from gtstub.stub.sdfg.handle import external_storages, handle_symbols, runs_on_gpu
from gtstub.stub.sdfg.read import SdfgError, json_in, of_document
from gtstub.stub.signature.dtypes import DType
from gtstub.stub.signature.expressions import Expression, polynomial
from gtstub.stub.signature.model import (
    CONNECTIVITY_PREFIX,
    Access,
    Argument,
    ArrayArgument,
    Axis,
    Bounds,
    CallbackArgument,
    Device,
    Property,
    Role,
    ScalarArgument,
    SdfgSignature,
    Unknown,
    Workspace,
    checked_dtype,
)


def sdfg_signature(
    sdfg: dace.SDFG,
    raw: Mapping[str, Any],
    gpu: Device = "cuda",
    *,
    text: str = "",
    bounds: bool = True,
    has_domains: bool = True,
    evaluates_both: bool = False,
    passed: Collection[str] = (),
) -> SdfgSignature:
    """
    The C interface of the library that DaCe builds from `sdfg`, whose JSON form is `raw`, with its `text` if known.

    DaCe provides the arguments and their order; the raw form provides the fixed values of their descriptors. `gpu` is
    the kind of GPU on this machine. Without `bounds`, the stub will not check which elements the program accesses. If
    it `has_domains`, as those of gt4py do, the symbols in sizes are starts and stops of domains; otherwise, arrays
    start at 0. If it `evaluates_both` sides of a choice that depends on data, as `where` does, calls need the elements
    of both. `passed` are the names of arguments by which a call may pass symbols of sizes. Raises SignatureError for
    arguments that no stub supports, and SdfgError for a raw form of another kind.
    """
    read = of_document(raw, text)
    name = read.name
    reads, writes = sdfg.read_and_write_sets()

    arrays: dict[str, ArrayArgument] = {}
    structures: dict[str, dace.data.Structure] = {}
    roles: dict[str, list[Role]] = {}
    scalars: dict[str, DType] = {}
    callbacks: dict[str, CallbackArgument] = {}
    shapes = None if has_domains else ShapeReader(name, roles)

    def array(
        argument: str, dtype: DType, storage: str, access: Access, sizes: Iterable[Any], strides: Iterable[Any]
    ) -> ArrayArgument:
        return ArrayArgument(
            name=argument,
            dtype=dtype,
            device=_device(name, argument, storage, gpu),
            access=access,
            axes=tuple(
                _axis(argument, number, size, stride, roles)
                if shapes is None
                else shapes.axis(argument, number, size, stride)
                for number, (size, stride) in enumerate(zip(sizes, strides, strict=True))
            ),
        )

    described, init = arguments_of(sdfg)
    calls = [*calls_of([name for name, each in described.items() if isinstance(each.dtype, dace.callback)], read)]
    check_devices(name, calls)
    for argument, descriptor in described.items():
        if isinstance(descriptor.dtype, dace.callback):
            callbacks[argument] = callback_argument(
                name, argument, descriptor.dtype, is_parallel=calls_in_parallel(sdfg, calls)
            )
            continue
        if is_structure(descriptor):
            structures[argument] = descriptor
            is_written = written_members(sdfg, argument)
            for path, member in with_members(sdfg, {argument: descriptor}):
                if type(member) is dace.data.Array or (type(member) is dace.data.Scalar and is_written(path)):
                    dtype = checked_dtype(f"SDFG '{name}'", path, type_name(member.dtype))
                    axes = (member.shape, member.strides) if type(member) is dace.data.Array else ((), ())
                    arrays[path] = array(path, dtype, member.storage.name, _ACCESS[True, is_written(path)], *axes)
            continue
        is_scalar = isinstance(descriptor, dace.data.Scalar)
        fixed = read.containers.get(argument)
        if not is_scalar and (fixed is None or fixed.kind != "Array"):
            raise SignatureError(
                f"Argument '{argument}' of SDFG '{name}' must be an array or a scalar, but has type"
                f" '{'' if fixed is None else fixed.kind}'."
            )
        if isinstance(descriptor.dtype, dace.dtypes.pyobject):
            result = RESULT.fullmatch(argument)
            number = result and result[1]
            what = f"Result {number[1:]}" if number else "The result" if result else f"Argument '{argument}'"
            raise SignatureError(
                f"{what} of SDFG '{name}' is a Python object, which no stub passes. If a callback returns it, annotate"
                " the variable that it is assigned to: 'x: dace.float64 = callback()'."
            )
        if isinstance(descriptor.dtype, dace.dtypes.stringtype):
            raise SignatureError(
                f"Argument '{argument}' of SDFG '{name}' must be an array or a scalar, but is a text. DaCe takes"
                " annotations for texts after 'from __future__ import annotations'."
            )
        dtype = checked_dtype(f"SDFG '{name}'", argument, type_name(descriptor.dtype), is_scalar=is_scalar)
        if is_scalar or fixed is None:
            scalars[argument] = dtype
            continue
        access = _ACCESS[argument in reads, argument in writes]
        arrays[argument] = array(argument, dtype, fixed.storage, access, fixed.shape, fixed.strides)

    symbols = {symbol: ScalarArgument(symbol, dtype, tuple(roles.get(symbol, ()))) for symbol, dtype in scalars.items()}
    arguments: Mapping[str, Argument] = {
        **{argument: each for argument, each in arrays.items() if argument in described},
        **symbols,
        **callbacks,
        **{path: structure_argument(name, path, each, arrays) for path, each in structures.items()},
    }
    kept = handle_symbols(read)
    uses_gpu = runs_on_gpu(read) or any(array.device != "cpu" for array in arrays.values())
    if structures and uses_gpu:
        raise SignatureError(
            f"Argument '{min(structures)}' of SDFG '{name}' must be an array or a scalar, because the SDFG uses a GPU,"
            " but is a structure."
        )
    found: Bounds | None = None
    if bounds and structures:  # whose members the analysis does not tell from other names
        found = Bounds(0, (), tuple(Unknown(each, OTHER, 1) for each in arrays))
    elif bounds:
        found = bounds_of(read, scalars, has_domains=has_domains, evaluates_both=evaluates_both)
    made = SdfgSignature(
        name=name,
        device=gpu if uses_gpu else "cpu",
        library=f"lib{name}.so",
        arguments=tuple(arguments[argument] for argument in described),
        init=init,
        memory_symbols=tuple(symbol for symbol in init if symbol in kept),
        workspaces=tuple(
            Workspace(storage, _device(name, "(workspace)", storage, gpu)) for storage in external_storages(read)
        ),
        bounds=found,
        shapes=None if shapes is None else shapes.found(scalars, callbacks.values(), sdfg.symbols, passed),
    )
    return renamed(made, names_of_members(sdfg)) if structures else made


def read_sdfg(file: Path, gpu: Device = "cuda") -> SdfgSignature:
    """The signature of an SDFG that DaCe saved as `.sdfg` or `.sdfgz`. Raises SignatureError for other files."""
    try:
        text, raw = json_in(file.read_bytes(), str(file))
    except SdfgError as error:
        raise SignatureError(str(error)) from None
    try:
        sdfg = dace.SDFG.from_json(raw)
    except Exception as error:  # DaCe passes on the errors of all its property readers.
        raise SignatureError(
            f"'{file}' is not an SDFG that this DaCe can read: {type(error).__name__}: {error}"
        ) from None
    return sdfg_signature(sdfg, raw, gpu, text=text, bounds=settings.bounds())


def _device(program: str, argument: str, storage: str, gpu: Device) -> Device:
    match storage:
        case "Default" | "CPU_Heap" | "CPU_Pinned" | "CPU_ThreadLocal" | "Register":  # as DaCe gives to small arguments
            return "cpu"
        case "GPU_Global":
            return gpu
    raise SignatureError(
        f"Argument '{argument}' of SDFG '{program}' must be stored on the heap or in the global memory of a GPU,"
        f" but is stored in '{storage}'."
    )


_ACCESS: Mapping[tuple[bool, bool], Access] = {
    (True, True): "readwrite",
    (True, False): "read",
    (False, True): "write",
    (False, False): "none",
}
"""By whether the SDFG reads and writes an array."""


# --- Sizes and strides ------------------------------------------------------------------------------------------------


def _axis(array: str, number: int, size: str, stride: str, roles: dict[str, list[Role]]) -> Axis:
    """The fixed values of one axis; adds the roles of the symbols in `size` and `stride` to `roles`."""

    def role(symbol: str, property_: Property) -> None:
        roles.setdefault(symbol, []).append(Role(array, number, property_))

    fixed: dict[Property, int] = {}
    match polynomial(size):
        case Expression(constant, ()):
            fixed["size"] = constant
        case Expression(0, ((str(stop), 1), (str(start), -1)) | ((str(start), -1), (str(stop), 1))):
            role(stop, "stop")
            role(start, "start")
        case Expression(0, ((str(symbol), 1),)) if array.startswith(CONNECTIVITY_PREFIX):
            role(symbol, "size")
        case Expression(constant, ((str(stop), 1),)):
            role(stop, "stop")
            fixed["start"] = -constant
        case Expression(constant, ((str(start), -1),)):
            role(start, "start")
            fixed["stop"] = constant
    match polynomial(stride):
        case Expression(constant, ()):
            fixed["stride"] = constant
        case Expression(0, ((str(symbol), 1),)):
            role(symbol, "stride")
    return Axis(**fixed)
