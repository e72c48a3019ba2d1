"""What 'make release' checks before it builds anything, on checkouts in which one thing is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gtstub.abi import ABI
from tests.support.checkout import ROOT
from tests.support.programs import needs

pytestmark = needs("git")

FILES = {
    "pyproject.toml": (ROOT / "pyproject.toml").read_text(encoding="utf-8"),
    "generator/gtstub/_version.py": '"""The version."""\n\n__version__ = "0.7.1"\n',
    "generator/gtstub/abi.py": (ROOT / "generator" / "gtstub" / "abi.py").read_text(encoding="utf-8"),
    "runtime/include/gtstub/gtstub.h": f"#define GTS_ABI {ABI}\n",
    "CHANGELOG.md": f"# Changelog\n\n## [Unreleased]\n\n## [0.7.1]\n\n- The ABI is {ABI}. More.\n\n## [0.7.0]\n",
}


def git(folder: Path, *arguments: str) -> None:
    # Without the settings of the user, and with those that a commit needs.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    names = ("-c", "user.name=Test", "-c", "user.email=test@localhost")
    subprocess.run(["git", *names, *arguments], cwd=folder, env=environment, check=True, capture_output=True)


def release(folder: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, ROOT / ".ci" / "release", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message", "All")
    return tmp_path


def test_checkout_that_agrees_is_released(checkout: Path) -> None:
    assert release(checkout, "check") == (0, "== Release of gtstub 0.7.1\n")


@pytest.mark.parametrize(
    ("file", "old", "new", "mistake"),
    [
        (
            "CHANGELOG.md",
            "## [Unreleased]\n",
            "## [Unreleased]\n\n- A change.\n",
            "CHANGELOG.md has changes under [Unreleased]: move them to a section [0.7.1]",
        ),
        (
            "CHANGELOG.md",
            "## [0.7.1]",
            "## [0.7.2]",
            "the newest section of CHANGELOG.md is [0.7.2], and gtstub's version is 0.7.1",
        ),
        (
            "CHANGELOG.md",
            f"ABI is {ABI}",
            "ABI is 3",
            f"the ABI is {ABI} in generator/gtstub/abi.py, and 3 in CHANGELOG.md",
        ),
        (
            "runtime/include/gtstub/gtstub.h",
            f"ABI {ABI}",
            "ABI 3",
            f"the ABI is {ABI} in generator/gtstub/abi.py, and 3 in runtime/include/gtstub/gtstub.h",
        ),
        (
            "pyproject.toml",
            'dynamic = ["version"]',
            'version = "0.7.1"',
            "pyproject.toml does not read the version from generator/gtstub/_version.py",
        ),
    ],
)
def test_what_does_not_agree_is_said(checkout: Path, file: str, old: str, new: str, mistake: str) -> None:
    (checkout / file).write_text(FILES[file].replace(old, new), encoding="utf-8")
    git(checkout, "commit", "--all", "--message", "Something is wrong")
    assert release(checkout, "check") == (1, f"release: {mistake}\n")


def test_files_that_are_not_committed_are_named(checkout: Path) -> None:
    (checkout / "notes.txt").touch()
    assert release(checkout, "check") == (1, "release: these files are not committed:\n?? notes.txt\n")


def test_listed_sums_are_those_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "gtstub-0.7.1.tar.gz").write_bytes(b"sdist")
    status, output = release(tmp_path, "list")
    assert (status, output) == (0, (tmp_path / "dist" / "SHA256SUMS").read_text())
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path / "dist", check=True)
    assert release(tmp_path, "list") == (0, output)
