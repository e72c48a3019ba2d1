"""
Writes and compiles what gtstub is measured beside: the same slots, filled by nanobind and by tvm-ffi. numpy's arrays
have no origin, so these peers pass 0 for where a domain starts.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from gtstub.stub.plan.model import AxisValue, CallPlan, Data, FieldLeaf, Metric, ScalarLeaf, Slot, Value
from gtstub.stub.signature.dtypes import NAMES

HERE = Path(__file__).parent


def compile_c(source: Path, output: Path, *flags: str) -> Path:
    return _compile("cc", "-std=gnu11", source, output, flags)


def build_caller(folder: Path) -> Path:
    """The extension module `caller`, for this Python."""
    return compile_c(HERE / "caller.c", folder / "caller.so", "-I", sysconfig.get_path("include"))


def build_nanobind(plan: CallPlan, library: Path, folder: Path) -> Path:
    """The extension module `peer_nanobind`."""
    import nanobind  # type: ignore[import-untyped]

    package = Path(nanobind.include_dir()).parent
    source = folder / "peer_nanobind.cpp"
    source.write_text(nanobind_source(plan), encoding="utf-8")
    combined = package / "src" / "nb_combined.cpp"
    includes = [package / "include", package / "ext" / "robin_map" / "include", sysconfig.get_path("include")]
    flags = ["-fvisibility=hidden", "-fno-strict-aliasing", *(f"-I{include}" for include in includes)]
    return _compile("c++", "-std=c++17", source, folder / "peer_nanobind.so", [*flags, str(combined), *link(library)])


def build_tvm_ffi(plan: CallPlan, library: Path, folder: Path) -> Path:
    """A library for `tvm_ffi.load_module`."""
    source = folder / "peer_tvm_ffi.c"
    source.write_text(tvm_ffi_source(plan), encoding="utf-8")
    config = Path(sys.executable).with_name("tvm-ffi-config")
    asked = subprocess.run([config, "--cflags", "--libs", "--ldflags"], check=True, capture_output=True, text=True)
    return compile_c(source, folder / "peer_tvm_ffi.so", *shlex.split(asked.stdout), *link(library))


def link(library: Path) -> list[str]:
    return [f"-L{library.parent}", f"-l:{library.name}", f"-Wl,-rpath,{library.parent}"]


def _compile(compiler: str, standard: str, source: Path, output: Path, flags: list[str] | tuple[str, ...]) -> Path:
    command = [compiler, standard, "-O2", "-shared", "-fPIC", str(source), *flags, "-o", str(output)]
    subprocess.run(command, check=True)
    return output


# --- Their texts ------------------------------------------------------------------------------------------------------


def _prototype(plan: CallPlan) -> str:
    """The exported functions of the SDFG library."""
    init = ", ".join(slot.c_type for slot in plan.init) or "void"
    program = ", ".join(["void *", *(slot.c_type for slot in plan.slots)])
    return f"void *__dace_init_{plan.sdfg_name}({init});\nvoid __program_{plan.sdfg_name}({program});"


def _call(plan: CallPlan, data: Callable[[Slot, str], str], axis: Callable[[str, str, int], str]) -> str:
    """The call of the SDFG; `data` writes a pointer, `axis` writes 'shape' or 'stride' of an axis."""

    def argument(slot: Slot) -> str:
        match slot.source:
            case Data(leaf):
                return data(slot, leaf.name)
            case AxisValue(_, _, "start"):
                return "0"
            case AxisValue(leaf, index, property_):
                return f"(int32_t){axis(leaf.name, 'stride' if property_ == 'stride' else 'shape', index)}"
            case Value(leaf):
                return leaf.name
            case Metric():
                return "&compute_time" if slot.is_array else "0"

    return f"__program_{plan.sdfg_name}({', '.join(['handle', *map(argument, plan.slots)])});"


def _handle(plan: CallPlan) -> str:
    return f"__dace_init_{plan.sdfg_name}({', '.join('0' for _ in plan.init)})"


def nanobind_source(plan: CallPlan) -> str:
    def parameter(leaf: FieldLeaf | ScalarLeaf) -> str:
        if isinstance(leaf, ScalarLeaf):
            return f"{NAMES[leaf.dtype].c} {leaf.name}"
        return f"nb::ndarray<{NAMES[leaf.dtype].c}, nb::ndim<{len(leaf.axes)}>, nb::device::cpu> {leaf.name}"

    def argument(leaf: FieldLeaf | ScalarLeaf) -> str:
        return f'nb::arg("{leaf.name}"){".noconvert()" if isinstance(leaf, FieldLeaf) else ""}'

    call = _call(plan, lambda _, leaf: f"{leaf}.data()", lambda leaf, what, i: f"{leaf}.{what}({i})")
    return f"""\
#include <cstdint>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
namespace nb = nanobind;

extern "C" {{
{_prototype(plan)}
}}

static void *handle;
static double compute_time;

NB_MODULE(peer_nanobind, m)
{{
    handle = {_handle(plan)};
    m.def("call", []({", ".join(map(parameter, plan.arguments))}) {{
        nb::gil_scoped_release release;
        {call}
    }}, {", ".join(map(argument, plan.arguments))});
}}
"""


_DLPACK_CODES = {"b": "kDLBool", "i": "kDLInt", "u": "kDLUInt", "f": "kDLFloat"}


def tvm_ffi_source(plan: CallPlan) -> str:
    def take(i: int, leaf: FieldLeaf | ScalarLeaf) -> str:
        if isinstance(leaf, FieldLeaf):
            bits = "".join(c for c in leaf.dtype if c.isdigit())
            code = _DLPACK_CODES[leaf.dtype[0]]
            return (
                f"    const DLTensor *const {leaf.name} = take_tensor(&args[{i}], {len(leaf.axes)}, {code}, {bits});\n"
                f"    if ({leaf.name} == NULL)\n        return -1;"
            )
        return f"    const {NAMES[leaf.dtype].c} {leaf.name} = ({NAMES[leaf.dtype].c})take_{_kind(leaf)}(&args[{i}]);"

    call = _call(
        plan,
        lambda slot, leaf: f"({slot.c_type})((char *){leaf}->data + {leaf}->byte_offset)",
        lambda leaf, what, i: f"{leaf}->{'strides' if what == 'stride' else what}[{i}]",
    )
    takes = "\n".join(take(i, leaf) for i, leaf in enumerate(plan.arguments))
    return f"""\
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tvm/ffi/c_api.h>

{_prototype(plan)}

static int refuse(void)
{{
    TVMFFIErrorSetRaisedFromCStr("TypeError", "An argument does not fit.");
    return -1;
}}

static const DLTensor *take_tensor(const TVMFFIAny *arg, int32_t rank, uint8_t code, uint8_t bits)
{{
    const DLTensor *tensor = NULL;
    if (arg->type_index == kTVMFFIDLTensorPtr)
        tensor = arg->v_ptr;
    else if (arg->type_index == kTVMFFITensor)
        tensor = (const DLTensor *)((const char *)arg->v_obj + sizeof(TVMFFIObject));
    if (tensor == NULL || tensor->ndim != rank || tensor->dtype.code != code || tensor->dtype.bits != bits ||
        tensor->device.device_type != kDLCPU || tensor->strides == NULL) {{
        refuse();
        return NULL;
    }}
    return tensor;
}}

static double take_float(const TVMFFIAny *arg)
{{
    return arg->type_index == kTVMFFIFloat ? arg->v_float64 : (double)arg->v_int64;
}}

static int64_t take_int(const TVMFFIAny *arg)
{{
    return arg->v_int64;
}}

TVM_FFI_DLL_EXPORT int __tvm_ffi_call(void *self, const TVMFFIAny *args, int32_t count, TVMFFIAny *result)
{{
    static void *handle;
    static double compute_time;
    (void)self;
    (void)result;
    if (count != {len(plan.arguments)})
        return refuse();
{takes}
    if (handle == NULL)
        handle = {_handle(plan)};
    {call}
    return 0;
}}
"""


def _kind(leaf: ScalarLeaf) -> str:
    return "float" if leaf.dtype.startswith("float") else "int"
