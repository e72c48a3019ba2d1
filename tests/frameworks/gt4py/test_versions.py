"""A gt4py that gtstub does not support is refused before any of its modules is imported."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gtstub._version import GT4PY_VERSIONS
from tests.support.checkout import ROOT

IMPORT = """
import sys
from gtstub.errors import VersionError
try:
    import gtstub.frameworks.gt4py
except VersionError as error:
    assert isinstance(error, ImportError)
    print(error)
print("gt4py" in sys.modules)
"""


def import_with(version: str, directory: Path, package: str = "gt4py") -> list[str]:
    """The output of a process that imports the plug-in when the metadata of a package name `version`."""
    information = directory / f"{package}-{version}.dist-info"
    information.mkdir()
    text = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    (information / "METADATA").write_text(text)
    code = f"import sys; sys.path.insert(0, {str(directory)!r}); exec({IMPORT!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("version", ["1.2.0", "1.3.0", "9.9"])
def test_another_version_is_refused(version: str, tmp_path: Path) -> None:
    supported, newest = ", ".join(GT4PY_VERSIONS), GT4PY_VERSIONS[-1]
    message = f"gtstub supports gt4py {supported}, but {version} is installed: 'pip install gt4py=={newest}'."
    assert import_with(version, tmp_path) == [message, "False"]


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("1.0.2", r"gt4py requires 'dace[=>]=2\.0\.0a\d+', but DaCe 1\.0\.2 is installed: "),
        ("2.0.0b1", "DaCe 2.0.0b1 breaks "),
    ],
)
def test_dace_that_does_not_work_with_gt4py_is_refused(version: str, message: str, tmp_path: Path) -> None:
    said, imported = import_with(version, tmp_path, "dace")
    assert re.match(message, said)
    assert said.endswith("'pip install dace==2.0.0a10'.")
    assert imported == "False"


def test_missing_gt4py_is_named() -> None:
    code = f"import sys; sys.path[:] = [{str(ROOT / 'generator')!r}, *sys.path]\nimport gtstub.frameworks.gt4py"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False)
    advice = f"'pip install gt4py=={GT4PY_VERSIONS[-1]}'"
    assert done.stderr.splitlines()[-1] == (
        f"ModuleNotFoundError: gtstub's backend needs gt4py, which is not installed: {advice}."
    )


@pytest.mark.parametrize("version", [*GT4PY_VERSIONS, f"{GT4PY_VERSIONS[-1]}.dev3"])
def test_supported_versions_and_their_development_are_imported(version: str, tmp_path: Path) -> None:
    assert import_with(version, tmp_path) == ["True"]
