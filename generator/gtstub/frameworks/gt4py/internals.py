"""
The internals of gt4py that gtstub uses, and the versions of the packages that lower and compile a program.

After an upgrade of gt4py, check this module first.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from gt4py.next import config
from gt4py.next.common import _connectivity as make_connectivity
from gt4py.next.common import _field as make_field
from gt4py.next.fingerprinting import _is_fingerprinted_field as is_fingerprinted_field
from gt4py.next.otf import runners
from gt4py.next.program_processors.runners.dace.workflow.compilation import _add_tx_markers as add_trace_markers

from gtstub._version import __version__
from gtstub.cache.own_files import own_files

__all__ = ["add_trace_markers", "is_fingerprinted_field", "make_connectivity", "make_field", "replace_default_runner"]


def replace_default_runner(runner: type) -> None:
    """
    Makes `runner` the default runner of gt4py's compilations. It wraps the present default runner, and replaces the one
    that gt4py makes after each reset.
    """
    with runners._default_runner_lock:
        runners.from_config = runner
        if runners._default_runner is not None and not isinstance(runners._default_runner, runner):
            runners._default_runner = runner(runners._default_runner)


def versions() -> dict[str, Any]:
    """
    The versions of the packages that compile a program. gtstub's version includes digests of its files, and so do the
    versions of gt4py and DaCe if they are installed in editable mode.
    """
    return {
        "gtstub": {"version": __version__, "files": dict(own_files())},
        "gt4py": [config.BUILD_CACHE_VERSION_ID, *_edited("gt4py")],
        "dace": [distribution("dace").version, *_edited("dace")],
    }


@functools.cache
def _edited(package: str) -> tuple[str, ...]:
    """A digest of the file sizes and times of a package in editable mode; empty for other packages."""
    installed = distribution(package)
    if not json.loads(installed.read_text("direct_url.json") or "{}").get("dir_info", {}).get("editable"):
        return ()
    directory = Path(str(importlib.import_module(package).__file__)).parent
    stats = [(str(file.relative_to(directory)), file.stat()) for file in sorted(directory.glob("**/*.py"))]
    text = repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
    return (hashlib.sha256(text.encode()).hexdigest(),)
