"""A library that is copied beside a stub must have been built from the signatures of this stub."""

import shutil
from pathlib import Path

import dace
import numpy as np
import pytest

import gtstub
from gtstub import _host


@gtstub.program
@dace.program
def doubled(a):
    a[:] = a * 2.0


def test_a_library_of_other_sizes_is_refused(tmp_path: Path) -> None:
    for size in (4, 7):
        doubled(np.ones(size))
    variants = {variant.plan.fields[0].axes[0].fixed.size: variant for _, variant in doubled._variants}
    name = variants[4].plan.name

    def load(stub: int, library: int) -> _host.Program:
        folder = tmp_path / f"{stub} and {library}"
        folder.mkdir()
        files = folder / f"{name}_stub.so", folder / variants[4].plan.library
        for file, size in zip(files, (stub, library), strict=True):
            shutil.copy(variants[size].entry.path / file.name, file)
        return _host.load(*files)

    for size in (4, 7):
        a = np.ones(size)
        load(size, size)(a)
        assert (a == 2.0).all()
    for sizes in ((4, 7), (7, 4)):
        with pytest.raises(RuntimeError) as caught:
            load(*sizes)
        library = tmp_path / "{} and {}".format(*sizes) / variants[4].plan.library
        assert str(caught.value) == (
            f"Library '{library}' was built from other signatures than the stub of program '{name}': it takes other"
            " arguments, or has other values compiled in. Generate the stub from the signatures that the library was"
            " built with."
        )
