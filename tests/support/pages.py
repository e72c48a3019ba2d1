"""The examples of a page in docs/, whose commands tests run as a reader would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

COMMAND = f"""#!{sys.executable}
from gtstub.cli.app import main

if __name__ == "__main__":
    main()
"""


def blocks(page: str, language: str) -> list[str]:
    """All blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def run_commands(commands: str, folder: Path) -> str:
    """What commands print that run in a folder, with a 'gtstub' of this interpreter; none may fail."""
    command = folder / "gtstub"
    command.write_text(COMMAND, encoding="utf-8")
    command.chmod(0o755)
    path = os.pathsep.join((str(folder), os.environ["PATH"]))
    done = subprocess.run(
        ["sh", "-ec", commands],
        cwd=folder,
        env=os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
