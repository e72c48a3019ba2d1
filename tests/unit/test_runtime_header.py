"""What the generator names, the runtime declares, defines and exports; and nothing else is exported."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from gtstub.entries.toolchain.compiler import Toolchain
from gtstub.install import INCLUDE, RUNTIME, TEMPLATES
from tests.support.programs import need
from tests.support.runtime import runtime_sources
from tests.support.signatures import WHOLE_PROGRAM, WHOLE_SDFG
from tests.support.stubs import build_stub


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def headers() -> str:
    return without_comments("\n".join(path.read_text(encoding="utf-8") for path in sorted(INCLUDE.rglob("*.h"))))


def private_headers() -> str:
    """Those of the runtime that are not installed, some of whose functions the Python host calls."""
    return without_comments("\n".join(path.read_text(encoding="utf-8") for path in runtime_sources("*.h")))


def names_in_generator() -> set[str]:
    texts = [path.read_text(encoding="utf-8") for path in TEMPLATES.rglob("*.j2")]
    return {name for text in texts for name in re.findall(r"\bgts_[a-z]\w*", text)}


def declared_functions() -> set[str]:
    types = {"gts_function", *re.findall(r"^typedef \w+ (gts_\w+)\(", headers(), re.MULTILINE)}
    of_host = re.findall(r"^GTS_EXPORT (?!extern)[\w *]*?\b(gts_\w+)\(", private_headers(), re.MULTILINE)
    return set(re.findall(r"\b(gts_\w+)\(", headers())) - types | set(of_host)


def declared_variables() -> set[str]:
    return set(re.findall(r"^GTS_EXPORT extern [\w *]*?\b(gts_\w+);", headers() + private_headers(), re.MULTILINE))


def exports(library: Path) -> set[str]:
    need("nm")
    done = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


def test_every_name_of_the_generator_is_in_the_headers() -> None:
    names = names_in_generator()
    assert {"gts_enter_linked", "gts_check_args", "gts_program", "gts_descriptor"} <= names
    # Defined in the stub; the last three are the beginnings of names.
    own = {"gts_descriptor", "gts_common", "gts_checked", "gts_tables"}
    own |= {"gts_callee_", "gts_function_", "gts_structure_"}
    assert own <= names
    assert names - own <= set(re.findall(r"\bgts_\w+", headers()))


def test_every_field_of_a_runtime_struct_that_the_generator_names_exists() -> None:
    """Of the descriptor and of contracts: `.leaf_count = `."""
    texts = [path.read_text(encoding="utf-8") for path in TEMPLATES.rglob("*.c.j2")]
    fields = set(re.findall(r"(?<![\w\])])\.([a-z_]+) = ", "".join(texts)))
    assert {"abi", "leaf_count", "kind", "slots"} <= fields
    assert fields <= set(re.findall(r"\b\w+\b", headers()))


def test_every_declared_function_is_defined_in_the_core() -> None:
    core = "\n".join(path.read_text(encoding="utf-8") for path in runtime_sources("*.c"))
    defined = set(re.findall(r"^[A-Za-z][\w *]*?\b(gts_\w+)\([^;{]*\)\n\{", core, re.MULTILINE))
    static = set(re.findall(r"^static [\w *]*?\b(gts_\w+)\(", headers(), re.MULTILINE))
    hidden = set(re.findall(r"^(?!GTS_EXPORT)\w[\w *]*?\b(gts_\w+)\([^;{]*\);", private_headers(), re.MULTILINE))
    assert declared_functions() == (defined - hidden) | static
    assert hidden - {"gts_after_map"} <= defined  # a type
    assert not defined & static


def test_runtime_exports_what_the_headers_declare_and_nothing_else() -> None:
    static = set(re.findall(r"^static [\w *]*?\b(gts_\w+)\(", headers(), re.MULTILINE))
    not_exported = {"gts_link_stub"}  # of libgtstub.a alone
    assert exports(RUNTIME) == (declared_functions() - static - not_exported) | declared_variables()
    assert all(name.startswith("gts_") for name in exports(RUNTIME))


def test_stub_exports_its_descriptor_and_its_entry_only(tmp_path: Path, toolchain: Toolchain) -> None:
    library = build_stub(WHOLE_SDFG, WHOLE_PROGRAM, tmp_path, toolchain)
    assert exports(library) == {"gts_descriptor", "whole_call"}


def test_stub_needs_the_runtime_and_the_c_library_only(tmp_path: Path, toolchain: Toolchain) -> None:
    need("readelf")
    library = build_stub(WHOLE_SDFG, WHOLE_PROGRAM, tmp_path, toolchain)
    text = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*?)\]", text))
    assert RUNTIME.name in needed
    assert all(name == RUNTIME.name or name.startswith(("libc.so", "libasan", "libubsan")) for name in needed)
    assert "RUNPATH" not in text  # the stub is found beside whatever runtime is loaded already
    assert "RPATH" not in text
