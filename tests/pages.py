"""The examples of a page in docs/, whose commands tests run as a reader would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


def block(page: str, language: str) -> str:
    """The one block of code in a language."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return str(text)


def run_commands(page: str, folder: Path) -> str:
    """What the host prints that the commands of a page build in a folder, with a 'gtstub' of this interpreter."""
    command = folder / "gtstub"
    command.write_text(f"#!{sys.executable}\nfrom gtstub.cli import main\nmain()\n", encoding="utf-8")
    command.chmod(0o755)
    path = os.pathsep.join((str(folder), os.environ["PATH"]))
    done = subprocess.run(
        ["sh", "-c", f"set -e\n{block(page, 'sh')}./host\n"],
        cwd=folder,
        env=os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
