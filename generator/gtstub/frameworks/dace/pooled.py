"""
The library of an SDFG gets the memory of its arrays from the pool of the runtime (`embedded/memory.h`).

DaCe has no hook for it. The linker replaces the two operators that the library uses for arrays, and for nothing else:
those for aligned arrays. What replaces them is hidden in the library, as part of the SDFG's global code. Without a
runtime, and for small arrays, they allocate as the operators do. A library that is linked without `linked` does not use
this code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dace import config

from gtstub import install

NEW: Final = "_ZnamSt11align_val_t"
"""operator new[](std::size_t, std::align_val_t)"""

DELETE: Final = "_ZdaPvSt11align_val_t"
"""operator delete[](void *, std::align_val_t)"""

CODE: Final = f"""
extern "C" {{
DACE_EXPORTED gts_sdfg_memory *VARIABLE;
gts_sdfg_memory *VARIABLE = nullptr;

__attribute__((visibility("hidden"), used)) void *__wrap_{NEW}(size_t bytes, size_t alignment)
{{
    gts_sdfg_memory *const memory = VARIABLE;
    void *data = nullptr;
    if (memory != nullptr && bytes >= GTS_POOLED_BYTES && alignment <= GTS_POOLED_ALIGNMENT)
        data = memory->take(memory, bytes);
    if (alignment < sizeof(void *))
        alignment = sizeof(void *);
    if (data == nullptr && posix_memalign(&data, alignment, bytes) != 0)
        throw std::bad_alloc();
    return data;
}}

__attribute__((visibility("hidden"), used)) void __wrap_{DELETE}(void *data, size_t)
{{
    gts_sdfg_memory *const memory = VARIABLE;
    if (memory != nullptr && reinterpret_cast<uintptr_t>(data) - memory->begin < memory->size)
        memory->give(memory, data);
    else
        free(data);
}}
}}
"""


def code(name: str) -> str:
    """The global code of the SDFG `name`."""
    header = (install.EMBEDDED / "memory.h").read_text(encoding="utf-8")
    return header + CODE.replace("VARIABLE", f"__gtstub_memory_{name}")


@contextmanager
def linked() -> Iterator[None]:
    """Within the block, DaCe links libraries that have this code. It changes a setting of DaCe."""
    libraries = f"{config.Config.get('compiler', 'cpu', 'libs')} -Wl,--wrap={NEW},--wrap={DELETE}"
    with config.set_temporary("compiler", "cpu", "libs", value=libraries.strip()):
        yield
